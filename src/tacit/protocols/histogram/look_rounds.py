"""The server of a run of looks: which query comes next, and the result.

After each look the server decides what comes next (``choices``). Counts of the same cells are
averaged by their inverse variances; a look in other cells stands alone.

Replicates of a simulation may decide differently. Then each query is sent for all of them, and the
reply is used for those that decided on it: each replicate goes the way of a run on its own.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats
from tacit.counts import looks, pooling, site_figures, tree_results, zoomed_cells
from tacit.counts.choices import Choices, Next
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.protocol import releases
from tacit.protocols.histogram.steps import (
    HEIGHT,
    LISTED,
    LOOKS,
    SUM,
    both_rounds,
    first_look,
    summed_influences,
)
from tacit.protocols.shared import counting
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.figure import CLEAR_CLASS_SIZE_IN_ERRORS, MIN_CLASS_SIZE_IN_ERRORS
from tacit.results.parts import Sites

Rounds = tuple[tuple[int, releases.Sums], ...]
"""The rounds of a run so far: their fractions of epsilon, and what was received."""


def spent_in(rounds: Rounds) -> tuple[int, ...]:
    """The fractions of epsilon of these rounds."""
    return tuple(parts for parts, _ in rounds)


def looked(protocol: Any, clients: int) -> tp.Conversation:
    """The rounds of a run of looks, from the first to the result."""
    run = _Run(protocol, clients)
    sums = yield from run.asked(first_look, (looks.FIRST_PARTS,), protocol.first_height(clients))
    run.answered, run.noises = sums.answered, float(sums.noises)
    run.single = next(iter(sums.sums.values())).ndim == 1
    seen = run.seen(sums, protocol.score_scale, None)
    rows = np.arange(seen.leaves.shape[0])
    run.replicates = rows.size
    return (yield from run.after(seen, rows, ((looks.FIRST_PARTS, sums),)))


def expected_looks(
    protocol: Any, clients: int, counts: Floats, source: np.random.Generator | None = None
) -> tuple[pooling.Seen, tp.ServerResult]:
    """What the looks of a run see and conclude where the counts are these.

    Parameters
    ----------
    counts : positives, then negatives, in equal cells of the protocol's scale, shape (2, B); the
        cells of the first look, or parts of these.
    source : of normal noise; None for counts without noise.
    """
    run, spent = _Run(protocol, clients), [looks.FIRST_PARTS]
    run.single, run.source = False, source
    seen = run.expected(
        counts, protocol.score_scale, None, looks.FIRST_PARTS, protocol.first_height(clients)
    )
    scale = protocol.score_scale
    while (step := run.choices.decided(seen, tuple(spent))[0]).look:
        spent.append(step.parts)
        height, there, knots = step.height or run.flat_height(seen, step), seen.scale, seen.knots
        if step.scale is not None:
            there, knots = step.scale, step.scale.knots
        moved = counts if knots is None else zoomed_cells.recounted(counts, scale, there)
        look = run.expected(moved, there, knots, step.parts, height)
        seen = seen.with_look(look, same_cells=step.scale is None)
    number = (
        counting.number_field(protocol.known_epsilon * step.parts / looks.PARTS)
        if step.parts
        else None
    )
    return seen, run.concluded(seen, (), np.zeros(1), number)


class _Run:
    """One run of the server, which goes the ways of all replicates one after another."""

    def __init__(self, protocol: Any, clients: int) -> None:
        self.protocol, self.clients = protocol, clients
        self.answered, self.single, self.replicates = clients, True, 1
        self.noises = float(releases.noises_of(protocol.trust, clients, clients))
        self.source: np.random.Generator | None = None

    def asked(
        self, step: Any, parts: tuple[int, ...], height: int, **more: Any
    ) -> Generator[tp.Query, tp.Reply, releases.Sums]:
        """Ask for a release of the last of these parts."""
        shared = {HEIGHT: height, LISTED: np.array(parts), **more}
        return (yield from releases.ask(step, self.protocol, self.clients, shared))

    @property
    def one_draw(self) -> bool:
        """Whether the noise of a number is one draw, and not one of each client."""
        return self.answered == 1 or not isinstance(self.protocol.trust, tp.Each)

    @property
    def choices(self) -> Choices:
        """How it divides epsilon."""
        return Choices(self.protocol, self.protocol.first_height(self.clients), self.noises)

    def seen(self, sums: releases.Sums, scale: ScoreScale, knots: Floats | None) -> pooling.Seen:
        """What a look alone says of all strata together, of all replicates."""
        counts = counting.summed_levels(sums)
        height = max(counts) - 1
        levels = {level: np.atleast_2d(each.sum(axis=-2)) for level, each in counts.items()}
        noise = counting.tree_noise(sums.fields, float(sums.noises))
        noise = counting.pooled(noise, looks.look_strata(self.protocol, height))
        return pooling.Seen(scale, knots, levels, noise.variances)

    def expected(
        self, counts: Floats, scale: ScoreScale, knots: Floats | None, parts: int, height: int
    ) -> pooling.Seen:
        """What a look says of one replicate of these counts by class, shape (2, B)."""
        variances = self.choices.variances(parts, height)
        levels = {
            level: counts.reshape(1, 1 << level, -1).sum(axis=-1)
            for level in np.flatnonzero(np.isfinite(variances)).tolist()
        }
        if self.source is not None:
            for level, exact in levels.items():
                noise = self.source.normal(0.0, math.sqrt(variances[level]), exact.shape)
                levels[level] = exact + noise
        return pooling.Seen(scale, knots, levels, variances)

    def flat_height(self, seen: pooling.Seen, step: Next) -> int:
        """The height of a flat look."""
        height: int = seen.height if step.scale is None else self.choices.zoom_height
        return height

    def after(
        self, seen: pooling.Seen, rows: pooling.Rows, rounds: Rounds
    ) -> Generator[tp.Query, tp.Reply, tp.ServerResult]:
        """The rest of the run of these replicates, which have the same rounds behind them."""
        ways: dict[tuple[Any, ...], list[tuple[Next, int]]] = {}
        for row, step in enumerate(self.choices.decided(seen, spent_in(rounds))):
            ways.setdefault(step.key, []).append((step, row))
        results = []
        for steps in ways.values():
            chosen = np.array([row for _, row in steps])
            follow = self.another if steps[0][0].look else self.rest
            way = [step for step, _ in steps]
            result = yield from follow(seen.of(chosen), rows[chosen], rounds, way)
            results.append((chosen, result))
        return results[0][1] if len(results) == 1 else _joined(results)

    def another(
        self, seen: pooling.Seen, rows: pooling.Rows, rounds: Rounds, steps: list[Next]
    ) -> Generator[tp.Query, tp.Reply, tp.ServerResult]:
        """Another look, and what follows."""
        step, scale, knots = steps[0], seen.scale, seen.knots
        if step.scale is not None:
            scale, knots = step.scale, step.scale.knots
        if step.height and not self.single:
            knots = np.stack([each.scale.knots for each in steps if each.scale is not None])
        height = step.height or self.flat_height(seen, step)
        more = {} if knots is None else {counting.KNOTS: self._for_all(knots, rows, knots.ndim > 1)}
        parts = (*spent_in(rounds), step.parts)
        sums = yield from self.asked(LOOKS[len(rounds)], parts, height, **more)
        counting.check_the_same_number(self.answered, sums.answered)
        look = self.seen(sums, scale, None).of(rows)
        together = seen.with_look(replace(look, knots=knots), same_cells=step.scale is None)
        return (yield from self.after(together, rows, (*rounds, (step.parts, sums))))

    def rest(
        self, seen: pooling.Seen, rows: pooling.Rows, rounds: Rounds, steps: list[Next]
    ) -> Generator[tp.Query, tp.Reply, tp.ServerResult]:
        """The one number, where something is left for it, and the result."""
        if not steps[0].parts:
            return self.concluded(seen, rounds, np.zeros(rows.size), None)
        more: dict[str, Any] = {}
        knots = seen.cell_knots
        if knots is not None:
            more[counting.KNOTS] = self._for_all(knots, rows, knots.ndim > 1)
        more |= {name: self._for_all(field, rows) for name, field in seen.published.items()}
        parts = (*spent_in(rounds), steps[0].parts)
        sums = yield from self.asked(summed_influences, parts, seen.depth, **more)
        counting.check_the_same_number(self.answered, sums.answered)
        number = np.atleast_1d(sums[SUM])[rows]
        return self.concluded(seen, (*rounds, (steps[0].parts, sums)), number, sums.fields[SUM])

    def concluded(
        self, seen: pooling.Seen, rounds: Rounds, number: Floats, field: releases.Released | None
    ) -> tp.ServerResult:
        """The result of looks, and of the noisy sums of influences, shape (R,), in units.

        Parameters
        ----------
        field : what was declared of these sums; None where none were asked for.
        """
        placed = seen.height > seen.depth
        known = pooling.tree_area(seen) if placed and not self.protocol.by_group else None
        if field is not None:
            adjacency = tp.Adjacency(self.protocol.adjacency)
            area, by_number = both_rounds(
                seen.published, number, field, adjacency, self.noises, seen.straight
            )
            by_both = pooling.number_area(seen, area, by_number, self.one_draw)
            known = by_both if known is None else pooling.average_area(by_both, known)
        leaves = seen.leaves
        if self.single:
            leaves, known = leaves[0], None if known is None else known.of(0)
        protection = releases.total_protection([sums for _, sums in rounds]) if rounds else None
        axis, shown = ScoreAxis(seen.scale, self.protocol.unit), self.single and bool(rounds)
        result = tree_results.result_from_tree(leaves, seen.noise, None, protection, known, axis)
        return replace(
            result,
            warnings=(*result.warnings, *self.remarks(result)),
            division=self.division(result, rounds, field is not None) if self.single else None,
            sites=self.sites(seen, rounds),
            breakdown=self.protocol.breakdown(rounds[-1][1], axis) if shown else None,
        )

    def sites(self, seen: pooling.Seen, rounds: Rounds) -> Sites | None:
        """The figures of every client, by its own counts of the last look, where these are seen."""
        apart = isinstance(self.protocol.trust, tp.Each) and self.single and bool(rounds)
        if not apart or not site_figures.has_sites(self.answered):
            return None
        look = [sums for _, sums in rounds if SUM not in sums.fields][-1]
        own = self.seen(look.by_client(), seen.scale, seen.knots)
        axis = ScoreAxis(seen.scale, self.protocol.unit)
        area = pooling.tree_area(own) if own.straight else None
        result = tree_results.result_from_tree(own.leaves, own.noise, None, None, area, axis)

        def variance(weights: Floats) -> float:
            both = np.concatenate([weights, np.zeros_like(weights)])
            return float(own.noise.variance_of(both, own.leaves[0]))

        classes = own.both_classes
        return site_figures.sites_of(
            result, site_figures.ClientCells(classes[:, 0], classes[:, 1], variance), axis
        )

    def division(self, result: tp.ServerResult, rounds: Rounds, with_number: bool) -> str:
        """How much of epsilon the AUC had for itself, and why, in a line."""
        number = rounds[-1][0] / looks.PARTS if with_number else 0.0
        if self.protocol.aim == "auc":
            return f"{number:.2g} of it for the AUC alone, which was the aim"
        noise = "its sampling error is not known"
        if result.sampling_error > 0:
            ratio = float(result.privacy_error) / float(result.sampling_error)
            if math.isfinite(ratio):
                noise = f"its noise is {ratio:.2g} of its sampling error"
        if not with_number:
            return f"all of it for the counts that every figure follows from; of the AUC {noise}"
        return f"{number:.2g} of it for the AUC alone, the rest for all other figures: {noise}"

    def remarks(self, result: tp.ServerResult) -> tuple[str, ...]:
        """Where a single run gives no figure, what epsilon would do."""
        if not self.single:
            return ()
        smaller = float(min(result.positives, result.negatives))
        error = float(np.asarray(result.positives_error))
        shown = np.isfinite(result.value) and smaller >= MIN_CLASS_SIZE_IN_ERRORS * error
        if shown or smaller <= error:
            return ()
        least = self.protocol.epsilon * CLEAR_CLASS_SIZE_IN_ERRORS * error / smaller
        return (f"by these counts an epsilon of about {least:.2g} would give a figure",)

    def _for_all(self, field: Floats, rows: pooling.Rows, by_replicate: bool = True) -> Floats:
        """A field for every replicate; those that this query is not about get the first's."""
        if not by_replicate:
            return field
        if self.single:
            return field[0]
        every = np.repeat(field[:1], self.replicates, axis=0)
        every[rows] = field
        return every


BY_REPLICATE = (
    *("value", "privacy_error", "sampling_error", "positives", "negatives", "positives_error"),
    *("approximation_error", "bias", "half_range", "laplace_error"),
)
"""What a result says of every replicate."""


def _joined(parts: list[tuple[pooling.Rows, tp.ServerResult]]) -> tp.ServerResult:
    """The results of replicates that went different ways, in their order."""
    order = np.argsort(np.concatenate([rows for rows, _ in parts]), kind="stable")

    def together(name: str) -> Floats:
        columns = [np.broadcast_to(getattr(result, name), rows.shape) for rows, result in parts]
        return np.concatenate(columns)[order]

    numbers: dict[str, Any] = {name: together(name) for name in BY_REPLICATE}
    return tp.ServerResult(**numbers)
