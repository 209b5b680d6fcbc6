"""A sum's noise is divided among the agreed parties, whatever a step calls their number."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.data.clients import Clients
from tacit.privacy.cost import Adjacency, Cost
from tacit.privacy.noise import NoiseSource, NoNoise
from tacit.protocols.conversation import (
    Ask,
    Conversation,
    Layout,
    Memory,
    Protocol,
    Reply,
    Sharing,
    Step,
    View,
    step,
)
from tacit.protocols.values import decode_values, encode_values
from tacit.results.findings import Findings
from tacit.running.coordinator import RunError
from tacit.running.letters import Kind
from tacit.running.rehearsal import Rehearsal, rehearse
from tests.federations import binormal_clients
from tests.laws import PROTOCOLS, conversation_of

EPSILON = Cost(1.0, adjacency=Adjacency.RECORD)


def one_count(ask: Ask) -> Layout:
    return {"count": ()}


def counting(shares: Sharing | None) -> Step:
    """A step whose noise is divided among the members that the ask names."""

    @step(spends=lambda clients, ask, memory: EPSILON, sums=one_count, shares=shares)
    def count(clients: Clients, ask: Ask, noise: NoiseSource, memory: Memory) -> Reply:
        share = Fraction(clients.count, ask.shared["members"])
        return {"count": np.asarray(clients.records + noise.polya(1.0, share, ()))}

    return count


@dataclass
class Counts(Protocol):
    """The number of all records."""

    counted: Step

    name = "counts"
    guarantee = EPSILON
    settings = {}  # noqa: RUF012

    @property
    def steps(self) -> Any:
        return (self.counted,)

    def draws(self, clients: Clients) -> int:
        return 1

    def conversation(self, clients: int) -> Conversation:
        reply = yield Ask(self.counted, self, {"members": clients}, view=View.SUM)
        count = np.asarray(reply["count"], dtype=np.float64)
        return Findings(count, count, count, count, count)


def saying(members: Any) -> Any:
    """A coordinator that says another number of members."""

    def forge(place: int, kind: Kind, body: bytes) -> bytes:
        if kind is not Kind.SUM:
            return body
        content = decode_values(body)
        ask = decode_values(content["ask"])
        ask["shared"]["members"] = members
        return encode_values(content | {"ask": encode_values(ask)})

    return forge


def run(shares: Sharing | None, members: Any = 5) -> Rehearsal:
    """Five parties; the letters say ``members``."""
    clients = binormal_clients(30, 40, 5)
    protocol = Counts(counting(shares))
    return rehearse(clients, protocol, forge=saying(members), noise=lambda place: NoNoise())


def named(ask: Ask) -> int:
    members: int = ask.shared["members"]
    return members


def test_a_sum_whose_step_declares_its_sharing_is_answered() -> None:
    assert run(named).findings.value == 70


@pytest.mark.parametrize("members", [50, 4, 5.0, True, np.array([5])])
def test_another_number_of_sharers_is_refused_under_any_name(members: Any) -> None:
    with pytest.raises(RunError) as caught:
        run(named, members)
    reasons = {str(refusal.reason) for refusal in caught.value.refusals}
    assert reasons == {f"5 parties share the noise, and the letter says {members!r}"}


def test_a_sum_whose_step_declares_nothing_is_refused() -> None:
    with pytest.raises(RunError) as caught:
        run(None)
    reasons = {str(refusal.reason) for refusal in caught.value.refusals}
    assert reasons == {
        "step count does not declare who shares its noise, so it is not summed between parties"
    }


@dataclass
class Sharers(NoNoise):
    """No noise, but the shares of it that were asked for."""

    seen: list[Fraction] = field(default_factory=list)
    replicates: int | None = None

    def polya(self, scale: Any, share: Fraction, shape: tuple[int, ...]) -> Any:
        self.seen.append(share)
        return super().polya(scale, share, shape)


SUMMED = [name for name, protocol in PROTOCOLS.items() if any(s.sums for s in protocol.steps)]


@pytest.mark.parametrize("name", SUMMED)
def test_steps_declare_the_sharing_that_they_draw(name: str) -> None:
    """Seen in what one of five clients draws: its fifth, or more where some may vanish."""
    clients = binormal_clients(30, 40, 5)
    for ask, _ in conversation_of(clients, PROTOCOLS[name], NoNoise()):
        noise = Sharers()
        ask.step.answer(clients.part(0, 1), ask.part(0, 1), noise, Memory())
        declared = None if ask.step.shares is None else ask.step.shares(ask)
        assert declared == 5 or not noise.seen
        assert all(share >= Fraction(1, 5) for share in noise.seen)
        more = Ask(ask.step, ask.settings, {**ask.shared, "clients": 50}, ask.each, ask.view)
        assert ask.step.shares is not None
        assert ask.step.shares(more) == 50
