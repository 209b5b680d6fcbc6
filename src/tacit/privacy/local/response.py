"""Randomised response on labels (Warner 1965)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.mechanisms.response import (
    RandomisedResponse,
    flip_probability,
    response_variance,
)
from tacit.privacy.sampling.noise import NoiseSource

__all__ = ["flip_labels", "flip_probability", "response_variance"]


def flip_labels(labels: NDArray[np.int8], epsilon: float, noise: NoiseSource) -> NDArray[np.int8]:
    """Each label flipped independently with ``flip_probability(epsilon)``.

    Epsilon-private for one label: each output value is at most ``exp(epsilon)`` times as likely
    under one label as under the other (Sun et al. 2022a, Eq. 2). The result has the shape of
    ``labels``, after the replicate axis of ``noise`` if there is one.
    """
    flips = noise.draw(RandomisedResponse(epsilon), labels.shape)
    return labels ^ flips.view(np.int8)
