"""Long-lived signing keys of clients, the roster that pins them, and refusals of secure sums."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

KEY_BYTES = 32
SIGNATURE_BYTES = 64
MAX_CLIENTS = 2**16 - 1


@dataclass(frozen=True, eq=False)
class Identity:
    """A client's Ed25519 signing key, made once and kept by the client alone.

    Examples
    --------
    >>> identity = Identity.generate()
    >>> Identity.from_bytes(identity.to_bytes()).public == identity.public
    True
    """

    key: Ed25519PrivateKey = field(repr=False)

    @classmethod
    def generate(cls) -> Identity:
        """A new identity, from the operating system's entropy."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_bytes(cls, private: bytes) -> Identity:
        """An identity read back from its 32 secret bytes.

        Raises
        ------
        ValueError : for any other number of bytes.
        """
        if len(private) != KEY_BYTES:
            raise ValueError(f"an identity has {KEY_BYTES} secret bytes, got {len(private)}")
        return cls(Ed25519PrivateKey.from_private_bytes(private))

    def to_bytes(self) -> bytes:
        """The 32 secret bytes, to be stored where only the client can read them."""
        return self.key.private_bytes_raw()

    @property
    def public(self) -> bytes:
        """The 32 public bytes, which go into every roster."""
        return self.key.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        """The 64-byte signature of a message."""
        return self.key.sign(message)


def is_signed(key: bytes, message: bytes, signature: Any) -> bool:
    """Whether the owner of a public identity key signed a message, whatever came as a signature."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


@dataclass(frozen=True)
class Roster:
    """The public identity keys of all clients, agreed beforehand; a client's position is its index.

    Anyone who writes the roster decides whom the clients believe: it must reach each client by a
    way that the server does not control.

    Parameters
    ----------
    keys : 32 public bytes a client, all different.

    Raises
    ------
    ValueError : for fewer than 2 or more than 65,535 keys, a key of another size, or a key that
        appears twice.

    Examples
    --------
    >>> ada, bob = Identity.generate(), Identity.generate()
    >>> roster = Roster((ada.public, bob.public))
    >>> roster.index_of(bob)
    1
    >>> roster.verify(1, b"a message", bob.sign(b"a message"))
    """

    keys: tuple[bytes, ...]

    def __post_init__(self) -> None:
        if not 2 <= len(self.keys) <= MAX_CLIENTS:
            raise ValueError(f"a roster has from 2 to {MAX_CLIENTS} clients, got {len(self.keys)}")
        self.check_keys(self.keys, "roster")

    @staticmethod
    def check_keys(keys: tuple[bytes, ...], what: str) -> None:
        """Refuse keys of another size, or one that appears twice in ``what`` lists them.

        Raises
        ------
        ValueError : naming the index, or what lists them.
        """
        for index, key in enumerate(keys):
            if len(key) != KEY_BYTES:
                raise ValueError(
                    f"a public identity key has {KEY_BYTES} bytes, got {len(key)} at {index}"
                )
        if len(set(keys)) != len(keys):
            raise ValueError(f"an identity key appears twice in the {what}")

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def digest(self) -> bytes:
        """SHA-256 of all keys in order."""
        return sha256(b"".join(self.keys)).digest()

    def index_of(self, identity: Identity) -> int:
        """The index of a client's identity.

        Raises
        ------
        UnknownClientError : when the roster does not hold it.
        """
        try:
            return self.keys.index(identity.public)
        except ValueError:
            raise UnknownClientError("this identity is not in the roster") from None

    def check_index(self, index: int) -> None:
        """Refuse an index that no client has.

        Raises
        ------
        UnknownClientError : for such an index.
        """
        if not 0 <= index < len(self):
            raise UnknownClientError(f"a client's index must be below {len(self)}, got {index}")

    def has_signed(self, index: int, message: bytes, signature: bytes) -> bool:
        """Whether a client's identity key signed a message."""
        return is_signed(self.keys[index], message, signature)

    def verify(self, index: int, message: bytes, signature: bytes, what: str = "keys") -> None:
        """Check a client's signature.

        Raises
        ------
        ForgedError : when the client's identity key did not sign the message; ``what`` names it.
        """
        if not self.has_signed(index, message, signature):
            raise ForgedError(
                f"the {what} in the name of client {index}: no signature by it for these terms"
            )


class SumError(ValueError):
    """A secure sum that cannot go on; it has revealed no vector."""


class MalformedError(SumError):
    """Bytes that are no message of a sum: of another kind or version, cut short, out of order."""


class SessionError(SumError):
    """A message of another session."""


class RoundError(SumError):
    """A message of another round, or a step taken out of order or a second time."""


class ReplayError(SumError):
    """A second message of one client in one round."""


class ForgedError(SumError):
    """Keys or shares that do not come from the client whose name they bear."""


class UnknownClientError(SumError):
    """A client that is not in the roster, or not in this round."""


class TooFewError(SumError):
    """Fewer clients or shares than the agreed threshold; there is no sum."""


class RefusedError(SumError):
    """A question that a client refuses, because its answer would reveal a vector."""
