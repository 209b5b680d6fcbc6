"""Files of records, opened for Arrow: natively, whole, and unchanged while they are read."""

from __future__ import annotations

import csv
import errno
import os
import stat
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa

from tacit.data.errors import DataError

PACKINGS = {".gz": "gzip", ".bz2": "bz2"}
"""Arrow's name of the packing that an extension ends with."""

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
    """The same for a file of text, from its beginning; UTF-16 is read whole, and is then UTF-8."""
    file = opened_file(source, closing)
    packing = next((name for end, name in PACKINGS.items() if extension.endswith(end)), None)
    if packing is not None:
        return closing.enter_context(pa.CompressedInputStream(file, packing))
    mark = file.read(len(BOM_UTF16_LE))
    file.seek(0)
    if mark in (BOM_UTF16_LE, BOM_UTF16_BE):
        text = file.read().decode("utf-16")
        return closing.enter_context(pa.BufferReader(text.encode()))
    return file
