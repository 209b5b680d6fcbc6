"""A TLS server and a CONNECT proxy on loopback, for tests of reaching."""

from __future__ import annotations

import http.server
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tacit.running.deployment.keys import Certificates, make_certificates


@contextmanager
def tls_server(
    folder: Path, status: int = 200, body: bytes = b"roster", address: str = "127.0.0.1"
) -> Iterator[tuple[int, Path]]:
    """A server that gives one answer; its port, and the certificate of its authority."""
    files = Certificates.within(folder, folder / "private")
    make_certificates(files, ["localhost"])

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
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1], files.authority
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def connect_proxy() -> Iterator[tuple[int, list[str]]]:
    """A proxy that knows CONNECT only; its port, and the targets that it was asked for."""
    asked: list[str] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=_tunnel, args=(client, asked), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1], asked
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _tunnel(client: socket.socket, asked: list[str]) -> None:
    with client:
        head = b""
        while b"\r\n\r\n" not in head:
            more = client.recv(4096)
            if not more:
                return
            head += more
        method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
        asked.append(f"{method} {target}")
        host, _, port = target.rpartition(":")
        if method != "CONNECT":
            client.sendall(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n")
            return
        with socket.create_connection((host, int(port))) as upstream:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=_copy, args=(upstream, client), daemon=True)
            back.start()
            _copy(client, upstream)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return
