"""Replies as bytes: a versioned header, then named raw arrays. Nothing is pickled."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import Ragged
from tacit.protocols.conversation import Field, Reply

MAGIC = b"TACT"
VERSION = 1
DTYPES = ("<f8", "<i8", "|i1", "|b1", "|u1", "<u4")
MAX_BYTES = 2**31
MAX_AXES = 4


class MessageError(ValueError):
    """Bytes that are not a message of this version."""


def encode(arrays: dict[str, NDArray[Any]]) -> bytes:
    """One client's reply as bytes.

    Examples
    --------
    >>> import numpy as np
    >>> message = encode({"positives": np.array(3)})
    >>> len(message), decode(message)["positives"].item()
    (26, 3)
    """
    parts = [MAGIC, struct.pack("<BB", VERSION, len(arrays))]
    for name, array in arrays.items():
        code = _code(array.dtype)
        shape = struct.pack(f"<{array.ndim}Q", *array.shape)
        label = name.encode("ascii")
        parts += [struct.pack("<BBB", len(label), code, array.ndim), label, shape]
        parts.append(np.ascontiguousarray(array, dtype=DTYPES[code]).tobytes())
    return b"".join(parts)


def decode(message: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of an encoded reply.

    Raises
    ------
    MessageError : for bytes of another kind or version, cut short, with bytes left over, or that
        announce more than ``MAX_BYTES``.
    """
    reader = _Reader(message)
    if reader.take(4) != MAGIC:
        raise MessageError("not a tacit message")
    version, count = reader.unpack("<BB")
    if version != VERSION:
        raise MessageError(f"message version must be {VERSION}, got {version}")
    arrays: dict[str, NDArray[Any]] = {}
    for _ in range(count):
        name, array = _read_array(reader)
        if name in arrays:
            raise MessageError(f"field {name!r} appears twice")
        arrays[name] = array
    reader.finish()
    return arrays


def sizes_by_client(reply: Reply, clients: int) -> NDArray[np.int64]:
    """The encoded size in bytes of every client's reply, shape (K,), without encoding any."""
    sizes = np.full(clients, len(MAGIC) + 2, dtype=np.int64)
    for name, value in reply.items():
        if isinstance(value, Ragged):
            sizes += 3 + len(name) + 8 + value.sizes * value.values.itemsize
        else:
            inner = value.shape[:-1]
            sizes += 3 + len(name) + 8 * len(inner) + value.itemsize * int(np.prod(inner))
    return sizes


def sum_size(reply: Reply) -> int:
    """The encoded size in bytes of a reply of sums, which is the same for every client."""
    return len(encode({name: np.asarray(value) for name, value in reply.items()}))


def reply_of(reply: Reply, client: int) -> dict[str, NDArray[Any]]:
    """One client's own arrays of a batch's reply."""
    return {name: _own(value, client) for name, value in reply.items()}


def _own(value: Field, client: int) -> NDArray[Any]:
    if isinstance(value, Ragged):
        return value.part(client, client + 1).values
    return np.asarray(value[..., client])


def _code(dtype: np.dtype[Any]) -> int:
    for code, known in enumerate(DTYPES):
        if dtype == np.dtype(known):
            return code
    raise MessageError(f"arrays of type {dtype} are not sent")


class _Reader:
    def __init__(self, message: bytes) -> None:
        if len(message) > MAX_BYTES:
            raise MessageError(f"a message holds at most {MAX_BYTES} bytes, got {len(message)}")
        self._message = message
        self._place = 0

    def take(self, size: int) -> bytes:
        end = self._place + size
        if end > len(self._message):
            raise MessageError(f"message cut short at byte {len(self._message)}")
        taken = self._message[self._place : end]
        self._place = end
        return taken

    def unpack(self, form: str) -> tuple[int, ...]:
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def finish(self) -> None:
        if self._place != len(self._message):
            raise MessageError(f"{len(self._message) - self._place} bytes after the message's end")


def _read_array(reader: _Reader) -> tuple[str, NDArray[Any]]:
    length, code, axes = reader.unpack("<BBB")
    if code >= len(DTYPES):
        raise MessageError(f"unknown array type {code}")
    if axes > MAX_AXES:
        raise MessageError(f"an array has at most {MAX_AXES} axes, got {axes}")
    try:
        name = reader.take(length).decode("ascii")
    except UnicodeDecodeError:
        raise MessageError("a field name is not ASCII") from None
    shape = reader.unpack(f"<{axes}Q")
    size = 1
    for extent in shape:
        size *= extent
    itemsize = np.dtype(DTYPES[code]).itemsize
    if size * itemsize > MAX_BYTES:
        raise MessageError(f"field {name!r} announces {size * itemsize} bytes")
    raw = reader.take(size * itemsize)
    return name, np.frombuffer(raw, dtype=DTYPES[code]).reshape(shape)
