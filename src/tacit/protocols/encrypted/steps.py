"""The parties' steps of an encrypted evaluation, and what a batch of them remembers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.crypto.homomorphic.engine import HomomorphicError
from tacit.crypto.homomorphic.keys import (
    FIRST,
    SECRET_BYTES,
    Introduction,
    Meeting,
    Member,
)
from tacit.crypto.homomorphic.messages import EVERYBODY, Kind, read, write
from tacit.crypto.identities import Identity, Roster
from tacit.data.clients import Clients, Ragged
from tacit.data.errors import DataError
from tacit.privacy.cost import UNPROTECTED
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Field, Query, Reply, step
from tacit.protocols.encrypted.packing import Certain, cumulative_counts

DIGITS = 7
"""Number of decimals of a released AUC."""
RANGE_DIGITS = 3
"""Number of significant digits of a released half-range."""
NOTE = ("encrypted-auc", "session")
PINNED = ("encrypted-auc", "pinned")


@dataclass(frozen=True, eq=False)
class Seat:
    """The state of a batch of parties in one session.

    Parameters
    ----------
    members : the batch's parties, each with its own keys.
    meeting : all parties, once they have introduced themselves.
    secret : the session's secret, once it is known.
    counted : whether the counts were sent.
    """

    members: tuple[Member, ...]
    meeting: Meeting | None = None
    secret: bytes | None = None
    counted: bool = False

    @property
    def known_meeting(self) -> Meeting:
        """All parties.

        Raises
        ------
        HomomorphicError : before they have introduced themselves.
        """
        if self.meeting is None:
            raise HomomorphicError("the parties have not introduced themselves yet")
        return self.meeting

    @property
    def indices(self) -> list[int]:
        """The indices of the batch's parties among all parties."""
        return [self.known_meeting.index_of(member) for member in self.members]


def pin(state: ClientState, identities: Sequence[Identity], roster: Roster) -> None:
    """Store the identities of a batch's clients, and those that they accept as parties.

    Without this call, clients make new identities, and accept those that the aggregator relays.

    Parameters
    ----------
    state : the batch's client state.
    identities : one for each client of the batch.
    roster : the public identities of all parties in order, agreed beforehand.
    """
    state.keep(PINNED, (tuple(identities), roster))


@step(once=True)
def introduce(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send a fresh key agreement key, signed by the party's identity.

    It depends on no record. The aggregator learns the parties' public keys. A run has one session:
    another would decrypt another answer, and only the first one's debit says that all was released.
    """
    pinned = state.recall(PINNED)
    identities = [None] * clients.count if pinned is None else pinned[0]
    if len(identities) != clients.count:
        raise HomomorphicError(
            f"{len(identities)} identities are pinned for {clients.count} clients"
        )
    members = tuple(Member.new(query.protocol.terms, identity) for identity in identities)
    state.keep(NOTE, Seat(members))
    return {"introduction": as_field([member.introduction.to_bytes() for member in members])}


@step()
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
    seat, settings = _seat(state), query.protocol
    if seat.meeting is not None:
        raise HomomorphicError("the parties have met already, and a key seals one message")
    pinned = state.recall(PINNED)
    introductions = [Introduction.from_bytes(each) for each in query.broadcast["introductions"]]
    meeting = Meeting.of(introductions, settings.terms, None if pinned is None else pinned[1])
    seat = replace(seat, meeting=meeting)
    keys, boxes = [b""] * clients.count, [b""] * clients.count
    if FIRST in seat.indices:
        index = seat.indices.index(FIRST)
        seat = replace(seat, secret=os.urandom(SECRET_BYTES))
        made = _party(settings, seat).evaluation_keys()
        keys[index] = write(Kind.KEYS, meeting.session, FIRST, made)
        encrypted = seat.members[index].boxes(meeting, seat.secret or b"")
        boxes[index] = write(Kind.BOX, meeting.session, EVERYBODY, encrypted)
    state.keep(NOTE, seat)
    return {"keys": as_field(keys), "boxes": as_field(boxes)}


@step()
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
    largest = int(clients.sizes.max())
    if largest > settings.most_records:
        raise DataError(
            f"most_records is {settings.most_records} for all parties together, and one of them "
            f"has {largest}"
        )
    seat = _seat(state)
    if seat.counted:
        raise HomomorphicError("the counts of this session were sent already")
    seat = replace(_with_secret(seat, as_parts(query.per_client["box"])), counted=True)
    state.keep(NOTE, seat)
    counts = cumulative_counts(clients, settings.threshold_scores)
    uploads = _party(settings, seat).uploads(counts, seat.indices)
    session = seat.known_meeting.session
    messages = [
        write(Kind.COUNTS, session, index, ciphertexts)
        for index, ciphertexts in zip(seat.indices, uploads, strict=True)
    ]
    return {"counts": as_field(messages)}


@step(cost=lambda clients, query, state: UNPROTECTED, refuses_once=True)
def open_answer(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Decrypt the aggregator's answer, check it, divide, and send the AUC with its half-range.

    Both are released without noise: they have no differential privacy. The AUC is rounded to
    ``DIGITS`` decimals, and the half-range up, to three digits: the aggregator knows its multiplier
    and perturbations, and could compute the class totals from a quotient with all digits. Nothing
    else is sent.

    The client deletes the session before it reads the answer: there is one attempt. A run between
    real parties ends with the first refused answer, and does not give the reason
    (``Step.refuses_once``). So a lying aggregator learns at most one bit of each party.

    Raises
    ------
    CheatingError : where a check shows that the aggregator did not compute as agreed.
    HomomorphicError : for bytes that are not an answer to this session.
    DataError : where a class is absent.
    """
    seat = _seat(state)
    state.take(NOTE)
    session = seat.known_meeting.session
    answers = read(query.broadcast["answer"], Kind.ANSWER, session, EVERYBODY)
    estimate: Certain = _party(query.protocol, seat).decrypted(answers)
    if query.protocol.perturbed:
        estimate = estimate.rounded(DIGITS, RANGE_DIGITS)
    return {
        "auc": np.full(clients.count, estimate.value),
        "half_range": np.full(clients.count, estimate.half_range),
    }


def as_field(messages: Sequence[bytes]) -> Ragged[np.uint8]:
    """A field of a reply, with one message for each client."""
    sizes = [len(message) for message in messages]
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return Ragged(np.frombuffer(b"".join(messages), dtype=np.uint8), offsets)


def as_parts(value: Field) -> list[bytes]:
    """The message of every client.

    Raises
    ------
    HomomorphicError : for a field that holds no bytes.
    """
    if not isinstance(value, Ragged) or value.values.dtype != np.uint8 or value.values.ndim != 1:
        raise HomomorphicError("messages travel as bytes")
    return [value.part(index, index + 1).values.tobytes() for index in range(value.clients)]


def _seat(state: ClientState) -> Seat:
    seat = state.recall(NOTE)
    if not isinstance(seat, Seat):
        raise HomomorphicError("this party is in no session")
    return seat


def _with_secret(seat: Seat, boxes: Sequence[bytes]) -> Seat:
    """Every party decrypts its box; the first has the secret already."""
    meeting = seat.known_meeting
    secrets = {
        member.decrypted(meeting, box)
        for member, box, index in zip(seat.members, boxes, seat.indices, strict=True)
        if index != FIRST
    }
    secrets |= set() if seat.secret is None else {seat.secret}
    if len(secrets) != 1:
        raise HomomorphicError("the boxes of this batch's parties hold different secrets")
    return replace(seat, secret=secrets.pop())


def _party(settings: Any, seat: Seat) -> Any:
    """The scheme with which the batch's parties compute."""
    if seat.secret is None:
        raise HomomorphicError("this party does not have the session's secret")
    meeting = seat.known_meeting
    return settings.scheme_party(seat.secret, meeting.session, len(meeting.introductions))
