"""What a batch of parties remembers of a session, who may be in it, and what parties learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import numpy as np

import tacit.protocol as tp
from tacit.crypto.homomorphic import keys
from tacit.crypto.homomorphic.engine import HomomorphicError
from tacit.crypto.identities import Identity, Roster
from tacit.protocol.declared import REVEALED, Revealed
from tacit.protocol.steps import PublicRefusalError
from tacit.protocols.encrypted.masked_scheme import Certain

DIGITS = 7
"""Number of decimals of a released AUC."""
RANGE_DIGITS = 3
"""Number of significant digits of a released half-range."""
RELEASED_FIELDS = ("auc", "half_range")
PARTIES, AGGREGATOR = "parties", "aggregator"
"""Who learns the AUC: the parties alone, or the aggregator as well."""
NOTE = ("encrypted-auc", "session")
PINNED = ("encrypted-auc", "pinned")
REFUSED_BEFORE = (
    "it refused an answer under these settings, and another refusal would tell the aggregator "
    "more: before another session agree on other settings, such as most_records"
)
"""The reason that others read: it follows from a refusal that they know of."""
NOT_OPENED = (
    "it confirmed an answer under these settings that it has not opened: either let that session's "
    "answer come, or agree on other settings, such as most_records"
)
"""The reason that others read: it follows from a confirmation that they know of."""
AFTER_REFUSAL = (
    "this party opens no other answer under these settings, since each refusal tells an aggregator "
    "that may lie one bit. Once the cause is known, go on with a plan that has another "
    "most_records, one more is enough, to which all parties agree again"
)
"""What the party itself reads after its first refusal."""


@dataclass(frozen=True, eq=False)
class Seat:
    """The state of a batch of parties in one session.

    Parameters
    ----------
    members : the batch's parties, each with its own keys.
    meeting : all parties, once they have introduced themselves.
    secret : the session's secret, once it is known.
    counted : whether the counts were sent.
    confirmed : the digest of the answer that the parties will open, where all must open one
        (``confirming``).
    """

    members: tuple[keys.Member, ...]
    meeting: keys.Meeting | None = None
    secret: bytes | None = field(default=None, repr=False)
    counted: bool = False
    confirmed: bytes | None = None

    @property
    def known_meeting(self) -> keys.Meeting:
        """All parties.

        Raises
        ------
        HomomorphicError : before they have introduced themselves.
        """
        if self.meeting is None:
            raise HomomorphicError("the parties have not introduced themselves yet")
        return self.meeting

    @property
    def known_secret(self) -> bytes:
        """The session's secret.

        Raises
        ------
        HomomorphicError : before this party has it.
        """
        if self.secret is None:
            raise HomomorphicError("this party does not have the session's secret")
        return self.secret

    @property
    def indices(self) -> list[int]:
        """The indices of the batch's parties among all parties."""
        return [self.known_meeting.index_of(member) for member in self.members]


SENT, CONFIRMED, ACCEPTED, REFUSED = "sent", "confirmed", "accepted", "refused"
"""What a party notes of sessions: that it sent masked values, confirmed an answer, accepted or
refused it."""


@dataclass(frozen=True)
class SessionNote(tp.Lasting):
    """A note of a session that outlives it: a party never does the same twice.

    A party sends masked values once a session. Until it accepts an answer that it confirmed, it
    confirms no other under the same settings. After a checked answer that it refused it begins no
    other session under them: a refusal is a bit that a lying aggregator chooses, for example
    whether the product of the class totals is above a number; begun again and again, some twenty
    runs would give the whole product.

    Each has a key of its own, so that of runs at the same time none overwrites another's. A note
    that was changed or deleted could come back from the state of another run, which has the party's
    notes as they were when it was stored.

    Parameters
    ----------
    kind : ``SENT``, ``CONFIRMED``, ``ACCEPTED`` or ``REFUSED``.
    terms : SHA-256 of the settings.
    session : the session's name; empty for a refusal, which is of all sessions.
    """

    kind: str
    terms: bytes
    session: bytes = b""

    @classmethod
    def of(cls, kind: str, settings: Any, seat: Seat | None = None) -> SessionNote:
        """A note of a session, or of all, under these settings."""
        session = b"" if seat is None else seat.known_meeting.session
        return cls(kind, sha256(settings.terms).digest(), session)

    @property
    def key(self) -> tuple[str, str, bytes, bytes]:
        """Where the note is."""
        return ("encrypted-auc", self.kind, self.terms, self.session)

    def write(self, state: tp.ClientState) -> None:
        """Keep the note."""
        state.keep(self.key, self)


STATE_TYPES = (Seat, keys.Member, keys.Meeting, keys.Introduction, SessionNote)
"""What parties of every session note."""


def check_no_refusal(query: tp.Query, state: tp.ClientState) -> None:
    """Refuse to go on under settings under which an answer was refused.

    Raises
    ------
    PublicRefusalError : with what the parties can do.
    """
    if state.recall(SessionNote.of(REFUSED, query.protocol).key) is not None:
        raise PublicRefusalError(REFUSED_BEFORE)


def check_none_pending(query: tp.Query, state: tp.ClientState) -> None:
    """Refuse to begin or to confirm while a confirmed answer under the settings is not accepted.

    Raises
    ------
    PublicRefusalError : with what the parties can do; also where one was refused.
    """
    check_no_refusal(query, state)
    kept = [note for note in state.notes.values() if isinstance(note, SessionNote)]
    confirmed = [note for note in kept if note.kind == CONFIRMED]
    under_these = SessionNote.of(CONFIRMED, query.protocol).terms
    open_still = [note for note in confirmed if replace(note, kind=ACCEPTED) not in kept]
    if any(note.terms == under_these for note in open_still):
        raise PublicRefusalError(NOT_OPENED)


def pin(
    state: tp.ClientState, identities: Sequence[Identity], roster: Roster, least: int | None = None
) -> None:
    """Store the identities of a batch's clients, and those that they accept as parties.

    Without this call, clients make new identities, and accept those that the aggregator relays.

    Parameters
    ----------
    state : the batch's client state.
    identities : one for each client of the batch.
    roster : the public identities of all parties in order, agreed beforehand.
    least : how many of them a session has at least; None needs all.
    """
    state.keep(PINNED, (tuple(identities), roster, least))


def new_members(
    clients: tp.Clients, query: tp.Query, state: tp.ClientState
) -> tuple[keys.Member, ...]:
    """Fresh keys of every client of a batch, under its pinned identity where there is one.

    Raises
    ------
    HomomorphicError : for another number of identities than clients.
    PublicRefusalError : where an answer under the same settings was refused before, or is confirmed
        and not accepted.
    """
    check_none_pending(query, state)
    pinned = state.recall(PINNED)
    identities = [None] * clients.count if pinned is None else pinned[0]
    if len(identities) != clients.count:
        raise HomomorphicError(
            f"{len(identities)} identities are pinned for {clients.count} clients"
        )
    return tuple(keys.Member.new(query.protocol.terms, identity) for identity in identities)


def met(introductions: Sequence[keys.Introduction], query: tp.Query, state: tp.ClientState) -> Seat:
    """The batch's seat among the parties that were introduced.

    Raises
    ------
    HomomorphicError : for introductions that do not fit, and for a second meeting of one session:
        a key seals one message.
    """
    seat = seat_of(state)
    if seat.meeting is not None:
        raise HomomorphicError("the parties have met already, and a key seals one message")
    _, *agreed = state.recall(PINNED) or (None,)
    return replace(seat, meeting=keys.Meeting.of(introductions, query.protocol.terms, *agreed))


def with_secret(seat: Seat, boxes: tp.Field) -> Seat:
    """The seat of a batch that is about to send counts: every party has the session's secret.

    Parameters
    ----------
    seat : the session.
    boxes : one for each party; the first has the secret already.

    Raises
    ------
    HomomorphicError : for a box that the first party did not encrypt for its receiver, or a second
        time in one session.
    """
    if seat.counted:
        raise HomomorphicError("the counts of this session were sent already")
    secrets = {
        member.decrypted(seat.known_meeting, box)
        for member, box, index in zip(seat.members, as_parts(boxes), seat.indices, strict=True)
        if index != keys.FIRST
    }
    secrets |= set() if seat.secret is None else {seat.secret}
    if len(secrets) != 1:
        raise HomomorphicError("the boxes of this batch's parties hold different secrets")
    return replace(seat, secret=secrets.pop(), counted=True)


def check_records(clients: tp.Clients, most_records: int) -> None:
    """Refuse a client with more records than were agreed for all.

    Raises
    ------
    DataError : naming both numbers.
    """
    largest = int(clients.sizes.max())
    if largest > most_records:
        raise tp.DataError(
            f"most_records is {most_records} for all parties together, and one of them "
            f"has {largest}"
        )


def released(estimate: Certain, query: tp.Query) -> Certain:
    """The figures as a party keeps or sends them: rounded, where answers are perturbed."""
    return estimate.rounded(DIGITS, RANGE_DIGITS) if query.protocol.perturbed else estimate


def tell(
    revealed: Revealed,
    figures: Sequence[Any],
    clients: tp.Clients,
    query: tp.Query,
    state: tp.ClientState,
) -> tp.Reply:
    """Keep the figures for the party, or send them, as the settings say.

    Parameters
    ----------
    revealed : what the party keeps.
    figures : what it sends: AUC and half-range, shape (...) each.
    """
    if query.protocol.reveal == PARTIES:
        state.keep(REVEALED, revealed)
        return {"opened": np.ones(clients.count, dtype=np.int8)}
    return {
        name: np.repeat(np.asarray(figure)[..., np.newaxis], clients.count, axis=-1)
        for name, figure in zip(RELEASED_FIELDS, figures, strict=True)
    }


def as_field(messages: Sequence[bytes]) -> tp.Ragged[np.uint8]:
    """A field of a reply, with one message for each client."""
    sizes = [len(message) for message in messages]
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return tp.Ragged(np.frombuffer(b"".join(messages), dtype=np.uint8), offsets)


def as_parts(value: tp.Field) -> list[bytes]:
    """The message of every client.

    Raises
    ------
    HomomorphicError : for a field that holds no bytes.
    """
    if not isinstance(value, tp.Ragged) or value.values.dtype != np.uint8 or value.values.ndim != 1:
        raise HomomorphicError("messages travel as bytes")
    return [value.part(index, index + 1).values.tobytes() for index in range(value.clients)]


def bytes_of(query: tp.Query, name: str) -> bytes:
    """A value that all parties are sent, which must be bytes: ``bytes(number)`` would make zeros.

    Raises
    ------
    HomomorphicError : for any other value.
    """
    value = query.broadcast[name]
    if not isinstance(value, bytes):
        raise HomomorphicError(f"the {name} must be bytes, got {type(value).__name__}")
    return value


def seat_of(state: tp.ClientState) -> Seat:
    """The session in which a batch is.

    Raises
    ------
    HomomorphicError : where it is in none.
    """
    seat = state.recall(NOTE)
    if not isinstance(seat, Seat):
        raise HomomorphicError("this party is in no session")
    return seat
