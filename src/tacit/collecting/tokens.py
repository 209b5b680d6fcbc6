"""Tokens: a device spends one with its report, and only who has the key makes them.

A token is a serial number of 6 bytes and the first 10 bytes of HMAC-SHA256 over campaign and
serial, under a key of coordinator and collector. Serials are counted, so that a bit for each says
which are spent. Whoever hands tokens out and the collector can together see who sent which report:
nothing here makes them unlinkable.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator

from tacit.collecting.errors import ReportError

SERIAL_BYTES, MAC_BYTES = 6, 10
KEY_BYTES = 32
CONTEXT = b"tacit token"


class Tokens:
    """The tokens of one campaign.

    Parameters
    ----------
    key : 32 secret bytes.
    digest : the campaign's.

    Examples
    --------
    >>> tokens = Tokens(bytes(32), bytes(32))
    >>> tokens.serial_of(tokens.token(7))
    7
    """

    def __init__(self, key: bytes, digest: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key of tokens has {KEY_BYTES} bytes, got {len(key)}")
        self._state = hmac.new(key, CONTEXT + digest, "sha256")

    def token(self, serial: int) -> bytes:
        """The token of a serial number."""
        return self._signed(serial.to_bytes(SERIAL_BYTES, "little"))

    def tokens(self, start: int, count: int) -> Iterator[bytes]:
        """The tokens of consecutive serial numbers."""
        return (self.token(serial) for serial in range(start, start + count))

    def serial_of(self, token: bytes) -> int:
        """The serial number of a token.

        Raises
        ------
        ReportError : for a token that was not made with this key, for this campaign.
        """
        if not hmac.compare_digest(self._signed(token[:SERIAL_BYTES]), token):
            raise ReportError("token", "the token is not one of this campaign")
        return int.from_bytes(token[:SERIAL_BYTES], "little")

    def _signed(self, serial: bytes) -> bytes:
        state = self._state.copy()
        state.update(serial)
        return serial + state.digest()[:MAC_BYTES]


class Spent:
    """A bit for every serial number up to the largest that was seen."""

    def __init__(self) -> None:
        self._bits = bytearray()

    def add(self, serial: int) -> None:
        """Note a spent token."""
        place = serial >> 3
        if place >= len(self._bits):
            self._bits.extend(bytes(place + 1024 - len(self._bits)))
        self._bits[place] |= 1 << (serial & 7)

    def remove(self, serial: int) -> None:
        """Take the note back, where the report was not stored."""
        self._bits[serial >> 3] &= ~(1 << (serial & 7))

    def __contains__(self, serial: int) -> bool:
        place = serial >> 3
        return place < len(self._bits) and bool(self._bits[place] >> (serial & 7) & 1)
