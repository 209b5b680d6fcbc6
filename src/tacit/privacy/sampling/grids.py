"""Continuous noise on a power-of-two grid, so that no low bit betrays the statistic (Mironov 2012).

The grid contains the integers, on which the statistics lie.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Floats
from tacit.privacy.sampling import exact

GRID_BITS = 20
"""Binary logarithm of the ratio of a noise's scale to its power-of-two grid, at least."""

GAUSSIAN_GRID_BITS = 40
"""The same for Gaussian noise, where the grid adds a small part to delta."""

GAUSSIAN_DISTANCE = 2.0 ** (-2 * GAUSSIAN_GRID_BITS - 2)
"""Largest total variation between a drawn coordinate and a normal one rounded to the grid."""


def on_grid(scale: Floats, shape: tuple[int, ...], bits: int, sampler: exact.Sampler) -> Floats:
    """Exact draws of this scale on its grid."""
    grid = power_of_two_grid(scale, bits)
    steps = exact.by_parameter(np.broadcast_to(scale / grid, shape), sampler)
    return steps * grid


def gaussian_delta(epsilon: float, delta: float, coordinates: int) -> float:
    """The delta at which to calibrate normal noise, so that its grid stays within ``delta``.

    Each coordinate's distance from a rounded normal enters delta ``1 + exp(epsilon)`` times.

    Raises
    ------
    ValueError : when that is more than a millionth of delta.
    """
    grid = coordinates * GAUSSIAN_DISTANCE * (1 + np.exp(min(epsilon, 700.0)))
    if grid > delta * 1e-6:
        raise ValueError(
            f"delta must be at least {grid * 1e6:.1e} for gaussian noise at epsilon {epsilon} on "
            f"{coordinates} numbers, got {delta}"
        )
    return float(delta - grid)


def power_of_two_grid(scale: ArrayLike, bits: int = GRID_BITS) -> Floats:
    """The grid of noise of this scale: at most 1, and a power of two.

    Examples
    --------
    >>> float(power_of_two_grid(1.5)) == 2.0**-20
    True
    """
    scales = np.asarray(scale, dtype=np.float64)
    exponent = np.frexp(scales)[1] - 1 - bits
    return np.where(scales > 0, np.ldexp(1.0, np.clip(exponent, -1022, 0)), 1.0)
