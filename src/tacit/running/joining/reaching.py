"""Whether a coordinator's server can be reached, said in words while a site waits for it.

The request goes the way of Flower's own (``httpx``), so that a proxy in the environment
(``HTTPS_PROXY``, ``NO_PROXY``) is used in the same way: what fails here would fail there in
silence.
"""

from __future__ import annotations

import socket
import ssl
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tacit.running.deployment.flower_programs.programs import DeploymentError, Tell, require_flower
from tacit.running.deployment.node import FOREIGN_SERVER, FOREIGN_WORDS, RefusedError
from tacit.running.joining.letters import MAX_LETTER
from tacit.running.joining.roster_door import HEADER, PATH

CONNECT_SECONDS, READ_SECONDS = 4.0, 15.0
RETRY_SECONDS = 2.0
SPEAK_SECONDS = 15.0
"""Seconds after which a reason that has not changed is said again."""


class UnreachableError(DeploymentError):
    """A server that does not answer now, and may answer later."""


@dataclass(frozen=True)
class Reached:
    """What a server answered.

    Parameters
    ----------
    status : of HTTP.
    content : the answer's body.
    """

    status: int
    content: bytes


def proxy_for(server: str) -> str:
    """The proxy that the environment names for a server, without a password; empty for none."""
    host = server.rpartition(":")[0].strip("[]")
    proxies = urllib.request.getproxies()
    proxy = proxies.get("https") or proxies.get("all") or ""
    if not proxy or urllib.request.proxy_bypass(host):
        return ""
    parts = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def ask(server: str, authority: Path, token: str = "") -> Reached:
    """Ask a server once for its roster.

    Parameters
    ----------
    server : host and port.
    authority : the certificate of the server's authority.
    token : of an invitation; empty to see only whether the server answers.

    Raises
    ------
    RefusedError : for a server with another certificate.
    UnreachableError : with the reason, where it does not answer.
    FileNotFoundError : when the certificate is not there.
    """
    require_flower()
    import httpx  # noqa: PLC0415 -- comes with Flower

    context = ssl.create_default_context(cafile=str(authority))
    seconds = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    headers = {HEADER: token} if token else {}
    try:
        with httpx.Client(verify=context, timeout=seconds) as client:
            said = client.get(f"https://{server}{PATH}", headers=headers)
    except (httpx.HTTPError, OSError) as error:
        raise _translated(error, server) from None
    if len(said.content) > MAX_LETTER:
        raise UnreachableError(f"{server} sends more than a roster")
    return Reached(said.status_code, said.content)


def reach(
    server: str,
    authority: Path,
    tell: Tell,
    patience: float,
    token: str = "",
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> Reached:
    """Ask a server until it answers, and say why it does not.

    Parameters
    ----------
    server, authority, token : as ``ask`` takes them.
    tell : receives lines: one before the first attempt, one for each reason.
    patience : seconds after which this gives up.
    sleep, now : the clock.

    Raises
    ------
    RefusedError : as ``ask``.
    DeploymentError : when the time is over.
    """
    proxy = proxy_for(server)
    tell(f"connecting to {server}{f' through the proxy {proxy}' if proxy else ''}")
    ends, said, again = now() + patience, "", 0.0
    while True:
        try:
            return ask(server, authority, token)
        except UnreachableError as error:
            if now() >= ends:
                raise DeploymentError(f"{error}; gave up after {patience:.0f} s") from None
            if str(error) != said or now() >= again:
                tell(f"{error}; retrying, {max(ends - now(), 0):.0f} s left, Ctrl-C ends")
                said, again = str(error), now() + SPEAK_SECONDS
            sleep(RETRY_SECONDS)


def _translated(error: Exception, server: str) -> DeploymentError:
    """An error of the network in a user's words."""
    causes = list(_causes(error))
    text = " ".join(str(cause) for cause in causes)
    if FOREIGN_SERVER in text:
        return RefusedError(FOREIGN_WORDS)
    proxy = proxy_for(server)
    through = f" through the proxy {proxy}" if proxy else ""
    return UnreachableError(f"cannot reach {server}{through} ({_reason(causes, bool(proxy))})")


def _reason(causes: list[BaseException], through_proxy: bool) -> str:
    kinds: dict[str, tuple[Any, ...]] = {
        f"this machine does not know the name of the {'proxy' if through_proxy else 'server'}": (
            socket.gaierror,
        ),
        "the connection is refused: nothing listens there": (ConnectionRefusedError,),
        f"no answer in {CONNECT_SECONDS:.0f} s": (TimeoutError,),
    }
    for words, types in kinds.items():
        if any(isinstance(cause, types) for cause in causes):
            return words
    if any("timeout" in type(cause).__name__.lower() for cause in causes):
        return f"no answer in {CONNECT_SECONDS:.0f} s"
    first = causes[0]
    return f"{str(first) or type(first).__name__:.120}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
