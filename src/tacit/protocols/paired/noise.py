"""The noise of single pairs' values: what it protects, its variance, and the debiasing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.privacy.mechanisms.laplace import DiscreteLaplace, PolyaShare
from tacit.privacy.mechanisms.response import RandomisedResponse
from tacit.privacy.sampling.noise import NoiseSource

Bits = NDArray[np.bool_]

LAPLACE, SHARED, RESPONSE = "laplace", "shared", "randomised-response"
NOISES = (LAPLACE, SHARED, RESPONSE)

HALF = Fraction(1, 2)


@dataclass(frozen=True)
class PairNoise:
    """How a pair's integer value is randomised before any party sees it.

    Between two clients ``"laplace"`` adds two draws of discrete Laplace noise, one of each client;
    ``"shared"`` adds two halves of one draw; ``"randomised-response"`` flips a bit by a coin that
    the joint computation throws and neither client learns. Inside one client a single whole draw
    is added, or the client flips the bit.

    Parameters
    ----------
    kind : one of ``NOISES``.
    epsilon : the budget of one pair.
    width : the largest change of the value by one record, at least 1; for randomised response
        exactly 1.

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
    def whole(self) -> DiscreteLaplace:
        """One draw of discrete Laplace noise, which a value from inside a client has."""
        return DiscreteLaplace(self.width, self.epsilon)

    @property
    def part(self) -> DiscreteLaplace | PolyaShare:
        """The noise that each of two clients adds to the value of a pair between them."""
        if self.kind == SHARED:
            return PolyaShare(self.width, self.epsilon, HALF)
        return self.whole

    @property
    def response(self) -> RandomisedResponse:
        """The mechanism that flips a bit."""
        return RandomisedResponse(self.epsilon)

    @property
    def responds(self) -> bool:
        """Whether bits are flipped; else noise is added."""
        return self.kind == RESPONSE

    @property
    def scale(self) -> float:
        """The scale of one draw of discrete Laplace noise."""
        return float(self.whole.scale)

    @property
    def flip(self) -> float:
        """The probability that a bit is flipped."""
        return self.response.flip_probability

    @property
    def collusion_epsilon(self) -> float:
        """The epsilon of a pair against the server together with one of the pair's two clients.

        Such a client subtracts the noise that it added itself. Under ``"laplace"`` the other's draw
        remains, a whole one, and under ``"randomised-response"`` a coin that it does not know.
        Under ``"shared"`` half a draw remains, which supports less (``shared_laplace_epsilon``).
        """
        return self.epsilon if self.responds else float(self.part.loss(self.width))

    def variance(self, crossing: float) -> float:
        """The mean variance that noise adds to a pair's debiased value, in squared integers.

        Parameters
        ----------
        crossing : the fraction of the pairs that are between two clients.
        """
        if self.responds:
            return float(self.response.variance)
        once = float(self.whole.variance)
        return once * (1 + crossing) if self.kind == LAPLACE else once

    def applied(self, values: Integers, crossing: Bits, noise: NoiseSource) -> NDArray[Any]:
        """The values as the server sees them, shape (..., Q, m): integers, or bits as bytes.

        Epsilon for one pair whose value moves by at most ``width``. A discrete Laplace draw z has
        a probability in proportion to ``exp(-|z| / scale)``, which changes by a factor of at most
        ``exp(width / scale) = exp(epsilon)``; a second draw on top is post-processing. Two Polya
        halves (``part``, each of the share ``HALF``) are together one such draw, so one is
        drawn here. A bit is flipped with probability
        ``1 / (1 + exp(epsilon))``, and either answer is at most ``exp(epsilon)`` times as likely
        under one bit as under the other.

        Parameters
        ----------
        values : the pairs' values, shape (..., Q, m).
        crossing : which pairs are between two clients, same shape.
        """
        shape = (int(values.shape[-2]), int(values.shape[-1]))
        if self.responds:
            return values.astype(np.uint8) ^ noise.draw(self.response, shape)
        released = values + noise.draw(self.whole, shape)
        if self.kind == LAPLACE:
            across = DiscreteLaplace(np.where(crossing, self.width, 0), self.epsilon)
            released = released + noise.draw(across, shape)
        return released

    def debiased(self, received: NDArray[Any]) -> Floats:
        """Unbiased values from what the server received, of the same shape."""
        if self.responds:
            return np.asarray((received - self.flip) / math.tanh(self.epsilon / 2))
        return received.astype(np.float64)
