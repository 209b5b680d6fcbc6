"""Files of keys, settings and states, written whole: content and name are on disk on return."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from tacit.ledger.files import sync

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


def _write(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # a draft that a killed process left has another name, so that no write fails over it
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}{DRAFT}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(mode)
        draft.replace(path)
        sync(path.parent)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
