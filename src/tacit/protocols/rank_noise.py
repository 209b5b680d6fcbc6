"""Noise for a client's pair (count of positives, residual rank sum), and its variance.

The residual is ``2 * sum((rank - pivot) * label)``, an integer, whose sensitivity to one label is
``max |2 rank - 2 pivot|``; the count's is 1. A *share* of the privacy budget protects the count and
the rest the residual.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.privacy.cost import Adjacency, Cost, analytic_gaussian_sigma, check_epsilon
from tacit.privacy.distributions import (
    discrete_laplace_variance,
    discrete_staircase_variance,
    staircase_variance,
)
from tacit.privacy.noise import NoiseSource, gaussian_delta
from tacit.protocols.rank_sums import ROUNDED_SUMS, WHOLE_SUMS

Floats = NDArray[np.float64]
Numbers = NDArray[Any]

ONE_RECORD: NDArray[np.int64] = np.array(1, dtype=np.int64)
"""A label's flip moves the count of positives by one."""

RESPONSE = "randomised-response"
PURE_MECHANISMS = ("staircase", "discrete-laplace", "laplace")
MECHANISMS = (*PURE_MECHANISMS, "gaussian", RESPONSE)


@dataclass(frozen=True)
class RankNoise:
    """A mechanism for the pair at a total (epsilon, delta).

    For the pure mechanisms the count costs ``share * epsilon`` and the residual the rest; the sum
    is epsilon by basic composition, and a client's records meet no other client's. For ``gaussian``
    the pair is one Gaussian mechanism: with ``mu = 1 / sigma`` of the analytic calibration, the
    squared ratios of sensitivity to noise add up to ``mu**2``, of which ``share`` is the count's.
    """

    mechanism: str
    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise ValueError(f"mechanism must be one of {MECHANISMS}, got {self.mechanism!r}")
        check_epsilon(self.epsilon)
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must be at least 0 and below 1, got {self.delta}")

    @property
    def largest_sum(self) -> int:
        """What a residual must stay below for the noise to be added to the exact one."""
        return ROUNDED_SUMS if self.mechanism in ("laplace", "gaussian") else WHOLE_SUMS

    @property
    def cost(self) -> Cost:
        """The guarantee of releasing the noisy pair."""
        if self.mechanism == "gaussian":
            rho = 0.5 / self._sigma**2
            return Cost(self.epsilon, self.delta, Adjacency.LABEL, rho)
        return Cost(self.epsilon, adjacency=Adjacency.LABEL)

    def noisy_count(
        self, noise: NoiseSource, count: Numbers, share: ArrayLike, shape: tuple[int, ...]
    ) -> Numbers:
        """The count plus its noise."""
        return count + self._draw(noise, ONE_RECORD, np.asarray(share), shape)

    def noisy_residual(
        self,
        noise: NoiseSource,
        residual: Numbers,
        sensitivity: Numbers,
        share: ArrayLike,
        shape: tuple[int, ...],
    ) -> Numbers:
        """The residual plus its noise; exact where its sensitivity is zero, as it is then zero."""
        return residual + self._draw(noise, sensitivity, 1.0 - np.asarray(share), shape)

    def count_variance(self, share: ArrayLike) -> Floats:
        """The variance of the count's noise."""
        return self._variance(ONE_RECORD, np.asarray(share, dtype=np.float64))

    def residual_variance(self, sensitivity: Numbers, share: ArrayLike) -> Floats:
        """The variance of the residual's noise, in squared doubled ranks."""
        rest = 1.0 - np.asarray(share, dtype=np.float64)
        return np.where(sensitivity > 0, self._variance(np.maximum(sensitivity, 1), rest), 0.0)

    def unit_variance(self, share: ArrayLike) -> Floats:
        """The variance of the residual's noise for a large sensitivity, divided by its square."""
        rest = (1.0 - np.asarray(share, dtype=np.float64)) * self.epsilon
        if self.mechanism == "gaussian":
            return self._sigma**2 * self.epsilon / rest
        return staircase_variance(rest) if self.mechanism == "staircase" else 2.0 / rest**2

    @property
    def _sigma(self) -> float:
        return analytic_gaussian_sigma(self.epsilon, gaussian_delta(self.epsilon, self.delta, 2))

    def _draw(
        self, noise: NoiseSource, sensitivity: Numbers, part: Floats, shape: tuple[int, ...]
    ) -> Numbers:
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.mechanism == "gaussian":
                sigma = self._sigma * sensitivity / np.sqrt(part)
                return noise.gaussian(np.where(sensitivity > 0, sigma, 0.0), shape)
            if self.mechanism == "staircase":
                return noise.discrete_staircase(sensitivity, part * self.epsilon, shape)
            scale = np.where(sensitivity > 0, sensitivity / (part * self.epsilon), 0.0)
        if self.mechanism == "discrete-laplace":
            return noise.discrete_laplace(scale, shape)
        return noise.laplace(scale, shape)

    def _variance(self, sensitivity: Numbers, part: Floats) -> Floats:
        with np.errstate(divide="ignore", over="ignore"):
            if self.mechanism == "gaussian":
                return (self._sigma * sensitivity) ** 2 / part
            if self.mechanism == "staircase":
                return discrete_staircase_variance(sensitivity, part * self.epsilon)
            scale = sensitivity / (part * self.epsilon)
            if self.mechanism == "discrete-laplace":
                return discrete_laplace_variance(scale)
            return 2.0 * scale**2
