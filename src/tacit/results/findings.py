"""What a protocol's server concludes: one estimate, or one a replicate."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.data.scales import ScaleDifference
from tacit.privacy.cost import Cost
from tacit.results.bands import Band, numbers
from tacit.results.estimate import Estimate

if TYPE_CHECKING:
    from tacit.results.histogram import Histogram

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curve:
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
        sampling = self.true_positive_sampling
        known = np.zeros_like(self.true_positive_rate) if sampling is None else sampling
        return Band(self.true_positive_rate, self.true_positive_error, known)

    def to_dict(self) -> dict[str, list[float | None]]:
        """The curve as lists of numbers."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: numbers(values) for name, values in fields.items() if values is not None}


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
    half_range : where it is known, the exact figure lies so near to the value for certain, same
        shape; NaN elsewhere.
    roc : the ROC curve, where the server's view allows one.
    histogram : both classes' score histograms, where the server has them.
    protection : what the noise that arrived supports, where that is less than what clients spent.
    warnings : sentences about this result; only written when there is no replicate axis.
    scales : clients whose scores are evidently of another scale, where the server saw scores.
    """

    value: Floats
    privacy_error: Floats
    sampling_error: Floats
    positives: Floats
    negatives: Floats
    positives_error: Floats | float = 0.0
    approximation_error: Floats | float = 0.0
    bias: Floats | float = 0.0
    half_range: Floats | float = np.nan
    roc: Curve | None = None
    histogram: Histogram | None = None
    protection: Cost | None = None
    warnings: tuple[str, ...] = ()
    scales: ScaleDifference | None = None

    def warnings_to(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """All that a reader must know, with the clients called by these names.

        Parameters
        ----------
        names : one a client, in the order of their replies; where empty they are numbered.
        """
        if self.scales is None:
            return self.warnings
        told = f"{self.scales.sentence(names)}; then the figure is wrong: name each client's unit"
        return (told, *self.warnings)

    def estimate(self) -> Estimate:
        """The findings of a single run as one estimate."""
        return Estimate(
            float(self.value),
            float(self.privacy_error),
            float(self.sampling_error),
            float(self.approximation_error),
            float(self.bias),
            half_range=None if np.isnan(self.half_range) else float(self.half_range),
        )

    @property
    def standard_error(self) -> Floats:
        """Privacy and approximation error together, as in ``Estimate``."""
        return np.hypot(self.privacy_error, self.approximation_error)

    def covers(self, exact: float, level: float = 0.95) -> NDArray[np.bool_]:
        """Whether each interval of this level holds the exact figure."""
        normal = NormalDist().inv_cdf((1 + level) / 2) * self.standard_error
        reach = np.where(np.isnan(self.half_range), normal, self.half_range)
        return np.abs(self.value - self.bias - exact) <= reach
