"""The noise of pairs' values and of class sizes: what it protects, its variance, the debiasing, and
how epsilon is divided among them before any record is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Flags, Floats, Integers
from tacit.local.paired.kernels import BOUNDS
from tacit.privacy.mechanisms.laplace import DiscreteLaplace, PolyaShare
from tacit.privacy.mechanisms.response import RandomisedResponse
from tacit.privacy.noise import NoiseSource

LAPLACE, SHARED, RESPONSE = "laplace", "shared", "randomised-response"
NOISES = (LAPLACE, SHARED, RESPONSE)
BEST = "best"
"""Stands for the noise that suits the kernel."""

HALF = Fraction(1, 2)

MAX_MATCHINGS = 32
"""Largest number of pairs of a record by default."""

MAX_GIVEN_MATCHINGS = 2**16
"""Largest number of pairs of a record that may be given: epsilon is divided among them."""

PLANNED_VARIANCES = {"auc": 0.2, "collision": 0.2, "kendall": 0.2, "gini": 0.045}
"""``zeta_2 - 2 zeta_1`` over the squared range: the variance of one random matching's values.

Kernels of two values have a variance of up to 1/4; Gini's on uniform values ``1/18 - 2/180``.
"""

PLANNED_POSITIVE_FRACTION, PLANNED_AREA = 0.25, 0.75
"""Fraction of positives, and AUC, for which epsilon is divided."""

CLASS_FRACTIONS = np.geomspace(2.0**-8, 0.75, 64)
"""Fractions of epsilon that are compared for class sizes."""


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

    def applied(self, values: Integers, crossing: Flags, noise: NoiseSource) -> NDArray[Any]:
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
            return np.asarray((received - self.response.probability) / math.tanh(self.epsilon / 2))
        return received.astype(np.float64)


def noisy_counts(
    counts: Integers, sizes: Integers, epsilon: float, noise: NoiseSource
) -> NDArray[Any]:
    """What every client sends about its number of positives, shape (..., K).

    A client of several records adds discrete Laplace noise of scale ``1 / epsilon``; one with a
    single record flips its label with probability ``1 / (1 + exp(epsilon))``, which has half the
    variance. Epsilon either way: replacing a record moves one client's count by at most one.

    Parameters
    ----------
    counts, sizes : every client's positives and records, shape (K,).
    """
    lone = sizes == 1
    several = DiscreteLaplace(np.where(lone, 0.0, 1.0), epsilon)
    sent = counts + noise.draw(several, counts.shape)
    if lone.any():
        flipped = noise.draw(RandomisedResponse(epsilon), counts.shape)
        sent = np.where(lone & flipped, 1 - sent, sent)
    return np.asarray(sent, dtype=np.int64)


def counted_positives(
    sent: NDArray[Any], sizes: Integers, epsilon: float
) -> tuple[NDArray[np.float64], float]:
    """The number of positives of all clients without bias, shape (...), and its noise's variance.

    Examples
    --------
    >>> total, variance = counted_positives(np.array([40, 0]), np.array([90, 1]), epsilon=1.0)
    >>> round(float(total), 3), round(variance, 3)
    (39.418, 2.762)
    """
    lone = sizes == 1
    total = np.where(lone, PairNoise(RESPONSE, epsilon, 1).debiased(sent), sent).sum(axis=-1)
    return np.asarray(total, dtype=np.float64), count_variance(sizes, epsilon)


def count_variance(sizes: Integers, epsilon: float) -> float:
    """The variance of the noise in the number of positives of all clients."""
    lone = int(np.count_nonzero(sizes == 1))
    several = sizes.size - lone
    added = several * float(DiscreteLaplace(1.0, epsilon).variance)
    return added + lone * float(RandomisedResponse(epsilon).variance)


def kernel_width(kernel: str) -> int:
    """The largest change of a pair's kernel by one record, in the kernel's integers."""
    low, high = BOUNDS[kernel]
    return high - low


def best_matchings(kernel: str, epsilon: float, noise: str) -> int:
    """The number of matchings of least planned variance, at most ``MAX_MATCHINGS``.

    The mean over Q matchings of n records varies by ``2 / (Q n) (zeta_2 - 2 zeta_1 + v(epsilon /
    Q))``, v the variance of one value's noise (Theorem 5 of Bell et al. 2020 about this data's U).
    Noise of a divided epsilon grows faster than Q, so one matching is best until noise is the
    smaller part.

    Examples
    --------
    >>> [best_matchings("auc", epsilon, "randomised-response") for epsilon in (0.5, 2.0, 5.0, 10.0)]
    [1, 1, 2, 4]
    >>> [best_matchings("kendall", epsilon, "laplace") for epsilon in (2.0, 5.0, 10.0)]
    [1, 1, 2]
    """
    width = kernel_width(kernel)

    def planned(matchings: int) -> float:
        noisy = PairNoise(noise, epsilon / matchings, width).variance(1.0) / width**2
        return (PLANNED_VARIANCES[kernel] + noisy) / matchings

    return min(range(1, MAX_MATCHINGS + 1), key=planned)


def class_epsilon(epsilon: float, noise: str, matchings: int, sizes: Integers) -> float:
    """The fraction of epsilon for noisy class sizes: the one of least planned variance.

    The AUC's relative variance is that of the mean over pairs, with the rest of epsilon, plus
    ``((N - P) / (P N))^2`` times the noise of all clients' counts. Few clients with many records
    spend little.

    Parameters
    ----------
    sizes : every client's number of records, shape (K,).

    Examples
    --------
    >>> two, phones = np.array([5000, 5000]), np.ones(10_000, dtype=np.int64)
    >>> parts = [class_epsilon(2.0, "randomised-response", 1, sizes) for sizes in (two, phones)]
    >>> [round(part, 2) for part in parts]
    [0.1, 0.77]
    """
    records = int(sizes.sum())
    positives = PLANNED_POSITIVE_FRACTION * records
    negatives = (1 - PLANNED_POSITIVE_FRACTION) * records
    mixed = 2 * PLANNED_POSITIVE_FRACTION * (1 - PLANNED_POSITIVE_FRACTION)
    pairs = matchings * (records // 2) * (mixed * PLANNED_AREA) ** 2
    sensitivity = ((negatives - positives) / (positives * negatives)) ** 2

    def planned(fraction: float) -> float:
        pair_variance = PairNoise(noise, (1 - fraction) * epsilon / matchings, 1).variance(1.0)
        count_variance_sum = sensitivity * count_variance(sizes, fraction * epsilon)
        return (PLANNED_VARIANCES["auc"] + pair_variance) / pairs + count_variance_sum

    return float(epsilon * min(CLASS_FRACTIONS.tolist(), key=planned))
