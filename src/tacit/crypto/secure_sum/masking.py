"""Keys two clients share, the masks they expand to, and integers modulo a power of two."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.crypto.errors import ForgedError

Words = NDArray[Any]
"""Unsigned integers of 32 or 64 bits; arithmetic wraps around."""
Shape = tuple[int, int]
"""The length of a vector and the bits of its words."""

NARROW, WIDE = 32, 64


def modulus_for(clients: int, largest: int) -> int:
    """The least number of bits in which no sum over clients wraps around, from 2 to 64.

    Parameters
    ----------
    clients : how many clients are summed at most.
    largest : the largest magnitude of a number that one client sends. Where the client adds noise,
        this is its largest count plus a tail that the noise exceeds with negligible probability.

    Returns
    -------
    b, so that every sum lies strictly between ``-2**(b-1)`` and ``2**(b-1)``.

    Raises
    ------
    ValueError : when clients or largest is below 1, or when a sum may need more than 64 bits.

    Examples
    --------
    >>> modulus_for(1000, 2_000_000), modulus_for(1000, 3_000_000)
    (32, 33)
    """
    if clients < 1:
        raise ValueError(f"clients must be at least 1, got {clients}")
    if largest < 1:
        raise ValueError(f"largest must be at least 1, got {largest}")
    bits = (clients * largest).bit_length() + 1
    if bits > WIDE:
        raise ValueError(
            "clients * largest must stay below 2**63, "
            f"got {clients} * {largest} = {clients * largest}"
        )
    return bits


def to_words(vector: Integers, bits: int) -> Words:
    """Integers modulo ``2**bits``, two's complement.

    Examples
    --------
    >>> import numpy as np
    >>> to_words(np.array([1, -1]), 32).tolist()
    [1, 4294967295]
    """
    return np.ascontiguousarray(vector).view(np.uint64).astype(word_type(bits))


def word_type(bits: int) -> np.dtype[Any]:
    """The little-endian word in which numbers are added, of 32 or 64 bits."""
    return np.dtype(f"<u{bits // 8}")


def agree(private: X25519PrivateKey, public: bytes) -> bytes:
    """A 32-byte secret that only the owners of these two X25519 keys can compute.

    Raises
    ------
    ForgedError : for a public key of low order, with which anybody could.
    """
    try:
        return private.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise ForgedError("a public key gives no secret: it has low order") from None


def derive(secret: bytes, salt: bytes, label: bytes) -> bytes:
    """A 32-byte key from a secret, by HKDF-SHA256 (RFC 5869); the label says what it is for."""
    return HKDF(SHA256(), 32, salt, label).derive(secret)


def expand(key: bytes, length: int, bits: int) -> Words:
    """A mask: the first ``length`` words of the ChaCha20 key stream (RFC 8439), nonce zero.

    A key is expanded once, so the nonce may be fixed.

    Examples
    --------
    >>> expand(bytes(32), 2, 32).tolist()  # RFC 8439, appendix A.1, test vector 1
    [2917185654, 2419978656]
    """
    stream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
    dtype = word_type(bits)
    return np.frombuffer(stream.update(bytes(length * dtype.itemsize)), dtype=dtype)


def self_mask(seed: bytes, salt: bytes, owner: int, shape: Shape) -> Words:
    """The mask that a client adds for itself alone, from its seed."""
    return expand(derive(seed, salt, b"tacit self mask" + struct.pack("<I", owner)), *shape)


def pair_mask(
    private: X25519PrivateKey, public: bytes, salt: bytes, pair: tuple[int, int], shape: Shape
) -> Words:
    """What the client ``pair[0]`` adds for its neighbour ``pair[1]``; the two cancel.

    Parameters
    ----------
    private : the mask key of one of the two, public : that of the other; either way round.
    pair : the client who adds the mask, and its neighbour.
    shape : the length of the vector and the bits of its words.
    """
    low, high = sorted(pair)
    label = b"tacit pair mask" + struct.pack("<II", low, high)
    mask = expand(derive(agree(private, public), salt, label), *shape)
    return mask if pair[0] == low else np.negative(mask)
