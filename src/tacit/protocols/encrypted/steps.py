"""An evaluation on masked values: the parties' steps, and the aggregator's side."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from tacit.crypto import masking
from tacit.crypto.homomorphic import engine, keys
from tacit.data.clients import Clients
from tacit.data.ragged import Ragged
from tacit.privacy.cost import UNPROTECTED
from tacit.privacy.noise import NoiseSource
from tacit.protocol import fields
from tacit.protocol.steps import ClientState, Query, Reply, Step, step
from tacit.protocols.encrypted import confirming, masked_scheme, sessions
from tacit.protocols.encrypted.masked_sides import MaskedAggregator, MaskedParty

SECRET_BYTES = 16
"""The session's secret, of 128 bits."""
TAG_BYTES = 16
"""By how much a secret that is encrypted for a party is longer."""


@step(once=True)
def meet(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send a fresh key agreement key and a nonce, signed by the party's identity.

    It depends on no record, and costs nothing. The aggregator learns the parties' public keys.
    The session is a hash of the terms and of what all parties send here: where one party of it is
    honest, it is a new one, and so are all keys, also after an older state was restored.
    """
    members = sessions.new_members(clients, query, state)
    state.keep(sessions.NOTE, sessions.Seat(members))
    return {"introduction": sessions.as_field([member.introduction.packed for member in members])}


@step()
def seal_secret(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """The first party sends a secret encrypted for every other one; all check who takes part.

    It depends on no record, and costs nothing: only their receivers can decrypt the boxes
    (ChaCha20-Poly1305 under a key of X25519).

    Raises
    ------
    HomomorphicError : for introductions that are not signed by the parties agreed on, and for a
        second meeting of one session.
    """
    boxes, _ = shared_secret(clients, query, state, SECRET_BYTES)
    return {"boxes": sessions.as_field(boxes)}


@step(once=True)
def send_masked(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send the counts of both classes in every cell, masked, and products with others' masks.

    It costs nothing as long as the aggregator has none of the session's keys: all its words are
    uniform, and independent but for their sums, which are uniform too (``masked_scheme``; the
    pseudorandomness of ChaCha20 and HKDF, and X25519). Nothing follows for any records from them
    alone; what the answer releases costs in ``open_masked``. An aggregator with some of the parties
    learns the sums of the others' counts in every cell, over each part of them that shares masks:
    over all of them up to 99 colluding parties.

    A party sends masked values once a session, and keeps the names of sessions in which it did.

    Raises
    ------
    DataError : for a score outside the range of its unit, or a client with more records than were
        agreed.
    HomomorphicError : for a box that the first party did not encrypt for its receiver, or a second
        time in one session.
    """
    seat = counting_seat(clients, query, state)
    cells = masked_scheme.class_cells(clients, query.protocol.threshold_scores)
    uploads = party_of(query.protocol, seat).uploads(*cells, seat.indices)
    return {"counts": sessions.as_field(uploads)}


@step(cost=lambda clients, query, state: UNPROTECTED, refuses_once=True)
def open_masked(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Open the aggregator's answer, divide, and send the result if the settings say so.

    The AUC and its half-range are released without noise: they have no differential privacy. The
    party learns them, and the product of the class totals within k octaves (``MaskedScheme``). It
    sends both, rounded, or nothing but that it has them, where ``reveal`` is ``"parties"``.

    The session is deleted before the answer is read: there is one attempt. Where the aggregator may
    be malicious, an answer is opened that all parties have confirmed (``confirming``), and a
    refused one is the last under these settings (``sessions.SessionNote``).

    Raises
    ------
    MaskedValueError : for bytes or numbers that no honest aggregator answers.
    HomomorphicError : where this party is in no session, or not all parties confirmed this answer.
    DataError : where a class is absent, or there are too few records for the agreed bound.
    """
    return confirming.tell_opened(
        clients, query, state, lambda seat, answer: party_of(query.protocol, seat).decrypted(answer)
    )


def shared_secret(
    clients: Clients, query: Query, state: ClientState, size: int
) -> tuple[list[bytes], sessions.Seat]:
    """The boxes of the first party with a secret of so many bytes, of others none; and the seat.

    Raises
    ------
    HomomorphicError : for introductions that are not signed by the parties agreed on, and for a
        second meeting of one session.
    """
    introductions = [keys.Introduction.unpacked(each) for each in query.broadcast["introductions"]]
    seat = sessions.met(introductions, query, state)
    boxes = [b""] * clients.count
    if keys.FIRST in seat.indices:
        index = seat.indices.index(keys.FIRST)
        first, meeting = seat.members[index], seat.known_meeting
        secret = first.party_key(meeting, b"secret")[:size]
        seat = replace(seat, secret=secret)
        boxes[index] = b"".join(first.boxes(meeting, secret))
    state.keep(sessions.NOTE, seat)
    return boxes, seat


def counting_seat(clients: Clients, query: Query, state: ClientState) -> sessions.Seat:
    """The seat of a batch that is about to send masked values, with the session's secret.

    It is noted before anything is sent, and so is the session's name.

    Raises
    ------
    DataError : for a client with more records than were agreed.
    HomomorphicError : for a box that the first party did not encrypt for its receiver, or a second
        time in one session.
    """
    sessions.check_records(clients, query.protocol.most_records)
    seat = sessions.seat_of(state)
    sent = sessions.SessionNote.of(sessions.SENT, query.protocol, seat)
    if state.recall(sent.key) is not None:
        raise engine.HomomorphicError("the counts of this session were sent already")
    seat = sessions.with_secret(seat, query.per_client["box"])
    state.keep(sessions.NOTE, seat)
    sent.write(state)
    return seat


def party_of(settings: Any, seat: sessions.Seat) -> MaskedParty:
    """The scheme with which the batch's parties compute.

    Raises
    ------
    HomomorphicError : before they have the session's secret.
    """
    secret, meeting = seat.known_secret, seat.known_meeting
    parties, pairing = len(meeting.introductions), pairing_of(seat, meeting)
    return MaskedParty(settings.masked_scheme, secret, meeting.session, parties, pairing)


def pairing_of(seat: sessions.Seat, meeting: keys.Meeting) -> Any:
    """The keys that the batch's parties share with others, and each one's own, derived once."""
    members = dict(zip(seat.indices, seat.members, strict=True))

    @cache
    def shared(low: int, high: int) -> bytes:
        if low == high:
            return members[low].party_key(meeting, b"blinding")
        first, second = (low, high) if low in members else (high, low)
        return members[first].pair_key(meeting, second)

    return lambda party, other: shared(*sorted((party, other)))


def boxes_of(message: bytes, parties: int, secret_bytes: int) -> list[bytes]:
    """Every party's box, by index, of the first party's message; the first has none.

    Raises
    ------
    MaskedValueError : for another number of bytes.
    """
    size = secret_bytes + TAG_BYTES
    if len(message) != size * (parties - 1):
        raise masking.MaskedValueError(
            f"{parties - 1} boxes have {size * (parties - 1)} bytes, got {len(message)}"
        )
    return [b"", *(message[start : start + size] for start in range(0, len(message), size))]


def met_parties(
    protocol: Any, introduce: Step, share: Step, secret_bytes: int
) -> Generator[Query, Reply, tuple[bytes, Ragged[np.uint8], Reply]]:
    """Introductions and a secret; the session, every party's box, and all that parties sent.

    Raises
    ------
    HomomorphicError : for introductions that are not signed.
    """
    introductions = sessions.as_parts((yield Query(introduce, protocol))["introduction"])
    known = [keys.Introduction.unpacked(each) for each in introductions]
    session = keys.Meeting.of(known, protocol.terms).session
    sent = yield Query(share, protocol, broadcast={"introductions": introductions})
    boxes = boxes_of(sessions.as_parts(sent["boxes"])[keys.FIRST], len(known), secret_bytes)
    return session, sessions.as_field(boxes), sent


def masked_uploads(
    protocol: Any, send: Step
) -> Generator[Query, Reply, tuple[list[bytes], MaskedAggregator]]:
    """Introductions, a secret, and what parties send masked by this step; the session's aggregator.

    Raises
    ------
    HomomorphicError : for introductions that are not signed.
    """
    session, boxes, _ = yield from met_parties(protocol, meet, seal_secret, SECRET_BYTES)
    counted = yield Query(send, protocol, per_client={"box": boxes})
    return sessions.as_parts(counted["counts"]), MaskedAggregator(protocol.masked_scheme, session)


def session_bytes(clients: int, upload_bytes: int) -> float:
    """The mean bytes that a client sends up to its masked values, these ones included."""
    # the first party's boxes for all others
    boxes = (SECRET_BYTES + TAG_BYTES) * (clients - 1) / clients
    parts = {"introduction": keys.PACKED_BYTES, "boxes": boxes, "counts": upload_bytes}
    return sum(fields.message_size(**{name: size}) for name, size in parts.items())


STEPS = (meet, seal_secret, send_masked, open_masked)
CHECKED_STEPS = (meet, seal_secret, send_masked, confirming.confirm_answer, open_masked)
"""Those where the aggregator may be malicious."""
