"""A ROC curve with the errors of its coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats
from tacit.results.curves.bands import Band, numbers

UNIT = (0.0, 1.0)
"""The range of rates and areas."""


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
