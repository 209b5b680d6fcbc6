"""The shares of a client's two secrets: sealed for each holder, and revealed by halves."""

from __future__ import annotations

import struct

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from tacit.crypto.secure_sum.masking import derive

SEED_BYTES = 32
NONCE = bytes(12)
"""A sealing key seals one message, so the nonce may be fixed."""


def public_of(private: bytes) -> bytes:
    """The public X25519 key of a private one."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def share_box(secret: bytes, transcript: bytes, owner: int, holder: int) -> ChaCha20Poly1305:
    """What seals one owner's shares for one holder, from the secret of the two."""
    label = b"tacit sealed shares" + struct.pack("<II", owner, holder)
    return ChaCha20Poly1305(derive(secret, transcript, label))


def revealed_half(share: bytes, left: bool) -> bytes:
    """The half of a neighbour's share that the server may know, after a byte that says which
    half it is: the seed's for a client that stayed, the mask key's for a client that left."""
    return b"\x01" + share[SEED_BYTES:] if left else b"\x00" + share[:SEED_BYTES]
