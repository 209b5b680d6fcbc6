"""A party of a run: one client's records behind letters. It decides itself what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from tacit.crypto.identities import Identity, Roster
from tacit.crypto.secure_sum import SumTerms
from tacit.crypto.secure_sum_client import SumClient
from tacit.data.clients import Clients, DataError
from tacit.privacy.cost import NOTHING, Cost
from tacit.privacy.noise import NoiseSource
from tacit.protocols.ask_messages import decode_ask
from tacit.protocols.conversation import Ask, Layout, Memory, Reply, View
from tacit.protocols.messages import encode, reply_of
from tacit.protocols.values import decode_values, encode_values, named_values
from tacit.running.debits import Account, Debit, DeclinedError, Guard
from tacit.running.keeping import KEPT, cost_values
from tacit.running.letters import (
    COORDINATOR,
    Agreement,
    ForeignLetterError,
    Kind,
    Letter,
    LetterError,
    MalformedLetterError,
    StaleLetterError,
    opened,
)
from tacit.running.spending import Payment, added, exceeds, most_spent
from tacit.running.sums import flattened, layout_of, length_of, sum_terms
from tacit.running.units import FOREIGN_UNIT, can_answer, for_plan

NO_SESSION = b""
MASKING = 1
"""The round of a sum in which a party sends its numbers, counted from the first after the ask."""

UNANSWERABLE = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, MemoryError)
"""What a step raises when an ask's values are not what it needs."""

REFUSED = "it refuses what the coordinator sent"
"""All that is told of why a step that refuses once did so."""


@dataclass
class _Sum:
    """A secure sum in which the party takes part."""

    asked: bytes
    ask: Ask
    layout: Layout
    terms: SumTerms
    client: SumClient
    rounds: int = 0
    payment: int | None = None
    """Which of the party's payments is for this attempt."""

    @property
    def attempt(self) -> int:
        """Which attempt at the sum this is, from 0."""
        return self.terms.attempt


class Party:
    """Answers the letters of one run for one client's records.

    It answers a letter once, in turn, and repeats the same bytes when the same letter comes again.
    It answers only steps of the protocol that it agreed to, under the settings that it agreed to,
    and never releases more than that protocol's guarantee. It adds to one sum a step, over no fewer
    parties than were agreed, and to another attempt at it only when the last can never be opened.

    Parameters
    ----------
    place : the party's place in the agreement.
    identity : its signing key.
    agreement : what it agreed to.
    records : its own records, a batch of one client, in its own unit; None where that cannot be
        converted to the agreed one, and the party declines.
    noise : where its noise comes from.
    guard : is told of every debit before the reply is computed, and of every other letter before
        the reply leaves. ``debits.unrecorded`` writes nothing down, and is for rehearsals only.
    memory : its notebook of earlier runs; None starts an empty one.
    unit : the word in its own file for what its scores are; None where it has none.

    Raises
    ------
    ValueError : for records of several clients, no records where it could answer, or
        an identity that is not the agreement's.
    """

    def __init__(
        self,
        place: int,
        identity: Identity,
        agreement: Agreement,
        records: Clients | None,
        noise: NoiseSource,
        guard: Guard,
        memory: Memory | None = None,
        unit: str | None = None,
    ) -> None:
        if records is not None and records.count != 1:
            raise ValueError(f"a party holds the records of one client, got {records.count}")
        if agreement.parties[place] != identity.public:
            raise ValueError(f"the identity is not that of party {place} in the agreement")
        self.place = place
        self._identity, self._agreement = identity, agreement
        self._given, self._unit, self._noise = records, unit, noise
        self._fits = can_answer(unit, agreement.unit, agreement.protocol)
        if self._fits:
            if records is None:
                raise ValueError("a party whose unit fits the agreement needs its records")
            self._records = for_plan(records, unit, agreement.unit, agreement.protocol)
        self._memory = Memory() if memory is None else memory
        self._guard = guard
        if len(agreement.parties) > 1:
            agreement.protocol.enrol(self._memory, identity, Roster(agreement.parties))
        self._session, self._turn = NO_SESSION, -1
        self._answered: tuple[bytes, bytes] = (b"", b"")
        self._payments: list[Payment] = []
        self._account = Account()
        self._sum: _Sum | None = None
        self._added_to: list[str] = []
        self._attempts: dict[str, int] = {}
        self._declined = False

    def anew(self) -> Party:
        """The party for another run, with the same notebook and book."""
        return Party(
            self.place,
            self._identity,
            self._agreement,
            self._given,
            self._noise,
            self._guard,
            self._memory,
            self._unit,
        )

    def restarted(self) -> Party:
        """The party as another process takes it up, with nothing but what it kept."""
        fresh = Party(
            self.place,
            self._identity,
            self._agreement,
            self._given,
            self._noise,
            self._guard,
            unit=self._unit,
        )
        fresh.resume(self.state)
        return fresh

    @property
    def has_begun(self) -> bool:
        """Whether the run has cost anything, or any letter was answered."""
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
            "turn": self._turn,
            "answered": self._answered,
            "payments": self._payments,
            "account": self._account,
            "declined": self._declined,
            "added_to": self._added_to,
            "attempts": self._attempts,
            "notes": self._memory.notes,
            "sum": None
            if begun is None
            else {
                "ask": begun.asked,
                "attempt": begun.attempt,
                "rounds": begun.rounds,
                "payment": begun.payment,
                "client": begun.client.state,
            },
        }
        return encode_values(values, KEPT)

    def resume(self, state: bytes) -> None:
        """Go on from a state that this party gave in another process."""
        values = decode_values(state, KEPT)
        self._session, self._turn = values["session"], values["turn"]
        self._answered, self._payments = values["answered"], values["payments"]
        self._account = values["account"]
        self._declined, self._added_to = values["declined"], values["added_to"]
        self._attempts = dict(values["attempts"])
        for key, note in values["notes"].items():
            self._memory.keep(key, note)
        begun = values["sum"]
        if begun is not None:
            ask = decode_ask(begun["ask"], self._agreement.protocol)
            layout = layout_of(ask)
            terms = self._sum_terms(begun["ask"], layout, self._session, begun["attempt"])
            client = SumClient.resumed(self._identity, terms, begun["client"])
            self._sum = _Sum(
                begun["ask"], ask, layout, terms, client, begun["rounds"], begun["payment"]
            )

    @property
    def spent(self) -> Cost:
        """What the run has cost the record that spent most; at most, where state was lost."""
        return self._account.earlier + most_spent(self._payments[self._account.first :])

    def answer(self, message: bytes) -> bytes:
        """The signed reply to a letter of the coordinator.

        Raises
        ------
        LetterError : for a letter that is not accepted. Nothing was spent or told.
        """
        letter = opened(message, self._agreement, COORDINATOR, self.place)
        request = sha256(message).digest()
        if request == self._answered[0]:
            return self._answered[1]
        if self._session not in (NO_SESSION, letter.session):
            raise ForeignLetterError("this letter is of another run")
        if letter.turn <= self._turn:
            raise StaleLetterError(f"turn {letter.turn} was answered, with another letter")
        if self._declined:
            raise StaleLetterError("this party has declined the run")
        try:
            kind, body = self._reply(letter, request)
        except DeclinedError as reason:
            self._declined = True
            kind, body = Kind.DECLINE, encode_values({"reason": reason.public})
        reply = Letter(kind, letter.session, letter.turn, self.place, COORDINATOR, body)
        sealed = reply.sealed(self._agreement, self._identity)
        self._session, self._turn = letter.session, letter.turn
        self._answered = (request, sealed)
        return sealed

    def _reply(self, letter: Letter, request: bytes) -> tuple[Kind, bytes]:
        answers = {
            Kind.ASK: self._to_ask,
            Kind.SUM: self._to_sum,
            Kind.ROUND: self._to_round,
            Kind.RESTART: self._to_restart,
        }
        if letter.kind not in answers:
            raise MalformedLetterError(f"a coordinator does not send a {letter.kind.name.lower()}")
        if not self._fits:
            raise DeclinedError(FOREIGN_UNIT)
        try:
            content = answers[letter.kind](letter, request)
        except LetterError:
            raise
        except DataError as error:
            raise DeclinedError("its records do not fit the protocol") from error
        except UNANSWERABLE as error:
            raise MalformedLetterError(f"this letter cannot be answered: {error}") from error
        if self._account.request != request:
            self._debit(letter, letter.kind.name.lower(), request)
        spent = cost_values(self.spent)
        return Kind.REPLY, encode_values({"content": content, "spent": spent})

    def _to_ask(self, letter: Letter, request: bytes) -> bytes:
        ask = self._checked(decode_ask(letter.body, self._agreement.protocol), View.EACH)
        self._pay(ask, letter, request)
        return encode(reply_of(self._computed(ask), 0))

    def _computed(self, ask: Ask) -> Reply:
        """What the step answers; a step that refuses once tells one bit, and ends the run."""
        try:
            return ask.step.answer(self._records, ask, self._noise, self._memory)
        except UNANSWERABLE as error:
            if ask.step.refuses_once:
                raise DeclinedError(REFUSED) from error
            raise

    def _to_sum(self, letter: Letter, request: bytes) -> bytes:
        content = named_values(letter.body, ask=bytes, attempt=int, restart=bytes)
        ask = self._checked(decode_ask(content["ask"], self._agreement.protocol), View.SUM)
        name, attempt = ask.step.name, content["attempt"]
        if name in self._added_to or attempt <= self._attempts.get(name, -1):
            raise MalformedLetterError(f"step {name} was summed in this run already")
        last = self._sum if self._sum is not None and self._sum.ask.step.name == name else None
        layout = layout_of(ask)
        terms = self._sum_terms(content["ask"], layout, letter.session, attempt)
        earlier = None if last is None else last.client
        client = SumClient(self._identity, terms, content["restart"], earlier)
        if last is not None:
            # the client has verified that nothing of the last attempt can be opened
            self._forget_payment(last)
        self._check_budget(ask)
        self._sum = _Sum(content["ask"], ask, layout, terms, client)
        self._attempts[name] = attempt
        return client.advertise()

    def _sum_terms(self, ask: bytes, layout: Layout, session: bytes, attempt: int) -> SumTerms:
        return sum_terms(self._agreement, session, ask, length_of(layout), attempt)

    def _to_restart(self, letter: Letter, request: bytes) -> bytes:
        """Give an attempt up: its secrets are erased, its vector will never be unmasked."""
        content = named_values(letter.body, step=str, attempt=int)
        begun = self._sum
        asked = (content["step"], content["attempt"])
        if begun is None or asked != (begun.ask.step.name, begun.attempt):
            raise StaleLetterError("no such attempt at a sum is open")
        return begun.client.give_up()

    def _forget_payment(self, begun: _Sum) -> None:
        """Take back what released nothing and never will; the book keeps it."""
        if begun.payment is None:
            return
        del self._payments[begun.payment]
        if begun.payment < self._account.first:
            self._account = replace(self._account, first=self._account.first - 1)
        begun.payment = None

    def _to_round(self, letter: Letter, request: bytes) -> bytes:
        begun = self._sum
        if begun is None:
            raise StaleLetterError("no sum has begun")
        content = named_values(letter.body, content=bytes)["content"]
        client = begun.client
        steps = (client.share, self._masked, client.certify, client.reveal)
        if begun.rounds == MASKING:
            self._forget_payment(begun)
            self._pay(begun.ask, letter, request)
            begun.payment = len(self._payments) - 1
        answer = steps[begun.rounds](content)
        begun.rounds += 1
        if begun.rounds == len(steps):
            self._added_to.append(begun.ask.step.name)
            self._sum = None
        return answer

    def _masked(self, delivery: bytes) -> bytes:
        if self._sum is None:
            raise StaleLetterError("no sum has begun")
        ask, layout = self._sum.ask, self._sum.layout
        return self._sum.client.mask(delivery, flattened(self._computed(ask), layout))

    def _checked(self, ask: Ask, view: View) -> Ask:
        """An ask that shows no more, and divides the noise among no more parties, than agreed."""
        if ask.view is not view:
            raise MalformedLetterError(f"this letter asks for the view {ask.view.value!r}")
        if ask.step.sums is not None and view is View.EACH:
            raise MalformedLetterError(f"step {ask.step.name} is answered in sums only")
        self._check_sharing(ask)
        return ask

    def _check_sharing(self, ask: Ask) -> None:
        """Refuse a share of noise that was divided among others than the agreed parties.

        Noise of which each of n parties draws one part in n protects a sum over n; one part in 100
        n leaves a hundredth of the variance.
        """
        if ask.step.shares is None:
            if ask.view is View.SUM:
                raise MalformedLetterError(
                    f"step {ask.step.name} does not declare who shares its noise, so it is not "
                    "summed between parties"
                )
            return
        parties, asked = len(self._agreement.parties), ask.step.shares(ask)
        if asked is not None and (type(asked) is not int or asked != parties):
            raise MalformedLetterError(
                f"{parties} parties share the noise, and the letter says {asked!r:.40}"
            )

    def _check_budget(self, ask: Ask) -> Payment:
        cost = ask.step.spends(self._records, ask, self._memory)
        payment = Payment(cost, ask.step.speaks(self._records, ask))
        after = most_spent([*self._payments, payment])
        if exceeds(after, self._agreement.protocol.guarantee):
            raise MalformedLetterError("this run asks for more than the agreed guarantee")
        return payment

    def _pay(self, ask: Ask, letter: Letter, request: bytes) -> None:
        """Write down what an ask adds to the cost of the run, before anything is computed.

        Where the ledger knows more of the run than this party does, the whole cost is debited: a
        record that spoke in an answer that was forgotten may be the one that speaks now.
        """
        payment = self._check_budget(ask)
        counted = self._payments[self._account.first :]
        cost = added(most_spent(counted), most_spent([*counted, payment]))
        self._debit(letter, ask.step.name, request, cost, payment.cost)
        self._payments.append(payment)

    def _debit(
        self, letter: Letter, name: str, request: bytes, cost: Cost = NOTHING, whole: Cost = NOTHING
    ) -> None:
        account = replace(self._account, request=request)
        debit = Debit(letter.session, letter.turn, name, request, cost, whole, account.receipt)
        made = self._guard(debit)
        if made is not None:
            account = replace(account, receipt=made.receipt)
            if made.earlier is not None:
                account = replace(account, earlier=made.earlier, first=len(self._payments))
        self._account = account
