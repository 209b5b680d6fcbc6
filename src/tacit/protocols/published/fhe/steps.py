"""An evaluation in ciphertexts: the parties' steps, and the aggregator's side."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from tacit.crypto.homomorphic.engine import HomomorphicError
from tacit.crypto.homomorphic.keys import (
    EVERYBODY,
    FIRST,
    SECRET_BYTES,
    Introduction,
    Kind,
    Meeting,
    Member,
    read,
    write,
)
from tacit.data.clients import Clients
from tacit.privacy.cost import UNPROTECTED
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Query, Reply, step
from tacit.protocols.encrypted import sessions
from tacit.protocols.encrypted.confirming import Exchange, confirm_answer, opened, tell_opened
from tacit.protocols.encrypted.counts import Certain, cumulative_counts


@step(once=True)
def introduce(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send a fresh key agreement key, signed by the party's identity.

    It depends on no record. The aggregator learns the parties' public keys. A run has one session:
    another would decrypt another answer, and only the first one's debit says that all was released.
    """
    members = sessions.new_members(clients, query, state)
    state.keep(sessions.NOTE, sessions.Seat(members))
    return {
        "introduction": sessions.as_field([member.introduction.to_bytes() for member in members])
    }


@step(once=True)
def share_keys(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """The first party sends evaluation keys, and the session's secret encrypted for every other
    one.

    It depends on no record. The aggregator learns the evaluation keys, which decrypt nothing; only
    their receivers can decrypt the boxes. All other parties check the introductions and send
    nothing.

    Raises
    ------
    HomomorphicError : for a second meeting of one session: a key seals one message.
    """
    settings = query.protocol
    introductions = [Introduction.from_bytes(each) for each in query.broadcast["introductions"]]
    seat = sessions.met(introductions, query, state)
    meeting = seat.known_meeting
    keys, boxes = [b""] * clients.count, [b""] * clients.count
    if FIRST in seat.indices:
        index = seat.indices.index(FIRST)
        seat = replace(seat, secret=os.urandom(SECRET_BYTES))
        made = _party(settings, seat).evaluation_keys()
        keys[index] = write(Kind.KEYS, meeting.session, FIRST, made)
        encrypted = seat.members[index].boxes(meeting, seat.secret or b"")
        boxes[index] = write(Kind.BOX, meeting.session, EVERYBODY, encrypted)
    state.keep(sessions.NOTE, seat)
    return {"keys": sessions.as_field(keys), "boxes": sessions.as_field(boxes)}


@step(once=True)
def send_counts(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send the encrypted counts at every threshold and in every cell, and both classes' totals.

    It costs nothing: without the key, which the aggregator does not have, a ciphertext reveals its
    size only (RLWE, at 128 bits of security).

    Counts are sent once a session. Two uploads of one party have the same masks and differ in its
    perturbations alone: their difference, added to a total a thousand times, would move the AUC by
    a thousand perturbations, and pass every check.

    Raises
    ------
    DataError : for a score outside [0, 1], or a client with more records than were agreed.
    HomomorphicError : for a box that the first party did not encrypt for its receiver, or a second
        time in one session.
    """
    settings = query.protocol
    sessions.check_records(clients, settings.most_records)
    seat = sessions.with_secret(sessions.seat_of(state), query.per_client["box"], Member.decrypted)
    state.keep(sessions.NOTE, seat)
    counts = cumulative_counts(clients, settings.threshold_scores)
    uploads = _party(settings, seat).uploads(counts, seat.indices)
    session = seat.known_meeting.session
    messages = [
        write(Kind.COUNTS, session, index, ciphertexts)
        for index, ciphertexts in zip(seat.indices, uploads, strict=True)
    ]
    return {"counts": sessions.as_field(messages)}


@step(cost=lambda clients, query, state: UNPROTECTED, refuses_once=True)
def open_answer(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Decrypt the aggregator's answer, check it, divide, and tell whom the settings name.

    Both are released without noise: they have no differential privacy. The AUC is rounded to
    ``DIGITS`` decimals, and the half-range up, to three digits: the aggregator knows its multiplier
    and perturbations, and could compute the class totals from a quotient with all digits. Nothing
    else is sent. Where ``reveal`` is ``"parties"`` the party keeps both, and says that it has them.

    The client deletes the session before it reads the answer: there is one attempt. A run between
    real parties ends with the first refused answer, and does not give the reason
    (``Step.refuses_once``); where the aggregator may be malicious the party begins no other one
    under these settings (``RefusedAnswer``), and all open one answer (``confirming``). So a lying
    aggregator learns one bit of a session, the same of all parties in what depends on the totals,
    and of all sessions at most one is refused.

    Raises
    ------
    CheatingError : where a check shows that the aggregator did not compute as agreed.
    HomomorphicError : for bytes that are not an answer to this session, and where not all parties
        confirmed this one.
    DataError : where a class is absent.
    """
    return tell_opened(
        clients, query, state, lambda seat, answer: _decrypted(query.protocol, seat, answer)
    )


def _decrypted(settings: Any, seat: sessions.Seat, answer: bytes) -> Certain:
    answers = read(answer, Kind.ANSWER, seat.known_meeting.session, EVERYBODY)
    estimate: Certain = _party(settings, seat).decrypted(answers)
    return estimate


def _party(settings: Any, seat: sessions.Seat) -> Any:
    """The scheme with which the batch's parties compute."""
    meeting = seat.known_meeting
    return settings.scheme_party(seat.known_secret, meeting.session, len(meeting.introductions))


def on_ciphertexts(protocol: Any) -> Exchange:
    """Introductions, keys, encrypted counts, the answer; nothing is decrypted on this side.

    Raises
    ------
    HomomorphicError : for messages that are not those of this session.
    """
    introductions = sessions.as_parts((yield Query(introduce, protocol))["introduction"])
    parsed = [Introduction.from_bytes(each) for each in introductions]
    session = Meeting.of(parsed, protocol.terms).session
    sent = yield Query(share_keys, protocol, broadcast={"introductions": introductions})
    keys = read(sessions.as_parts(sent["keys"])[FIRST], Kind.KEYS, session, FIRST)
    boxes = read(sessions.as_parts(sent["boxes"])[FIRST], Kind.BOX, session, EVERYBODY)
    if len(boxes) != len(parsed):
        raise HomomorphicError(f"there are {len(parsed)} boxes, got {len(boxes)}")
    counted = yield Query(send_counts, protocol, per_client={"box": sessions.as_field(boxes)})
    uploads = [
        read(message, Kind.COUNTS, session, index)
        for index, message in enumerate(sessions.as_parts(counted["counts"]))
    ]
    answers = protocol.scheme_aggregator(keys).answers(uploads)
    answer = write(Kind.ANSWER, session, EVERYBODY, answers)
    return (yield from opened(open_answer, protocol, answer))


STEPS = (introduce, share_keys, send_counts, open_answer)
CHECKED_STEPS = (introduce, share_keys, send_counts, confirm_answer, open_answer)
"""Those where the aggregator may be malicious."""
