"""The doors of Flower's servers: for the programs of their own machine, and for invited sites.

A SuperLink serves everything through one port, and asks for keys at the nodes' interface only. At
the others, anyone who reaches the port could list and stop runs, let nodes in and lock them out,
and take over the task of a run, with all its messages. A SuperNode serves the processes that answer
messages in the same way, on its machine's loopback address.

The server program therefore admits a request to an interface that is not the nodes' only with a
token. It lies in a file that its owner alone may read, and is new each time the program starts.

Another door hands the signed roster to invited sites, through the same port. A stranger learns
nothing: the door behind answers every other request, and every request without the token of an
invitation, in the same way. The roster holds public keys, names and settings. With it come the
versions of the server's software, which a site compares with its own (`tacit doctor`).

Tokens have 256 bits, so no number of guesses finds one; what strangers could take is the disk's
time. However many requests come, the invitations are therefore read once a second at most. No one
is locked out: behind a proxy an invited site and a stranger have the same address.
"""

from __future__ import annotations

import hmac
import http.client
import json
import secrets
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any

from tacit import files
from tacit.running.deployment.flower_programs.programs import DeploymentError

HEADER = "x-tacit-token"
NODES = "/v1/fleet/"
"""The interface at which Flower itself authenticates nodes."""
FOREIGN = "/v1/control/list-runs"
"""A request that no stranger may make."""
FORBIDDEN = 403
CHECK_TIME = 30.0
ROSTER_FILE, INVITATIONS, TOKEN = "roster.json", "invitations", ".token"
"""Within the folder that holds the server's own files; the ending of files with tokens."""
ROSTER_PATH = "/tacit/roster"
ROSTER_HEADER, VERSIONS_HEADER = "x-tacit-invitation", "x-tacit-versions"
OK, NOT_YET = 200, 409
READ_EVERY = 1.0
"""Least seconds between two readings of the tokens; a new one is known after so many."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def token_path(home: Path) -> Path:
    """Where the token lies in the configuration folder of Flower's programs."""
    return home / "token"


def write_token(home: Path) -> None:
    """Make a new token for a server that is about to start; 256 bits of the system's entropy."""
    files.write_private(token_path(home), secrets.token_hex(32).encode())


def shown(scope: Scope, header: str) -> bytes:
    """The value of a header that a request has once; empty for none, or several."""
    values = [value for name, value in scope["headers"] if name == header.encode()]
    return values[0] if len(values) == 1 else b""


async def respond(
    send: Send, status: int, kind: bytes, body: bytes, *more: tuple[bytes, bytes]
) -> None:
    """Answer a request with a body of this content type, and more headers."""
    headers = [(b"content-type", kind), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Door:
    """ASGI middleware that admits requests with the token, and those of nodes.

    What a stranger learns is that there is a server: the answer is the same for every request.

    Parameters
    ----------
    app : the application behind it.
    token : what opens it.
    open_to : the beginnings of paths that need no token.
    """

    def __init__(self, app: App, token: str, open_to: tuple[str, ...] = ()) -> None:
        if not token:
            raise ValueError("a door needs a token, got an empty one")
        self._app, self._token, self._open_to = app, token.encode(), open_to

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan" or self._admits(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await respond(send, FORBIDDEN, b"text/plain", b"this machine's programs only\n")
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _admits(self, scope: Scope) -> bool:
        if scope["path"].startswith(self._open_to):
            return True
        return hmac.compare_digest(shown(scope, HEADER), self._token)


class RosterDoor:
    """ASGI middleware that answers ``GET /tacit/roster``.

    Parameters
    ----------
    app : the application behind it.
    private : the folder of the server's own files.
    versions : of the server's software, by package.
    clock : seconds that only ascend.
    """

    def __init__(
        self,
        app: App,
        private: Path,
        versions: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app, self._private, self._clock = app, private, clock
        self._told = (VERSIONS_HEADER.encode(), json.dumps(dict(versions)).encode())
        self._known: list[bytes] = []
        self._due = clock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an invited site; pass every other request on."""
        if scope["type"] != "http" or scope["path"] != ROSTER_PATH or not self._invited(scope):
            await self._app(scope, receive, send)
            return
        roster = self._private / ROSTER_FILE
        body = roster.read_bytes() if roster.exists() else b"not all sites are admitted yet\n"
        status = OK if roster.exists() else NOT_YET
        await respond(send, status, b"application/octet-stream", body, self._told)

    def _invited(self, scope: Scope) -> bool:
        token, now = shown(scope, ROSTER_HEADER), self._clock()
        if token and now >= self._due:
            self._known, self._due = tokens_in(self._private), now + READ_EVERY
        return bool(token) and any(hmac.compare_digest(token, each) for each in self._known)


def tokens_in(private: Path) -> list[bytes]:
    """The tokens of all invitations and of the machine's programs, from a server's own folder."""
    paths = [*(private / INVITATIONS).glob(f"*{TOKEN}"), *private.glob("flower/token")]
    return [path.read_bytes() for path in paths]


class Token:
    """Shows the token in the requests of one of Flower's clients, as its interceptors do.

    Parameters
    ----------
    token : as the server knows it.
    """

    def __init__(self, token: str) -> None:
        self._token = token

    def intercept(self, context: Any, call_next: Callable[[Any], Any]) -> Any:
        """Pass a request on with the token in it."""
        context.request.headers[HEADER] = self._token
        return call_next(context)


def check_closed(host: str, port: int, authority: Path) -> None:
    """Send a server a request without a token, and check that it refuses.

    Parameters
    ----------
    host, port : where it listens.
    authority : the certificate of the authority that signed the server's.

    Raises
    ------
    DeploymentError : when a stranger is let in, or the server does not answer.
    """
    context = ssl.create_default_context(cafile=authority)
    context.check_hostname = False  # a server is reached by another name here than by its parties
    connection = http.client.HTTPSConnection(host, port, timeout=CHECK_TIME, context=context)
    try:
        connection.request("POST", FOREIGN)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        raise DeploymentError(f"the server on {host}:{port} does not answer: {error}") from None
    finally:
        connection.close()
    if status != FORBIDDEN:
        raise DeploymentError(
            f"the server on {host}:{port} answers requests without a token (status {status}): "
            "no run is started"
        )
