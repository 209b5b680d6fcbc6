"""All parties of a session open one answer: an aggregator that sends two is refused by all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import pytest

from tacit.crypto.homomorphic.engine import HomomorphicError
from tacit.protocol.steps import ClientState, PublicRefusalError, Query
from tacit.protocols.encrypted import confirming, masked_scheme, steps
from tacit.protocols.encrypted.confirming import confirm_answer, digest, joined
from tacit.protocols.encrypted.masked_sides import MaskedAggregator
from tacit.protocols.encrypted.protocol import EncryptedAUC
from tacit.protocols.encrypted.sessions import NOTE, REFUSED, SessionNote, as_parts, seat_of
from tacit.protocols.published.fhe.protocol import FheAUC, open_answer
from tests.protocols.encrypted.forging import RECORDS, THRESHOLDS, federation, true_numbers
from tests.protocols.encrypted.variants import CHECKED, Parties

PARTIES = 3
DIFFERENT = "not every party of the session was sent"


class Session(Parties):
    """Parties up to the sending of counts, and an aggregator that may do anything."""

    def __init__(
        self,
        states: Sequence[ClientState] | None = None,
        adversary: Literal["semi-honest", "malicious"] = "malicious",
    ) -> None:
        protocol = EncryptedAUC(
            THRESHOLDS, adversary, most_records=RECORDS, scale="even", reveal="parties"
        )
        super().__init__(protocol, federation(), states)
        self.until(steps.send_masked)
        self.uploads = as_parts(self.replies()["counts"])
        self.session = seat_of(self.states[0]).known_meeting.session

    def made(self) -> bytes:
        """An answer as agreed; each call draws another multiplier."""
        return MaskedAggregator(self.protocol.masked_scheme, self.session).answer(self.uploads)

    def tags(self, digests: list[bytes]) -> list[bytes]:
        """What each party confirms, sent these."""
        return [self.confirmed(index, each) for index, each in enumerate(digests)]

    def confirmed(self, index: int, asked: Any) -> bytes:
        query = Query(confirm_answer, self.protocol, broadcast={"digest": asked})
        return as_parts(self.answer(index, query)["tag"])[0]

    def opened(self, index: int, answer: Any, tags: Any) -> list[str]:
        sent = {"answer": answer, "tags": tags}
        return list(self.answer(index, Query(steps.open_masked, self.protocol, broadcast=sent)))


def test_parties_that_were_sent_different_answers_open_none() -> None:
    """Whatever of the tags the aggregator sends on; and they begin no other session."""
    session = Session()
    answers = [session.made(), session.made()]
    tags = session.tags([digest(answers[0])] * 2 + [digest(answers[1])])
    tries = [
        (0, answers[0], joined(tags)),
        (1, answers[0], joined([*tags[:2], tags[0]])),
        (2, answers[1], joined([tags[2]] * PARTIES)),
    ]
    for index, answer, sent in tries:
        with pytest.raises(HomomorphicError, match=DIFFERENT):
            session.opened(index, answer, sent)
        assert session.states[index].recall(NOTE) is None
        assert session.states[index].recall(SessionNote.of(REFUSED, session.protocol).key)
    with pytest.raises(PublicRefusalError):
        Session(session.states)


def test_an_answer_that_is_not_the_confirmed_one_is_refused() -> None:
    """Another one, or one that this party did not confirm."""
    session, others = Session(), Session()
    tags = joined(session.tags([digest(session.made())] * PARTIES))
    answer = others.made()
    for each in (session, others):
        with pytest.raises(HomomorphicError, match=DIFFERENT):
            each.opened(0, answer, tags)


def test_a_party_confirms_one_answer_and_after_its_counts() -> None:
    session = Session()
    session.confirmed(0, digest(b"one"))
    for again in (b"one", b"other"):
        with pytest.raises(HomomorphicError, match="confirmed already"):
            session.confirmed(0, digest(again))
    with pytest.raises(HomomorphicError, match="a digest has 32 bytes, got 3"):
        session.confirmed(1, b"abc")
    with pytest.raises(HomomorphicError, match="a tag has 16 bytes, got 3"):
        joined([b"abc"])
    early = Parties(session.protocol, federation())
    early.answer(0)
    query = Query(confirm_answer, early.protocol, broadcast={"digest": digest(b"one")})
    with pytest.raises(HomomorphicError, match="were not sent yet"):
        early.answer(0, query)


def test_a_number_is_no_message() -> None:
    """``bytes(number)`` would be so many zeros, of as much memory as the aggregator likes."""
    with pytest.raises(HomomorphicError, match="the digest must be bytes, got int"):
        Session().confirmed(0, 32)
    for name in ("answer", "tags"):
        session = Session()
        answer = session.made()
        sent = {"answer": answer, "tags": joined(session.tags([digest(answer)] * PARTIES))}
        with pytest.raises(HomomorphicError, match=f"the {name} must be bytes, got int"):
            session.opened(0, **{**sent, name: 32})


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


def pooled(session: Session) -> Iterator[tuple[int, masked_scheme.Products]]:
    """The shift of an answer and its opened numbers, for one answer after the other."""
    party = steps.party_of(session.protocol, seat_of(session.states[0]))
    while True:
        answer = session.made()
        shift, *_ = party.scheme.field.from_bytes(answer[8:], party.scheme.answer_words)
        yield shift, party.opened(answer)


@pytest.mark.parametrize("adversary", ["semi-honest", "malicious"])
def test_two_answers_of_one_session_would_give_pooling_parties_the_totals(
    adversary: Literal["semi-honest", "malicious"],
) -> None:
    """``D - D' = c - c'``, and so ``(W - W') / (D - D')`` is the total but for perturbations.

    For this reason a semi-honest aggregator answers once, and a malicious one is made to.
    """
    session = Session(adversary=adversary)
    scheme, answers, found = session.protocol.masked_scheme, pooled(session), []
    for _ in range(20):
        (shift, one), (other_shift, other) = next(answers), next(answers)
        apart = (shift - other_shift) % scheme.field.prime
        if apart > scheme.field.prime // 2:
            apart, one, other = scheme.field.prime - apart, other, one
        if apart > 2**scheme.least_bits:
            found.append((one.denominator - other.denominator) / apart)
    pairs = true_numbers().denominator
    assert max(abs(each / pairs - 1) for each in found) < 1e-4


def test_in_ciphertexts_all_open_one_answer_too() -> None:
    pytest.importorskip("tenseal")
    protocol = FheAUC(10, CHECKED, most_records=RECORDS, reveal="parties")
    parties = Parties(protocol, federation())
    sent = dict(parties.until(open_answer).broadcast)
    sent["tags"] = bytes([sent["tags"][0] ^ 1]) + sent["tags"][1:]
    with pytest.raises(HomomorphicError, match=DIFFERENT):
        parties.answer(0, Query(open_answer, protocol, broadcast=sent))
    assert confirm_answer in protocol.steps
    assert confirm_answer not in EncryptedAUC(10).steps
