"""The shares of a client's two secrets: encrypted for each receiver, and revealed by halves."""

from __future__ import annotations

import struct

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from tacit.crypto.secure_sum.masking import derive

SEED_BYTES = 32
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
