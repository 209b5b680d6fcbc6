"""No connection outlives its task, in whatever state its handshake is.

The loop's turns are counted out, so that an end falls between any two steps of a connection.
"""

import asyncio
import errno
import gc
import socket
import ssl
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tacit.running.mpc import connections, tunnel
from tacit.running.mpc.connections import Connections, Handshake, connected, streams

TIMEOUT = 60.0
TURNS = 25
"""More of the loop's turns than a connection takes to reach its handler."""

LOCAL = ("127.0.0.1", 0)


@pytest.fixture(scope="module", autouse=True)
def young_heap() -> Iterator[None]:
    """Collections of garbage look at what these tests made, and not at all that was before."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@contextmanager
def nothing_left_open() -> Iterator[None]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield
        gc.collect()
    assert [str(warning.message) for warning in seen] == []


def finish(*works: Coroutine[Any, Any, None]) -> None:
    with nothing_left_open():
        for work in works:
            asyncio.run(asyncio.wait_for(work, TIMEOUT))


async def turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The contexts of a client and of a server that trust each other."""
    folder = tmp_path_factory.mktemp("certificates")
    credentials = [tunnel.Credentials.new("client"), tunnel.Credentials.new("server")]
    sides = (ssl.PROTOCOL_TLS_CLIENT, ssl.PROTOCOL_TLS_SERVER)
    result = []
    for index, side in enumerate(sides):
        chain = folder / f"{index}.pem"
        chain.write_text(credentials[index].key + credentials[index].certificate)
        context = ssl.SSLContext(side)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=credentials[1 - index].certificate)
        context.load_cert_chain(chain)
        result.append(context)
    return result[0], result[1]


def hello(context: ssl.SSLContext) -> bytes:
    """The first message of a client's handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing).do_handshake()
    return outgoing.read()


BEGINNINGS: dict[str, Callable[[ssl.SSLContext], bytes]] = {
    "silent": lambda context: b"",
    "half a hello": lambda context: hello(context)[:40],
    "a hello": hello,
    "no TLS": lambda context: b"PRPC" + bytes(60),
}


@pytest.mark.parametrize("secured", [True, False], ids=["TLS", "plain"])
@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_client_that_stops_in_its_handshake_is_closed(
    beginning: str, secured: bool, contexts: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    async def main(number: int) -> None:
        listening, accepted = socket.create_server(LOCAL), list[socket.socket]()
        handshake = Handshake(contexts[1], TIMEOUT) if secured else None

        async def handler(connection: socket.socket) -> None:
            accepted.append(connection)
            with suppress(OSError):
                async with streams(connection, handshake) as (reader, _):
                    await reader.read()

        ends = Connections()
        ends.accept(listening, handler)
        with socket.create_connection(listening.getsockname(), TIMEOUT) as client:
            client.sendall(BEGINNINGS[beginning](contexts[0]))
            await turns(number)
            await ends.close()
            assert listening.fileno() == -1
            assert [connection.fileno() for connection in accepted] == [-1] * len(accepted)
            with suppress(ConnectionResetError):
                while client.recv(4096):
                    pass

    finish(*(main(number) for number in range(TURNS)))


def test_a_connection_ends_between_any_two_steps(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    """Both sides shake hands in one loop; None waits until both have done so."""

    async def main(number: int | None) -> None:
        listening, sockets = socket.create_server(LOCAL), list[socket.socket]()
        both = asyncio.Barrier(3)

        async def hold(connection: socket.socket, context: ssl.SSLContext) -> None:
            sockets.append(connection)
            with suppress(OSError):
                async with streams(connection, Handshake(context, TIMEOUT)) as (reader, writer):
                    writer.write(b"some bytes")
                    await both.wait()
                    await reader.read()

        async def reach() -> None:
            await hold(await connected(("127.0.0.1", listening.getsockname()[1])), contexts[0])

        ends = Connections()
        ends.accept(listening, lambda connection: hold(connection, contexts[1]))
        client = asyncio.ensure_future(ends.run(reach))
        await (both.wait() if number is None else turns(number))
        await ends.close()
        with suppress(asyncio.CancelledError, ConnectionError):
            await client
        assert [each.fileno() for each in sockets] == [-1] * len(sockets)
        assert number is not None or len(sockets) == 2

    finish(main(None), *(main(number) for number in range(3 * TURNS)))


@pytest.mark.parametrize("again", [1, 2], ids=["once", "twice"])
def test_a_client_is_cancelled(again: int, contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    async def hold(connection: socket.socket) -> None:
        async with streams(connection, Handshake(contexts[0], TIMEOUT)):
            pytest.fail("a silent server shook hands")

    async def main(number: int) -> None:
        near, far = socket.socketpair()
        with far:
            task = asyncio.ensure_future(hold(near))
            await turns(number)
            for _ in range(again):
                task.cancel()
                await asyncio.sleep(0)
            await asyncio.wait({task})
            assert task.cancelled()
            if number:
                assert near.fileno() == -1
            near.close()

    finish(*(main(number) for number in range(TURNS)))


def test_a_handshake_takes_its_time_at_most(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    async def main() -> None:
        near, far = socket.socketpair()
        with far:
            with pytest.raises(ConnectionAbortedError, match="longer than"):
                async with streams(near, Handshake(contexts[1], timeout=0.01)):
                    pytest.fail("a silent client shook hands")
            assert near.fileno() == -1

    finish(main())


def test_what_was_written_arrives_before_the_end() -> None:
    async def main() -> None:
        near, far = socket.socketpair()
        with far:
            async with streams(near) as (_, writer):
                writer.write(b"a" * 1000)
            far.settimeout(TIMEOUT)
            assert far.recv(2000) == b"a" * 1000
            assert far.recv(1) == b""

    finish(main())


def test_a_reader_that_never_reads_does_not_keep_a_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "LINGER_SECONDS", 0.01)

    async def main() -> None:
        near, far = socket.socketpair()
        with far:
            async with streams(near) as (reader, writer):
                writer.write(bytes(10_000_000))
            assert near.fileno() == -1
            assert reader.at_eof()  # its transport has ended

    finish(main())


class Full(socket.socket):
    """A listening socket of a process that has no file descriptor left, at first."""

    refusals = 0

    def accept(self) -> tuple[socket.socket, Any]:
        self.refusals += 1
        if self.refusals < 3:
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


def test_a_full_process_accepts_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "FULL_SECONDS", 0.0)

    async def main() -> None:
        arrived = asyncio.Event()

        async def handler(connection: socket.socket) -> None:
            arrived.set()

        with ExitStack() as stack:
            listening = stack.enter_context(Full())
            listening.bind(LOCAL)
            listening.listen()
            ends = Connections()
            ends.accept(listening, handler)
            stack.enter_context(socket.create_connection(listening.getsockname()))
            await arrived.wait()
            assert listening.refusals == 3
            await ends.close()

    finish(main())


def test_a_full_process_may_close() -> None:
    async def main() -> None:
        listening = Full()
        listening.bind(LOCAL)
        listening.listen()
        ends = Connections()
        ends.accept(listening, lambda connection: asyncio.sleep(0))
        with socket.create_connection(listening.getsockname()):
            while not listening.refusals:
                await asyncio.sleep(0)
            await ends.close()

    finish(main())


def test_an_address_that_nobody_has_is_an_error(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(FileNotFoundError):
            await connected(tmp_path / "absent")
        with socket.socket() as bound:  # and does not listen
            bound.bind(LOCAL)
            with pytest.raises(ConnectionRefusedError):
                await connected(bound.getsockname())

    finish(main())
