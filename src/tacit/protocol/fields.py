"""Fields as bytes: a versioned header, then named raw arrays. Nothing is pickled.

The layout of a step's numbers in a secure sum, with the bits of each, follows from its query.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.crypto.secure_sum import masking
from tacit.crypto.secure_sum.messages import HEADER, SIGNATURE_BYTES
from tacit.data.ragged import Ragged
from tacit.protocol.steps import MAX_RECORDS, Field, Layout, Query, Reply, View
from tacit.wire import Header


def layout_of(query: Query) -> Layout:
    """The names and shapes of the numbers that a query sums.

    Raises
    ------
    TypeError : for a step that does not say what it sums.
    """
    if query.step.sums is None:
        raise TypeError(
            f"step {query.step.name} does not declare what it sums, so it cannot be summed"
        )
    return query.step.sums(query)


def runs_of(query: Query) -> tuple[masking.Run, ...]:
    """The widths of a step's fields, in the order of its layout; none where it bounds no sum.

    Raises
    ------
    TypeError : for a step that bounds other fields than it sums.
    """
    layout = layout_of(query)
    if query.step.bounds is None:
        return ()
    bounds = query.step.bounds(query)
    if bounds.keys() != layout.keys():
        raise TypeError(f"a sum of {sorted(layout)} was agreed, and bounds of {sorted(bounds)}")
    lengths = {name: int(np.prod(shape)) for name, shape in layout.items()}
    return tuple(
        masking.Run(length, masking.modulus_for(1, max(bounds[name], 1)))
        for name, length in lengths.items()
        if length
    )


def masked_size(query: Query) -> int | None:
    """The bytes of a client's masked numbers as a message; None where the step bounds no sum.

    Where no number of records was agreed, there is room for ``MAX_RECORDS`` of a client.
    """
    if query.step.bounds is None:
        return None
    bounded = replace(query, most_records=query.most_records or MAX_RECORDS)
    return HEADER.size + masking.Packing(runs_of(bounded)).size + SIGNATURE_BYTES


DTYPES = ("<f8", "<i8", "|i1", "|b1", "|u1", "<u4")
MAX_BYTES = 2**31
MAX_AXES = 4
MAX_EMPTY = 2**16
"""An axis of an array without values has no bytes that bound it."""
RAGGED = 0x80
"""Marks, in the byte of an array's axes, a field of several values a client."""


def flattened(reply: Reply, layout: Layout) -> Integers:
    """A reply's numbers as one vector, in the order of the layout.

    Raises
    ------
    TypeError : for a reply with other fields, shapes or types than the layout's.

    Examples
    --------
    >>> layout = {"counts": (2,), "clients": ()}
    >>> flattened({"clients": np.array(1), "counts": np.array([5, 7])}, layout)
    array([5, 7, 1])
    """
    if reply.keys() != layout.keys():
        raise TypeError(f"a sum of {sorted(layout)} was agreed, got {sorted(reply)}")
    parts = []
    for name, shape in layout.items():
        value = reply[name]
        if isinstance(value, Ragged) or value.dtype != np.int64 or value.shape != shape:
            raise TypeError(f"field {name!r} must hold 64-bit integers of shape {shape}")
        parts.append(value.ravel())
    return np.concatenate(parts)


def shaped(vector: Integers, layout: Layout) -> Reply:
    """The named numbers of a vector."""
    ends = np.cumsum([int(np.prod(shape)) for shape in layout.values()])
    parts = np.split(vector, ends[:-1])
    return {name: part.reshape(layout[name]) for name, part in zip(layout, parts, strict=True)}


class MessageError(ValueError):
    """Bytes that are not a message of this version."""


FIELDS_HEADER = Header(b"TACT", 1, "B", "a tacit message", MessageError)
"""The number of fields."""


def encode(fields: Mapping[str, Field]) -> bytes:
    """One client's fields as bytes: arrays, and ragged fields of that client alone.

    Examples
    --------
    >>> import numpy as np
    >>> message = encode({"positives": np.array(3)})
    >>> len(message), decode(message)["positives"].item()
    (26, 3)
    """
    parts = [FIELDS_HEADER.pack(len(fields))]
    for name, value in fields.items():
        ragged = isinstance(value, Ragged)
        array = value.values if isinstance(value, Ragged) else value
        if array.dtype.str not in DTYPES:
            raise MessageError(f"arrays of type {array.dtype} are not sent")
        code = DTYPES.index(array.dtype.str)
        shape = struct.pack(f"<{array.ndim}Q", *array.shape)
        label = name.encode("ascii")
        axes = array.ndim | RAGGED if ragged else array.ndim
        parts += [struct.pack("<BBB", len(label), code, axes), label, shape]
        parts.append(np.ascontiguousarray(array, dtype=DTYPES[code]).tobytes())
    return b"".join(parts)


def decode(message: bytes) -> dict[str, Field]:
    """The fields of an encoded message; a ragged one is that of one client.

    Raises
    ------
    MessageError : for bytes of another kind or version, cut short, with bytes left over, or that
        announce more than ``MAX_BYTES``.
    """
    reader = _Reader(message)
    (count,) = FIELDS_HEADER.unpack(message)
    reader.take(FIELDS_HEADER.size)
    fields: dict[str, Field] = {}
    for _ in range(count):
        name, value = _read_field(reader)
        if name in fields:
            raise MessageError(f"field {name!r} appears twice")
        fields[name] = value
    reader.finish()
    return fields


def sizes_by_client(reply: Reply, clients: int) -> NDArray[np.int64]:
    """The encoded size in bytes of every client's reply, shape (K,), without encoding any."""
    sizes = np.full(clients, FIELDS_HEADER.size, dtype=np.int64)
    for name, value in reply.items():
        if isinstance(value, Ragged):
            sizes += 3 + len(name) + 8 + value.sizes * value.itemsize
        else:
            inner = value.shape[:-1]
            sizes += 3 + len(name) + 8 * len(inner) + value.itemsize * int(np.prod(inner))
    return sizes


def sum_size(reply: Reply) -> int:
    """The encoded size in bytes of a reply of sums, which is the same for every client."""
    return len(encode({name: np.asarray(value) for name, value in reply.items()}))


def bytes_sent(reply: Reply, query: Query, clients: int) -> NDArray[np.int64]:
    """What each client sends for a reply, in bytes, shape (K,).

    A sum that its step bounds counts as the client's masked numbers. What clients compute together
    counts as sent by all of them in equal parts, rounded up.
    """
    if query.view is View.EACH:
        return sizes_by_client(reply, clients)
    if query.view is View.SUM:
        each = masked_size(query) or sum_size(reply)
    else:
        each = -(-sum_size(reply) // clients)
    return np.full(clients, each, dtype=np.int64)


def message_size(**contents: float) -> float:
    """The bytes of a message of ragged fields with so many bytes of content each.

    Examples
    --------
    >>> message_size(scores=800.0)
    823.0
    """
    fields = sum(3 + len(name) + 8 + content for name, content in contents.items())
    return FIELDS_HEADER.size + fields


def reply_of(reply: Reply, client: int) -> dict[str, Field]:
    """One client's own fields of a batch's reply; its arrays have no client axis."""
    return {
        name: value.part(client, client + 1)
        if isinstance(value, Ragged)
        else np.asarray(value[..., client])
        for name, value in reply.items()
    }


def as_reply(fields: Mapping[str, Field]) -> Reply:
    """What ``reply_of`` gave, as the reply of a batch of one client."""
    return {
        name: value if isinstance(value, Ragged) else value[..., np.newaxis]
        for name, value in fields.items()
    }


def ragged_of(value: Field, name: str = "replies") -> Ragged[Any]:
    """A field of a reply that must be ragged, by the name in an error."""
    if not isinstance(value, Ragged):
        raise TypeError(f"{name} must be ragged")
    return value


class _Reader:
    def __init__(self, message: bytes) -> None:
        if len(message) > MAX_BYTES:
            raise MessageError(f"a message holds at most {MAX_BYTES} bytes, got {len(message)}")
        self._stream, self.size = BytesIO(message), len(message)

    def take(self, size: int) -> bytes:
        taken = self._stream.read(size)
        if len(taken) < size:
            raise MessageError(f"message cut short at byte {self.size}")
        return taken

    def unpack(self, form: str) -> tuple[int, ...]:
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def finish(self) -> None:
        rest = len(self._stream.read())
        if rest:
            raise MessageError(f"{rest} bytes after the message's end")


def _read_field(reader: _Reader) -> tuple[str, Field]:
    length, code, marked = reader.unpack("<BBB")
    axes = marked & ~RAGGED
    if code >= len(DTYPES):
        raise MessageError(f"unknown array type {code}")
    if axes > MAX_AXES:
        raise MessageError(f"an array has at most {MAX_AXES} axes, got {axes}")
    try:
        name = reader.take(length).decode("ascii")
    except UnicodeDecodeError:
        raise MessageError("a field name is not ASCII") from None
    shape = reader.unpack(f"<{axes}Q")
    longest = max(shape, default=0)
    if longest > max(reader.size, MAX_EMPTY):
        raise MessageError(
            f"field {name!r} announces an axis of {longest} in a message of {reader.size} bytes"
        )
    size = math.prod(shape) * np.dtype(DTYPES[code]).itemsize
    if size > MAX_BYTES:
        raise MessageError(f"field {name!r} announces {size} bytes")
    values = np.frombuffer(reader.take(size), dtype=DTYPES[code])
    try:
        array = values.reshape(shape)
    except ValueError:  # an axis of 0 hides others from the check of their product
        raise MessageError(f"field {name!r} announces axes of {shape}") from None
    if array.dtype == np.bool_ and np.any(array.view(np.uint8) > 1):
        raise MessageError(f"field {name!r} has bits other than 0 and 1")
    if marked == axes:
        return name, array
    if not axes:
        raise MessageError(f"field {name!r} has several values a client, but no axis of them")
    return name, Ragged(array, np.array([0, shape[-1]], dtype=np.int64))
