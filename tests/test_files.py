"""Files are whole, durable and their owner's: what is written, by whom it is read, who is alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tacit import files

Writer = Callable[[Path, bytes], None]
WRITERS: dict[Writer, int] = {
    files.write_private: 0o600,
    files.write_public: 0o644,
    files.write_program: 0o700,
    files.create_private: 0o600,
}


@pytest.mark.parametrize("write", WRITERS)
def test_files_are_on_disk(write: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content before the name, whatever rights new files have."""
    path, synced = tmp_path / "new" / "secret", []

    def noted(file: int) -> None:
        synced.append((str(Path(f"/proc/self/fd/{file}").readlink()), path.exists()))

    monkeypatch.setattr(os, "fsync", noted)
    mask = os.umask(0o077)
    try:
        write(path, b"7")
    finally:
        os.umask(mask)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"7", WRITERS[write])
    assert [place for place, there in synced if there] == [str(path.parent)]
    assert any(place.endswith(files.DRAFT) for place, there in synced if not there)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("write", WRITERS)
def test_faults_are_undone(write: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int) -> None:
        raise OSError("disk full")

    path = tmp_path / "kept"
    if write is not files.create_private:
        path.write_bytes(b"before")
    before = list(tmp_path.iterdir())
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        write(path, b"after")
    assert list(tmp_path.iterdir()) == before
    assert not before or path.read_bytes() == b"before"


def test_a_file_made_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two processes that make a key at once, both go on with one."""
    path = tmp_path / "key"
    files.create_private(path, b"first")
    monkeypatch.setattr(Path, "exists", lambda path: False)
    files.create_private(path, b"second")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]
