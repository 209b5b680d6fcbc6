"""A party's side of the computations that parties of a run do together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

from tacit.crypto.identities import Identity
from tacit.protocol.conversation import Query, View
from tacit.protocol.encoding.fields import encode
from tacit.protocol.encoding.queries import decode_query
from tacit.protocol.encoding.values import encode_values
from tacit.protocol.mpc import MPCError
from tacit.running.mpc.transport import Meeting, Transport, UnreachableError
from tacit.running.session.announcements import (
    announced,
    computation_name,
    query_name,
    read_all,
    read_members,
)
from tacit.running.session.messages import (
    Agreement,
    MalformedMessageError,
    SignedMessage,
    StaleMessageError,
)
from tacit.running.session.party.answers import Answers
from tacit.running.session.party.checks import checked_query, program_of
from tacit.running.session.party.debits import DeclinedError

UNREACHABLE = "its party file does not say where other parties reach it: [mpc] listen"
STOPPED = "the computation with the other parties stopped; its log says why"


@dataclass
class Computation:
    """A computation with other parties, announced and not yet begun."""

    request: bytes
    query: Query
    members: tuple[int, ...]
    secret: dict[str, Any]


class ClientComputations:
    """The computations of a run in which a party takes part, one announced at a time.

    Parameters
    ----------
    index : the party's index in the agreement.
    identity : its signing key.
    agreement : what it agreed to.
    answers : what it pays for.
    transport : how it reaches the others; None where it cannot.
    """

    def __init__(
        self,
        index: int,
        identity: Identity,
        agreement: Agreement,
        answers: Answers,
        transport: Transport | None,
    ) -> None:
        self._index, self._identity, self._agreement = index, identity, agreement
        self._answers, self._transport = answers, transport
        self.waiting: Computation | None = None
        self.computed: list[str] = []
        self.failure = ""

    @property
    def state(self) -> dict[str, Any] | None:
        """The computation that was announced and not yet begun, with its secrets, or None."""
        waiting = self.waiting
        return None if waiting is None else {"query": waiting.request, "secret": waiting.secret}

    def resume(self, waiting: Mapping[str, Any]) -> None:
        """Wait for a computation from the state that ``state`` gave."""
        self.waiting = self._computation_of(waiting["query"], waiting["secret"])

    def announce(self, message: SignedMessage, request: bytes) -> bytes:
        """Announce how the others reach this party, for a query that it would compute with them."""
        begun = self._computation_of(message.body, {})
        if self._transport is None:
            raise DeclinedError(UNREACHABLE)
        if begun.query.step.name in self.computed:
            raise MalformedMessageError(f"step {begun.query.step.name} was computed in this run")
        self._answers.check_budget(begun.query)
        offer = program_of(begun.query).offer(self._answers.records, begun.query)
        try:
            announcement = self._transport.announce()
        except UnreachableError as error:
            raise DeclinedError(str(error)) from error
        begun.secret = dict(announcement.secret)
        self.waiting = begun
        name = query_name(self._agreement, message.session, message.body)
        content, signature = announced(
            name, self._index, self._identity, announcement.public, offer
        )
        return encode_values({"announcement": content, "signature": signature})

    def _computation_of(self, request: bytes, secret: dict[str, Any]) -> Computation:
        """A query for a computation among no fewer parties than agreed, this one among them."""
        message, members = read_members(request, len(self._agreement.parties))
        decoded = decode_query(message, self._agreement.protocol)
        query = checked_query(decoded, View.MPC, self._agreement)
        if self._index not in members or len(members) < self._agreement.min_clients:
            raise MalformedMessageError(
                f"{self._agreement.min_clients} parties compute together, and party "
                f"{self._index} among them, got {members!r:.60}"
            )
        return Computation(request, query, members, secret)

    def compute(self, message: SignedMessage, request: bytes) -> bytes:
        """Compute with the others whose announcements these are, after the debit."""
        begun, transport = self.waiting, self._transport
        if begun is None or transport is None:
            raise StaleMessageError("no computation was announced")
        name = query_name(self._agreement, message.session, begun.request)
        announcements = read_all(self._agreement, name, begun.members, message.body)
        self._answers.pay(begun.query, message, request)
        self.computed.append(begun.query.step.name)
        self.waiting = None
        meeting = Meeting(
            computation_name(name),
            begun.members.index(self._index),
            tuple(each["public"] for each in announcements),
            tuple(each["offer"] for each in announcements),
            begun.secret,
        )
        try:
            return self._reply(begun.query, transport, meeting)
        except MPCError as error:
            self.failure = str(error)
            raise DeclinedError(STOPPED) from error

    def _reply(self, query: Query, transport: Transport, meeting: Meeting) -> bytes:
        answers = self._answers
        with transport.meet(meeting) as peers:
            reply = program_of(query).compute(
                answers.records, query, answers.noise, answers.state, peers
            )
        sessions = [astuple(each) for each in peers.sessions]
        content = {"reply": encode(dict(reply)), "sent": peers.sent, "sessions": sessions}
        return encode_values(content)
