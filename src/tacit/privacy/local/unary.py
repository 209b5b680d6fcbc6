"""Optimal unary encoding (Wang et al. 2017): a bit for every value, set at random."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.cost import check_epsilon
from tacit.privacy.mechanisms.choices import Bits
from tacit.privacy.mechanisms.response import RandomisedResponse, flip_probability
from tacit.privacy.sampling.noise import NoiseSource

Booleans = NDArray[np.bool_]

SET_PROBABILITY = 0.5
"""Probability that the bit of the record's value is set."""

SET_BIT_VARIANCE = 1.0
"""Variance that a report adds to the count of its value, less the variance that it adds to another
count: ``(1/4 - q (1-q)) / (1/2 - q)^2``, which is 1 at every epsilon."""


def unary_bits(
    values: NDArray[np.int64], size: int, epsilon: float, noise: NoiseSource
) -> Booleans:
    """Every value as ``size`` bits, shape (n, size), after the replicate axis if there is one.

    Values are of shape (n,), or (R, n) where each replicate has its own.

    The bit of the value is set with probability 1/2, every other with ``q = 1 / (1 + e^epsilon)``.
    Two values differ in two bits. The report with the largest ratio has one set and the other not,
    and is ``(1/2) / q * (1 - q) / (1/2) = (1 - q) / q = e^epsilon`` times as likely under one value
    as under the other: epsilon for a value's replacement by any other. A ``q`` that is rounded
    towards 1/2, as the exact source does, only lowers that.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy.sampling.noise import SimulatedNoise
    >>> unary_bits(np.array([2, 0]), 4, 1.0, SimulatedNoise(0)).shape
    (2, 4)
    """
    count = values.shape[-1]
    bits = noise.draw(RandomisedResponse(epsilon), (count, size))
    value_bits = ~noise.draw(Bits(1 - SET_PROBABILITY), (count,))
    places = np.broadcast_to(values, value_bits.shape)[..., np.newaxis]
    np.put_along_axis(bits, places, value_bits[..., np.newaxis], axis=-1)
    return bits


def simulated_unary_counts(
    held: NDArray[np.int64], epsilon: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """How many reports of so many records set each bit, shape (size,), in one draw.

    The bits of a report are independent, so the counts are too: binomial with 1/2 for those that
    hold the value, and with q for all others. For simulation.

    Parameters
    ----------
    held : how many records hold each value, shape (size,).
    epsilon : of one report.
    rng : draws.
    """
    true_bits = rng.binomial(held, SET_PROBABILITY)
    flipped_bits = rng.binomial(held.sum() - held, flip_probability(epsilon))
    return np.asarray(true_bits + flipped_bits, dtype=np.int64)


def unary_counts(
    reported: NDArray[np.int64], reports: NDArray[np.int64] | int, epsilon: float
) -> NDArray[np.float64]:
    """Unbiased numbers of records with every value, from the numbers of set bits.

    ``(count - n q) / (1/2 - q)`` (Wang et al. 2017, Eq. 2).
    """
    q = flip_probability(epsilon)
    return np.asarray((reported - reports * q) / (SET_PROBABILITY - q), dtype=np.float64)


def unary_variance(epsilon: float) -> float:
    """The variance that a report adds to the count of another value than its own.

    ``q (1-q) / (1/2 - q)^2 = 4 e^epsilon / (e^epsilon - 1)^2`` (Wang et al. 2017, Eq. 9).

    Examples
    --------
    >>> round(unary_variance(1.0), 4)
    3.6827
    """
    check_epsilon(epsilon)
    gap = math.expm1(-epsilon)
    return 4 * math.exp(-epsilon) / gap / gap
