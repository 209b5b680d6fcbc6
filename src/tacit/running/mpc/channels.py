"""Direct channels between parties: TLS between announced certificates, SPU over it.

A party makes a key and a certificate for every computation. The certificate is announced with the
party's signature, so that a relay of the announcement cannot stand between two parties.
"""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tacit.protocol import mpc
from tacit.running.mpc import transport
from tacit.running.mpc.spu import SPURun, link, load_engine, stopping
from tacit.running.mpc.tunnel import Credentials, Peer, Tunnel

Address = tuple[str, int]
"""Host and port."""

NO_ENGINE = "it has no engine for computations between parties: tacit[two-party], on Python 3.11"
NOT_FREE = "it cannot listen at the address in its own file"
DONE = b"done"


@dataclass
class TunnelTransport(transport.Transport):
    """Reaches other parties by TCP, and computes with them by SPU.

    Parameters
    ----------
    listen : where this party listens; port 0 takes any that is free.
    address : how others reach it there; None for ``listen``.
    timeout : seconds to wait for every message of another party.
    setup_timeout : seconds to wait for the others to come; None for ``timeout``.
    lost : called with a sentence when a channel breaks; None waits for the computation to notice.
    reachable : the addresses that this party connects to; None for any that a party announces.
    """

    listen: Address
    address: Address | None = None
    timeout: float = 60.0
    setup_timeout: float | None = None
    lost: Callable[[str], None] | None = None
    reachable: Collection[Address] | None = None
    _listening: socket.socket | None = field(default=None, init=False)

    def announce(self) -> transport.Announcement:
        """Make a key and a certificate, and see that the address is free."""
        if find_spec("spu") is None:
            raise transport.UnreachableError(NO_ENGINE)
        self._close()
        try:
            self._listening = socket.create_server(self.listen)
        except OSError as error:
            raise transport.UnreachableError(NOT_FREE) from error
        port = int(self._listening.getsockname()[1])
        host, public_port = self.address or (self.listen[0], port)
        credentials = Credentials.new(f"party {os.urandom(8).hex()}")  # TLS looks trust up by name
        public = {"host": host, "port": public_port, "certificate": credentials.certificate}
        secret = {"certificate": credentials.certificate, "key": credentials.key, "port": port}
        return transport.Announcement(public, secret)

    @contextmanager
    def meet(self, meeting: transport.Meeting) -> Iterator[transport.MeasuredPeers]:
        """Listen, and reach the others where they announced to be."""
        peers = [_peer(index, public) for index, public in enumerate(meeting.public)]
        _check_certificates(peers, meeting)
        _check_addresses(peers, meeting.index, self.reachable)
        secret = meeting.secret
        credentials = Credentials(secret["certificate"], secret["key"])
        load_engine()
        with tempfile.TemporaryDirectory(prefix="tacit-") as directory:
            losses: list[str] = []
            setup_timeout = self.setup_timeout or self.timeout
            listening, lost = self._taken(secret["port"]), self.lost or losses.append
            tunnel = Tunnel(credentials, Path(directory), setup_timeout, listening, lost)
            try:
                tunnel.open(meeting.index, peers)
                channels = _Channels(tunnel, meeting, self.timeout, setup_timeout)
                yield channels
                channels.part()
            except mpc.MPCError as error:
                raise mpc.MPCError("; ".join([*losses[:1], str(error)])) from error
            except OSError as error:
                raise mpc.MPCError(str(error) or "a party did not answer in time") from error
            finally:
                tunnel.close()

    def _taken(self, port: int) -> socket.socket:
        """The listening socket: that of the announcement, or its address in another process."""
        listening, self._listening = self._listening, None
        if listening is not None:
            return listening
        try:
            return socket.create_server((self.listen[0], port))
        except OSError as error:
            raise mpc.MPCError(f"port {port} cannot be listened on: {error}") from error

    def _close(self) -> None:
        if self._listening is not None:
            self._listening.close()


class _Channels(transport.MeasuredPeers):
    """The parties of one meeting, over tunnels."""

    def __init__(
        self, tunnel: Tunnel, meeting: transport.Meeting, timeout: float, setup_timeout: float
    ) -> None:
        self.index, self.offers = meeting.index, meeting.offers
        self.sessions = []
        self._tunnel, self._meeting = tunnel, meeting
        self._timeout, self._setup_timeout = timeout, setup_timeout

    @property
    def sent(self) -> int:  # type: ignore[override]
        """The bytes that this party sent."""
        return self._tunnel.sent

    @contextmanager
    def link(
        self, members: Sequence[int], items: int, comparisons: int | None = None
    ) -> Iterator[mpc.SharedRun]:
        """SPU's link between the members, under a name that all of them derive."""
        earlier = sum(each.parties == tuple(members) for each in self.sessions)
        name = "-".join(map(str, (*members, earlier)))
        sockets = self._tunnel.sockets(name, members)
        session = f"{self._meeting.session} {name}"
        rank = list(members).index(self.index)
        before = self._tunnel.sent
        context = link(session, rank, sockets, self._timeout, self._setup_timeout)
        began = time.perf_counter()
        yield SPURun(context, items if comparisons is None else comparisons)
        seconds = time.perf_counter() - began
        self._tunnel.finish(name)
        with stopping():
            context.stop_link()
        sent = self._tunnel.sent - before
        self.sessions.append(transport.Session(tuple(members), items, seconds, sent))

    def send(self, index: int, message: bytes) -> None:
        """Send a message by a separate connection."""
        self._tunnel.send(index, message)

    def receive(self, index: int) -> bytes:
        """The next message of another party."""
        return self._tunnel.receive(index)

    def part(self) -> None:
        """Keep the channels until all others are done with them."""
        others = [index for index in range(len(self.offers)) if index != self.index]
        for index in others:
            self._tunnel.send(index, DONE)
        for index in others:
            if self._tunnel.receive(index) != DONE:
                raise mpc.MPCError(f"party {index} sent an unexpected message")


def _check_certificates(peers: Sequence[Peer], meeting: transport.Meeting) -> None:
    """Refuse certificates that do not distinguish the parties.

    Anyone who shows a certificate counts as the party that announced it. A party could announce the
    certificate of another party: then that party would receive its messages, or messages of that
    party would count as its own.

    Raises
    ------
    MPCError : for two parties with one certificate, or another than this party announced.
    """
    shown = [peer.encoded for peer in peers]
    announced = Peer("this party", "", 0, meeting.secret["certificate"]).encoded
    if shown[meeting.index] != announced:
        raise mpc.MPCError("the coordinator brought an older announcement of this party")
    for index, certificate in enumerate(shown):
        if certificate in shown[:index]:
            first = shown.index(certificate)
            raise mpc.MPCError(f"parties {first} and {index} announced one certificate")


def _check_addresses(
    peers: Sequence[Peer], index: int, reachable: Collection[Address] | None
) -> None:
    """Refuse to connect to an address that this party's file does not list.

    Without the list a party could announce any address, and have the others connect to a service
    that only they can reach.

    Raises
    ------
    MPCError : for such an address.
    """
    if reachable is None:
        return
    for number, peer in enumerate(peers):
        if number != index and (peer.host, peer.port) not in reachable:
            raise mpc.MPCError(
                f"party {number} announced an address that is not in this party's list of peers"
            )


def _peer(index: int, public: Mapping[str, Any]) -> Peer:
    """Another party as it announced itself.

    Raises
    ------
    MPCError : for an announcement of another kind.
    """
    kinds = {name: type(value) for name, value in public.items()}
    if kinds != {"host": str, "port": int, "certificate": str}:
        raise mpc.MPCError(f"party {index} announced no host, port and certificate")
    peer = Peer(f"party {index}", **public)
    with suppress(ValueError):
        if peer.encoded and 0 < peer.port < 2**16:
            return peer
    raise mpc.MPCError(f"party {index} announced no usable certificate and port")
