"""Noisy numbers of positive records: counts of clients, or the flipped label of a lone record."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.privacy.mechanisms.laplace import DiscreteLaplace
from tacit.privacy.mechanisms.response import (
    RandomisedResponse,
    flip_probability,
    response_variance,
)
from tacit.privacy.sampling.noise import NoiseSource


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
    debiased = (sent - flip_probability(epsilon)) / math.tanh(epsilon / 2)
    total = np.where(lone, debiased, sent).sum(axis=-1)
    return np.asarray(total, dtype=np.float64), count_variance(sizes, epsilon)


def count_variance(sizes: Integers, epsilon: float) -> float:
    """The variance of the noise in the number of positives of all clients."""
    lone = int(np.count_nonzero(sizes == 1))
    several = sizes.size - lone
    added = several * float(DiscreteLaplace(1.0, epsilon).variance)
    return added + lone * response_variance(epsilon)
