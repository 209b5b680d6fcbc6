"""A tunnel of mutually authenticated TLS 1.3 between parties, for a library that uses plain.

SPU's own link offers TLS, but a port of it that was given certificates goes on accepting plaintext
connections next to them, so that any host that reaches the port may inject messages. Here SPU
listens on a Unix socket in a directory of its user alone, and only the tunnel listens on the
network. It lets a connection through when the other side proves, by the handshake, that it holds
the key of a certificate that was announced for this session.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import re
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tacit.running.mpc import connections

CHUNK_BYTES = 2**18
VALID = timedelta(days=1)
CLOCKS_APART = timedelta(hours=1)
RETRY_SECONDS = 0.02
MARGIN_SECONDS = 2 * connections.LINGER_SECONDS
"""Two connections of one task may linger when it ends."""

NAME = re.compile(r"[a-z0-9-]{1,40}")
LENGTH = struct.Struct("<Q")
MAX_MESSAGE = 2**31
TAKEN = b"\x06"
NO_ANSWER = "it did not answer"
BROKEN = (OSError, TimeoutError, asyncio.IncompleteReadError)


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
        """A fresh key on the curve P-256, and a self-signed certificate."""
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

    A connection between two parties begins with the name of the computation whose bytes it
    carries, or with an empty name, for one message.

    Parameters
    ----------
    credentials : the party's certificate and key.
    directory : a directory of this user alone, for the Unix sockets.
    timeout : seconds for a connection, a handshake or a message.
    listening : the socket on which it listens.
    lost : called once with a sentence when a connection in use breaks or cannot be made.
    """

    def __init__(
        self,
        credentials: Credentials,
        directory: Path,
        timeout: float,
        listening: socket.socket,
        lost: Callable[[str], None],
    ) -> None:
        self.sent = 0
        self._active: set[str] = set()
        self._members: dict[str, frozenset[int]] = {}
        self._credentials, self._directory = credentials, directory
        self._timeout, self._lost = timeout, lost
        self._socket = listening
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda loop, context: None)
        self._connections = connections.Connections()
        self._rank, self._peers = 0, list[Peer]()
        self._messages: list[queue.Queue[bytes]] = []
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def open(self, rank: int, peers: list[Peer]) -> None:
        """Begin to listen.

        Parameters
        ----------
        rank : this party's index among the peers.
        peers : all parties of the session, this one too.
        """
        self._rank, self._peers = rank, peers
        self._messages = [queue.Queue() for _ in peers]
        self._wait(self._serve)

    def sockets(self, name: str, members: Sequence[int]) -> list[str]:
        """Unix sockets that lead to the members; the library listens on that of this party.

        Parameters
        ----------
        name : of the computation; lower-case letters, digits and hyphens.
        members : the parties' indices among the peers.
        """
        self._active.add(name)
        self._members[name] = frozenset(members)
        paths = {
            index: self._directory / (name if index == self._rank else f"{name}.{index}")
            for index in members
        }
        self._wait(self._lead, name, paths)
        return [f"unix:{path}" for path in paths.values()]

    def finish(self, name: str) -> None:
        """Mark a computation as done: its broken connections are no failures from now on."""
        self._active.discard(name)

    def send(self, index: int, message: bytes) -> None:
        """Give a party a message, and wait until it has it.

        Raises
        ------
        OSError : when it does not take it in time, or the tunnel is closed meanwhile.
        """
        self._wait(self._connections.run, self._given, self._peers[index], message)
        self.sent += len(message)

    def receive(self, index: int) -> bytes:
        """The next message of a party.

        Raises
        ------
        TimeoutError : when none comes in time.
        """
        try:
            return self._messages[index].get(timeout=self._timeout)
        except queue.Empty:
            raise TimeoutError(f"no message from {self._peers[index].name}") from None

    def close(self) -> None:
        """Stop listening and drop all connections; nothing the second time."""
        if self._loop.is_closed():
            return
        self._active.clear()
        self._wait(self._connections.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(self._timeout)
        self._loop.close()
        self._socket.close()

    def _wait(self, work: connections.Work, *arguments: Any) -> None:
        if self._loop.is_closed():
            raise ConnectionError("the tunnel is closed")
        waiting = asyncio.run_coroutine_threadsafe(work(*arguments), self._loop)
        try:
            waiting.result(self._timeout + MARGIN_SECONDS)
        except CancelledError:
            raise ConnectionError("the tunnel is closed") from None

    async def _serve(self) -> None:
        others = {peer.encoded: k for k, peer in enumerate(self._peers) if k != self._rank}
        trusted = "".join(self._peers[index].certificate for index in others.values())
        server = self._handshake(ssl.PROTOCOL_TLS_SERVER, trusted)

        async def inbound(connection: socket.socket) -> None:
            with contextlib.suppress(*BROKEN):
                async with connections.streams(connection, server) as far:
                    index = others.get(_certificate(far[1]))
                    if index is not None:
                        await self._answer(index, far)

        self._connections.accept(self._socket, inbound)

    async def _answer(self, index: int, far: connections.Streams) -> None:
        """What a party began this connection for: a computation, or one message."""
        name = await asyncio.wait_for(_read_name(far[0]), self._timeout)
        if name:
            async with connections.streams(await self._local(name, index)) as near:
                await self._carry(self._peers[index], name, far, near)
        else:
            await self._take(index, *far)

    async def _lead(self, name: str, paths: Mapping[int, Path]) -> None:
        for index, path in paths.items():
            if index != self._rank:
                listening = socket.socket(socket.AF_UNIX)
                listening.bind(str(path))
                listening.listen()
                self._connections.accept(listening, self._out(self._peers[index], name))

    def _out(self, peer: Peer, name: str) -> connections.Handler:
        async def outbound(connection: socket.socket) -> None:
            async with connections.streams(connection) as near:
                try:
                    async with self._connected(peer, name) as far:
                        await self._carry(peer, name, far, near)
                except BROKEN as error:
                    self._failed(name, f"no connection to {peer.name}: {error or NO_ANSWER}")

        return outbound

    @contextlib.asynccontextmanager
    async def _connected(self, peer: Peer, name: str) -> AsyncIterator[connections.Streams]:
        """A connection to another party, which has shown the certificate announced for it."""
        client = self._handshake(ssl.PROTOCOL_TLS_CLIENT, peer.certificate)
        connection = await self._reached((peer.host, peer.port), ConnectionRefusedError)
        async with connections.streams(connection, client) as (reader, writer):
            if _certificate(writer) != peer.encoded:
                raise ssl.SSLError("it showed another certificate")
            encoded = name.encode()
            writer.write(bytes([len(encoded)]) + encoded)
            yield reader, writer

    async def _reached(
        self, address: tuple[str, int] | Path, *absent: type[OSError]
    ) -> socket.socket:
        """A connection to what may still be about to listen, and is ``absent`` until then."""
        async with asyncio.timeout(self._timeout):
            while True:
                try:
                    return await connections.connected(address)
                except absent:
                    await asyncio.sleep(RETRY_SECONDS)

    async def _given(self, peer: Peer, message: bytes) -> None:
        async with asyncio.timeout(self._timeout), self._connected(peer, "") as (reader, writer):
            writer.write(LENGTH.pack(len(message)) + message)
            await writer.drain()
            if await reader.read(1) != TAKEN:
                raise ConnectionError(f"{peer.name} did not take a message")

    async def _take(
        self, index: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Take one message."""
        (size,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
        if size > MAX_MESSAGE:
            return
        message = await reader.readexactly(size)
        writer.write(TAKEN)  # before anybody acts on the message, and closes all connections
        await writer.drain()
        self._messages[index].put(message)

    async def _local(self, name: str, index: int) -> socket.socket:
        """A connection to this party's library for another party.

        Raises
        ------
        ConnectionError : for a party that is no member of that computation. The library knows its
            members by nothing else than the connections that reach it.
        """
        async with asyncio.timeout(self._timeout):
            while name not in self._members:
                await asyncio.sleep(RETRY_SECONDS)
        if index not in self._members[name]:
            raise ConnectionError("another party's computation")
        path = self._directory / name
        return await self._reached(path, FileNotFoundError, ConnectionRefusedError)

    async def _carry(
        self, peer: Peer, name: str, far: connections.Streams, near: connections.Streams
    ) -> None:
        """Copy in both directions until either side ends."""
        there = asyncio.ensure_future(self._copy(near[0], far[1], count=True))
        back = asyncio.ensure_future(self._copy(far[0], near[1], count=False))
        try:
            await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
            self._failed(name, f"the connection to {peer.name} was lost")
        finally:
            for direction in (there, back):
                direction.cancel()
            await asyncio.gather(there, back, return_exceptions=True)

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: bool
    ) -> None:
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            if count:
                self.sent += len(data)
            await writer.drain()

    def _failed(self, name: str, sentence: str) -> None:
        if name in self._active:
            self._active.clear()
            self._lost(sentence)

    def _handshake(self, side: int, trusted: str) -> connections.Handshake:
        """One side of TLS with this party's certificate, for those that show a trusted one."""
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
        return connections.Handshake(context, self._timeout)


async def _read_name(reader: asyncio.StreamReader) -> str:
    """The name with which a connection begins; empty for a message.

    Raises
    ------
    ConnectionError : for what is no name: it becomes part of a path.
    """
    (size,) = await reader.readexactly(1)
    name = (await reader.readexactly(size)).decode("ascii", errors="replace")
    if name and not NAME.fullmatch(name):
        raise ConnectionError("a connection begins with no name")
    return name


def _certificate(writer: asyncio.StreamWriter) -> bytes:
    """The certificate that the other side has shown, in DER."""
    secured = writer.get_extra_info("ssl_object")
    return (secured and secured.getpeercert(binary_form=True)) or b""
