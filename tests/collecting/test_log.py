"""The log: what it acknowledges survives, and what a fault leaves is not counted."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.collecting.campaign import CampaignError
from tacit.collecting.log import HEADER, Disk, Log, read_log
from tests.collecting.support import faulty

BODIES = [bytes([number]) * (number + 1) for number in range(20)]


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


def test_a_torn_end_is_cut_off_and_kept(tmp_path: Path) -> None:
    """Wherever a crash stops a write; what it left is in a file that only the owner reads."""
    path, kept = tmp_path / "log-1.bin", tmp_path / "log-1.torn"
    filled(path)
    content, ends = path.read_bytes(), [0]
    for body in BODIES:
        ends.append(ends[-1] + HEADER.size + len(body))
    for size in range(len(content)):
        path.write_bytes(content[:size])
        whole = sum(end <= size for end in ends) - 1
        torn = content[ends[whole] : size]
        assert read_log(path) == BODIES[:whole]
        log = Log(path, Disk(fsync=lambda file: None))
        log.append([b"next"])
        log.close()
        assert read_log(path) == [*BODIES[:whole], b"next"]
        if torn:
            (warning,) = log.warnings
            assert f"{len(torn)} bytes" in warning
            assert str(kept) in warning
            assert kept.read_bytes() == torn
            assert stat.S_IMODE(kept.stat().st_mode) == 0o600
            kept.unlink()
        assert (log.warnings, kept.exists()) == ([warning] if torn else [], False)


def test_torn_ends_of_two_crashes_are_both_kept_before_they_are_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "log-1.bin"
    for torn in (b"one", b"two"):
        path.write_bytes(torn)
        with pytest.raises(OSError, match="No space left"):
            Log(path, faulty({"write"}))
        assert path.read_bytes() == torn
        Log(path).close()
    assert (path.with_suffix(".torn").read_bytes(), path.read_bytes()) == (b"onetwo", b"")


def test_every_flipped_bit_is_refused(tmp_path: Path) -> None:
    """In lengths too, and in the last record: nothing that was acknowledged is cut off."""
    path = tmp_path / "log-1.bin"
    log = Log(path)
    log.append([bytes([number % 256, number // 256]) for number in range(250, 290)])
    log.close()
    content, passed = path.read_bytes(), list[int]()
    assert len(content) == 40 * (HEADER.size + 2)
    with path.open("r+b", buffering=0) as file:
        for bit in range(8 * len(content)):
            byte = bit // 8
            os.pwrite(file.fileno(), bytes([content[byte] ^ 1 << bit % 8]), byte)
            try:
                Log(path).close()
                passed.append(bit)
            except CampaignError as error:
                assert f"damaged at byte {byte - byte % (HEADER.size + 2)}," in str(error)
            os.pwrite(file.fileno(), content[byte : byte + 1], byte)
    assert passed == []
    assert path.read_bytes() == content
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("end", [bytes(HEADER.size), bytes(4096), b"\xff" * 70_000])
def test_an_end_that_no_write_began_is_an_error(tmp_path: Path, end: bytes) -> None:
    """Whoever reads; it may have been a record that was acknowledged."""
    path = tmp_path / "log-1.bin"
    filled(path)
    content = path.read_bytes()
    path.write_bytes(content + end)
    for read in (Log, read_log):
        with pytest.raises(CampaignError, match=f"damaged at byte {len(content)}, where record 20"):
            read(path)
    assert path.read_bytes() == content + end


def test_records_that_are_missing_doubled_or_of_another_log_are_an_error(tmp_path: Path) -> None:
    """Each of them checks by itself; their numbers and the log's name tell."""
    path, other = tmp_path / "log-1.bin", tmp_path / "log-2.bin"
    log = Log(path)
    log.append([b"same size"] * 3)
    log.close()
    content = path.read_bytes()
    size = len(content) // 3
    for changed in (content[size:], content[:size] + content, content[:size] + content[2 * size :]):
        path.write_bytes(changed)
        with pytest.raises(CampaignError, match="is damaged at byte"):
            Log(path)
    other.write_bytes(content)
    for read in (Log, read_log):
        with pytest.raises(CampaignError, match=r"log-2\.bin is damaged at byte 0"):
            read(other)


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_fault_leaves_nothing_half_written(tmp_path: Path, call: str) -> None:
    """A part of what was to be written is in the file when its disk fails."""
    path, disk = tmp_path / "log-1.bin", faulty({call})

    def half(file: int, content: bytes) -> int:
        os.write(file, content[: len(content) // 2])
        return disk.write(file, content)

    filled(path)
    log = Log(path)
    log._disk = replace(disk, write=half)
    with pytest.raises(OSError, match="No space left"):
        log.append([b"lost"])
    assert log.failed
    assert read_log(path) == BODIES
    with pytest.raises(OSError, match="failed before"):
        log.append([b"again"])
    log.close()
