"""A ROC curve with the errors of its coordinates.

Curves with pointwise bands for both errors: those of privacy noise and of sampling. Rates at every
threshold that a result knows, for its JSON. A ROC curve as a result writes it: at no more points
than a picture needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from statistics import NormalDist

import numpy as np
import scipy

from tacit.arrays import Floats
from tacit.metrics.functional import RATES, Functional, rate_name
from tacit.results.estimate import Estimate, Numbers, checked_level, numbers


@dataclass(frozen=True, eq=False)
class Band:
    """Rates with two errors each, all of shape (T,); NaN where a rate is undefined.

    Parameters
    ----------
    value : the rates.
    privacy_error : the standard deviations that the privacy noise causes.
    sampling_error : the standard errors of this data set's rates about its population's.
    """

    value: Floats
    privacy_error: Floats
    sampling_error: Floats

    def limits(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """The pointwise band about the population's rates, within [0, 1].

        Raises
        ------
        ValueError : for a level outside (0, 1).
        """
        reach = NormalDist().inv_cdf((1 + checked_level(level)) / 2)
        error = reach * np.hypot(self.privacy_error, self.sampling_error)
        return np.clip(self.value - error, 0.0, 1.0), np.clip(self.value + error, 0.0, 1.0)

    def within(self) -> Band:
        """The nearest rates in [0, 1], with the errors of the raw ones."""
        return replace(self, value=np.clip(self.value, 0.0, 1.0))

    def complement(self) -> Band:
        """The rates of the other outcome, each 1 less this one, with the same errors."""
        return replace(self, value=1 - self.value)

    def falling(self) -> Band:
        """The nearest rates in [0, 1] that fall from point to point."""
        if not np.isfinite(self.value).all():
            return self.within()
        fitted = scipy.optimize.isotonic_regression(self.value, increasing=False).x
        return replace(self, value=np.clip(fitted, 0.0, 1.0))

    def to_dict(self, name: str) -> dict[str, Numbers]:
        """The rates, their errors and 95 % band as lists, absent numbers null."""
        return {
            name: numbers(self.value),
            f"{name}_privacy_error": numbers(self.privacy_error),
            f"{name}_sampling_error": numbers(self.sampling_error),
            **self.limits_entry(name),
        }

    def limits_entry(self, name: str) -> dict[str, Numbers]:
        """The 95 % band alone as lists, absent numbers null."""
        low, high = self.limits()
        return {f"{name}_low": numbers(low), f"{name}_high": numbers(high)}


class _Columns:
    """Curves as lists of numbers; a band is its rates, their errors and its limits."""

    def to_dict(self) -> dict[str, Numbers]:
        """The curve as lists of numbers, absent ones null."""
        made: dict[str, Numbers] = {}
        known = {name: each for name, each in vars(self).items() if each is not None}
        for name, each in known.items():
            made |= each.to_dict(name) if isinstance(each, Band) else {name: numbers(each)}
        return made


@dataclass(frozen=True, eq=False)
class PrecisionRecall(_Columns):
    """Precision and recall at ascending thresholds, shape (T,)."""

    thresholds: Floats
    recall: Band
    precision: Band


@dataclass(frozen=True, eq=False)
class Reliability(_Columns):
    """The observed share of positives in buckets of ascending score, compared with the predicted
    one.

    Parameters
    ----------
    low, high : the borders of the buckets, shape (T,).
    predicted : the mean score of each bucket's records.
    records : the estimated number of records in each bucket.
    observed : the share of positives among them.
    """

    low: Floats
    high: Floats
    predicted: Floats
    records: Floats
    observed: Band


UNIT = (0.0, 1.0)
"""The range of rates and areas."""


@dataclass(frozen=True, eq=False)
class Curve(_Columns):
    """A ROC curve with the errors of its coordinates.

    Parameters
    ----------
    thresholds : shape (T,), ascending; a record is called positive when its score reaches it.
    false_positive_rate, true_positive_rate : shape (..., T).
    false_positive_error, true_positive_error : standard deviations of the same shape, by privacy
        noise.
    false_positive_sampling, true_positive_sampling : standard errors about the population's rates,
        where the protocol knows them.
    """

    thresholds: Floats
    false_positive_rate: Floats
    true_positive_rate: Floats
    false_positive_error: Floats
    true_positive_error: Floats
    false_positive_sampling: Floats | None = None
    true_positive_sampling: Floats | None = None

    @property
    def band(self) -> Band:
        """The true-positive rates with their errors."""
        return _band(self.true_positive_rate, self.true_positive_error, self.true_positive_sampling)

    def to_dict(self) -> dict[str, Numbers]:
        """The curve as lists of numbers, with the band of its true-positive rates."""
        return super().to_dict() | self.band.limits_entry("true_positive_rate")


WRITTEN_RATES = ("precision", "recall", "specificity", "accuracy", "f1")
"""The rates whose curves results hold, by the words of a result's file."""


def written_rates(counts: Floats, above: Floats) -> dict[str, Functional]:
    """The rates of ``WRITTEN_RATES`` from counts in cells, as ``metrics.functional`` has them.

    Parameters
    ----------
    counts : shape (2, B), or (T, 2, B) where every threshold has cells of its own.
    above : the part of each cell that reaches each threshold, shape (T, B), or (1, B) for all.
    """
    return {name: RATES[rate_name(name)](counts, above) for name in WRITTEN_RATES}


class RatesAt(dict[str, Estimate]):
    """Rates at one threshold by the names of ``metrics.functional``; read by either field's words.

    Examples
    --------
    >>> rates = RatesAt(sensitivity=Estimate(0.8, 0.01, 0.02))
    >>> rates["recall"].value, rates["Sensitivity"].value
    (0.8, 0.8)
    >>> print(rates)
    sensitivity  0.800 (0.780 to 0.820)
    """

    def __missing__(self, name: str) -> Estimate:
        return self[rate_name(name)]

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        lines = (f"{name.replace('_', ' '):{width}}  {rate}" for name, rate in self.items())
        return "\n".join(lines)


def rates_entry(thresholds: Floats, rates: Mapping[str, Band]) -> dict[str, Numbers]:
    """The ``rates`` entry of a result: each rate at each threshold with its 95 % interval.

    Parameters
    ----------
    thresholds : ascending, shape (T,).
    rates : the bands of ``WRITTEN_RATES`` by name, each of shape (T,).
    """
    entry = {"thresholds": numbers(thresholds)}
    for name in WRITTEN_RATES:
        entry |= {name: numbers(rates[name].value), **rates[name].limits_entry(name)}
    return entry


def rates_of_curve(curve: Curve, positives: float, negatives: float) -> dict[str, Band]:
    """The rates that follow from a ROC curve and the estimated sizes of both classes.

    Recall and specificity are the curve's own coordinates, with their errors. The others need the
    class sizes too, whose errors go with the curve's in a way that a curve does not say: they are
    given without an error, and without a value where a class size is not above 0.

    Examples
    --------
    >>> import numpy as np
    >>> half, none = np.array([0.5]), np.zeros(1)
    >>> curve = Curve(half, np.array([0.1]), np.array([0.8]), none, none)
    >>> rates = rates_of_curve(curve, 100, 800)
    >>> [round(float(rates[name].value[0]), 3) for name in WRITTEN_RATES]
    [0.5, 0.8, 0.9, 0.889, 0.615]
    """
    known = positives > 0 and negatives > 0
    sizes = np.array([[positives], [negatives]]) if known else np.full((2, 1), np.nan)
    rates = np.stack([curve.true_positive_rate, curve.false_positive_rate], axis=-1).clip(*UNIT)
    # every threshold has two cells of its own: the scores below it, and those from it on
    counts = np.stack([1 - rates, rates], axis=-1) * sizes
    made = written_rates(counts, np.array([[0.0, 1.0]]))
    unknown = np.full_like(curve.thresholds, np.nan)
    false = _band(
        curve.false_positive_rate, curve.false_positive_error, curve.false_positive_sampling
    )
    return {
        **{name: Band(rate.value, unknown, unknown) for name, rate in made.items()},
        "recall": curve.band.within(),
        "specificity": false.complement().within(),
    }


def _band(rate: Floats, privacy: Floats, sampling: Floats | None) -> Band:
    return Band(rate, privacy, np.zeros_like(rate) if sampling is None else sampling)


DRAWN = 500
"""Largest number of points of a curve that are written; the result itself has them all."""


def drawn(curve: Curve) -> Curve:
    """The curve at no more points than a picture needs, both ends among them."""
    size = curve.thresholds.size
    if size <= DRAWN:
        return curve
    indices = np.linspace(0, size - 1, DRAWN).round().astype(np.int64)
    named = [item.name for item in fields(curve) if getattr(curve, item.name) is not None]
    return replace(curve, **{name: getattr(curve, name)[..., indices] for name in named})
