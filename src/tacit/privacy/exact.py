"""Exact draws from the system's entropy: words, integers, discrete Laplace, Gaussian, staircases.

Refuses noise parameters outside the range in which the samplers are exact. Staircase noise on the
integers, drawn as a step, a part of it, an offset in it, and a sign. Continuous noise on a
power-of-two grid, so that no low bit betrays the statistic (Mironov 2012): the grid contains the
integers, on which the statistics lie.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Flags, Floats, Integers
from tacit.privacy.distributions import require, staircase_inner_width, whole_sensitivity

Words = NDArray[np.uint64]
Sampler = Callable[[float, int], Integers]

WORD = 64
"""Number of bits of a word."""

GUARD = 128
"""Number of bits beyond those of a table's entries with which their sums are computed."""

REACH = 30
"""Scales that a table reaches, and three more for each whole noise: less than ``exp(-REACH)`` of
draws lie beyond, and are made with integers."""

Extended = np.longdouble

MAX_SHARED_SCALE = 2.0**16
"""Largest scale of shares of noise: above it a table would have millions of entries."""

SCALE_SLACK = 1.0 + 2.0**-50
"""Factor on scales that are computed in floating point: rounding never costs privacy."""

GRID_BITS = 20
"""Binary logarithm of the ratio of a noise's scale to its power-of-two grid, at least."""

GAUSSIAN_GRID_BITS = 40
"""The same for Gaussian noise, where the grid adds a small part to delta."""

GAUSSIAN_DISTANCE = 2.0 ** (-2 * GAUSSIAN_GRID_BITS - 2)
"""Largest total variation between a drawn coordinate and a normal one rounded to the grid."""


def words(size: int) -> Words:
    """Independent uniform 64-bit words."""
    return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


def coins(size: int) -> Flags:
    """Independent fair bits."""
    return words(size) < np.uint64(2**63)


def uniform_below(bounds: Words) -> Words:
    """Independent integers, each uniform on ``0..bound-1``, without modulo bias.

    Words from the last, incomplete run of ``bound`` values are drawn again.
    """
    highest = np.uint64(2**64 - 1)
    incomplete = (highest % bounds + np.uint64(1)) % bounds
    draws = words(bounds.size).copy()
    todo = np.flatnonzero(draws > highest - incomplete)
    while todo.size:
        draws[todo] = words(todo.size)
        todo = todo[draws[todo] > highest - incomplete[todo]]
    return draws % bounds


def by_parameter(parameters: Floats, sampler: Sampler) -> Integers:
    """Draws with a parameter each, by one call of the sampler for each value; zero gives zero."""
    flat = parameters.ravel()
    draws = np.zeros(flat.size, dtype=np.int64)
    order = np.argsort(flat, kind="stable")
    values, starts = np.unique(flat[order], return_index=True)
    for value, indices in zip(values, np.split(order, starts)[1:], strict=True):
        if value > 0:
            draws[indices] = sampler(float(value) * SCALE_SLACK, indices.size)
    return draws.reshape(parameters.shape)


def geometric(rate: Floats) -> Integers:
    """Draws of k >= 0 with probability proportional to ``exp(-rate k)``.

    A discrete Laplace draw is folded in two: ``k = 0, 1, ...`` on the one side and ``-1-k`` on the
    other both have probabilities proportional to ``exp(-rate k)``.
    """
    laplace = by_parameter(1 / rate, discrete_laplace)
    return np.where(laplace < 0, -1 - laplace, laplace)


def polya(scale: float, share: Fraction, size: int) -> Integers:
    """Integers k >= 0 with probability ``C(k+r-1, k) (1-b)**r b**k``, ``b = exp(-1/scale)``.

    Inversion: a uniform number is compared with the distribution function, which a table gives up
    to a known error. Where the comparison is closer than that, it is made with integers, and both
    numbers get more digits until it is decided.
    """
    if scale > MAX_SHARED_SCALE * SCALE_SLACK:
        raise ValueError(f"shared noise has a scale of at most {MAX_SHARED_SCALE}, got {scale}")
    table, reach = _word_table(scale, share)
    drawn, error = words(size), np.uint64(reach)
    integers = np.searchsorted(table, drawn - error, side="right")
    upper = np.searchsorted(table, drawn + error, side="right")
    ends = (drawn < error) | (drawn > np.uint64(2**WORD - 1) - error)
    for index in np.flatnonzero((integers != upper) | (integers == table.size) | ends):
        integers[index] = _refined(scale, share, int(drawn[index]))
    return integers.astype(np.int64)


@lru_cache(maxsize=256)
def _word_table(scale: float, share: Fraction) -> tuple[Words, int]:
    """The distribution function in units of ``2**-WORD``, and by how many an entry may be off.

    With u the largest relative error of one operation, the quotient of two chances is off by at
    most 6 u: 2 u for ``k + r``, and 1 u each for the division and the product with b, which is
    itself 2 u off. A chance multiplies one quotient more with 1 u, and a sum of n positive chances
    adds n u. All together stay below ``8 (n + 1) u``, but for terms in u**2, far below a hundredth
    of that (Higham 2002, section 3.1). A first chance below the normal numbers has lost digits, so
    that the table decides nothing.
    """
    base, chance, places = _first_chance(scale, share, WORD + GUARD)
    entries = math.ceil((REACH + 3 * float(share)) * scale) + REACH
    chances = np.empty(entries, dtype=Extended)
    chances[0] = _extended(chance, places)
    # all in one array: noise of a large scale has a table of millions
    indices, steps = np.arange(1, entries, dtype=Extended), chances[1:]
    np.subtract(indices, 1, out=steps)
    steps += Extended(share.numerator) / Extended(share.denominator)
    steps /= indices
    steps *= _extended(base, places)
    del indices
    relative = float(np.finfo(Extended).eps) / 2
    error = 1.01 * 8 * (entries + 1) * relative
    if chances[0] < np.finfo(Extended).tiny:
        error = 0.5
    below = np.multiply.accumulate(chances, out=chances)
    np.add.accumulate(below, out=below)
    np.minimum(below, np.nextafter(Extended(1), Extended(0)), out=below)
    return np.ldexp(below, WORD, out=below).astype(np.uint64), math.ceil(error * 2**WORD) + 1


def _extended(number: int, places: int) -> Any:
    """``number / 2**places``, off by less than ``2**-63`` of itself."""
    shift = number.bit_length() - WORD
    leading = number >> shift if shift > 0 else number << -shift
    return np.ldexp(np.array(leading, dtype=np.uint64).astype(Extended), shift - places)


def _refined(scale: float, share: Fraction, number: int) -> int:
    """The draw of a uniform number whose first word the table does not decide.

    All entries are compared, so that the time does not reveal where the draw lies.
    """
    bits = WORD
    while True:
        surely = perhaps = entries = 0
        for entry in _entries(scale, share, bits):
            surely += entry <= number - 1
            perhaps += entry <= number + 1
            entries += 1
        if surely == perhaps < entries:
            return surely
        number, bits = number << WORD | int(words(1)[0]), bits + WORD


def _entries(scale: float, share: Fraction, bits: int) -> Iterator[int]:
    """The distribution function in units of ``2**-bits``, each entry less than a unit off.

    Integers count units of ``2**-places``, so that no library rounds. A step rounds the next chance
    down by at most 3 such units; later steps multiply a loss by at most ``1 / chance``, of the
    first chance. A sum of n chances is therefore too small by less than ``2 n**2 / chance`` units,
    which for ten million entries is below ``2**-80`` of an entry's unit: see ``GUARD``.
    """
    base, chance, places = _first_chance(scale, share, bits + GUARD)
    numerator, denominator = share.numerator, share.denominator
    last, beyond = 2**bits - 1, places - bits
    cumulative, entry, index = 0, 0, 0
    while entry < last:
        cumulative += chance
        entry = min(cumulative >> beyond, last)
        yield entry
        ratio = index * denominator + numerator
        index += 1
        chance = (chance * base >> places) * ratio // (index * denominator)


def _first_chance(scale: float, share: Fraction, places: int) -> tuple[int, int, int]:
    """``b`` and ``(1-b)**r`` in units of ``2**-places``, rounded down, and these places.

    A small chance gets so many more places that it has the precision of a large one.
    """
    places += math.ceil(-math.log2(-math.expm1(-1 / scale)) * share)
    with localcontext() as context:
        context.prec = 30 + places // 3
        base = (-1 / Decimal(scale)).exp()
        shape = Decimal(share.numerator) / Decimal(share.denominator)
        unit = Decimal(2) ** places
        return int(base * unit), int(((1 - base).ln() * shape).exp() * unit), places


def discrete_laplace(scale: float, size: int) -> Integers:
    """Integers with probability proportional to ``exp(-|z| / scale)``."""
    return _noisy_zeros("make_laplace", scale, "l1_distance", "i64", size)


def discrete_gaussian(sigma: float, size: int) -> Integers:
    """Integers with probability proportional to ``exp(-z**2 / (2 sigma**2))``."""
    return _noisy_zeros("make_gaussian", sigma, "l2_distance", "f64", size)


def _noisy_zeros(make: str, scale: float, distance: str, number: str, size: int) -> Integers:
    # opendp.prelude would import scikit-learn and Polars too, where they are installed.
    from opendp import domains, measurements, metrics, mod  # noqa: PLC0415 -- half a second

    mod.enable_features("contrib")
    domain = domains.vector_domain(domains.atom_domain(T="i64"))
    metric = getattr(metrics, distance)(T=number)
    measurement: Any = getattr(measurements, make)(domain, metric, scale=scale)
    return np.array(measurement([0] * size), dtype=np.int64)


MAX_SCALE = 2.0**44
"""Largest scale of noise: it exceeds 2**53, and so float64, with probability ``exp(-2**9)``."""

MIN_STAIRCASE_EPSILON = 2.0**-30
"""Least epsilon of a staircase: below it rounding could make the outer part the likelier one."""


def checked_scale(values: ArrayLike, name: str) -> Floats:
    """Scales as float64, each from 0 to ``MAX_SCALE``."""
    numbers = np.asarray(values, dtype=np.float64)
    require((numbers >= 0) & (numbers <= MAX_SCALE), numbers, f"{name} must be from 0 to 2**44")
    return numbers


def checked_epsilon(epsilon: ArrayLike, sensitivity: Integers | Floats) -> Floats:
    """Epsilon, refused out of range where the sensitivity is positive, and 1 where that is 0."""
    numbers, widths = np.broadcast_arrays(np.asarray(epsilon, dtype=np.float64), sensitivity)
    inside = np.isfinite(numbers) & (numbers >= MIN_STAIRCASE_EPSILON)
    require((widths == 0) | inside, numbers, "epsilon must be finite and at least 2**-30")
    allowed = np.where(widths > 0, numbers, 1.0)
    checked_scale(widths / allowed, "sensitivity / epsilon")
    return allowed


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
        """The probability of a step's outer part, which is ``exp(-epsilon)`` times as dense."""
        outer = np.exp(-self.epsilon) * (self.width - self.inner)
        return np.asarray(outer / (outer + self.inner), dtype=np.float64)

    def signed(
        self, magnitude: Callable[[Stairs], Integers], coins: Callable[[int], Flags], shape: Shape
    ) -> Integers:
        """Magnitudes with fair signs; minus zero is drawn again, so that zero counts once."""
        draws = np.zeros(math.prod(shape), dtype=np.int64)
        stairs = self
        while stairs.indices.size:
            size, negative = magnitude(stairs), coins(stairs.indices.size)
            draws[stairs.indices] = np.where(negative, -size, size)
            stairs = stairs.only(negative & (size == 0))
        return draws.reshape(shape)

    def only(self, selected: Flags) -> Stairs:
        """Some of the staircases."""
        return Stairs(*(getattr(self, field.name)[selected] for field in fields(self)))


def outer_threshold(stairs: Stairs) -> NDArray[np.uint64]:
    """How many of 2**64 words choose the outer part: rounded up, 0 where it has no width."""
    threshold = np.ceil(stairs.outer_probability * OUTER_SLACK * 2.0**64)
    return np.where(stairs.width > stairs.inner, np.maximum(threshold, 1), 0).astype(np.uint64)


def exact_magnitude(stairs: Stairs) -> Integers:
    """Sizes of the noise, from operating-system entropy."""
    outer = words(stairs.width.size) < outer_threshold(stairs)
    count = np.where(outer, stairs.width - stairs.inner, stairs.inner)
    offset = uniform_below(count.astype(np.uint64)).astype(np.int64)
    step = geometric(stairs.epsilon)
    return step * stairs.width + np.where(outer, stairs.inner, 0) + offset


def on_grid(scale: Floats, shape: tuple[int, ...], bits: int, sampler: Sampler) -> Floats:
    """Exact draws of this scale on its grid."""
    grid = power_of_two_grid(scale, bits)
    steps = by_parameter(np.broadcast_to(scale / grid, shape), sampler)
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
