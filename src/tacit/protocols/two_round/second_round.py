"""The second round of ``TwoRoundAUC``: what a record reports, and what its reports add up to.

A record that scores s changes the AUC by about ``F^-(s) - A`` over P if it is positive and by
``1 - F^+(s) - A`` over N if not, with the distribution functions F and the area A of the first
round. Where labels are public each class reports its function's values. Where they are private, all
records report ``A + (value - A) * (rarer class / the record's class)``, which is in [0, 1] as well:
the rarer class reports its values as they are, and the values of the commoner class, which weigh
less, are moved towards A.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.privacy.local.bounded import GridReport, PointMasses, bit_report, tailored_report
from tacit.protocols.two_round.first_round import CELLS, ScoreModel

PARTS = 4
"""Number of points that represent one cell in a distribution of reported numbers."""


class Concluded(NamedTuple):
    """The AUC of two rounds, and its variance from the second round's noise and sampling."""

    value: float
    variance: float


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
    def knots(self) -> Floats:
        """The numbers reported at the cells' edges by negatives and positives, shape (2, B+1)."""
        negatives, positives = self.model.distribution_functions()
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
        low, high = self.knots[:, :-1, np.newaxis], self.knots[:, 1:, np.newaxis]
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

    def conclude(self, counts: Integers) -> Concluded:
        """The one-step estimate from how often each report came, shape (C, outputs).

        Public labels: ``a + b - A`` with a and b the classes' mean numbers. Private labels: ``A +
        (mean - A) / rarer`` with the fraction of the rarer class. Where a class has no report left
        the first round's A is returned, and its variance is not known here.
        """
        area = float(self.model.area)
        reporting = self.sizes[1]
        if not reporting.all():
            return Concluded(area, np.nan)
        values = np.stack([self.report.values(distribution) for distribution in self.distributions])
        means = np.sum(values * counts, axis=-1) / reporting
        squares = np.sum(counts * (values - means[:, np.newaxis]) ** 2, axis=-1)
        variance = float(self._mean_variances(squares).sum())
        if self.private_labels:
            scale = 1 / self.rarer
            return Concluded(area + scale * float(means[0] - area), variance * scale**2)
        return Concluded(float(means.sum()) - area, variance)

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


def reported_numbers(positions: Floats, labels: NDArray[Any], knots: Floats) -> Floats:
    """The number that each record reports: linear between the knots of its class, shape (M,).

    Parameters
    ----------
    positions : of the records' scores on the scale, shape (M,).
    labels : 1 for positives, shape (M,).
    knots : the numbers at the edges of cells of negatives and positives, shape (2, B+1).

    Examples
    --------
    >>> import numpy as np
    >>> knots = np.stack([np.linspace(1, 0, CELLS + 1), np.linspace(0, 1, CELLS + 1)])
    >>> reported_numbers(np.array([0.25, 0.25]), np.array([0, 1]), knots).tolist()
    [0.75, 0.25]
    """
    edges = np.arange(CELLS + 1) / CELLS
    negatives, positives = (np.interp(positions, edges, class_knots) for class_knots in knots)
    return np.where(labels == 1, positives, negatives)
