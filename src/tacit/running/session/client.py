"""A party of a run: one client's records behind messages. It decides itself what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from hashlib import sha256
from typing import Any

from tacit.crypto.identities import Identity, Roster
from tacit.crypto.secure_sum.client import SumClient
from tacit.crypto.secure_sum.terms import SumTerms
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.privacy.cost import NOTHING, Cost
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Layout, Query, Reply, View
from tacit.protocol.messages import encode, reply_of
from tacit.protocol.mpc import MPCError, MPCProgram
from tacit.protocol.query_messages import decode_query
from tacit.protocol.values import decode_values, encode_values, named_values
from tacit.running.mpc.transport import Meeting, Transport, UnreachableError
from tacit.running.session.announcements import (
    announced,
    computation_name,
    query_name,
    read_all,
    read_members,
)
from tacit.running.session.debits import Account, Debit, DeclinedError, Guard
from tacit.running.session.messages import (
    COORDINATOR,
    Agreement,
    ForeignMessageError,
    Kind,
    MalformedMessageError,
    SignedMessage,
    SignedMessageError,
    StaleMessageError,
    verified,
)
from tacit.running.session.reasons import UNFIT
from tacit.running.session.state import cost_values, state_kinds
from tacit.running.session.sums import flattened, layout_of, length_of, sum_terms
from tacit.running.spending import Payment, added, exceeds, most_spent
from tacit.running.units import FOREIGN_UNIT, can_answer, for_plan

NO_SESSION = b""
MASKING = 1
"""The round of a sum in which a party sends its numbers, counted from the first after the query."""

UNANSWERABLE = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, MemoryError)
"""What a step raises when a query's values are not what it needs."""

UNREACHABLE = "its own file does not say where other parties reach it: [mpc] listen"
STOPPED = "the computation with the other parties stopped; its own log says why"

REFUSED = "it refuses what the coordinator sent"
"""The only reason that others learn when a step that refuses once has refused."""


@dataclass
class _Sum:
    """A secure sum in which the party takes part."""

    query_bytes: bytes
    query: Query
    layout: Layout
    terms: SumTerms
    client: SumClient
    rounds: int = 0
    payment: int | None = None
    """Index of the party's payment for this attempt."""

    @property
    def attempt(self) -> int:
        """Which attempt at the sum this is, from 0."""
        return self.terms.attempt


@dataclass
class _Computation:
    """A computation with other parties, announced and not yet begun."""

    request: bytes
    query: Query
    members: tuple[int, ...]
    secret: dict[str, Any]


class Party:
    """Answers the messages of one run for one client's records.

    It answers a message once, in turn, and repeats the same bytes when the same message comes
    again. It answers only steps of the protocol that it agreed to, under the settings that it
    agreed to, and never releases more than that protocol's guarantee. It answers a step
    that is marked ``once`` only once in a run. It adds to one sum a step, over no fewer parties
    than were agreed; it adds to another attempt at that sum only when nobody can ever open the last
    attempt.

    Parameters
    ----------
    index : the party's index in the agreement.
    identity : its signing key.
    agreement : what it agreed to.
    records : its own records, a batch of one client, in its own unit; None where that cannot be
        converted to the agreed one, and the party declines.
    noise : where its noise comes from.
    guard : is told of every debit before the reply is computed, and of every other message before
        the reply leaves. ``debits.unrecorded`` writes nothing down, and is for rehearsals only.
    state : its notebook of earlier runs; None starts an empty one.
    unit : the word in its own file for what its scores are; None where it has none.
    transport : how it reaches the others when it computes with them; None where it cannot.

    Raises
    ------
    ValueError : for records of several clients, no records where it could answer, or
        an identity that is not the agreement's.
    """

    def __init__(
        self,
        index: int,
        identity: Identity,
        agreement: Agreement,
        records: Clients | None,
        noise: NoiseSource,
        guard: Guard,
        state: ClientState | None = None,
        unit: str | None = None,
        transport: Transport | None = None,
    ) -> None:
        if records is not None and records.count != 1:
            raise ValueError(f"a party holds the records of one client, got {records.count}")
        if agreement.parties[index] != identity.public:
            raise ValueError(f"the identity is not that of party {index} in the agreement")
        self.index = index
        self._identity, self._agreement = identity, agreement
        self._given, self._unit, self._noise = records, unit, noise
        self._fits = can_answer(unit, agreement.unit, agreement.protocol)
        if self._fits:
            if records is None:
                raise ValueError("a party whose unit fits the agreement needs its records")
            self._records = for_plan(records, unit, agreement.unit, agreement.protocol)
        self._memory = ClientState() if state is None else state
        self._guard = guard
        if len(agreement.parties) > 1:
            agreement.protocol.enrol(self._memory, identity, Roster(agreement.parties))
        self._session, self._round = NO_SESSION, -1
        self._answered: tuple[bytes, bytes] = (b"", b"")
        self._payments: list[Payment] = []
        self._account = Account()
        self._sum: _Sum | None = None
        self._closed: list[str] = []  # steps that are not answered again in this run
        self._attempts: dict[str, int] = {}
        self._declined = False
        self._transport = transport
        self._computation: _Computation | None = None
        self._computed_with: list[str] = []
        self.failure = ""

    def anew(self) -> Party:
        """The party for another run, with the same notebook and book."""
        return Party(
            self.index,
            self._identity,
            self._agreement,
            self._given,
            self._noise,
            self._guard,
            self._memory,
            self._unit,
            self._transport,
        )

    def restarted(self) -> Party:
        """The party as another process takes it up, with nothing but what it kept."""
        fresh = Party(
            self.index,
            self._identity,
            self._agreement,
            self._given,
            self._noise,
            self._guard,
            unit=self._unit,
            transport=self._transport,
        )
        fresh.resume(self.state)
        return fresh

    @property
    def has_begun(self) -> bool:
        """Whether the run has cost anything, or any message was answered."""
        return bool(self._payments) or self._session != NO_SESSION

    @property
    def notes(self) -> dict[tuple[Any, ...], Any]:
        """The notes in its notebook."""
        return self._memory.notes

    def when_taking(self, written: Callable[[], None]) -> None:
        """Have its state written down whenever a note is torn out, before the note is used."""
        self._memory.after_taking = written

    @property
    def state(self) -> bytes:
        """Where the run stands, with all secrets of this party: for its own eyes only."""
        begun = self._sum
        values = {
            "session": self._session,
            "turn": self._round,
            "answered": self._answered,
            "payments": self._payments,
            "account": self._account,
            "declined": self._declined,
            "closed": self._closed,
            "attempts": self._attempts,
            "notes": self._memory.notes,
            "computed_with": self._computed_with,
            "computation": None
            if self._computation is None
            else {"query": self._computation.request, "secret": self._computation.secret},
            "sum": None
            if begun is None
            else {
                "ask": begun.query_bytes,
                "attempt": begun.attempt,
                "rounds": begun.rounds,
                "payment": begun.payment,
                "client": begun.client.state,
            },
        }
        return encode_values(values, state_kinds(self._agreement.protocol))

    def resume(self, state: bytes) -> None:
        """Go on from a state that this party gave in another process.

        Its notes may be of kinds that this protocol does not know: other plans' runs kept them.
        """
        values = decode_values(state, state_kinds(self._agreement.protocol), opaque=True)
        self._session, self._round = values["session"], values["turn"]
        self._answered, self._payments = values["answered"], values["payments"]
        self._account = values["account"]
        self._declined, self._closed = values["declined"], values["closed"]
        self._attempts = dict(values["attempts"])
        for key, note in values["notes"].items():
            self._memory.keep(key, note)
        self._computed_with = values.get("computed_with", [])
        waiting = values.get("computation")
        if waiting is not None:
            self._computation = self._computation_of(waiting["query"], waiting["secret"])
        begun = values["sum"]
        if begun is not None:
            query = decode_query(begun["ask"], self._agreement.protocol)
            layout = layout_of(query)
            terms = self._sum_terms(begun["ask"], layout, self._session, begun["attempt"])
            client = SumClient.resumed(self._identity, terms, begun["client"])
            self._sum = _Sum(
                begun["ask"], query, layout, terms, client, begun["rounds"], begun["payment"]
            )

    @property
    def spent(self) -> Cost:
        """What the run has cost the record that spent most; at most, where state was lost."""
        return self._account.earlier + most_spent(self._payments[self._account.first :])

    def answer(self, message: bytes) -> bytes:
        """The signed reply to a message of the coordinator.

        Raises
        ------
        SignedMessageError : for a message that is not accepted. Nothing was spent or told.
        """
        received = verified(message, self._agreement, COORDINATOR, self.index)
        request = sha256(message).digest()
        if request == self._answered[0]:
            return self._answered[1]
        if self._session not in (NO_SESSION, received.session):
            raise ForeignMessageError("this message is of another run")
        if received.round <= self._round:
            raise StaleMessageError(f"round {received.round} was answered, with another message")
        if self._declined:
            raise StaleMessageError("this party has declined the run")
        try:
            kind, body = self._reply(received, request)
        except DeclinedError as reason:
            self._declined = True
            kind, body = Kind.DECLINE, encode_values({"reason": reason.public})
        reply = SignedMessage(kind, received.session, received.round, self.index, COORDINATOR, body)
        signed = reply.signed(self._agreement, self._identity)
        self._session, self._round = received.session, received.round
        self._answered = (request, signed)
        return signed

    def _reply(self, message: SignedMessage, request: bytes) -> tuple[Kind, bytes]:
        answers = {
            Kind.ASK: self._to_query,
            Kind.SUM: self._to_sum,
            Kind.ROUND: self._to_round,
            Kind.RESTART: self._to_restart,
            Kind.MPC: self._to_mpc,
            Kind.COMPUTE: self._to_compute,
        }
        if message.kind not in answers:
            raise MalformedMessageError(
                f"a coordinator does not send a {message.kind.name.lower()}"
            )
        if not self._fits:
            raise DeclinedError(FOREIGN_UNIT)
        try:
            content = answers[message.kind](message, request)
        except SignedMessageError:
            raise
        except DataError as error:
            raise DeclinedError(UNFIT) from error
        except UNANSWERABLE as error:
            raise MalformedMessageError(f"this message cannot be answered: {error}") from error
        if self._account.request != request:
            self._debit(message, message.kind.name.lower(), request)
        spent = cost_values(self.spent)
        return Kind.REPLY, encode_values({"content": content, "spent": spent})

    def _to_query(self, message: SignedMessage, request: bytes) -> bytes:
        query = self._checked(decode_query(message.body, self._agreement.protocol), View.EACH)
        name = query.step.name
        if name in self._closed:
            raise MalformedMessageError(f"step {name} was answered in this run already")
        self._pay(query, message, request)
        reply = self._computed(query)
        if query.step.once:
            self._closed.append(name)
        return encode(reply_of(reply, 0))

    def _computed(self, query: Query) -> Reply:
        """The step's answer; where a step refuses once, that reveals one bit, and ends the run."""
        try:
            return query.step.answer(self._records, query, self._noise, self._memory)
        except UNANSWERABLE as error:
            if query.step.refuses_once:
                raise DeclinedError(REFUSED) from error
            raise

    def _to_sum(self, message: SignedMessage, request: bytes) -> bytes:
        content = named_values(message.body, ask=bytes, attempt=int, restart=bytes)
        query = self._checked(decode_query(content["ask"], self._agreement.protocol), View.SUM)
        name, attempt = query.step.name, content["attempt"]
        if name in self._closed or attempt <= self._attempts.get(name, -1):
            raise MalformedMessageError(f"step {name} was summed in this run already")
        last = self._sum if self._sum is not None and self._sum.query.step.name == name else None
        layout = layout_of(query)
        terms = self._sum_terms(content["ask"], layout, message.session, attempt)
        earlier = None if last is None else last.client
        client = SumClient(self._identity, terms, content["restart"], earlier)
        if last is not None:
            # the client has verified that nothing of the last attempt can be opened
            self._forget_payment(last)
        self._check_budget(query)
        self._sum = _Sum(content["ask"], query, layout, terms, client)
        self._attempts[name] = attempt
        return client.advertise()

    def _sum_terms(self, query: bytes, layout: Layout, session: bytes, attempt: int) -> SumTerms:
        return sum_terms(self._agreement, session, query, length_of(layout), attempt)

    def _to_restart(self, message: SignedMessage, request: bytes) -> bytes:
        """Give up an attempt: erase its secrets, so that nobody can ever unmask its vector."""
        content = named_values(message.body, step=str, attempt=int)
        begun = self._sum
        named = (content["step"], content["attempt"])
        if begun is None or named != (begun.query.step.name, begun.attempt):
            raise StaleMessageError("no such attempt at a sum is open")
        return begun.client.give_up()

    def _forget_payment(self, begun: _Sum) -> None:
        """Take back the payment of an attempt that can never release anything; its debit stays."""
        if begun.payment is None:
            return
        del self._payments[begun.payment]
        if begun.payment < self._account.first:
            self._account = replace(self._account, first=self._account.first - 1)
        begun.payment = None

    def _to_round(self, message: SignedMessage, request: bytes) -> bytes:
        begun = self._sum
        if begun is None:
            raise StaleMessageError("no sum has begun")
        content = named_values(message.body, content=bytes)["content"]
        client = begun.client
        steps = (client.share, self._masked, client.certify, client.reveal)
        if begun.rounds == MASKING:
            self._forget_payment(begun)
            self._pay(begun.query, message, request)
            begun.payment = len(self._payments) - 1
        answer = steps[begun.rounds](content)
        begun.rounds += 1
        if begun.rounds == len(steps):
            self._closed.append(begun.query.step.name)
            self._sum = None
        return answer

    def _masked(self, delivery: bytes) -> bytes:
        if self._sum is None:
            raise StaleMessageError("no sum has begun")
        query, layout = self._sum.query, self._sum.layout
        return self._sum.client.mask(delivery, flattened(self._computed(query), layout))

    def _to_mpc(self, message: SignedMessage, request: bytes) -> bytes:
        """Announce how the others reach this party, for a query that it would compute with them."""
        begun = self._computation_of(message.body, {})
        if self._transport is None:
            raise DeclinedError(UNREACHABLE)
        if begun.query.step.name in self._computed_with:
            raise MalformedMessageError(f"step {begun.query.step.name} was computed in this run")
        self._check_budget(begun.query)
        offer = _program(begun.query).offer(self._records, begun.query)
        try:
            announcement = self._transport.announce()
        except UnreachableError as error:
            raise DeclinedError(str(error)) from error
        begun.secret = dict(announcement.secret)
        self._computation = begun
        name = query_name(self._agreement, message.session, message.body)
        content, signature = announced(name, self.index, self._identity, announcement.public, offer)
        return encode_values({"announcement": content, "signature": signature})

    def _computation_of(self, request: bytes, secret: dict[str, Any]) -> _Computation:
        """A query for a computation among no fewer parties than agreed, this one among them."""
        message, members = read_members(request, len(self._agreement.parties))
        query = self._checked(decode_query(message, self._agreement.protocol), View.MPC)
        if self.index not in members or len(members) < self._agreement.min_clients:
            raise MalformedMessageError(
                f"{self._agreement.min_clients} parties compute together, and party "
                f"{self.index} among them, got {members!r:.60}"
            )
        return _Computation(request, query, members, secret)

    def _to_compute(self, message: SignedMessage, request: bytes) -> bytes:
        """Compute with the others whose announcements these are, after the debit."""
        begun, transport = self._computation, self._transport
        if begun is None or transport is None:
            raise StaleMessageError("no computation was announced")
        name = query_name(self._agreement, message.session, begun.request)
        announcements = read_all(self._agreement, name, begun.members, message.body)
        self._pay(begun.query, message, request)
        self._computed_with.append(begun.query.step.name)
        self._computation = None
        meeting = Meeting(
            computation_name(name),
            begun.members.index(self.index),
            tuple(each["public"] for each in announcements),
            tuple(each["offer"] for each in announcements),
            begun.secret,
        )
        try:
            return self._computed_together(begun.query, transport, meeting)
        except MPCError as error:
            self.failure = str(error)
            raise DeclinedError(STOPPED) from error

    def _computed_together(self, query: Query, transport: Transport, meeting: Meeting) -> bytes:
        with transport.meet(meeting) as peers:
            reply = _program(query).compute(self._records, query, self._noise, self._memory, peers)
        sessions = [astuple(each) for each in peers.sessions]
        content = {"reply": encode(dict(reply)), "sent": peers.sent, "sessions": sessions}
        return encode_values(content)

    def _checked(self, query: Query, view: View) -> Query:
        """A query that shows no more, and divides the noise among no more parties, than agreed."""
        if query.view is not view:
            raise MalformedMessageError(f"this message asks for the view {query.view.value!r}")
        if (query.step.computes is not None) is not (view is View.MPC):
            alone = "is" if query.step.computes is not None else "is not"
            raise MalformedMessageError(f"step {query.step.name} {alone} computed together")
        if query.step.sums is not None and view is View.EACH:
            raise MalformedMessageError(f"step {query.step.name} is answered in sums only")
        self._check_sharing(query)
        return query

    def _check_sharing(self, query: Query) -> None:
        """Refuse a share of noise that was divided among others than the agreed parties.

        Where each of n parties draws 1/n of the noise, the noise protects a sum over n parties.
        Shares of 1/(100 n) would leave a hundredth of the variance.
        """
        if query.step.shares is None:
            if query.view is View.SUM:
                raise MalformedMessageError(
                    f"step {query.step.name} does not declare who shares its noise, so it is not "
                    "summed between parties"
                )
            return
        parties, sharing = len(self._agreement.parties), query.step.shares(query)
        if sharing is not None and (type(sharing) is not int or sharing != parties):
            raise MalformedMessageError(
                f"{parties} parties share the noise, and the message says {sharing!r:.40}"
            )

    def _check_budget(self, query: Query) -> Payment:
        cost = query.step.cost(self._records, query, self._memory)
        payment = Payment(cost, query.step.participates(self._records, query))
        after = most_spent([*self._payments, payment])
        if exceeds(after, self._agreement.protocol.guarantee):
            raise MalformedMessageError("this run asks for more than the agreed guarantee")
        return payment

    def _pay(self, query: Query, message: SignedMessage, request: bytes) -> None:
        """Write down what a query adds to the cost of the run, before anything is computed.

        Where the ledger holds debits of the run that this party does not know, the whole cost is
        debited: the same record may have taken part in a forgotten answer and take part now.
        """
        payment = self._check_budget(query)
        counted = self._payments[self._account.first :]
        cost = added(most_spent(counted), most_spent([*counted, payment]))
        self._debit(message, query.step.name, request, cost, payment.cost)
        self._payments.append(payment)

    def _debit(
        self,
        message: SignedMessage,
        name: str,
        request: bytes,
        cost: Cost = NOTHING,
        whole: Cost = NOTHING,
    ) -> None:
        account = replace(self._account, request=request)
        debit = Debit(message.session, message.round, name, request, cost, whole, account.receipt)
        made = self._guard(debit)
        if made is not None:
            account = replace(account, receipt=made.receipt)
            if made.earlier is not None:
                account = replace(account, earlier=made.earlier, first=len(self._payments))
        self._account = account


def _program(query: Query) -> MPCProgram:
    """How parties compute what a query asks of them together."""
    if query.step.computes is None:
        raise MalformedMessageError(f"step {query.step.name} declares no program for real parties")
    return query.step.computes()
