"""Limits on idle connections to the collector: their bytes, their time and their number.

uvicorn waits without limit for the end of a request's head or of its trailing headers, and keeps
all of them; it keeps all requests of a connection that come before the first is answered; and it
takes as many connections as there are, which its event loop tells it only after the TLS handshake.
Anyone who has no token could use up memory and connections.
"""

from __future__ import annotations

import ssl
from asyncio import Task, Transport
from pathlib import Path
from typing import Any, ClassVar, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 10.0
"""Seconds between two looks at a connection; one without a request at two looks is closed."""

HEAD_BYTES = 2**14
"""Largest number of bytes of a request's head, or of what follows its body."""

SLICE_BYTES = 2**10
"""Bytes that are parsed at a time: so much more than ``HEAD_BYTES`` may come before the end."""

CONNECTIONS = 400
"""Largest number of connections; files of 1,024, a usual limit, leave room for the collector's."""


class Connection(HttpToolsProtocol):
    """A connection with limits, each of which ends it.

    One more than ``CONNECTIONS`` ends the one that waits longest for its sender: for a head, the
    rest of a body, or an answer to be read. So no one is kept out by senders who do nothing.
    """

    tls: ClassVar[ssl.SSLContext | None] = None
    """Where it is set, a connection begins with a TLS handshake, which has the limits of a head.

    The server listens without TLS then, so that connections count before their handshake. It needs
    asyncio's own event loop: that one reads nothing between ``connection_made`` and the first step
    of a task that is made there.
    """

    _handshake: Task[None] | None = None
    _early: bytes | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Begin to count, and make room."""
        super().connection_made(transport)
        self._head, self._since = 0, self.loop.time()
        if self.tls is not None:
            self._handshake = self.loop.create_task(self._secure(self.tls, transport))
        self._check_later()
        if len(self.connections) > CONNECTIONS:
            held = cast(set[Connection], self.connections)
            waiting = (each for each in held if not each._is_owed_an_answer)
            longest = min(waiting, key=lambda each: each._since)
            self.connections.discard(longest)
            longest._end()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave nothing that keeps what the connection brought."""
        self._checking.cancel()
        self._early = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came, up to the limit; a second request before an answer is beyond it."""
        if self._handshake is not None:
            self._keep_early(data)
            return
        for place in range(0, len(data), SLICE_BYTES):
            part = data[place : place + SLICE_BYTES]
            self._head += len(part)
            super().data_received(part)
            if self._head > HEAD_BYTES or self.pipeline:
                self._end()
            if self.transport.is_closing():
                return

    def on_headers_complete(self) -> None:
        """Count again: what follows is a body or the next head."""
        self._head, before = 0, self.cycle
        super().on_headers_complete()
        if self.pipeline:
            before.disconnected = True

    def on_body(self, body: bytes) -> None:
        """Count no bodies; who reads them limits them."""
        self._head = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Note since when the next request is awaited."""
        self._since = self.loop.time()
        super().on_response_complete()

    async def _secure(self, tls: ssl.SSLContext, transport: Transport) -> None:
        """Put TLS between the sender and the parser; end the connection where that fails."""
        try:
            self._early = b""
            under_tls = await self.loop.start_tls(
                transport, self, tls, server_side=True, ssl_handshake_timeout=HEAD_SECONDS
            )
        except OSError:
            under_tls = None
        early, self._early, self._handshake = self._early, None, None
        if under_tls is None or early is None or transport.is_closing():
            self._checking.cancel()
            self.connections.discard(self)
            transport.abort()
            return
        super().connection_made(under_tls)
        self.data_received(early)

    def _keep_early(self, data: bytes) -> None:
        """Keep what came with the end of the handshake; what came before it is not secured."""
        if self._early is None or len(self._early) + len(data) > HEAD_BYTES:
            self._end()
        else:
            self._early += data

    def _end(self) -> None:
        """End the connection; an answer that is on its way is no error that fills the log."""
        if self.cycle is not None:
            self.cycle.disconnected = True
        self.transport.abort()

    @property
    def _is_owed_an_answer(self) -> bool:
        """Whether a whole request came and its sender reads what it gets."""
        now = self.cycle
        return now is not None and not (
            now.more_body or now.response_complete or self.flow.write_paused
        )

    def _check_later(self) -> None:
        self._checking = self.loop.call_later(HEAD_SECONDS, self._check, self.cycle)

    def _check(self, before: Any) -> None:
        if self.transport.is_closing():
            return
        waits = before is None or before.response_complete
        if waits and self.cycle is before:
            self.transport.close()
        else:
            self._check_later()


def secured(certificate: Path, key: Path | None) -> type[Connection]:
    """Connections with TLS: what `Connection.tls` says, with the server's certificates in PEM."""

    class Secured(Connection):
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)

    Secured.tls.load_cert_chain(certificate, key)
    return Secured
