"""Files of records, opened for Arrow: natively, whole, and unchanged while they are read."""

from __future__ import annotations

import csv
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa

from tacit.data.errors import DataError

_READ_ERRORS = (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error)


@contextmanager
def unchanging(source: str) -> Iterator[None]:
    """Refuse a file when it cannot be read or changes before it is closed.

    Raises
    ------
    DataError : naming the file and the reason.
    """
    try:
        before = _stamp(source)
        try:
            yield
        finally:
            if _stamp(source) != before:
                raise DataError(f"{source} changed while it was being read") from None
    except FileNotFoundError:
        raise DataError(f"{source} does not exist") from None
    except _READ_ERRORS as error:
        raise DataError(f"{source} cannot be read: {reason(error)}") from None


def _stamp(source: str) -> tuple[int, ...]:
    """Which file a path leads to, and its state.

    Raises
    ------
    OSError : for what is no regular file: a pipe can be read only once.
    """
    status = Path(source).stat()
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError("it is no regular file")
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def reason(error: BaseException) -> str:
    """The first line of an error's message, without its full stop."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return (text.splitlines() or [type(error).__name__])[0].rstrip(".")


def opened_file(source: str, closing: ExitStack) -> pa.NativeFile:
    """A file that Arrow's threads read by themselves.

    The threads read ahead. If a reader is left before its end, they may still read when the
    interpreter ends. A file that is a Python object would then call into an interpreter that no
    longer exists, which ends the process by SIGABRT.
    """
    return closing.enter_context(pa.OSFile(source))


def opened_text(source: str, extension: str, closing: ExitStack) -> pa.NativeFile:
    """The same for a file of text, from its beginning."""
    file = opened_file(source, closing)
    if not extension.endswith(".gz"):
        return file
    return closing.enter_context(pa.CompressedInputStream(file, "gzip"))
