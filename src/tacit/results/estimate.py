"""An estimated figure with its errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, NamedTuple


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """A figure with its errors, each a standard deviation.

    Parameters
    ----------
    value : the estimate; NaN when the noise left no signal.
    privacy_error : the error that the privacy noise causes, about this data set's figure.
    sampling_error : the error of this data set's own figure about its population's.
    approximation_error : the error of measuring on thresholds or buckets instead of every score.
    bias : how far the value is expected to lie above the exact figure; intervals are centred on
        ``value - bias``.
    half_range : where it is known, the exact figure of these records lies so near to
        ``value - bias`` for certain: that is the interval, whatever level is asked for. None
        elsewhere.

    Examples
    --------
    >>> estimate = Estimate(0.75, privacy_error=0.003, sampling_error=0.004)
    >>> estimate.standard_error
    0.003
    >>> tuple(round(bound, 4) for bound in estimate.interval(0.95))
    (0.7441, 0.7559)
    >>> tuple(round(bound, 4) for bound in estimate.interval(0.95, about="population"))
    (0.7402, 0.7598)
    """

    value: float
    privacy_error: float
    sampling_error: float
    approximation_error: float = 0.0
    bias: float = 0.0
    half_range: float | None = None

    @property
    def standard_error(self) -> float:
        """The error about this data set's figure: privacy noise and approximation together."""
        return math.hypot(self.privacy_error, self.approximation_error)

    def interval(
        self, level: float = 0.95, about: Literal["data", "population"] = "data"
    ) -> Interval:
        """The normal interval that covers the figure with probability ``level``, or a certain one.

        ``about="data"`` asks about the exact figure of the data that was evaluated: only privacy
        noise and approximation count. ``about="population"`` adds the sampling error.

        Raises
        ------
        ValueError : for a level outside (0, 1) or an unknown ``about``.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, both excluded, got {level}")
        if about not in ("data", "population"):
            raise ValueError(f"an interval is about 'data' or 'population', got {about!r}")
        reach = self._reach(NormalDist().inv_cdf((1 + level) / 2), about == "population")
        centre = self.value - self.bias
        return Interval(centre - reach, centre + reach)

    def _reach(self, normal: float, population: bool) -> float:
        """Half the width of an interval of so many standard deviations.

        A certain range adds to the population's interval at its full width: nothing is known of
        where in it the figure lies.
        """
        if self.half_range is not None:
            return self.half_range + (normal * self.sampling_error if population else 0.0)
        sampling = self.sampling_error if population else 0.0
        return normal * math.hypot(self.standard_error, sampling)

    def to_dict(self) -> dict[str, float | list[float | None] | None]:
        """The ``auc`` entry of a result; figures that do not exist are null."""
        known = {} if self.half_range is None else {"half_range": finite(self.half_range)}
        return {
            "value": finite(self.value),
            "standard_error": finite(self.standard_error),
            "privacy_error": finite(self.privacy_error),
            "sampling_error": finite(self.sampling_error),
            "approximation_error": finite(self.approximation_error),
            "bias": finite(self.bias),
            **known,
            "interval": [finite(bound) for bound in self.interval(0.95)],
        }


def finite(value: float) -> float | None:
    """The number for JSON, None where it is not finite."""
    return float(value) if math.isfinite(value) else None
