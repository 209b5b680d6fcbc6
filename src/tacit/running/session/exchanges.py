"""The coordinator's side of one query: who answered, and what the server may see of it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.crypto.identities import RefusedError, TooFewError
from tacit.crypto.secure_sum.server import SumServer
from tacit.crypto.secure_sum.terms import SumRestart
from tacit.data.ragged import Ragged
from tacit.protocol import fields
from tacit.protocol.conversation import Query, Reply, stack
from tacit.protocol.values import encode_query, encode_values, named_values
from tacit.running.mpc.transport import Session
from tacit.running.session.answers import UNANSWERABLE
from tacit.running.session.messages import Agreement, Announced, Kind, query_name, read_announcement
from tacit.running.session.sums import shaped, sum_terms, with_room

MAX_COUNT = 2**53
"""Upper bound on the number of bytes or values that a party can send; sums of such numbers fit
64 bits."""

COUNTED = "clients"
"""Field of a sum of noise shares, a single number to which every party adds one. The coordinator
knows how many parties are in the sum, and takes that number: a party that adds another would change
the errors that a result states."""

Messages = dict[int, tuple[Kind, bytes]]
"""The messages to send, by party."""


class Exchange(ABC):
    """One query, in one or more rounds. After the last one there is a reply of those who took part.

    Parameters
    ----------
    active : the parties that are asked, ascending.
    """

    def __init__(self, active: tuple[int, ...]) -> None:
        self.active = active
        self.members: tuple[int, ...] = ()
        self.refused: dict[int, str] = {}
        self.reply: Reply = {}

    @property
    def attempt(self) -> int:
        """Which attempt at the query this is, from 0."""
        return 0

    @abstractmethod
    def open(self) -> Messages:
        """The first messages."""

    @abstractmethod
    def take(self, party: int, content: bytes) -> None:
        """Take a party's answer in this round; ValueError for values that cannot be an answer."""

    @abstractmethod
    def close(self) -> Messages:
        """End the round: the next messages, or none when the reply is there."""


class EachExchange(Exchange):
    """The server sees every party's reply.

    Replies must have the same fields, types and shapes. Where a few differ from more than half of
    all, those few are refused.
    """

    def __init__(self, query: Query, active: tuple[int, ...]) -> None:
        super().__init__(active)
        self._query = query
        self._came: dict[int, Reply] = {}

    def open(self) -> Messages:
        """Every party's own part of the query."""
        return {
            party: (Kind.ASK, encode_query(self._query.part(index, index + 1)))
            for index, party in enumerate(self.active)
        }

    def take(self, party: int, content: bytes) -> None:
        """Keep a reply; refuse numbers that are not finite."""
        reply = fields.as_reply(fields.decode(content))
        for name, value in reply.items():
            numbers = value.values if isinstance(value, Ragged) else value
            if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
                raise fields.MessageError(f"field {name!r} holds a number that is not finite")
        self._came[party] = reply

    def close(self) -> Messages:
        """All replies of the common form, in the order of the parties."""
        forms = {party: _form(self._came[party]) for party in sorted(self._came)}
        if forms:
            common, times = Counter(forms.values()).most_common(1)[0]
            if 2 * times <= len(forms):
                raise fields.MessageError(
                    "the parties' replies differ in form, and no form is that of more than half"
                )
            self.members = tuple(party for party, form in forms.items() if form == common)
            others = forms.keys() - set(self.members)
            self.refused = dict.fromkeys(others, "its reply has another form than the others'")
            self.reply = stack([self._came[party] for party in self.members])
        return {}


class SumExchange(Exchange):
    """The server sees the sum of all replies, by a secure sum of five rounds.

    Where too few parties are left before any has revealed a share, parties are asked to give the
    attempt up, and those who do are asked again.

    Parameters
    ----------
    query : what is summed.
    active : the parties that are asked.
    agreement : what was agreed.
    session : the run.
    attempts : how often the sum is tried.
    """

    def __init__(
        self,
        query: Query,
        active: tuple[int, ...],
        agreement: Agreement,
        session: bytes,
        attempts: int = 1,
    ) -> None:
        super().__init__(active)
        self._query, self._layout = encode_query(query), fields.layout_of(query)
        self._step, self._attempts = query.step.name, attempts
        self._counts_clients = (
            query.step.shares is not None and self._layout.get(COUNTED, None) == ()
        )
        self._terms = sum_terms(agreement, session, self._query, with_room(query, agreement), 0)
        self._server = SumServer(self._terms)
        self._restart: SumRestart | None = None

    @property
    def attempt(self) -> int:
        """Which attempt at the sum this is, from 0."""
        return self._terms.attempt

    def open(self) -> Messages:
        """The query."""
        return self._asked(self.active, b"")

    def _asked(self, parties: tuple[int, ...], restart: bytes) -> Messages:
        values = {"ask": self._query, "attempt": self.attempt, "restart": restart}
        return dict.fromkeys(parties, (Kind.SUM, encode_values(values)))

    def take(self, party: int, content: bytes) -> None:
        """Hand a message to the sum."""
        receiver = self._server if self._restart is None else self._restart
        receiver.receive(party, content)

    def close(self) -> Messages:
        """The sum's next messages, or its result."""
        if self._restart is not None:
            return self._begun_again(self._restart)
        if self._server.is_revealing:
            result = self._server.conclude()
            self.members, self.reply = result.clients, shaped(result.total, self._layout)
            if self._counts_clients:
                self.reply = {**self.reply, COUNTED: np.asarray(len(self.members))}
            return {}
        try:
            messages = self._server.close_round()
        except (TooFewError, RefusedError):
            if self.attempt + 1 >= self._attempts:
                raise
            return self._given_up()
        return {
            party: (Kind.ROUND, encode_values({"content": message}))
            for party, message in messages.items()
        }

    def _given_up(self) -> Messages:
        self._restart = SumRestart(self._terms)
        values = {"step": self._step, "attempt": self.attempt}
        return dict.fromkeys(self.active, (Kind.RESTART, encode_values(values)))

    def _begun_again(self, restart: SumRestart) -> Messages:
        message = restart.message()
        self._terms, self._restart = restart.terms, None
        self._server = SumServer(self._terms)
        return self._asked(self.active, message)


class MPCExchange(Exchange):
    """The server sees what all parties compute together, in two rounds.

    In the first every party announces how the others reach it; the server carries the signed
    announcements. In the second the parties compute, over channels of their own, and each sends
    what its program gives the server. Both need every party.

    Parameters
    ----------
    query : what is computed; every party is sent all of it.
    active : the parties that are asked.
    agreement : what was agreed.
    session : the run.
    """

    def __init__(
        self, query: Query, active: tuple[int, ...], agreement: Agreement, session: bytes
    ) -> None:
        super().__init__(active)
        if query.step.computes is None:
            raise TypeError(f"step {query.step.name} declares no program for real parties")
        self._query, self._agreement = query, agreement
        self._program = query.step.computes()
        self._request = encode_values({"ask": encode_query(query), "members": active})
        self._name = query_name(agreement, session, self._request)
        self._announced: dict[int, Announced] = {}
        self._computing = False
        self._replies: dict[int, Reply] = {}
        self._sessions: list[Session] = []
        self.sent: dict[int, int] = {}

    def open(self) -> Messages:
        """The same query for every party."""
        return dict.fromkeys(self.active, (Kind.MPC, self._request))

    def take(self, party: int, content: bytes) -> None:
        """Take an announcement, or a party's output."""
        if not self._computing:
            values = named_values(content, announcement=bytes, signature=bytes)
            announcement = (values["announcement"], values["signature"])
            read_announcement(self._agreement, self._name, party, announcement)
            self._announced[party] = announcement
            return
        values = named_values(content, reply=bytes, sent=int, sessions=list)
        sessions = [_session(each, len(self.active)) for each in values["sessions"]]
        reply, sent = fields.decode(values["reply"]), _count(values["sent"])
        self._sessions += sessions
        self._replies[party], self.sent[party] = reply, sent

    def close(self) -> Messages:
        """The announcements for all parties, or the reply that their outputs combine to."""
        came = self._replies if self._computing else self._announced
        self.members = tuple(party for party in self.active if party in came)
        if self.members != self.active:
            return {}
        if not self._computing:
            self._computing = True
            announcements = [self._announced[party] for party in self.active]
            body = encode_values({"announcements": announcements})
            return dict.fromkeys(self.active, (Kind.COMPUTE, body))
        replies = [self._replies[party] for party in self.active]
        try:
            self.reply = self._program.combined(self._query, replies)
        except UNANSWERABLE as error:
            raise fields.MessageError(f"what the parties computed does not fit: {error}") from error
        return {}

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The parties' reports of each computation: the slowest party's time, and all bytes."""
        together: dict[tuple[tuple[int, ...], int], list[Session]] = {}
        for each in self._sessions:
            together.setdefault((each.parties, each.items), []).append(each)
        return tuple(
            Session(
                tuple(self.active[index] for index in parties),
                items,
                max(each.seconds for each in sessions),
                sum(each.bytes_sent for each in sessions),
            )
            for (parties, items), sessions in together.items()
        )


def _session(values: object, parties: int) -> Session:
    """What a party says of one computation of some of the parties.

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
    known = all(type(index) is int and 0 <= index < parties for index in session.parties)
    if not known or not (math.isfinite(session.seconds) and session.seconds >= 0):
        raise fields.MessageError("a computation names its parties by index, and its seconds")
    return Session(
        session.parties, _count(session.items), session.seconds, _count(session.bytes_sent)
    )


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
