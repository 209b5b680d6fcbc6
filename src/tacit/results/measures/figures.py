"""How a figure of a histogram's counts becomes a measure: its errors, its intervals, its absence.

A view has the counts at the resolution that figures are computed at, with their errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.data import units
from tacit.metrics import functional, logistic, operating_points, trees
from tacit.results.curves.histogram import Histogram
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.estimate import REACH, Estimate, Interval
from tacit.results.figure import EVERYWHERE

MOST_EXACT_CELLS = 2**14
MOST_NOISY_CELLS = 2**12
"""Largest number of cells that figures are computed from; finer ones are merged."""
CLIPPED_ERRORS = 4.0
"""Standard deviations of noise that the outermost part holds."""
INNER = 3.0
"""How many times as large as the outermost part the one is whose quantile states its tail."""
ROUGH_ERRORS = 3.0
"""Standard deviations by which counts must be rougher than a density to show frequent scores."""
MOST_CLIPPED = 0.1
"""Largest part of the records at each end whose log-odds are clipped."""
LEAST_CLIPPED_ERRORS = 3.0
"""Least number of deviations that the largest clipped part must hold for a logistic line."""


@dataclass(frozen=True, eq=False)
class CellView:
    """Counts of both classes in ``2**h`` cells, with what every cell states.

    Parameters
    ----------
    counts : positives, then negatives, shape (2, B).
    noise : the errors of the tree whose leaves are 2 B or a multiple of it.
    leaves : the counts of that tree, shape (2, B * finer).
    axis : the scores of the cells.
    """

    counts: Floats
    noise: trees.TreeNoise
    leaves: Floats
    axis: ScoreAxis

    @classmethod
    def of(cls, histogram: Histogram) -> CellView:
        """The histogram's counts, merged where there are more cells than figures need."""
        most = MOST_EXACT_CELLS if histogram.noise.exact else MOST_NOISY_CELLS
        counts = histogram.counts
        return cls(counts, histogram.noise, counts, histogram.axis).merged(most)

    @cached_property
    def halved(self) -> CellView:
        """The same in cells of twice the width."""
        return self.merged(self.size // 2)

    def merged(self, most: int) -> CellView:
        """The same in at most so many cells, a power of two."""
        if self.size <= most:
            return self
        counts = self.counts.reshape(2, most, -1).sum(axis=-1)
        return CellView(counts, self.noise, self.leaves, self.axis)

    @property
    def size(self) -> int:
        """B, the number of cells."""
        return int(self.counts.shape[-1])

    @cached_property
    def predicted(self) -> Floats:
        """The probability that the middle of each cell states, shape (B,)."""
        return self.axis.stated(self.size)

    @cached_property
    def stated_log_odds(self) -> Floats:
        """The log-odds of the middle of each cell, shape (B,)."""
        middles = self.axis.middles(self.size)
        stated = (
            middles if self.axis.unit == units.LOG_ODDS else scipy.special.logit(self.predicted)
        )
        return np.clip(stated, -logistic.MOST_LOG_ODDS, logistic.MOST_LOG_ODDS)

    @cached_property
    def log_odds(self) -> Floats:
        """The log-odds that each cell states where they weigh its records, shape (B,).

        Far out a noisy count of hardly any record would weigh as much as many records. So the part
        a at each end that holds no more than ``CLIPPED_ERRORS`` standard deviations of noise is
        taken together in two halves. Beyond the cut q(a) they lie as the halves of an exponential
        tail do: at ``(1 - log 2)`` and ``(1 + log 2)`` times its mean s, which quantiles state,
        ``s = (q(a) - q(3 a)) / log 3``. Nearer to the end, a cut would follow the noise of the very
        records beyond it; in one piece, the tail would have no spread and the slope be too low.
        """
        stated, part = self.stated_log_odds, self.clipped_part
        if part == 0:
            return stated
        ends = part * np.array([1 / 2, 1.0, INNER])
        places = operating_points.quantiles(
            self.counts.sum(axis=0), np.concatenate([1 - ends, ends])
        )
        cuts = np.interp(places - 0.5, np.arange(self.size), stated).reshape(2, 3)
        made = stated
        for direction, (outer, cut, inner) in zip((-1, 1), cuts, strict=True):
            mean = (cut - inner) / math.log(INNER)
            near, far = (cut + mean * (1 + half * math.log(2)) for half in (-1, 1))
            beyond, farther = (direction * (stated - place) > 0 for place in (cut, outer))
            made = np.where(farther, far, np.where(beyond, near, made))
        return made

    @cached_property
    def clipped_part(self) -> float:
        """The part of the records at each end whose log-odds are clipped; 0 for exact counts."""
        return min(CLIPPED_ERRORS * self._border_error, MOST_CLIPPED)

    @cached_property
    def ends_known(self) -> bool:
        """Whether the clipped ends stand out from their noise, so that their log-odds are known."""
        return LEAST_CLIPPED_ERRORS * self._border_error <= MOST_CLIPPED

    @cached_property
    def _border_error(self) -> float:
        """The standard deviation by noise of the part of the records below a score."""
        if self.noise.exact:
            return 0.0
        half = np.zeros((2, self.size))
        # the noise of a cumulative count hardly depends on where it is taken
        half[:, self.size // 3 :] = 1.0
        deviation = math.sqrt(float(self.noise_variance(half)))
        return deviation / max(float(self.counts.sum()), 1.0)

    @cached_property
    def clipped(self) -> Floats:
        """The probabilities that ``log_odds`` state, shape (B,)."""
        return np.asarray(scipy.special.expit(self.log_odds), dtype=np.float64)

    def stating(self, probabilities: Floats) -> Floats:
        """The scores of this unit that state these probabilities, shape (T,)."""
        return units.converted(probabilities, units.PROBABILITY, self.axis.unit)

    def reaching(self, thresholds: Floats) -> Floats:
        """The part of each cell that reaches each score, shape (T, B)."""
        return self.axis.reaching(thresholds, self.size)

    def scores_of(self, places: Floats) -> Floats:
        """The scores at places from 0 to B."""
        return self.axis.scale.scores(np.clip(places / self.size, 0.0, 1.0))

    def noise_variance(self, weights: Floats) -> Floats:
        """The noise variance of weighted sums of the counts, weights of shape (..., 2, B)."""
        if self.noise.exact:
            return np.zeros(weights.shape[:-2])
        return self.noise.variance_of(self._fine(weights), self.leaves.ravel())

    def noise_covariance(self, weights: Floats) -> Floats:
        """The noise covariance of weighted sums, weights of shape (D, 2, B), shape (D, D)."""
        return self.noise.covariance_of(self._fine(weights), self.leaves.ravel())

    def _fine(self, weights: Floats) -> Floats:
        """The weights of the tree's leaves, shape (..., 2 B * finer)."""
        finer = self.leaves.shape[-1] // self.size
        fine = np.repeat(weights, finer, axis=-1) if finer > 1 else weights
        return fine.reshape(*fine.shape[:-2], -1)

    def privacy_error(self, figure: functional.Functional) -> Floats:
        """The standard deviations by privacy noise, shape (T,), in first order.

        Where noise moves a threshold, with what the records' figure departs from its slope.
        """
        known = np.isfinite(figure.value)[:, np.newaxis, np.newaxis]
        error = np.sqrt(self.noise_variance(np.where(known, figure.gradient, 0.0)))
        return error if figure.rough is None else np.asarray(np.hypot(error, figure.rough))

    @cached_property
    def density_changes(self) -> Floats:
        """By how many records the density of each class changes across each cell, shape (2, B).

        Placed cells have as many records as their neighbours where they are wider, so that counts
        alone do not say it. A density that is nowhere below 0 changes by at most twice its mean;
        next to cells of a single score there is no density to follow.
        """
        edges = self.axis.edges(self.size)
        widths = np.diff(edges)
        between = np.abs(np.gradient(self.counts, axis=-1))
        inner = np.isfinite(widths) & (widths > 0)
        if np.count_nonzero(inner) < 2:
            return between
        # an open end is taken to be as wide as the nearest cell, and to have its density beyond
        places = np.arange(self.size, dtype=np.float64)
        widths = np.pad(np.interp(places, places[inner], widths[inner]), 1, "edge")
        with np.errstate(over="ignore", invalid="ignore"):
            densities = np.pad(self.counts, ((0, 0), (1, 1)), "edge") / widths
            apart = widths[:-2] / 2 + widths[1:-1] + widths[2:] / 2
            slopes = (densities[:, 2:] - densities[:, :-2]) / apart
            changes = np.nan_to_num(np.abs(slopes) * widths[1:-1] ** 2, nan=np.inf)
        return np.asarray(np.minimum(changes, np.maximum(2 * self.counts, between)))

    def placement_error(self, figure: functional.Functional) -> Floats:
        """The standard deviation by records that lie anywhere in their cell, shape (T,).

        A record half a cell away adds half the change of the gradient from cell to cell. An even
        place in the cell has the variance 1/12 of its width.
        """
        if self.size < 2:
            return np.full(figure.value.shape, np.nan)
        change = np.gradient(figure.gradient, axis=-1)
        moved = np.maximum(self.counts, 0.0) * change**2 / 12
        return np.sqrt(np.sum(moved, axis=(-2, -1)))

    @cached_property
    def shows_frequent_scores(self) -> bool:
        """Whether counts of fixed cells are rougher than those of a density, noise and sampling.

        Placed cells leave a frequent score a cell of its own. Of fixed ones, the squares of the
        second differences ``c_j - (c_{j-1} + c_{j+1}) / 2`` exceed the sum of their variances by
        ``ROUGH_ERRORS`` of its errors where cells hold one frequent score, or two, or none. Squares
        of normal variables have twice the square of the variance; neighbours correlate, which adds
        less than as much again.
        """
        if not self.axis.is_fixed or self.size < 3:
            return False
        alone = np.zeros((2, self.size))
        alone[0, self.size // 2] = 1.0
        variances = np.maximum(self.counts, 0.0) + float(self.noise_variance(alone))
        left, middle, right = slice(None, -2), slice(1, -1), slice(2, None)
        departing = self.counts[:, middle] - (self.counts[:, left] + self.counts[:, right]) / 2
        of_each = variances[:, middle] + (variances[:, left] + variances[:, right]) / 4
        excess = np.sum(departing**2) - np.sum(of_each)
        return bool(excess > ROUGH_ERRORS * 2 * math.sqrt(np.sum(of_each**2)))

    def cut_errors(self, figure: functional.Functional) -> tuple[Floats, Floats]:
        """The errors by the records of cells that a threshold cuts, shape (T,) each.

        The first is by their unknown places, the second by a density that changes across the cell.

        The part a of its m records that lies above is known as that of the cell's width. The
        variance of their number above is at most ``m a (1 - a)`` where they are spread, and
        ``m^2 a (1 - a)`` where all have one score and are on one side. Where the density of spread
        records changes by d across the cell, that number is off by ``d a (1 - a) / 2``. A gradient
        is linear in the part that counts, so its change to a cell that counts not at all, or
        entirely, says what a record does that moves from one side to the other.
        """
        above = figure.above
        if above is None or self.size < 2:
            return np.zeros(figure.value.shape), np.zeros(figure.value.shape)
        rows, cells = np.nonzero((above > 0) & (above < 1))
        least, most = above.argmin(axis=-1)[rows], above.argmax(axis=-1)[rows]
        other = np.where(above[rows, least] < above[rows, cells], least, most)
        part = above[rows, cells]
        apart = part - above[rows, other]
        jump = figure.gradient[rows, :, cells] - figure.gradient[rows, :, other]
        step = np.abs(jump) / np.where(apart == 0, np.nan, np.abs(apart))[:, np.newaxis]
        reach = (part * (1 - part))[:, np.newaxis]
        records = np.maximum(self.counts[:, cells].T, 0.0)
        placed, changed = np.zeros((2, *figure.value.shape))
        if self.shows_frequent_scores:
            np.add.at(placed, rows, np.sum(reach * (records * step) ** 2, axis=-1))
            return np.sqrt(placed), changed
        tilt = reach / 2 * self.density_changes[:, cells].T * step
        np.add.at(placed, rows, np.sum(reach * records * step**2, axis=-1))
        np.add.at(changed, rows, np.sum(tilt, axis=-1) ** 2)
        return np.sqrt(placed), np.sqrt(changed)


MOST_RELATIVE_NOISE = 0.25
"""Largest noise of a denominator, relative to it, at which a quotient is linearised."""
LEAST_RECORDS = 100
"""Least number of records of each class at which figures are given."""
NO_PROBABILITIES = "scores that are real numbers state no probability"
NO_FIT = "the counts determine no logistic fit: the noise is too large for them"
LOST_IN_NOISE = "the records that it divides by do not stand out from their noise"

Make = Callable[[CellView], functional.Functional | None]


@dataclass(frozen=True)
class Kind:
    """What is known of a figure besides its value.

    Parameters
    ----------
    limits : the least and the largest value that it can have.
    quotient : whether its denominator has a noise that counts, so that Fieller's interval is taken.
    at_threshold : whether a threshold cuts cells; else it changes smoothly with every score.
    """

    limits: tuple[float, float] = EVERYWHERE
    quotient: bool = False
    at_threshold: bool = False


SMOOTH = Kind()
RATE = Kind((0.0, 1.0), at_threshold=True)
BENEFIT = Kind((-math.inf, 1.0), at_threshold=True)
POSITIVE_RATIO = Kind(functional.POSITIVE, quotient=True)
RATIO_AT_THRESHOLD = Kind(functional.POSITIVE, quotient=True, at_threshold=True)


def too_few_records(view: CellView) -> str | None:
    """Why no figure is given where a class has too few records; None where both have enough."""
    for name, cells in zip(("positive", "negative"), view.counts, strict=True):
        if cells.sum() < LEAST_RECORDS:
            return (
                f"fewer than {LEAST_RECORDS} {name} records: {max(cells.sum(), 0):.0f} as estimated"
            )
    return None


def measured(
    view: CellView, make: Make, kind: Kind, thresholds: tuple[float | None, ...] = (None,)
) -> list[Estimate]:
    """The measures of a figure's values, one for each threshold."""
    figure = make(view)
    if figure is None:
        return [Estimate.absent(NO_FIT, threshold) for threshold in thresholds]
    privacy, sampling = view.privacy_error(figure), _sampling_error(view, figure, kind)
    placed, width = cell_errors(view, figure, make, kind)
    cells = np.hypot(placed, width)
    given = stands_out(view, figure) & np.isfinite(figure.value)
    intervals: Sequence[tuple[Interval, Interval] | None] = [None] * len(thresholds)
    if kind.quotient and figure.base is not None:
        intervals = quotient_intervals(view, figure, figure.base, cells)
    columns = np.stack((figure.value, privacy, sampling, cells, placed), axis=-1).tolist()
    made = []
    for index, threshold in enumerate(thresholds):
        value, noise, sampled, hidden, place = columns[index]
        estimate = Estimate(value, noise, sampled, hidden, intervals=intervals[index])
        limited = replace(estimate, threshold=threshold, placement_error=place).within(kind.limits)
        made.append(limited if given[index] else Estimate.absent(LOST_IN_NOISE, threshold))
    return made


def quotient_intervals(
    view: CellView, figure: functional.Functional, weights: Floats, cells: Floats
) -> list[tuple[Interval, Interval]]:
    """Fieller's intervals of a quotient about the records and the population.

    Parameters
    ----------
    weights : of the sum that it divides by, shape (T, 2, B).
    cells : its error by cells, shape (T,).
    """
    total = np.sum(weights * view.counts, axis=(-2, -1))
    known = np.where(total > 0, total, np.nan)[:, np.newaxis, np.newaxis]
    slopes, base = np.nan_to_num(figure.gradient), np.nan_to_num(weights / known)
    of_both, of_slopes, of_base = (
        view.noise_variance(each) for each in (slopes + base, slopes, base)
    )
    noise = of_slopes + cells**2, (of_both - of_slopes - of_base) / 2, of_base
    sampling = (
        np.sum(view.counts * pair, axis=(-2, -1)) for pair in (slopes**2, slopes * base, base**2)
    )
    bounds = functional.fieller_bounds
    records, population = (
        np.stack(bounds(figure.value, variance, crossed, bases, REACH), axis=-1).tolist()
        for variance, crossed, bases in (noise, map(np.add, noise, sampling))
    )
    pairs = zip(records, population, strict=True)
    return [(Interval(*of_records), Interval(*of_all)) for of_records, of_all in pairs]


def _sampling_error(view: CellView, figure: functional.Functional, kind: Kind) -> Floats:
    """The error by sampling, shape (T,); a rate of 0 or 1 has that of the rule of three.

    Of n records none of which is a miss, fewer than 3 in n are in the population, with 95 %.
    """
    error = figure.sampling_error(view.counts)
    if kind != RATE or figure.base is None:
        return error
    records = np.maximum(np.sum(figure.base * view.counts, axis=(-2, -1)), 1.0)
    at_end = (figure.value <= 0) | (figure.value >= 1)
    return np.where(at_end, np.maximum(error, 3 / records / REACH), error)


def cell_errors(
    view: CellView, figure: functional.Functional, make: Make, kind: Kind
) -> tuple[Floats, Floats]:
    """What cells hide of a figure: by records' places, and by the cells' width, shape (T,) each.

    At a threshold, the records of the cut cell. Elsewhere, records anywhere in their cells, and a
    third of the change that merging cells in pairs makes: an error that falls with the square of
    the width is four times as large there.
    """
    if kind.at_threshold:
        return view.cut_errors(figure)
    placed = view.placement_error(figure)
    coarse = make(view.halved) if view.size >= 4 else None
    if coarse is None:
        return placed, np.zeros(placed.shape)
    return placed, np.abs(figure.value - coarse.value) / 3


def stands_out(view: CellView, figure: functional.Functional) -> NDArray[np.bool_]:
    """Whether each denominator is clear of its noise, so that a quotient may be linearised."""
    if figure.base is None or view.noise.exact:
        return np.ones(figure.value.shape, dtype=np.bool_)
    total = np.sum(figure.base * view.counts, axis=(-2, -1))
    error = np.sqrt(view.noise_variance(figure.base))
    return np.broadcast_to(error <= MOST_RELATIVE_NOISE * total, figure.value.shape)
