"""A malicious aggregator on masked values: 65 strategies, all refused, and the proof alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.crypto.masking import Field, MaskedValueError, total_mask
from tacit.privacy.noise import NoNoise
from tacit.protocols.encrypted import masked_scheme, masked_sides
from tacit.protocols.encrypted.masked_sides import MaskedAggregator, MaskedParty, VerifierKeys
from tacit.protocols.encrypted.protocol import EXPERIMENTAL_WARNING, EncryptedAUC
from tacit.running.simulation import simulate
from tests.protocols.encrypted import forging
from tests.protocols.encrypted.forging import FORGED, PARTIES, UNCHANGED, outcome
from tests.protocols.encrypted.masked_strategies import HONEST, SCHEME, STRATEGIES, Room, answers

TRIES = 4
"""Sessions in which each strategy is tried; ``python -m benchmarks.cheating`` tries 200."""


@pytest.fixture(scope="module")
def sessions() -> list[Room]:
    return list(Room.rooms(TRIES))


def session_of(scheme: masked_scheme.MaskedScheme, session: bytes, last: int = 0) -> MaskedParty:
    """A session; ``last`` changes the last party's own key alone."""

    def pairing(party: int, other: int) -> bytes:
        own = last if party == other == PARTIES - 1 else 0
        return session + bytes(13) + bytes([own, *sorted((party, other))])

    return MaskedParty(scheme, bytes(16), session, PARTIES, pairing)


@pytest.mark.parametrize("name", STRATEGIES)
def test_cheating_is_refused(sessions: list[Room], name: str) -> None:
    """A refusal that is owed to chance fails for at most 9 of about 2^89 secrets a session."""
    outcomes = {outcome(room, STRATEGIES[name]) for room in sessions}
    assert not outcomes & {FORGED, UNCHANGED}


def test_honest_answers_are_accepted(sessions: list[Room]) -> None:
    for room in sessions:
        honest = MaskedAggregator(SCHEME, room.party.session)
        for made in (honest.answer(room.uploads), answers(room)):
            assert room.party.decrypted(made).value == pytest.approx(forging.exact_area(), rel=3e-6)


def test_without_the_proof_wrong_answers_are_believed(
    sessions: list[Room], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first test would notice a check that lets answers pass.

    Most other strategies leave masks that do not cancel, and so no plausible numbers.
    """
    monkeypatch.setattr(masked_sides, "check", lambda *arguments: None)
    believed = Counter(outcome(sessions[0], strategy) for strategy in STRATEGIES.values())
    assert believed[FORGED] >= 8


def test_without_the_range_a_wrapped_multiplier_is_believed(sessions: list[Room]) -> None:
    """Accepted numbers are small: the proof alone holds for every multiplier."""
    multiplier = SCHEME.field.prime - HONEST
    opened = sessions[0].party.opened(answers(sessions[0], multiplier=multiplier))
    assert min(opened) > SCHEME.accepted_most


@pytest.mark.parametrize("most", [1200, 2**17, 458_407, 2**20, 2**23, 2**32])
def test_no_two_ratios_have_accepted_numbers(most: int) -> None:
    """``w_0 Y - w_1 X`` is between -q and q for twice as many records as agreed; an answer fits."""
    scheme = masked_scheme.MaskedScheme(100, most, checked=True)
    pairs = (2 * most) ** 2 // 4
    largest = masked_scheme.Products(scheme.accepted_most, scheme.accepted_most // 2, 0)
    extra = scheme.reach
    assert scheme.is_honest(largest)
    for first, second in (
        (largest.numerator + 2 * extra, largest.denominator + extra),
        (-2 * extra, largest.denominator),
        (largest.numerator, -extra),
    ):
        assert abs(first) * pairs < scheme.field.prime
        assert abs(first * pairs - second * 2 * pairs) < scheme.field.prime
    assert not scheme.is_honest(largest._replace(denominator=largest.denominator + 1))
    assert not scheme.is_honest(largest._replace(tied=largest.denominator + 1))
    assert scheme.accepts(most**2 // 1000)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), thresholds=st.integers(2, 12), bits=st.sampled_from([64, 120]))
def test_a_proof_is_the_polynomial_of_the_relation(seed: int, thresholds: int, bits: int) -> None:
    """For any words: right answers pass at every D, others at no more than three of the field."""
    field, count = Field(bits), 2 * thresholds + 2 * masked_scheme.FORMS + 1
    drawn = total_mask(seed.to_bytes(32, "little"), 2 * count + 3, field)
    own, line = masked_scheme.Words.of(drawn[:count], thresholds), drawn[count : 2 * count]
    point, multiplier, error = (int(each) for each in drawn[-3:])
    keys = VerifierKeys(point, field.elements(line - point * own.joined), field.elements([0] * 3))
    products = masked_scheme.forms(own.positives, own.negatives, field)
    values = multiplier * (products - own.crossed) - own.blinded
    shift, nothing = multiplier - own.blinding[0], field.elements([0] * (3 * masked_scheme.FORMS))
    proof = masked_sides.coefficients(
        own, masked_scheme.Words.of(line, thresholds), multiplier, nothing, field
    )
    masked_sides.check(keys, thresholds, shift, values, proof, field)
    for place in range(masked_scheme.FORMS):
        wrong = values.copy()
        wrong[place] += error
        with pytest.raises(MaskedValueError, match="its proof fails"):
            masked_sides.check(keys, thresholds, shift, wrong, proof, field)
        # who knew D could carry the error into the proof
        proof[place] += point**3 * error
        masked_sides.check(keys, thresholds, shift, wrong, proof, field)
        proof[place] -= point**3 * error


def test_perturbations_come_from_the_parties() -> None:
    """Every party's part counts, and no aggregator can leave one out."""
    scheme = masked_scheme.MaskedScheme(10, 2**20, checked=True)
    assert scheme.perturbations(2**40).tolist() == [0, 0, 0]
    data, true = forging.federation(), forging.true_numbers()
    cells, rests = masked_scheme.class_cells(data, np.linspace(0.0, 1.0, 10)), set()
    for name in range(6):
        party = session_of(scheme, bytes([name] * 16))
        uploads = party.uploads(*cells, range(PARTIES))
        opened = party.opened(MaskedAggregator(scheme, party.session).answer(uploads))
        rests.add(opened.denominator % true[1])
        assert abs(opened.numerator / opened.denominator * true[1] / true[0] - 1) < 1e-2
    assert len(rests) == 6


def test_parties_without_the_last_ones_masks_see_uniform_proofs() -> None:
    """A party's own key alone decides D_c and two coefficients of each form; the AUC stays."""
    data = forging.federation()
    cells, seen = masked_scheme.class_cells(data, np.linspace(0.0, 1.0, SCHEME.thresholds)), []
    for last in range(2):
        party = session_of(SCHEME, bytes(16), last)
        made = answers(Room(party, party.uploads(*cells, range(PARTIES))))
        seen.append(SCHEME.field.from_bytes(made[8:], SCHEME.answer_words))
        assert party.decrypted(made).value == pytest.approx(forging.exact_area(), rel=3e-6)
    assert all(one != other for one, other in zip(*seen, strict=True))


def test_the_check_is_marked_experimental() -> None:
    protocol = EncryptedAUC(40, "malicious", most_records=forging.RECORDS)
    made = simulate(forging.federation(), replace(protocol, half_range=0.1), NoNoise())
    assert made.server_result.warnings == (EXPERIMENTAL_WARNING,)
