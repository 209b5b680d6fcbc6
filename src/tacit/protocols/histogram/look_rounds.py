"""The server of a run of looks: which query comes next, and the result.

After each look the server decides from noisy counts only (``decided``): a zoom, where a cell holds
too much of a class; else the parts of another look at the same cells that make the AUC's variance
least; where that is none, the one number with all parts that are left. Counts of the same cells are
averaged by their inverse variances; a zoomed look stands alone.

Replicates of a simulation may decide differently. Then each query is sent for all of them, and the
reply is used for those that decided on it: each replicate goes the way of a run on its own.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.metrics.score_distribution import rising_fractions
from tacit.metrics.score_scale import PROBABILITY, ScoreScale
from tacit.metrics.tree_noise import TreeNoise
from tacit.metrics.trees import consistent_leaves
from tacit.privacy.cost import Adjacency, Cost
from tacit.privacy.sampling.distributions import discrete_laplace_variance, shared_laplace_epsilon
from tacit.protocol.conversation import Conversation, Query, Reply, View
from tacit.protocols.histogram.estimate import (
    influence_variance,
    result_from_tree,
)
from tacit.protocols.histogram.fine_cells import best_scales, recounted
from tacit.protocols.histogram.looks import (
    CELLS,
    CLASSES,
    FIRST_PARTS,
    KNOTS,
    LISTED,
    LOOKS,
    MAX_LOOKS,
    PARTS,
    first_look,
    look_epsilons,
)
from tacit.protocols.histogram.second_round import (
    NEGATIVES,
    POSITIVES,
    SIZES,
    both_rounds,
    check_the_same_number,
    influences_of,
    summed_influences,
)
from tacit.protocols.histogram.zoom import crowded_cells, hidden_in_cells, shares_of, zoomed
from tacit.protocols.shared.noise_shares import answered_clients
from tacit.protocols.shared.whole_units import units_for
from tacit.results.class_sizes import CLEAR_CLASS_SIZE_IN_ERRORS
from tacit.results.score_axis import ScoreAxis
from tacit.results.server_result import ServerResult

MORE_PARTS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 20)
"""Parts of epsilon that another look may get; 0 for none."""

LONE_ERRORS = 4.0
"""Standard errors of its noise by which a crowd must differ from its neighbours' mean."""

WORTHWHILE = 0.95
"""Largest ratio of the predicted standard errors with and without another look at which it is
taken."""

UNSHOWN_VARIANCE = 0.25
"""Variance that counts for a class that will not show."""

HIDDEN_TIES = 2e-5
"""Error of the AUC by ties in the cells of a first look, about: scores with two digits, of which
several share a cell, err by 1e-5 to 3e-5."""

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Seen:
    """What looks at the same cells say together, for some replicates.

    Parameters
    ----------
    scale : whose equal cells of positions were counted in.
    knots : its knots, where it was published; None for the protocol's scale.
    classes, cells : the means of the noisy counts, shape (R, 2) and (R, 2B).
    precisions : the inverse noise variances of a class size and of a cell.
    """

    scale: ScoreScale
    knots: Floats | None
    classes: Floats
    cells: Floats
    precisions: tuple[float, float]

    @property
    def straight(self) -> bool:
        """Whether functions are straight between edges (``StraightDistribution``)."""
        return self.knots is not None

    @property
    def cell_error(self) -> float:
        """The standard deviation of a cell's noise."""
        return math.sqrt(1 / self.precisions[1])

    def crowded(self, auc_error: Floats) -> NDArray[np.bool_]:
        """Which cells hide too much beside this error, and hold more than one double, (R, B)."""
        crowded = crowded_cells(self.counts, self.cell_error, auc_error, self.straight)
        return crowded & ~self.scale.single_doubles if self.straight else crowded

    @cached_property
    def lone_mass(self) -> Floats:
        """The AUC's variance by ties, for cells whose noise has the variance 1, shape (R,).

        In a cell whose p positives and n negatives all have one score, at the part u of the cell,
        noise moves the AUC by ``(1/2 - u) (p dn - n dp) / (P N)``, u taken as uniform. How much of
        a cell is such a crowd shows in how far its count differs from its neighbours' mean.
        """
        if not self.straight:
            return np.zeros(self.cells.shape[0])
        counts = self.counts
        beside = np.concatenate([counts[..., 1:2], counts, counts[..., -2:-1]], axis=-1)
        differing = np.abs(counts - (beside[..., :-2] + beside[..., 2:]) / 2)
        clear = np.maximum(differing - LONE_ERRORS * self.cell_error, 0.0)
        lone = np.minimum(clear, np.maximum(counts, 0.0))
        lone = np.where(self.scale.single_doubles, 0.0, lone)
        pairs = np.prod(self.sizes, axis=-1)
        return np.asarray(np.sum(lone**2, axis=(-2, -1)) / 12 / pairs**2)

    @property
    def height(self) -> int:
        """There are ``2**height`` cells."""
        return int(self.cells.shape[-1]).bit_length() - 2

    @property
    def noise(self) -> TreeNoise:
        """Their errors, as those of a tree with two levels."""
        variances = np.full(self.height + 2, np.inf)
        variances[1], variances[-1] = (1 / precision for precision in self.precisions)
        return TreeNoise(variances)

    @property
    def leaves(self) -> Floats:
        """The consistent cells, shape (R, 2B)."""
        levels: list[Floats | None] = [None] * (self.height + 2)
        levels[1], levels[-1] = self.classes, self.cells
        return consistent_leaves(levels, self.noise.variances)

    @property
    def counts(self) -> Floats:
        """The consistent cells by class, shape (R, 2, B)."""
        return self.leaves.reshape(self.cells.shape[0], 2, -1)

    @property
    def sizes(self) -> Floats:
        """Of both classes, at least 1, shape (R, 2)."""
        return np.maximum(self.counts.sum(axis=-1), 1.0)

    @property
    def smaller(self) -> Floats:
        """The smaller size, shape (R,)."""
        return self.sizes.min(axis=-1)

    @property
    def linear_variance(self) -> Floats:
        """The variance of the AUC of these cells in first order, shape (R,)."""
        return influence_variance(self.counts, self.counts, self.noise)

    def of(self, rows: Rows) -> Seen:
        """The same for some of the replicates."""
        return replace(self, classes=self.classes[rows], cells=self.cells[rows])

    def with_look(self, look: Seen) -> Seen:
        """Averaged with another look at the same cells, by inverse variances."""
        mine, others = np.array(self.precisions), np.array(look.precisions)
        by_class, by_cell = mine / (mine + others)
        return replace(
            self,
            classes=by_class * self.classes + (1 - by_class) * look.classes,
            cells=by_cell * self.cells + (1 - by_cell) * look.cells,
            precisions=tuple((mine + others).tolist()),
        )


@dataclass(frozen=True, eq=False)
class Next:
    """The next query: its parts, whether it is a look, and the scale where that is a new one."""

    parts: int
    look: bool
    scale: ScoreScale | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for equal queries."""
        knots = b"" if self.scale is None else self.scale.knots.tobytes()
        return self.parts, self.look, knots


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
    seen = Seen(protocol.score_scale, None, sizes, cells, run.precisions(parts[0]))
    while (step := run.decided(seen, parts)[0]).look:
        parts, precisions = (*parts, step.parts), run.precisions(step.parts)
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
        return float(self.protocol.noise_share(self.answered, self.clients))

    def precisions(self, parts: int) -> tuple[float, float]:
        """The inverse noise variances of a look of so many parts."""
        by_class, by_cell = (
            self.inflation * float(discrete_laplace_variance(self.protocol.distance / epsilon))
            for epsilon in look_epsilons(self.protocol.epsilon, parts)
        )
        return 1 / by_class, 1 / by_cell

    def seen(self, reply: Reply, parts: int, scale: ScoreScale, knots: Floats | None) -> Seen:
        """What a look alone says, of all replicates."""
        classes, cells = (
            np.atleast_2d(np.asarray(reply[name], dtype=np.float64)) for name in (CLASSES, CELLS)
        )
        return Seen(scale, knots, classes, cells, self.precisions(parts))

    def after(
        self, seen: Seen, rows: Rows, parts: tuple[int, ...]
    ) -> Generator[Query, Reply, ServerResult]:
        """The rest of the run of these replicates, which have the same parts behind them."""
        ways: dict[tuple[Any, ...], tuple[Next, list[int]]] = {}
        for row, step in enumerate(self.decided(seen, parts)):
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
        published = _published(seen.leaves)
        more: dict[str, Any] = {} if seen.knots is None else {KNOTS: seen.knots}
        more |= {name: self._for_all(field, rows) for name, field in published.items()}
        reply = yield self.query(summed_influences, (*parts, step.parts), seen.height, **more)
        check_the_same_number(self.answered, answered_clients(reply, self.clients))
        sums = np.atleast_1d(np.asarray(reply["sum"], dtype=np.float64))[rows]
        return self.concluded(seen, (*parts, step.parts), sums)

    def concluded(self, seen: Seen, parts: tuple[int, ...], sums: Floats) -> ServerResult:
        """The result of looks and of the noisy sums of influences, shape (R,), in units."""
        protocol, leaves, published = self.protocol, seen.leaves, _published(seen.leaves)
        epsilon, adjacency = protocol.epsilon * parts[-1] / PARTS, Adjacency(protocol.adjacency)
        inflation, straight = self.inflation, seen.straight
        second = both_rounds(published, sums, epsilon, adjacency, inflation, straight)
        by_functions = product_variance(published, seen)
        hidden = hidden_variance(seen, np.sqrt(second.variance + by_functions))
        second = replace(second, depth=seen.height, by_functions=by_functions, by_cells=hidden)
        if self.single:
            leaves = leaves[0]
            alone = {name: value[0] for name, value in vars(second).items() if name != "depth"}
            second = replace(second, **alone)
        protection = self.protection(parts)
        axis = ScoreAxis(seen.scale, protocol.unit)
        result = result_from_tree(leaves, seen.noise, protocol.buckets, protection, second, axis)
        return replace(result, warnings=(*result.warnings, *self.remarks(seen, result, parts)))

    def remarks(self, seen: Seen, result: ServerResult, parts: tuple[int, ...]) -> tuple[str, ...]:
        """Where no figure is given, what epsilon would do; of a single run only."""
        if not self.single or np.isfinite(result.value):
            return ()
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

    def decided(self, seen: Seen, parts: tuple[int, ...]) -> list[Next]:
        """What follows these looks, for every replicate."""
        left = PARTS - sum(parts)
        if len(parts) == MAX_LOOKS or left <= FIRST_PARTS:  # the number needs a part
            return [Next(left, look=False)] * seen.smaller.size
        again, least = self._best_parts(seen, left)
        crowded = seen.crowded(np.sqrt(least))
        zoom_parts = np.full(again.shape, FIRST_PARTS)
        fine = self._fine(seen, left, least, crowded.any(axis=-1))
        if len(parts) == MAX_LOOKS - 1 and crowded.any():
            zoom_parts, _ = self._best_parts(seen, left, alone=True)
        steps = []
        for row, more in enumerate(again.tolist()):
            at_fine_cells = fine[row]
            if at_fine_cells is not None:
                steps.append(at_fine_cells)
                continue
            finer = self._finer(seen, row, crowded[row])
            if finer is not None:
                steps.append(Next(int(zoom_parts[row]), look=True, scale=finer))
            else:
                steps.append(Next(more or left, look=bool(more)))
        return steps

    def _finer(self, seen: Seen, row: int, crowded: NDArray[np.bool_]) -> ScoreScale | None:
        """The zoomed scale of a replicate; None where nothing is crowded, or can be split."""
        if not crowded.any():
            return None
        cells = 1 << self.protocol.look_heights[-1]
        return zoomed(seen.scale, seen.counts[row], crowded, cells, seen.cell_error)

    def _fine(
        self, seen: Seen, left: int, least: Floats, crowded: NDArray[np.bool_]
    ) -> list[Next | None]:
        """For every replicate a look at fixed fine cells, where that pays; None elsewhere.

        It pays where many records make the noise less than what ties could hide in the cells of
        the first look, ``HIDDEN_TIES``, or where fine cells may part a crowd.
        """
        none: list[Next | None] = [None] * crowded.size
        if seen.knots is not None or self.protocol.height is not None or left < 2:
            return none
        fine_parts, variance = self._best_parts(seen, left, alone=True)
        pays = variance < WORTHWHILE**2 * (least + HIDDEN_TIES**2)
        pays |= crowded & (self.protocol.scale == PROBABILITY)
        if not pays.any():
            return none
        scales = best_scales(self.protocol.scale, seen.counts, seen.scale)
        return [
            Next(FIRST_PARTS if crowd else int(part), look=True, scale=scale) if pay else None
            for pay, crowd, part, scale in zip(pays, crowded, fine_parts, scales, strict=True)
        ]

    def _best_parts(
        self, seen: Seen, left: int, alone: bool = False
    ) -> tuple[NDArray[np.int64], Floats]:
        """The parts of another look with the least predicted variance, and that, shape (R,) each.

        With D the width of an influence, f the rest of epsilon, m the smaller class and s^2 the
        variance of a cell: ``2 D^2 / (f m)^2 + (s^2 B)^2 / (12 P^2 N^2)``, the noise of the one
        number and the product of both functions' errors; and the product of the smaller class's
        relative error with the functions'. Classes must show.

        Parameters
        ----------
        alone : whether the look will be at other cells, as many as there can be.
        """
        before = (0.0, 0.0) if alone else seen.precisions
        tried = [more for more in MORE_PARTS if more < left and (more or not alone)]
        cells = 1 << (self.protocol.look_heights[-1] if alone else seen.height)
        variances = np.array(
            [self._predicted(seen, before, more, left, cells, alone) for more in tried]
        )
        best = np.argmin(variances, axis=0)
        if not alone:
            worthwhile = variances.min(axis=0) < WORTHWHILE**2 * variances[0]
            best = np.where(worthwhile, best, 0)
        return np.asarray(tried)[best], np.take_along_axis(variances, best[np.newaxis], axis=0)[0]

    def _predicted(
        self,
        seen: Seen,
        before: tuple[float, float],
        more: int,
        left: int,
        cells: int,
        alone: bool,
    ) -> Floats:
        """The AUC's variance after another look of some parts, shape (R,)."""
        added = self.precisions(more) if more else (0.0, 0.0)
        by_class, by_cell = (1 / (a + b) for a, b in zip(before, added, strict=True))
        smaller, pairs = seen.smaller, np.prod(seen.sizes, axis=-1)
        rest = self.protocol.epsilon * (left - more) / PARTS
        by_number = 2 * (self._width(seen) / (rest * smaller)) ** 2
        by_functions = (by_cell * cells) ** 2 / 12 / pairs**2
        by_ties = 0.0 if alone else by_cell * seen.lone_mass
        linear = seen.linear_variance * by_cell * seen.precisions[1] * cells / (1 << seen.height)
        variance = by_number + by_functions + by_ties + by_class / smaller**2 * linear
        shown = smaller > CLEAR_CLASS_SIZE_IN_ERRORS * math.sqrt(by_class)
        return np.where(shown, variance, UNSHOWN_VARIANCE * (1 + 1 / (1 + more)))

    def _width(self, seen: Seen) -> Floats:
        """How far a record moves the smaller class's size times the AUC, shape (R,)."""
        if self.protocol.adjacency == Adjacency.REPLACE.value:
            return np.ones(seen.smaller.shape)
        area = influences_of(_published(seen.leaves), seen.straight).area
        return np.maximum(area, 1 - area)

    def protection(self, parts: tuple[int, ...]) -> Cost | None:
        """What the noise that arrived supports, where too many clients vanished with theirs."""
        fraction, protocol = self.inflation, self.protocol
        if fraction >= 1:
            return None
        distance = protocol.distance
        looks = [each for part in parts[:-1] for each in look_epsilons(protocol.epsilon, part)]
        losses = [distance * shared_laplace_epsilon(distance / each, fraction) for each in looks]
        epsilon = protocol.epsilon * parts[-1] / PARTS
        units = units_for(epsilon)
        losses.append(shared_laplace_epsilon(units / epsilon, fraction, units))
        return Cost(float(np.sum(losses)), adjacency=Adjacency(protocol.adjacency))


def _published(leaves: Floats) -> dict[str, Floats]:
    """Both functions at all inner edges, and the class sizes, of every replicate."""
    counts = leaves.reshape(leaves.shape[0], 2, -1)
    functions = rising_fractions(counts)[..., 1:-1]
    sizes = np.maximum(counts.sum(axis=-1), 1.0)
    return {POSITIVES: functions[:, 0], NEGATIVES: functions[:, 1], SIZES: sizes}


def product_variance(published: dict[str, Floats], seen: Seen) -> Floats:
    """The variance of the product of both functions' errors by noise, shape (R,).

    The one number cancels what is linear in the errors e- and e+ of the functions, and leaves the
    integral of ``e- d(e+)``. The classes have independent noise, so with S- and S+ the covariances
    of the errors at the edges, A the means and D the differences of neighbours, its variance is
    ``trace(A S- A' D S+ D')``.
    """
    positive, negative = (
        _errors_at_edges(published[name], published[SIZES][:, row], seen)
        for row, name in enumerate((POSITIVES, NEGATIVES))
    )
    means = (negative[:, 1:] + negative[:, :-1]) / 2
    steps = np.diff(positive, axis=1)
    # the trace of (M M')(T T') is the sum of the squares of M' T
    crossed = np.matmul(np.swapaxes(means, 1, 2), steps)
    return np.sum(crossed**2, axis=(1, 2)) + seen.lone_mass / seen.precisions[1]


def hidden_variance(seen: Seen, auc_error: Floats) -> Floats:
    """What cells hide where scores are exact and functions are interpolated, shape (R,).

    Of records placed at random in a cell of p positives and n negatives, ``p n / 12`` pairs are
    left open (``estimate``); smooth densities add ``hidden_in_cells``. Where a cell is still
    crowded, the fraction of its pairs that positives win is taken as uniform on [0, 1].
    """
    crowded = seen.crowded(auc_error)
    shares = np.prod(shares_of(seen.counts), axis=-2)
    pairs = np.prod(seen.sizes, axis=-1)
    placed = np.sum(shares, axis=-1) / 12 / pairs
    known = crowded | seen.scale.single_doubles if seen.straight else crowded
    inside = hidden_in_cells(seen.counts, seen.straight)
    smooth = np.sum(np.where(known, 0.0, inside), axis=-1)
    ties = 0.0 if seen.straight else HIDDEN_TIES**2
    return placed + ties + smooth**2 + np.sum(np.where(crowded, shares, 0.0) ** 2, axis=-1) / 12


def _errors_at_edges(values: Floats, sizes: Floats, seen: Seen) -> Floats:
    """How the function at every edge moves with a standard error of each count, (R, B+1, B+1).

    A consistent cell is its count, plus an equal part of what the class size adds to their sum: w
    times their difference, w the weight of the counted size. The function at edge k is the sum of
    the first k cells, over the sum of all.
    """
    count = 1 << seen.height
    by_class, by_cell = (1 / precision for precision in seen.precisions)
    weight = count * by_cell / (count * by_cell + by_class)
    edges = np.arange(count + 1)
    ends = np.zeros((values.shape[0], 1))
    function = np.concatenate([ends, values, ends + 1], axis=-1)[..., np.newaxis]
    summed = (edges[:, np.newaxis] > np.arange(count)).astype(np.float64)
    even = edges[:, np.newaxis] / count
    by_counts = summed - even * weight - function * (1 - weight)
    by_size = even * weight - function * weight
    moves = np.concatenate([by_counts * np.sqrt(by_cell), by_size * np.sqrt(by_class)], axis=-1)
    return np.asarray(moves / sizes[:, np.newaxis, np.newaxis])


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
    )
