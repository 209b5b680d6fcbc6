"""Requests to a node from the process that answers a message, through a pair of sockets.

Flower's nodes serve these requests over HTTP, for which each takes some milliseconds of either
process's time, and an answer takes a dozen of them. Here they are the same requests, to the same
functions, between a node and a process that it started. The process reads and writes them at its
standard input; nobody else has the pair's other end, so that requests need no token.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
from pathlib import Path
from typing import Any

from flwr.supercore.runtime import RuntimeHttpClient

HEAD = struct.Struct("!HQ")
"""The lengths of a request's path, or of the word that begins an answer, and of what follows it."""
DONE, FAILED = b"done", b"failed"
STANDARD_INPUT = 0


class PipeError(RuntimeError):
    """The other end has closed, or refuses a request."""


def send_frame(connection: socket.socket, name: bytes, content: bytes) -> None:
    """Send a name and bytes that belong to it."""
    connection.sendall(HEAD.pack(len(name), len(content)) + name)
    connection.sendall(content)


def receive_frame(connection: socket.socket) -> tuple[bytes, bytes]:
    """A name and bytes that belong to it.

    Raises
    ------
    PipeError : when the other end has closed.
    """
    name, content = HEAD.unpack(_exactly(connection, HEAD.size))
    return _exactly(connection, name), _exactly(connection, content)


def _exactly(connection: socket.socket, size: int) -> bytes:
    content = bytearray(size)
    view = memoryview(content)
    while view:
        try:
            count = connection.recv_into(view)
        except ConnectionError:
            count = 0
        if count == 0:
            raise PipeError("the other end of the pipe has closed")
        view = view[count:]
    return bytes(content)


class PipeClient(RuntimeHttpClient):  # type: ignore[misc]  # Flower's types are not checked
    """Flower's client of a node's requests, through a socket in place of HTTP.

    Parameters
    ----------
    connection : the socket.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._lock = connection, threading.Lock()

    @classmethod
    def from_server_address(cls, *_: Any, **__: Any) -> PipeClient:
        """The client of the socket at standard input, wherever the node would serve HTTP.

        Programs that this process starts get an empty input in its place, and not the socket.
        """
        connection = socket.socket(fileno=os.dup(STANDARD_INPUT))
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), STANDARD_INPUT)
        return cls(connection)

    def _unary_unary(self, *, path: str, request: Any, response_type: type[Any], **_: Any) -> Any:
        with self._lock:
            send_frame(self._connection, path.encode(), request.SerializeToString())
            said, content = receive_frame(self._connection)
        if said != DONE:
            raise PipeError(f"the node refused {path}: {content.decode(errors='replace')}")
        return response_type.FromString(content)

    def close(self) -> None:
        """Close the socket."""
        self._connection.close()
