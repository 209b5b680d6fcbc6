"""The tunnel carries between announced certificates, and nothing else gets through."""

import select
import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from tacit.running.mpc.tunnel import Credentials, Peer, Tunnel

TIMEOUT = 60.0
LOCAL = ("127.0.0.1", 0)


def peer_at(listening: socket.socket, shown: Credentials, name: str = "p") -> Peer:
    """A party that was announced to listen there, with this certificate."""
    return Peer(name, LOCAL[0], listening.getsockname()[1], shown.certificate)


class Ends:
    """Two tunnels whose parties are plain Unix sockets of this test."""

    def __init__(self, directory: Path, announced: Credentials | None = None) -> None:
        self.lost: list[str] = []
        self.failed = threading.Event()
        self.own = [Credentials.new("north"), Credentials.new("south")]
        shown = [self.own[0], announced or self.own[1]]
        folders = [directory / "n", directory / "s"]
        for folder in folders:
            folder.mkdir()
        listening = [socket.create_server(LOCAL) for _ in range(2)]
        self.tunnels = [
            Tunnel(self.own[k], folders[k], TIMEOUT, listening[k], self._lost) for k in range(2)
        ]
        known = zip(listening, shown, ("north", "south"), strict=True)
        self.peers = [peer_at(*each) for each in known]
        for index, tunnel in enumerate(self.tunnels):
            tunnel.open(index, self.peers)
        self.paths = [tunnel.sockets("s", (0, 1)) for tunnel in self.tunnels]
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.settimeout(TIMEOUT)
        self.listener.bind(self.paths[1][1].removeprefix("unix:"))
        self.listener.listen()

    def _lost(self, sentence: str) -> None:
        self.lost.append(sentence)
        self.failed.set()

    def from_north(self) -> socket.socket:
        """A connection of north's library to what it takes for south's."""
        result = socket.socket(socket.AF_UNIX)
        result.settimeout(TIMEOUT)
        result.connect(self.paths[0][1].removeprefix("unix:"))
        return result

    def close(self) -> None:
        self.listener.close()
        for tunnel in self.tunnels:
            tunnel.close()


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[Ends]:
    with closing(Ends(tmp_path)) as result:
        yield result


def received(stream: socket.socket, size: int) -> bytes:
    result = b""
    while len(result) < size:
        data = stream.recv(size - len(result))
        if not data:
            break
        result += data
    return result


def test_bytes_arrive_on_the_other_side_both_ways(ends: Ends) -> None:
    with ends.from_north() as near:
        near.sendall(b"a" * 100_000)
        far, _ = ends.listener.accept()
        with far:
            far.settimeout(TIMEOUT)
            assert received(far, 100_000) == b"a" * 100_000
            far.sendall(b"answer")
            assert received(near, 6) == b"answer"
    assert ends.tunnels[0].sent == 100_000


@contextmanager
def met_by_another(folder: Path) -> Iterator[tuple[Tunnel, socket.socket]]:
    """North's tunnel, and who listens where south is announced to be."""
    own, listening = Credentials.new("north"), socket.create_server(LOCAL)
    tunnel = Tunnel(own, folder, TIMEOUT, listening, lambda sentence: None)
    with closing(tunnel), socket.create_server(LOCAL) as other:
        other.settimeout(TIMEOUT)
        shown = ((listening, own), (other, Credentials.new("south")))
        tunnel.open(0, [peer_at(at, each) for at, each in shown])
        yield tunnel, other


def test_what_travels_is_not_the_plain_bytes(tmp_path: Path) -> None:
    """Who listens where south is announced to be is sent the beginning of a handshake only."""
    with met_by_another(tmp_path) as (tunnel, middle), socket.socket(socket.AF_UNIX) as near:
        near.connect(tunnel.sockets("s", (0, 1))[1].removeprefix("unix:"))
        near.sendall(b"a secret sentence" * 10)
        with middle.accept()[0] as result:
            result.settimeout(TIMEOUT)
            seen = result.recv(65536)
            result.settimeout(0.5)
            with suppress(TimeoutError):
                while data := result.recv(65536):
                    seen += data
    assert seen[:1] == b"\x16"  # a TLS handshake record
    assert b"secret" not in seen


def test_a_plain_connection_is_refused(ends: Ends) -> None:
    with socket.create_connection(("127.0.0.1", ends.peers[1].port), TIMEOUT) as stranger:
        stranger.sendall(b"PRPC" + bytes(60))
        try:
            rest = received(stranger, 10_000)
        except ConnectionResetError:
            rest = b""
    assert b"PRPC" not in rest
    nothing_arrived(ends)


@pytest.mark.parametrize("shown", [None, Credentials.new("north")], ids=["none", "another"])
def test_wrong_certificates_fail(ends: Ends, shown: Credentials | None, tmp_path: Path) -> None:
    assert not passes(ends, shown, tmp_path)
    nothing_arrived(ends)


def test_the_announced_certificate_passes(ends: Ends, tmp_path: Path) -> None:
    """Without this the refusals above would prove nothing."""
    assert passes(ends, ends.own[0], tmp_path)


def test_a_message_ends_with_the_tunnel(tmp_path: Path) -> None:
    """The other party takes no message, and would be waited for."""
    with met_by_another(tmp_path) as (tunnel, other), ThreadPoolExecutor() as threads:
        sending = threads.submit(tunnel.send, 1, b"a message")
        with other.accept()[0]:
            tunnel.close()
            assert str(sending.exception(TIMEOUT)) == "the tunnel is closed"
    with pytest.raises(ConnectionError, match="the tunnel is closed"):
        tunnel.send(1, b"another")


def secured(peer: Peer, shown: Credentials | None, folder: Path) -> ssl.SSLSocket:
    """A TLS connection to a party, with these credentials."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(cadata=peer.certificate)
    if shown is not None:
        chain = folder / "shown.pem"
        chain.write_text(shown.key + shown.certificate)
        context.load_cert_chain(chain)
    return context.wrap_socket(socket.create_connection((LOCAL[0], peer.port), TIMEOUT))


def passes(ends: Ends, shown: Credentials | None, folder: Path) -> bool:
    """Whether a TLS client with these credentials gets bytes through to south."""
    try:
        with secured(ends.peers[1], shown, folder) as client:
            client.sendall(b"\x01shello")
            if not arrives(client, ends):
                return False
            far, _ = ends.listener.accept()
            with far:
                far.settimeout(TIMEOUT)
                return received(far, 5) == b"hello"
    except (ssl.SSLError, ConnectionError):
        return False


def arrives(client: ssl.SSLSocket, ends: Ends) -> bool:
    """Whether south is reached; a refused client is told so at a read instead."""
    client.setblocking(False)
    while True:
        ready, _, _ = select.select([client, ends.listener], [], [], TIMEOUT)
        assert ready, "neither let through nor refused"
        if ends.listener in ready:
            return True
        with suppress(ssl.SSLWantReadError):
            return bool(client.recv(1))


def nothing_arrived(ends: Ends) -> None:
    ends.listener.settimeout(0.1)
    with pytest.raises(TimeoutError):
        ends.listener.accept()
    assert not ends.lost


def test_a_false_announcement_ends_the_session(tmp_path: Path) -> None:
    """North expects another certificate of south than south has."""
    wrong = Ends(tmp_path, announced=Credentials.new("south"))
    with closing(wrong), wrong.from_north() as near:
        near.sendall(b"hello")
        assert wrong.failed.wait(TIMEOUT)
        assert "no connection to south" in wrong.lost[0]


def test_a_lost_connection_is_told(ends: Ends) -> None:
    with ends.from_north() as near:
        near.sendall(b"hello")
        far, _ = ends.listener.accept()
        far.close()
        assert ends.failed.wait(TIMEOUT)
    assert "was lost" in ends.lost[0]


def test_messages_arrive_in_order_from_the_party_that_sent_them(ends: Ends) -> None:
    north, south = ends.tunnels
    north.send(1, b"first")
    north.send(1, b"a" * 200_000)
    assert south.receive(0) == b"first"
    assert south.receive(0) == b"a" * 200_000
    south._timeout = 0.1
    with pytest.raises(TimeoutError, match="no message from north"):
        south.receive(0)


@pytest.mark.parametrize("members", [(1, 2), (0, 1)], ids=["stranger", "member"])
def test_a_party_reaches_its_own_computations(tmp_path: Path, members: tuple[int, int]) -> None:
    """The party 0 of three opens a connection to 1 under the name of a computation of two."""
    part = [Credentials.new(f"party-{index}") for index in range(3)]
    listening = socket.create_server(LOCAL)
    tunnel = Tunnel(part[1], tmp_path, TIMEOUT, listening, lambda sentence: None)
    peers = [peer_at(listening, each) for each in part]
    tunnel.open(1, peers)
    path = tunnel.sockets("s", members)[members.index(1)].removeprefix("unix:")
    with closing(tunnel), socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        with secured(peers[1], part[0], tmp_path) as client:
            client.sendall(bytes([1]) + b"s" + b"hello")
            if 0 in members:
                far, _ = listener.accept()
                with far:
                    assert received(far, 5) == b"hello"
            else:
                assert client.recv(1) == b""
                assert select.select([listener], [], [], 0.2)[0] == []


def test_a_connection_for_a_path_elsewhere_reaches_nothing(ends: Ends, tmp_path: Path) -> None:
    """South's own socket lies beside it, and would be reached by such a name."""
    with secured(ends.peers[1], ends.own[0], tmp_path) as client:
        client.sendall(bytes([6]) + b"../s/s" + b"hello")
        assert client.recv(1) == b""
    nothing_arrived(ends)
