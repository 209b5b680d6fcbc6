"""The server of a run of looks: which query comes next, and the result.

After each look the server decides what comes next (``choices``). Counts of the same cells are
averaged by their inverse variances; a zoomed look stands alone.

Replicates of a simulation may decide differently. Then each query is sent for all of them, and the
reply is used for those that decided on it: each replicate goes the way of a run on its own.

The warning of a run with looks about its division of epsilon between the AUC and the rest.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.metrics import trees
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.privacy.cost import Adjacency, Cost
from tacit.protocol.conversation import Conversation, Query, Reply, View
from tacit.protocol.releases import answered_clients
from tacit.protocols.histogram.estimate import SecondRound, influence_variance, result_from_tree
from tacit.protocols.histogram.looking.choices import Choices, Next
from tacit.protocols.histogram.looking.looks import (
    CELLS,
    CLASSES,
    FIRST_PARTS,
    LISTED,
    LOOKS,
    PARTS,
    first_look,
    look_epsilons,
)
from tacit.protocols.histogram.looking.seen import Rows, Seen, hidden_variance, product_variance
from tacit.protocols.histogram.second_round import (
    both_rounds,
    summed_influences,
)
from tacit.protocols.histogram.steps import tree_fields
from tacit.protocols.histogram.trees import tree_noise
from tacit.protocols.shared.cells import KNOTS
from tacit.protocols.shared.influence_sum import (
    check_the_same_number,
    supported_cost,
)
from tacit.protocols.shared.zoomed_cells import recounted
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.figure import CLEAR_CLASS_SIZE_IN_ERRORS
from tacit.results.server_result import ServerResult

MIN_RATE_ERROR = 1e-3
"""Standard error of a rate from which the division of epsilon is reported."""

MIN_ERROR_RATIO = 1.5
"""Least ratio of that error to the one with aim ``"all"`` at which the division is reported."""

OFF_EDGE = 1 / 3
"""Where the scale is cut for the error of a rate: no edge of a tree's upper levels is there."""


def division_warning(
    protocol: Any, counts: Floats, noise: trees.TreeNoise, looks: int, auc_error: float
) -> tuple[str, ...]:
    """The errors of rates and of the AUC beside those of aim ``"all"``; nothing where alike.

    Parameters
    ----------
    counts : the consistent counts of positives and negatives, shape (2, B).
    noise : the errors of these counts.
    looks : the parts of epsilon of all looks.
    auc_error : the standard error of the AUC.
    """
    even = replace(protocol, aim="all", height=None)
    height = even.tree_height(0)
    tree = tree_noise(tree_fields(even, height), height)
    error, even_error = (rate_error(counts, each) for each in (noise, tree))
    if error < max(MIN_RATE_ERROR, MIN_ERROR_RATIO * even_error):
        return ()
    leaves = _finer(counts, tree)
    area = math.sqrt(float(influence_variance(leaves, leaves, tree)))
    return (
        f"rates, curves and calibration get {looks / PARTS:.3g} of epsilon, because the aim is the "
        f"AUC: a rate errs by {error:.2g} or less; with aim {even.aim!r} a rate would err by "
        f"{even_error:.2g}, and the AUC by {area:.2g} instead of {auc_error:.2g}",
    )


def rate_error(counts: Floats, noise: trees.TreeNoise) -> float:
    """About the largest standard error of the smaller class's part above a threshold.

    A part of one half errs most. Its variance is that of ``(above - 1/2) / size`` summed over the
    cells' noise.
    """
    leaves = _finer(counts, noise)
    sizes = np.maximum(leaves.sum(axis=-1), 1.0)
    smaller, cells = int(np.argmin(sizes)), leaves.shape[-1]
    weights = np.zeros(leaves.shape)
    weights[smaller] = np.where(np.arange(cells) < OFF_EDGE * cells, -0.5, 0.5) / sizes[smaller]
    return math.sqrt(float(noise.variance_of(weights.ravel(), leaves.ravel())))


def _finer(counts: Floats, noise: trees.TreeNoise) -> Floats:
    """The counts spread evenly over the cells of a tree that has as many or more."""
    times = (1 << noise.variances.size - 2) // counts.shape[-1]
    return np.repeat(counts, times, axis=-1) / times


def looked(protocol: Any, clients: int) -> Conversation:
    """The rounds of a run of looks, from the first to the result."""
    run = _Run(protocol, clients)
    height, first = protocol.look_heights[0], FIRST_PARTS
    reply = yield run.query(first_look, (first,), height)
    run.answered = answered_clients(reply, clients)
    run.single = np.asarray(reply[CLASSES]).ndim == 1
    seen = run.seen(reply, first, protocol.score_scale, None)
    rows = np.arange(seen.classes.shape[0])
    run.replicates = rows.size
    result = yield from run.after(seen, rows, (first,))
    return result


def expected_looks(
    protocol: Any, clients: int, counts: Floats
) -> tuple[Seen, tuple[int, ...], ServerResult]:
    """What the looks of a run are and conclude where the counts are these, without noise in them.

    Parameters
    ----------
    counts : expected positives, then negatives, in the cells of the first look, shape (2, B).
    """
    run = _Run(protocol, clients)
    parts: tuple[int, ...] = (FIRST_PARTS,)
    sizes, cells = counts.sum(axis=-1)[np.newaxis], counts.reshape(1, -1)
    seen = Seen(protocol.score_scale, None, sizes, cells, run.choices.precisions(parts[0]))
    while (step := run.choices.decided(seen, parts)[0]).look:
        parts, precisions = (*parts, step.parts), run.choices.precisions(step.parts)
        if step.scale is None:
            seen = seen.with_look(replace(seen, precisions=precisions))
            continue
        moved = recounted(seen.counts, seen.scale, step.scale).reshape(1, -1)
        seen = Seen(step.scale, step.scale.knots, sizes, moved, precisions)
    parts = (*parts, step.parts)
    run.single = False
    return seen, parts, run.concluded(seen, parts, np.zeros(1))


class _Run:
    """One run of the server, which goes the ways of all replicates one after another."""

    def __init__(self, protocol: Any, clients: int) -> None:
        self.protocol, self.clients = protocol, clients
        self.answered, self.single, self.replicates = clients, True, 1

    def query(self, step: Any, parts: tuple[int, ...], height: int, **more: Any) -> Query:
        shared = {"clients": self.clients, "height": height, LISTED: np.array(parts), **more}
        return Query(step, self.protocol, broadcast=shared, view=View.SUM)

    @property
    def inflation(self) -> float:
        """The noise that arrived, as a multiple of what the guarantee needs."""
        return float(self.protocol.trust.share(self.answered, self.clients))

    @property
    def choices(self) -> Choices:
        """How it divides epsilon."""
        return Choices(self.protocol, self.inflation)

    def seen(self, reply: Reply, parts: int, scale: ScoreScale, knots: Floats | None) -> Seen:
        """What a look alone says, of all replicates."""
        classes, cells = (
            np.atleast_2d(np.asarray(reply[name], dtype=np.float64)) for name in (CLASSES, CELLS)
        )
        return Seen(scale, knots, classes, cells, self.choices.precisions(parts))

    def after(
        self, seen: Seen, rows: Rows, parts: tuple[int, ...]
    ) -> Generator[Query, Reply, ServerResult]:
        """The rest of the run of these replicates, which have the same parts behind them."""
        ways: dict[tuple[Any, ...], tuple[Next, list[int]]] = {}
        for row, step in enumerate(self.choices.decided(seen, parts)):
            ways.setdefault(step.key, (step, []))[1].append(row)
        results = []
        for step, members in ways.values():
            chosen = np.array(members)
            follow = self.another if step.look else self.rest
            result = yield from follow(seen.of(chosen), rows[chosen], parts, step)
            results.append((chosen, result))
        return results[0][1] if len(results) == 1 else _joined(results)

    def another(
        self, seen: Seen, rows: Rows, parts: tuple[int, ...], step: Next
    ) -> Generator[Query, Reply, ServerResult]:
        """Another look, and what follows."""
        scale, knots = seen.scale, seen.knots
        if step.scale is not None:
            scale, knots = step.scale, step.scale.knots
        height = seen.height if step.scale is None else self.protocol.look_heights[-1]
        more = {} if knots is None else {KNOTS: knots}
        listed = (*parts, step.parts)
        reply = yield self.query(LOOKS[len(parts)], listed, height, **more)
        check_the_same_number(self.answered, answered_clients(reply, self.clients))
        look = self.seen(reply, step.parts, scale, knots).of(rows)
        together = look if step.scale is not None else seen.with_look(look)
        return (yield from self.after(together, rows, listed))

    def rest(
        self, seen: Seen, rows: Rows, parts: tuple[int, ...], step: Next
    ) -> Generator[Query, Reply, ServerResult]:
        """The one number, and the result."""
        more: dict[str, Any] = {} if seen.knots is None else {KNOTS: seen.knots}
        more |= {name: self._for_all(field, rows) for name, field in seen.published.items()}
        reply = yield self.query(summed_influences, (*parts, step.parts), seen.height, **more)
        check_the_same_number(self.answered, answered_clients(reply, self.clients))
        sums = np.atleast_1d(np.asarray(reply["sum"], dtype=np.float64))[rows]
        return self.concluded(seen, (*parts, step.parts), sums)

    def concluded(self, seen: Seen, parts: tuple[int, ...], sums: Floats) -> ServerResult:
        """The result of looks and of the noisy sums of influences, shape (R,), in units."""
        protocol, leaves = self.protocol, seen.leaves
        epsilon, adjacency = protocol.epsilon * parts[-1] / PARTS, Adjacency(protocol.adjacency)
        inflation, straight = self.inflation, seen.straight
        area, variance = both_rounds(seen.published, sums, epsilon, adjacency, inflation, straight)
        by_functions = product_variance(seen)
        hidden = hidden_variance(seen, np.sqrt(variance + by_functions))
        second = SecondRound(area, variance, seen.height, by_functions, hidden)
        if self.single:
            leaves = leaves[0]
            alone = {name: value[0] for name, value in vars(second).items() if name != "depth"}
            second = replace(second, **alone)
        protection = self.protection(parts)
        axis = ScoreAxis(seen.scale, protocol.unit)
        result = result_from_tree(leaves, seen.noise, None, protection, second, axis)
        return replace(result, warnings=(*result.warnings, *self.remarks(seen, result, parts)))

    def remarks(self, seen: Seen, result: ServerResult, parts: tuple[int, ...]) -> tuple[str, ...]:
        """Where no figure is given, what epsilon would do, and else how it was divided.

        Of a single run only.
        """
        if not self.single:
            return ()
        if np.isfinite(result.value):
            error = float(result.standard_error)
            return division_warning(
                self.protocol, seen.counts[0], seen.noise, sum(parts[:-1]), error
            )
        smaller = float(min(result.positives, result.negatives))
        error = float(np.asarray(result.positives_error))
        if smaller <= error:
            return ()
        least = self.protocol.epsilon * CLEAR_CLASS_SIZE_IN_ERRORS * error / smaller
        return (f"by these counts an epsilon of about {least:.2g} would give a figure",)

    def _for_all(self, field: Floats, rows: Rows) -> Floats:
        """A field for every replicate; those that this query is not about get the first's."""
        if self.single:
            return field[0]
        every = np.repeat(field[:1], self.replicates, axis=0)
        every[rows] = field
        return every

    def protection(self, parts: tuple[int, ...]) -> Cost | None:
        """What the noise that arrived supports, where too many clients vanished with theirs."""
        epsilon, distance = self.protocol.epsilon, self.protocol.distance
        looks = [each for part in parts[:-1] for each in look_epsilons(epsilon, part)]
        scales = [distance / each for each in looks]
        number = epsilon * parts[-1] / PARTS
        return supported_cost(
            self.inflation, scales, distance, number, Adjacency(self.protocol.adjacency)
        )


def _joined(parts: list[tuple[Rows, ServerResult]]) -> ServerResult:
    """The results of replicates that went different ways, in their order."""
    order = np.argsort(np.concatenate([rows for rows, _ in parts]), kind="stable")

    def together(name: str) -> Floats:
        columns = [np.broadcast_to(getattr(result, name), rows.shape) for rows, result in parts]
        return np.concatenate(columns)[order]

    return ServerResult(
        value=together("value"),
        privacy_error=together("privacy_error"),
        sampling_error=together("sampling_error"),
        positives=together("positives"),
        negatives=together("negatives"),
        positives_error=together("positives_error"),
        approximation_error=together("approximation_error"),
        bias=together("bias"),
        half_range=together("half_range"),
        laplace_error=together("laplace_error"),
    )
