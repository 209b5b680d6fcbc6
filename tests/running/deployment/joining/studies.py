"""A coordinator's folder with a plan, a TLS server and a CONNECT proxy, for tests of joining."""

from __future__ import annotations

import asyncio
import http.server
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tacit.cli.federation.inviting import party_text, plan_text
from tacit.running.deployment import letters
from tacit.running.deployment.door import ROSTER_FILE, App
from tacit.running.deployment.inviting import admit, invite, prepare, publish_roster
from tacit.running.deployment.keys import Certificates, make_certificates
from tacit.running.deployment.letters import Answer, Invitation
from tacit.running.deployment.server import Coordinator
from tacit.running.deployment.site import accept
from tacit.running.session.plan_file import Plan

SERVER = "localhost:18443"


@dataclass(frozen=True)
class Study:
    """A coordinator with a plan, and the folder beside which sites have theirs."""

    folder: Path
    coordinator: Coordinator
    plan: Path

    @classmethod
    def new(cls, folder: Path, sites: tuple[str, ...] = ("a", "b", "c")) -> Study:
        plan = folder / "centre" / "plan.toml"
        plan.parent.mkdir(parents=True)
        plan.write_text(plan_text("study", dict.fromkeys(sites)), encoding="utf-8")
        coordinator, _ = prepare(plan, SERVER)
        return cls(folder, coordinator, plan)

    def invited(self, site: str, again: bool = False) -> Invitation:
        return invite(self.plan, site, self.coordinator, SERVER, again)

    def accepted(self, site: str) -> Answer:
        invitation = self.invited(site)
        answer = accept(invitation, self.folder / site)
        text = party_text(site, server=SERVER)
        (self.folder / site / "party.toml").write_text(text, encoding="utf-8")
        return answer

    def admitted(self, site: str) -> Answer:
        answer = self.accepted(site)
        admit(self.plan, self.coordinator, answer)
        return answer

    def complete(self, clock: Callable[[], float] = time.time) -> bytes:
        """The signed roster, once every site of the plan is admitted."""
        for party in Plan.read(self.plan).parties:
            if party.key is None:
                self.admitted(party.name)
        assert publish_roster(self.plan, self.coordinator, clock)
        return (self.coordinator.private / ROSTER_FILE).read_bytes()


def quick_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes of the same form and fewer evaluations; what they resist is not tested with them."""
    monkeypatch.setattr(letters, "COST", 2)


def sent_by(
    app: App, path: str, *headers: tuple[bytes, bytes], kind: str = "http"
) -> list[MutableMapping[str, Any]]:
    """What an application sends to who asks; it must not read what was sent to it."""
    sent: list[MutableMapping[str, Any]] = []

    async def send(part: MutableMapping[str, Any]) -> None:
        sent.append(part)

    async def receive() -> Any:
        raise AssertionError("a door does not read what a stranger sends")

    async def asked() -> None:
        await app({"type": kind, "path": path, "headers": list(headers)}, receive, send)

    asyncio.run(asked())
    return sent


@contextmanager
def tls_server(
    folder: Path,
    status: int = 200,
    body: bytes = b"roster",
    address: str = "127.0.0.1",
    begins: datetime | None = None,
) -> Iterator[tuple[int, Path]]:
    """A server that gives one answer; its port, and the certificate of its authority."""
    files = Certificates.within(folder, folder / "private")
    make_certificates(files, ["localhost"], begins)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    server = http.server.ThreadingHTTPServer((address, 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with _serving(server) as port:
        yield port, files.authority


@contextmanager
def _serving(server: socketserver.TCPServer) -> Iterator[int]:
    """The port of a server that answers until the end of the block."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def connect_proxy(to: int | None = None, port: int = 0) -> Iterator[tuple[int, list[str]]]:
    """A proxy that knows CONNECT only; its port, and the targets that it was asked for.

    Parameters
    ----------
    to : the port to which it connects whatever it is asked for.
    port : its own.
    """
    asked: list[str] = []

    class Tunnel(http.server.BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            asked.append(f"CONNECT {self.path}")
            host, _, asked_port = self.path.rpartition(":")
            self.send_response(200)
            self.end_headers()
            with socket.create_connection((host, to or int(asked_port))) as upstream:
                back = threading.Thread(target=_copy, args=(upstream, self.connection), daemon=True)
                back.start()
                _copy(self.connection, upstream)
                back.join()

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    with _serving(http.server.ThreadingHTTPServer(("127.0.0.1", port), Tunnel)) as own_port:
        yield own_port, asked


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return
