"""The second round of ``TwoRoundAUC``: what a record reports, and what its reports add up to.

A record that scores s changes the AUC by about ``F^-(s) - A`` over P if it is positive and by
``1 - F^+(s) - A`` over N if not, with the distribution functions F and the area A of the first
round. Where labels are public each class reports its function's values. Where they are private, all
records report ``A + (value - A) * (rarer class / the record's class)``, which is in [0, 1] as well:
the rarer class reports its values as they are, and the values of the commoner class, which weigh
less, are moved towards A.

What ``TwoRoundAUC`` concludes: the estimate, its errors, and warnings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.local.turns import CELLS
from tacit.local.two_round.first_round import TRIALS, FirstRound, ScoreModel, area_of
from tacit.metrics.ranking import plug_in_variance
from tacit.privacy.bounded import GridReport, PointMasses, bit_report, tailored_report
from tacit.results.figure import class_too_small, is_class_too_small
from tacit.results.server_result import ServerResult

PARTS = 4
"""Number of points that represent one cell in a distribution of reported numbers."""


@dataclass(frozen=True, eq=False)
class Influence:
    """How records report in the second round.

    Parameters
    ----------
    model : the estimate of the first round, without a replicate axis.
    epsilon : the budget of a report.
    private_labels : whether a report covers the class as well.
    bits : whether numbers are rounded to a bit, not reported through the best window.
    sizes : the numbers of records that are estimated, and of those that report in this round:
        shape (2, 2), by class, negatives first, where labels are public, else (2, 1).
    """

    model: ScoreModel
    epsilon: float
    private_labels: bool
    bits: bool
    sizes: Integers

    @cached_property
    def borders(self) -> Floats:
        """The numbers reported at the cells' edges by negatives and positives, shape (2, B+1)."""
        masses = np.stack([self.model.negatives, self.model.positives])
        # the distribution functions at the cells' edges, from 0
        negatives, positives = np.pad(np.cumsum(masses, axis=-1), ((0, 0), (1, 0)))
        numbers = np.stack([1 - positives, negatives])
        if not self.private_labels:
            return np.clip(numbers, 0.0, 1.0)
        area = float(self.model.area)
        return np.clip(
            area + (numbers - area) * self.rarer / self._classes[:, np.newaxis], 0.0, 1.0
        )

    @cached_property
    def distributions(self) -> tuple[PointMasses, ...]:
        """The distribution of the numbers of each kind of record, if the model holds."""
        within = (np.arange(PARTS) + 0.5) / PARTS
        low, high = self.borders[:, :-1, np.newaxis], self.borders[:, 1:, np.newaxis]
        points = (low + (high - low) * within).reshape(2, -1)
        cells = np.stack([self.model.negatives, self.model.positives])
        masses = np.repeat(cells / PARTS, PARTS, axis=-1)
        if self.private_labels:
            return (PointMasses(points.ravel(), (masses * self._classes[:, np.newaxis]).ravel()),)
        return tuple(PointMasses(*pair) for pair in zip(points, masses, strict=True))

    @cached_property
    def report(self) -> GridReport:
        """The mechanism, one for all records: of least variance for the AUC."""
        if self.bits:
            return bit_report(self.epsilon)
        weights = 1 / np.maximum(self.sizes[1], 1)
        weights = weights / weights.sum()
        points = np.concatenate([distribution.points for distribution in self.distributions])
        parts = zip(weights, self.distributions, strict=True)
        masses = np.concatenate([weight * distribution.masses for weight, distribution in parts])
        return tailored_report(self.epsilon, PointMasses(points, masses))

    def conclude(self, counts: Integers) -> tuple[float, float]:
        """The one-step estimate from how often each report came, shape (C, outputs).

        With its variance by the second round's noise and sampling.

        Public labels: ``a + b - A`` with a and b the classes' mean numbers. Private labels: ``A +
        (mean - A) / rarer`` with the fraction of the rarer class. Where a class has no report left
        the first round's A is returned, and its variance is not known here.
        """
        area = float(self.model.area)
        reporting = self.sizes[1]
        if not reporting.all():
            return area, np.nan
        values = np.stack([self.report.values(distribution) for distribution in self.distributions])
        means = np.sum(values * counts, axis=-1) / reporting
        squares = np.sum(counts * (values - means[:, np.newaxis]) ** 2, axis=-1)
        variance = float(self._mean_variances(squares).sum())
        if self.private_labels:
            scale = 1 / self.rarer
            return area + scale * float(means[0] - area), variance * scale**2
        return float(means.sum()) - area, variance

    def _mean_variances(self, squares: Floats) -> Floats:
        """The variances of the classes' mean reports about the means of all records, shape (C,).

        A report's variance v is that of its noise plus that of its number among the records. The
        model says both, as well as the m reports of the first round determine it: stopped early, it
        is smoother than the records. The n reports of the second round say v without bias. The two
        are averaged, each by the number of reports that it rests on. Records report without
        replacement, n of M, so the mean's variance is ``v / n - (v - noise) / M``.

        Parameters
        ----------
        squares : the sum of the squared distances of the reports' values from their mean.
        """
        whole, reporting = self.sizes
        noise = np.array([self.report.variance(numbers) for numbers in self.distributions])
        among = np.array([numbers.variance for numbers in self.distributions])
        early = whole - reporting
        # v = ((m + 1) v_model + sum of squares) / (m + n); the sum of squares is about (n - 1) v
        variance = ((early + 1) * (noise + among) + squares) / (early + reporting)
        return np.asarray(variance / reporting - np.maximum(variance - noise, 0.0) / whole)

    @property
    def _classes(self) -> Floats:
        """The fractions of the negatives and of the positives."""
        fraction = float(self.model.positive_fraction)
        return np.array([1 - fraction, fraction])

    @property
    def rarer(self) -> float:
        """The fraction of the rarer class."""
        return float(self._classes.min())


def reported_numbers(positions: Floats, labels: NDArray[Any], borders: Floats) -> Floats:
    """The number that each record reports: linear between the cell edges of its class, shape (M,).

    Parameters
    ----------
    positions : of the records' scores on the scale, shape (M,).
    labels : 1 for positives, shape (M,).
    borders : the numbers at the edges of cells of negatives and positives, shape (2, B+1).

    Examples
    --------
    >>> import numpy as np
    >>> borders = np.stack([np.linspace(1, 0, CELLS + 1), np.linspace(0, 1, CELLS + 1)])
    >>> reported_numbers(np.array([0.25, 0.25]), np.array([0, 1]), borders).tolist()
    [0.75, 0.25]
    """
    edges = np.arange(CELLS + 1) / CELLS
    negatives, positives = (np.interp(positions, edges, class_borders) for class_borders in borders)
    return np.where(labels == 1, positives, negatives)


MAX_ERROR_WITH_AUC = 0.5
"""Largest predicted error at which an AUC is given."""

MERGED = 4
"""Number of cells that are merged to estimate the bias of cells."""

CONCENTRATED_CELL = 4.0
"""Ratio of a concentrated cell's pairs to those of its neighbours, at least; and ..."""

CONCENTRATED_FRACTION = 0.01
"""... fraction of all pairs in a concentrated cell, at least."""


@dataclass(frozen=True)
class Result:
    """One replicate's estimate.

    Parameters
    ----------
    value : the AUC.
    second_round_error : the standard error from the second round's noise and its sample of records.
    first_round_error : the root mean square second-order error from the first round.
    cell_bias : the error from scores that lie unevenly within a cell.
    positive_fraction : the fraction of the positives among all records.
    positive_fraction_error : its standard error; 0 where labels are public.
    """

    value: float
    second_round_error: float
    first_round_error: float
    cell_bias: float
    positive_fraction: float
    positive_fraction_error: float

    @classmethod
    def of(
        cls,
        first_round: FirstRound,
        plan: Influence,
        first_counts: Integers,
        second_counts: Integers,
        trials: int = TRIALS,
    ) -> Result:
        """The result of the counts of both rounds' reports, shapes (C, outputs)."""
        model = plan.model
        value, variance = plan.conclude(second_counts[:, : plan.report.window.outputs])
        drawn = first_round.trials(model, first_counts, trials)
        alone = math.isnan(variance)
        errors = drawn.area - model.area if alone else _second_order(drawn, model, first_round)
        fraction_errors = drawn.positive_fraction - model.positive_fraction
        return cls(
            value,
            0.0 if alone else math.sqrt(variance),
            _root_mean_square(errors),
            cell_bias(model),
            float(model.positive_fraction),
            _root_mean_square(fraction_errors),
        )

    @property
    def privacy_error(self) -> float:
        """The standard error about the data's AUC."""
        return math.hypot(self.second_round_error, self.first_round_error)

    @property
    def rarer_fraction(self) -> float:
        """The fraction of the smaller class."""
        return min(self.positive_fraction, 1 - self.positive_fraction)

    @property
    def withheld(self) -> bool:
        """Whether the errors are too large for an AUC to be given."""
        too_small = is_class_too_small(self.rarer_fraction, self.positive_fraction_error)
        return too_small or self.privacy_error > MAX_ERROR_WITH_AUC


def cell_bias(model: ScoreModel) -> float:
    """The error of the AUC because scores are not uniform within their cells.

    The model's scores are made uniform over groups of four cells; the AUC's change is a bias. A
    tenth of it is taken as the bias of single cells: for smooth densities with an error above
    0.0001 the ratio of the two was 14 to 80. In a concentrated cell, with more than
    ``CONCENTRATED_FRACTION`` of all pairs and ``CONCENTRATED_CELL`` times those of either
    neighbour, the fraction of pairs that the positives win is taken as uniform on [0, 1], of
    variance 1/12.
    """
    cells = np.stack([model.positives, model.negatives])
    merged = np.repeat(cells.reshape(2, -1, MERGED).mean(axis=-1), MERGED, axis=-1)
    coarse = area_of(*(merged - cells))
    pairs = np.pad(model.positives * model.negatives, 1)
    usual = np.maximum(CONCENTRATED_CELL * np.maximum(pairs[:-2], pairs[2:]), CONCENTRATED_FRACTION)
    concentrated = pairs[1:-1][pairs[1:-1] > usual]
    return math.hypot(float(coarse) / 10, math.sqrt(np.sum(concentrated**2) / 12))


def result_of(results: list[Result], records: int, single: bool) -> ServerResult:
    """The server's result of replicates, with their axis; of a single run without one."""

    def each(name: str) -> Floats:
        values = np.array([getattr(result, name) for result in results], dtype=np.float64)
        return np.asarray(values[0]) if single else values

    error, positives = each("privacy_error"), records * each("positive_fraction")
    value = np.where(each("withheld"), np.nan, each("value"))
    return ServerResult(
        value=value,
        privacy_error=error,
        sampling_error=np.sqrt(plug_in_variance(value, positives, records - positives)),
        positives=positives,
        negatives=records - positives,
        positives_error=records * each("positive_fraction_error"),
        approximation_error=each("cell_bias"),
        warnings=_warnings(results[0], records) if single else (),
    )


def _second_order(trials: ScoreModel, truth: ScoreModel, first_round: FirstRound) -> Floats:
    """The error that each trial's model leaves in an otherwise exact second round.

    Public labels: ``- integral of (F^- - G^-) d(F^+ - G^+)``. Private labels: ``A + (p / q) (a - A)
    + ((1 - p) / (1 - q)) (b - A)`` less the true area, p the true and q the trial's fraction of
    positives, a and b the true mean numbers of the two classes.
    """
    if not first_round.private_labels:
        return -area_of(trials.positives - truth.positives, trials.negatives - truth.negatives)
    area = trials.area
    true_fraction, trial_fraction = truth.positive_fraction, trials.positive_fraction
    by_positives = area_of(truth.positives, trials.negatives) - area
    by_negatives = area_of(trials.positives, truth.negatives) - area
    return (
        area
        + true_fraction / trial_fraction * by_positives
        + (1 - true_fraction) / (1 - trial_fraction) * by_negatives
        - truth.area
    )


def _root_mean_square(errors: Floats) -> float:
    return math.sqrt(float(np.mean(errors**2)))


def _warnings(result: Result, records: int) -> tuple[str, ...]:
    error, class_error = result.privacy_error, records * result.positive_fraction_error
    smaller = records * result.rarer_fraction
    if is_class_too_small(smaller, class_error):
        return (class_too_small(smaller, class_error),)
    if result.withheld:
        return (
            "not enough signal at this epsilon for this number of records: "
            f"the predicted error of the AUC is {error:.2g}",
        )
    warnings = []
    if result.second_round_error == 0:
        warnings.append("a class had no record left for the second round; the first stands alone")
    elif result.first_round_error > result.second_round_error:
        warnings.append("the first round's error outweighs the second's: there are too few records")
    if result.cell_bias > error:
        warnings.append(
            f"scores are concentrated in few of the {CELLS} cells of their scale: map them by an "
            "agreed public function so that they spread over it"
        )
    return tuple(warnings)
