"""The AUC on masked values: what its numbers say, and messages that are sent once."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit import EncryptedAUC, EncryptedClassAUC
from tacit.arrays import Floats
from tacit.crypto.homomorphic.engine import HomomorphicError
from tacit.crypto.masking import MaskedValueError
from tacit.protocol import Clients, ClientState, NoNoise, Query
from tacit.protocol.declared import revealed_to
from tacit.protocols.encrypted import hidden, masked_scheme, masked_sides, sessions
from tacit.protocols.encrypted.masked_scheme import MaskedScheme, Products, class_cells
from tacit.protocols.encrypted.steps import boxes_of, open_masked, seal_secret, send_masked
from tacit.protocols.published.fhe.packing import cumulative_counts
from tacit.running.simulation import simulate
from tacit.testing.checks import conversation_of
from tests.classified import CLASSES, class_clients
from tests.protocols.encrypted import variants
from tests.protocols.encrypted.forging import true_numbers
from tests.protocols.encrypted.masked_strategies import paired_by
from tests.protocols.encrypted.variants import federation

Adversary = Literal["semi-honest", "malicious"]
BY_CLASS = EncryptedClassAUC(CLASSES, thresholds=20, most_records=2000)


def even(thresholds: int) -> Floats:
    return np.linspace(0.0, 1.0, thresholds)


def session_of(
    scheme: MaskedScheme, parties: int, name: bytes = bytes(range(16))
) -> masked_sides.MaskedParty:
    return masked_sides.MaskedParty(scheme, bytes(16), name, parties, paired_by(b""))


def numbers_of(clients: Clients, thresholds: int) -> Products:
    return true_numbers(cumulative_counts(clients, even(thresholds)))


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    thresholds=st.integers(5, 40),
    clients=st.integers(2, 6),
    most=st.sampled_from([2, 20, 500, 2**14, 2**20, 2**32]),
)
def test_unperturbed_answers_are_one_multiple_of_the_true_numbers(
    seed: int, thresholds: int, clients: int, most: int
) -> None:
    """In every field, also of 250 times as many records as were agreed; ties, scores of 0 and 1,
    parties with one class."""
    rng = np.random.default_rng(seed)
    scores = np.round(rng.random(500), rng.integers(1, 4))
    data = Clients.from_arrays(scores, np.arange(500) % 3 == 0, rng.permutation(500) % clients)
    scheme = MaskedScheme(thresholds, most, perturbed=False)
    party = session_of(scheme, clients)
    uploads = party.uploads(*class_cells(data, even(thresholds)), range(clients))
    opened = party.opened(masked_sides.MaskedAggregator(scheme, party.session).answer(uploads))
    true = numbers_of(data, thresholds)
    multiplier, rest = divmod(opened.denominator, true.denominator)
    assert rest == 0
    assert scheme.least_bits <= math.log2(multiplier) < scheme.least_bits + scheme.octaves
    assert opened == Products(*(multiplier * number for number in true))


def test_what_is_added_to_a_range_does_not_follow_the_multiplier() -> None:
    """Else an aggregator that knows c, and is told the range, learned the size of P N."""
    scheme = MaskedScheme(100, 2**20)
    ranges = {
        masked_scheme.certain(Products(multiplier << 36, multiplier << 35, 0), scheme).half_range
        for multiplier in (2**scheme.least_bits, 2 ** (scheme.least_bits + 9))
    }
    assert len(ranges) == 1


def test_unperturbed_answers_warn_also_where_only_parties_are_told() -> None:
    protocol = EncryptedAUC(10, most_records=2000, perturbed=False, reveal="parties")
    made = simulate(federation(), protocol, NoNoise()).server_result
    assert made.warnings == (hidden.UNPERTURBED_WARNING, hidden.PARTIES_ONLY)


def test_numbers_and_bytes_that_no_honest_side_sends_are_refused() -> None:
    scheme = MaskedScheme(10, 2000)
    party, data = session_of(scheme, 4), federation()
    uploads = party.uploads(*class_cells(data, even(10)), range(4))
    aggregator = masked_sides.MaskedAggregator(scheme, party.session)
    answer = aggregator.answer(uploads)
    for changed in (uploads[:3], [*uploads[:3], uploads[0]], [*uploads, uploads[0]]):
        with pytest.raises(MaskedValueError, match="no honest computation"):
            party.decrypted(aggregator.answer(changed))
    with pytest.raises(MaskedValueError, match="another session"):
        party.decrypted(bytes(8) + answer[8:])
    with pytest.raises(MaskedValueError, match="masked values have"):
        party.decrypted(answer[:-1])
    with pytest.raises(MaskedValueError, match="2 boxes have 64 bytes, got 3"):
        boxes_of(b"abc", 3, 16)


@pytest.mark.parametrize(
    ("protocol", "data", "each"),
    [
        (EncryptedAUC(10, most_records=2000), federation(), 1),
        (EncryptedAUC(10, "malicious", most_records=2000), federation(), 2),
        (BY_CLASS, class_clients(2000, 4), 1),
    ],
)
def test_no_two_sessions_or_classes_share_a_mask(
    monkeypatch: pytest.MonkeyPatch, protocol: Any, data: Clients, each: int
) -> None:
    """All keys and first words of masks of 30 sessions of the same parties; every pair's twice."""
    drawn, state = variants.recorded_masks(monkeypatch), variants.pinned(4)
    for _ in range(30):
        simulate(data, protocol, NoNoise(), state)
    # a session and class: 6 pairs at both ends, 4 parties' own; once to send and once to open the
    # masks of the totals, and what a proof is checked with, of which each party's are drawn by the
    # aggregator as well
    sums = 30 * protocol.auc_count
    assert len(drawn) == sums * (2 * 6 + 2 * each + 4 * (2 * each - 1))
    different = sums * (6 + each + 4 * each)
    assert len({key for key, _ in drawn}) == len({words for _, words in drawn}) == different


def test_a_restored_state_sends_nothing_twice() -> None:
    """Before the introduction: another session. After it: the party knows the session."""
    data, protocol, state = federation(), EncryptedAUC(10, most_records=2000), ClientState()
    asked: list[Query] = []
    for query, _ in conversation_of(data, protocol, NoNoise(), state):
        asked.append(query)
        if query.step is seal_secret:
            kept = {key: note for key, note in state.notes.items() if key[1] == "session"}
        if query.step is send_masked:
            for notes in (state.notes, {**state.notes, **kept}):
                with pytest.raises(HomomorphicError, match="sent already"):
                    send_masked.answer(data, query, NoNoise(), variants.restored(notes))
    assert tuple(query.step for query in asked) == protocol.steps
    with pytest.raises(HomomorphicError, match="in no session"):
        open_masked.answer(data, asked[3], NoNoise(), state)


@pytest.mark.parametrize("adversary", ["semi-honest", "malicious"])
def test_a_state_restored_whole_sends_the_same_bytes(adversary: Adversary) -> None:
    """A copy of all notes from within the session: what it sends again is no second message.

    Two of them would have the same masks: ``(R_i - R_i') / (r_i - r_i')`` is the pad, and with it
    the aggregator has P N and the AUC; and two secrets would be sealed with one key and nonce. The
    codes of two messages would betray D, with which a wrong answer passes.
    """
    protocol = EncryptedAUC(10, adversary, most_records=2000)
    data, state = federation(), ClientState()
    before: dict[Any, Any] = {}
    for query, reply in conversation_of(data, protocol, NoNoise(), state):
        if query.step in (seal_secret, send_masked):
            again = query.step.answer(data, query, NoNoise(), variants.restored(before))
            assert {name: sessions.as_parts(sent) for name, sent in again.items()} == {
                name: sessions.as_parts(sent) for name, sent in reply.items()
            }
        before = state.notes


def test_parties_alone_are_told() -> None:
    """The aggregator's result has no figure, and no reply depends on it."""
    data, state = federation(), ClientState()
    protocol = EncryptedAUC(20, most_records=2000, reveal="parties")
    made = simulate(data, protocol, NoNoise(), state).server_result
    assert math.isnan(float(made.value))
    assert math.isnan(float(made.half_range))
    revealed = revealed_to(state)
    assert revealed is not None
    open_protocol = EncryptedAUC(20, most_records=2000)
    expected = simulate(data, open_protocol, NoNoise()).server_result
    assert revealed.value == pytest.approx(float(expected.value), abs=1e-6)
    assert revealed_to(state) is None
    result = tacit.evaluate(data, protocol, exact=True)
    assert result.auc.value == pytest.approx(revealed.value, abs=1e-6)
    assert result.to_dict()["protocol"]["reveal"] == "parties"
    assert open_protocol.settings["reveal"] == "aggregator"
