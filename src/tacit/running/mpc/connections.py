"""Connections of an event loop, of which none outlives the task that holds it.

``asyncio.Server`` forgets a connection between its acceptance and the end of its handshake, and a
handshake that is cancelled before its first step leaves its transport open. Here a task holds a
socket from its acceptance on. To end a handshake the socket is shut down: the handshake then reads
the end of its input, whatever its state, and closes its transport.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LINGER_SECONDS = 1.0
"""Time for what is still to be sent when a connection is closed."""
FULL_SECONDS = 1.0
"""Pause before the next acceptance when the process has no file descriptor left."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Work = Callable[..., Coroutine[Any, Any, None]]
Handler = Callable[[socket.socket], Coroutine[Any, Any, None]]
GONE = (BlockingIOError, InterruptedError, ConnectionAbortedError)


@dataclass(frozen=True)
class Handshake:
    """How a connection begins with TLS.

    Parameters
    ----------
    context : certificates, and which side this is.
    timeout : seconds until it is given up.
    """

    context: ssl.SSLContext
    timeout: float

    @property
    def server_side(self) -> bool:
        """Whether the other side began the connection."""
        return self.context.protocol is ssl.PROTOCOL_TLS_SERVER


class Connections:
    """Listening sockets, and a task for each connection; all end together."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._listening: list[socket.socket] = []
        self._closed = False

    def accept(self, listening: socket.socket, handler: Handler) -> None:
        """Run a task with each connection that reaches a listening socket.

        Parameters
        ----------
        listening : the socket, which is closed with the connections.
        handler : receives the connected socket, which is closed after it.
        """
        listening.setblocking(False)
        self._listening.append(listening)
        self._watch(listening, handler)

    async def run(self, work: Work, *arguments: Any) -> None:
        """Do work that ends with the connections.

        Raises
        ------
        ConnectionError : when they have ended.
        """
        if self._closed:
            raise ConnectionError("the connections are closed")
        await self._task(work(*arguments))

    async def close(self) -> None:
        """Stop listening, and end every connection."""
        self._closed = True
        for listening in self._listening:
            asyncio.get_running_loop().remove_reader(listening)
            listening.close()
        for task in self._tasks:
            task.cancel()
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _watch(self, listening: socket.socket, handler: Handler) -> None:
        if not self._closed:
            loop = asyncio.get_running_loop()
            loop.add_reader(listening, self._accept, listening, handler)

    def _accept(self, listening: socket.socket, handler: Handler) -> None:
        try:
            connection, _ = listening.accept()
        except GONE:
            return
        except OSError:
            loop = asyncio.get_running_loop()
            loop.remove_reader(listening)
            loop.call_later(FULL_SECONDS, self._watch, listening, handler)
            return
        # A task that is cancelled before its first step runs nothing of the handler.
        self._task(handler(connection)).add_done_callback(lambda task: connection.close())

    def _task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


@contextlib.asynccontextmanager
async def streams(
    connection: socket.socket, handshake: Handshake | None = None
) -> AsyncIterator[Streams]:
    """The streams of a connected socket, which is closed after them.

    Parameters
    ----------
    connection : the socket.
    handshake : that of TLS; None for plain bytes.

    Raises
    ------
    OSError : when the handshake fails.
    """
    with contextlib.closing(connection):
        connection.setblocking(False)
        opening = asyncio.ensure_future(_opened(connection, handshake))
        try:
            reader, writer = await asyncio.shield(opening)
        except asyncio.CancelledError:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            await _completed(opening)
            if opening.exception() is None:
                await _end(opening.result()[1], linger=0)
            raise
        try:
            yield reader, writer
        finally:
            await _end(writer, LINGER_SECONDS)


async def connected(address: tuple[str, int] | Path) -> socket.socket:
    """A socket connected to a host and port, or to a Unix socket.

    Raises
    ------
    OSError : when no address of the host answers.
    """
    if isinstance(address, Path):
        return await _reached(socket.socket(socket.AF_UNIX), str(address))
    host, port = address
    addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    error = OSError(f"{host} has no address")
    for family, kind, number, _, resolved in addresses:
        try:
            return await _reached(socket.socket(family, kind, number), resolved)
        except OSError as refused:
            error = refused
    raise error


async def _reached(connection: socket.socket, address: Any) -> socket.socket:
    connection.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(connection, address)
    except BaseException:
        connection.close()
        raise
    return connection


async def _opened(connection: socket.socket, handshake: Handshake | None) -> Streams:
    if handshake is None:
        return await asyncio.open_connection(sock=connection)
    if not handshake.server_side:
        return await asyncio.open_connection(
            sock=connection,
            ssl=handshake.context,
            server_hostname="",  # the certificate is compared, not a name in it
            ssl_handshake_timeout=handshake.timeout,
        )
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport, _ = await loop.connect_accepted_socket(
        lambda: protocol, connection, ssl=handshake.context, ssl_handshake_timeout=handshake.timeout
    )
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def _end(writer: asyncio.StreamWriter, linger: float) -> None:
    """Send what is still to be sent, for a moment, and close."""
    if not writer.is_closing():  # TLS of Python 3.11.2 forgets a connection that is closed twice
        writer.close()
    ending = asyncio.ensure_future(writer.wait_closed())
    try:
        await asyncio.wait({ending}, timeout=linger)
    finally:
        writer.transport.abort()
        await _completed(ending)


async def _completed(task: asyncio.Future[Any]) -> None:
    """Wait for a task that ends in the next turns of the loop, also if this one is cancelled."""
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({task})
    task.exception()  # an error of a connection that ends anyway is nobody's
