"""Whether clients' or files' scores are evidently of different scales.

For those that may see the scores: the owner of several files, or a server if scores are public.
Between clients whose scores are private, names of units are compared instead (``units``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.data.batches.ragged import Ragged
from tacit.data.batches.ranked import StoredScores

ROUNDING = 1e-6
"""Largest distance of a probability beyond 0 or 1 that rounding explains."""
EVIDENT_FRACTION = 0.05
"""Fraction of scores outside [0, 1] from which a scale is evidently another one. A single wrong
record is no scale; log-odds and percent have most or many scores there."""
MAX_FALSE_ALARM = 1e-3
"""Probability of an alarm where all clients' scores are draws from one distribution, at most."""
MIN_SCORES = 20
"""Least number of scores of a client whose width is compared."""
MAX_WIDTH_RATIO = 8.0
"""Ratio of widths from which two scales are evidently different: percent are some 15 times as wide
as log-odds."""
WIDTH_FRACTIONS = (0.05, 0.95)
"""The ends of a width, as fractions of a client's records."""
MAX_LISTED = 3


@dataclass(frozen=True)
class ScaleDifference:
    """Two groups of clients whose scores seem to be of different scales.

    Parameters
    ----------
    usual : the indices of those with the usual scale: [0, 1], where some have it.
    unusual : the indices of the others.
    usual_range, unusual_range : the least and the largest score of each group.
    """

    usual: tuple[int, ...]
    unusual: tuple[int, ...]
    usual_range: tuple[float, float]
    unusual_range: tuple[float, float]

    def sentence(self, names: tuple[str, ...]) -> str:
        """The difference as a sentence for a reader.

        Parameters
        ----------
        names : what clients or files are called, by index; where empty they are numbered.
        """
        usual, unusual = (_listed(group, names) for group in (self.usual, self.unusual))
        return (
            f"scores seem to be of different scales: those of {unusual} are from "
            f"{_range(self.unusual_range)}, those of {usual} from {_range(self.usual_range)}"
        )


def files_apart(scores: Ragged[np.float64]) -> tuple[ScaleDifference | None, bool]:
    """Which files of one owner differ in scale, and whether that is evident.

    Some files lie within [0, 1], and others have scores outside: it is evident where at least
    ``EVIDENT_SHARE`` of one of them lie outside. Where all have scores outside, widths that are far
    apart are reported, and never as evident. Files that all lie within [0, 1] are never reported.
    """
    fractions = _fractions_outside(scores)
    beyond = fractions > 0
    if beyond.any() and not beyond.all():
        return _difference(scores, ~beyond, beyond), bool((fractions >= EVIDENT_FRACTION).any())
    return _widths_apart(scores, beyond), False


def clients_apart(scores: Ragged[np.float64]) -> ScaleDifference | None:
    """Which clients differ evidently in scale, where a server sees all scores.

    Some clients lie within [0, 1], and others have at least ``EVIDENT_SHARE`` of their scores
    outside. That is reported where chance does not explain how many lie within. Where all have
    scores outside, widths that are far apart are reported.
    """
    fractions = _fractions_outside(scores)
    within, beyond = fractions == 0, fractions >= EVIDENT_FRACTION
    if not beyond.any():
        return None
    if not within.any():
        return _widths_apart(scores, beyond)
    if _chance_of_within(fractions, np.diff(scores.offsets)) >= MAX_FALSE_ALARM:
        return None
    return _difference(scores, within, beyond)


def _chance_of_within(fractions: NDArray[np.float64], sizes: NDArray[np.int64]) -> float:
    """A bound on the probability that chance puts this many clients within [0, 1].

    Were all records dealt out to the clients at random, a client of n records would be within with
    a probability of at most ``f**n``, f the fraction of all records within (a hypergeometric draw
    has fewer than a binomial one). Such events are negatively associated (Joag-Dev and Proschan
    1983), so the number t of them, of which E are expected, has Chernoff's tail: ``exp(-E) (e E /
    t)**t`` for t above E (1952).
    """
    fraction = 1.0 - float(np.average(fractions, weights=sizes))
    expected = float(np.sum(fraction ** sizes.astype(np.float64)))
    within_count = int(np.count_nonzero(fractions == 0))
    if within_count <= expected:
        return 1.0
    if expected == 0:
        return 0.0
    return float(np.exp(within_count - expected + within_count * np.log(expected / within_count)))


def _fractions_outside(scores: Ragged[np.float64]) -> NDArray[np.float64]:
    """Every client's fraction of scores outside [0, 1], shape (K,)."""
    if isinstance(scores, StoredScores):
        return scores.ranges.outside / scores.sizes
    wrong = (scores.values < -ROUNDING) | (scores.values > 1 + ROUNDING)
    counts = np.add.reduceat(wrong, scores.offsets[:-1], dtype=np.int64)
    return counts / np.diff(scores.offsets)


def _widths_apart(
    scores: Ragged[np.float64], compared: NDArray[np.bool_]
) -> ScaleDifference | None:
    """Clients whose scores vary far more, or far less, than those of the others."""
    compared = compared & (np.diff(scores.offsets) >= MIN_SCORES)
    if compared.sum() < 2:
        return None
    widths = _widths(scores)
    least, largest = widths[compared].min(), widths[compared].max()
    if largest <= MAX_WIDTH_RATIO * least:
        return None
    wide = compared & (widths > np.sqrt(least * largest))
    few_are_wide = 2 * wide.sum() <= compared.sum()
    unusual = wide if few_are_wide else compared & ~wide
    return _difference(scores, compared & ~unusual, unusual)


def _widths(scores: Ragged[np.float64]) -> NDArray[np.float64]:
    """From each client's 5th to its 95th percentile, shape (K,)."""
    if isinstance(scores, StoredScores):
        return scores.ranges.widths
    sizes = np.diff(scores.offsets)
    owners = np.repeat(np.arange(sizes.size), sizes)
    ordered = scores.values[np.lexsort((scores.values, owners))]
    low, high = ((fraction * (sizes - 1)).astype(np.int64) for fraction in WIDTH_FRACTIONS)
    starts = scores.offsets[:-1]
    return ordered[starts + high] - ordered[starts + low]


def _difference(
    scores: Ragged[np.float64], usual: NDArray[np.bool_], unusual: NDArray[np.bool_]
) -> ScaleDifference:
    low, high = scores.minimum(), scores.maximum()
    groups = [np.flatnonzero(group) for group in (usual, unusual)]
    ranges = [(float(low[group].min()), float(high[group].max())) for group in groups]
    indices = [tuple(int(index) for index in group) for group in groups]
    return ScaleDifference(indices[0], indices[1], ranges[0], ranges[1])


def _listed(indices: tuple[int, ...], names: tuple[str, ...]) -> str:
    called = [names[index] if names else f"client {index}" for index in indices[:MAX_LISTED]]
    more = len(indices) - MAX_LISTED
    return ", ".join(called) + (f" and {more} others" if more > 0 else "")


def _range(ends: tuple[float, float]) -> str:
    return f"{ends[0]:g} to {ends[1]:g}"
