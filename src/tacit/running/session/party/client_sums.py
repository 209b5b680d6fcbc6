"""A party's side of the secure sums of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tacit.crypto.identities import Identity
from tacit.crypto.secure_sum.client import SumClient
from tacit.crypto.secure_sum.terms import SumTerms
from tacit.protocol.conversation import Layout, Query, View
from tacit.protocol.encoding.queries import decode_query
from tacit.protocol.encoding.sum_widths import layout_of
from tacit.protocol.encoding.values import named_values
from tacit.running.session.messages import (
    Agreement,
    MalformedMessageError,
    SignedMessage,
    StaleMessageError,
)
from tacit.running.session.party.answers import Answers
from tacit.running.session.party.checks import checked_query
from tacit.running.session.sums import flattened, sum_terms, with_room

MASKING = 1
"""The round of a sum in which a party sends its numbers, counted from the first after the query."""


@dataclass
class OpenSum:
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


class ClientSums:
    """The sums of a run in which a party takes part, one open at a time.

    Parameters
    ----------
    identity : the party's signing key.
    agreement : what it agreed to.
    answers : what it computes and pays for.
    """

    def __init__(self, identity: Identity, agreement: Agreement, answers: Answers) -> None:
        self._identity, self._agreement, self._answers = identity, agreement, answers
        self.open: OpenSum | None = None
        self.attempts: dict[str, int] = {}

    @property
    def state(self) -> dict[str, Any] | None:
        """Where the open sum stands, with its secrets; None where none is open."""
        begun = self.open
        if begun is None:
            return None
        return {
            "ask": begun.query_bytes,
            "attempt": begun.attempt,
            "rounds": begun.rounds,
            "payment": begun.payment,
            "client": begun.client.state,
        }

    def resume(self, begun: Mapping[str, Any], session: bytes) -> None:
        """Go on with a sum from the state that ``state`` gave."""
        query = with_room(decode_query(begun["ask"], self._agreement.protocol), self._agreement)
        layout = layout_of(query)
        terms = self._terms(begun["ask"], query, session, begun["attempt"])
        client = SumClient.resumed(self._identity, terms, begun["client"])
        self.open = OpenSum(
            begun["ask"], query, layout, terms, client, begun["rounds"], begun["payment"]
        )

    def begin(self, message: SignedMessage, request: bytes) -> bytes:
        """Begin a sum, or another attempt at the last one where that can never be unmasked."""
        content = named_values(message.body, ask=bytes, attempt=int, restart=bytes)
        decoded = decode_query(content["ask"], self._agreement.protocol)
        query = with_room(checked_query(decoded, View.SUM, self._agreement), self._agreement)
        name, attempt = query.step.name, content["attempt"]
        if name in self._answers.closed or attempt <= self.attempts.get(name, -1):
            raise MalformedMessageError(f"step {name} was summed in this run already")
        last = self.open if self.open is not None and self.open.query.step.name == name else None
        layout = layout_of(query)
        terms = self._terms(content["ask"], query, message.session, attempt)
        earlier = None if last is None else last.client
        client = SumClient(self._identity, terms, content["restart"], earlier)
        if last is not None:
            # the client has verified that nothing of the last attempt can be unmasked
            self._take_back(last)
        self._answers.check_budget(query)
        self.open = OpenSum(content["ask"], query, layout, terms, client)
        self.attempts[name] = attempt
        return client.advertise()

    def _terms(self, encoded: bytes, query: Query, session: bytes, attempt: int) -> SumTerms:
        return sum_terms(self._agreement, session, encoded, query, attempt)

    def give_up(self, message: SignedMessage, request: bytes) -> bytes:
        """Give up an attempt: erase its secrets, so that its vector can never be unmasked."""
        content = named_values(message.body, step=str, attempt=int)
        begun = self.open
        named = (content["step"], content["attempt"])
        if begun is None or named != (begun.query.step.name, begun.attempt):
            raise StaleMessageError("no such attempt at a sum is open")
        return begun.client.give_up()

    def next_round(self, message: SignedMessage, request: bytes) -> bytes:
        """Answer the next round of the open sum; the round of masked numbers is paid for first.

        Up to that round an answer leaves once: it holds what is drawn for it, under keys that serve
        once. Later answers are the same whenever the same message comes.
        """
        begun = self.open
        if begun is None:
            raise StaleMessageError("no sum has begun")
        content = named_values(message.body, content=bytes)["content"]
        client = begun.client
        steps = (client.share, self._masked, client.certify, client.reveal)
        if begun.rounds == MASKING:
            self._take_back(begun)
            self._answers.pay(begun.query, message, request)
            begun.payment = len(self._answers.payments) - 1
        answer = steps[begun.rounds](content)
        if begun.rounds < MASKING:
            self._answers.debit(message, message.kind.name.lower(), request, once=True)
        begun.rounds += 1
        if begun.rounds == len(steps):
            self._answers.closed.append(begun.query.step.name)
            self.open = None
        return answer

    def _masked(self, delivery: bytes) -> bytes:
        if self.open is None:
            raise StaleMessageError("no sum has begun")
        query, layout = self.open.query, self.open.layout
        return self.open.client.mask(delivery, flattened(self._answers.computed(query), layout))

    def _take_back(self, begun: OpenSum) -> None:
        """Take back the payment of an attempt that can never release anything."""
        if begun.payment is not None:
            self._answers.take_back(begun.payment)
            begun.payment = None
