"""A tunnel of mutually authenticated TLS 1.3 between parties, for a library that speaks plain.

SPU's own link offers TLS, but a port of it that was given certificates goes on accepting plaintext
connections beside them, so that whoever reaches the port may inject messages. Here SPU listens on a
Unix socket in a directory of its user alone, and only the tunnel listens on the network. It lets a
connection through when the other side proves, by the handshake, that it holds the key of a
certificate that was announced for this session.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

CHUNK_BYTES = 2**18
VALID = timedelta(days=1)
CLOCKS_APART = timedelta(hours=1)
RETRY_SECONDS = 0.02
LINGER_SECONDS = 1.0

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, eq=False)
class Credentials:
    """A party's certificate of one session, and its key, which does not leave the process.

    Examples
    --------
    >>> "BEGIN CERTIFICATE" in Credentials.new("north").certificate
    True
    """

    certificate: str
    key: str = field(repr=False)

    @classmethod
    def new(cls, name: str) -> Credentials:
        """A fresh key on the curve P-256, and a certificate signed by itself."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - CLOCKS_APART)
            .not_valid_after(now + VALID)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(key, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        private = key.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return cls(certificate.public_bytes(pem).decode(), private.decode())


@dataclass(frozen=True)
class Peer:
    """A party of a session: where its tunnel listens, and the certificate announced for it."""

    name: str
    host: str
    port: int
    certificate: str

    @property
    def encoded(self) -> bytes:
        """The certificate in DER, as a handshake shows it."""
        return ssl.PEM_cert_to_DER_cert(self.certificate)


class Tunnel:
    """One party's end of the connections to all others.

    Parameters
    ----------
    credentials : its own certificate and key.
    directory : a directory of this user alone, for the Unix sockets.
    timeout : seconds for a connection or a handshake.
    lost : called once with a sentence when a connection in use breaks or cannot be made.
    host : the address on which to listen.
    """

    def __init__(
        self,
        credentials: Credentials,
        directory: Path,
        timeout: float,
        lost: Callable[[str], None],
        host: str = "127.0.0.1",
    ) -> None:
        self.sent = 0
        self.active = False
        self._credentials, self._directory = credentials, directory
        self._timeout, self._lost = timeout, lost
        self._socket = socket.create_server((host, 0))
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda loop, context: None)
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The TCP port on which it listens."""
        return int(self._socket.getsockname()[1])

    def open(self, rank: int, peers: list[Peer]) -> list[str]:
        """Begin to carry; returns the Unix socket of every party, the own one for SPU to listen on.

        Parameters
        ----------
        rank : this party's place among the peers.
        peers : all parties of the session, this one too.
        """
        paths = [self._directory / f"party-{place}" for place in range(len(peers))]
        self.active = True
        self._wait(self._serve(rank, peers, paths))
        return [f"unix:{path}" for path in paths]

    def close(self) -> None:
        """Stop listening and drop all connections."""
        self.active = False
        self._wait(self._drop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(self._timeout)
        self._loop.close()
        self._socket.close()

    def _wait(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(self._timeout)

    async def _drop(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports close their sockets in the loop's next turn

    async def _serve(self, rank: int, peers: list[Peer], paths: list[Path]) -> None:
        others = {peer.encoded: peer for place, peer in enumerate(peers) if place != rank}
        trusted = "".join(peer.certificate for peer in others.values())
        server = self._context(ssl.PROTOCOL_TLS_SERVER, trusted)

        async def inbound(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            peer = others.get(_certificate(writer))
            if peer is None:
                writer.close()
                return
            with contextlib.closing(writer):
                await self._carry(peer, (reader, writer), await self._local(paths[rank]))

        for place, peer in enumerate(peers):
            if place != rank:
                leaving = self._remembered(self._out(peer))
                self._servers.append(await asyncio.start_unix_server(leaving, paths[place]))
        coming = self._remembered(inbound)
        listening = await asyncio.start_server(
            coming, sock=self._socket, ssl=server, ssl_handshake_timeout=self._timeout
        )
        self._servers.append(listening)

    def _out(self, peer: Peer) -> Callable[..., Coroutine[Any, Any, None]]:
        client = self._context(ssl.PROTOCOL_TLS_CLIENT, peer.certificate)

        async def outbound(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.closing(writer):
                try:
                    connecting = asyncio.open_connection(
                        peer.host, peer.port, ssl=client, ssl_handshake_timeout=self._timeout
                    )
                    far = await asyncio.wait_for(connecting, self._timeout)
                except (OSError, TimeoutError) as error:
                    self._failed(f"no connection to {peer.name}: {error or 'it did not answer'}")
                    return
                with contextlib.closing(far[1]):
                    if _certificate(far[1]) == peer.encoded:
                        await self._carry(peer, far, (reader, writer))

        return outbound

    def _remembered(
        self, handler: Callable[..., Coroutine[Any, Any, None]]
    ) -> Callable[..., Coroutine[Any, Any, None]]:
        async def remembered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            if task is not None:
                self._tasks.add(task)
            try:
                await handler(reader, writer)
            finally:
                if task is not None:
                    self._tasks.discard(task)

        return remembered

    async def _local(self, path: Path) -> Streams:
        """A connection to the own library, which may still be about to listen."""
        async with asyncio.timeout(self._timeout):
            while True:
                try:
                    return await asyncio.open_unix_connection(path)
                except (FileNotFoundError, ConnectionRefusedError):
                    await asyncio.sleep(RETRY_SECONDS)

    async def _carry(self, peer: Peer, far: Streams, near: Streams) -> None:
        """Copy in both directions until either side ends."""
        there = asyncio.ensure_future(self._copy(near[0], far[1], count=True))
        back = asyncio.ensure_future(self._copy(far[0], near[1], count=False))
        try:
            await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
            self._failed(f"the connection to {peer.name} was lost")
        finally:
            for direction in (there, back):
                direction.cancel()
            await asyncio.gather(there, back, return_exceptions=True)
            await asyncio.gather(*(_ended(writer) for _, writer in (near, far)))

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: bool
    ) -> None:
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            if count:
                self.sent += len(data)
            await writer.drain()

    def _failed(self, sentence: str) -> None:
        if self.active:
            self.active = False
            self._lost(sentence)

    def _context(self, side: int, trusted: str) -> ssl.SSLContext:
        context = ssl.SSLContext(side)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=trusted)
        chain = self._directory / "chain.pem"
        chain.touch(mode=0o600)
        try:
            chain.write_text(self._credentials.key + self._credentials.certificate)
            context.load_cert_chain(chain)
        finally:
            chain.unlink()
        return context


async def _ended(writer: asyncio.StreamWriter) -> None:
    """Send what is still to be sent, for a moment, and close."""
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        await asyncio.wait_for(writer.wait_closed(), LINGER_SECONDS)
    writer.transport.abort()


def _certificate(writer: asyncio.StreamWriter) -> bytes:
    """The certificate that the other side has shown, in DER."""
    secured = writer.get_extra_info("ssl_object")
    return (secured and secured.getpeercert(binary_form=True)) or b""
