"""Connections without a request are closed, and those that bring too much; the others are not."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import threading
import weakref
from asyncio import Transport
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from tacit.collecting import connections
from tacit.collecting.connections import HEAD_BYTES, Connection, secured
from tacit.collecting.folder import Folder
from tacit.running.deployment.keys import Certificates, make_certificates
from tests.collecting.node import running
from tests.collecting.support import messages_of, new_folder
from tests.loops import in_a_loop

HEAD = b"POST /reports HTTP/1.1\r\nHost: collector\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
UPGRADED = HEAD + b"Connection: upgrade\r\nUpgrade: x\r\n\r\n"
WHOLE = b"GET /campaign HTTP/1.1\r\n\r\n"


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


@dataclass(frozen=True)
class Served:
    """A collector that waits briefly for a head, once a test has sent what is to come in time."""

    port: int
    report: bytes
    begins: threading.Event

    @property
    def whole(self) -> bytes:
        """A request with a report."""
        return HEAD + b"Content-Length: %d\r\n\r\n" % len(self.report) + self.report


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    folder, begins = new_folder(tmp_path), threading.Event()

    class Beginning(Connection):
        """Connections at which nobody looks before an event: a busy machine may send late."""

        def _check(self, before: Any) -> None:
            if begins.is_set():
                super()._check(before)
            else:
                self._checking = self.loop.call_later(0.1, self._check, before)

    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.1)
    with running(folder, http=Beginning) as port:
        yield Served(port, messages_of(folder, 1)[0], begins)


def everything(connection: socket.socket) -> bytes:
    """What comes until the server closes; a server that never does fails the test."""
    parts = []
    while part := connection.recv(4096):
        parts.append(part)
    return b"".join(parts)


def is_cut_off(connection: socket.socket) -> bool:
    """Whether the server ends it, without an answer; one that never does fails the test."""
    with connection, suppress(ConnectionResetError):
        return b"HTTP" not in everything(connection)
    return True


@pytest.mark.parametrize("requests", [0, 1])
@pytest.mark.parametrize("begun", [b"", b"POST /rep", HEAD])
def test_a_missing_head_ends_the_connection(served: Served, begun: bytes, requests: int) -> None:
    """The first one, or one after a request that is answered."""
    with connected(served.port) as connection:
        connection.sendall(requests * served.whole + begun)
        served.begins.set()
        answer = everything(connection)
    assert answer.startswith(requests * b"HTTP/1.1 200")
    assert answer.count(b"HTTP/1.1") == requests


def test_a_body_that_comes_late_is_taken(served: Served) -> None:
    """A request that has begun is left to the limit of its body."""
    with connected(served.port) as connection:
        connection.sendall(served.whole[:-9])
        served.begins.set()
        with connected(served.port) as other:
            assert everything(other) == b""
        connection.sendall(served.whole[-9:])
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")


@pytest.fixture
def tls(tmp_path: Path) -> Certificates:
    files = Certificates.within(tmp_path, tmp_path)
    make_certificates(files, ("localhost",))
    return files


def test_connections_count_before_their_tls_handshake(
    folder: Folder, tls: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that send nothing, no TLS, or half of it make room; whoever follows is answered."""
    monkeypatch.setattr(connections, "CONNECTIONS", 4)
    monkeypatch.setattr(connections, "HEAD_SECONDS", 300.0)
    trusted = ssl.create_default_context(cafile=tls.authority)
    half = b"\x16\x03\x01\x02\x00\x01"
    with running(folder, http=secured(tls.certificate, tls.key)) as port:
        idle = [connected(port) for _ in range(12)]
        for connection, begun in zip(idle, 4 * [b"", WHOLE, half], strict=True):
            with suppress(OSError):
                connection.sendall(begun)
        for _ in range(6):
            with trusted.wrap_socket(connected(port), server_hostname="localhost") as secure:
                secure.sendall(WHOLE)
                assert secure.recv(4096).startswith(b"HTTP/1.1 200")
        assert all(is_cut_off(connection) for connection in idle[:8])
        for connection in idle[8:]:
            connection.close()


def test_a_tls_handshake_that_does_not_come_ends_the_connection(
    folder: Folder, tls: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.1)
    with running(folder, http=secured(tls.certificate, tls.key)) as port, connected(port) as idle:
        assert is_cut_off(idle)


class Wire(Transport):
    """Where a connection's bytes go; notes whether it was ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = self.written_late = False

    def write(self, data: Any) -> None:
        self.written_late |= self.ended

    def is_closing(self) -> bool:
        return self.ended

    def abort(self) -> None:
        self.ended = True

    close = abort
    pause_reading = resume_reading = lambda self: None


class Bench:
    """Connections without a network, to an application that answers after an event."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self._config = uvicorn.Config(
            self._app, http=Connection, ws="none", interface="asgi3", log_level="error"
        )
        self._config.load()
        self._state = ServerState()

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        await self.answers.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})

    def connected(self, *begun: bytes) -> tuple[Connection, Wire]:
        """A new connection that brought some bytes."""
        connection = Connection(self._config, self._state, {})
        wire = Wire()
        connection.connection_made(wire)
        for each in begun:
            connection.data_received(each)
        return connection, wire

    @property
    def tasks(self) -> set[asyncio.Task[None]]:
        """Requests that are being answered."""
        return self._state.tasks

    def ended(self, wires: list[Wire]) -> list[int]:
        """Which of them were ended."""
        return [index for index, wire in enumerate(wires) if wire.ended]


ENDLESS = {
    "lines": (HEAD, b"a:\r\n"),
    "long lines": (HEAD, b"X: " + b"a" * 5000 + b"\r\n"),
    "one line": (HEAD + b"X: ", b"a"),
    "one name": (HEAD, b"a"),
    "address": (b"GET /", b"a"),
    "nothing": (b"", b"\r\n"),
    "trailers": (CHUNKED, b"a:\r\n"),
    "one trailer": (CHUNKED + b"X: ", b"a"),
    "upgrade": (UPGRADED, b"a"),
}


@pytest.mark.parametrize("read", [1, 700, 2**18])
@pytest.mark.parametrize("kind", ENDLESS)
@in_a_loop
async def test_what_has_no_end_is_ended_within_its_limit(kind: str, read: int) -> None:
    """However it comes; the bytes are counted that were taken before the end."""
    begun, more = ENDLESS[kind]
    connection, wire = Bench().connected(begun)
    parser, fed = connection.parser, [0]

    class Counted:
        def __getattr__(self, name: str) -> Any:
            return getattr(parser, name)

        def feed_data(self, data: bytes) -> None:
            fed[0] += len(data)
            parser.feed_data(data)

    connection.parser = Counted()  # type: ignore[assignment]
    coming = chain.from_iterable(repeat(more))
    while not wire.ended and fed[0] <= 2 * HEAD_BYTES:
        connection.data_received(bytes(next(coming) for _ in range(read)))
    assert wire.ended
    assert fed[0] <= 17 * 2**10


@pytest.mark.parametrize("line", [b"a:\r\n", b"X: " + b"a" * 16_000 + b"\r\n"])
@in_a_loop
async def test_heads_up_to_the_limit_are_read(line: bytes) -> None:
    """Also after a body that is longer; whether it comes with it or apart."""
    body = bytes(3 * HEAD_BYTES)
    room = HEAD_BYTES - len(HEAD) - len(b"Content-Length: 99999\r\n\r\n")
    head = HEAD + line * (room // len(line)) + b"Content-Length: %d\r\n\r\n" % len(body)
    bench = Bench()
    for parts in ([head, body], [head + body]):
        connection, wire = bench.connected(*parts)
        assert not wire.ended
        assert not connection.cycle.more_body


@in_a_loop
async def test_a_second_request_before_the_answer_ends_the_connection() -> None:
    """Each of those in one read would be kept until the first is answered."""
    connection, wire = Bench().connected(WHOLE)
    assert not wire.is_closing()
    connection.data_received(WHOLE * 10_000)
    assert wire.is_closing()
    assert len(connection.pipeline) <= 2**10 // len(WHOLE) + 1


@pytest.mark.parametrize("more", [WHOLE, WHOLE * 3, UPGRADED + bytes(2 * HEAD_BYTES)])
@in_a_loop
async def test_an_answer_to_a_connection_that_was_ended_is_not_written(more: bytes) -> None:
    """The system's transport raises then, and each would put a traceback into the log."""
    bench = Bench()
    _, wire = bench.connected(WHOLE, more)
    assert wire.ended
    bench.answers.set()
    await asyncio.gather(*bench.tasks)
    assert not wire.written_late


@in_a_loop
async def test_too_many_connections_end_the_one_that_waits_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For a head, a body, or its reader; who is owed an answer stays, and a new one may not."""
    monkeypatch.setattr(connections, "CONNECTIONS", 4)
    bench, wires = Bench(), list[Wire]()
    slow = HEAD + b"Content-Length: 2\r\n\r\na"
    for number, begun in enumerate([WHOLE, b"", slow, WHOLE]):
        connection, wire = bench.connected(begun) if begun else bench.connected()
        connection._since = number
        wires.append(wire)
    last = connection
    ends = []
    for _ in range(3):
        ends.append(bench.ended(wires))
        wires.append(bench.connected(WHOLE)[1])
    assert ends == [[], [1], [1, 2]]
    assert bench.ended(wires) == [1, 2, 6]
    last.pause_writing()
    wires.append(bench.connected()[1])
    last.resume_writing()
    assert bench.ended(wires) == [1, 2, 3, 6]


@in_a_loop
async def test_a_connection_that_was_lost_is_kept_by_nobody() -> None:
    """Heads of many connections that went away would otherwise add up until nobody looks."""
    connection, _ = Bench().connected(HEAD)
    connection.connection_lost(ConnectionResetError())
    gone = weakref.ref(connection)
    del connection
    gc.collect()
    assert gone() is None
