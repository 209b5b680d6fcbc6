"""An append-only log of reports: a group is written, then fsync returns, then it counts.

A record is the CRC-32 of its body, the body's length, and the body. What a crash leaves at the end
was never acknowledged, and is cut off at the next start. After a failed write or fsync nothing is
known about the file's end: it is cut to the last good record, and never written again.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from tacit.collecting.errors import CampaignError

RECORD = struct.Struct("<IH")
MAX_GROUP_BYTES = 2**20
"""Largest number of bytes that are written at a time: more than that after a record that does not
check is no torn write."""


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
    CampaignError : for a file that is damaged before its end.
    OSError : where the file cannot be read or written.
    """

    def __init__(self, path: Path, disk: Disk | None = None) -> None:
        self.path, self._disk = path, disk or Disk()
        self.failed = False
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self.bodies, self._size = _records(path, self_repairing=True)
            self._disk.truncate(self._file, self._size)
            self._disk.fsync(self._file)
            sync_folder(path.parent, self._disk)
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
        group = b"".join(RECORD.pack(crc32(body), len(body)) + body for body in bodies)
        try:
            self._write(group)
            self._disk.fsync(self._file)
        except OSError:
            self.failed = True
            self._disk.truncate(self._file, self._size)
            raise
        self._size += len(group)
        self.records += len(bodies)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _write(self, group: bytes) -> None:
        rest = memoryview(group)
        while rest:
            rest = rest[self._disk.write(self._file, bytes(rest)) :]


def sync_folder(folder: Path, disk: Disk | None = None) -> None:
    """Make names of new files in a folder survive a crash."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        (disk or Disk()).fsync(descriptor)
    finally:
        os.close(descriptor)


def read_log(path: Path) -> list[bytes]:
    """The bodies of a log that may be written at this moment; an unfinished end is left out."""
    return _records(path, self_repairing=False)[0]


def _records(path: Path, self_repairing: bool) -> tuple[list[bytes], int]:
    """The bodies up to the first record that does not check, and where that begins."""
    content, bodies, place = path.read_bytes(), list[bytes](), 0
    while (body := _body_at(content, place)) is not None:
        bodies.append(body)
        place += RECORD.size + len(body)
    if _is_whole_after(content, place):
        raise CampaignError(f"{path} is damaged at byte {place}: whole records follow")
    if self_repairing and len(content) - place > MAX_GROUP_BYTES:
        raise CampaignError(f"{path} is damaged at byte {place}, long before its end")
    return bodies, place


def _body_at(content: bytes, place: int) -> bytes | None:
    """The body of the record that begins there; None where it does not check."""
    if place + RECORD.size > len(content):
        return None
    check, length = RECORD.unpack_from(content, place)
    body = content[place + RECORD.size : place + RECORD.size + length]
    return body if length and len(body) == length and crc32(body) == check else None


def _is_whole_after(content: bytes, place: int) -> bool:
    """Whether a whole record follows one that does not check: bytes were changed, not cut off."""
    if place + RECORD.size > len(content):
        return False
    length = RECORD.unpack_from(content, place)[1]
    return _body_at(content, place + RECORD.size + length) is not None
