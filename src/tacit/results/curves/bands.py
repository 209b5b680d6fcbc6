"""Curves with pointwise bands for both errors: those of privacy noise and of sampling."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import scipy

from tacit.arrays import Floats

Numbers = list[float | None]


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
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, both excluded, got {level}")
        reach = NormalDist().inv_cdf((1 + level) / 2)
        error = reach * np.hypot(self.privacy_error, self.sampling_error)
        return np.clip(self.value - error, 0.0, 1.0), np.clip(self.value + error, 0.0, 1.0)

    def within(self) -> Band:
        """The nearest rates in [0, 1], with the errors of the raw ones."""
        return Band(np.clip(self.value, 0.0, 1.0), self.privacy_error, self.sampling_error)

    def falling(self) -> Band:
        """The nearest rates in [0, 1] that fall from point to point."""
        if not np.isfinite(self.value).all():
            return self.within()
        fitted = scipy.optimize.isotonic_regression(self.value, increasing=False).x
        return Band(np.clip(fitted, 0.0, 1.0), self.privacy_error, self.sampling_error)

    def to_dict(self, name: str) -> dict[str, Numbers]:
        """The rates, their errors and 95 % band as lists, absent numbers null."""
        low, high = self.limits()
        return {
            name: numbers(self.value),
            f"{name}_privacy_error": numbers(self.privacy_error),
            f"{name}_sampling_error": numbers(self.sampling_error),
            f"{name}_low": numbers(low),
            f"{name}_high": numbers(high),
        }


@dataclass(frozen=True, eq=False)
class PrecisionRecall:
    """Precision and recall at ascending thresholds, shape (T,)."""

    thresholds: Floats
    recall: Band
    precision: Band

    def to_dict(self) -> dict[str, Numbers]:
        """The curve as lists of numbers."""
        return {
            "thresholds": numbers(self.thresholds),
            **self.recall.to_dict("recall"),
            **self.precision.to_dict("precision"),
        }


@dataclass(frozen=True, eq=False)
class Reliability:
    """The observed share of positives in buckets of ascending score, beside the predicted one.

    Parameters
    ----------
    low, high : the borders of the buckets, shape (T,).
    predicted : the mean score of each bucket's records.
    observed : the share of positives among them.
    records : the estimated number of records in each bucket.
    """

    low: Floats
    high: Floats
    predicted: Floats
    observed: Band
    records: Floats

    def to_dict(self) -> dict[str, Numbers]:
        """The diagram as lists of numbers."""
        return {
            "low": numbers(self.low),
            "high": numbers(self.high),
            "predicted": numbers(self.predicted),
            "records": numbers(self.records),
            **self.observed.to_dict("observed"),
        }


def numbers(values: Floats) -> Numbers:
    """A list for JSON; numbers that are not finite become None."""
    return [float(value) if np.isfinite(value) else None for value in values]
