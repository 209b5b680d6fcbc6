"""Refuses noise parameters outside the range in which the samplers are exact."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Floats, Integers

MAX_SCALE = 2.0**44
"""Largest scale of noise: it exceeds 2**53, and so float64, with probability ``exp(-2**9)``."""

MIN_STAIRCASE_EPSILON = 2.0**-30
"""Least epsilon of a staircase: below it rounding could make the outer part the likelier one."""


def checked_scale(values: ArrayLike, name: str) -> Floats:
    """Scales as float64, each from 0 to ``MAX_SCALE``."""
    numbers = np.asarray(values, dtype=np.float64)
    refused = ~((numbers >= 0) & (numbers <= MAX_SCALE))
    if np.any(refused):
        raise ValueError(f"{name} must be from 0 to 2**44, got {numbers[refused].flat[0]}")
    return numbers


def checked_epsilon(epsilon: ArrayLike, sensitivity: Integers | Floats) -> Floats:
    """Epsilon, refused out of range where the sensitivity is positive, and 1 where that is 0."""
    numbers, widths = np.broadcast_arrays(np.asarray(epsilon, dtype=np.float64), sensitivity)
    inside = np.isfinite(numbers) & (numbers >= MIN_STAIRCASE_EPSILON)
    refused = (widths > 0) & ~inside
    if np.any(refused):
        raise ValueError(
            f"epsilon must be finite and at least 2**-30, got {numbers[refused].flat[0]}"
        )
    allowed = np.where(widths > 0, numbers, 1.0)
    checked_scale(widths / allowed, "sensitivity / epsilon")
    return allowed


def checked_share(share: Fraction) -> Fraction:
    """A share of noise, above 0."""
    if share <= 0:
        raise ValueError(f"share must be above 0, got {share}")
    return share


def checked_bounds(bounds: ArrayLike) -> Integers:
    """Bounds of uniform integers, each at least 1."""
    limits = np.asarray(bounds, dtype=np.int64)
    if np.any(limits < 1):
        raise ValueError(f"bounds must be at least 1, got {limits.min()}")
    return limits


def check_probability(probability: float) -> None:
    """Refuse a probability outside [0, 1]."""
    if not 0 <= probability <= 1:
        raise ValueError(f"probability must be from 0 to 1, got {probability}")
