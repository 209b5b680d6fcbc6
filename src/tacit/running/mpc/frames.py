"""Frames between a party's process and the one that started it: a header in JSON, then a body.

Nothing is pickled. A body is raw bytes: named arrays (``protocol.fields``) or a signed message of
the session.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from numpy.typing import NDArray

from tacit.data.batches.ragged import Ragged
from tacit.protocol.fields import MessageError, decode, encode
from tacit.wire import Header

MAX_HEADER_BYTES = 2**20
MAX_BODY_BYTES = 2**31


class FrameError(ValueError):
    """Bytes that are not a frame of this version, or do not hold the requested content."""


HEAD = Header(b"TJNT", 1, "IQ", "a frame between processes", FrameError)
"""The bytes of the JSON header and of the body."""


@dataclass(frozen=True)
class Frame:
    """What travels between two processes.

    Parameters
    ----------
    header : names and numbers; ``"kind"`` says what the frame is for.
    body : raw bytes.
    """

    header: Mapping[str, Any]
    body: bytes = field(default=b"", repr=False)

    @classmethod
    def of(
        cls, kind: str, arrays: Mapping[str, NDArray[Any]] | None = None, **values: Any
    ) -> Frame:
        """A frame with named arrays for its body."""
        return cls({"kind": kind, **values}, b"" if arrays is None else encode(dict(arrays)))

    @property
    def kind(self) -> str:
        """What the frame is for."""
        return str(self.header.get("kind"))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The named arrays of the body.

        Raises
        ------
        FrameError : for a body that holds something else.
        """
        try:
            fields = decode(self.body)
        except MessageError as error:
            raise FrameError(f"a frame of kind {self.kind!r} holds no arrays: {error}") from None
        named = {name: value for name, value in fields.items() if not isinstance(value, Ragged)}
        if len(named) < len(fields):
            raise FrameError(f"a frame of kind {self.kind!r} holds fields of several clients")
        return named

    def array(self, name: str) -> NDArray[Any]:
        """An array of the body.

        Raises
        ------
        FrameError : where the body has no such array.
        """
        value = self.arrays().get(name)
        if value is None:
            raise FrameError(f"a frame of kind {self.kind!r} has no array {name!r}")
        return value

    def write(self, stream: BinaryIO) -> None:
        """Send the frame."""
        header = json.dumps(dict(self.header)).encode()
        stream.write(HEAD.pack(len(header), len(self.body)))
        stream.write(header)
        stream.write(self.body)
        stream.flush()


def read_frame(stream: BinaryIO) -> Frame | None:
    """The next frame, or None where the stream ends between two frames.

    Raises
    ------
    FrameError : for bytes that are no frame, announce too much, or are cut short.

    Examples
    --------
    >>> import io
    >>> stream = io.BytesIO()
    >>> Frame.of("greeting", name="north").write(stream)
    >>> _ = stream.seek(0)
    >>> read_frame(stream).header["name"]
    'north'
    """
    head = stream.read(HEAD.size)
    if not head:
        return None
    if len(head) < HEAD.size:
        raise FrameError("a frame is cut short")
    header_size, body_size = HEAD.unpack(head)
    if header_size > MAX_HEADER_BYTES or body_size > MAX_BODY_BYTES:
        raise FrameError(f"a frame announces {header_size} and {body_size} bytes")
    raw, body = _exactly(stream, header_size), _exactly(stream, body_size)
    try:
        header = json.loads(raw)
    except (ValueError, RecursionError):
        raise FrameError("a frame's header is not JSON") from None
    if not isinstance(header, dict):
        raise FrameError("a frame's header is not an object")
    return Frame(header, body)


def _exactly(stream: BinaryIO, size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise FrameError("a frame is cut short")
    return content
