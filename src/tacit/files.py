"""Files of keys, settings, reports and states: durable, whole, with the rights that they need.

Content and name of a file that is written here are on disk on return.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PRIVATE_FOLDER, PROGRAM, PRIVATE, PUBLIC = 0o700, 0o700, 0o600, 0o644
DRAFT = ".part"
"""The ending of a file that is being written, with a point before its name."""


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, in a folder that is made if there is none."""
    _write(path, content, PRIVATE)


def write_public(path: Path, content: bytes) -> None:
    """Write a file that all users may read, in a folder that is made if there is none."""
    _write(path, content, PUBLIC)


def write_program(path: Path, content: bytes) -> None:
    """Write a program that only its owner may run; one that is there already is not touched.

    The system refuses to run a file that is being written, so a program is never overwritten.
    """
    if not path.is_file() or path.read_bytes() != content:
        _write(path, content, PROGRAM)


def private_folder(path: Path) -> Path:
    """A folder that only its owner may look into, made if there is none."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(PRIVATE_FOLDER)
    return path


def create_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, unless there is one, also one made meanwhile.

    Its folder is made if there is none.
    """
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with draft_of(path) as draft:
        _create(draft, content, PRIVATE)
        publish(draft, path)


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """The name of a file that is to become another one; what is left of it at the end is removed.

    A draft that a killed process left has another name, so that no write fails over it.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}{DRAFT}")
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def publish(draft: Path, path: Path) -> None:
    """Give a finished file its name, unless another has it by now; file and name are durable."""
    sync(draft)
    with suppress(FileExistsError):
        path.hardlink_to(draft)
    draft.unlink()
    sync(path.parent)


def sync(path: Path, fsync: Callable[[int], None] | None = None) -> None:
    """Wait until a file's content, or a folder's names, are on disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        (fsync or os.fsync)(file)
    finally:
        os.close(file)


def check_private(path: Path, refusal: type[Exception]) -> None:
    """Refuse a file that others than its owner may read or write, with an error of this type."""
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise refusal(f"{path} must be its owner's only, got mode {mode:o}; run: chmod 600 {path}")


@contextmanager
def locked(path: Path, alone: bool = True, refusal: Exception | None = None) -> Iterator[None]:
    """Hold the lock of a file, which is made if there is none, until the block ends.

    Parameters
    ----------
    path : the file.
    alone : whether no other process may hold the lock meanwhile.
    refusal : is raised where another process holds it; None waits for that process.
    """
    import fcntl  # noqa: PLC0415 -- not every system has it

    kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    with path.open("a") as file:
        try:
            fcntl.flock(file, kind if refusal is None else kind | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise refusal or error from None
        yield


def _write(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with draft_of(path) as draft:
        _create(draft, content, mode)
        draft.replace(path)
        sync(path.parent)


def _create(path: Path, content: bytes, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    path.chmod(mode)
