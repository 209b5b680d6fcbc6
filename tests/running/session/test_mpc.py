"""Parties compute together in a session: each pays before, and refuses who lies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tacit.crypto.identities import Identity
from tacit.local.paired.protocol import PairedUStatistic, compute_pairs
from tacit.protocol import Clients, NoiseSource, NoNoise, Query, Ragged, View, fields, values
from tacit.protocols.fedauc.hidden_ranks import RankProgram, rank_together
from tacit.protocols.fedauc.protocol import FedAUC
from tacit.running.mpc.transport import Announcement, UnreachableError
from tacit.running.session import coordinator, debits, exchanges, messages, together
from tacit.running.session.party import Party
from tacit.running.simulation import simulate
from tacit.testing.rehearsal import Fault, Keys, Rehearsal, rehearse
from tacit.testing.room import Room
from tests.federations import binormal_clients

HIDDEN = FedAUC(1.0, trust="mpc")
PAIRS = PairedUStatistic("auc", 1.0)
ANNOUNCED, COMPUTED = 1, 2
"""The turns in which parties of ``HIDDEN`` announce themselves, and compute."""
CLIENTS = binormal_clients(30, 40, 3)


def silent(_: int) -> NoiseSource:
    return NoNoise()


class Books:
    """What every party debited, but for messages that cost nothing."""

    def __init__(self, parties: int = 3) -> None:
        self.debits: list[list[debits.Debit]] = [[] for _ in range(parties)]

    @property
    def guards(self) -> list[Any]:
        return [part.append for part in self.debits]

    def steps(self, index: int) -> list[str]:
        return [debit.step for debit in self.debits[index] if debit.step == "rank_together"]


def run(faults: Sequence[Fault] = (), ledgers: Books | None = None, **inputs: Any) -> Rehearsal:
    guards = None if ledgers is None else ledgers.guards
    return rehearse(
        CLIENTS, HIDDEN, faults, noise=silent, guards=guards, transport=Room(0.3), **inputs
    )


@pytest.mark.parametrize(
    "faults",
    [
        [Fault("drop", 1, COMPUTED)],
        [Fault("duplicate", 1, turn, "down") for turn in (ANNOUNCED, COMPUTED)],
    ],
    ids=["a lost reply", "queries twice"],
)
def test_what_comes_again_is_not_computed_again(faults: list[Fault]) -> None:
    ledgers = Books()
    rehearsal = run(faults, ledgers, retries=1)
    assert rehearsal.server_result.value == simulate(CLIENTS, HIDDEN, NoNoise()).server_result.value
    assert [ledgers.steps(index) for index in range(3)] == [["rank_together"]] * 3
    # what was begun with is looked at before it is offered, too
    assert [each.reads for each in ledgers.debits[0] if each.step == "mpc"] == [True]


@pytest.mark.parametrize(
    ("fault", "said", "paid"),
    [
        (Fault("drop", 1, ANNOUNCED), "a result needs 3 parties, and 2 answered", ()),
        (
            Fault("drop", 1, COMPUTED, "down"),
            f"party 0, party 2 declined: {together.STOPPED}; a result needs 3",
            (0, 2),
        ),
    ],
    ids=["before anybody pays", "in the computation"],
)
def test_a_vanished_party_ends_the_run(fault: Fault, said: str, paid: tuple[int, ...]) -> None:
    ledgers = Books()
    with pytest.raises(coordinator.RunError, match=said):
        run([fault], ledgers)
    assert [bool(ledgers.steps(index)) for index in range(3)] == [k in paid for k in range(3)]


def test_an_output_that_does_not_arrive_ends_the_run() -> None:
    with pytest.raises(coordinator.LostPartyError, match="party 2 vanished"):
        run([Fault("drop", 2, COMPUTED)], min_clients=2)


def test_a_run_begins_again_without_a_party_that_did_not_announce_itself() -> None:
    rehearsal = run([Fault("drop", 1, ANNOUNCED)], min_clients=2, on_loss="restart")
    assert rehearsal.members == (0, 2)


def test_outputs_that_differ_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    compute = RankProgram.compute

    def lie(self: RankProgram, clients: Clients, query: Query, *rest: Any) -> Any:
        reply = compute(self, clients, query, *rest)
        records = int(np.asarray(reply["records"]))
        return {"records": np.array(records + (rest[-1].index == 2))}

    monkeypatch.setattr(RankProgram, "compute", lie)
    with pytest.raises(coordinator.RunError, match="the outputs of parties 0 and 2 differ"):
        run()


def test_shares_that_add_up_to_no_bits_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A party that adds 5 to its shares is noticed where values are bits."""
    from tacit.local.paired.mpc import PairsProgram

    compute = PairsProgram.compute

    def lie(self: PairsProgram, clients: Clients, query: Query, *rest: Any) -> Any:
        reply = compute(self, clients, query, *rest)
        return {"values": np.asarray(reply["values"]) + 5 * (rest[-1].index == 1)}

    monkeypatch.setattr(PairsProgram, "compute", lie)
    with pytest.raises(coordinator.RunError, match="do not add up to bits"):
        rehearse(CLIENTS, PAIRS)


class Nowhere(Room):
    """The transport of parties that cannot be reached."""

    def announce(self) -> Announcement:
        raise UnreachableError("it cannot be reached")


def test_a_party_that_cannot_be_reached_declines_before_it_pays() -> None:
    ledgers = Books()
    with pytest.raises(coordinator.RunError, match="declined: it cannot be reached; nothing more"):
        rehearse(CLIENTS, HIDDEN, guards=ledgers.guards, transport=Nowhere())
    assert not any(ledgers.steps(index) for index in range(3))
    scene = Scene(HIDDEN, reached=False)
    request = request_of(Query(rank_together, HIDDEN, view=View.MPC))
    assert b"does not say where other parties reach it" in scene.send(messages.Kind.MPC, request)


def swapped(index: int, kind: messages.Kind, body: bytes) -> bytes:
    """A coordinator that puts itself between the first two parties."""
    if kind is not messages.Kind.COMPUTE or index != 0:
        return body
    inputs = list(values.decode_values(body)["announcements"])
    part = messages.announced(bytes(32), 1, Identity.generate(), {"host": "here"}, {"records": 1})
    return values.encode_values({"announcements": [inputs[0], part, inputs[2]]})


def moved(index: int, kind: messages.Kind, body: bytes) -> bytes:
    """A coordinator that gives a party the announcements in another order."""
    if kind is not messages.Kind.COMPUTE or index != 0:
        return body
    first, second, third = values.decode_values(body)["announcements"]
    return values.encode_values({"announcements": [first, third, second]})


def fewer(place: int, kind: messages.Kind, body: bytes) -> bytes:
    """A coordinator that lets two of three parties compute."""
    if kind is not messages.Kind.MPC:
        return body
    return values.encode_values({"ask": values.decode_values(body)["ask"], "members": (0, 1)})


def alone(place: int, kind: messages.Kind, body: bytes) -> bytes:
    """A coordinator that asks a party by itself for what is computed together."""
    return values.encode_query(Query(rank_together, HIDDEN)) if kind is messages.Kind.ASK else body


LIES = {
    "swapped": (swapped, "the announcement of party 1 is not signed by it for this query"),
    "moved": (moved, "the announcement of party 1 is not signed by it for this query"),
    "fewer": (fewer, "3 parties compute together"),
    "alone": (alone, "step rank_together is not answered under the view 'each'"),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lying_coordinator_is_refused_before_anything_is_paid(name: str) -> None:
    forge, said = LIES[name]
    ledgers = Books()
    with pytest.raises(coordinator.RunError) as caught:
        run(ledgers=ledgers, forge=forge)
    refused = [str(each.reason) for each in caught.value.refusals if each.party == 0]
    assert any(said in reason for reason in refused)
    assert not ledgers.steps(0)


class Scene:
    """One party of three, and messages that its coordinator signed."""

    def __init__(self, protocol: Any, reached: bool = True) -> None:
        self.keys = Keys.generate(3)
        self.agreement = self.keys.agreement(protocol)
        self.debits: list[debits.Debit] = []
        records = CLIENTS.part(0, 1)
        key = self.keys.parties[0]
        guard, transport = self.debits.append, Room(0.2) if reached else None
        self.party = Party(0, key, self.agreement, records, NoNoise(), guard, transport=transport)

        self.round = -1

    def send(self, kind: messages.Kind, body: bytes) -> bytes:
        self.round += 1
        message = messages.SignedMessage(kind, bytes(16), self.round, messages.COORDINATOR, 0, body)
        return self.party.answer(message.signed(self.agreement, self.keys.coordinator))

    def announcements(self, queries: Sequence[bytes]) -> bytes:
        """What each party would announce for the query that it was shown."""
        inputs = [
            messages.announced(
                messages.query_name(self.agreement, bytes(16), query),
                index,
                self.keys.parties[index],
                {},
                {"records": 1},
            )
            for index, query in enumerate(queries)
        ]
        return values.encode_values({"announcements": inputs})


def request_of(query: Query) -> bytes:
    return values.encode_values({"ask": values.encode_query(query), "members": (0, 1, 2)})


def seats_query(epsilon: float, first: int = 0) -> bytes:
    seats = np.roll(np.arange(CLIENTS.records), first)[np.newaxis]
    each = {"seats": Ragged(seats, CLIENTS.offsets)}
    return request_of(Query(compute_pairs, PAIRS, {"epsilon": epsilon}, each, View.MPC))


def test_parties_that_were_asked_different_things_do_not_compute() -> None:
    """Other seats for one party would make pairs of the others with records of its choice."""
    scene, requested = Scene(PAIRS), seats_query(0.5)
    scene.send(messages.Kind.MPC, requested)
    with pytest.raises(messages.MalformedMessageError, match="not signed by it for this query"):
        scene.send(
            messages.Kind.COMPUTE,
            scene.announcements([requested, seats_query(0.5, first=1), requested]),
        )
    assert all(debit.step == "mpc" for debit in scene.debits)


def test_no_more_is_computed_than_the_guarantee_allows() -> None:
    scene = Scene(PAIRS)
    with pytest.raises(messages.MalformedMessageError, match="more than the agreed guarantee"):
        scene.send(messages.Kind.MPC, seats_query(1.5))


def test_nothing_is_computed_that_was_not_announced() -> None:
    scene, request = Scene(HIDDEN), request_of(Query(rank_together, HIDDEN, view=View.MPC))
    with pytest.raises(messages.StaleMessageError, match="no computation was announced"):
        scene.send(messages.Kind.COMPUTE, scene.announcements([request] * 3))


def test_a_step_is_computed_once_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RankProgram, "compute", lambda *given: {"records": np.array(3)})
    scene, request = Scene(HIDDEN), request_of(Query(rank_together, HIDDEN, view=View.MPC))
    scene.send(messages.Kind.MPC, request)
    scene.send(messages.Kind.COMPUTE, scene.announcements([request] * 3))
    with pytest.raises(messages.MalformedMessageError, match="was computed in this run"):
        scene.send(messages.Kind.MPC, request)


def test_a_party_left_alone_says_why_on_its_own_side_only() -> None:
    scene, request = Scene(HIDDEN), request_of(Query(rank_together, HIDDEN, view=View.MPC))
    scene.send(messages.Kind.MPC, request)
    reply = scene.send(messages.Kind.COMPUTE, scene.announcements([request] * 3))
    assert together.STOPPED.encode() in reply
    assert "party 1 did not come" in scene.party.failure
    with pytest.raises(messages.StaleMessageError, match="has declined the run"):
        scene.send(messages.Kind.MPC, request)


FALSE_FIGURES: dict[str, dict[str, Any]] = {
    "a party that there is not": {"sessions": [((3,), 1, 1.0, 1)]},
    "a place before the first": {"sessions": [((-1,), 1, 1.0, 1)]},
    "places that are none": {"sessions": [(([],), 1, 1.0, 1)]},
    "no time": {"sessions": [((0,), 1, float("nan"), 1)]},
    "fewer bytes than none": {"sessions": [((0,), 1, 1.0, -1)]},
    "more bytes than there are": {"sent": 10**40},
    "bytes that are no number": {"sent": True},
}


@pytest.mark.parametrize("name", FALSE_FIGURES)
def test_a_party_that_tells_false_figures_is_not_believed(name: str) -> None:
    """Its reply is refused as it comes; the sums that a result shows could not be made."""
    keys = Keys.generate(3)
    agreement = keys.agreement(HIDDEN)
    query = Query(rank_together, HIDDEN, view=View.MPC)
    exchange = exchanges.exchange(query, (0, 1, 2), agreement, bytes(16))
    _, take = next(exchange)
    asked = messages.query_name(agreement, bytes(16), request_of(query))
    for index, key in enumerate(keys.parties):
        content, signature = messages.announced(asked, index, key, {}, {"records": 1})
        take(index, values.encode_values({"announcement": content, "signature": signature}))
    _, take = next(exchange)
    honest = {"reply": fields.encode({"records": np.array(3)}), "sent": 5, "sessions": []}
    with pytest.raises(fields.MessageError):
        take(1, values.encode_values(honest | FALSE_FIGURES[name]))
    for index in range(3):
        take(index, values.encode_values(honest | {"sessions": [((0, 1), 3, 1.0, 2)]}))
    with pytest.raises(StopIteration) as ended:
        next(exchange)
    assert ended.value.value.sent == dict.fromkeys(range(3), 5)
    assert [each.bytes_sent for each in ended.value.value.sessions] == [6]
