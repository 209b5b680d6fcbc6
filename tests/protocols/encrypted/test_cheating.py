"""What a malicious aggregator may try: 51 strategies on the real cipher, all refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.crypto.homomorphic.engine import HomomorphicError
from tacit.protocols.encrypted.counts import cumulative_counts
from tacit.protocols.published.fhe.bfv import ExactAggregator
from tests.protocols.encrypted.forging import (
    HONEST,
    PARTIES,
    SCHEME,
    THRESHOLDS,
    exact_area,
    exact_half_range,
    federation,
)
from tests.protocols.encrypted.strategies import (
    FORGED,
    STRATEGIES,
    UNCHANGED,
    KeptParty,
    Room,
    answers,
    outcome,
    plus,
    rooms,
)

pytest.importorskip("tenseal")

TRIES, MANY_TRIES = 8, 12
"""Sessions in which each strategy is tried; ``python -m benchmarks.cheating`` tries 200. One that
were believed three times in ten would be noticed in 94 of 100 runs of these tests, and in all but
one of 70 where ``make test-thorough`` tries more."""

VARIANT_TRIES, FIRST_VARIANT = 3, 38


@pytest.fixture(scope="module")
def sessions() -> list[Room]:
    return list(rooms(TRIES))


@pytest.fixture(scope="module")
def many_sessions() -> list[Room]:
    return list(rooms(MANY_TRIES))


@pytest.mark.parametrize("name", STRATEGIES)
def test_cheating_is_refused(sessions: list[Room], name: str) -> None:
    """Those that are variants of others are tried less often."""
    variant = list(STRATEGIES).index(name) >= FIRST_VARIANT
    check_refusals(sessions[:VARIANT_TRIES] if variant else sessions, name)


@pytest.mark.thorough
@pytest.mark.parametrize("name", list(STRATEGIES)[:FIRST_VARIANT])
def test_cheating_is_refused_in_many_sessions(many_sessions: list[Room], name: str) -> None:
    check_refusals(many_sessions, name)


def check_refusals(sessions: list[Room], name: str) -> None:
    """The one answer in 484 that adds to the copies of an empty cell in both runs is harmless."""
    outcomes = [outcome(room, STRATEGIES[name]) for room in sessions]
    assert FORGED not in outcomes
    assert outcomes.count(UNCHANGED) < max(len(sessions) / 4, 2)


def test_an_answer_that_counts_as_forged(sessions: list[Room]) -> None:
    """The test above would notice: without the second run, a scaled numerator is believed."""
    room = sessions[0]
    scheme = replace(SCHEME, checked=False)
    party = KeptParty(scheme, room.party.secret, room.party.session, PARTIES)
    counts = cumulative_counts(federation(), np.linspace(0.0, 1.0, THRESHOLDS))
    uploads = party.uploads(counts, range(PARTIES))
    positions = dict.fromkeys(scheme.layout.falling().tolist(), 3)
    forged = Room(party, room.keys, uploads, None)

    def added(_: Room) -> list[bytes]:
        evaluator = room.evaluators[0]
        total = plus(positions)(evaluator, evaluator.total([upload[0] for upload in uploads]), 0)
        mask = ExactAggregator(scheme, room.keys).mask(0)
        return [evaluator.answer(total, HONEST, mask)]

    assert outcome(forged, added) == FORGED


def test_honest_answers_are_accepted(sessions: list[Room]) -> None:
    """Of the aggregator itself, of the same work by hand, and with parties added in any order."""
    expected = exact_area()
    for room in sessions[:3]:
        for made in (
            ExactAggregator(SCHEME, room.keys).answers(room.uploads),
            answers(room),
            answers(room, after=lambda evaluator, value, run: value),
            answers(room, lambda run, room=room: room.of(run)[::-1]),  # type: ignore[misc]
        ):
            found = room.party.decrypted(made)
            assert found.value == pytest.approx(expected, rel=3e-6)
            assert found.half_range == pytest.approx(exact_half_range(), rel=3e-5)


def test_wrong_numbers_of_answers_and_uploads(sessions: list[Room]) -> None:
    room = sessions[0]
    with pytest.raises(HomomorphicError, match="there are 2 answers, got 1"):
        room.party.decrypted(answers(room)[:1])
    with pytest.raises(HomomorphicError, match="every party sends 2 ciphertexts"):
        ExactAggregator(SCHEME, room.keys).answers([upload[:1] for upload in room.uploads])
