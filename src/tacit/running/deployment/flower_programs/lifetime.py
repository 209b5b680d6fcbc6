"""Ends Flower's programs with the process that started them, also where that one is killed.

A process that starts a program holds a lock on a file, and the program, like every program that it
starts in turn, waits in a separate thread for that lock. The kernel releases a lock when its
owner ends, however it ends; what gets the lock then ends at once. Nothing is polled, and nothing
rests on process groups, which Flower's own programs leave.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import signal
import threading
from pathlib import Path
from typing import IO, NoReturn, Self

OWNER = "TACIT_OWNER"
"""The environment variable that names the file to watch."""


class Owner:
    """The lock of a process on the programs that it starts; leaving its block releases it.

    Parameters
    ----------
    folder : where the locked file lies, made if there is none.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder.resolve() / f".owner-{secrets.token_hex(8)}"
        self._file = self._path.open("xb")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    @property
    def settings(self) -> dict[str, str]:
        """What a program's environment says of it."""
        return {OWNER: str(self._path)}

    def release(self) -> None:
        """End what still watches the lock."""
        self._path.unlink(missing_ok=True)
        self._file.close()


def end_with_owner() -> None:
    """End this process when the one that started it ends, if the environment names that process."""
    name = os.environ.get(OWNER)
    if name is None:
        return
    path = Path(name)
    try:
        file = path.open("rb")
    except FileNotFoundError:
        _end()
    threading.Thread(target=_end_once_free, args=(file, path), daemon=True).start()


def _end_once_free(file: IO[bytes], path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_SH)
        with contextlib.suppress(OSError):
            path.unlink()
    finally:
        _end()


def _end() -> NoReturn:
    """End at once: handlers and threads of Flower's own may not delay it."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise SystemExit(1)
