"""One message of a session is changed: a sentence, or the right figures, and never other ones."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import Clients, EncryptedClassAUC, FheAUC
from tacit.crypto.homomorphic import engine, schemes
from tacit.crypto.homomorphic.engine import HEADER_BYTES, HomomorphicError
from tacit.crypto.identities import Identity, Roster
from tacit.protocol import NoNoise, Protocol, Query, Ragged, Reply
from tacit.protocols.encrypted.sessions import as_field, as_parts
from tacit.protocols.published.fhe import ckks
from tacit.protocols.published.fhe.packing import cumulative_counts
from tests.classified import CLASSES, class_clients
from tests.crypto.changing import Change, changed, one_change
from tests.protocols.encrypted.variants import Parties, federation

PARTIES, ROUNDS, OPENING = 3, 4, 3
SCALE = slice(57, 65)
"""Of a stored ciphertext: behind the level, its form, and three numbers."""
BY_CLASS = EncryptedClassAUC(CLASSES, thresholds=12, most_records=1000)
CKKS = FheAUC(10, "ckks", most_records=1000)
Place = tuple[int, str, int]
"""The round, the way, and the party whose message it is."""
Messages = Sequence[dict[str, Any]]


class Changing(Parties):
    """Parties that know each other, of whose messages one is changed.

    Parameters
    ----------
    protocol, clients : what is run.
    place : which message; None changes none.
    how : how its bytes are changed.
    older : the messages of another session, for a replay.
    """

    def __init__(
        self,
        protocol: Any,
        clients: Clients,
        place: Place | None = None,
        how: Change = ("", 0.0, 0),
        older: Messages = (),
    ) -> None:
        super().__init__(protocol, clients)
        self.place, self.how, self.older, self.sent = place, how, older, list[dict[str, Any]]()
        identities = [Identity.generate() for _ in range(PARTIES)]
        roster = Roster(tuple(each.public for each in identities))
        for state, identity in zip(self.states, identities, strict=True):
            protocol.enrol(state, identity, roster)

    def run(self) -> Any:
        while True:
            self.sent.append({})
            try:
                self.query = self.conversation.send(self.replies())
            except StopIteration as end:
                return end.value

    def answer(self, index: int, query: Query | None = None) -> Reply:
        asked = (query or self.query).part(index, index + 1)
        broadcast = self.carried("down", index, asked.broadcast)
        own = self.carried("down", index, asked.per_client)
        asked = replace(asked, broadcast=broadcast, per_client=own)
        answer = asked.step.answer(self.parts[index], asked, NoNoise(), self.states[index])
        return self.carried("up", index, answer)

    def carried(self, way: str, party: int, fields: Any) -> dict[str, Any]:
        turn, made = len(self.sent) - 1, dict(fields)
        for name, value in made.items():
            self.sent[turn][f"{way} {party} {name}"] = value
            if self.place == (turn, way, party):
                old = self.older[turn].get(f"{way} {party} {name}", value)
                made[name] = self.changed(value, old)
        return made

    def changed(self, value: Any, old: Any) -> Any:
        if isinstance(value, bytes):
            return old if self.how[0] == "replay" else changed(value, [self.how])
        if isinstance(value, list):
            index = self.how[2] % len(value)
            return [*value[:index], self.changed(value[index], old[index]), *value[index + 1 :]]
        if isinstance(value, Ragged):
            return as_field([self.changed(as_parts(value)[0], as_parts(old)[0])])
        return np.asarray(value) + (0.125 if self.how[0] == "flip" else np.nan)


def figures(result: Any) -> list[float]:
    parts = () if result.breakdown is None else result.breakdown.parts
    return [float(result.value), *(each.value for part in parts for each in part.figures.values())]


@lru_cache(maxsize=4)
def honest(protocol: Any) -> tuple[list[float], Messages]:
    carrying = Changing(protocol, clients_of(protocol))
    return figures(carrying.run()), carrying.sent


@lru_cache(maxsize=4)
def clients_of(protocol: Protocol) -> Clients:
    return class_clients(600, PARTIES) if protocol is BY_CLASS else federation(600, PARTIES)


def check_one_change(protocol: Any, place: Place, how: Change) -> None:
    expected, older = honest(protocol)
    try:
        result = Changing(protocol, clients_of(protocol), place, how, older).run()
    except (ValueError, TypeError, LookupError) as error:
        assert "\n" not in str(error)
        assert len(str(error)) < 400
        return
    found = figures(result)
    if place[:2] == (OPENING, "down"):  # the aggregator's figures, which it may choose
        assert all(0 <= value <= 1 for value in found)
        return
    np.testing.assert_allclose(found, expected, atol=2e-6)


PLACES = st.tuples(
    st.integers(0, ROUNDS - 1), st.sampled_from(("up", "down")), st.integers(0, PARTIES - 1)
)
CHANGES = one_change("replay")


@settings(max_examples=60, deadline=None)
@given(PLACES, CHANGES)
def test_one_hostile_message_of_a_session_by_class(place: Place, how: Change) -> None:
    check_one_change(BY_CLASS, place, how)


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        *(("flip", (2, "up", 1)), ("flip", (3, "down", 0)), ("cut", (2, "down", 2))),
        *(("replay", (2, "up", 1)), ("replay", (3, "down", 0))),
    ],
)
def test_one_hostile_message_of_a_session_in_ckks(kind: str, place: Place) -> None:
    pytest.importorskip("tenseal")
    check_one_change(CKKS, place, (kind, 0.4, 3))


@pytest.mark.thorough
@pytest.mark.parametrize(("protocol", "examples"), [(BY_CLASS, 3000), (CKKS, 200)])
def test_many_hostile_messages(protocol: Any, examples: int) -> None:
    pytest.importorskip("tenseal")

    @settings(max_examples=examples, deadline=None)
    @given(PLACES, CHANGES)
    def one(place: Place, how: Change) -> None:
        check_one_change(protocol, place, how)

    one()


def with_scale(raw: bytes, scale: float) -> bytes:
    """A stored ciphertext that says another scale, not compressed."""
    body = bytearray(engine._contents(raw))
    body[SCALE] = struct.pack("<d", scale)
    size = (HEADER_BYTES + len(body)).to_bytes(8, "little")
    return raw[: engine.COMPRESSION] + bytes(3) + size + bytes(body)


@pytest.fixture(scope="module")
def in_ckks() -> Any:
    """A party, the aggregator, all uploads, and the answers."""
    pytest.importorskip("tenseal")
    scheme, data = ckks.ApproximateScheme(10, 1000, True), federation(600, PARTIES)
    party = ckks.ApproximateParty(scheme, bytes(32), bytes(16), PARTIES)
    uploads = party.uploads(cumulative_counts(data, np.linspace(0.0, 1.0, 10)), range(PARTIES))
    aggregator = ckks.ApproximateAggregator(scheme, party.evaluation_keys())
    return party, aggregator, uploads, aggregator.answers(uploads)


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, 1e-300, 2.0**60, 1e300])
def test_answers_of_another_scale_are_refused(in_ckks: Any, scale: float) -> None:
    party, _, _, answers = in_ckks
    assert 0 < party.decrypted(answers).value < 1
    for index, answer in enumerate(answers):
        lie = [*answers[:index], with_scale(answer, scale), *answers[index + 1 :]]
        with pytest.raises(HomomorphicError):
            party.decrypted(lie)


def test_numbers_that_no_auc_has_are_refused_in_ckks(in_ckks: Any) -> None:
    party, aggregator, uploads, answers = in_ckks
    numerator, denominator, paired = answers
    vast = party._secret_key.encrypted(np.full(11, 1e6))
    below = party._secret_key.encrypted(np.full(11, -30.0))
    for lie in (
        [denominator, numerator, paired],
        [numerator, denominator, numerator],
        aggregator.answers([[vast, *uploads[0][1:]], *uploads[1:]]),
        aggregator.answers([[below, *uploads[0][1:]], *uploads[1:]]),
    ):
        with pytest.raises(HomomorphicError, match="no honest computation gives"):
            party.decrypted(lie)


def test_uploads_that_cancel_are_refused_in_the_packages_words(in_ckks: Any) -> None:
    """SEAL refuses a product that hides nothing by an error of its own."""
    _, aggregator, uploads, _ = in_ckks
    context = engine.context_of(schemes.CKKS)
    evaluator = engine.tenseal_api().Evaluator(context)
    ciphertext = engine.restored("Ciphertext", context, uploads[0][0])
    evaluator.negate_inplace(ciphertext)
    opposite = [engine.stored(ciphertext), *uploads[1][1:]]
    with pytest.raises(HomomorphicError, match="SEAL refuses these bytes: result ciphertext is"):
        aggregator.answers([uploads[0], opposite])
