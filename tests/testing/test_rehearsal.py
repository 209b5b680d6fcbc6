"""Rehearsals: the same estimate as simulation, through messages, sums and faults."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tacit import (
    Clients,
    ClientState,
    EncryptedAUC,
    ExactAUC,
    FedAUC,
    Protocol,
    ScoreHistogram,
    TwoRoundAUC,
    UStatistic,
)
from tacit.counts.rank_noise import RankNoise
from tacit.data.ragged import Ragged
from tacit.privacy.cost import NOTHING, Adjacency, Cost
from tacit.privacy.mechanisms.interface import Distribution
from tacit.privacy.mechanisms.laplace import PolyaShare
from tacit.privacy.noise import NoiseSource, NoNoise, SystemNoise
from tacit.protocol.conversation import Conversation, Query, Reply, View, step, unshared
from tacit.protocol.values import decode_values, encode_values, query_kinds
from tacit.protocols.encrypted import protocol as masked_protocol
from tacit.protocols.encrypted.confirming import opened
from tacit.protocols.encrypted.hidden import HiddenAUC
from tacit.protocols.published.fedauc import PublishedFedAUC
from tacit.protocols.published.fhe import protocol as fhe_protocol
from tacit.results.server_result import ServerResult
from tacit.running.evaluating import exact_auc
from tacit.running.session import sums
from tacit.running.session.answers import REFUSED
from tacit.running.session.coordinator import Coordinator, LostPartyError, RunError
from tacit.running.session.debits import Debit, DeclinedError, unrecorded
from tacit.running.session.messages import (
    COORDINATOR,
    ForeignMessageError,
    ForgedMessageError,
    Kind,
    MalformedMessageError,
    SignedMessage,
    SignedMessageError,
    StaleMessageError,
    verified,
)
from tacit.running.session.party import Party
from tacit.running.simulation import simulate
from tacit.testing.recording import values_of
from tacit.testing.rehearsal import Fault, Keys, Rehearsal, rehearse
from tests.crypto.secure_sum.transporting import OnceCheckedRoster
from tests.federations import binormal_clients
from tests.laws import CONVERSATIONS, ONE_OF_EACH, PROTOCOLS
from tests.protocols.encrypted.variants import VARIANTS

KINDS = query_kinds(FedAUC(1.0))

CARRIED = [name for name, protocol in PROTOCOLS.items() if not isinstance(protocol, HiddenAUC)]
"""Without those whose replies are hidden."""


ADAPTIVE = PublishedFedAUC(1.0, "staircase")


def silent(_: int) -> NoiseSource:
    return NoNoise()


@pytest.mark.parametrize("name", [name for name in CONVERSATIONS if name in CARRIED])
def test_a_rehearsal_finds_what_the_simulation_finds(name: str) -> None:
    clients, protocol = binormal_clients(30, 40, 5), PROTOCOLS[name]
    expected = simulate(clients, protocol, NoNoise())
    run = rehearse(clients, protocol, noise=silent)
    np.testing.assert_array_equal(run.server_result.value, expected.server_result.value)
    np.testing.assert_array_equal(
        run.server_result.privacy_error, expected.server_result.privacy_error
    )
    assert (run.spent, run.rounds) == (expected.spent.figures, expected.rounds)
    assert run.members == (0, 1, 2, 3, 4)
    assert not run.refusals
    assert np.all(run.bytes_sent >= expected.bytes_sent)


@pytest.mark.parametrize("name", [name for name in ONE_OF_EACH if name in CARRIED])
def test_parties_that_are_stopped_after_each_letter_find_the_same(name: str) -> None:
    clients, protocol = binormal_clients(30, 40, 5), PROTOCOLS[name]
    expected = simulate(clients, protocol, NoNoise())
    faults = [Fault("duplicate", 1, 1, "down"), Fault("duplicate", 1, 2, "down")]
    run = rehearse(clients, protocol, faults, noise=silent, restarts=True)
    assert not [refusal for refusal in run.refusals if refusal.way == "down"]
    np.testing.assert_array_equal(run.server_result.value, expected.server_result.value)
    assert run.spent == expected.spent.figures


@pytest.mark.parametrize("form", ["masked", "masked, malicious", "bfv", "malicious"])
def test_an_encrypted_auc_is_rehearsed(form: str) -> None:
    clients = binormal_clients(30, 40, 3)
    protocol = VARIANTS[form](10, most_records=100, perturbed=False)
    run = rehearse(clients, protocol, restarts=form != "bfv")
    assert run.server_result.value == simulate(clients, protocol, SystemNoise()).server_result.value


@pytest.mark.parametrize("name", ["fedauc", "dpauc", "histogram", "local-two-round-private"])
def test_noise_of_the_system_runs_in_a_rehearsal(name: str) -> None:
    run = rehearse(binormal_clients(300, 400, 4), PROTOCOLS[name])
    assert run.spent == PROTOCOLS[name].guarantee


HARMLESS = [
    Fault("duplicate", 1, 0),
    Fault("duplicate", 1, 0, "down"),
    Fault("reorder", 1, 0),
    Fault("reorder", 1, 1, "down"),
]


@pytest.mark.parametrize("fault", HARMLESS, ids=lambda fault: f"{fault.action}-{fault.way}")
@pytest.mark.parametrize("name", ["exact", "fedauc-adaptive", "histogram-looks"])
def test_what_comes_twice_or_in_another_order_changes_nothing(name: str, fault: Fault) -> None:
    clients, protocol = binormal_clients(30, 40, 5), PROTOCOLS[name]
    run = rehearse(clients, protocol, [fault], noise=silent)
    assert run.server_result.value == simulate(clients, protocol, NoNoise()).server_result.value
    assert run.spent == simulate(clients, protocol, NoNoise()).spent
    assert all(isinstance(refusal.reason, StaleMessageError) for refusal in run.refusals)


MENDED = [
    Fault(action, 2, turn, way)
    for action in ("drop", "truncate", "flip")
    for turn in (0, 1)
    for way in ("up", "down")
]


@pytest.mark.parametrize("fault", MENDED, ids=lambda f: f"{f.action}-{f.way}-{f.round}")
@pytest.mark.parametrize("name", ["fedauc", "histogram"])
def test_a_letter_lost_on_the_way_is_sent_again_at_no_cost(name: str, fault: Fault) -> None:
    clients, protocol = binormal_clients(30, 40, 5), PROTOCOLS[name]
    run = rehearse(clients, protocol, [fault], noise=silent, retries=1)
    expected = simulate(clients, protocol, NoNoise())
    assert run.server_result.value == expected.server_result.value
    assert run.spent == expected.spent.figures
    assert len(run.members) == 5


@pytest.mark.parametrize("bit", range(0, 8 * 600, 97))
def test_no_flipped_bit_is_ever_believed(bit: int) -> None:
    clients = binormal_clients(30, 40, 3)
    for way in ("up", "down"):
        run = rehearse(clients, ExactAUC(), [Fault("flip", 1, 0, way, bit)], retries=1)
        assert len(run.refusals) == 1
        assert run.server_result.value == exact_auc(clients)


def test_who_is_silent_at_first_is_left_out() -> None:
    clients = binormal_clients(60, 40, 5)
    run = rehearse(clients, ExactAUC(), [Fault("drop", 1, 0)], noise=silent, min_clients=4)
    others = Clients.from_arrays(
        *[
            np.concatenate(
                [part[clients.offsets[k] : clients.offsets[k + 1]] for k in (0, 2, 3, 4)]
            )
            for part in (clients.scores, clients.labels)
        ]
    )
    assert run.members == (0, 2, 3, 4)
    assert run.server_result.value == simulate(others, ExactAUC(), NoNoise()).server_result.value


@pytest.mark.parametrize("action", ["drop", "delay", "truncate"])
def test_who_vanishes_later_ends_the_run(action: Any) -> None:
    clients = binormal_clients(30, 40, 5)
    with pytest.raises(LostPartyError, match="party 3 vanished") as caught:
        rehearse(
            clients,
            ADAPTIVE,
            [Fault(action, 3, 1)],
            noise=silent,
            min_clients=4,
        )
    assert caught.value.lost == (3,)


def test_a_run_begins_again_without_the_lost_party_and_every_book_knows() -> None:
    clients, debits = binormal_clients(60, 40, 5), [[] for _ in range(5)]  # type: ignore[var-annotated]
    run = rehearse(
        clients,
        ADAPTIVE,
        [Fault("drop", 3, 1)],
        noise=silent,
        guards=[party_debits.append for party_debits in debits],
        on_loss="restart",
        min_clients=4,
    )
    assert run.members == (0, 1, 2, 4)
    spent = [sum((debit.cost for debit in each), NOTHING).epsilon for each in debits]
    assert spent == [2.0, 2.0, 2.0, 1.0, 2.0]


def test_a_letter_that_comes_after_its_party_was_lost_meets_nobody() -> None:
    clients, late = binormal_clients(60, 40, 5), [Fault("delay", 3, 1, "down")]
    run = rehearse(clients, ADAPTIVE, late, noise=silent, on_loss="restart", min_clients=4)
    assert run.members == (0, 1, 2, 4)


@pytest.mark.parametrize("turn", [0, 1, 2])
def test_masked_values_begin_again_by_themselves_without_a_lost_party(turn: int) -> None:
    """Nothing was released: another session, which costs nothing more; fewer than agreed end it."""
    clients, protocol = binormal_clients(60, 40, 4), EncryptedAUC(10, most_records=200)
    fault = [Fault("drop", 1, turn)]
    run = rehearse(clients, protocol, fault, noise=silent, min_clients=3)
    assert run.members == (0, 2, 3)
    kept = clients.client_of_record != 1
    rest = Clients.from_arrays(
        clients.scores[kept], clients.labels[kept], clients.client_of_record[kept]
    )
    expected = simulate(rest, protocol, NoNoise()).server_result.value
    assert run.server_result.value == pytest.approx(float(expected), abs=1e-6)
    with pytest.raises(RunError):
        rehearse(clients, protocol, fault, noise=silent, min_clients=4)


def test_a_late_letter_is_refused_as_late() -> None:
    faults = [Fault("delay", 1, 0)]
    run = rehearse(binormal_clients(30, 40, 5), ExactAUC(), faults, noise=silent, min_clients=4)
    (refusal,) = run.refusals
    assert isinstance(refusal.reason, StaleMessageError)
    assert 1 not in run.members


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_letter_of_an_older_session_is_refused_as_foreign(way: Any) -> None:
    clients, keys = binormal_clients(30, 40, 5), Keys.generate(5)
    protocol = PublishedFedAUC(1.0, "staircase")
    older = rehearse(clients, protocol, noise=silent, keys=keys)
    faults = [Fault("replay", 1, 1, way)]
    run = rehearse(clients, protocol, faults, noise=silent, keys=keys, older=older, retries=1)
    (refusal,) = run.refusals
    assert isinstance(refusal.reason, ForeignMessageError)
    assert run.server_result.value == older.server_result.value


def test_letters_under_other_keys_are_forged() -> None:
    clients = binormal_clients(30, 40, 5)
    older = rehearse(clients, ExactAUC())
    run = rehearse(clients, ExactAUC(), [Fault("replay", 1, 0)], older=older, retries=1)
    assert isinstance(run.refusals[0].reason, ForeignMessageError | ForgedMessageError)


class Overbudget:
    """A ledger that allows nothing."""

    def __call__(self, debit: Debit) -> None:
        raise DeclinedError("its budget does not allow this run")


def test_a_party_that_declines_is_named_with_its_public_reason() -> None:
    clients = binormal_clients(60, 40, 3)
    guards: list[Any] = [lambda debit: None, Overbudget(), lambda debit: None]
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
    guards: list[Any] = [lambda debit: None, rude, lambda debit: None]
    run = rehearse(clients, PROTOCOLS["dpauc"], guards=guards, noise=silent, min_clients=2)
    assert not run.declined
    assert run.members == (0, 2)
    (refusal,) = run.refusals
    assert isinstance(refusal.reason, MalformedMessageError)
    assert "printable characters" in str(refusal.reason)
    assert str(refusal.reason).isprintable()
    assert len(str(refusal.reason)) < 200


def test_what_a_party_says_instead_of_an_answer_is_quoted_short_and_printable() -> None:
    clients, keys = binormal_clients(60, 40, 3), Keys.generate(3)
    coordinator = Coordinator(keys.agreement(PROTOCOLS["dpauc"]), keys.coordinator)
    coordinator.open()
    body = encode_values({"\x1b[2J" * 50_000: 1})
    message = SignedMessage(Kind.REPLY, coordinator.session, 0, 1, COORDINATOR, body)
    signed = message.signed(keys.agreement(PROTOCOLS["dpauc"]), keys.parties[1])
    with pytest.raises(MalformedMessageError) as caught:
        coordinator.receive(1, signed)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000
    assert clients.count == len(coordinator.waiting)


def test_records_that_do_not_fit_are_declined_without_their_values() -> None:
    clients = Clients.from_values([0.1, 0.7, 0.4, 0.2], client_ids=["a", "a", "b", "b"])
    with pytest.raises(RunError, match="its records do not fit the protocol") as caught:
        rehearse(clients, UStatistic("kendall", 1.0), noise=silent)
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


FORGED = {**PROTOCOLS, "open-bins": UStatistic("auc", 1.0)}
"""All cases, and one whose bins the coordinator names: those of the cases are agreed."""


@pytest.mark.parametrize(
    ("name", "field", "value", "reason"),
    [
        ("dpauc", "step", "share_scores", "has no step 'share_scores'"),
        ("dpauc", "step", ["x"], "has no step"),
        ("dpauc", "view", "sum", "asks for the view 'sum'"),
        ("histogram-looks", "shared", {}, "cannot be answered"),
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
    with pytest.raises(RunError) as caught:
        rehearse(clients, FORGED[name], forge=changed(field, value), noise=silent)
    refused = [refusal.reason for refusal in caught.value.refusals]
    assert refused
    assert all(isinstance(one, MalformedMessageError) for one in refused)
    assert reason in str(refused[0])


@step(cost=lambda clients, query, state: Cost(1.0, adjacency=Adjacency.RECORD))
def count_once(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    return {"count": clients.sizes}


def test_more_than_the_guarantee_is_never_spent() -> None:
    class Twice(Vectors):
        guarantee = Cost(1.5, adjacency=Adjacency.RECORD)

        @property
        def steps(self) -> Any:
            return (count_once,)

        def conversation(self, clients: int) -> Conversation:
            yield Query(count_once, self)
            yield Query(count_once, self)
            raise AssertionError

    clients, spent = binormal_clients(60, 40, 3), []  # type: ignore[var-annotated]
    with pytest.raises(RunError) as caught:
        rehearse(clients, Twice(), guards=[spent.append] * 3)
    assert "more than the agreed guarantee" in str(caught.value.refusals[0].reason)
    assert [debit.cost.epsilon for debit in spent] == [1.0] * 3


@pytest.mark.parametrize(("form", "size"), [("malicious", 4000), ("masked, malicious", 8)])
@pytest.mark.parametrize("confirmed", [True, False])
def test_a_cheating_aggregator_is_caught_by_every_party_and_told_one_bit(
    monkeypatch: pytest.MonkeyPatch, form: str, size: int, confirmed: bool
) -> None:
    """Of ciphertexts the first run's content twice, of masked values a word of the proof.

    Such an answer is refused where all parties confirmed it, and where they confirmed another.
    """
    clients = binormal_clients(30, 40, 3)
    protocol = VARIANTS[form](10, most_records=100, perturbed=False)
    seen: list[bytes] = []

    def first_run_twice(answer: bytes) -> bytes:
        seen.append(answer)
        middle = len(answer) // 2
        return answer[:-size] + answer[middle - size : middle]

    def changed(step: Any, protocol: Any, answer: bytes) -> Any:
        exchange: Any = real(step, protocol, first_run_twice(answer) if confirmed else answer)
        reply: Any = None
        while True:
            query = exchange.send(reply)
            if not confirmed and "answer" in query.broadcast:
                wrong = first_run_twice(query.broadcast["answer"])
                query = replace(query, broadcast={**query.broadcast, "answer": wrong})
            reply = yield query

    real = opened
    for module in (masked_protocol, fhe_protocol):
        monkeypatch.setattr(module, "opened", changed)
    with pytest.raises(RunError) as caught:
        rehearse(clients, protocol)
    assert len(seen) == 1
    assert not caught.value.refusals
    assert f"party 0, party 1, party 2 declined: {REFUSED}; " in str(caught.value)
    assert not {"disagree", "proof", "session"} & set(str(caught.value).split())


@pytest.mark.parametrize("step", ["share_keys", "send_counts"])
def test_a_step_of_an_encrypted_session_is_not_answered_twice(step: str) -> None:
    """Two uploads differ in the perturbations alone, which their difference would magnify."""
    clients, keys = binormal_clients(30, 40, 2), Keys.generate(2)
    protocol = VARIANTS["malicious"](10, most_records=100)
    agreement = keys.agreement(protocol)
    parties = [
        Party(
            index,
            keys.parties[index],
            agreement,
            clients.part(index, index + 1),
            SystemNoise(),
            unrecorded,
        )
        for index in range(2)
    ]
    coordinator = Coordinator(agreement, keys.coordinator)
    messages = coordinator.open()
    while True:
        for index, message in messages.items():
            coordinator.receive(index, parties[index].answer(message))
        query_message = verified(messages[1], agreement, COORDINATOR, 1)
        if decode_values(query_message.body)["step"] == step:
            break
        messages = coordinator.close()
    again = replace(query_message, round=query_message.round + 1).signed(
        agreement, keys.coordinator
    )
    with pytest.raises(
        MalformedMessageError, match=r"have met already|was answered in this run already"
    ):
        parties[1].answer(again)


@pytest.mark.parametrize(
    "protocol",
    [TwoRoundAUC(1.0), EncryptedAUC(10, most_records=100)],
    ids=["turns", "encrypted session"],
)
@pytest.mark.parametrize("restarted", [False, True])
def test_what_a_run_has_one_of_is_begun_once(protocol: Protocol, restarted: bool) -> None:
    """Turns drawn again would choose who speaks, and a second session's answer is not debited."""
    clients, keys = binormal_clients(30, 40, 2), Keys.generate(2)
    agreement = keys.agreement(protocol)
    part = clients.part(0, 1)
    party = Party(0, keys.parties[0], agreement, part, SystemNoise(), unrecorded)
    first = Coordinator(agreement, keys.coordinator).open()[0]
    party.answer(first)
    party = party.restarted() if restarted else party
    query_message = verified(first, agreement, COORDINATOR, 0)
    again = replace(query_message, round=1).signed(agreement, keys.coordinator)
    with pytest.raises(MalformedMessageError, match="was answered in this run already"):
        party.answer(again)
    party.anew().answer(again)


@step(sums=lambda query: {"vector": (4096,)}, shares=unshared)
def send_vector(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    rng = np.random.default_rng(clients.records)
    drawn = rng.integers(-(2**40), 2**40, (clients.count, 4096))
    return {"vector": drawn.sum(axis=0)}


@dataclass
class Vectors(Protocol):
    """Sums 4,096 numbers of each client, and tells all of them."""

    guarantee = NOTHING
    settings = {}  # noqa: RUF012
    name = "vectors"

    @property
    def steps(self) -> Any:
        return (send_vector,)

    def replicate_size(self, clients: Clients) -> int:
        return 1

    def conversation(self, clients: int) -> Conversation:
        reply = yield Query(send_vector, self, view=View.SUM)
        vector = np.asarray(reply["vector"], dtype=np.float64)
        return ServerResult(vector.sum(), vector, vector, vector, vector)


def vectors_of(run: Rehearsal) -> tuple[Any, Any]:
    expected = np.zeros(4096, dtype=np.int64)
    for index in run.members:
        expected += np.random.default_rng(2 + index).integers(-(2**40), 2**40, 4096)
    return run.server_result.positives, expected


@pytest.fixture
def once_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each signature is checked once for all hundred parties of this process, with their keys."""
    monkeypatch.setattr(sums, "Roster", OnceCheckedRoster)


def many_clients(count: int) -> Clients:
    """Client k has k + 2 records, from which its vector is drawn."""
    sizes = np.arange(count) + 2
    scores = np.linspace(0, 1, int(sizes.sum()))
    labels = np.arange(scores.size) % 2
    return Clients.from_arrays(scores, labels, np.repeat(np.arange(count), sizes))


@pytest.mark.parametrize(("turn", "way"), [(0, "up"), (2, "up"), (3, "down")])
@pytest.mark.usefixtures("once_checked")
def test_a_sum_bears_that_three_tenths_leave_at_once(turn: int, way: Any) -> None:
    leaving = np.random.default_rng(turn).choice(30, 9, replace=False).tolist()
    faults = [Fault("drop", index, turn, way) for index in leaving]
    run = rehearse(many_clients(30), Vectors(), faults, min_clients=21)
    result, expected = vectors_of(run)
    np.testing.assert_array_equal(result, expected)
    stayed = 30 if turn >= 3 else 21
    assert len(run.members) == stayed


@pytest.mark.usefixtures("once_checked")
def test_any_thirty_of_a_hundred_leave_the_exact_sum_of_the_others() -> None:
    order = np.random.default_rng(9).permutation(100)
    faults = [Fault("drop", int(index), turn % 5) for turn, index in enumerate(order[:30])]
    result, expected = vectors_of(rehearse(many_clients(100), Vectors(), faults, min_clients=70))
    np.testing.assert_array_equal(result, expected)


def test_a_party_adds_to_one_sum_a_step_over_enough_parties() -> None:
    class Again(Vectors):
        def conversation(self, clients: int) -> Conversation:
            yield Query(send_vector, self, view=View.SUM)
            yield Query(send_vector, self, view=View.SUM)
            raise AssertionError

    with pytest.raises(RunError) as caught:
        rehearse(binormal_clients(30, 40, 3), Again())
    assert "send_vector was summed in this run already" in str(caught.value.refusals[0].reason)


@step(sums=lambda query: {"above": ()}, shares=unshared)
def count_above(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    return {
        "above": np.array(int((clients.scores > query.broadcast["edge"]).sum()), dtype=np.int64)
    }


class Above(Vectors):
    """Counts the scores above an edge that the coordinator names."""

    @property
    def steps(self) -> Any:
        return (count_above,)

    def conversation(self, clients: int) -> Conversation:
        reply = yield Query(count_above, self, broadcast={"edge": 0.5}, view=View.SUM)
        above = np.asarray(reply["above"], dtype=np.float64)
        return ServerResult(above, above, above, above, above)


def test_parties_that_are_asked_something_else_than_others_are_in_no_sum_with_them() -> None:
    """Everybody but one party is asked for the scores above an edge that none exceeds."""
    clients, honest = binormal_clients(30, 40, 5), changed("edge", 0.5)
    expected = int((clients.scores > 0.5).sum())
    assert rehearse(clients, Above(), forge=honest).server_result.value == expected

    def apart(index: int, kind: Kind, body: bytes) -> bytes:
        return body if index == 3 else changed("edge", 2.0)(index, kind, body)

    with pytest.raises(RunError) as caught:
        rehearse(clients, Above(), forge=apart, colluders=0, min_clients=3)
    reasons = [str(refusal.reason) for refusal in caught.value.refusals]
    assert any(reason.startswith("message is of session") for reason in reasons)


def test_a_coordinator_cannot_choose_who_counts() -> None:
    """Two of five are asked: nobody shares secrets for a sum over fewer than were agreed."""
    protocol = ScoreHistogram("secure-sum(dropouts=0.2)", 1.0)
    clients, keys = binormal_clients(30, 40, 5), Keys.generate(5)
    agreement = keys.agreement(protocol, min_clients=4)
    requested = Coordinator(agreement, keys.coordinator, (0, 1))
    parties = {
        k: Party(k, keys.parties[k], agreement, clients.part(k, k + 1), NoNoise(), unrecorded)
        for k in (0, 1)
    }
    messages = requested.open()
    for index, party in parties.items():
        requested.receive(index, party.answer(messages[index]))
    with pytest.raises(RunError, match="advert of at least 4 clients must come, got 2"):
        requested.close()


def test_nobody_helps_to_open_a_sum_with_too_little_noise() -> None:
    protocol = ScoreHistogram("secure-sum(dropouts=0.2)", 1.0)
    leaving = [Fault("drop", index, 2) for index in (0, 1)]
    with pytest.raises(RunError, match="at least 4 clients must come, got 3"):
        rehearse(binormal_clients(30, 40, 5), protocol, leaving, min_clients=3, colluders=0)


def test_too_few_survivors_give_an_error_and_no_sum() -> None:
    clients = binormal_clients(30, 40, 5)
    faults = [Fault("drop", index, 2) for index in (0, 1, 2)]
    protocol = ScoreHistogram("secure-sum(dropouts=0.8)", 1.0)
    with pytest.raises(RunError, match="at least 4 clients must come, got 2"):
        rehearse(clients, protocol, faults, min_clients=4)
    with pytest.raises(ValueError, match="at least 4 of 5 clients of which 1 may collude, got 2"):
        rehearse(clients, protocol, faults, min_clients=2)


# --- another attempt at a sum ---------------------------------------------------------------


@pytest.mark.parametrize("turn", [0, 1, 2, 3])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_sum_that_too_few_stay_in_is_tried_again_with_all_who_answer(
    turn: int, restarts: bool
) -> None:
    """Two of five are silent for one round; they are there again when the sum is begun again."""
    clients, protocol = binormal_clients(30, 40, 5), PROTOCOLS["histogram"]
    faults = [Fault("drop", index, turn) for index in (0, 3)]
    arguments: dict[str, Any] = {"noise": silent, "min_clients": 4, "restarts": restarts}
    with pytest.raises(RunError, match="clients must"):
        rehearse(clients, protocol, faults, **arguments)
    debits: list[list[Debit]] = [[] for _ in range(5)]
    guards = [party_debits.append for party_debits in debits]
    run = rehearse(clients, protocol, faults, on_loss="restart", guards=guards, **arguments)
    assert run.members == (0, 1, 2, 3, 4)
    assert run.server_result.value == simulate(clients, protocol, NoNoise()).server_result.value
    paid = [sum((debit.cost for debit in each), NOTHING).epsilon for each in debits]
    assert paid == [2.0 * protocol.guarantee.epsilon if turn > 1 else 1.0] * 5
    assert run.spent.epsilon == paid[0]
    assert run.repeats == (
        "a sum took 2 attempts, and what was spent has the debits of each of them",
    )


def test_a_sum_is_not_tried_again_once_a_share_was_revealed() -> None:
    clients, protocol = binormal_clients(30, 40, 5), PROTOCOLS["histogram"]
    faults = [Fault("drop", index, 4) for index in (0, 3)]
    with pytest.raises(RunError, match="4 clients must reveal a share of client 0, got 3"):
        rehearse(clients, protocol, faults, on_loss="restart", min_clients=4)


def test_a_sum_is_tried_three_times() -> None:
    """Each attempt loses two parties at its third round: turns 2, 6 and 10."""
    clients, protocol = binormal_clients(30, 40, 5), PROTOCOLS["histogram"]
    faults = [Fault("drop", index, turn) for index in (0, 3) for turn in (2, 6, 10)]
    with pytest.raises(RunError, match="masked of at least 5 clients must come, got 3"):
        rehearse(clients, protocol, faults, on_loss="restart", min_clients=4)
    run = rehearse(clients, protocol, faults[:2], on_loss="restart", min_clients=4, noise=silent)
    assert run.server_result.value == simulate(clients, protocol, NoNoise()).server_result.value


def test_another_attempt_draws_fresh_noise() -> None:
    """The same masked vector, less its masks, would come twice otherwise."""

    class Counted(NoNoise):
        draws = 0

        def draw(self, distribution: Distribution, shape: tuple[int, ...]) -> Any:
            self.draws += isinstance(distribution, PolyaShare)
            return super().draw(distribution, shape)

    sources = [Counted() for _ in range(5)]
    protocol = PROTOCOLS["histogram"]
    clients = binormal_clients(30, 40, 5)
    once = rehearse(clients, protocol, noise=lambda k: sources[k], min_clients=4)
    before = [source.draws for source in sources]
    assert min(before) > 0
    faults = [Fault("drop", index, 2) for index in (0, 3)]
    arguments: dict[str, Any] = {"on_loss": "restart", "min_clients": 4}
    run = rehearse(clients, protocol, faults, noise=lambda k: sources[k], **arguments)
    assert [source.draws for source in sources] == [3 * drawn for drawn in before]
    assert run.server_result.value == once.server_result.value


def test_a_party_joins_no_attempt_without_statements_and_none_twice() -> None:
    """Forged messages of another attempt, before and after the first was begun."""
    clients, protocol = binormal_clients(30, 40, 5), PROTOCOLS["histogram"]

    def second(index: int, kind: Kind, body: bytes) -> bytes:
        content = decode_values(body)
        return encode_values(content | {"attempt": 1}) if kind is Kind.SUM else body

    with pytest.raises(RunError) as caught:
        rehearse(clients, protocol, forge=second)
    assert "at least 26 bytes, got 0" in str(caught.value.refusals[0].reason)

    def twice(index: int, kind: Kind, body: bytes) -> bytes:
        """The second attempt, said to be the first again."""
        content = decode_values(body)
        return encode_values(content | {"attempt": 0}) if kind is Kind.SUM else body

    faults = [Fault("drop", index, 2) for index in (0, 3)]
    with pytest.raises(RunError) as caught:
        rehearse(clients, protocol, faults, forge=twice, on_loss="restart", min_clients=4)
    reasons = [str(refusal.reason) for refusal in caught.value.refusals]
    assert any("was summed in this run already" in reason for reason in reasons)


def test_giving_up_alone_gives_no_budget_back() -> None:
    """A coordinator tells one party to give up, and lets the others open the sum with its vector;
    the party spends no more in that run. Only statements of tau clients free what it had paid."""
    protocol = PROTOCOLS["histogram"]
    clients, keys = binormal_clients(30, 40, 5), Keys.generate(5)
    agreement = keys.agreement(protocol, min_clients=4)
    stage = Coordinator(agreement, keys.coordinator)
    parties = [
        Party(k, keys.parties[k], agreement, clients.part(k, k + 1), NoNoise(), unrecorded)
        for k in range(5)
    ]
    messages = stage.open()
    for _ in range(3):
        for index, party in enumerate(parties):
            stage.receive(index, party.answer(messages[index]))
        messages = stage.close()
    assert parties[0].spent == protocol.guarantee
    body = encode_values({"step": "summed_trees", "attempt": 0})
    restart = SignedMessage(Kind.RESTART, stage.session, stage.round + 1, COORDINATOR, 0, body)
    parties[0].answer(restart.signed(agreement, keys.coordinator))
    assert parties[0].spent == protocol.guarantee
    with pytest.raises(SignedMessageError):
        parties[0].restarted().answer(messages[0])


def test_a_sum_that_does_not_fit_the_agreed_numbers_is_not_sent() -> None:
    @step(sums=lambda query: {"vector": (4096,)}, shares=unshared)
    def too_large(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
        return {"vector": np.full(4096, 2**50)}

    class Large(Vectors):
        @property
        def steps(self) -> Any:
            return (too_large,)

        def conversation(self, clients: int) -> Conversation:
            yield Query(too_large, self, view=View.SUM)
            raise AssertionError

    with pytest.raises(RunError) as caught:
        rehearse(binormal_clients(30, 40, 3), Large())
    assert "beyond the agreed largest" in str(caught.value.refusals[0].reason)


def test_steps_of_sums_must_say_what_they_sum() -> None:
    @step()
    def unsaid(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
        return {}

    class Unsaid(Vectors):
        @property
        def steps(self) -> Any:
            return (unsaid,)

        def conversation(self, clients: int) -> Conversation:
            yield Query(unsaid, self, view=View.SUM)
            raise AssertionError

    with pytest.raises(TypeError, match="step unsaid does not declare what it sums"):
        rehearse(binormal_clients(30, 40, 3), Unsaid())


@step()
def send_as_many(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    return {"counts": np.zeros((2 if clients.scores[0] < 1 else 3, 1), dtype=np.int64)}


class Columns(Vectors):
    """Receives two counts of each client, or three where scores begin at 1."""

    @property
    def steps(self) -> Any:
        return (send_as_many,)

    def conversation(self, clients: int) -> Conversation:
        reply = yield Query(send_as_many, self)
        columns = np.asarray(values_of(reply["counts"]).shape[-1])
        return ServerResult(columns, columns, columns, columns, columns)


def test_a_party_whose_reply_has_another_form_is_left_out() -> None:
    clients = Clients.from_arrays([0.1, 0.2, 1.0, 0.3], [0, 1, 0, 1], [0, 1, 2, 3])
    run = rehearse(clients, Columns(), min_clients=3)
    assert run.members == (0, 1, 3)
    assert run.server_result.value == 3
    assert "another form" in run.declined[2]
    halves = Clients.from_arrays([0.1, 0.2, 1.0, 1.0], [0, 1, 0, 1], [0, 1, 2, 3])
    with pytest.raises(RunError, match="no form is that of more than half"):
        rehearse(halves, Columns(), min_clients=1)


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


def test_flipped_labels_are_kept_between_runs() -> None:
    clients, notes = binormal_clients(60, 40, 3), [ClientState() for _ in range(3)]
    protocol = PROTOCOLS["dpauc-response"]
    first, second = (rehearse(clients, protocol, state=notes) for _ in range(2))
    assert first.server_result.value == second.server_result.value
    assert (first.spent, second.spent) == (protocol.guarantee, NOTHING)


def test_every_letter_error_is_one_of_ours() -> None:
    assert issubclass(SignedMessageError, ValueError)
    assert Cost(0.0) == NOTHING
