"""The noise of single pairs' values: what it protects, its variance, and how it is taken out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.distributions import discrete_laplace_variance, shared_laplace_epsilon
from tacit.privacy.noise import NoiseSource
from tacit.privacy.response import flip_probability, response_variance

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bits = NDArray[np.bool_]

LAPLACE, SHARED, RESPONSE = "laplace", "shared", "randomised-response"
NOISES = (LAPLACE, SHARED, RESPONSE)

HALF = Fraction(1, 2)


@dataclass(frozen=True)
class PairNoise:
    """How a pair's integer value is randomised before anybody sees it.

    Between two clients ``"laplace"`` adds two draws of discrete Laplace noise, one of each client;
    ``"shared"`` adds two halves of one draw; ``"randomised-response"`` flips a bit by a coin that
    the joint computation throws and neither client learns. Inside one client a single whole draw
    is added, or the client flips the bit.

    Parameters
    ----------
    kind : one of ``NOISES``.
    epsilon : the budget of one pair.
    width : how far one record can move the value, at least 1; for randomised response exactly 1.

    Examples
    --------
    >>> [round(PairNoise(kind, 2.0, 1).variance(1.0), 3) for kind in NOISES]
    [0.724, 0.362, 0.181]
    >>> [round(PairNoise(kind, 2.0, 1).collusion_epsilon, 3) for kind in NOISES]
    [2.0, 2.691, 2.0]
    """

    kind: str
    epsilon: float
    width: int

    @property
    def scale(self) -> float:
        """The scale of one draw of discrete Laplace noise."""
        return self.width / self.epsilon

    @property
    def flip(self) -> float:
        """The probability that a bit is flipped."""
        return flip_probability(self.epsilon)

    @property
    def collusion_epsilon(self) -> float:
        """The epsilon of a pair against the server together with one of the pair's two clients.

        Such a client takes off the noise that it added itself. Under ``"laplace"`` the other's draw
        is left, a whole one, and under ``"randomised-response"`` a coin that it does not know.
        Under ``"shared"`` half a draw is left, which supports less (``shared_laplace_epsilon``).
        """
        if self.kind == SHARED:
            return shared_laplace_epsilon(self.scale, 0.5, self.width)
        return self.epsilon

    def variance(self, crossing: float) -> float:
        """The mean variance that noise adds to a pair's debiased value, in squared integers.

        Parameters
        ----------
        crossing : the share of the pairs that are between two clients.
        """
        if self.kind == RESPONSE:
            return response_variance(self.epsilon)
        once = float(discrete_laplace_variance(self.scale))
        return once * (1 + crossing) if self.kind == LAPLACE else once

    def applied(self, values: Integers, crossing: Bits, noise: NoiseSource) -> NDArray[Any]:
        """The values as the server sees them, shape (..., Q, m): integers, or bits as bytes.

        Epsilon for one pair whose value moves by at most ``width``. A discrete Laplace draw z has
        a probability in proportion to ``exp(-|z| / scale)``, which changes by a factor of at most
        ``exp(width / scale) = exp(epsilon)``; a second draw on top is post-processing. Two Polya
        halves (``NoiseSource.polya`` with the share ``HALF``) are together one such draw, so one is
        drawn here. A bit is flipped with probability
        ``1 / (1 + exp(epsilon))``, and either answer is at most ``exp(epsilon)`` times as likely
        under one bit as under the other.

        Parameters
        ----------
        values : the pairs' values, shape (..., Q, m).
        crossing : which pairs are between two clients, same shape.
        """
        shape = (int(values.shape[-2]), int(values.shape[-1]))
        if self.kind == RESPONSE:
            flips = noise.bernoulli(self.flip, math.prod(shape))
            return values.astype(np.uint8) ^ flips.reshape(noise.full_shape(shape))
        released = values + noise.discrete_laplace(self.scale, shape)
        if self.kind == LAPLACE:
            across = np.where(crossing, self.scale, 0.0)
            released = released + noise.discrete_laplace(across, shape)
        return released

    def debiased(self, received: NDArray[Any]) -> Floats:
        """Unbiased values from what the server received, of the same shape."""
        if self.kind == RESPONSE:
            return np.asarray((received - self.flip) / math.tanh(self.epsilon / 2))
        return received.astype(np.float64)
