"""The log: what it acknowledges survives, and what a fault leaves is not counted."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.collecting.errors import CampaignError
from tacit.collecting.log import MAX_GROUP_BYTES, Disk, Log, read_log

BODIES = [bytes([number]) * (number + 1) for number in range(20)]


def full_disk(*arguments: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def filled(path: Path) -> None:
    log = Log(path)
    log.append(BODIES)
    log.close()


def test_what_was_appended_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log-1.bin"
    filled(path)
    assert read_log(path) == BODIES
    log = Log(path)
    assert log.bodies == BODIES
    log.append([b"more"])
    assert read_log(path) == [*BODIES, b"more"]
    log.close()


@pytest.mark.parametrize("cut", range(1, 30, 3))
def test_a_torn_end_is_cut_off(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "log-1.bin"
    filled(path)
    content = path.read_bytes()
    path.write_bytes(content[:-cut])
    kept = read_log(path)
    assert kept == BODIES[: len(kept)]
    log = Log(path)
    log.append([b"next"])
    log.close()
    assert read_log(path) == [*kept, b"next"]


def test_damage_long_before_the_end_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log-1.bin"
    log = Log(path)
    for _ in range(3):
        log.append([bytes(60)] * (MAX_GROUP_BYTES // 120))
    log.close()
    content = bytearray(path.read_bytes())
    content[70] ^= 1  # the length of the second record
    path.write_bytes(content)
    with pytest.raises(CampaignError, match="damaged at byte 66, long before its end"):
        Log(path)


def test_changed_bytes_before_whole_records_are_an_error(tmp_path: Path) -> None:
    """Whoever reads; nothing is cut off, so that nothing acknowledged is lost."""
    path = tmp_path / "log-1.bin"
    filled(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    for read in (Log, read_log):
        with pytest.raises(CampaignError, match="is damaged at byte"):
            read(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_fault_leaves_nothing_half_written(tmp_path: Path, call: str) -> None:
    path = tmp_path / "log-1.bin"
    filled(path)
    log = Log(path)
    log._disk = replace(Disk(), **{call: full_disk})  # type: ignore[arg-type]
    with pytest.raises(OSError, match="No space left"):
        log.append([b"lost"])
    assert log.failed
    assert read_log(path) == BODIES
    with pytest.raises(OSError, match="failed before"):
        log.append([b"again"])
    log.close()


def test_a_write_that_stops_half_way_is_cut_back(tmp_path: Path) -> None:
    path, written = tmp_path / "log-1.bin", list[int]()

    def half(file: int, content: bytes) -> int:
        if written:
            full_disk()
        written.append(os.write(file, content[: len(content) // 2]))
        return written[0]

    filled(path)
    log = Log(path)
    log._disk = replace(Disk(), write=half)
    with pytest.raises(OSError, match="No space left"):
        log.append([b"some", b"more"])
    assert written
    assert read_log(path) == BODIES
    log.close()
