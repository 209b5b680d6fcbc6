"""A party's side of what parties of a run do together: secure sums, and joint computations."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from tacit.crypto.identities import Identity
from tacit.crypto.secure_sum.client import SumClient
from tacit.protocol import fields, mpc, values
from tacit.protocol.steps import Query, View
from tacit.running.mpc.transport import Meeting, Transport, UnreachableError
from tacit.running.session import debits, messages
from tacit.running.session.answers import (
    Answers,
    Computation,
    OpenSum,
    checked_query,
    program_of,
    sum_terms,
    with_room,
)

NAME_BYTES = 16
"""Bytes of a query's name that name a computation, which becomes a part of paths."""
MASKING = 1
"""The round of a sum in which a party sends its numbers, counted from the first after the query."""


class ClientSums:
    """The sums of a run in which a party takes part, one open at a time.

    Parameters
    ----------
    identity : the party's signing key.
    agreement : what it agreed to.
    answers : what it computes and pays for.
    """

    def __init__(self, identity: Identity, agreement: messages.Agreement, answers: Answers) -> None:
        self._identity, self._agreement, self._answers = identity, agreement, answers

    def _resumed(self, begun: OpenSum, session: bytes) -> tuple[Query, SumClient]:
        """The query of an open sum, and the party's side of it."""
        query = with_room(values.decode_query(begun.ask, self._agreement.protocol), self._agreement)
        terms = sum_terms(self._agreement, session, begun.ask, query, begun.attempt)
        return query, SumClient.resumed(self._identity, terms, begun.client)

    def begin(self, message: messages.SignedMessage, request: bytes) -> bytes:
        """Begin a sum, or another attempt at the last one where that can never be unmasked."""
        content = values.named_values(message.body, ask=bytes, attempt=int, restart=bytes)
        decoded = values.decode_query(content["ask"], self._agreement.protocol)
        query = with_room(checked_query(decoded, View.SUM, self._agreement), self._agreement)
        name, attempt, run = query.step.name, content["attempt"], self._answers.run
        if name in run.closed or attempt <= run.attempts.get(name, -1):
            raise messages.MalformedMessageError(f"step {name} was summed in this run already")
        last = run.sum if run.sum is not None and run.sum.step == name else None
        terms = sum_terms(self._agreement, message.session, content["ask"], query, attempt)
        earlier = None if last is None else self._resumed(last, message.session)[1]
        client = SumClient(self._identity, terms, content["restart"], earlier)
        if last is not None and earlier is not None:
            # the client has verified that nothing of the last attempt can be unmasked
            last.client = earlier.state
            self._take_back(last)
        self._answers.check_budget(query)
        answer = client.advertise()
        run.sum = OpenSum(name, content["ask"], attempt, client.state)
        run.attempts[name] = attempt
        return answer

    def give_up(self, message: messages.SignedMessage, request: bytes) -> bytes:
        """Give up an attempt: erase its secrets, so that its vector can never be unmasked."""
        content = values.named_values(message.body, step=str, attempt=int)
        begun = self._answers.run.sum
        if begun is None or (content["step"], content["attempt"]) != (begun.step, begun.attempt):
            raise messages.StaleMessageError("no such attempt at a sum is open")
        _, client = self._resumed(begun, message.session)
        statement = client.give_up()
        begun.client = client.state
        return statement

    def next_round(self, message: messages.SignedMessage, request: bytes) -> bytes:
        """Answer the next round of the open sum; the round of masked numbers is paid for first.

        Up to that round an answer leaves once: it holds what is drawn for it, under keys that serve
        once. Later answers are the same whenever the same message comes.
        """
        begun = self._answers.run.sum
        if begun is None:
            raise messages.StaleMessageError("no sum has begun")
        content = values.named_values(message.body, content=bytes)["content"]
        query, client = self._resumed(begun, message.session)

        def masked(delivery: bytes) -> bytes:
            reply = self._answers.computed(query)
            return client.mask(delivery, fields.flattened(reply, fields.layout_of(query)))

        steps = (client.share, masked, client.certify, client.reveal)
        if begun.rounds == MASKING:
            self._take_back(begun)
            self._answers.pay(query, message, request)
            begun.payment = len(self._answers.run.payments) - 1
        answer = steps[begun.rounds](content)
        if begun.rounds < MASKING:
            self._answers.debit(message, message.kind.name.lower(), request, once=True)
        begun.rounds, begun.client = begun.rounds + 1, client.state
        if begun.rounds == len(steps):
            self._answers.run.closed.append(begun.step)
            self._answers.run.sum = None
        return answer

    def _take_back(self, begun: OpenSum) -> None:
        """Take back the payment of an attempt that can never release anything."""
        if begun.payment is not None:
            self._answers.take_back(begun.payment)
            begun.payment = None


UNREACHABLE = "its party file does not say where other parties reach it: [mpc] listen"
STOPPED = "the computation with the other parties stopped; its log says why"


@dataclass
class ClientComputations:
    """The computations of a run in which a party takes part, one announced at a time.

    Parameters
    ----------
    index : the party's index in the agreement.
    identity : its signing key.
    agreement : what it agreed to.
    answers : what it pays for.
    transport : how it reaches the others; None where it cannot.
    failure : why the last computation stopped; empty where none did.
    """

    index: int
    identity: Identity
    agreement: messages.Agreement
    answers: Answers
    transport: Transport | None
    failure: str = ""

    def announce(self, message: messages.SignedMessage, request: bytes) -> bytes:
        """Announce how the others reach this party, for a query that it would compute with them."""
        query, _ = self._asked(message.body)
        if self.transport is None:
            raise debits.DeclinedError(UNREACHABLE)
        if query.step.name in self.answers.run.closed:
            raise messages.MalformedMessageError(f"step {query.step.name} was computed in this run")
        self.answers.check_budget(query)
        self.answers.debit(message, message.kind.name.lower(), request, reads=True)
        offer = program_of(query).offer(self.answers.records, query)
        try:
            announcement = self.transport.announce()
        except UnreachableError as error:
            raise debits.DeclinedError(str(error)) from error
        self.answers.run.computation = Computation(message.body, dict(announcement.secret))
        name = messages.query_name(self.agreement, message.session, message.body)
        content, signature = messages.announced(
            name, self.index, self.identity, announcement.public, offer
        )
        return values.encode_values({"announcement": content, "signature": signature})

    def _asked(self, request: bytes) -> tuple[Query, tuple[int, ...]]:
        """A query for a computation among no fewer parties than agreed, this one among them."""
        message, members = messages.read_members(request, len(self.agreement.parties))
        decoded = values.decode_query(message, self.agreement.protocol)
        query = checked_query(decoded, View.MPC, self.agreement)
        if self.index not in members or len(members) < self.agreement.min_clients:
            raise messages.MalformedMessageError(
                f"{self.agreement.min_clients} parties compute together, and party "
                f"{self.index} among them, got {members!r:.60}"
            )
        return query, members

    def compute(self, message: messages.SignedMessage, request: bytes) -> bytes:
        """Compute with the others whose announcements these are, after the debit."""
        run, transport = self.answers.run, self.transport
        begun = run.computation
        if begun is None or transport is None:
            raise messages.StaleMessageError("no computation was announced")
        query, members = self._asked(begun.request)
        name = messages.query_name(self.agreement, message.session, begun.request)
        announcements = messages.read_all(self.agreement, name, members, message.body)
        self.answers.pay(query, message, request)
        run.closed.append(query.step.name)
        run.computation = None
        meeting = Meeting(
            name[:NAME_BYTES].hex(),
            members.index(self.index),
            tuple(each["public"] for each in announcements),
            tuple(each["offer"] for each in announcements),
            begun.secret,
        )
        try:
            return self._reply(query, transport, meeting)
        except mpc.MPCError as error:
            self.failure = str(error)
            raise debits.DeclinedError(STOPPED) from error

    def _reply(self, query: Query, transport: Transport, meeting: Meeting) -> bytes:
        answers = self.answers
        with transport.meet(meeting) as peers:
            reply = program_of(query).compute(
                answers.records, query, answers.noise, answers.state, peers
            )
        sessions = [astuple(each) for each in peers.sessions]
        content = {"reply": fields.encode(dict(reply)), "sent": peers.sent, "sessions": sessions}
        return values.encode_values(content)
