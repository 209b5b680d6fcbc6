"""Parties that lie about where they are reached, or bring what was announced before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tacit.protocol.mpc import MPCError
from tacit.running.mpc import channels, tunnel
from tacit.running.mpc.transport import Meeting

Public = Mapping[str, Any]
Lie = Callable[[Sequence[Public]], Public]
HOST = "127.0.0.1"


def announced(index: int) -> dict[str, Any]:
    certificate = tunnel.Credentials.new(f"party {index}").certificate
    return {"host": HOST, "port": 9, "certificate": certificate}


def certificate_of(party: int, end: str = "\n") -> Lie:
    """The certificate of another, in lines that may end otherwise."""
    return lambda publics: {"certificate": publics[party]["certificate"].replace("\n", end)}


LIES: dict[str, tuple[int, Lie, str]] = {
    "an address that is not listed": (2, lambda _: {"host": "10.0.0.1"}, "party 2 announced an ad"),
    "an older announcement": (0, lambda _: announced(0), "an older announcement of this party"),
    "another's certificate": (2, certificate_of(1), "parties 1 and 2 announced one"),
    "this party's certificate": (2, certificate_of(0), "parties 0 and 2 announced one"),
    "the same, written otherwise": (2, certificate_of(1, "\r\n"), "parties 1 and 2 announced one"),
}
"""Who announces what instead, and why this party does not compute. The address that is not listed
may be that of a service that only this party can reach."""


@pytest.mark.parametrize("name", LIES)
def test_indistinct_parties_do_not_compute(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    index, change, said = LIES[name]
    monkeypatch.setattr(channels, "find_spec", lambda name: True)
    monkeypatch.setattr(channels, "load_engine", lambda: None)
    near, reachable = (HOST, 0), [(HOST, 9)]
    transport = channels.TunnelTransport(near, None, timeout=5.0, reachable=reachable)
    announcement = transport.announce()
    publics: list[Public] = [announcement.public, announced(1), announced(2)]
    publics[index] = {**publics[index], **change(publics)}
    meeting = Meeting("s", 0, tuple(publics), ({}, {}, {}), announcement.secret)
    try:
        with pytest.raises(MPCError, match=said), transport.meet(meeting):
            pytest.fail("the parties met")
    finally:
        transport._close()
