"""The header of every message as bytes: what it is, in which version, then fields of fixed size.

All numbers are little-endian, without padding. ``tests/vectors`` holds a message of every kind with
its fields, and messages that a reader must refuse.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Any

MAGIC_BYTES = 4


@dataclass(frozen=True)
class Header:
    """The first bytes of one format's messages: four letters, a version, and named fields.

    Parameters
    ----------
    magic : four letters that name the format.
    version : the only version that is read and written.
    fields : what follows, in the letters of ``struct``, for example ``"B16sI"``.
    what : how errors call a message of this format.
    error : what is raised for bytes that do not begin with this header.

    Examples
    --------
    >>> header = Header(b"TDOC", 1, "BI", "a message of this example")
    >>> header.pack(7, 300).hex(" ")
    '54 44 4f 43 01 07 2c 01 00 00'
    >>> header.unpack(header.pack(7, 300) + b"body")
    (7, 300)
    """

    magic: bytes
    version: int
    fields: str
    what: str
    error: type[ValueError] = ValueError

    @cached_property
    def _layout(self) -> struct.Struct:
        return struct.Struct(f"<{MAGIC_BYTES}sB{self.fields}")

    @property
    def size(self) -> int:
        """The header's bytes."""
        return self._layout.size

    def pack(self, *values: Any) -> bytes:
        """The header with these values in its fields."""
        return self._layout.pack(self.magic, self.version, *values)

    def unpack(self, message: bytes) -> tuple[Any, ...]:
        """The values of the fields at the beginning of a message.

        Raises
        ------
        ValueError : ``error``, for bytes of another format or version, or too few.
        """
        if len(message) < self.size:
            raise self.error(f"{self.what} has at least {self.size} bytes, got {len(message)}")
        magic, version, *values = self._layout.unpack_from(message)
        if magic != self.magic:
            raise self.error(f"these bytes are not {self.what}")
        if version != self.version:
            raise self.error(f"{self.what}: version must be {self.version}, got {version}")
        return tuple(values)
