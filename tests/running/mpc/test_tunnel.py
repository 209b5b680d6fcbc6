"""The tunnel carries between announced certificates, and nothing else gets through."""

import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tacit.running.mpc.tunnel import Credentials, Peer, Tunnel

TIMEOUT = 60.0
LOCAL = ("127.0.0.1", 0)


class Ends:
    """Two tunnels whose parties are plain Unix sockets of this test."""

    def __init__(self, directory: Path, announced: tuple[Credentials, Credentials]) -> None:
        self.lost: list[str] = []
        self.failed = threading.Event()
        self.own = [Credentials.new("north"), Credentials.new("south")]
        shown = [announced[k] if announced[k] is not None else self.own[k] for k in range(2)]
        folders = [directory / "n", directory / "s"]
        for folder in folders:
            folder.mkdir()
        listening = [socket.create_server(LOCAL) for _ in range(2)]
        self.tunnels = [
            Tunnel(self.own[k], folders[k], TIMEOUT, listening[k], self._lost) for k in range(2)
        ]
        names = ("north", "south")
        self.peers = [
            Peer(names[k], LOCAL[0], listening[k].getsockname()[1], shown[k].certificate)
            for k in range(2)
        ]
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
    result = Ends(tmp_path, (None, None))  # type: ignore[arg-type]
    yield result
    result.close()


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


def test_what_travels_is_not_the_plain_bytes(tmp_path: Path) -> None:
    """Who listens where south is announced to be is sent the beginning of a handshake only."""
    with socket.create_server(("127.0.0.1", 0)) as middle:
        middle.settimeout(TIMEOUT)
        part, other = Credentials.new("north"), Credentials.new("south")
        listening = socket.create_server(LOCAL)
        tunnel = Tunnel(part, tmp_path, TIMEOUT, listening, lambda sentence: None)
        ports = (listening.getsockname()[1], middle.getsockname()[1])
        pems = (part.certificate, other.certificate)
        peers = [Peer("a", "127.0.0.1", ports[k], pems[k]) for k in range(2)]
        tunnel.open(0, peers)
        paths = tunnel.sockets("s", (0, 1))
        with socket.socket(socket.AF_UNIX) as near:
            near.connect(paths[1].removeprefix("unix:"))
            near.sendall(b"a secret sentence" * 10)
            result, _ = middle.accept()
            with result:
                result.settimeout(TIMEOUT)
                seen = result.recv(65536)
                result.settimeout(0.5)
                try:
                    while data := result.recv(65536):
                        seen += data
                except TimeoutError:
                    pass
        tunnel.close()
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


def test_another_certificate_is_refused(ends: Ends, tmp_path: Path) -> None:
    stranger = Credentials.new("north")
    chain = tmp_path / "chain.pem"
    chain.write_text(stranger.key + stranger.certificate)
    assert not passes(ends, chain)
    nothing_arrived(ends)


def test_a_connection_without_a_certificate_is_refused(ends: Ends) -> None:
    assert not passes(ends, None)
    nothing_arrived(ends)


def test_the_announced_certificate_passes(ends: Ends, tmp_path: Path) -> None:
    """Without this the refusals above would prove nothing."""
    chain = tmp_path / "chain.pem"
    chain.write_text(ends.own[0].key + ends.own[0].certificate)
    assert passes(ends, chain)


def test_a_client_that_never_shakes_hands_is_closed_with_the_tunnel(ends: Ends) -> None:
    """It is accepted, and in a handshake, when the next client's has been refused."""
    with socket.create_connection(("127.0.0.1", ends.peers[1].port), TIMEOUT) as silent:
        assert not passes(ends, None)
        ends.tunnels[1].close()
        assert received(silent, 1) == b""


def test_clients_that_come_while_it_closes_are_closed(ends: Ends) -> None:
    """Whoever is accepted reads an end, and does not wait for ever."""
    clients: list[socket.socket] = []
    coming = threading.Event()

    def come() -> None:
        with suppress(ConnectionError):
            for _ in range(100):
                client = socket.create_connection(("127.0.0.1", ends.peers[1].port), TIMEOUT)
                clients.append(client)
                coming.set()

    visitors = threading.Thread(target=come)
    visitors.start()
    assert coming.wait(TIMEOUT)
    ends.tunnels[1].close()
    visitors.join(TIMEOUT)
    assert not visitors.is_alive()
    for client in clients:
        with client, suppress(ConnectionResetError):
            assert client.recv(1) == b""


def test_a_message_ends_with_the_tunnel(tmp_path: Path) -> None:
    """The other party takes no message, and would be waited for."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        part = Credentials.new("north")
        own = socket.create_server(LOCAL)
        tunnel = Tunnel(part, tmp_path, TIMEOUT, own, lambda sentence: None)
        port = other.getsockname()[1]
        pem = Credentials.new("south").certificate
        tunnel.open(0, [Peer("a", "", 0, part.certificate), Peer("b", "127.0.0.1", port, pem)])
        errors: list[BaseException] = []

        def send() -> None:
            try:
                tunnel.send(1, b"a message")
            except OSError as error:
                errors.append(error)

        sending = threading.Thread(target=send)
        sending.start()
        other.settimeout(TIMEOUT)
        accepted, _ = other.accept()
        with accepted:
            tunnel.close()
            sending.join(TIMEOUT)
    assert [str(error) for error in errors] == ["the tunnel is closed"]
    with pytest.raises(ConnectionError, match="the tunnel is closed"):
        tunnel.send(1, b"another")


def passes(ends: Ends, chain: Path | None) -> bool:
    """Whether a TLS client with this certificate gets bytes through to south."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(cadata=ends.peers[1].certificate)
    if chain is not None:
        context.load_cert_chain(chain)
    raw = socket.create_connection(("127.0.0.1", ends.peers[1].port), TIMEOUT)
    try:
        with context.wrap_socket(raw) as client:
            client.sendall(b"\x01shello")
            far, _ = ends.listener.accept() if chain and arrives(client, ends) else (None, None)
            if far is None:
                return False
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
    wrong = Ends(tmp_path, (None, Credentials.new("south")))  # type: ignore[arg-type]
    try:
        with wrong.from_north() as near:
            near.sendall(b"hello")
            assert wrong.failed.wait(TIMEOUT)
            assert "no connection to south" in wrong.lost[0]
    finally:
        wrong.close()


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
def test_a_party_reaches_computations_of_its_own_only(
    tmp_path: Path, members: tuple[int, int]
) -> None:
    """The party 0 of three opens a connection to 1 under the name of a computation of two."""
    part = [Credentials.new(f"party-{index}") for index in range(3)]
    listening = socket.create_server(LOCAL)
    address = LOCAL[0], listening.getsockname()[1]
    tunnel = Tunnel(part[1], tmp_path, TIMEOUT, listening, lambda sentence: None)
    peers = [Peer("p", address[0], address[1], each.certificate) for each in part]
    tunnel.open(1, peers)
    path = tunnel.sockets("s", members)[members.index(1)].removeprefix("unix:")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    chain = tmp_path / "shown.pem"
    chain.write_text(part[0].key + part[0].certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(cadata=part[1].certificate)
    context.load_cert_chain(chain)
    try:
        raw = socket.create_connection(address, TIMEOUT)
        with context.wrap_socket(raw) as client:
            client.sendall(bytes([1]) + b"s" + b"hello")
            if 0 in members:
                far, _ = listener.accept()
                assert received(far, 5) == b"hello"
                far.close()
            else:
                assert client.recv(1) == b""
                assert select.select([listener], [], [], 0.2)[0] == []
    finally:
        listener.close()
        tunnel.close()


def test_a_connection_for_a_path_elsewhere_reaches_nothing(ends: Ends, tmp_path: Path) -> None:
    """South's own socket lies beside it, and would be reached by such a name."""
    chain = tmp_path / "chain.pem"
    chain.write_text(ends.own[0].key + ends.own[0].certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(cadata=ends.peers[1].certificate)
    context.load_cert_chain(chain)
    raw = socket.create_connection(("127.0.0.1", ends.peers[1].port), TIMEOUT)
    with context.wrap_socket(raw) as client:
        client.sendall(bytes([6]) + b"../s/s" + b"hello")
        assert client.recv(1) == b""
    nothing_arrived(ends)
