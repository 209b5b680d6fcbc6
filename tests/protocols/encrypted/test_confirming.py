"""All parties of a session open one answer: an aggregator that sends two is refused by all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import pytest

from tacit.crypto.homomorphic.engine import HomomorphicError
from tacit.data.clients import Clients
from tacit.privacy.noise import NoNoise
from tacit.protocol.conversation import ClientState, PublicRefusalError, Query, Reply
from tacit.protocols.encrypted import confirming
from tacit.protocols.encrypted.confirming import check_confirmed, confirm_answer, digest, joined
from tacit.protocols.encrypted.masked_scheme import MaskedScheme, Products
from tacit.protocols.encrypted.masked_sides import MaskedAggregator
from tacit.protocols.encrypted.protocol import EncryptedAUC
from tacit.protocols.encrypted.sessions import NOTE, RefusedAnswer, as_field, as_parts, seat_of
from tacit.protocols.encrypted.steps import open_masked, party_of, send_masked
from tacit.protocols.published.fhe.protocol import FheAUC
from tests.protocols.encrypted.forging import RECORDS, THRESHOLDS, federation, true_numbers
from tests.protocols.encrypted.variants import CHECKED

PARTIES = 3


def checked(reveal: Literal["parties", "aggregator"] = "parties") -> EncryptedAUC:
    return EncryptedAUC(THRESHOLDS, "malicious", most_records=RECORDS, scale="even", reveal=reveal)


class Session:
    """Parties of their own, up to the sending of counts, and an aggregator that may do anything."""

    def __init__(self, protocol: EncryptedAUC, states: list[ClientState] | None = None) -> None:
        self.protocol, data = protocol, federation()
        self.parts = [data.part(index, index + 1) for index in range(PARTIES)]
        self.states = states or [ClientState() for _ in range(PARTIES)]
        conversation = protocol.conversation(PARTIES)
        query = next(conversation)
        while True:
            reply = self.all_answer(query)
            if query.step is send_masked:
                break
            query = conversation.send(reply)
        self.uploads = as_parts(reply["counts"])
        self.session = seat_of(self.states[0]).known_meeting.session

    def all_answer(self, query: Query) -> Reply:
        """Every party's reply to a query, as the server stacks them."""
        replies = [self.answer(index, query) for index in range(PARTIES)]
        return {
            name: as_field([as_parts(reply[name])[0] for reply in replies]) for name in replies[0]
        }

    def answer(self, index: int, query: Query) -> Reply:
        own = {name: as_field([as_parts(value)[index]]) for name, value in query.per_client.items()}
        asked = Query(query.step, self.protocol, broadcast=query.broadcast, per_client=own)
        return query.step.answer(self.parts[index], asked, NoNoise(), self.states[index])

    def made(self) -> bytes:
        """An answer as agreed; each call draws another multiplier."""
        aggregator = MaskedAggregator(self.protocol.masked_scheme, self.session)
        return aggregator.answer(self.uploads)

    def tags(self, digests: list[bytes]) -> list[bytes]:
        """What each party confirms, sent these."""
        return [
            as_parts(self.answer(index, self.confirmation(each))["tag"])[0]
            for index, each in enumerate(digests)
        ]

    def confirmation(self, confirmed: bytes) -> Query:
        return Query(confirm_answer, self.protocol, broadcast={"digest": confirmed})

    def opening(self, answer: bytes, tags: bytes) -> Query:
        return Query(open_masked, self.protocol, broadcast={"answer": answer, "tags": tags})


def test_one_answer_is_opened_by_all() -> None:
    session = Session(checked())
    answer = session.made()
    tags = joined(session.tags([digest(answer)] * PARTIES))
    for index in range(PARTIES):
        assert list(session.answer(index, session.opening(answer, tags))) == ["opened"]


def test_parties_that_were_sent_different_answers_open_none() -> None:
    """Whatever of the tags the aggregator sends on; and they begin no other session."""
    session = Session(checked())
    answers = [session.made(), session.made()]
    tags = session.tags([digest(answers[0])] * 2 + [digest(answers[1])])
    tries = [
        (0, answers[0], joined(tags)),
        (1, answers[0], joined([*tags[:2], tags[0]])),
        (2, answers[1], joined([tags[2]] * PARTIES)),
    ]
    for index, answer, sent in tries:
        with pytest.raises(HomomorphicError, match="not every party of the session was sent"):
            session.answer(index, session.opening(answer, sent))
        assert session.states[index].recall(NOTE) is None
        assert session.states[index].recall(RefusedAnswer.under(session.protocol).key)
    with pytest.raises(PublicRefusalError):
        Session(session.protocol, session.states)


def test_an_answer_other_than_the_confirmed_one_is_refused() -> None:
    session = Session(checked())
    confirmed = digest(session.made())
    tags = joined(session.tags([confirmed] * PARTIES))
    with pytest.raises(HomomorphicError, match="not every party of the session was sent"):
        session.answer(0, session.opening(session.made(), tags))


def test_a_party_confirms_one_answer_and_after_its_counts() -> None:
    session = Session(checked())
    query = session.confirmation(digest(b"one"))
    session.answer(0, query)
    for again in (query, session.confirmation(digest(b"other"))):
        with pytest.raises(HomomorphicError, match="confirmed already"):
            session.answer(0, again)
    with pytest.raises(HomomorphicError, match="a digest has 32 bytes, got 3"):
        session.answer(1, session.confirmation(b"abc"))
    with pytest.raises(HomomorphicError, match="a tag has 16 bytes, got 3"):
        joined([b"abc"])
    states = [ClientState() for _ in range(PARTIES)]
    conversation = session.protocol.conversation(PARTIES)
    first = next(conversation)
    first.step.answer(session.parts[0], first, NoNoise(), states[0])
    with pytest.raises(HomomorphicError, match="were not sent yet"):
        confirm_answer.answer(session.parts[0], query, NoNoise(), states[0])


@pytest.mark.parametrize("name", ["digest", "answer", "tags"])
def test_a_number_is_no_message(name: str) -> None:
    """``bytes(number)`` would be so many zeros, of as much memory as the aggregator likes."""
    session = Session(checked())
    answer = session.made()
    query = session.confirmation(digest(answer))
    if name != "digest":
        query = session.opening(answer, joined(session.tags([digest(answer)] * PARTIES)))
    asked = replace(query, broadcast={**query.broadcast, name: 32})
    with pytest.raises(HomomorphicError, match=f"the {name} must be bytes, got int"):
        session.answer(0, asked)


def test_tags_are_of_a_party_a_digest_and_a_session() -> None:
    """No two alike, so that none stands for another in the sum."""
    seen = {
        tag
        for secret in (bytes(16), bytes(15) + b"\1")
        for session in (bytes(16), bytes(15) + b"\1")
        for confirmed in (digest(b""), digest(b"1"))
        for tag in confirming.tags_of(secret, session, range(5), confirmed)
    }
    assert len(seen) == 2**3 * 5


def pooled(session: Session, scheme: MaskedScheme) -> Iterator[tuple[int, Products]]:
    """The shift of an answer and its opened numbers, for one answer after the other."""
    party = party_of(session.protocol, seat_of(session.states[0]))
    while True:
        answer = session.made()
        shift, *_ = scheme.field.from_bytes(answer[8:], scheme.answer_words)
        yield shift, party.opened(answer)


@pytest.mark.parametrize("adversary", ["semi-honest", "malicious"])
def test_two_answers_of_one_session_would_give_pooling_parties_the_totals(
    adversary: Literal["semi-honest", "malicious"],
) -> None:
    """``D - D' = c - c'``, and so ``(W - W') / (D - D')`` is the total but for perturbations.

    For this reason a semi-honest aggregator answers once, and a malicious one is made to.
    """
    protocol = EncryptedAUC(THRESHOLDS, adversary, most_records=RECORDS, scale="even")
    scheme = protocol.masked_scheme
    answers = pooled(Session(protocol), scheme)
    found = []
    for _ in range(20):
        (shift, one), (other_shift, other) = next(answers), next(answers)
        apart = (shift - other_shift) % scheme.field.prime
        if apart > scheme.field.prime // 2:
            apart, one, other = scheme.field.prime - apart, other, one
        if apart > 2**scheme.least_bits:
            found.append((one.denominator - other.denominator) / apart)
    pairs = true_numbers()[1] // 2
    assert max(abs(each / pairs - 1) for each in found) < 1e-4


def test_in_ciphertexts_all_open_one_answer_too() -> None:
    pytest.importorskip("tenseal")
    protocol = FheAUC(10, CHECKED, most_records=RECORDS, reveal="parties")
    data, state = federation(), ClientState()
    conversation = protocol.conversation(data.count)
    query: Any = next(conversation)
    while "tags" not in query.broadcast:
        query = conversation.send(query.step.answer(data, query, NoNoise(), state))
    changed = bytes([query.broadcast["tags"][0] ^ 1]) + query.broadcast["tags"][1:]
    broadcast = {**query.broadcast, "tags": changed}
    with pytest.raises(HomomorphicError, match="not every party of the session was sent"):
        query.step.answer(data, Query(query.step, protocol, broadcast=broadcast), NoNoise(), state)


def test_a_seat_without_a_confirmation_opens_nothing() -> None:
    session = Session(checked())
    with pytest.raises(HomomorphicError, match="not every party of the session was sent"):
        check_confirmed(seat_of(session.states[0]), b"", bytes(16))


def test_a_semi_honest_session_has_no_round_for_it() -> None:
    data: Clients = federation()
    assert data.count == PARTIES
    assert confirm_answer not in EncryptedAUC(10).steps
    assert confirm_answer in FheAUC(10, CHECKED).steps
    assert confirm_answer in checked().steps
