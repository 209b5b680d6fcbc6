"""The way to a coordinator's server: name, port, proxy, certificate, clock, and versions.

The certificate is read over a connection that takes any certificate and shows no token. So a
certificate that does not fit is named, and not only refused. Nothing that such a server says is
believed but the time with which the clock is compared.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cached_property, partial
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature

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
    """What fails, or could not be checked.

    Parameters
    ----------
    says : what was found.
    remedy : who mends it, and how; empty for what could not be checked.
    """

    def __init__(self, says: str, remedy: str = "") -> None:
        super().__init__(says)
        self.remedy = remedy


@dataclass(frozen=True)
class Way:
    """The way to a server; every check gives words, or raises an error.

    Parameters
    ----------
    server : host and port.
    authority : the file of its authority's certificate.
    token : what the server asks for before it tells its versions; empty for none.
    invited : the address in the site's invitation; empty where there is none.
    """

    server: str
    authority: Path
    token: str = ""
    invited: str = ""

    @cached_property
    def _seen(self) -> tuple[x509.Certificate, datetime, datetime]:
        """The server's certificate, its time to whole seconds, and this machine's time of it."""
        reached, now = site.ask(self.server, None), datetime.fromtimestamp(time.time(), UTC)
        served = x509.load_der_x509_certificate(reached.certificate)
        said = reached.headers.get("date")
        return served, parsedate_to_datetime(said) if said else now, now

    @cached_property
    def told(self) -> site.Reached:
        """What the server tells who shows the token.

        Raises
        ------
        TroubleError : where it does not know the token.
        """
        reached = site.ask(self.server, self.authority, self.token)
        if reached.status in (door.OK, door.NOT_YET):
            return reached
        raise TroubleError("it does not know this invitation", f"{COORDINATOR}: invite --again")

    def checks(self) -> dict[str, Callable[[], str]]:
        """All checks by topic, in the order in which a connection is made."""
        names = "name", "port", "certificate", "clock", "versions"
        return {name: getattr(self, name) for name in names}

    def name(self) -> str:
        """Whether this machine knows the name of the server, or of the proxy on the way to it."""
        proxy = site.proxy_for(self.server)
        host = letters.host_of(proxy or self.server) or proxy
        try:
            addresses = {str(each[4][0]) for each in socket.getaddrinfo(host, None)}
        except OSError:
            remedy = f"{SITE}: correct the name; {NETWORK}: make the DNS know it"
            raise TroubleError(f"this machine does not know {host}", remedy) from None
        return f"{host}{' (a proxy)' if proxy else ''} is {', '.join(sorted(addresses))}"

    def port(self) -> str:
        """Whether the server answers."""
        try:
            return f"{self.server} answers over TLS" if self._seen else ""
        except programs.UnreachableError as error:
            raise TroubleError(str(error), self._opened_by(str(error))) from None

    def _opened_by(self, error: str) -> str:
        """Who makes a server answer, and how."""
        proxy = site.proxy_for(self.server)
        if site.NOTHING_LISTENS in error and proxy:
            return f"{SITE}: correct HTTPS_PROXY, which names a proxy that does not run"
        if self.invited not in ("", self.server):
            return f'{SITE}: write server = "{self.invited}", as invited, into party.toml'
        if site.NOTHING_LISTENS in error or site.NO_TLS in error:
            return f"{COORDINATOR}: run tacit serve, at the port that sites were given"
        return f"{NETWORK}: let TCP (CONNECT, by a proxy) pass to {self.server}, not decrypted"

    def certificate(self) -> str:
        """Whether the server's certificate is right, at the server's own time."""
        served, then, _ = self._seen
        try:
            known = self.authority.read_bytes()
        except OSError:
            remedy = f"{SITE}: put it there"
            raise TroubleError(f"{self.authority.name} is missing", remedy) from None
        return check_certificate(served, known, [letters.host_of(self.server)], then)

    def clock(self) -> str:
        """Whether this machine's clock agrees with the server's."""
        _, then, now = self._seen
        if -BEHIND < now - then < AHEAD:
            return "agrees with the server's"
        side, seconds = "ahead of" if now > then else "behind", abs((now - then).total_seconds())
        says = f"this machine is {seconds:,.0f} s {side} the server"
        raise TroubleError(says, f"{SITE}: set the clock by NTP; {COORDINATOR}: likewise")

    def versions(self) -> str:
        """Whether both sides have the same software."""
        if not self.token:
            raise TroubleError("the server tells them, and its roster, to invited sites only")
        own = programs.versions()
        other = json.loads(self.told.headers.get(door.VERSIONS_HEADER, "{}"))
        if other == own:
            return f"the server has the same: {listed(own)}"
        says = f"the server has {listed(other)}; this machine {listed(own)}"
        raise TroubleError(says, f"{SITE}: install one version on all sides, as agreed")


def listed(versions: Mapping[str, str]) -> str:
    """The versions of both packages in words."""
    return ", ".join(f"{name} {versions.get(name)}"[:NAME_LENGTH] for name in ("tacit", "flwr"))


def check_certificate(
    served: x509.Certificate, authorities: bytes, hosts: Sequence[str], now: datetime
) -> str:
    """Whether a server's certificate is of an authority, for these names, and valid; in words.

    They say when another is used, where one is known.

    Parameters
    ----------
    served : the server's certificate.
    authorities : the certificates of the authority and of one that follows, PEM.
    hosts : names and addresses that it must have.
    now : the time at which it must be valid.

    Raises
    ------
    TroubleError : with what does not fit.
    """
    issuer = served.issuer.rfc4514_string()[:NAME_LENGTH]
    try:
        known = x509.load_pem_x509_certificates(authorities)
        issuers = filter(partial(keys.has_issued, served), known)
        served.verify_directly_issued_by(next(issuers, known[0]))
    except (InvalidSignature, TypeError, ValueError):
        says = "it is of another federation's authority than ca.crt, or was renewed"
        remedy = f"{COORDINATOR}: send this site ca.crt, or invite it again"
        if keys.AUTHORITY not in issuer:
            says = f"it is of {issuer}: another server answers, or TLS is decrypted on the way"
            remedy = f"{NETWORK}: pass the connection on without decrypting it"
        raise TroubleError(says, remedy) from None
    names, ends = keys.names_of(served), served.not_valid_after_utc
    if not set(hosts) <= set(names):
        raise TroubleError(f"it is for {', '.join(names)}, not for {', '.join(hosts)}", RENEW)
    if not served.not_valid_before_utc <= now <= ends:
        raise TroubleError(f"it has expired, or is not valid yet; it ends {ends:%Y-%m-%d}", RENEW)
    following = ""
    if later := [each for each in known if keys.begins_of(each) > now]:
        since, last = keys.begins_of(later[0]), later[0].not_valid_after_utc
        following = f"; another from {since:%Y-%m-%d %H:%M} UTC until {last:%Y-%m-%d}"
    return f"for {', '.join(names)}, until {ends:%Y-%m-%d}{following}"
