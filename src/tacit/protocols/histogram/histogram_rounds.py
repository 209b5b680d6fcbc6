"""The server of a run: which query comes next, and the result.

After each round the server decides what comes next (``choices``). Counts of the same cells are
averaged by their inverse variances; a round in other cells stands alone.

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
from tacit.counts import pooling, site_figures, tree_budget, tree_results, zoomed_cells
from tacit.counts.choices import Choices, Next
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.protocol import releases
from tacit.protocols.histogram import steps as round_steps
from tacit.protocols.shared import counting
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.figure import CLEAR_CLASS_SIZE_IN_ERRORS, MIN_CLASS_SIZE_IN_ERRORS
from tacit.results.parts import Sites

Rounds = tuple[tuple[int, releases.Sums], ...]
"""The rounds of a run so far: their fractions of epsilon, and what was received."""


def spent_in(rounds: Rounds) -> tuple[int, ...]:
    """The fractions of epsilon of these rounds."""
    return tuple(parts for parts, _ in rounds)


def after_rounds(protocol: Any, clients: int) -> tp.Conversation:
    """The rounds of a run, from the first to the result."""
    run = _Run(protocol, clients)
    sums = yield from run.asked(
        round_steps.first_round, (tree_budget.FIRST_PARTS,), protocol.first_height(clients)
    )
    run.answered, run.noises = sums.answered, float(sums.noises)
    run.single = next(iter(sums.sums.values())).ndim == 1
    pool = run.pool(sums, protocol.score_scale, None)
    rows = np.arange(pool.leaves.shape[0])
    run.replicates = rows.size
    return (yield from run.after(pool, rows, ((tree_budget.FIRST_PARTS, sums),)))


def expected_rounds(
    protocol: Any, clients: int, counts: Floats, source: np.random.Generator | None = None
) -> tuple[pooling.Pooled, tp.ServerResult]:
    """What the rounds of a run see and conclude where the counts are these.

    Parameters
    ----------
    counts : positives, then negatives, in equal cells of the protocol's scale, shape (2, B); the
        cells of the first round, or parts of these.
    source : of normal noise; None for counts without noise.
    """
    run, spent = _Run(protocol, clients), [tree_budget.FIRST_PARTS]
    run.single, run.source = False, source
    pool = run.expected(
        counts, protocol.score_scale, None, tree_budget.FIRST_PARTS, protocol.first_height(clients)
    )
    scale = protocol.score_scale
    while (step := run.choices.decided(pool, tuple(spent))[0]).counts:
        spent.append(step.parts)
        height, there, borders = run.cells_of(pool, step)
        moved = counts if borders is None else zoomed_cells.recounted(counts, scale, there)
        further = run.expected(moved, there, borders, step.parts, height)
        pool = pool.with_round(further, same_cells=step.scale is None)
    number = (
        counting.number_field(protocol.known_epsilon * step.parts / tree_budget.PARTS)
        if step.parts
        else None
    )
    return pool, run.concluded(pool, (), np.zeros(1), number)


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
        shared = {round_steps.HEIGHT: height, round_steps.LISTED: np.array(parts), **more}
        return (yield from releases.ask(step, self.protocol, self.clients, shared))

    @property
    def one_draw(self) -> bool:
        """Whether the noise of a number is one draw, and not one of each client."""
        return self.answered == 1 or not isinstance(self.protocol.trust, tp.Each)

    @property
    def choices(self) -> Choices:
        """How it divides epsilon."""
        return Choices(self.protocol, self.protocol.first_height(self.clients), self.noises)

    def pool(
        self, sums: releases.Sums, scale: ScoreScale, borders: Floats | None
    ) -> pooling.Pooled:
        """What a round alone says of all strata together, of all replicates."""
        counts = counting.summed_levels(sums)
        height = max(counts) - 1
        levels = {level: np.atleast_2d(each.sum(axis=-2)) for level, each in counts.items()}
        noise = counting.tree_noise(sums.fields, float(sums.noises))
        noise = counting.pooled(noise, tree_budget.round_strata(self.protocol, height))
        return pooling.Pooled(scale, borders, levels, noise.variances)

    def expected(
        self, counts: Floats, scale: ScoreScale, borders: Floats | None, parts: int, height: int
    ) -> pooling.Pooled:
        """What a round says of one replicate of these counts by class, shape (2, B)."""
        made = self.choices.expected(counts, scale, borders, parts, height)
        if self.source is None:
            return made
        levels = {
            level: exact + self.source.normal(0.0, math.sqrt(made.variances[level]), exact.shape)
            for level, exact in made.levels.items()
        }
        return replace(made, levels=levels)

    def cells_of(self, pool: pooling.Pooled, step: Next) -> tuple[int, ScoreScale, Floats | None]:
        """The height of another round, and the scale and the borders of its cells."""
        if step.scale is None:
            return step.height or pool.height, pool.scale, pool.borders
        return step.height or self.choices.zoom_height, step.scale, step.scale.borders

    def after(
        self, pool: pooling.Pooled, rows: pooling.Rows, rounds: Rounds
    ) -> Generator[tp.Query, tp.Reply, tp.ServerResult]:
        """The rest of the run of these replicates, which have the same rounds behind them."""
        ways: dict[tuple[Any, ...], list[tuple[Next, int]]] = {}
        for row, step in enumerate(self.choices.decided(pool, spent_in(rounds))):
            ways.setdefault(step.key, []).append((step, row))
        results = []
        for steps in ways.values():
            chosen = np.array([row for _, row in steps])
            follow = self.another if steps[0][0].counts else self.rest
            way = [step for step, _ in steps]
            result = yield from follow(pool.of(chosen), rows[chosen], rounds, way)
            results.append((chosen, result))
        return results[0][1] if len(results) == 1 else _joined(results)

    def another(
        self, pool: pooling.Pooled, rows: pooling.Rows, rounds: Rounds, steps: list[Next]
    ) -> Generator[tp.Query, tp.Reply, tp.ServerResult]:
        """Another round, and what follows."""
        step = steps[0]
        height, scale, borders = self.cells_of(pool, step)
        if step.height and not self.single:
            borders = np.stack([each.scale.borders for each in steps if each.scale is not None])
        parts, more = (*spent_in(rounds), step.parts), self._in_cells(borders, rows)
        sums = yield from self.asked(round_steps.ROUNDS[len(rounds)], parts, height, **more)
        counting.check_the_same_number(self.answered, sums.answered)
        further = self.pool(sums, scale, None).of(rows)
        together = pool.with_round(replace(further, borders=borders), same_cells=step.scale is None)
        return (yield from self.after(together, rows, (*rounds, (step.parts, sums))))

    def rest(
        self, pool: pooling.Pooled, rows: pooling.Rows, rounds: Rounds, steps: list[Next]
    ) -> Generator[tp.Query, tp.Reply, tp.ServerResult]:
        """The one number, where something is left for it, and the result."""
        if not steps[0].parts:
            return self.concluded(pool, rounds, np.zeros(rows.size), None)
        more = self._in_cells(pool.cell_borders, rows)
        more |= {name: self._for_all(field, rows) for name, field in pool.published.items()}
        parts = (*spent_in(rounds), steps[0].parts)
        sums = yield from self.asked(round_steps.summed_influences, parts, pool.depth, **more)
        counting.check_the_same_number(self.answered, sums.answered)
        number = np.atleast_1d(sums[round_steps.SUM])[rows]
        return self.concluded(
            pool, (*rounds, (steps[0].parts, sums)), number, sums.fields[round_steps.SUM]
        )

    def concluded(
        self, pool: pooling.Pooled, rounds: Rounds, number: Floats, field: releases.Released | None
    ) -> tp.ServerResult:
        """The result of rounds, and of the noisy sums of influences, shape (R,), in units.

        Parameters
        ----------
        field : what was declared of these sums; None where none were asked for.
        """
        placed = pool.height > pool.depth
        known = pooling.tree_area(pool) if placed and not self.protocol.by_group else None
        if field is not None:
            adjacency = tp.Adjacency(self.protocol.adjacency)
            area, by_number = round_steps.both_rounds(
                pool.published, number, field, adjacency, self.noises, pool.is_linear
            )
            by_both = pooling.number_area(pool, area, by_number, self.one_draw)
            known = by_both if known is None else pooling.average_area(by_both, known)
        leaves = pool.leaves
        if self.single:
            leaves, known = leaves[0], None if known is None else known.of(0)
        protection = releases.total_protection([sums for _, sums in rounds]) if rounds else None
        axis, shown = ScoreAxis(pool.scale, self.protocol.unit), self.single and bool(rounds)
        result = tree_results.result_from_tree(leaves, pool.noise, None, protection, known, axis)
        return replace(
            result,
            warnings=(*result.warnings, *self.remarks(result)),
            division=self.division(result, rounds, field is not None) if self.single else None,
            sites=self.sites(pool, rounds),
            breakdown=self.protocol.breakdown(rounds[-1][1], axis) if shown else None,
        )

    def sites(self, pool: pooling.Pooled, rounds: Rounds) -> Sites | None:
        """The figures of every client, by its own counts of the last round, where they are seen."""
        apart = isinstance(self.protocol.trust, tp.Each) and self.single and bool(rounds)
        if not apart or not site_figures.has_sites(self.answered):
            return None
        last = [sums for _, sums in rounds if round_steps.SUM not in sums.fields][-1]
        of_clients = self.pool(last.by_client(), pool.scale, pool.borders)
        axis = ScoreAxis(pool.scale, self.protocol.unit)
        area = pooling.tree_area(of_clients) if of_clients.is_linear else None
        result = tree_results.result_from_tree(
            of_clients.leaves, of_clients.noise, None, None, area, axis
        )

        def variance(weights: Floats) -> float:
            both = np.concatenate([weights, np.zeros_like(weights)])
            return float(of_clients.noise.variance_of(both, of_clients.leaves[0]))

        classes = of_clients.both_classes
        return site_figures.sites_of(
            result, site_figures.ClientCells(classes[:, 0], classes[:, 1], variance), axis
        )

    def division(self, result: tp.ServerResult, rounds: Rounds, with_number: bool) -> str:
        """How much of epsilon the AUC had for itself, and why, in a line."""
        number = rounds[-1][0] / tree_budget.PARTS if with_number else 0.0
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

    def _in_cells(self, borders: Floats | None, rows: pooling.Rows) -> dict[str, Floats]:
        """The field of a query with these borders: one set of them, or one a replicate."""
        if borders is None:
            return {}
        return {counting.BORDERS: self._for_all(borders, rows) if borders.ndim > 1 else borders}

    def _for_all(self, field: Floats, rows: pooling.Rows) -> Floats:
        """A field for every replicate; those that this query is not about get the first's."""
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
