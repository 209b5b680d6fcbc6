"""A sum's noise is divided among the agreed parties, whatever a step calls their number."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.privacy.mechanisms.interface import Distribution
from tacit.privacy.mechanisms.laplace import PolyaShare
from tacit.privacy.noise import NoiseSource, NoNoise
from tacit.protocol.conversation import Conversation, Layout, Query, Reply, Step, View, step
from tacit.protocol.steps import NoiseSharing
from tacit.protocol.values import decode_values, encode_values
from tacit.results.server_result import ServerResult
from tacit.running.session import coordinator, messages
from tacit.testing.checks import conversation_of
from tacit.testing.rehearsal import Rehearsal
from tests.federations import binormal_clients
from tests.laws import PROTOCOLS

EPSILON = tacit.Cost(1.0, adjacency=tacit.Adjacency.RECORD)


def one_count(query: Query) -> Layout:
    return {"count": ()}


def counting(shares: NoiseSharing | None) -> Step:
    """A step whose noise is divided among the members that the query names."""

    @step(cost=lambda clients, query, state: EPSILON, sums=one_count, shares=shares)
    def count(
        clients: tacit.Clients, query: Query, noise: NoiseSource, state: tacit.ClientState
    ) -> Reply:
        share = Fraction(clients.count, query.broadcast["members"])
        return {"count": np.asarray(clients.records + noise.draw(PolyaShare(1, 1.0, share), ()))}

    return count


@dataclass
class Counts(tacit.Protocol):
    """The number of all records."""

    counted: Step

    name = "counts"
    guarantee = EPSILON
    settings = {}  # noqa: RUF012

    @property
    def steps(self) -> Any:
        return (self.counted,)

    def replicate_size(self, clients: tacit.Clients) -> int:
        return 1

    def conversation(self, clients: int) -> Conversation:
        reply = yield Query(self.counted, self, {"members": clients}, view=View.SUM)
        count = np.asarray(reply["count"], dtype=np.float64)
        return ServerResult(count, count, count, count, count)


def saying(members: Any) -> Any:
    """A coordinator that says another number of members."""

    def forge(place: int, kind: messages.Kind, body: bytes) -> bytes:
        if kind is not messages.Kind.SUM:
            return body
        content = decode_values(body)
        query = decode_values(content["ask"])
        query["shared"]["members"] = members
        return encode_values(content | {"ask": encode_values(query)})

    return forge


def run(shares: NoiseSharing | None, members: Any = 5) -> Rehearsal:
    """Five parties; the messages say ``members``."""
    clients = binormal_clients(30, 40, 5)
    protocol = Counts(counting(shares))
    return tacit.rehearse(clients, protocol, forge=saying(members), noise=lambda place: NoNoise())


def named(query: Query) -> int:
    members: int = query.broadcast["members"]
    return members


def test_a_sum_whose_step_declares_its_sharing_is_answered() -> None:
    assert run(named).server_result.value == 70


@pytest.mark.parametrize("members", [50, 4, 5.0, True, np.array([5])])
def test_another_number_of_sharers_is_refused_under_any_name(members: Any) -> None:
    with pytest.raises(coordinator.RunError) as caught:
        run(named, members)
    reasons = {str(refusal.reason) for refusal in caught.value.refusals}
    assert reasons == {f"5 parties share the noise, and the message says {members!r}"}


def test_a_sum_whose_step_declares_nothing_is_refused() -> None:
    with pytest.raises(coordinator.RunError) as caught:
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

    def draw(self, distribution: Distribution, shape: tuple[int, ...]) -> Any:
        if isinstance(distribution, PolyaShare):
            self.seen.append(distribution.share)
        return super().draw(distribution, shape)


SUMMED = [name for name, protocol in PROTOCOLS.items() if any(s.sums for s in protocol.steps)]


@pytest.mark.parametrize("name", SUMMED)
def test_steps_declare_the_sharing_that_they_draw(name: str) -> None:
    """Seen in what one of five clients draws: its fifth, or more where some may vanish."""
    clients, state = binormal_clients(30, 40, 5), tacit.ClientState()
    for query, _ in conversation_of(clients, PROTOCOLS[name], NoNoise(), tacit.ClientState()):
        noise = Sharers()
        query.step.answer(clients.part(0, 1), query.part(0, 1), noise, state)
        if query.view is not View.SUM:
            assert not noise.seen
            continue
        declared = None if query.step.shares is None else query.step.shares(query)
        assert declared == 5 or not noise.seen
        assert all(share >= Fraction(1, 5) for share in noise.seen)
        more = Query(
            query.step,
            query.protocol,
            {**query.broadcast, "clients": 50},
            query.per_client,
            query.view,
        )
        assert query.step.shares is not None
        assert query.step.shares(more) == 50
