"""A lower bound on epsilon from draws of a mechanism on two neighbouring data sets.

The attack learns from a quarter of the draws how likely outputs are. With another
quarter it picks an event, and with the other half it bounds the two probabilities of this event.
The bound is valid whatever the attack learnt from the first half.

Bounds on the probability of an event from its counts, and on epsilon from two such counts.

How much more likely an output is on one data set than on its neighbour, learnt from draws.

Outputs are rows of numbers, shape (R, D). One score cuts every column into bins and adds up the
log-ratios of the bins, which is exact for columns of independent noise. Where few different rows
occur, a second score has one ratio for each whole row. A mistake here makes an attack weaker, never
invalid: the attack bounds the probabilities of its event with draws that it did not use to pick it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from tacit.arrays import Floats


def least_probability(hits: int, tries: int, error: float) -> float:
    """A lower bound on a probability; it is wrong with chance ``error`` (Clopper-Pearson).

    Parameters
    ----------
    hits : how often the event happened, of ``tries`` independent times.
    error : the chance that the bound is wrong.

    Examples
    --------
    >>> round(least_probability(20, 20, 0.05), 3)
    0.861
    """
    return 0.0 if hits == 0 else float(betaincinv(hits, tries - hits + 1, error))


def most_probability(hits: int, tries: int, error: float) -> float:
    """An upper bound on a probability; it is wrong with chance ``error`` (Clopper-Pearson).

    Examples
    --------
    >>> round(most_probability(0, 20, 0.05), 3)
    0.139
    """
    return 1.0 - least_probability(tries - hits, tries, error)


def epsilon_bound(hits: int, other_hits: int, tries: int, delta: float, error: float) -> float:
    """The least epsilon that is consistent with how often an event happened on two neighbours.

    An (epsilon, delta)-private mechanism has ``P(event | first) <= exp(epsilon) P(event | second)
    + delta`` for every event that was fixed before these tries. Both probabilities are bounded
    with ``error / 2``, so the result exceeds the true epsilon with chance ``error`` at most.

    Parameters
    ----------
    hits, other_hits : how often the event happened on the first and on the second neighbour, of
        ``tries`` times each.
    delta : the delta of the guarantee that is examined.
    error : the chance that the bound is wrong.

    Examples
    --------
    >>> round(epsilon_bound(7311, 2689, 10_000, delta=0.0, error=0.001), 3)
    0.926
    >>> epsilon_bound(5000, 5010, 10_000, delta=0.0, error=0.001)
    0.0
    """
    surely = least_probability(hits, tries, error / 2) - delta
    at_most = most_probability(other_hits, tries, error / 2)
    return max(0.0, math.log(surely / at_most)) if surely > 0 else 0.0


def interval(hits: int, tries: int, level: float = 0.95) -> tuple[float, float]:
    """An interval that holds the probability with at least this level (Clopper-Pearson).

    Examples
    --------
    >>> [round(end, 3) for end in interval(50, 100)]
    [0.398, 0.602]
    """
    error = (1 - level) / 2
    return least_probability(hits, tries, error), most_probability(hits, tries, error)


Score = Callable[[Floats], Floats]

MAX_ROWS = 256
"""Largest number of different rows for which whole rows are learnt."""

BINS = 24

MIN_CHI_SQUARE_EXCESS = 5.0
"""Number of standard deviations by which the chi-square of a column that counts exceeds its
mean."""

MANTISSA_BITS = 53


def learn(first: Floats, second: Floats) -> list[Score]:
    """Functions that score rows: high for rows like the first draws, low for rows like the second.

    One function adds up columns. Where few different rows occur, a second one knows each row.

    Parameters
    ----------
    first, second : draws on the two neighbours, shape (R, D) each.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> first, second = (rng.laplace(mean, 1, (4000, 1)) for mean in (1, 0))
    >>> (score,) = learn(first, second)
    >>> [round(float(value)) for value in score(np.array([[3.0], [-2.0]]))]
    [1, -1]
    """
    varying = np.flatnonzero(np.ptp(np.vstack([first, second]), axis=0) != 0)
    first, second = first[:, varying], second[:, varying]
    salt = np.random.default_rng(0).standard_normal(varying.size)
    known = np.unique(np.concatenate([_mixed(first, salt), _mixed(second, salt)]))
    learnt = [_by_column(first, second)]
    if known.size <= MAX_ROWS:
        learnt.append(_by_row(first, second, salt))
    return [_of_columns(score, varying) for score in learnt]


def _of_columns(score: Score, columns: NDArray[np.int64]) -> Score:
    return lambda rows: score(rows[:, columns])


def chi_square(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Every column's chi-square between the two, and its degrees of freedom, each of shape (D,)."""
    pairs = [_histograms(*columns) for columns in zip(first.T, second.T, strict=True)]
    statistics = [np.sum((a - b) ** 2 / np.maximum(a + b, 1)) for _, a, b in pairs]
    freedom = [max(a.size - 1, 1) for _, a, _ in pairs]
    return np.array(statistics, dtype=np.float64), np.array(freedom, dtype=np.float64)


def telling(first: Floats, second: Floats) -> NDArray[np.bool_]:
    """Which columns differ between the two by more than chance, shape (D,)."""
    statistics, freedom = chi_square(first, second)
    return np.asarray(statistics > freedom + MIN_CHI_SQUARE_EXCESS * np.sqrt(2 * freedom))


def lowest_bits(values: Floats) -> Floats:
    """The exponent of the lowest set bit of every number; 0 for zero (Mironov 2012).

    A floating-point sum loses the bits of its smaller term that lie below the precision of its
    larger term. So the lowest set bit says how large the terms were.

    Examples
    --------
    >>> lowest_bits(np.array([0.0, 1.0, 6.0, 0.375, 0.1])).tolist()
    [0.0, 0.0, 1.0, -3.0, -55.0]
    """
    mantissa, exponent = np.frexp(values)
    whole = np.abs(np.ldexp(mantissa, MANTISSA_BITS)).astype(np.int64)
    lowest = np.log2(np.maximum(whole & -whole, 1).astype(np.float64))
    return np.where(whole == 0, 0.0, exponent - MANTISSA_BITS + lowest)


def _by_row(first: Floats, second: Floats, salt: Floats) -> Score:
    """Log-ratios of whole rows; a random weighted sum of its numbers identifies each row."""
    left, right = _mixed(first, salt), _mixed(second, salt)
    known = np.unique(np.concatenate([left, right]))
    indices = (np.searchsorted(known, sums) for sums in (left, right))
    ratios = _log_ratios(*(np.bincount(each, minlength=known.size) for each in indices))

    def score(rows: Floats) -> Floats:
        sums = _mixed(rows, salt)
        indices = np.minimum(np.searchsorted(known, sums), known.size - 1)
        return np.where(known[indices] == sums, ratios[indices], 0.0)

    return score


def _mixed(rows: Floats, salt: Floats) -> Floats:
    """A weighted sum of every row, always added in the same order: equal rows have equal sums."""
    total = np.zeros(rows.shape[0])
    for column, weight in zip(rows.T, salt, strict=True):
        total += weight * column
    return total


def _by_column(first: Floats, second: Floats) -> Score:
    """The sum of the log-ratios of all columns."""
    learnt = [_histograms(*columns) for columns in zip(first.T, second.T, strict=True)]
    ratios = [(edges, _log_ratios(a, b)) for edges, a, b in learnt]

    def score(rows: Floats) -> Floats:
        total = np.zeros(rows.shape[0])
        for column, (edges, column_ratios) in zip(rows.T, ratios, strict=True):
            total += column_ratios[np.searchsorted(edges, column)]
        return total

    return score


def _histograms(first: Floats, second: Floats) -> tuple[Floats, NDArray[Any], NDArray[Any]]:
    """Inner edges of bins with about equal counts, and how many values of each lie in each bin."""
    pooled = np.sort(np.concatenate([first, second]))
    # quantiles of the sorted values themselves, without interpolation
    places = np.ceil(pooled.size * (np.arange(1, BINS) / BINS) - 1).astype(np.int64)
    edges = np.unique(pooled[np.maximum(places, 0)])
    edges = edges[edges < pooled[-1]]
    of_first = np.bincount(np.searchsorted(edges, first), minlength=edges.size + 1)
    below = np.searchsorted(pooled, edges, side="right")
    return edges, of_first, np.diff(below, prepend=0, append=pooled.size) - of_first


def _log_ratios(first: NDArray[Any], second: NDArray[Any]) -> Floats:
    """The logarithms of the ratios of two histograms of equally many draws, never infinite."""
    return np.asarray(np.log((first + 0.5) / (second + 0.5)))


THRESHOLDS = 200
"""Number of quantiles of the score at which events may begin or end."""


@dataclass(frozen=True)
class Distinguished:
    """What an attack established.

    Parameters
    ----------
    epsilon : a lower bound on the mechanism's epsilon.
    event_rate, other_rate : how often the event happened on the neighbour where it is likelier, and
        on the other.
    tries : how many draws on each neighbour the bound rests on.
    """

    epsilon: float
    event_rate: float
    other_rate: float
    tries: int


@dataclass(frozen=True)
class Event:
    """The scores at or above a threshold, or those at or below it."""

    threshold: float
    above: bool

    def counts(self, scores: Floats, other_scores: Floats) -> tuple[int, int]:
        """How often it happened on the neighbour where it should be likely, and on the other."""
        if self.above:
            happened = scores >= self.threshold, other_scores >= self.threshold
        else:
            happened = other_scores <= self.threshold, scores <= self.threshold
        return int(np.sum(happened[0])), int(np.sum(happened[1]))


def distinguish(
    first: Floats, second: Floats, delta: float = 0.0, error: float = 0.001
) -> Distinguished:
    """Attack two neighbours' draws.

    Parameters
    ----------
    first, second : independent draws on the two neighbours, shape (R, D) each, R at least 8.
    delta : the delta of the guarantee that is examined.
    error : the chance that the bound exceeds the true epsilon.

    Raises
    ------
    ValueError : for draws of different shapes, or fewer than 8.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> first, second = (rng.laplace(mean, 1, (40_000, 1)) for mean in (1, 0))
    >>> 0.9 < distinguish(first, second).epsilon <= 1
    True
    """
    if first.shape != second.shape or first.shape[0] < 8:
        raise ValueError(
            f"draws must have one shape and be at least 8, got {first.shape} and {second.shape}"
        )
    quarter = first.shape[0] // 4
    picking = slice(quarter, 2 * quarter)
    learnt = [
        (score, _best_event(score(first[picking]), score(second[picking]), delta, error))
        for score in learn(first[:quarter], second[:quarter])
    ]
    score, (_, event) = max(learnt, key=lambda entry: entry[1][0])
    last = score(first[2 * quarter :]), score(second[2 * quarter :])
    tries = last[0].size
    likely, unlikely = event.counts(*last)
    bound = epsilon_bound(likely, unlikely, tries, delta, error)
    return Distinguished(bound, likely / tries, unlikely / tries, tries)


def _best_event(first: Floats, second: Floats, delta: float, error: float) -> tuple[float, Event]:
    """The event with the largest bound expected from twice as many draws, after that bound."""
    pooled = np.concatenate([first, second])
    cuts = np.unique(np.quantile(pooled, np.linspace(0, 1, THRESHOLDS), method="inverted_cdf"))
    events = [Event(float(cut), above) for cut in cuts for above in (True, False)]

    def promise(event: Event) -> float:
        likely, unlikely = event.counts(first, second)
        return epsilon_bound(2 * likely, 2 * unlikely, 2 * first.size, delta, error)

    return max(((promise(event), event) for event in events), key=lambda pair: pair[0])
