"""Staircase noise on the integers, drawn as a step, a part of it, an offset in it, and a sign."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Floats, Integers
from tacit.privacy.sampling import exact
from tacit.privacy.sampling.checks import checked_epsilon
from tacit.privacy.sampling.distributions import staircase_inner_width, whole_sensitivity

Bits = NDArray[np.bool_]
Shape = tuple[int, ...]

OUTER_SLACK = 1.0 + 2.0**-40
"""Factor on the probability of the outer part: the increase exceeds its rounding error."""


@dataclass(frozen=True)
class Stairs:
    """The staircases of positive sensitivity in a broadcast draw, flattened.

    Parameters
    ----------
    indices : the index of each in the flattened draw.
    width : the sensitivity, which is the width of a step.
    inner : the width of the inner part of a step.
    """

    indices: NDArray[np.intp]
    width: Integers
    inner: Integers
    epsilon: Floats

    @classmethod
    def broadcast(cls, sensitivity: ArrayLike, epsilon: ArrayLike, shape: Shape) -> Stairs:
        """The staircases of these parameters, after checking them."""
        width = whole_sensitivity(sensitivity)
        epsilons = checked_epsilon(epsilon, width)
        inner = np.broadcast_to(staircase_inner_width(width, epsilons), shape)
        width, epsilons = np.broadcast_to(width, shape), np.broadcast_to(epsilons, shape)
        indices = np.flatnonzero(width)
        return cls(
            indices, width.ravel()[indices], inner.ravel()[indices], epsilons.ravel()[indices]
        )

    @property
    def outer_probability(self) -> Floats:
        """The probability of the outer part of a step."""
        return outer_probability(self.width, self.inner, self.epsilon)

    def signed(
        self, magnitude: Callable[[Stairs], Integers], coins: Callable[[int], Bits], shape: Shape
    ) -> Integers:
        """Magnitudes with fair signs; minus zero is drawn again, so that zero counts once."""
        draws = np.zeros(math.prod(shape), dtype=np.int64)
        stairs = self
        while stairs.indices.size:
            size, negative = magnitude(stairs), coins(stairs.indices.size)
            draws[stairs.indices] = np.where(negative, -size, size)
            stairs = stairs.only(negative & (size == 0))
        return draws.reshape(shape)

    def only(self, selected: Bits) -> Stairs:
        """Some of the staircases."""
        return Stairs(
            self.indices[selected],
            self.width[selected],
            self.inner[selected],
            self.epsilon[selected],
        )


def outer_probability(width: ArrayLike, inner: ArrayLike, epsilon: ArrayLike) -> Floats:
    """The probability of a step's outer part, which is ``exp(-epsilon)`` times as dense."""
    outer = np.exp(np.negative(epsilon)) * np.subtract(width, inner)
    return np.asarray(outer / (outer + inner), dtype=np.float64)


def outer_threshold(stairs: Stairs) -> NDArray[np.uint64]:
    """How many of 2**64 words choose the outer part: rounded up, 0 where it has no width."""
    threshold = np.ceil(stairs.outer_probability * OUTER_SLACK * 2.0**64)
    return np.where(stairs.width > stairs.inner, np.maximum(threshold, 1), 0).astype(np.uint64)


def exact_magnitude(stairs: Stairs) -> Integers:
    """Sizes of the noise, from operating-system entropy."""
    outer = exact.words(stairs.width.size) < outer_threshold(stairs)
    count = np.where(outer, stairs.width - stairs.inner, stairs.inner)
    offset = exact.uniform_below(count.astype(np.uint64)).astype(np.int64)
    step = exact.geometric(stairs.epsilon)
    return step * stairs.width + np.where(outer, stairs.inner, 0) + offset
