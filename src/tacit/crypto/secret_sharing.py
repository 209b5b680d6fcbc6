"""Shamir's secret sharing over GF(2**128), for many holders and many secrets at once.

A secret of 16-byte blocks is the constant term of a random polynomial of degree ``threshold - 1``
a block; a holder's share is the polynomial's value at the holder's point (Shamir 1979). Shares of
fewer holders than the threshold are independent of the secret, however much their holders compute.

The field is GF(2)[x] modulo ``x**128 + x**7 + x**2 + x + 1``, blocks are big-endian and points are
the integers read as polynomials: the shares are those of pycryptodome's ``Shamir``, with which
they can be recombined.
"""

from __future__ import annotations

import os
from functools import reduce
from operator import xor

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Octets = NDArray[np.uint8]
Points = NDArray[np.int64]

BLOCK = 16
"""Bytes of a field element."""

LOW = 2**128 - 1
MODULUS = 2**128 + 2**7 + 2**2 + 2 + 1
MAX_POINT = 2**16 - 1
OWNERS_AT_ONCE = 256
"""Secrets whose weights are computed together."""


def split(secret: bytes, points: Points, threshold: int) -> Octets:
    """Share a secret among holders, with coefficients from the operating system's entropy.

    Neither a branch nor an address depends on the secret or on the coefficients.

    Parameters
    ----------
    secret : its length is a multiple of 16 bytes.
    points : the holders' points, shape (n,), different and from 1 to 65,535.
    threshold : how many shares give the secret back, from 2 to n.

    Returns
    -------
    One share a holder, each as long as the secret, shape (n, bytes).

    Raises
    ------
    ValueError : for any other size, point or threshold.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([1, 2, 3])
    >>> shares = split(b"sixteen secrets!", points, threshold=2)
    >>> combine(points[None, 1:], shares[None, 1:]).tobytes()
    b'sixteen secrets!'
    """
    if len(secret) == 0 or len(secret) % BLOCK:
        raise ValueError(f"a secret must hold whole blocks of {BLOCK} bytes, got {len(secret)}")
    _check_points(points[None, :])
    if not 2 <= threshold <= points.size:
        raise ValueError(f"threshold must be from 2 to {points.size}, got {threshold}")
    drawn = np.frombuffer(os.urandom((threshold - 1) * len(secret)), dtype=np.uint8)
    constant = _words(np.frombuffer(secret, dtype=np.uint8))[:, None, :]
    coefficients = _words(drawn.reshape(threshold - 1, 1, len(secret)))
    factors = points.astype(np.uint64)[:, None]
    values = np.zeros((2, points.size, len(secret) // BLOCK), dtype=np.uint64)
    for place in range(threshold - 1):
        values = _scaled(values ^ coefficients[:, place], factors)
    return _octets(values ^ constant)


def combine(points: Points, shares: Octets) -> Octets:
    """The secrets of several owners, each from exactly as many shares as its threshold.

    Fewer shares, or a wrong one, give a wrong secret without a sign.

    Parameters
    ----------
    points : the points of the holders, shape (owners, threshold), different within a row.
    shares : their shares, shape (owners, threshold, bytes).

    Returns
    -------
    The secrets, shape (owners, bytes).

    Raises
    ------
    ValueError : for points that are out of range or appear twice in a row.
    """
    _check_points(points)
    secrets = [b""] * points.shape[0]
    for start in range(0, points.shape[0], OWNERS_AT_ONCE):
        rows = range(start, min(start + OWNERS_AT_ONCE, points.shape[0]))
        uppers, lowers = _lagrange(points[rows.start : rows.stop].astype(np.uint64))
        for row, upper, lower in zip(rows, uppers, lowers, strict=True):
            secrets[row] = _interpolated(upper, _inverses(lower), shares[row].tobytes())
    return np.frombuffer(b"".join(secrets), dtype=np.uint8).reshape(len(secrets), -1)


def _lagrange(points: Words) -> tuple[list[int], list[list[int]]]:
    """The weights at zero are ``upper / lower[j]`` (Lagrange), with ``upper`` the product of all
    points and ``lower[j]`` that of ``x_j`` and all ``x_m - x_j``."""
    upper = np.zeros((2, points.shape[0]), dtype=np.uint64)
    lower = np.zeros((2, *points.shape), dtype=np.uint64)
    upper[1], lower[1] = 1, 1
    for other in points.T:
        difference = points ^ other[:, None]
        upper = _scaled(upper, other)
        lower = _scaled(lower, np.where(difference == 0, points, difference))
    return _integers(upper), [_integers(lower[:, row]) for row in range(points.shape[0])]


def _interpolated(upper: int, inverses: list[int], shares: bytes) -> bytes:
    """One owner's secret, block by block."""
    size = len(shares) // len(inverses)
    blocks = []
    for start in range(0, size, BLOCK):
        values = (
            int.from_bytes(shares[place + start : place + start + BLOCK])
            for place in range(0, len(shares), size)
        )
        terms = (_product(value, other) for value, other in zip(values, inverses, strict=True))
        blocks.append(_product(upper, reduce(xor, terms)).to_bytes(BLOCK))
    return b"".join(blocks)


def _check_points(points: Points) -> None:
    outside = (points < 1) | (points > MAX_POINT)
    if np.any(outside):
        raise ValueError(f"points must be from 1 to {MAX_POINT}, got {points[outside][0]}")
    if np.any(np.diff(np.sort(points, axis=-1), axis=-1) == 0):
        raise ValueError("two shares have the same point")


def _words(octets: Octets) -> Words:
    """Blocks of bytes, shape (..., bytes), as high and low words, shape (2, ..., blocks)."""
    words = np.ascontiguousarray(octets).view(">u8").reshape(*octets.shape[:-1], -1, 2)
    return np.ascontiguousarray(np.moveaxis(words, -1, 0), dtype=np.uint64)


def _octets(words: Words) -> Octets:
    mixed = np.moveaxis(words, 0, -1).astype(">u8")
    return np.ascontiguousarray(mixed.reshape(*mixed.shape[:-2], -1)).view(np.uint8)


def _integers(words: Words) -> list[int]:
    high, low = words.tolist()
    return [a << 64 | b for a, b in zip(high, low, strict=True)]


def _scaled(values: Words, factors: Words) -> Words:
    """Elements, shape (2, ...), times public polynomials of degree below 16, shape (...)."""
    over, high, low = np.zeros_like(values[0]), np.zeros_like(values[0]), np.zeros_like(values[0])
    high ^= values[0] * (factors & np.uint64(1))
    low ^= values[1] * (factors & np.uint64(1))
    for bit in range(1, int(factors.max()).bit_length()):
        up, down = np.uint64(bit), np.uint64(64 - bit)
        chosen = factors >> up & np.uint64(1)
        over ^= (values[0] >> down) * chosen
        high ^= (values[0] << up | values[1] >> down) * chosen
        low ^= (values[1] << up) * chosen
    low ^= over ^ over << np.uint64(1) ^ over << np.uint64(2) ^ over << np.uint64(7)
    return np.stack([high, low])


def _product(left: int, right: int) -> int:
    """The product of two elements, by bytes of ``right``; not constant time, for the server."""
    multiples = [0, left]
    for bit in (1, 2, 3):
        multiples += [other ^ left << bit for other in multiples]
    product = 0
    for byte in right.to_bytes(BLOCK):
        product = product << 8 ^ multiples[byte >> 4] << 4 ^ multiples[byte & 15]
    return _reduced(_reduced(product))


def _reduced(value: int) -> int:
    """The same element with what passes bit 127 folded back once."""
    over = value >> 128
    return value & LOW ^ over ^ over << 1 ^ over << 2 ^ over << 7


def _inverses(values: list[int]) -> list[int]:
    """Inverses of nonzero elements by one inversion: of the product of all (Montgomery 1987)."""
    before = [1]
    for value in values:
        before.append(_product(before[-1], value))
    inverse, inverses = _inverse(before[-1]), []
    for value, product in zip(reversed(values), reversed(before[:-1]), strict=True):
        inverses.append(_product(inverse, product))
        inverse = _product(inverse, value)
    return inverses[::-1]


def _inverse(value: int) -> int:
    """One inverse, by Euclid's algorithm on polynomials."""
    rest, other, factor, cofactor = value, MODULUS, 1, 0
    while rest != 1:
        shift = other.bit_length() - rest.bit_length()
        if shift < 0:
            rest, other, factor, cofactor = other, rest, cofactor, factor
        else:
            other, cofactor = other ^ rest << shift, cofactor ^ factor << shift
    while factor > LOW:
        factor ^= MODULUS << factor.bit_length() - 129
    return factor
