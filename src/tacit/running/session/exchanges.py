"""The coordinator's side of one query: who answered, and what the server may see of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.crypto.identities import RefusedError, TooFewError
from tacit.crypto.secure_sum.server import SumServer
from tacit.crypto.secure_sum.terms import SumRestart
from tacit.data.ragged import Ragged
from tacit.protocol import fields
from tacit.protocol.steps import Query, Reply, View, stack
from tacit.protocol.values import encode_query, encode_values, named_values
from tacit.running.mpc.transport import Session
from tacit.running.session import answers
from tacit.running.session.messages import Agreement, Announced, Kind, query_name, read_announcement

MAX_COUNT = 2**53
"""Upper bound on the number of bytes or values that a party can send; sums of such numbers fit
64 bits."""

COUNTED = "clients"
"""Field of a sum of noise shares, a single number to which every party adds one. The coordinator
knows how many parties are in the sum, and takes that number: a party that adds another would change
the errors that a result states."""

Messages = dict[int, tuple[Kind, bytes]]
"""The messages to send, by party."""


Round = tuple[Messages, Callable[[int, bytes], None]]
"""The messages of a round, and what takes each party's answer; it raises ValueError for values that
cannot be an answer."""


@dataclass(frozen=True, eq=False)
class Answered:
    """A query after its last round.

    Parameters
    ----------
    members : who took part.
    reply : what the server may see; empty where a party is missing without whom there is nothing.
    refused : reasons, by party whose reply was left out.
    attempts : how often the query was asked.
    sessions : the parties' reports of each computation: the slowest's time, and all bytes.
    sent : bytes that each party sent to others.
    """

    members: tuple[int, ...]
    reply: Reply = field(default_factory=dict)
    refused: Mapping[int, str] = field(default_factory=dict)
    attempts: int = 1
    sessions: tuple[Session, ...] = ()
    sent: Mapping[int, int] = field(default_factory=dict)


Exchange = Generator[Round, None, Answered]
"""One query, in one or more rounds; a round is over when the next one is asked for."""


def exchange(
    query: Query, active: tuple[int, ...], agreement: Agreement, session: bytes, attempts: int = 1
) -> Exchange:
    """What asks the active parties a query, under its view.

    Parameters
    ----------
    query : what is asked.
    active : the parties that are asked, ascending.
    agreement : what was agreed.
    session : the run.
    attempts : how often a sum is tried.

    Raises
    ------
    MessageError, SumError : where the answers give no reply.
    """
    if query.view is View.MPC:
        return _computed(query, active, agreement, session)
    if query.view is View.SUM:
        return _summed(query, active, agreement, session, attempts)
    return _each(query, active)


def _each(query: Query, active: tuple[int, ...]) -> Exchange:
    """The server sees every party's reply.

    Replies must have the same fields, types and shapes. Where a few differ from more than half of
    all, those few are refused.
    """
    came: dict[int, Reply] = {}

    def take(party: int, content: bytes) -> None:
        reply = fields.as_reply(fields.decode(content))
        for name, value in reply.items():
            numbers = value.values if isinstance(value, Ragged) else value
            if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
                raise fields.MessageError(f"field {name!r} holds a number that is not finite")
        came[party] = reply

    asked = {
        party: (Kind.ASK, encode_query(query.part(index, index + 1)))
        for index, party in enumerate(active)
    }
    yield asked, take
    forms = {party: _form(came[party]) for party in sorted(came)}
    if not forms:
        return Answered(())
    common, times = Counter(forms.values()).most_common(1)[0]
    if 2 * times <= len(forms):
        raise fields.MessageError(
            "the parties' replies differ in form, and no form is that of more than half"
        )
    members = tuple(party for party, form in forms.items() if form == common)
    others = forms.keys() - set(members)
    refused = dict.fromkeys(others, "its reply has another form than the others'")
    return Answered(members, stack([came[party] for party in members]), refused)


def _summed(
    query: Query, active: tuple[int, ...], agreement: Agreement, session: bytes, attempts: int
) -> Exchange:
    """The server sees the sum of all replies, by a secure sum of five rounds.

    Where too few parties are left before any has revealed a share, parties are asked to give the
    attempt up, and those who do are asked again.
    """
    request, layout = encode_query(query), fields.layout_of(query)
    terms = answers.sum_terms(agreement, session, request, answers.with_room(query, agreement), 0)
    restart = b""
    while True:
        server = SumServer(terms)
        first = {"ask": request, "attempt": terms.attempt, "restart": restart}
        try:
            yield dict.fromkeys(active, (Kind.SUM, encode_values(first))), server.receive
            while not server.is_revealing:
                messages = {
                    party: (Kind.ROUND, encode_values({"content": message}))
                    for party, message in server.close_round().items()
                }
                yield messages, server.receive
        except (TooFewError, RefusedError):
            if terms.attempt + 1 >= attempts:
                raise
        else:
            result = server.conclude()
            reply = fields.shaped(result.total, layout)
            if query.step.shares is not None and layout.get(COUNTED) == ():
                reply = {**reply, COUNTED: np.asarray(len(result.clients))}
            return Answered(result.clients, reply, attempts=terms.attempt + 1)
        given_up = SumRestart(terms)
        last = {"step": query.step.name, "attempt": terms.attempt}
        yield dict.fromkeys(active, (Kind.RESTART, encode_values(last))), given_up.receive
        restart, terms = given_up.message(), given_up.terms


def _computed(
    query: Query, active: tuple[int, ...], agreement: Agreement, session: bytes
) -> Exchange:
    """The server sees what all parties compute together, in two rounds.

    In the first every party announces how the others reach it; the server carries the signed
    announcements. In the second the parties compute, over channels of their own, and each sends
    what its program gives the server. Both need every party.
    """
    if query.step.computes is None or len(active) < 2:
        reason = "declares no program" if query.step.computes is None else "needs two parties"
        raise fields.MessageError(
            f"step {query.step.name} is computed between parties, and {reason}"
        )
    request = encode_values({"ask": encode_query(query), "members": active})
    name = query_name(agreement, session, request)
    announcements: dict[int, Announced] = {}
    replies: dict[int, Reply] = {}
    sent: dict[int, int] = {}
    sessions: list[Session] = []

    def announced(party: int, content: bytes) -> None:
        said = named_values(content, announcement=bytes, signature=bytes)
        announcement = (said["announcement"], said["signature"])
        read_announcement(agreement, name, party, announcement)
        announcements[party] = announcement

    def computed(party: int, content: bytes) -> None:
        said = named_values(content, reply=bytes, sent=int, sessions=list)
        reports = [_session(each, active) for each in said["sessions"]]
        reply, count = fields.decode(said["reply"]), _count(said["sent"])
        replies[party], sent[party] = reply, count
        sessions.extend(reports)

    yield dict.fromkeys(active, (Kind.MPC, request)), announced
    if len(announcements) < len(active):
        return Answered(tuple(sorted(announcements)))
    body = encode_values({"announcements": [announcements[party] for party in active]})
    yield dict.fromkeys(active, (Kind.COMPUTE, body)), computed
    if len(replies) < len(active):
        return Answered(tuple(sorted(replies)))
    try:
        reply = query.step.computes().combined(query, [replies[party] for party in active])
    except answers.UNANSWERABLE as error:
        raise fields.MessageError(f"what the parties computed does not fit: {error}") from error
    return Answered(active, reply, sessions=_together(sessions), sent=sent)


def _together(sessions: Sequence[Session]) -> tuple[Session, ...]:
    """The parties' reports of each computation, as one."""
    reports: dict[tuple[tuple[int, ...], int], list[Session]] = {}
    for each in sessions:
        reports.setdefault((each.parties, each.items), []).append(each)
    return tuple(
        Session(*key, max(each.seconds for each in same), sum(each.bytes_sent for each in same))
        for key, same in reports.items()
    )


def _session(values: object, active: tuple[int, ...]) -> Session:
    """What a party says of one computation of some of the parties, by their places.

    Raises
    ------
    MessageError : for anything else.
    """
    kinds = [type(value) for value in values] if isinstance(values, tuple) else []
    if kinds != [tuple, int, float, int]:
        raise fields.MessageError(
            "a computation is reported by its parties, items, seconds and bytes"
        )
    session = Session(*values)  # type: ignore[misc]
    known = all(type(place) is int and 0 <= place < len(active) for place in session.parties)
    if not known or not (math.isfinite(session.seconds) and session.seconds >= 0):
        raise fields.MessageError("a computation names its parties by index, and its seconds")
    parties = tuple(active[place] for place in session.parties)
    return Session(parties, _count(session.items), session.seconds, _count(session.bytes_sent))


def _count(number: int) -> int:
    """A number of bytes or values from another machine, checked."""
    if type(number) is not int or not 0 <= number < MAX_COUNT:
        raise fields.MessageError(
            f"a number of bytes or values must be from 0 to 2**53, got {number!r:.30}"
        )
    return number


def _form(reply: Mapping[str, Any]) -> tuple[Any, ...]:
    """A reply's fields with their types and shapes, but for how many values a party holds.

    Whole and real numbers are one type: with one mechanism a party may send either.
    """
    form = []
    for name in sorted(reply):
        value = reply[name]
        array = value.values if isinstance(value, Ragged) else value
        kind = "number" if array.dtype in (np.int64, np.float64) else array.dtype.str
        form.append((name, type(value) is Ragged, kind, array.shape[:-1]))
    return tuple(form)
