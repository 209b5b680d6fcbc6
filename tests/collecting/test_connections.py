"""Connections without a request are closed; those with one are not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tacit.collecting import connections
from tacit.collecting.connections import impatient
from tacit.collecting.intake import Intake
from tacit.collecting.service import application
from tests.collecting.support import messages_of, new_folder

HEAD = b"POST /reports HTTP/1.1\r\nHost: collector\r\n"


@dataclass(frozen=True)
class Served:
    """A collector that waits briefly for a head, once a test has sent what is to come in time."""

    port: int
    report: bytes
    begins: threading.Event

    def connected(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)


def beginning(base: Any, begins: threading.Event) -> Any:
    """Connections at which nobody looks before an event: a busy machine may send late."""

    class Beginning(impatient(base)):  # type: ignore[misc]
        def _look(self, before: Any) -> None:
            if begins.is_set():
                super()._look(before)
            else:
                self.loop.call_later(connections.HEAD_SECONDS, self._look, before)

    return Beginning


@pytest.fixture(params=[H11Protocol, HttpToolsProtocol])
def served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Served]:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.1)
    folder, begins = new_folder(tmp_path), threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))
    app = application(folder, Intake(folder), 1e6)
    kind = beginning(request.param, begins)
    config = uvicorn.Config(app, log_level="warning", access_log=False, ws="none", http=kind)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield Served(listening.getsockname()[1], messages_of(folder, 1)[0], begins)
    server.should_exit = True
    thread.join()
    listening.close()


def everything(connection: socket.socket) -> bytes:
    """What comes until the server closes; a server that never does fails the test."""
    parts = []
    while part := connection.recv(4096):
        parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize("begun", [b"", b"POST /rep", HEAD])
def test_a_head_that_does_not_come_ends_the_connection(served: Served, begun: bytes) -> None:
    with served.connected() as connection:
        connection.sendall(begun)
        served.begins.set()
        assert everything(connection) == b""


def test_the_head_of_a_second_request_must_come_too(served: Served) -> None:
    with served.connected() as connection:
        whole = HEAD + b"Content-Length: %d\r\n\r\n" % len(served.report) + served.report
        connection.sendall(whole + b"GET /heal")
        served.begins.set()
        answer = everything(connection)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.count(b"HTTP/1.1") == 1


def test_a_body_that_comes_late_is_taken(served: Served) -> None:
    """A request that has begun is left to the limit of its body."""
    report = served.report
    with served.connected() as connection:
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(report) + report[:9])
        served.begins.set()
        with served.connected() as other:
            assert everything(other) == b""
        connection.sendall(report[9:])
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
