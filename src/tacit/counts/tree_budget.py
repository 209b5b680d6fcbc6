"""How a tree of counts divides its budget: epsilon over the levels, or records over the levels.

Both follow from public values only. The AUC weighs a cell by the other class's distribution, which
changes slowly from cell to cell: levels near the root matter most to it. A cumulative count weighs
all levels equally. ``Aim`` says which weights are assumed; the estimate does not depend on them.

What a round counts: its levels, and the fractions of epsilon of a run.

A record that reports alone does so on one level, which does not depend on what it holds: the
reports on a level are about a random part of all records, and its counts are scaled up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.counts.noisy_areas import CELL_BIAS
from tacit.metrics import trees
from tacit.metrics.trees import TreeNoise, consistent_leaves
from tacit.privacy import unary

Levels = NDArray[np.int64]
LevelSet = tuple[int, ...]
Fractions = list[float]
Aim = Literal["report", "groups", "auc", "curves", "all"]

FIRST_CELLS = 2
"""Index of the first level with cells of a tree over both classes, after the total and them."""

CHOICE_UNITS = 2**20
"""Records choose their level with probabilities that are whole multiples of one in so many."""

MIN_LEVEL_FRACTION = 0.01
"""Least fraction of the budget of a level; a level below it is not queried."""

MIN_RATE, MIN_VARIANCE = 1e-9, 1e-280
"""Least epsilon and least variance of a level while the budget is divided."""

STEPS, STEP = 60, 1e-4
"""Largest number of steps to the fractions of levels, and the least change of a fraction in a
step; the steps end below it."""

LOCAL_HEIGHTS = range(4, 11)
"""Heights that are compared for unary reports by default."""

TOTAL_SQUARE = 1e-6
"""Squared contrasts of the class sizes where curves are the aim: hardly any."""

MIDDLE_SQUARE = 3 / 8
"""Squared contrast, added to those of the AUC, of rates at the middle edge: it lies between both
halves of a class."""

FALLS: Mapping[Aim, float] = {
    "report": 1 / 4,
    "groups": 1 / 2,
    "auc": 1 / 2,
    "curves": 0.0,
    "all": 0.0,
}
"""By how many halvings the fraction of records falls from one level to the next."""


@lru_cache(maxsize=256)
def epsilon_by_level(height: int, epsilon: float, distance: int, aim: Aim) -> tuple[float, ...]:
    """Epsilon for every level of a tree of two classes, the root first; they add up to epsilon.

    Parameters
    ----------
    height : the leaves are ``2**height`` cells of each class, on level ``height + 1``.
    epsilon : the budget of one record.
    distance : how many counts of a level a neighbour changes by one.
    aim : ``"auc"`` minimises the AUC's variance for weights that fall evenly from 3/4 to -1/4 over
        the cells, ``"curves"`` and ``"report"`` that of the part of a class below an edge, on
        average over all edges, whose squared contrast is a third at every level and none at the
        classes; ``"groups"`` the AUC's and that of rates at the middle edge (``MIDDLE_SQUARE``);
        and ``"all"`` gives every level the same.

    Examples
    --------
    >>> parts = epsilon_by_level(4, 1.0, 1, "all")
    >>> parts[0], round(sum(parts), 9)
    (0.0, 1.0)
    """
    levels = np.arange(1, height + 2)
    if aim == "all":
        fractions = np.full(levels.size, 1 / levels.size)
    else:
        division = _Division(_contrasts(height, aim), epsilon / distance)
        levels, fractions = division.best_levels()
    by_level = np.zeros(height + 2)
    by_level[levels] = fractions * epsilon
    return tuple(by_level.tolist())


def record_units(height: int, aim: Aim) -> tuple[int, ...]:
    """In how many of ``CHOICE_UNITS`` cases a record reports on a level of cells, shape (height,).

    A level's variance is inverse to its fraction: fractions in proportion to the square roots of
    the squared contrasts are best. For the AUC these contrasts halve from level to level, for
    curves they are equal; a report has the fractions in the middle, with which the error of the
    AUC is 1.06 times its least, and that of curves 1.08 times.

    Examples
    --------
    >>> [round(units / CHOICE_UNITS, 2) for units in record_units(3, "auc")]
    [0.45, 0.32, 0.23]
    """
    falling = 2.0 ** (-np.arange(height) * FALLS[aim])
    units = np.floor(CHOICE_UNITS * falling / falling.sum()).astype(np.int64)
    units[0] += CHOICE_UNITS - units.sum()
    return tuple(units.tolist())


def _contrasts(height: int, aim: Aim) -> Floats:
    """The squared mean of the assumed weights, then their squared contrasts by level."""
    if aim in ("curves", "report"):
        return np.concatenate(([TOTAL_SQUARE] * 2, np.full(height, 1 / 3)))
    cells = 2.0 ** -np.arange(1, height + 1) / 4
    if aim == "groups":
        cells[0] += MIDDLE_SQUARE
    return np.concatenate(([1 / 16, 0.0], cells))


@dataclass(frozen=True, eq=False)
class _Division:
    """A budget to be divided for the least variance of assumed weights (``_contrasts``)."""

    squares: Floats
    budget: float

    def best_levels(self) -> tuple[Levels, Floats]:
        """The levels that are queried, with their fractions of the budget.

        The variance has many local minima, in which neighbouring levels divide a budget that one
        of them would use better. A joint search over all levels would end in such a minimum. So the
        search starts from the leaves alone, and adds, drops or exchanges one level at a time, as
        long as that lowers the variance.
        """
        leaves = self.squares.size - 1
        levels: LevelSet = (leaves,)
        fractions, variance = self._settled(levels, [1.0])
        while True:
            trials = [
                (candidate, *self._settled(candidate, start))
                for candidate, start in _changes(levels, fractions)
            ]
            best = min(trials, key=lambda trial: trial[2])
            if best[2] > variance * (1 - STEP):
                break
            levels, fractions, variance = best
        pairs = zip(levels, fractions, strict=True)
        worthwhile = [pair for pair in pairs if pair[1] >= MIN_LEVEL_FRACTION or pair[0] == leaves]
        levels = tuple(level for level, _ in worthwhile)
        settled, _ = self._settled(levels, [fraction for _, fraction in worthwhile])
        return np.array(levels), np.array(settled)

    def _settled(self, levels: LevelSet, start: Fractions) -> tuple[Fractions, float]:
        """Fractions of these levels at a local minimum of the variance, and that variance.

        A level's fraction is multiplied by a root of its gain, the variance's derivative by it. The
        third root leads to the best fractions in one step where variances fall with the square of
        epsilon; where they fall exponentially smaller steps are needed.
        """
        fractions = _scaled(start)
        for _ in range(STEPS):
            gains, rates, variance = self._gains(levels, fractions)
            largest = max(gains)
            moved = _scaled(
                fraction * (gain / largest) ** (1 / (3 + rate))
                for fraction, gain, rate in zip(fractions, gains, rates, strict=True)
            )
            if max(abs(new - old) for new, old in zip(moved, fractions, strict=True)) < STEP:
                break
            fractions = moved
        return fractions, variance

    def _gains(self, levels: LevelSet, fractions: Fractions) -> tuple[Fractions, Fractions, float]:
        """The gain of more budget on each level, the levels' epsilons, and the variance."""
        rates = [max(self.budget * fraction, MIN_RATE) for fraction in fractions]
        variances = [math.inf] * self.squares.size
        for level, rate in zip(levels, rates, strict=True):
            noise = 2 * math.exp(-rate) / math.expm1(-rate) ** 2
            variances[level] = max(noise, MIN_VARIANCE)
        total, by_level = self._variance(np.array(variances))
        gains = [
            max(by_level[level] * variances[level] / math.tanh(rate / 2), MIN_VARIANCE)
            for level, rate in zip(levels, rates, strict=True)
        ]
        return gains, rates, total

    def _variance(self, variances: Floats) -> tuple[float, Fractions]:
        """The variance of the assumed weights, and its derivative by every level's variance.

        A subtree averages its node's count, with weight w, and its children's sum: its variance
        has the derivative ``w**2`` by the node's and ``2 (1 - w)**2`` by a child's.
        """
        weight_from_parent, derivatives = 0.0, []
        fractions, inner = (each.tolist() for each in trees.fractions_and_variances(variances))
        for weight, fraction in zip(self._weights, fractions, strict=True):
            variance = weight + weight_from_parent
            derivatives.append(variance * fraction**2)
            weight_from_parent = 2 * variance * (1 - fraction) ** 2
        return math.fsum(w * v for w, v in zip(self._weights, inner, strict=True)), derivatives

    @cached_property
    def _weights(self) -> Fractions:
        return [float(self.squares[0]), *(2 * self.squares[1:]).tolist()]


def _scaled(fractions: Iterable[float]) -> Fractions:
    """Fractions that add up to 1."""
    positive = list(fractions)
    total = sum(positive)
    return [fraction / total for fraction in positive]


def _changes(levels: LevelSet, fractions: Fractions) -> Iterator[tuple[LevelSet, Fractions]]:
    """Add, drop or exchange one level above the leaves; each with fractions to start from."""
    others = [level for level in range(1, levels[-1]) if level not in levels]
    by_level = dict(zip(levels, fractions, strict=True))
    mean = sum(fractions) / len(fractions)
    for level in others:
        yield _ordered({**by_level, level: mean})
    for dropped in levels[:-1]:
        rest = {level: fraction for level, fraction in by_level.items() if level != dropped}
        yield _ordered(rest)
        for level in others:
            yield _ordered({**rest, level: by_level[dropped]})


def _ordered(fractions: dict[int, float]) -> tuple[LevelSet, Fractions]:
    levels = tuple(sorted(fractions))
    return levels, [fractions[level] for level in levels]


@lru_cache(maxsize=256)
def local_height(reports: int, epsilon: float) -> int:
    """The height at which unary reports of so many records give the least error of the AUC.

    With the assumed weights (``epsilon_by_level``) the variance from noise and from the sampling of
    levels grows with the height, and the bias of cells falls (``CELL_BIAS``). Records are taken to
    fill all cells evenly, as they do where the first reports place the cells.
    """
    return min(LOCAL_HEIGHTS, key=lambda height: _local_variance(height, reports, epsilon))


def _local_variance(height: int, reports: int, epsilon: float) -> float:
    """The assumed variance of the AUC of balanced classes at a height."""
    noise = expected_noise(reports, epsilon, record_units(height, "auc"))
    middle = (np.arange(2**height) + 0.5) / 2**height
    weights = np.concatenate([middle - 0.75, 0.25 - middle]) / (reports / 2)
    leaves = np.full(weights.size, reports / weights.size)
    return float(noise.variance_of(weights, leaves)) + (CELL_BIAS / 4**height) ** 2


PARTS = 40
"""Number of equal fractions of epsilon; a query names how many of them it costs."""

FIRST_PARTS = 1
"""Fractions of epsilon of the first round, which says what comes next, and of a round at
concentrations."""

MAX_ROUNDS = 4
"""Largest number of rounds of a run."""

LEAST_ROUND_HEIGHT, ROUND_HEIGHT, MAX_FLAT_HEIGHT = 4, 6, 7
"""The first round has ``2**height`` cells, by default of the second height; a zoomed one has twice
as many where that is at most ``2**MAX_FLAT_HEIGHT``. More cells are the leaves of a tree."""

CLASSES = 1
"""The level of the class sizes."""

CLASS_FRACTION = 0.25
"""Fraction of a flat round's epsilon for the class sizes; the rest is for the cells. Their errors
enter the AUC as products only, those of the class sizes with all others."""


def round_levels(protocol: Any, height: int, epsilon: float) -> dict[int, float]:
    """The levels that a round of this epsilon counts, and what each costs."""
    if height <= MAX_FLAT_HEIGHT:
        return {CLASSES: epsilon * CLASS_FRACTION, height + 1: epsilon * (1 - CLASS_FRACTION)}
    divided = epsilon_by_level(height, epsilon, protocol.distance, protocol.served)
    return {level: part for level, part in enumerate(divided) if part > 0}


def round_strata(protocol: Any, height: int) -> int:
    """How many strata a round of this height counts: groups have trees, and no flat rounds."""
    return int(protocol.strata) if height > MAX_FLAT_HEIGHT else 1


def sampled_noise(
    variances: Floats,
    factors: Floats,
    records: float,
    extra: float = unary.SET_BIT_VARIANCE,
    centred: bool = True,
    trees: int = 1,
) -> TreeNoise:
    """The noise of a tree whose records reported on one level each.

    Consistency weighs a level by its noise and by what sampling adds to an average node.

    Parameters
    ----------
    variances, factors, extra, centred : as ``TreeNoise`` has them.
    records : in all trees.
    trees : how many there are.
    """
    nodes = trees * 2.0 ** np.arange(variances.size)
    assumed = variances + factors * (1 + extra) * records / nodes
    return TreeNoise(variances, assumed, factors, extra, centred)


def expected_noise(
    records: float, epsilon: float, units: tuple[int, ...], reporting: float = 1.0
) -> TreeNoise:
    """The noise of unary reports of so many records in a tree over both classes.

    Parameters
    ----------
    records : that the tree is about.
    epsilon : of a report.
    units : of ``CHOICE_UNITS`` records, how many report on each level.
    reporting : the fraction of the records that report on any.
    """
    variances, factors = np.full(len(units) + 2, np.inf), np.zeros(len(units) + 2)
    # the number of records is known; on each level counts of the records that choose it are scaled
    # up, by which their variance grows once more than their number falls
    variances[0] = 0.0
    factors[FIRST_CELLS:] = CHOICE_UNITS / np.array(units, dtype=np.float64) / reporting
    variances[FIRST_CELLS:] = factors[FIRST_CELLS:] * records * unary.unary_variance(epsilon)
    return sampled_noise(variances, factors, records)


def trees_of_reports(
    counted: Mapping[int, tuple[Integers, int]],
    records: float,
    epsilon: float,
    trees: int = 1,
    total_known: bool = True,
) -> tuple[Floats, TreeNoise]:
    """The consistent leaves of unary reports, shape (..., trees, 2**height), and a tree's noise.

    A level on which no record reported is taken as even, and as uncertain as one report about all.

    Parameters
    ----------
    counted : of every level how many reports have each bit set, shape (..., trees * 2**level), and
        how many reports there are.
    records : that all trees are about.
    epsilon : of one report.
    trees : how many there are.
    total_known : whether a tree is about a known number of records.
    """
    height = max(counted)
    variances, factors = np.full(height + 1, np.inf), np.zeros(height + 1)
    levels: list[Floats | None] = [None] * (height + 1)
    if total_known:
        variances[0], levels[0] = 0.0, np.array([float(records)])
    for level, (bits, reports) in counted.items():
        factors[level] = records / max(reports, 1)
        # f^2 r v
        variances[level] = factors[level] ** 2 * max(reports, 1) * unary.unary_variance(epsilon)
        counts = np.full(bits.shape, records / (trees << level))
        if reports:
            counts = factors[level] * unary.unary_counts(bits, reports, epsilon)
        levels[level] = counts.reshape(*bits.shape[:-1], trees, 1 << level)
    noise = sampled_noise(variances, factors, records, centred=total_known, trees=trees)
    return consistent_leaves(levels, noise.weighting), noise
