"""Shamir's secret sharing over GF(2**128), for many receivers and many secrets at once.

A secret of 16-byte blocks is the constant term of a random polynomial of degree ``threshold - 1``
a block; a receiver's share is the polynomial's value at the receiver's point (Shamir 1979). Shares
of fewer receivers than the threshold are independent of the secret, however much their receivers
compute.

The field is GF(2)[x] modulo ``x**128 + x**7 + x**2 + x + 1``, blocks are big-endian and points are
the integers read as polynomials: the shares are those of pycryptodome's ``Shamir``, with which
they can be recombined.

The shares of a client's two secrets: encrypted for each receiver, and revealed by halves.
"""

from __future__ import annotations

import os
import struct

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from numpy.typing import NDArray

from tacit.crypto.secure_sum.masking import SEED_BYTES, derive

Words = NDArray[np.uint64]
Octets = NDArray[np.uint8]
Points = NDArray[np.int64]

BLOCK = 16
"""Bytes of a field element."""

MODULUS = 2**128 + 2**7 + 2**2 + 2 + 1
MAX_POINT = 2**16 - 1
PIECE = 16
LAST_PIECE = np.uint64(2**PIECE - 1)
ONE = np.array([[0], [1]], dtype=np.uint64)
MAX_ONE_BY_ONE = 16
"""Largest number of elements that are inverted one by one."""
OWNERS_AT_ONCE = 256
"""Number of secrets that are combined together."""


def split(secret: bytes, points: Points, threshold: int) -> Octets:
    """Share a secret among receivers, with coefficients from the operating system's entropy.

    Neither a branch nor an address depends on the secret or on the coefficients.

    Parameters
    ----------
    secret : its length is a multiple of 16 bytes.
    points : the receivers' points, shape (n,), different and from 1 to 65,535.
    threshold : how many shares give the secret back, from 2 to n.

    Returns
    -------
    One share a receiver, each as long as the secret, shape (n, bytes).

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
    for power in range(threshold - 1):
        values = _scaled(values ^ coefficients[:, power], factors)
    return _octets(values ^ constant)


def combine(points: Points, shares: Octets) -> Octets:
    """The secrets of several owners, each from exactly as many shares as its threshold.

    Fewer shares, or a wrong share, give a wrong secret, and no error.

    Parameters
    ----------
    points : the points of the receivers, shape (owners, threshold), different within a row.
    shares : their shares, shape (owners, threshold, bytes).

    Returns
    -------
    The secrets, shape (owners, bytes).

    Raises
    ------
    ValueError : for points that are out of range or appear twice in a row.
    """
    _check_points(points)
    secrets = []
    for start in range(0, points.shape[0], OWNERS_AT_ONCE):
        rows = slice(start, start + OWNERS_AT_ONCE)
        upper, lower = _lagrange(points[rows].astype(np.uint64))
        inverses = _inverses(lower.reshape(2, -1)).reshape(lower.shape)
        terms = _product(_words(shares[rows]), inverses[..., None])
        added = np.bitwise_xor.reduce(terms, axis=-2)
        secrets.append(_octets(_product(added, upper[..., None])))
    return np.concatenate(secrets)


def _lagrange(points: Words) -> tuple[Words, Words]:
    """The weights at zero are ``upper / lower[j]`` (Lagrange), with ``upper`` the product of all
    points and ``lower[j]`` that of ``x_j`` and all ``x_m - x_j``; shapes (2, owners) and
    (2, owners, threshold)."""
    upper = np.zeros((2, points.shape[0]), dtype=np.uint64)
    lower = np.zeros((2, *points.shape), dtype=np.uint64)
    upper[1], lower[1] = 1, 1
    for other in points.T:
        difference = points ^ other[:, None]
        upper = _scaled(upper, other)
        lower = _scaled(lower, np.where(difference == 0, points, difference))
    return upper, lower


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


def _scaled(values: Words, factors: Words) -> Words:
    """Elements, shape (2, ...), times public polynomials of degree below 16, shape (...)."""
    wide = np.zeros((3, *values.shape[1:]), dtype=np.uint64)
    np.multiply(values, factors & np.uint64(1), out=wide[1:])
    for bit in range(1, int(factors.max()).bit_length()):
        chosen = factors >> np.uint64(bit) & np.uint64(1)
        wide[1:] ^= (values << np.uint64(bit)) * chosen
        wide[:2] ^= (values >> np.uint64(64 - bit)) * chosen
    wide[2] ^= _folded(wide[0])
    return wide[1:]


def _product(left: Words, right: Words) -> Words:
    """The product of elements, shape (2, ...), by 16 bits of ``right`` at a time.

    ``right`` may be broadcast. Neither a branch nor an address depends on ``left``.
    """
    product = np.zeros_like(left)
    up, down = np.uint64(PIECE), np.uint64(64 - PIECE)
    for bit in range(0, 128, PIECE):
        high, low = product
        raised = np.stack([high << up | low >> down, low << up ^ _folded(high >> down)])
        shift = np.uint64(64 - PIECE - bit % 64)
        product = raised ^ _scaled(left, right[bit // 64] >> shift & LAST_PIECE)
    return product


def _folded(over: Words) -> Words:
    """What passes bit 127, at most ``PIECE`` bits of it, modulo the field's polynomial."""
    return over ^ over << np.uint64(1) ^ over << np.uint64(2) ^ over << np.uint64(7)


def _inverses(values: Words) -> Words:
    """Inverses of nonzero elements, shape (2, n), from those of the products of pairs of them
    (Montgomery 1987)."""
    count = values.shape[1]
    if count <= MAX_ONE_BY_ONE:
        numbers = [high << 64 | low for high, low in zip(*values.tolist(), strict=True)]
        return _words(np.frombuffer(b"".join(map(_inverse, numbers)), np.uint8))
    paired = np.concatenate([values, ONE], axis=1) if count % 2 else values
    first, second = paired[:, ::2], paired[:, 1::2]
    above = _inverses(_product(first, second))
    inverses = np.empty_like(paired)
    inverses[:, ::2], inverses[:, 1::2] = _product(above, second), _product(above, first)
    return inverses[:, :count]


def _inverse(value: int) -> bytes:
    """One inverse, by Euclid's algorithm on polynomials."""
    rest, other, factor, cofactor = value, MODULUS, 1, 0
    while rest != 1:
        shift = other.bit_length() - rest.bit_length()
        if shift < 0:
            rest, other, factor, cofactor = other, rest, cofactor, factor
        else:
            other, cofactor = other ^ rest << shift, cofactor ^ factor << shift
    while factor >= 2**128:
        factor ^= MODULUS << factor.bit_length() - 129
    return factor.to_bytes(BLOCK)


NONCE = bytes(12)
"""Nonce of every message; it may be fixed, because each key encrypts one message."""


def public_of(private: bytes) -> bytes:
    """The public X25519 key of a private one."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def share_cipher(secret: bytes, transcript: bytes, owner: int, receiver: int) -> ChaCha20Poly1305:
    """The cipher of one owner's shares for one receiver, from the secret of the two."""
    label = b"tacit sealed shares" + struct.pack("<II", owner, receiver)
    return ChaCha20Poly1305(derive(secret, transcript, label))


def revealed_half(share: bytes, left: bool) -> bytes:
    """The half of a neighbour's share that the server may know, after a byte that says which
    half it is: the seed's for a client that stayed, the mask key's for a client that left."""
    return b"\x01" + share[SEED_BYTES:] if left else b"\x00" + share[:SEED_BYTES]
