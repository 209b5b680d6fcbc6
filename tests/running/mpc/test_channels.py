"""Parties that lie about where they are reached, or bring what was announced before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tacit.protocol.mpc import MPCError
from tacit.running.mpc import channels, tunnel
from tacit.running.mpc.transport import Meeting

Public = Mapping[str, Any]
HOST = "127.0.0.1"


def announced(index: int) -> dict[str, Any]:
    certificate = tunnel.Credentials.new(f"party {index}").certificate
    return {"host": HOST, "port": 9, "certificate": certificate}


def anew(publics: Sequence[Public]) -> list[Public]:
    return [announced(0), *publics[1:]]


def copied(publics: Sequence[Public]) -> list[Public]:
    return [*publics[:2], {**publics[2], "certificate": publics[1]["certificate"]}]


def copied_from_this(publics: Sequence[Public]) -> list[Public]:
    return [*publics[:2], {**publics[2], "certificate": publics[0]["certificate"]}]


def wrapped(publics: Sequence[Public]) -> list[Public]:
    """Other line ends, the same certificate."""
    written = publics[1]["certificate"].replace("\n", "\r\n")
    return [*publics[:2], {**publics[2], "certificate": written}]


def elsewhere(publics: Sequence[Public]) -> list[Public]:
    """An address that may be a service that only this party can reach."""
    return [*publics[:2], {**publics[2], "host": "10.0.0.1"}]


LIES = {
    "an address that is not listed": (elsewhere, "party 2 announced an address that is not in"),
    "an older announcement": (anew, "an older announcement of this party"),
    "another's certificate": (copied, "parties 1 and 2 announced one certificate"),
    "this party's certificate": (copied_from_this, "parties 0 and 2 announced one certificate"),
    "the same, written otherwise": (wrapped, "parties 1 and 2 announced one certificate"),
}


@pytest.mark.parametrize("name", LIES)
def test_parties_that_cannot_be_told_apart_do_not_compute(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change: Callable[[Sequence[Public]], list[Public]]
    change, said = LIES[name]
    monkeypatch.setattr(channels, "find_spec", lambda name: True)
    monkeypatch.setattr(channels, "load_engine", lambda: None)
    transport = channels.TunnelTransport(
        ("127.0.0.1", 0), None, timeout=5.0, reachable=[("127.0.0.1", 9)]
    )
    announcement = transport.announce()
    publics = change([announcement.public, announced(1), announced(2)])
    meeting = Meeting("s", 0, tuple(publics), ({}, {}, {}), announcement.secret)
    try:
        with pytest.raises(MPCError, match=said), transport.meet(meeting):
            pytest.fail("the parties met")
    finally:
        transport._close()
