"""Reports and tokens as bytes, and the append-only log that holds them.

A report's bytes: a header with campaign, stage and token, and the payload of its stage.

An append-only log of reports: a group is written, then fsync returns, then it counts.

A record is a header and a body. The header has the record's number in the log, the body's length
and CRC-32, and a CRC-32 of its own, over the file's name too: under another name a copy would count
twice. So a length is believed only where nothing in the header changed, and what a crash leaves at
the end is told from damage: it is the beginning of a record, and the file ends in it. It was never
acknowledged; the next start moves it into a file of its own.
Anything else that does not check stops the reader, and stays as it is. After a failed write or
fsync nothing is known about the file's end: it is cut to the last good record, and never written
again. Before a report that was in that end is taken again, the cut must be on disk.

Tokens: a device spends one with its report, and only who has the key makes them.

A token is a serial number of 6 bytes and the first 10 bytes of HMAC-SHA256 over campaign and
serial, under a key of coordinator and collector. Serials are counted, so that a bit for each says
which are spent. Anyone who hands tokens out and the collector can together see who sent which
report: nothing here makes them unlinkable.
"""

from __future__ import annotations

import hmac
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from tacit import files
from tacit.collecting.campaign import CampaignError, ReportError
from tacit.wire import Header

FIELDS, HEADER = struct.Struct("<IHI"), struct.Struct("<IHII")
"""Number, length and check of the body; the same with the check of the name and these three."""


@dataclass(frozen=True)
class Disk:
    """The calls by which a log reaches its disk; tests put faults in their places."""

    write: Callable[[int, bytes], int] = os.write
    fsync: Callable[[int], None] = os.fsync
    truncate: Callable[[int, int], None] = os.ftruncate


class Log:
    """One file of records, open for appending.

    Parameters
    ----------
    path : a new file, or one that a crash may have left.
    disk : how the file is written.

    Raises
    ------
    CampaignError : for a file that is damaged; it stays as it is.
    OSError : where the file cannot be read or written.
    """

    def __init__(self, path: Path, disk: Disk | None = None) -> None:
        self.path, self._disk = path, disk or Disk()
        self.failed, self.warnings = False, list[str]()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self.bodies, self._size, torn = _records(path)
            if torn:
                self._keep(torn)
            files.sync(path.parent, self._disk.fsync)
            self.cut()
        except BaseException:
            os.close(self._file)
            raise
        self.records = len(self.bodies)

    def append(self, bodies: Sequence[bytes]) -> None:
        """Write records; when this returns they survive a crash.

        Raises
        ------
        OSError : when they do not; none of them is in the log then, and it takes no others.
        """
        if self.failed:
            raise OSError(f"{self.path} failed before")
        group = b"".join(_record(self.path, *each) for each in enumerate(bodies, self.records))
        try:
            self._write(self._file, group)
            self._disk.fsync(self._file)
        except OSError:
            self.failed = True
            with suppress(OSError):
                self.cut()
            raise
        self._size += len(group)
        self.records += len(bodies)

    def cut(self) -> None:
        """Cut the file on disk to the records that were acknowledged.

        Raises
        ------
        OSError : when the disk does not; the others may count after a crash then.
        """
        self._disk.truncate(self._file, self._size)
        self._disk.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _keep(self, torn: bytes) -> None:
        """Append a torn end to a file next to the log, and say so."""
        kept = self.path.with_suffix(".torn")
        file = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self._write(file, torn)
            self._disk.fsync(file)
        finally:
            os.close(file)
        self.warnings.append(
            f"{self.path} ended in {len(torn)} bytes of a record that was never acknowledged, as a "
            f"crash leaves them: they are in {kept} now"
        )

    def _write(self, file: int, content: bytes) -> None:
        rest = memoryview(content)
        while rest:
            rest = rest[self._disk.write(file, bytes(rest)) :]


def read_log(path: Path) -> list[bytes]:
    """The bodies of a log that may be written at this moment; an unfinished end is left out.

    Raises
    ------
    CampaignError : for a file that is damaged.
    """
    return _records(path)[0]


def _record(path: Path, number: int, body: bytes) -> bytes:
    fields = number, len(body), crc32(body)
    return HEADER.pack(*fields, _check(path, FIELDS.pack(*fields))) + body


def _check(path: Path, fields: bytes) -> int:
    return crc32(path.name.encode() + fields)


def _records(path: Path) -> tuple[list[bytes], int, bytes]:
    """The bodies, where the last one ends, and what is there of a record that was not finished."""
    content, bodies, place = path.read_bytes(), list[bytes](), 0
    while place + HEADER.size <= len(content):
        number, length, body_check, check = HEADER.unpack_from(content, place)
        start = place + HEADER.size
        body = content[start : start + length]
        fields = content[place : place + FIELDS.size]
        sound = _check(path, fields) == check and number == len(bodies)
        if sound and len(body) < length:
            break
        if not sound or crc32(body) != body_check:
            raise CampaignError(
                f"{path} is damaged at byte {place}, where record {len(bodies)} begins, and no "
                "write that stopped has that form: nothing was changed; put a copy in its place, "
                "or cut it there yourself: what follows is lost then, and its tokens count again"
            )
        bodies.append(body)
        place = start + length
    return bodies, place, content[place:]


DIGEST_PREFIX, TOKEN_BYTES = 8, 16

MAX_REPORT = 80
"""Largest number of bytes of a report."""

REPORT_HEADER = Header(b"TREP", 1, f"{DIGEST_PREFIX}sB{TOKEN_BYTES}s", "a report of a device")

STAGE_PLACE = REPORT_HEADER.size - TOKEN_BYTES - 1
"""Which byte of a report is its stage."""


@dataclass(frozen=True)
class Report:
    """One device's report.

    Parameters
    ----------
    campaign : the first bytes of the campaign's digest.
    stage : from 0.
    token : 16 bytes, used once.
    payload : what the stage's mechanism gave.

    Examples
    --------
    >>> report = Report(bytes(8), 0, bytes(16), b"\\x02\\x50")
    >>> Report.from_bytes(report.to_bytes()) == report, len(report.to_bytes())
    (True, 32)
    """

    campaign: bytes
    stage: int
    token: bytes
    payload: bytes

    def to_bytes(self) -> bytes:
        """The message."""
        return REPORT_HEADER.pack(self.campaign, self.stage, self.token) + self.payload

    @classmethod
    def from_bytes(cls, message: bytes) -> Report:
        """The report of a message; how long its payload must be is not checked here.

        Raises
        ------
        ValueError : for bytes of another format or version, or too few.
        """
        campaign, stage, token = REPORT_HEADER.unpack(message)
        return cls(campaign, stage, token, message[REPORT_HEADER.size :])


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

    def __contains__(self, serial: int) -> bool:
        place = serial >> 3
        return place < len(self._bits) and bool(self._bits[place] >> (serial & 7) & 1)
