"""Randomised response on labels (Warner 1965)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.cost import check_epsilon
from tacit.privacy.noise import NoiseSource


def flip_probability(epsilon: float) -> float:
    """``1 / (1 + exp(epsilon))`` (paper 1, Eq. 2), never rounded to zero.

    Examples
    --------
    >>> round(flip_probability(1.0), 4)
    0.2689
    """
    check_epsilon(epsilon)
    ratio = math.exp(-epsilon)
    return max(ratio / (1 + ratio), math.ulp(0.0))


def response_variance(epsilon: float) -> float:
    """Variance of one debiased label, ``e^epsilon / (e^epsilon - 1)^2``.

    Equal to ``rho (1 - rho) / (1 - 2 rho)^2`` with the flip probability rho.

    Examples
    --------
    >>> round(response_variance(1.0), 4)
    0.9207
    """
    check_epsilon(epsilon)
    gap = math.expm1(-epsilon)
    return math.exp(-epsilon) / gap / gap


def flip_labels(labels: NDArray[np.int8], epsilon: float, noise: NoiseSource) -> NDArray[np.int8]:
    """Each label flipped independently with ``flip_probability(epsilon)``.

    Epsilon-private for one label: each output value is at most ``exp(epsilon)`` times as likely
    under one label as under the other (paper 1, Eq. 2). The result has the shape of ``labels``,
    after the replicate axis of ``noise`` if there is one.
    """
    flips = noise.bernoulli(flip_probability(epsilon), labels.size)
    return labels ^ flips.view(np.int8).reshape(noise.full_shape(labels.shape))
