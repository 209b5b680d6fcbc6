"""A sum's noise is divided among the agreed parties, whatever a step calls their number."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tacit
import tacit.protocol as tp
from tacit.privacy.mechanisms import interface, laplace
from tacit.protocol.values import decode_values, encode_values
from tacit.running.session import coordinator, messages
from tacit.testing.checks import conversation_of
from tests.federations import binormal_clients
from tests.laws import PROTOCOLS

SUMMED = [name for name, protocol in PROTOCOLS.items() if any(s.sums for s in protocol.steps)]
HISTOGRAM = PROTOCOLS["histogram"]


def saying(members: Any) -> Any:
    """A coordinator that says another number of members."""

    def forge(place: int, kind: messages.Kind, body: bytes) -> bytes:
        if kind is not messages.Kind.SUM:
            return body
        content = decode_values(body)
        query = decode_values(content["ask"])
        query["shared"]["clients"] = members
        return encode_values(content | {"ask": encode_values(query)})

    return forge


def refused(members: Any = 5) -> set[str]:
    """Why five parties refuse a sum whose message says ``members``."""
    clients = binormal_clients(30, 40, 5)
    with pytest.raises(coordinator.RunError) as caught:
        tacit.rehearse(clients, HISTOGRAM, forge=saying(members), noise=lambda place: tp.NoNoise())
    return {str(refusal.reason) for refusal in caught.value.refusals}


@pytest.mark.parametrize("members", [50, 4, 5.0, True, np.array([5])])
def test_another_number_of_sharers_is_refused(members: Any) -> None:
    assert refused(members) == {f"5 parties share the noise, and the message says {members!r}"}


def test_a_sum_whose_step_declares_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    step = next(step for step in HISTOGRAM.steps if step.sums)
    monkeypatch.setitem(step.__dict__, "shares", None)
    assert refused() == {
        f"step {step.name} does not declare who shares its noise, so it is not summed between "
        "parties"
    }


@dataclass
class Sharers(tp.NoNoise):
    """No noise, but the shares of it that were asked for."""

    seen: list[Fraction] = field(default_factory=list)
    replicates: int | None = None

    def draw(self, distribution: interface.Distribution, shape: tuple[int, ...]) -> Any:
        if isinstance(distribution, laplace.PolyaShare):
            self.seen.append(distribution.share)
        return super().draw(distribution, shape)


@pytest.mark.parametrize("name", SUMMED)
def test_steps_declare_the_sharing_that_they_draw(name: str) -> None:
    """Seen in what one of five clients draws: its fifth, or more where some may vanish."""
    clients = PROTOCOLS[name].trial_records(binormal_clients(30, 40, 5))
    state = tacit.ClientState()
    for query, _ in conversation_of(clients, PROTOCOLS[name], tp.NoNoise(), tacit.ClientState()):
        noise = Sharers()
        query.step.answer(clients.part(0, 1), query.part(0, 1), noise, state)
        if query.view is not tp.View.SUM:
            assert not noise.seen
            continue
        declared = None if query.step.shares is None else query.step.shares(query)
        assert declared == 5 or not noise.seen
        assert all(share >= Fraction(1, 5) for share in noise.seen)
        more = tp.Query(
            query.step,
            query.protocol,
            {**query.broadcast, "clients": 50},
            query.per_client,
            query.view,
        )
        assert query.step.shares is not None
        assert query.step.shares(more) == 50
