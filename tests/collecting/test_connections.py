"""Connections without a request are closed; those with one are not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

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


@pytest.fixture(params=[H11Protocol, HttpToolsProtocol])
def served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[tuple[int, bytes]]:
    """The port of a collector that waits briefly for a head, and a report."""
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.1)
    folder = new_folder(tmp_path)
    listening = socket.create_server(("127.0.0.1", 0))
    app = application(folder, Intake(folder), 1e6)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, ws="none", http=impatient(request.param)
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield listening.getsockname()[1], messages_of(folder, 1)[0]
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
def test_a_head_that_does_not_come_ends_the_connection(
    served: tuple[int, bytes], begun: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", served[0]), timeout=30) as connection:
        connection.sendall(begun)
        assert everything(connection) == b""


def test_the_head_of_a_second_request_must_come_too(served: tuple[int, bytes]) -> None:
    port, report = served
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        whole = HEAD + b"Content-Length: %d\r\n\r\n" % len(report) + report
        connection.sendall(whole + b"GET /heal")
        answer = everything(connection)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.count(b"HTTP/1.1") == 1


def test_a_body_that_comes_late_is_taken(served: tuple[int, bytes]) -> None:
    """A request that has begun is left to the limit of its body."""
    port, report = served
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(report) + report[:9])
        with socket.create_connection(("127.0.0.1", port), timeout=30) as other:
            assert everything(other) == b""
        connection.sendall(report[9:])
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
