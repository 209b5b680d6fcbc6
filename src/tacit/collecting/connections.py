"""Connections that bring no request are closed, so that few senders cannot hold them all."""

from __future__ import annotations

from asyncio import Transport
from typing import Any

HEAD_SECONDS = 10.0
"""Seconds between two looks at a connection; one without a request at two looks is closed."""


def impatient(base: Any) -> Any:
    """A class of uvicorn's connections that also closes those whose next request does not come.

    uvicorn waits without limit for the end of a request's head, and for the rest of a body that was
    answered already. A service on the network then runs out of connections, which cost a sender
    nothing.

    Parameters
    ----------
    base : the class of connections, such as ``uvicorn.protocols.http.auto.AutoHTTPProtocol``.
    """

    class Impatient(base):  # type: ignore[misc]
        """A connection that is looked at again and again until it is closed."""

        def connection_made(self, transport: Transport) -> None:
            super().connection_made(transport)
            self._look_later()

        def _look_later(self) -> None:
            self.loop.call_later(HEAD_SECONDS, self._look, self.cycle)

        def _look(self, before: Any) -> None:
            if self.transport.is_closing():
                return
            waits = before is None or before.response_complete
            if waits and self.cycle is before:
                self.transport.close()
            else:
                self._look_later()

    return Impatient
