"""Where replies are stored in case the same question comes again: never in the ledger.

A reply may hold exact values (a free step's scores, a secure sum's shares). So it is kept in the
memory of the process, or encrypted under a key that the caller holds and the disk does not.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAX_BYTES = 2**26
NONCE_BYTES = 12
SEALING_KEY_BYTES = 32


class Replies(Protocol):
    """Keeps replies by the hash of their debit; it may lose any of them at any time."""

    def keep(self, debit: bytes, reply: bytes) -> None:
        """Keep a reply."""

    def find(self, debit: bytes) -> bytes | None:
        """The reply of a debit, or None where it is not kept."""

    def drop(self, debit: bytes) -> None:
        """Forget a reply, if it is kept."""


class RepliesInMemory:
    """Replies that end with the process.

    Parameters
    ----------
    most_bytes : how many bytes to keep; the oldest replies are dropped for newer ones.

    Examples
    --------
    >>> replies = RepliesInMemory(most_bytes=5)
    >>> replies.keep(b"first", b"abc")
    >>> replies.keep(b"second", b"def")
    >>> replies.find(b"first"), replies.find(b"second")
    (None, b'def')
    """

    def __init__(self, most_bytes: int = MAX_BYTES) -> None:
        self._most = most_bytes
        self._replies: dict[bytes, bytes] = {}

    def keep(self, debit: bytes, reply: bytes) -> None:
        """Keep a reply, dropping the oldest until it fits."""
        self._replies[debit] = reply
        size = sum(map(len, self._replies.values()))
        while size > self._most:
            size -= len(self._replies.pop(next(iter(self._replies))))

    def find(self, debit: bytes) -> bytes | None:
        """The reply of a debit, or None."""
        return self._replies.get(debit)

    def drop(self, debit: bytes) -> None:
        """Forget a reply."""
        self._replies.pop(debit, None)


class SealedReplies:
    """Replies as files that say nothing without a key, for clients of one process a message.

    AES-256-GCM, each file under its own random nonce and bound to its debit. Files that are torn,
    changed, or encrypted under another key are not found.

    Parameters
    ----------
    folder : where the files lie; made with mode 0700 if there is none. It may be emptied any time.
    key : 32 random bytes that are never written to this disk, and are forgotten with the session.

    Raises
    ------
    ValueError : for a key of another length.
    """

    def __init__(self, folder: str | os.PathLike[str], key: bytes) -> None:
        if len(key) != SEALING_KEY_BYTES:
            raise ValueError(f"key must have {SEALING_KEY_BYTES} bytes, got {len(key)}")
        self._folder = Path(folder)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._cipher = AESGCM(key)

    def keep(self, debit: bytes, reply: bytes) -> None:
        """Write an encrypted file, whole or not at all; raises OSError where it cannot."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        draft = self._folder / f".{secrets.token_hex(8)}"
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(nonce + self._cipher.encrypt(nonce, reply, debit))
            draft.replace(self._path(debit))
        except OSError:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            raise

    def find(self, debit: bytes) -> bytes | None:
        """The reply of a debit, or None."""
        try:
            encrypted = self._path(debit).read_bytes()
            return self._cipher.decrypt(encrypted[:NONCE_BYTES], encrypted[NONCE_BYTES:], debit)
        except (OSError, InvalidTag, ValueError):
            return None

    def drop(self, debit: bytes) -> None:
        """Delete a reply's file."""
        self._path(debit).unlink(missing_ok=True)

    def _path(self, debit: bytes) -> Path:
        return self._folder / debit.hex()
