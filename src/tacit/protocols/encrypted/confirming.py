"""One answer for all parties, where the aggregator may be malicious.

Before a party opens an answer it says which one it will open, by a tag under the session's secret;
the tags of all parties, added up, come back with the answer. A party opens it where they are those
of its own answer. So all parties of a session open one answer, or none of them any.

Without it each party could be answered by another multiplier. Its refusal, which depends on the
totals, would be a bit of its own: of K parties K bits. And parties that compare what they opened
would know differences of multipliers, ``D - D' = c - c'``, and with them the totals.

A tag is BLAKE2b under a key that follows from the session's secret, which the aggregator has not:
without the tag of every party on one digest their sum modulo ``2^128`` is uniform for it (Katz and
Lindell 2008, who add tags modulo 2). It guesses it with probability ``2^-128``.

**Sessions side by side.** A refusal that depends on the totals comes after ``check_confirmed``.
Such refusals under the same settings are of one session at most, whatever runs at one time. Suppose
party q refused the answer of S, and q' that of S'. Every party confirmed both, by the tags. Take
any party that keeps its notes, and call S the session that it confirmed first. Before it confirmed
S' it had accepted the answer of S (``SessionNote``, on its disk before a tag leaves). But all
parties of S open the same bytes with the same secret, and what they do with them depends on nothing
else: q cannot have refused them, nor, the other way round, q' those of S'.

So in n sessions an aggregator learns which one was refused, if any: one of ``n + 1`` outcomes,
``log2(n + 1)`` bits, in addition to the figures that parties report to it. Without the rule each of
K parties would refuse another session's answer: K refusals, of K numbers that the aggregator
chooses.

It takes one party that keeps its notes, and the same settings: under others, to which a person at
each party agreed, there is another refusal. A party whose answer never comes goes on in the same
way as after a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b, sha256
from typing import Any, TypeVar

from tacit.crypto.homomorphic.engine import HomomorphicError
from tacit.crypto.secure_sum.masking import derive
from tacit.data.clients import Clients
from tacit.privacy.noise import NoiseSource
from tacit.protocol.declared import Revealed
from tacit.protocol.steps import ClientState, Query, Reply, Step, step
from tacit.protocols.encrypted import masked_scheme, sessions

Exchange = Generator[Query, Reply, Reply]
"""Queries and replies, and at the end what the parties say of the answer."""

Figures = TypeVar("Figures")

PURPOSE = b"tacit encrypted evaluation 1 one answer"
DIGEST_BYTES, TAG_BYTES = 32, 16
"""Bytes of an answer's digest, and of a tag."""
DIFFERENT = (
    "the answer is refused: not every party of the session was sent this one. The aggregator sent "
    "others another answer or another digest, or changed a party's tag"
)


def digest(answer: bytes) -> bytes:
    """What the parties compare of an answer."""
    return sha256(answer).digest()


@step(once=True)
def confirm_answer(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Say which answer this party will open, by a tag of its digest.

    It depends on no record, and costs nothing: the tag follows from the digest, which the
    aggregator sends, and the session's secret, and is uniform for who has not that. A party
    confirms one answer of a session, and no other session's before it has accepted it.

    Raises
    ------
    HomomorphicError : before the counts were sent, for a second answer of one session, and for
        bytes that are no digest.
    PublicRefusalError : where an answer under the same settings was refused before, or is confirmed
        and not accepted.
    """
    seat, confirmed = sessions.seat_of(state), sessions.bytes_of(query, "digest")
    if not seat.counted:
        raise HomomorphicError("the counts of this session were not sent yet")
    if seat.confirmed is not None:
        raise HomomorphicError("an answer of this session was confirmed already")
    if len(confirmed) != DIGEST_BYTES:
        raise HomomorphicError(f"a digest has {DIGEST_BYTES} bytes, got {len(confirmed)}")
    sessions.check_none_pending(query, state)
    seat = replace(seat, confirmed=confirmed)
    state.keep(sessions.NOTE, seat)
    sessions.SessionNote.of(sessions.CONFIRMED, query.protocol, seat).write(state)
    tags = tags_of(seat.known_secret, seat.known_meeting.session, seat.indices, confirmed)
    return {"tag": sessions.as_field(tags)}


def joined(tags: Iterable[bytes]) -> bytes:
    """The sum of all parties' tags.

    Raises
    ------
    HomomorphicError : for a tag of another number of bytes.

    Examples
    --------
    >>> joined([b"\\1" * 16, b"\\2" * 16]) == b"\\3" * 16
    True
    """
    total = 0
    for tag in tags:
        if len(tag) != TAG_BYTES:
            raise HomomorphicError(f"a tag has {TAG_BYTES} bytes, got {len(tag)}")
        total += int.from_bytes(tag, "little")
    return (total % 2 ** (8 * TAG_BYTES)).to_bytes(TAG_BYTES, "little")


def check_confirmed(seat: sessions.Seat, answer: bytes, tags: bytes) -> None:
    """Refuse an answer that not all parties of the session have confirmed.

    Parameters
    ----------
    seat : the session.
    answer : as it came.
    tags : the sum of all parties' tags, as the aggregator sends it.

    Raises
    ------
    HomomorphicError : where this party, or any other, has confirmed another one or none.
    """
    meeting, confirmed = seat.known_meeting, digest(answer)
    everybody = range(len(meeting.introductions))
    all_tags = tags_of(seat.known_secret, meeting.session, everybody, confirmed)
    if seat.confirmed != confirmed or tags != joined(all_tags):
        raise HomomorphicError(DIFFERENT)


def tags_of(secret: bytes, session: bytes, parties: Sequence[int], confirmed: bytes) -> list[bytes]:
    """The tag of each of these parties on a digest.

    Parameters
    ----------
    secret, session : the session's secret and name.
    parties : their indices.
    confirmed : the digest of the answer that they open.
    """
    key = derive(secret, session, PURPOSE)
    texts = [party.to_bytes(4, "little") + confirmed for party in parties]
    return [blake2b(text, digest_size=TAG_BYTES, key=key).digest() for text in texts]


def opened(step: Step, protocol: Any, answer: bytes) -> Exchange:
    """The answer, which parties open by this step; a malicious aggregator's once all confirm it.

    Raises
    ------
    HomomorphicError : for what is no tag.
    """
    if not protocol.checked:
        return (yield Query(step, protocol, broadcast={"answer": answer}))
    confirmed = yield Query(confirm_answer, protocol, broadcast={"digest": digest(answer)})
    tags = joined(sessions.as_parts(confirmed["tag"]))
    return (yield Query(step, protocol, broadcast={"answer": answer, "tags": tags}))


def opened_once(
    query: Query, state: ClientState, opened: Callable[[sessions.Seat, bytes], Figures]
) -> Figures:
    """Open the aggregator's answer.

    The session is deleted before the answer is read: there is one attempt. Where the aggregator may
    be malicious, an answer is opened that all parties have confirmed. Where it is accepted, the
    party may confirm another session's answer; a refused one is the last under these settings
    (``SessionNote``). Sessions may have begun before the refusal, at the same time: their answers
    are not opened, or each of them would be another attempt. What a party reads besides is a note
    of the error.

    Parameters
    ----------
    opened : the figures of an answer in this session; it raises for one that it refuses.

    Raises
    ------
    HomomorphicError : where this party is in no session, has sent no counts, or not all parties
        confirmed this answer.
    PublicRefusalError : where an answer under the same settings was refused before.
    """
    seat, protocol = sessions.seat_of(state), query.protocol
    state.take(sessions.NOTE)
    if not seat.counted:
        raise HomomorphicError("the counts of this session were not sent yet")
    if not protocol.checked:
        return opened(seat, sessions.bytes_of(query, "answer"))
    sessions.check_no_refusal(query, state)
    try:
        answer = sessions.bytes_of(query, "answer")
        check_confirmed(seat, answer, sessions.bytes_of(query, "tags"))
        figures = opened(seat, answer)
    except Exception as error:  # whatever stops it, the aggregator learns that it stopped
        sessions.SessionNote.of(sessions.REFUSED, protocol).write(state)
        error.add_note(sessions.AFTER_REFUSAL)
        raise
    sessions.SessionNote.of(sessions.ACCEPTED, protocol, seat).write(state)
    return figures


def tell_opened(
    clients: Clients,
    query: Query,
    state: ClientState,
    opened: Callable[[sessions.Seat, bytes], masked_scheme.Certain],
) -> Reply:
    """Open the aggregator's answer (``opened_once``), and tell whom the settings name."""
    estimate = sessions.released(opened_once(query, state, opened), query)
    figures = estimate.value, estimate.half_range
    return sessions.tell(Revealed(*figures), figures, clients, query, state)
