"""How a tree of counts divides its budget: epsilon over the levels, or records over the levels.

Both follow from public figures only. The AUC weighs a cell by the other class's distribution, which
changes slowly from cell to cell: levels near the root matter most to it. A cumulative count weighs
all levels alike. ``Aim`` says which weights are assumed; the estimate itself assumes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.metrics.tree_noise import TreeNoise
from tacit.metrics.trees import own_shares, subtree_variances
from tacit.privacy.local.unary import OWN_VARIANCE, unary_variance

Levels = NDArray[np.int64]
Asked = tuple[int, ...]
Shares = list[float]
Aim = Literal["auc", "curves", "all"]

AIMS = ("auc", "curves", "all")

EARLIER_AIMS = {"cdf": "curves", "even": "all"}
"""Earlier words for aims, which are still understood."""

MIN_SHARE = 0.01
"""Least share of the budget of a level; a level that would get less is not asked for."""

HIDDEN = 0.3
"""Assumed cell bias of the AUC, in units of ``4**-depth`` for cells of width ``2**-depth``. A depth
is chosen with it; the plain area of evenly falling densities misses about as much."""

MIN_RATE, MIN_VARIANCE = 1e-9, 1e-280
"""Bounds on epsilon and on a level's variance while the budget is divided."""

STEPS, STEP = 60, 1e-4
"""Largest number of steps to the shares of levels; they end when no share moves by ``STEP``."""

LOCAL_HEIGHTS = range(4, 11)
"""The heights that unary reports may have by default."""

CHOICE_UNITS = 2**20
"""Shares of records are multiples of one over this."""


@lru_cache(maxsize=256)
def epsilon_by_level(
    height: int, epsilon: float, distance: int, aim: Aim, known_total: bool
) -> tuple[float, ...]:
    """Epsilon for every level of a tree of two classes, the root first; they add up to epsilon.

    Parameters
    ----------
    height : the leaves are ``2**height`` cells of each class, on level ``height + 1``.
    epsilon : the budget of one record.
    distance : how many counts of a level a neighbour changes by one.
    aim : ``"auc"`` minimises the AUC's variance for weights that fall evenly from 3/4 to -1/4 over
        the cells, ``"curves"`` that of the cumulative count at a third of the range, whose contrast
        is a third at every level, and ``"all"`` gives every level the same.
    known_total : whether the number of records is public; the root is then exact.

    Examples
    --------
    >>> parts = epsilon_by_level(4, 1.0, 1, "all", False)
    >>> parts[0], round(sum(parts), 9)
    (0.0, 1.0)
    """
    asked = np.arange(1, height + 2)
    if aim == "all":
        shares = np.full(asked.size, 1 / asked.size)
    else:
        division = _Division(_contrasts(height, aim), epsilon / distance, known_total)
        asked, shares = division.best_levels()
    by_level = np.zeros(height + 2)
    by_level[asked] = shares * epsilon
    return tuple(by_level.tolist())


def record_shares(height: int, aim: Aim) -> tuple[int, ...]:
    """In how many of ``CHOICE_UNITS`` cases a record reports on a level of cells, shape (height,).

    A level's variance falls with its share; weights whose squared contrasts halve from level to
    level (the AUC's) are served best by shares in proportion to their square roots.

    Examples
    --------
    >>> [round(units / CHOICE_UNITS, 2) for units in record_shares(3, "auc")]
    [0.45, 0.32, 0.23]
    """
    falling = 2.0 ** (-np.arange(height) / 2) if aim == "auc" else np.ones(height)
    units = np.floor(CHOICE_UNITS * falling / falling.sum()).astype(np.int64)
    units[0] += CHOICE_UNITS - units.sum()
    return tuple(units.tolist())


def _contrasts(height: int, aim: Aim) -> Floats:
    """The squared mean of the assumed weights, then their squared contrasts by level."""
    if aim == "curves":
        return np.full(height + 2, 1 / 9)
    cells = 2.0 ** -np.arange(1, height + 1) / 4
    return np.concatenate(([1 / 16, 0.0], cells))


@dataclass(frozen=True, eq=False)
class _Division:
    """A budget to be divided for the least variance of assumed weights (``_contrasts``)."""

    squares: Floats
    budget: float
    known_total: bool

    def best_levels(self) -> tuple[Levels, Floats]:
        """The levels worth asking for, with their shares of the budget.

        The variance has many local minima, in which neighbouring levels share a budget that one of
        them would use better. Shares of all levels, settled together, would end in such a minimum.
        So the search starts from the leaves alone, and adds, drops or exchanges one level at a
        time, as long as that lowers the variance.
        """
        leaves = self.squares.size - 1
        asked: Asked = (leaves,)
        shares, reached = self._settled(asked, [1.0])
        while True:
            tried = [
                (candidate, *self._settled(candidate, start))
                for candidate, start in _changes(asked, shares)
            ]
            best = min(tried, key=lambda trial: trial[2])
            if best[2] > reached * (1 - STEP):
                break
            asked, shares, reached = best
        pairs = zip(asked, shares, strict=True)
        worthwhile = [pair for pair in pairs if pair[1] >= MIN_SHARE or pair[0] == leaves]
        levels = tuple(level for level, _ in worthwhile)
        settled, _ = self._settled(levels, [share for _, share in worthwhile])
        return np.array(levels), np.array(settled)

    def _settled(self, asked: Asked, start: Shares) -> tuple[Shares, float]:
        """Shares of these levels from which no small shift lowers the variance, and that variance.

        A level's share moves by a root of what the variance loses by it. The third root leads
        straight to the best shares for given weights where variances fall with the square of
        epsilon; where they fall exponentially smaller steps are needed.
        """
        shares = _scaled(start)
        for _ in range(STEPS):
            gains, rates, reached = self._gains(asked, shares)
            most = max(gains)
            moved = _scaled(
                share * (gain / most) ** (1 / (3 + rate))
                for share, gain, rate in zip(shares, gains, rates, strict=True)
            )
            if max(abs(new - old) for new, old in zip(moved, shares, strict=True)) < STEP:
                break
            shares = moved
        return shares, reached

    def _gains(self, asked: Asked, shares: Shares) -> tuple[Shares, Shares, float]:
        """What the variance loses by more budget on each level, the noises' rates, the variance."""
        rates = [max(self.budget * share, MIN_RATE) for share in shares]
        variances = [math.inf] * self.squares.size
        for level, rate in zip(asked, rates, strict=True):
            noise = 2 * math.exp(-rate) / math.expm1(-rate) ** 2
            variances[level] = max(noise, MIN_VARIANCE)
        if self.known_total:
            variances[0] = 0.0
        total, by_level = self._variance(np.array(variances))
        gains = [
            max(by_level[level] * variances[level] / math.tanh(rate / 2), MIN_VARIANCE)
            for level, rate in zip(asked, rates, strict=True)
        ]
        return gains, rates, total

    def _variance(self, variances: Floats) -> tuple[float, Shares]:
        """The variance of the assumed weights, and its derivative by every level's variance.

        A node's subtree averages its own count, with weight w, and its children's: its variance
        grows by ``w**2`` with its own and by ``2 (1 - w)**2`` with a child's.
        """
        passed, derivatives = 0.0, []
        for weight, share in zip(self._weights, own_shares(variances).tolist(), strict=True):
            reached = weight + passed
            derivatives.append(reached * share**2)
            passed = 2 * reached * (1 - share) ** 2
        inner = subtree_variances(variances).tolist()
        return math.fsum(w * v for w, v in zip(self._weights, inner, strict=True)), derivatives

    @cached_property
    def _weights(self) -> Shares:
        return [float(self.squares[0]), *(2 * self.squares[1:]).tolist()]


def _scaled(shares: Iterable[float]) -> Shares:
    """Shares that add up to 1."""
    given = list(shares)
    total = sum(given)
    return [share / total for share in given]


def _changes(asked: Asked, shares: Shares) -> Iterator[tuple[Asked, Shares]]:
    """Add, drop or exchange one level above the leaves; each change gives shares to start from."""
    others = [level for level in range(1, asked[-1]) if level not in asked]
    by_level = dict(zip(asked, shares, strict=True))
    mean = sum(shares) / len(shares)
    for level in others:
        yield _ordered({**by_level, level: mean})
    for gone in asked[:-1]:
        rest = {level: share for level, share in by_level.items() if level != gone}
        yield _ordered(rest)
        for level in others:
            yield _ordered({**rest, level: by_level[gone]})


def _ordered(shares: dict[int, float]) -> tuple[Asked, Shares]:
    levels = tuple(sorted(shares))
    return levels, [shares[level] for level in levels]


@lru_cache(maxsize=256)
def local_height(reports: int, epsilon: float) -> int:
    """The height at which unary reports of so many records give the least error of the AUC.

    With the assumed weights (``epsilon_by_level``) the variance from noise and from the sampling of
    levels grows with the height, and the cell bias falls (``HIDDEN``).
    """
    return min(LOCAL_HEIGHTS, key=lambda height: _local_variance(height, reports, epsilon))


def _local_variance(height: int, reports: int, epsilon: float) -> float:
    """The assumed variance of the AUC of balanced classes at a height."""
    shares = np.array(record_shares(height, "auc"), dtype=np.float64) / CHOICE_UNITS
    variances, factors = np.full(height + 2, np.inf), np.zeros(height + 2)
    variances[0], factors[2:] = 0.0, 1 / shares
    variances[2:] = reports * unary_variance(epsilon) / shares
    cells = np.exp2(np.arange(height + 2, dtype=np.float64))
    assumed = variances + factors * (1 + OWN_VARIANCE) * reports / cells
    noise = TreeNoise(variances, assumed, factors, OWN_VARIANCE, centred=True)
    place = (np.arange(2**height) + 0.5) / 2**height
    weights = np.concatenate([place - 0.75, 0.25 - place]) / (reports / 2)
    leaves = np.full(weights.size, reports / weights.size)
    return float(noise.variance_of(weights, leaves)) + (HIDDEN / 4**height) ** 2
