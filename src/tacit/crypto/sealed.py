"""Messages sealed for one receiver: only the holder of its key reads them, whoever carries them.

A fresh X25519 key of the sender, HKDF-SHA256 and ChaCha20-Poly1305. What a message belongs to (its
session, sender and place) is bound to it, so that a box moved elsewhere does not open.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from tacit.crypto.masking import derive

MAGIC = b"TSEA"
VERSION = 1
KEY_BYTES = 32
TAG_BYTES = 16
HEADER_BYTES = len(MAGIC) + 1 + KEY_BYTES
NONCE = bytes(12)
"""A key seals one message, so its nonce may be fixed."""


class SealError(ValueError):
    """Bytes that are no message sealed for this receiver and this place."""


def seal(message: bytes, receiver: bytes, place: bytes) -> bytes:
    """A message that only the receiver can read.

    Parameters
    ----------
    message : what to say.
    receiver : its public X25519 key, 32 bytes.
    place : what the message belongs to; the receiver has to know it.

    Raises
    ------
    SealError : for a public key that is none.
    """
    own = X25519PrivateKey.generate()
    try:
        common = own.exchange(X25519PublicKey.from_public_bytes(receiver))
    except ValueError:
        raise SealError("the receiver's public key is not valid") from None
    public = own.public_key().public_bytes_raw()
    header = MAGIC + bytes([VERSION]) + public
    return header + _cipher(common, public, receiver).encrypt(NONCE, message, header + place)


@dataclass(frozen=True, eq=False)
class Receiver:
    """The holder of a key that messages are sealed for.

    Examples
    --------
    >>> receiver = Receiver.new()
    >>> receiver.opened(seal(b"seven", receiver.public, b"place 1"), b"place 1")
    b'seven'
    """

    key: X25519PrivateKey = field(repr=False)

    @classmethod
    def new(cls) -> Receiver:
        """A fresh key."""
        return cls(X25519PrivateKey.generate())

    @property
    def public(self) -> bytes:
        """The public key, 32 bytes."""
        return self.key.public_key().public_bytes_raw()

    def opened(self, box: bytes, place: bytes) -> bytes:
        """The message in a box.

        Raises
        ------
        SealError : for bytes that are no box, of another version, damaged, sealed for somebody
            else, or for another place.
        """
        if len(box) < HEADER_BYTES + TAG_BYTES:
            raise SealError(
                f"a sealed message has at least {HEADER_BYTES + TAG_BYTES} bytes, got {len(box)}"
            )
        header = box[:HEADER_BYTES]
        if header[: len(MAGIC)] != MAGIC:
            raise SealError("not a sealed message")
        if header[len(MAGIC)] != VERSION:
            raise SealError(f"seal version must be {VERSION}, got {header[len(MAGIC)]}")
        sender = header[-KEY_BYTES:]
        try:
            common = self.key.exchange(X25519PublicKey.from_public_bytes(sender))
            cipher = _cipher(common, sender, self.public)
            return cipher.decrypt(NONCE, box[HEADER_BYTES:], header + place)
        except (InvalidTag, ValueError):
            raise SealError(
                "a sealed message does not open: it is damaged, or meant for another receiver or "
                "another place"
            ) from None


def _cipher(common: bytes, sender: bytes, receiver: bytes) -> ChaCha20Poly1305:
    return ChaCha20Poly1305(derive(common, sender + receiver, b"tacit sealed message"))
