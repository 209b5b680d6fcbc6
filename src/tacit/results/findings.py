"""What a protocol's server concludes: one estimate, or one a replicate."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from tacit.results.estimate import Estimate

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curve:
    """A ROC curve with the errors of its coordinates.

    Parameters
    ----------
    thresholds : shape (T,), ascending; a record is called positive when its score reaches it.
    false_positive_rate, true_positive_rate : shape (..., T).
    false_positive_error, true_positive_error : standard deviations of the same shape.
    """

    thresholds: Floats
    false_positive_rate: Floats
    true_positive_rate: Floats
    false_positive_error: Floats
    true_positive_error: Floats

    def to_dict(self) -> dict[str, list[float | None]]:
        """The curve as lists of numbers."""
        return {
            name: [float(v) if np.isfinite(v) else None for v in np.asarray(getattr(self, name))]
            for name in self.__dataclass_fields__
        }


@dataclass(frozen=True, eq=False)
class Findings:
    """The server's conclusions; every array has the replicate axis, or none.

    Parameters
    ----------
    value : the estimated AUC, shape () or (R,); NaN where the noise left no signal.
    privacy_error, sampling_error, approximation_error : standard deviations, same shape.
    positives, negatives : the estimated class sizes, same shape.
    positives_error : the standard deviation of ``positives`` by privacy noise.
    bias : how far the value is expected to lie above the exact figure, same shape.
    roc : the ROC curve, where the server's view allows one.
    warnings : sentences about this result; only written when there is no replicate axis.
    """

    value: Floats
    privacy_error: Floats
    sampling_error: Floats
    positives: Floats
    negatives: Floats
    positives_error: Floats | float = 0.0
    approximation_error: Floats | float = 0.0
    bias: Floats | float = 0.0
    roc: Curve | None = None
    warnings: tuple[str, ...] = ()

    def estimate(self) -> Estimate:
        """The findings of a single run as one estimate."""
        return Estimate(
            float(self.value),
            float(self.privacy_error),
            float(self.sampling_error),
            float(self.approximation_error),
            float(self.bias),
        )

    @property
    def standard_error(self) -> Floats:
        """Privacy and approximation error together, as in ``Estimate``."""
        return np.hypot(self.privacy_error, self.approximation_error)

    def covers(self, exact: float, level: float = 0.95) -> NDArray[np.bool_]:
        """Whether each interval of this level holds the exact figure."""
        reach = NormalDist().inv_cdf((1 + level) / 2) * self.standard_error
        return np.abs(self.value - self.bias - exact) <= reach
