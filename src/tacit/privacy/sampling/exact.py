"""Exact draws from operating-system entropy: words, integers, discrete Laplace and Gaussian."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers

Words = NDArray[np.uint64]
Bits = NDArray[np.bool_]
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


def words(size: int) -> Words:
    """Independent uniform 64-bit words."""
    return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


def coins(size: int) -> Bits:
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
    indices = np.arange(1, entries, dtype=Extended)
    steps = (indices - 1 + Extended(share.numerator) / Extended(share.denominator)) / indices
    steps *= _extended(base, places)
    chances = np.multiply.accumulate(np.concatenate([[_extended(chance, places)], steps]))
    below = np.minimum(np.add.accumulate(chances), np.nextafter(Extended(1), Extended(0)))
    relative = float(np.finfo(Extended).eps) / 2
    error = 1.01 * 8 * (below.size + 1) * relative
    if chances[0] < np.finfo(Extended).tiny:
        error = 0.5
    return np.ldexp(below, WORD).astype(np.uint64), math.ceil(error * 2**WORD) + 1


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
