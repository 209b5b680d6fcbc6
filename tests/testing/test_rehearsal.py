"""Rehearsals: the same estimate as simulation, through messages, sums and faults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import Clients, ClientState, PublishedFedAUC
from tacit.counts.rank_noise import RankNoise
from tacit.data.ragged import Ragged
from tacit.privacy.mechanisms.interface import Distribution
from tacit.privacy.mechanisms.laplace import PolyaShare
from tacit.protocol import NOTHING, Adjacency, Cost, NoiseSource, NoNoise, ServerResult, SystemNoise
from tacit.protocol.conversation import Conversation
from tacit.protocol.steps import Query, Reply, Step, View, step
from tacit.protocol.values import decode_values, encode_values, query_kinds
from tacit.protocols.encrypted.hidden import HiddenAUC
from tacit.running.evaluating import exact_auc
from tacit.running.session import messages
from tacit.running.session.coordinator import Coordinator, LostPartyError, RunError
from tacit.running.session.debits import Debit, DeclinedError, unrecorded
from tacit.running.session.messages import COORDINATOR, Kind, SignedMessage
from tacit.running.session.party import Party
from tacit.running.simulation import simulate
from tacit.testing.recording import values_of
from tacit.testing.rehearsal import Fault, Keys, Rehearsal, rehearse
from tests.federations import binormal_clients
from tests.laws import CONVERSATIONS, ONE_OF_EACH, PROTOCOLS
from tests.protocols.encrypted.variants import VARIANTS

KINDS = query_kinds(tacit.FedAUC(1.0))

CARRIED = [name for name, protocol in PROTOCOLS.items() if not isinstance(protocol, HiddenAUC)]
"""Without those whose replies are hidden."""


CLIENTS = binormal_clients(30, 40, 5)
ADAPTIVE = PublishedFedAUC(1.0, "staircase")


def silent(_: int) -> NoiseSource:
    return NoNoise()


def check_same(run: Rehearsal, clients: Clients, protocol: tacit.Protocol) -> None:
    """The run found and spent what the simulation without noise finds and spends."""
    expected = simulate(clients, protocol, NoNoise())
    for name in ("value", "privacy_error"):
        simulated = getattr(expected.server_result, name)
        np.testing.assert_array_equal(getattr(run.server_result, name), simulated)
    assert (run.spent, run.rounds) == (expected.spent.figures, expected.rounds)
    assert run.members == tuple(range(clients.count))
    assert np.all(run.bytes_sent >= expected.bytes_sent)


@pytest.mark.parametrize(
    ("name", "restarts"),
    [
        *((name, False) for name in CONVERSATIONS if name in CARRIED),
        *((name, True) for name in ONE_OF_EACH if name in CARRIED),
    ],
)
def test_a_rehearsal_finds_what_the_simulation_finds(name: str, restarts: bool) -> None:
    """Also where each party is stopped after every message, and some messages come twice."""
    faults = [Fault("duplicate", 1, turn, "down") for turn in (1, 2) if restarts]
    clients = PROTOCOLS[name].trial_records(CLIENTS)
    run = rehearse(clients, PROTOCOLS[name], faults, noise=silent, restarts=restarts)
    check_same(run, clients, PROTOCOLS[name])
    assert not [refusal for refusal in run.refusals if refusal.way == "down" or not restarts]


MENDED = [
    Fault(action, 2, turn, way)
    for action in ("drop", "truncate", "flip")
    for turn in (0, 1)
    for way in ("up", "down")
]
HARMLESS = [
    Fault("duplicate", 1, 0),
    Fault("duplicate", 1, 0, "down"),
    Fault("reorder", 1, 0),
    Fault("reorder", 1, 1, "down"),
]


@pytest.mark.parametrize(
    "fault", [*HARMLESS, *MENDED], ids=lambda fault: f"{fault.action}-{fault.way}-{fault.round}"
)
@pytest.mark.parametrize("name", ["exact", "fedauc-adaptive", "histogram-rounds"])
def test_a_fault_on_the_way_changes_nothing_and_costs_nothing(name: str, fault: Fault) -> None:
    """A message that is lost or damaged is sent again; one that comes twice is refused once."""
    run = rehearse(CLIENTS, PROTOCOLS[name], [fault], noise=silent, retries=fault in MENDED)
    check_same(run, CLIENTS, PROTOCOLS[name])
    if fault in HARMLESS:
        reasons = [refusal.reason for refusal in run.refusals]
        assert all(isinstance(reason, messages.StaleMessageError) for reason in reasons)


def without(clients: Clients, party: int) -> Clients:
    kept = clients.client_of_record != party
    return Clients.from_arrays(
        clients.scores[kept], clients.labels[kept], clients.client_of_record[kept]
    )


@pytest.mark.parametrize("action", ["drop", "delay"])
def test_who_is_silent_at_first_is_left_out(action: Any) -> None:
    run = rehearse(CLIENTS, tacit.ExactAUC(), [Fault(action, 1, 0)], noise=silent, min_clients=4)
    assert run.members == (0, 2, 3, 4)
    assert run.server_result.value == exact_auc(without(CLIENTS, 1))
    late = [messages.StaleMessageError] if action == "delay" else []
    assert [type(refusal.reason) for refusal in run.refusals] == late


@pytest.mark.parametrize("action", ["drop", "delay", "truncate"])
def test_who_vanishes_later_ends_the_run(action: Any) -> None:
    with pytest.raises(LostPartyError, match="party 3 vanished") as caught:
        rehearse(CLIENTS, ADAPTIVE, [Fault(action, 3, 1)], noise=silent, min_clients=4)
    assert caught.value.lost == (3,)


@pytest.mark.parametrize("fault", [Fault("drop", 3, 1), Fault("delay", 3, 1, "down")])
def test_a_run_begins_again_without_the_lost_party_and_every_book_knows(fault: Fault) -> None:
    """A message that comes after its party was lost is not answered."""
    debits = list[list[Debit]]([] for _ in range(5))
    guards = [party_debits.append for party_debits in debits]
    again: Any = {"on_loss": "restart", "min_clients": 4, "guards": guards}
    run = rehearse(CLIENTS, ADAPTIVE, [fault], noise=silent, **again)
    assert run.members == (0, 1, 2, 4)
    lost = 1.0 if fault.way == "up" else 0.0
    assert paid(debits) == [2.0, 2.0, 2.0, lost, 2.0]


def paid(debits: list[list[Debit]]) -> list[float]:
    return [sum((debit.cost for debit in each), NOTHING).epsilon for each in debits]


@pytest.mark.parametrize("turn", [0, 1, 2])
def test_masked_values_begin_again_by_themselves_without_a_lost_party(turn: int) -> None:
    """Nothing was released: another session, which costs nothing more; fewer than agreed end it."""
    clients, protocol = binormal_clients(60, 40, 4), tacit.EncryptedAUC(10, most_records=200)
    fault = [Fault("drop", 1, turn)]
    run = rehearse(clients, protocol, fault, noise=silent, min_clients=3)
    assert run.members == (0, 2, 3)
    expected = simulate(without(clients, 1), protocol, NoNoise()).server_result.value
    assert run.server_result.value == pytest.approx(float(expected), abs=1e-6)
    with pytest.raises(RunError):
        rehearse(clients, protocol, fault, noise=silent, min_clients=4)


@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.parametrize("same_keys", [True, False])
def test_a_message_of_an_older_session_is_refused_as_foreign_or_forged(
    way: Any, same_keys: bool
) -> None:
    keys = Keys.generate(5)
    older = rehearse(CLIENTS, ADAPTIVE, noise=silent, keys=keys if same_keys else None)
    again: Any = {"keys": keys, "older": older, "retries": 1, "noise": silent}
    run = rehearse(CLIENTS, ADAPTIVE, [Fault("replay", 1, 1, way)], **again)
    (refusal,) = run.refusals
    forged = () if same_keys else (messages.ForgedMessageError,)
    assert isinstance(refusal.reason, (messages.ForeignMessageError, *forged))
    assert run.server_result.value == older.server_result.value


def guards_with(second: Any) -> list[Any]:
    return [unrecorded, second, unrecorded]


def test_a_party_that_declines_is_named_with_its_public_reason() -> None:
    def overbudget(debit: Debit) -> None:
        raise DeclinedError("its budget does not allow this run")

    clients, guards = binormal_clients(60, 40, 3), guards_with(overbudget)
    run = rehearse(clients, PROTOCOLS["dpauc"], guards=guards, noise=silent, min_clients=2)
    assert run.declined == {1: "its budget does not allow this run"}
    assert run.members == (0, 2)
    with pytest.raises(RunError, match="party 1 declined: its budget does not allow this run"):
        rehearse(clients, PROTOCOLS["dpauc"], guards=guards, min_clients=3)


UNFIT = ["", "x" * 201, "\x1b[2Jno", "two\nlines", "\u202eturned", "bell\x07"]


@pytest.mark.parametrize("reason", UNFIT, ids=range(len(UNFIT)))
def test_a_reason_that_nobody_should_print_is_refused_on_both_ends(reason: str) -> None:
    with pytest.raises(ValueError, match="1 to 200 printable characters"):
        DeclinedError(reason)

    class RudeError(DeclinedError):
        def __init__(self) -> None:
            self.public = reason

    def rude(debit: Debit) -> None:
        raise RudeError

    clients = binormal_clients(60, 40, 3)
    guards = guards_with(rude)
    run = rehearse(clients, PROTOCOLS["dpauc"], guards=guards, noise=silent, min_clients=2)
    assert (run.declined, run.members) == ({}, (0, 2))
    (refusal,) = run.refusals
    assert isinstance(refusal.reason, messages.MalformedMessageError)
    assert "printable characters" in str(refusal.reason)
    assert str(refusal.reason).isprintable()
    assert len(str(refusal.reason)) < 200


def test_records_that_do_not_fit_are_declined_without_their_values() -> None:
    clients = Clients.from_values([0.1, 0.7, 0.4, 0.2], client_ids=["a", "a", "b", "b"])
    with pytest.raises(RunError, match="its records do not fit the protocol") as caught:
        rehearse(clients, tacit.UStatistic("kendall", 1.0), noise=silent)
    assert "second" not in str(caught.value)


def one_client(values: Any) -> Ragged[Any]:
    return Ragged(values, np.array([0, values.size]))


def changed(field: str, value: Any) -> Any:
    """A coordinator that asks with another shared value."""

    def forge(place: int, kind: Kind, body: bytes) -> bytes:
        content = decode_values(body, KINDS)
        query = decode_values(content["ask"], KINDS) if kind is Kind.SUM else content
        if kind is Kind.ROUND or field not in {**query, **query["shared"], **query["each"]}:
            return body
        for part in (query, query["shared"], query["each"]):
            if field in part:
                part[field] = value
        changed_query = encode_values(query, KINDS)
        return (
            encode_values(content | {"ask": changed_query}) if kind is Kind.SUM else changed_query
        )

    return forge


FORGED = {**PROTOCOLS, "open-bins": tacit.UStatistic("auc", 1.0)}
"""All cases, and one whose bins the coordinator names: those of the cases are agreed."""


def refused(*run: Any, **given_settings: Any) -> list[Exception]:
    """Why messages of a run that fails were not accepted."""
    with pytest.raises(RunError) as caught:
        rehearse(*run, **given_settings)
    assert caught.value.refusals
    return [refusal.reason for refusal in caught.value.refusals]


@pytest.mark.parametrize(
    ("name", "field", "value", "reason"),
    [
        ("dpauc", "step", "share_scores", "has no step 'share_scores'"),
        ("dpauc", "step", ["x"], "has no step"),
        ("dpauc", "view", "sum", "asks for the view 'sum'"),
        ("histogram-rounds", "shared", {}, "cannot be answered"),
        ("histogram", "clients", 50, "5 parties share the noise, and the message says 50"),
        ("histogram", "height", 2**40, "height must be 5, as agreed"),
        ("histogram", "view", "each", "asks for the view 'each'"),
        ("local-hierarchical", "height", 2**40, "height must be from 1 to"),
        ("local-hierarchical", "height", 0, "height must be from 1 to"),
        ("open-bins", "bins", 2**40, "symbols at most"),
        ("fedauc-adaptive", "share", np.array([2.0]), "cannot be answered"),
        ("fedauc-adaptive", "share", np.array([np.nan]), "cannot be answered"),
        ("fedauc-adaptive", "noise", 3.0, "mechanism must be laplace, as agreed"),
        ("fedauc-adaptive", "noise", RankNoise("gaussian", 1.0), "must be laplace, as agreed"),
        ("fedauc-adaptive", "noise", RankNoise("laplace", 1.01), "the agreed budget is 1.0"),
        ("fedauc-adaptive", "respond", np.zeros(0, np.bool_), "respond must hold one bool"),
        ("fedauc-adaptive", "respond", np.zeros((3, 1), np.bool_), "respond must hold one bool"),
        ("fedauc-adaptive", "respond", np.zeros(1), "respond must hold one bool a client"),
        ("fedauc-adaptive", "pivot", np.array([2**62]), "doubled pivots must be from 0"),
        ("fedauc-adaptive", "sensitivity", np.nan, "sensitivity must be a whole number"),
        ("fedauc-adaptive", "ranks", one_client(np.full(20, 0.5)), "values of type int64"),
        ("fedauc-adaptive", "ranks", one_client(np.full(20, 2**62)), "doubled ranks must be"),
        ("fedauc-adaptive", "ranks", one_client(np.arange(3)), "one value for every record"),
        ("fedauc-adaptive", "step", "offer_sizes", "has no step 'offer_sizes'"),
        ("dpauc-laplace", "step", "noisy_histograms", "has no step 'noisy_histograms'"),
        ("dpauc", "step", "flipped_histograms", "has no step 'flipped_histograms'"),
        ("local-histogram", "step", "summed_trees", "has no step 'summed_trees'"),
        ("histogram", "step", "unary_reports", "has no step 'unary_reports'"),
        ("local-two-round", "first", 3.5, "must be a whole number, got 3.5"),
        ("local-two-round", "width", 1.999, "width must be a whole number"),
    ],
)
def test_a_dishonest_coordinator_is_not_answered(
    name: str, field: str, value: Any, reason: str
) -> None:
    clients = binormal_clients(60, 40, 5)
    reasons = refused(clients, FORGED[name], forge=changed(field, value), noise=silent)
    assert all(isinstance(one, messages.MalformedMessageError) for one in reasons)
    assert reason in str(reasons[0])


def asking(
    once: Step, times: int = 1, cost: Cost = NOTHING, view: View = View.SUM, **shared: Any
) -> Any:
    """A protocol that asks one step, and tells the mean of the first field of the last reply.

    What the server received is in ``received``.
    """

    class Asking(tacit.Protocol):
        guarantee, name, steps, received = cost, "asking", (once,), list[Reply]()
        settings = {}  # noqa: RUF012

        def replicate_size(self, clients: Clients) -> int:
            return 1

        def conversation(self, clients: int) -> Conversation:
            for _ in range(times):
                self.received.append((yield Query(once, self, broadcast=shared, view=view)))
            value = np.mean(values_of(next(iter(self.received[-1].values()))))
            return ServerResult(value, value, value, value, value)

    return Asking()


@step(cost=lambda clients, query, state: Cost(1.0, adjacency=Adjacency.RECORD))
def count_once(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    return {"count": clients.sizes}


def test_more_than_the_guarantee_is_never_spent() -> None:
    protocol = asking(count_once, 2, Cost(1.5, adjacency=Adjacency.RECORD), View.EACH)
    clients, spent = binormal_clients(60, 40, 3), list[Debit]()
    reasons = refused(clients, protocol, guards=[spent.append] * 3)
    assert "more than the agreed guarantee" in str(reasons[0])
    assert [debit.cost.epsilon for debit in spent] == [1.0] * 3


class Stage:
    """A run whose messages a test carries by hand."""

    def __init__(self, clients: Clients, protocol: tacit.Protocol, **terms: Any) -> None:
        self.keys = Keys.generate(clients.count)
        self.agreement = self.keys.agreement(protocol, **terms)
        self.coordinator = Coordinator(self.agreement, self.keys.coordinator)
        self.asked = self.coordinator.open()
        self.parties = [
            Party(k, key, self.agreement, clients.part(k, k + 1), SystemNoise(), unrecorded)
            for k, key in enumerate(self.keys.parties)
        ]

    def carry(self) -> None:
        for index, message in self.asked.items():
            self.coordinator.receive(index, self.parties[index].answer(message))


def test_what_a_party_says_instead_of_an_answer_is_quoted_short_and_printable() -> None:
    stage = Stage(binormal_clients(60, 40, 3), PROTOCOLS["dpauc"])
    body = encode_values({"\x1b[2J" * 50_000: 1})
    message = SignedMessage(Kind.REPLY, stage.coordinator.session, 0, 1, COORDINATOR, body)
    with pytest.raises(messages.MalformedMessageError) as caught:
        stage.coordinator.receive(1, message.signed(stage.agreement, stage.keys.parties[1]))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000
    assert len(stage.coordinator.waiting) == 3


@pytest.mark.parametrize(
    ("protocol", "name", "restarted"),
    [
        (tacit.TwoRoundAUC(1.0), "", False),
        (tacit.TwoRoundAUC(1.0), "", True),
        (tacit.EncryptedAUC(10, most_records=100), "", False),
        (tacit.EncryptedAUC(10, most_records=100), "", True),
        (VARIANTS["malicious"](10, most_records=100), "share_keys", False),
        (VARIANTS["malicious"](10, most_records=100), "send_counts", False),
    ],
)
def test_what_a_run_has_one_of_is_begun_once(protocol: Any, name: str, restarted: bool) -> None:
    """Turns drawn again would choose who speaks, and a second session's answer is not debited.

    Two uploads differ in the perturbations alone, which their difference would magnify.
    """
    stage = Stage(binormal_clients(30, 40, 2), protocol)
    while True:
        stage.carry()
        query_message = messages.verified(stage.asked[0], stage.agreement, COORDINATOR, 0)
        if decode_values(query_message.body)["step"].startswith(name):
            break
        stage.asked = stage.coordinator.close()
    party = stage.parties[0].restarted() if restarted else stage.parties[0]
    later = replace(query_message, round=query_message.round + 1)
    again = later.signed(stage.agreement, stage.keys.coordinator)
    with pytest.raises(messages.MalformedMessageError, match=r"have met|was answered"):
        party.answer(again)
    if not name:
        party.next_run().answer(again)


@step(sums=lambda query: {"above": ()}, shares=tacit.protocol.unshared)
def count_above(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    return {
        "above": np.array(int((clients.scores > query.broadcast["edge"]).sum()), dtype=np.int64)
    }


def test_parties_that_are_asked_something_else_than_others_are_in_no_sum_with_them() -> None:
    """Everybody but one party is asked for the scores above an edge that none exceeds."""
    protocol = asking(count_above, edge=0.5)
    honest = rehearse(CLIENTS, protocol, forge=changed("edge", 0.5))
    assert honest.server_result.value == int((CLIENTS.scores > 0.5).sum())

    def apart(index: int, kind: Kind, body: bytes) -> bytes:
        return body if index == 3 else changed("edge", 2.0)(index, kind, body)

    reasons = refused(CLIENTS, protocol, forge=apart, colluders=0, min_clients=3)
    assert any(str(reason).startswith("message is of session") for reason in reasons)


@pytest.mark.parametrize(
    ("dropouts", "leaving", "settings", "error", "said"),
    [
        (0.2, 2, {"min_clients": 3, "colluders": 0}, RunError, "least 4 clients must come, got 3"),
        (0.8, 3, {"min_clients": 4}, RunError, "at least 4 clients must come, got 2"),
        (0.8, 3, {"min_clients": 2}, ValueError, "4 of 5 clients of which 1 may collude, got 2"),
    ],
    ids=["too little noise", "too few survivors", "fewer than certify"],
)
def test_nobody_helps_to_open_a_sum_of_too_few(
    dropouts: float, leaving: int, settings: Any, error: type[Exception], said: str
) -> None:
    protocol = tacit.ScoreHistogram(f"secure-sum(dropouts={dropouts})", 1.0)
    faults = [Fault("drop", index, 2) for index in range(leaving)]
    with pytest.raises(error, match=said):
        rehearse(CLIENTS, protocol, faults, **settings)


# --- another attempt at a sum ---------------------------------------------------------------


SUMMED = PROTOCOLS["histogram"]


def twice_silent(*turns: int) -> list[Fault]:
    return [Fault("drop", index, turn) for index in (0, 3) for turn in turns]


@pytest.mark.parametrize("turn", [0, 1, 2, 3])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_sum_that_too_few_stay_in_is_tried_again_with_all_who_answer(
    turn: int, restarts: bool
) -> None:
    """Two of five are silent for one round; they are there again when the sum is begun again."""
    arguments: dict[str, Any] = {"noise": silent, "min_clients": 4, "restarts": restarts}
    with pytest.raises(RunError, match="clients must"):
        rehearse(CLIENTS, SUMMED, twice_silent(turn), **arguments)
    debits = list[list[Debit]]([] for _ in range(5))
    again: Any = {"on_loss": "restart", "guards": [each.append for each in debits]}
    run = rehearse(CLIENTS, SUMMED, twice_silent(turn), **again, **arguments)
    assert run.members == (0, 1, 2, 3, 4)
    assert run.server_result.value == simulate(CLIENTS, SUMMED, NoNoise()).server_result.value
    assert paid(debits) == [2.0 * SUMMED.guarantee.epsilon if turn > 1 else 1.0] * 5
    assert run.spent.epsilon == paid(debits)[0]
    assert run.repeats == (
        "a sum took 2 attempts, and what was spent has the debits of each of them",
    )


@pytest.mark.parametrize(
    ("turns", "said"),
    [
        ((4,), "4 clients must reveal a share of client 0, got 3"),
        ((2, 6, 10), "masked of at least 5 clients must come, got 3"),
    ],
    ids=["after a share was revealed", "a fourth time"],
)
def test_a_sum_is_not_tried_again(turns: tuple[int, ...], said: str) -> None:
    """Each attempt loses two parties at its third round: turns 2, 6 and 10."""
    with pytest.raises(RunError, match=said):
        rehearse(CLIENTS, SUMMED, twice_silent(*turns), on_loss="restart", min_clients=4)


def test_another_attempt_draws_fresh_noise() -> None:
    """The same masked vector, less its masks, would come twice otherwise."""

    class Counted(NoNoise):
        draws = 0

        def draw(self, distribution: Distribution, shape: tuple[int, ...]) -> Any:
            self.draws += isinstance(distribution, PolyaShare)
            return super().draw(distribution, shape)

    sources = [Counted() for _ in range(5)]
    arguments: dict[str, Any] = {"noise": sources.__getitem__, "min_clients": 4}
    once = rehearse(CLIENTS, SUMMED, **arguments)
    before = [source.draws for source in sources]
    assert min(before) > 0
    run = rehearse(CLIENTS, SUMMED, twice_silent(2), on_loss="restart", **arguments)
    assert [source.draws for source in sources] == [3 * drawn for drawn in before]
    assert run.server_result.value == once.server_result.value


@pytest.mark.parametrize(
    ("attempt", "faults", "said"),
    [(1, [], "at least 26 bytes, got 0"), (0, twice_silent(2), "was summed in this run already")],
    ids=["the second before the first", "the second, said to be the first again"],
)
def test_a_party_joins_no_attempt_without_statements_and_none_twice(
    attempt: int, faults: list[Fault], said: str
) -> None:
    def forged(index: int, kind: Kind, body: bytes) -> bytes:
        content = decode_values(body)
        return encode_values(content | {"attempt": attempt}) if kind is Kind.SUM else body

    again: Any = {"on_loss": "restart", "min_clients": 4} if faults else {}
    reasons = refused(CLIENTS, SUMMED, faults, forge=forged, **again)
    assert any(said in str(reason) for reason in reasons)


def test_giving_up_alone_gives_no_budget_back() -> None:
    """A coordinator tells one party to give up, and lets the others open the sum with its vector;
    the party spends no more in that run. Only statements of tau clients free what it had paid."""
    stage = Stage(CLIENTS, SUMMED, min_clients=4)
    for _ in range(3):
        stage.carry()
        stage.asked = stage.coordinator.close()
    party, body = stage.parties[0], encode_values({"step": "summed_trees", "attempt": 0})
    assert party.spent == SUMMED.guarantee
    session, turn = stage.coordinator.session, stage.coordinator.round + 1
    restart = SignedMessage(Kind.RESTART, session, turn, COORDINATOR, 0, body)
    party.answer(restart.signed(stage.agreement, stage.keys.coordinator))
    assert party.spent == SUMMED.guarantee
    with pytest.raises(messages.SignedMessageError):
        party.restarted().answer(stage.asked[0])


def test_a_sum_that_does_not_fit_the_agreed_numbers_is_not_sent() -> None:
    @step(sums=lambda query: {"vector": (4096,)}, shares=tacit.protocol.unshared)
    def too_large(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
        return {"vector": np.full(4096, 2**50)}

    reasons = refused(binormal_clients(30, 40, 3), asking(too_large))
    assert "beyond the agreed largest" in str(reasons[0])


def test_steps_of_sums_must_say_what_they_sum() -> None:
    @step()
    def unsaid(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
        return {}

    with pytest.raises(TypeError, match="step unsaid does not declare what it sums"):
        rehearse(binormal_clients(30, 40, 3), asking(unsaid))


@step()
def send_as_many(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    return {"counts": np.zeros((2 if clients.scores[0] < 1 else 3, 1), dtype=np.int64)}


def test_a_party_whose_reply_has_another_form_is_left_out() -> None:
    """It sends three counts instead of two; where half of the parties do, no form is right."""
    protocol = asking(send_as_many, view=View.EACH)
    clients = Clients.from_arrays([0.1, 0.2, 1.0, 0.3], [0, 1, 0, 1], [0, 1, 2, 3])
    run = rehearse(clients, protocol, min_clients=3)
    assert run.members == (0, 1, 3)
    assert values_of(protocol.received[-1]["counts"]).size == 2 * 3
    assert "another form" in run.declined[2]
    halves = Clients.from_arrays([0.1, 0.2, 1.0, 1.0], [0, 1, 0, 1], [0, 1, 2, 3])
    with pytest.raises(RunError, match="no form is that of more than half"):
        rehearse(halves, protocol, min_clients=1)


def test_a_number_that_is_not_finite_is_refused() -> None:
    class Wild(NoNoise):
        def draw(self, distribution: Distribution, shape: tuple[int, ...]) -> Any:
            return np.full(shape, np.nan)

    clients = binormal_clients(90, 40, 5)
    run = rehearse(
        clients,
        PROTOCOLS["dpauc-laplace"],
        noise=lambda k: Wild() if k == 2 else NoNoise(),
        min_clients=4,
    )
    assert run.members == (0, 1, 3, 4)
    assert "not finite" in str(run.refusals[0].reason)
