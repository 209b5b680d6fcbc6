"""What a party computes of its records in one run, and what it has paid for.

What a party refuses to answer, whatever its records are, and the terms of the secure sums in which
it takes part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

import tacit.protocol as tp
from tacit.crypto.identities import Roster
from tacit.crypto.secure_sum import graph, terms
from tacit.privacy import composition
from tacit.protocol import fields, mpc, steps
from tacit.running.session.debits import Debit, DeclinedError, Guard
from tacit.running.session.messages import Agreement, MalformedMessageError, SignedMessage
from tacit.running.spending import Payment, added, counted_clients, exceeds, most_spent
from tacit.running.units import FOREIGN_UNIT

UNANSWERABLE = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, MemoryError)
"""What a step raises when a query's values are not what it needs."""

REFUSED = "it refuses what the coordinator sent"
"""The only reason that others learn when a step that refuses once has refused."""


LARGEST_WORD = 2**63 - 1
"""Largest number of a party whose step bounds its sums: a refusal would show that it is larger."""


@dataclass
class OpenSum:
    """A secure sum in which a party takes part.

    Parameters
    ----------
    step : the name of the step.
    ask : the query as it was sent.
    attempt : which attempt at the sum, from 0.
    client : the state of the party's side, with its secrets.
    rounds : how many it has answered.
    payment : index of the party's payment for this attempt; None before it.
    """

    step: str
    ask: bytes
    attempt: int
    client: dict[str, Any]
    rounds: int = 0
    payment: int | None = None


@dataclass
class Computation:
    """A computation with other parties, announced and not yet begun.

    Parameters
    ----------
    request : the message that asked for it.
    secret : the secret part of the party's announcement.
    """

    request: bytes
    secret: dict[str, Any]


@dataclass
class Progress:
    """Where a party's run stands, with the party's secrets of this run.

    Parameters
    ----------
    session : the run; empty before its first message.
    round : that was answered last.
    answered : SHA-256 of the message that was answered last, and the signed reply.
    declined : whether the party declined the run.
    payments : what each query cost.
    closed : the steps that are not answered again in this run.
    attempts : the last attempt at each step's sum.
    sum, computation : what is open between the party and the others; None for none.
    receipt : the run's last debit in the ledger that the party knows of; empty before the first.
    request : SHA-256 of the message that was debited last.
    earlier : what the debits add up to that were made before the payments that count, or whose
        payments were taken back.
    first : the first payment that counts. Payments before it are those of a state that was older
        than the ledger: which records spoke since is not known, so nothing is taken as paid.
    """

    session: bytes = b""
    round: int = -1
    answered: tuple[bytes, bytes] = (b"", b"")
    declined: bool = False
    payments: list[Payment] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    attempts: dict[str, int] = field(default_factory=dict)
    sum: OpenSum | None = None
    computation: Computation | None = None
    receipt: bytes = b""
    request: bytes = b""
    earlier: tp.Cost = tp.NOTHING
    first: int = 0


@dataclass
class Answers:
    """One client's answers in one run, each paid for before it is computed.

    Parameters
    ----------
    agreement : what the party agreed to.
    given : its records in the agreed unit; None where they cannot be converted to it.
    noise : where its noise comes from.
    state : its state of this run and of earlier ones.
    guard : receives every debit before the reply is computed.
    run : where the run stands.
    """

    agreement: Agreement
    given: tp.Clients | None
    noise: tp.NoiseSource
    state: tp.ClientState
    guard: Guard
    run: Progress = field(default_factory=Progress)

    @cached_property
    def records(self) -> tp.Clients:
        """The records that count: drawn when they are needed first, after the state is there.

        Raises
        ------
        DeclinedError : where they cannot be converted to the agreed unit.
        """
        if self.given is None:
            raise DeclinedError(FOREIGN_UNIT)
        if not self.given.knows_persons:
            return self.given
        return counted_clients(self.given, self.agreement.per_person, self.state, self.noise)[0]

    @property
    def spent(self) -> tp.Cost:
        """What the run's debits add up to; at most, where state was lost."""
        return self.run.earlier + self._of_unit(most_spent(self._counting))

    @property
    def _counting(self) -> list[Payment]:
        """The payments that the ledger and this party know of."""
        return self.run.payments[self.run.first :]

    def _of_unit(self, cost: tp.Cost) -> tp.Cost:
        """What a cost about a record is about the agreement's unit of privacy."""
        return composition.of_person(cost, self.agreement.per_person)

    def computed(self, query: tp.Query) -> tp.Reply:
        """The step's answer; where a step refuses once, that reveals one bit, and ends the run.

        Raises
        ------
        DeclinedError : for such a refusal, and for one whose reason everyone may read.
        """
        try:
            return query.step.answer(self.records, query, self.noise, self.state)
        except steps.PublicRefusalError as refusal:
            raise DeclinedError(str(refusal)) from refusal
        except UNANSWERABLE as error:
            if query.step.refuses_once:
                raise DeclinedError(REFUSED) from error
            raise

    def check_budget(self, query: tp.Query) -> Payment:
        """What an answer costs, and which records it is about.

        Raises
        ------
        MalformedMessageError : where the run would cost more than the agreed guarantee.
        """
        cost = query.step.cost(self.records, query, self.state)
        payment = Payment(cost, query.step.participates(self.records, query))
        after = most_spent([*self.run.payments, payment])
        if exceeds(after, self.agreement.protocol.guarantee):
            raise MalformedMessageError("this run asks for more than the agreed guarantee")
        return payment

    def pay(self, query: tp.Query, message: SignedMessage, request: bytes) -> None:
        """Record what a query adds to the cost of the run, before anything is computed.

        Where the ledger holds debits of the run that this party does not know, the whole cost is
        debited: the same record may have taken part in a forgotten answer and take part now.
        """
        payment = self.check_budget(query)
        before, after = most_spent(self._counting), most_spent([*self._counting, payment])
        cost = added(self._of_unit(before), self._of_unit(after))
        whole = self._of_unit(payment.cost)
        once = query.step.once or query.view is tp.View.SUM
        self.debit(message, query.step.name, request, cost, whole, once, reads=True)
        self.run.payments.append(payment)

    def debit(
        self,
        message: SignedMessage,
        name: str,
        request: bytes,
        cost: tp.Cost = tp.NOTHING,
        whole: tp.Cost = tp.NOTHING,
        once: bool = False,
        reads: bool = False,
    ) -> None:
        """Tell the guard what a message costs; nothing, where it is part of what was paid for."""
        run, asked = self.run, (message.session, message.round)
        made = self.guard(Debit(*asked, name, request, cost, whole, run.receipt, once, reads))
        run.request = request
        if made is not None:
            run.receipt = made.receipt
            if made.earlier is not None:
                run.earlier, run.first = made.earlier, len(run.payments)

    def take_back(self, index: int) -> None:
        """Take back the payment of an answer that can never release anything; its debit stays."""
        run, before = self.run, self.spent
        del run.payments[index]
        run.first -= index < run.first
        run.earlier += added(self.spent, before)


def checked_query(query: tp.Query, view: tp.View, agreement: Agreement) -> tp.Query:
    """A query that shows no more, and divides the noise among no more parties, than agreed.

    Raises
    ------
    MalformedMessageError : for a query that a party does not answer.
    """
    if query.view is not view:
        raise MalformedMessageError(f"this message asks for the view {query.view.value!r}")
    agreed = query.step.view_under(query.protocol)
    if view is not (agreed or view) or (view is tp.View.MPC and agreed is None):
        raise MalformedMessageError(
            f"step {query.step.name} is not answered under the view {view.value!r}"
        )
    _check_sharing(query, len(agreement.parties))
    return query


def _check_sharing(query: tp.Query, parties: int) -> None:
    """Refuse a share of noise that was divided among others than the agreed parties.

    Where each of n parties draws 1/n of the noise, the noise protects a sum over n parties.
    Shares of 1/(100 n) would leave a hundredth of the variance.
    """
    if query.step.shares is None:
        if query.view is tp.View.SUM:
            raise MalformedMessageError(
                f"step {query.step.name} does not declare who shares its noise, so it is not "
                "summed between parties"
            )
        return
    sharing = query.step.shares(query)
    if sharing is not None and (type(sharing) is not int or sharing != parties):
        raise MalformedMessageError(
            f"{parties} parties share the noise, and the message says {sharing!r:.40}"
        )


def program_of(query: tp.Query) -> mpc.MPCProgram:
    """How parties compute what a query asks of them together."""
    if query.step.computes is None:
        raise MalformedMessageError(f"step {query.step.name} declares no program for real parties")
    return query.step.computes()


def with_room(query: tp.Query, agreement: Agreement) -> tp.Query:
    """The query with the records of a party for which its sum has room."""
    return replace(query, most_records=agreement.most_records)


def sum_terms(
    agreement: Agreement, session: bytes, encoded: bytes, query: tp.Query, attempt: int
) -> terms.SumTerms:
    """The terms of an attempt at the sum that one query of a run is for.

    They name the run and the query, so that parties with another query are in another sum.
    All parties of the agreement are in the roster, present or not: none of them chooses it.

    Parameters
    ----------
    agreement : what was agreed.
    session : the run.
    encoded : the query as it was sent.
    query : the query with room for the agreed records.
    attempt : which attempt, from 0.

    Raises
    ------
    ValueError : for an agreement of one party, or numbers that no sum can have.
    """
    name = b"tacit sum of a run 2" + agreement.digest + session + sha256(encoded).digest()
    parties = len(agreement.parties)
    min_clients = max(agreement.min_clients, agreement.protocol.min_clients(parties))
    runs = fields.runs_of(query)
    return terms.SumTerms(
        sha256(name).digest()[: terms.SESSION_BYTES],
        Roster(agreement.parties),
        sum(math.prod(shape) for shape in fields.layout_of(query).values()),
        LARGEST_WORD if runs else agreement.largest,
        graph.Neighbourhood.of(parties, agreement.bears, min_clients),
        attempt,
        runs,
    )
