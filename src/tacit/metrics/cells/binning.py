"""Score cells with counts of both classes, and merging them into buckets of about equal depth.

Counts may be noisy: negative, fractional, with a total that is no longer a number of records.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Floats

Starts = NDArray[np.int64]
Counts = NDArray[Any]

MIN_SIGNAL = 5.0
"""Least ratio of a noisy count to the standard deviation of its noise for the count to be used."""


@dataclass(frozen=True, eq=False)
class ScoreCells:
    """Counts of both classes in cells that cover the scores 0 to 1; checked when made.

    A score s lies in cell j where ``edges[j] <= s < edges[j + 1]``; 1 lies in the last cell.

    Parameters
    ----------
    edges : shape (B + 1,), ascending from 0 to 1.
    positives, negatives : counts in each cell, shape (B,); noisy counts may be negative.
    noise_variance : the variance of the noise on each of these 2B counts, independent between
        them: one number, or shape (B,) where cells differ; None where counts are exact.
    centres : the score that represents each cell, within it, shape (B,); None for the middle.

    Raises
    ------
    ValueError : when the edges do not ascend from 0 to 1, lengths do not match, a number is not
        finite, a variance is negative, or a centre lies outside its cell.

    Examples
    --------
    >>> import numpy as np
    >>> cells = ScoreCells(np.array([0, 0.5, 1]), np.array([1, 3]), np.array([3, 1]))
    >>> cells.predicted, cells.totals
    (array([0.25, 0.75]), array([4., 4.]))
    """

    edges: Floats
    positives: Floats
    negatives: Floats
    noise_variance: Floats | float | None = None
    centres: Floats | None = None

    def __post_init__(self) -> None:
        edges = checked_edges(self.edges)
        shape = (edges.size - 1,)
        object.__setattr__(self, "edges", edges)
        for name in ("positives", "negatives"):
            object.__setattr__(self, name, _finite(name, getattr(self, name), shape))
        noise = 0.0 if self.noise_variance is None else self.noise_variance
        variance = _finite("noise_variance", noise, () if np.ndim(noise) == 0 else shape)
        if (variance < 0).any():
            raise ValueError(f"noise_variance must not be negative, got {variance.min()}")
        object.__setattr__(self, "noise_variance", variance)
        if self.centres is not None:
            centres = _finite("centres", self.centres, shape)
            outside = centres != within_cells(centres, edges)
            if outside.any():
                raise ValueError(f"centres must lie in their cells, got {centres[outside][0]}")
            object.__setattr__(self, "centres", centres)

    @classmethod
    def from_records(cls, scores: ArrayLike, labels: ArrayLike, cells: int = 4096) -> ScoreCells:
        """Exact counts of plain records, in at most this many cells of about equal depth.

        Equal scores are in one cell, edges lie midway between neighbours, and a cell's centre is
        its records' mean score, so that few distinct scores lose nothing.

        Raises
        ------
        ValueError : for scores outside 0 and 1, labels other than 0 and 1, other shapes than (n,),
            lengths that differ, and no record.

        Examples
        --------
        >>> cells = ScoreCells.from_records([0.2, 0.2, 0.6, 0.8], [0, 1, 1, 1], cells=2)
        >>> cells.edges, cells.predicted, cells.positives
        (array([0. , 0.4, 1. ]), array([0.2, 0.7]), array([1., 2.]))
        """
        known, positive = checked_scores(scores), _checked_labels(labels)
        if known.ndim != 1 or known.shape != positive.shape or known.size == 0:
            raise ValueError(
                "scores and labels must have one shape (n,) with n at least 1, "
                f"got {known.shape} and {positive.shape}"
            )
        edges = _edges_around(known, cells)
        cell, size = np.searchsorted(edges[1:-1], known, side="right"), edges.size - 1
        totals = np.bincount(cell, minlength=size).astype(np.float64)
        positives = np.bincount(cell, positive, size).astype(np.float64)
        middles = (edges[:-1] + edges[1:]) / 2
        means = np.where(totals > 0, np.bincount(cell, known, size), middles)
        centres = within_cells(means / np.maximum(totals, 1.0), edges)
        return cls(edges, positives, totals - positives, centres=centres)

    @property
    def predicted(self) -> Floats:
        """The score that represents each cell, shape (B,)."""
        if self.centres is not None:
            return self.centres
        return (self.edges[:-1] + self.edges[1:]) / 2

    @property
    def totals(self) -> Floats:
        """Records of both classes in each cell, shape (B,)."""
        return self.positives + self.negatives

    @property
    def variance(self) -> Floats:
        """The noise variance of each class's count in each cell, shape (B,)."""
        return np.broadcast_to(np.asarray(self.noise_variance, np.float64), self.positives.shape)

    @property
    def positive_fraction(self) -> float:
        """The fraction of positives with one record added to each class, in (0, 1)."""
        positives = max(float(self.positives.sum()), 0.0)
        negatives = max(float(self.negatives.sum()), 0.0)
        return (positives + 1) / (positives + negatives + 2)

    @property
    def has_signal(self) -> bool:
        """Whether the total exceeds 0 and ``MIN_SIGNAL`` standard deviations of its noise."""
        total = float(self.totals.sum())
        return total > MIN_SIGNAL * math.sqrt(2 * float(self.variance.sum())) and total > 0

    @property
    def effective_records(self) -> float:
        """Number of records with the same error of the fraction of positives, without noise.

        In a bucket of n records a fraction s of positives has sampling variance ``s (1 - s) / n``;
        noise of variance v on both classes' counts adds ``v ((1 - s)^2 + s^2) / n^2``. Over all
        cells, with s the overall fraction, that is the sampling variance of ``M / (1 + V ((1 - s)^2
        + s^2) / (M s (1 - s)))`` records, M the total and V the sum of v; 0 where M is not
        positive.
        """
        total, fraction = float(self.totals.sum()), self.positive_fraction
        noise = float(self.variance.sum()) * ((1 - fraction) ** 2 + fraction**2)
        return total / (1 + noise / (total * fraction * (1 - fraction))) if total > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Buckets:
    """Counts of buckets, runs of score cells, with the variances of their noise.

    Parameters
    ----------
    predicted : the mean score of each bucket's records, shape (K,).
    positives, totals : positive and all records in each bucket, shape (K,).
    positive_variance, total_variance : the noise variances of these counts, shape (K,).
    """

    predicted: Floats
    positives: Floats
    totals: Floats
    positive_variance: Floats
    total_variance: Floats

    @classmethod
    def of(cls, cells: ScoreCells, starts: Starts) -> Buckets:
        """The buckets that begin at these cells; each predicts the mean score of its cells."""
        variance = np.asarray(merge(cells.variance, starts), dtype=np.float64)
        return cls(
            bucket_means(cells.totals, cells.predicted, starts),
            merge(cells.positives, starts),
            merge(cells.totals, starts),
            variance,
            2 * variance,
        )

    def sampled(self) -> Buckets:
        """The buckets with the variance of drawing their records added, as Poisson counts.

        Of classes each at least 0: else positives would vary more than all records.
        """
        positives = np.maximum(self.positives, 0.0)
        both = positives + np.maximum(self.totals - self.positives, 0.0)
        variances = self.positive_variance + positives, self.total_variance + both
        return Buckets(self.predicted, self.positives, self.totals, *variances)

    @property
    def reliable(self) -> NDArray[np.bool_]:
        """Which buckets' totals are positive and ``MIN_SIGNAL`` standard deviations above noise."""
        return (self.totals > 0) & (self.totals >= MIN_SIGNAL * np.sqrt(self.total_variance))

    @property
    def positive_fractions(self) -> Floats:
        """The fraction of positives in each bucket, within 0 and 1; NaN without positive total."""
        totals = np.where(self.totals > 0, self.totals, np.nan)
        return np.clip(self.positives / totals, 0.0, 1.0)


def equi_depth_starts(totals: Floats, buckets: int) -> Starts:
    """The first cell of each of at most ``buckets`` runs of cells that hold about as many records.

    Bucket k ends where the cumulative count comes nearest to k/``buckets`` of the total. Noise can
    make cumulative counts fall. Their isotonic regression, within 0 and the total, replaces them;
    clipping cells at zero would add the noise of empty cells as records. A cut stays only where the
    noisy cumulative count lies above that of all cuts before it and below the total, so every
    bucket has a positive noisy count. There are fewer than ``buckets`` buckets where single cells
    are deeper than a bucket. Exact counts give buckets no deeper than the total over ``buckets``
    plus the deepest cell.

    Parameters
    ----------
    totals : records in each cell, in ascending order of score, shape (B,); may be negative.
    buckets : how many buckets there are at most.

    Returns
    -------
    int64, ascending from 0, of length 1 to ``buckets``; ``[0]`` where the total is not positive.

    Raises
    ------
    ValueError : when ``buckets`` is below 1, or ``totals`` is empty, not flat or not finite.

    Examples
    --------
    >>> import numpy as np
    >>> equi_depth_starts(np.array([5.0, 1.0, 4.0, 0.0, 0.0, 9.0, 1.0]), 2)
    array([0, 4])
    >>> equi_depth_starts(np.array([1.0, 97.0, 2.0]), 10)
    array([0, 1, 2])
    """
    return equi_depth_binnings(totals, [buckets])[0]


def equi_depth_binnings(totals: Floats, numbers: Iterable[int]) -> list[Starts]:
    """The distinct answers of ``equi_depth_starts`` for several numbers of buckets, in order.

    Examples
    --------
    >>> import numpy as np
    >>> equi_depth_binnings(np.array([5.0, 5.0, 5.0, 5.0]), [1, 2, 4, 8])
    [array([0]), array([0, 2]), array([0, 1, 2, 3])]
    """
    cells = np.asarray(totals, dtype=np.float64)
    if cells.ndim != 1 or cells.size == 0:
        raise ValueError(f"totals must have shape (B,) with B at least 1, got {cells.shape}")
    _check_finite("totals", cells)
    cumulative = np.concatenate(([0.0], np.cumsum(cells)))
    rising = np.clip(
        scipy.optimize.isotonic_regression(cumulative).x, 0.0, max(cumulative[-1], 0.0)
    )
    binnings = [_cuts(cumulative, rising, number) for number in numbers]
    return list({starts.tobytes(): starts for starts in binnings}.values())


def finest_starts(cells: ScoreCells) -> Starts:
    """The finest buckets in which every count says something.

    Exact counts: every cell with records alone, with the empty cells that follow it. Noisy counts:
    equi-depth buckets. Their number is multiplied by four fifths until each holds at least
    ``MIN_SIGNAL`` standard deviations of its own noise, or one bucket is left.
    """
    if not cells.variance.any() and (cells.totals >= 0).all():
        starts = np.flatnonzero(cells.totals > 0)
        return np.concatenate((np.zeros(1, np.int64), starts[1:]))
    return reliable_starts(cells, cells.totals.size)


def reliable_starts(cells: ScoreCells, buckets: int) -> Starts:
    """Equi-depth buckets, at most this many; fewer where one would not be reliable."""
    starts = equi_depth_starts(cells.totals, buckets)
    while starts.size > 1 and not Buckets.of(cells, starts).reliable.all():
        starts = equi_depth_starts(cells.totals, min(buckets, starts.size) * 4 // 5)
    return starts


def merge(cells: Counts, starts: Starts) -> Counts:
    """The sums of runs of cells along the last axis; run k starts at cell ``starts[k]``.

    Examples
    --------
    >>> import numpy as np
    >>> merge(np.array([5, 1, 4, 0, 9]), np.array([0, 2]))
    array([ 6, 13])
    """
    return np.add.reduceat(cells, starts, axis=-1)


def bucket_means(totals: Floats, values: Floats, starts: Starts) -> Floats:
    """The mean value of each bucket's records, from ascending values of cells.

    Noisy counts may weigh a cell negatively; the mean is clipped to the values of the bucket's
    first and last cell, and is the middle of the two where the bucket's count is not positive.
    """
    low = values[starts]
    high = values[np.append(starts[1:], values.size) - 1]
    records = merge(totals, starts)
    known = records > 0
    mean = merge(totals * values, starts) / np.where(known, records, 1.0)
    return np.where(known, np.clip(mean, low, high), (low + high) / 2)


def within_cells(scores: Floats, edges: Floats) -> Floats:
    """The nearest score in each cell, shape (B,)."""
    return np.clip(scores, edges[:-1], np.append(np.nextafter(edges[1:-1], 0.0), 1.0))


def checked_edges(edges: ArrayLike) -> Floats:
    """Edges of score cells as float64.

    Raises
    ------
    ValueError : when there are fewer than two, or they do not ascend from 0 to 1.
    """
    borders = np.array(edges, dtype=np.float64)
    if borders.ndim != 1 or borders.size < 2:
        raise ValueError(f"edges must have shape (B + 1,) with B at least 1, got {borders.shape}")
    if not (borders[0] == 0 and borders[-1] == 1):
        raise ValueError(f"edges must run from 0 to 1, got {borders[0]} to {borders[-1]}")
    if not (np.diff(borders) > 0).all():
        cell = int(np.argmin(np.diff(borders) > 0))
        raise ValueError(f"edges must ascend, got {borders[cell]} before {borders[cell + 1]}")
    return borders


def checked_scores(scores: ArrayLike) -> Floats:
    """Scores as float64, shape (n,) or (n, 1).

    Raises
    ------
    ValueError : for another shape, and for a score that is not finite or outside 0 and 1.
    """
    return checked_unit(checked_numbers(scores), "scores")


def checked_numbers(scores: ArrayLike) -> Floats:
    """Scores of any unit as float64, shape (n,) or (n, 1).

    Raises
    ------
    ValueError : for another shape, and for a score that is not finite.
    """
    numbers = np.asarray(scores, dtype=np.float64)
    if not (numbers.ndim == 1 or (numbers.ndim == 2 and numbers.shape[1] == 1)):
        raise ValueError(f"scores must have shape (n,) or (n, 1), got {numbers.shape}")
    _check_finite("scores", numbers)
    return numbers


def checked_unit(numbers: Floats, name: str) -> Floats:
    """The numbers as they are.

    Raises
    ------
    ValueError : for one that is not finite or outside 0 and 1; the message names it.
    """
    _check_finite(name, numbers)
    outside = (numbers < 0) | (numbers > 1)
    if outside.any():
        raise ValueError(f"{name} must lie within 0 and 1, got {numbers[outside][0]}")
    return numbers


def _checked_labels(labels: ArrayLike) -> Floats:
    label_array = np.asarray(labels)
    wrong = (label_array != 0) & (label_array != 1)
    if wrong.any():
        raise ValueError(f"labels must be 0 or 1, got {label_array[wrong][0]}")
    return label_array.astype(np.float64)


def _edges_around(scores: Floats, cells: int) -> Floats:
    """0, 1, and the middles between neighbouring distinct scores that cut equi-depth cells."""
    values, records = np.unique(scores, return_counts=True)
    starts = equi_depth_starts(records.astype(np.float64), cells)[1:]
    between = (values[starts - 1] + values[starts]) / 2
    return np.unique(np.concatenate(([0.0], between, [1.0])))


def _finite(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Floats:
    array = np.array(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    _check_finite(name, array)
    return array


def _check_finite(name: str, array: Floats) -> None:
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)].flat[0]}")


def _cuts(cumulative: Floats, rising: Floats, buckets: int) -> Starts:
    if buckets < 1:
        raise ValueError(f"buckets must be at least 1, got {buckets}")
    if cumulative[-1] <= 0:
        return np.zeros(1, dtype=np.int64)
    targets = cumulative[-1] * np.arange(1, buckets, dtype=np.float64) / buckets
    return _surviving(np.unique(_nearest(rising, targets)), cumulative)


def _nearest(rising: Floats, targets: Floats) -> Starts:
    """Where a rising sequence is nearest to each target; the middle of equal values."""
    above = np.clip(np.searchsorted(rising, targets), 1, rising.size - 1)
    lower, upper = rising[above - 1], rising[above]
    value = np.where(targets - lower <= upper - targets, lower, upper)
    first = np.searchsorted(rising, value, side="left")
    last = np.searchsorted(rising, value, side="right") - 1
    return ((first + last) // 2).astype(np.int64)


def _surviving(cuts: Starts, cumulative: Floats) -> Starts:
    """Zero, and the cuts at which the noisy cumulative count is a new maximum below the total."""
    heights = cumulative[cuts]
    below = heights < cumulative[-1]
    before = np.maximum.accumulate(np.concatenate(([0.0], np.where(below, heights, 0.0))))
    is_new_maximum = (heights > before[:-1]) & below
    return np.concatenate((np.zeros(1, dtype=np.int64), cuts[is_new_maximum]))
