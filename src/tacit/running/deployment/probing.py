"""The way to a coordinator's server: name, port, proxy, certificate, clock, and versions.

The certificate is read over a connection that takes any certificate and shows no token. So a
certificate that does not fit is named, and not only refused. Nothing that such a server says is
believed but the time with which the clock is compared.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

from tacit.running.deployment import door, keys, letters, site
from tacit.running.deployment.flower_programs import programs

SITE, COORDINATOR, NETWORK = "this site", "the coordinator", "the network's administrators"
"""Who mends what fails."""
RENEW = f"{COORDINATOR}: remove ca.crt, tacit keys --coordinator --host NAME, send the new ca.crt"
AHEAD, BEHIND = timedelta(seconds=6), timedelta(seconds=300)
"""Clock differences that Flower takes: a node's signature is at most 5 seconds in the future of the
server, whose time comes in whole seconds, and at most 305 seconds old."""
NAME_LENGTH = 60
"""Characters that are shown of a name that came from the network."""


class TroubleError(Exception):
    """What fails.

    Parameters
    ----------
    says : what was found.
    remedy : who mends it, and how.
    """

    def __init__(self, says: str, remedy: str) -> None:
        super().__init__(says)
        self.remedy = remedy


class UnknownError(Exception):
    """What could not be checked."""


@dataclass(frozen=True)
class Way:
    """The way to a server; every check gives words, or raises an error.

    Parameters
    ----------
    server : host and port.
    authority : the file of its authority's certificate.
    token : what the server asks for before it tells its versions; empty for none.
    invited : the address in the site's invitation; empty where there is none.
    here : whether it is this machine's server: no proxy is used, and it may have another name.
    """

    server: str
    authority: Path
    token: str = ""
    invited: str = ""
    here: bool = False

    @cached_property
    def _seen(self) -> tuple[site.Reached, datetime]:
        """What the server answers a stranger, and this machine's time of it."""
        reached = site.ask(self.server, None, here=self.here)
        return reached, datetime.fromtimestamp(time.time(), UTC)

    @cached_property
    def told(self) -> site.Reached:
        """What the server tells who shows the token.

        Raises
        ------
        TroubleError : where it does not know the token.
        """
        reached = site.ask(self.server, self.authority, self.token, self.here)
        if reached.status in (door.OK, door.NOT_YET):
            return reached
        invite = f"{COORDINATOR}: tacit invite --again PLAN SITE"
        raise TroubleError("the server does not know this invitation", invite)

    def checks(self) -> dict[str, Callable[[], str]]:
        """All checks by topic, in the order in which a connection is made."""
        return {
            "name": self.name,
            "port": self.port,
            "certificate": self.certificate,
            "clock": self.clock,
            "versions": self.versions,
        }

    def name(self) -> str:
        """Whether this machine knows the name of the server, or of the proxy on the way to it."""
        proxy = "" if self.here else site.proxy_for(self.server)
        host = (proxy or self.server).rpartition(":")[0].strip("[]") or proxy
        try:
            addresses = {str(each[4][0]) for each in socket.getaddrinfo(host, None)}
        except OSError:
            remedy = f"{SITE}: correct the name, or have {NETWORK} make the DNS know it"
            raise TroubleError(f"this machine does not know the name {host}", remedy) from None
        known = f"{host} is {', '.join(sorted(addresses))}"
        return f"{known}, a proxy on the way to {self.server}" if proxy else f"{known}; no proxy"

    def port(self) -> str:
        """Whether the server answers."""
        try:
            return f"{self.server} answers, with status {self._seen[0].status}"
        except programs.UnreachableError as error:
            raise TroubleError(str(error), self._opened_by(str(error))) from None

    def _opened_by(self, error: str) -> str:
        """Who makes a server answer, and how."""
        proxy = not self.here and site.proxy_for(self.server)
        if site.NOTHING_LISTENS in error and proxy:
            return f"{SITE}: correct HTTPS_PROXY, which names a proxy that does not run"
        if self.invited not in ("", self.server):
            return f'{SITE}: write server = "{self.invited}", as invited, into party.toml'
        if site.NOTHING_LISTENS in error:
            return f"{COORDINATOR}: start the server: tacit serve PLAN"
        if site.NO_TLS in error:
            return f"{COORDINATOR}: say at which port tacit serve listens"
        what = "let CONNECT pass through the proxy" if proxy else "let TCP pass"
        return f"{NETWORK}: {what} to {self.server}, without decrypting it"

    def certificate(self) -> str:
        """Whether the server's certificate is right, at the server's own time."""
        reached, now = self._seen
        names = () if self.here else (letters.host_of(self.server),)
        said = _time_of(reached) or now
        return check_certificate(reached.certificate, self.authority, names, said)

    def clock(self) -> str:
        """Whether this machine's clock agrees with the server's."""
        reached, now = self._seen
        said = _time_of(reached)
        if said is None:
            raise UnknownError("the server does not say its time")
        ahead = now - said
        if -BEHIND < ahead < AHEAD:
            return "agrees with the server's"
        side = "ahead of" if ahead > timedelta() else "behind"
        says = f"this machine is {abs(ahead.total_seconds()):,.0f} s {side} the server"
        raise TroubleError(says, f"{SITE}: set the clock by NTP; {COORDINATOR}: likewise")

    def versions(self) -> str:
        """Whether both sides have the same software."""
        if not self.token:
            raise UnknownError("the server tells them, and its roster, to invited sites only")
        other, own = self.what_it_tells(), programs.versions()
        if other == {}:
            raise UnknownError("the server does not tell them: its tacit is older")
        if any(other.get(name) != number for name, number in own.items()):
            remedy = f"{SITE}: agree with the other sides, and install one version on all"
            raise TroubleError(
                f"the server has {listed(other)}; this machine {listed(own)}", remedy
            )
        return f"the server has the same: {listed(own)}"

    def what_it_tells(self) -> dict[str, Any]:
        """The server's versions, and the digest of the site's node key; empty for none."""
        return dict(json.loads(self.told.headers.get(door.SERVER_HEADER, "{}")))


def listed(versions: dict[str, Any]) -> str:
    """The versions of both packages in words."""
    return ", ".join(f"{name} {versions.get(name)}"[:NAME_LENGTH] for name in ("tacit", "flwr"))


def _time_of(reached: site.Reached) -> datetime | None:
    """The time at which an answer was sent, to whole seconds; None where it does not say."""
    try:
        return parsedate_to_datetime(reached.headers["date"]).astimezone(UTC)
    except (KeyError, ValueError):
        return None


def check_certificate(content: bytes, authority: Path, hosts: Sequence[str], now: datetime) -> str:
    """Whether a server's certificate is of an authority, for these names, and valid; in words.

    Parameters
    ----------
    content : the certificate, in DER.
    authority : the file of the authority's certificate.
    hosts : names and addresses that it must have.
    now : the time at which it must be valid.

    Raises
    ------
    TroubleError : with what does not fit.
    """
    parsed = x509.load_der_x509_certificate(content)
    issuer = str([each.value for each in parsed.issuer.get_attributes_for_oid(NameOID.COMMON_NAME)])
    try:
        known = x509.load_pem_x509_certificate(authority.read_bytes())
        parsed.verify_directly_issued_by(known)
    except OSError:
        remedy = f"{SITE}: put the coordinator's {authority.name} into the folder"
        raise TroubleError(f"{authority.name} is missing", remedy) from None
    except (InvalidSignature, TypeError, ValueError):
        if keys.AUTHORITY in issuer:
            says = f"it is of another federation's authority than {authority.name}, or was renewed"
            raise TroubleError(
                says, f"{COORDINATOR}: send this site ca.crt, or invite it again"
            ) from None
        says = f"it is of {issuer[:NAME_LENGTH]}: another server answers, or TLS is decrypted"
        raise TroubleError(
            says, f"{NETWORK}: pass the connection on without decrypting it"
        ) from None
    names, begins, ends = (
        keys.names_of(parsed),
        parsed.not_valid_before_utc,
        parsed.not_valid_after_utc,
    )
    if not set(hosts) <= set(names):
        raise TroubleError(f"it is for {', '.join(names)}, not for {', '.join(hosts)}", RENEW)
    if not begins <= now <= ends:
        raise TroubleError(
            f"it has expired: valid from {begins:%Y-%m-%d} to {ends:%Y-%m-%d}", RENEW
        )
    return f"for {', '.join(names)}, until {ends:%Y-%m-%d}"
