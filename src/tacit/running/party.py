"""A party of a run: one client's records behind letters. It decides itself what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from tacit.crypto.identities import Identity, Roster
from tacit.crypto.secure_sum import SumTerms
from tacit.crypto.secure_sum_client import SumClient
from tacit.data.clients import Clients, DataError
from tacit.privacy.cost import Cost
from tacit.privacy.noise import NoiseSource
from tacit.protocols.ask_messages import decode_ask, encode_ask
from tacit.protocols.conversation import Ask, Layout, Memory, Reply, View
from tacit.protocols.messages import encode, reply_of
from tacit.protocols.values import decode_values, encode_values, named_values
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

NO_SESSION = b""
PARTY_BOUND = "clients"
"""The shared value that says how many clients were asked; noise is divided by it."""


UNANSWERABLE = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, MemoryError)
"""What a step raises when an ask's values are not what it needs."""

REFUSED = "it refuses what the coordinator sent"
"""All that is told of why a step that refuses once did so."""


class DeclinedError(Exception):
    """A party does not answer an ask, for a reason that it may tell everyone.

    Parameters
    ----------
    public : what everyone learns; it holds nothing of the records.
    """

    def __init__(self, public: str) -> None:
        super().__init__(public)
        self.public = public


@dataclass(frozen=True)
class Debit:
    """What a party is about to spend.

    Parameters
    ----------
    session : the run.
    turn : the letter that asks for it.
    step : the name of the step.
    request : SHA-256 of that letter.
    cost : what this step adds to what the run has cost.
    """

    session: bytes
    turn: int
    step: str
    request: bytes
    cost: Cost


Guard = Callable[[Debit], None]
"""Writes a debit down before the reply is computed, or raises ``DeclinedError``."""


@dataclass
class _Sum:
    """A secure sum in which the party takes part."""

    ask: Ask
    layout: Layout
    terms: SumTerms
    client: SumClient
    turn: int
    active: tuple[int, ...]
    rounds: int = 0


class Party:
    """Answers the letters of one run for one client's records.

    It answers a letter once, in turn, and repeats the same bytes when the same letter comes again.
    It answers only steps of the protocol that it agreed to, under the settings that it agreed to,
    and never spends more than that protocol's guarantee. It adds to one sum a step, over no fewer
    parties than were agreed.

    Parameters
    ----------
    place : the party's place in the agreement.
    identity : its signing key.
    agreement : what it agreed to.
    records : its own records, a batch of one client.
    noise : where its noise comes from.
    memory : its notebook of earlier runs; None starts an empty one.
    guard : is told of every debit before it is spent; None writes nothing down.

    Raises
    ------
    ValueError : for records of several clients, or an identity that is not the agreement's.
    """

    def __init__(
        self,
        place: int,
        identity: Identity,
        agreement: Agreement,
        records: Clients,
        noise: NoiseSource,
        memory: Memory | None = None,
        guard: Guard | None = None,
    ) -> None:
        if records.count != 1:
            raise ValueError(f"a party holds the records of one client, got {records.count}")
        if agreement.parties[place] != identity.public:
            raise ValueError(f"the identity is not that of party {place} in the agreement")
        self.place = place
        self._identity, self._agreement = identity, agreement
        self._records, self._noise = records, noise
        self._memory = Memory() if memory is None else memory
        self._guard = guard
        if len(agreement.parties) > 1:
            agreement.protocol.enrol(self._memory, identity, Roster(agreement.parties))
        self._session, self._turn = NO_SESSION, -1
        self._answered: tuple[bytes, bytes] = (b"", b"")
        self._payments: list[Payment] = []
        self._sum: _Sum | None = None
        self._added_to: list[str] = []
        self._declined = False

    def anew(self) -> Party:
        """The party for another run, with the same notebook and book."""
        return Party(
            self.place,
            self._identity,
            self._agreement,
            self._records,
            self._noise,
            self._memory,
            self._guard,
        )

    def restarted(self) -> Party:
        """The party as another process takes it up, with nothing but what it kept."""
        fresh = Party(
            self.place,
            self._identity,
            self._agreement,
            self._records,
            self._noise,
            None,
            self._guard,
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
            "declined": self._declined,
            "added_to": self._added_to,
            "notes": self._memory.notes,
            "sum": None
            if begun is None
            else {
                "ask": encode_ask(begun.ask),
                "turn": begun.turn,
                "active": begun.active,
                "rounds": begun.rounds,
                "client": begun.client.state,
            },
        }
        return encode_values(values, KEPT)

    def resume(self, state: bytes) -> None:
        """Go on from a state that this party gave in another process."""
        values = decode_values(state, KEPT)
        self._session, self._turn = values["session"], values["turn"]
        self._answered, self._payments = values["answered"], values["payments"]
        self._declined, self._added_to = values["declined"], values["added_to"]
        for key, note in values["notes"].items():
            self._memory.keep(key, note)
        begun = values["sum"]
        if begun is not None:
            ask = decode_ask(begun["ask"], self._agreement.protocol)
            self._sum = self._begun(ask, self._session, begun["turn"], begun["active"])
            terms, held = self._sum.terms, begun["client"]
            self._sum.client = SumClient.resumed(self._identity, terms, held)
            self._sum.rounds = begun["rounds"]

    @property
    def spent(self) -> Cost:
        """What the run has cost the record that spent most."""
        return most_spent(self._payments)

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
        answers = {Kind.ASK: self._to_ask, Kind.SUM: self._to_sum, Kind.ROUND: self._to_round}
        if letter.kind not in answers:
            raise MalformedLetterError(f"a coordinator does not send a {letter.kind.name.lower()}")
        try:
            content = answers[letter.kind](letter, request)
        except LetterError:
            raise
        except DataError as error:
            raise DeclinedError("its records do not fit the protocol") from error
        except UNANSWERABLE as error:
            raise MalformedLetterError(f"this letter cannot be answered: {error}") from error
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
        content = named_values(letter.body, ask=bytes, active=list)
        ask = self._checked(decode_ask(content["ask"], self._agreement.protocol), View.SUM)
        active = self._summed(content["active"])
        if ask.step.name in self._added_to:
            raise MalformedLetterError(f"step {ask.step.name} was summed in this run already")
        self._check_budget(ask)
        self._sum = self._begun(ask, letter.session, letter.turn, active)
        return self._sum.client.advertise()

    def _begun(self, ask: Ask, session: bytes, turn: int, active: tuple[int, ...]) -> _Sum:
        layout = layout_of(ask)
        terms = sum_terms(self._agreement, session, turn, active, length_of(layout))
        return _Sum(ask, layout, terms, SumClient(self._identity, terms), turn, active)

    def _to_round(self, letter: Letter, request: bytes) -> bytes:
        if self._sum is None:
            raise StaleLetterError("no sum has begun")
        content = named_values(letter.body, content=bytes)["content"]
        client = self._sum.client
        steps = (client.share, self._masked, client.reveal)
        if self._sum.rounds == 1:
            self._pay(self._sum.ask, letter, request)
            self._added_to.append(self._sum.ask.step.name)
        answer = steps[self._sum.rounds](content)
        self._sum.rounds += 1
        if self._sum.rounds == len(steps):
            self._sum = None
        return answer

    def _masked(self, delivery: bytes) -> bytes:
        if self._sum is None:
            raise StaleLetterError("no sum has begun")
        ask, layout = self._sum.ask, self._sum.layout
        reply = ask.step.answer(self._records, ask, self._noise, self._memory)
        return self._sum.client.mask(delivery, flattened(reply, layout))

    def _summed(self, active: list[Any]) -> tuple[int, ...]:
        """The parties of a sum, which must be enough, known, and this one among them."""
        known = range(len(self._agreement.parties))
        places = tuple(place for place in known if place in active)
        needed = self._agreement.protocol.fewest(len(known))
        fewest = max(2, self._agreement.fewest, needed)
        if list(places) != active or self.place not in places or len(places) < fewest:
            raise MalformedLetterError(
                f"a sum is over at least {fewest} parties in order, this one among them, "
                f"got {active!r:.80}"
            )
        return places

    def _checked(self, ask: Ask, view: View) -> Ask:
        """An ask that shows no more, and divides the noise by no more parties, than agreed."""
        if ask.view is not view:
            raise MalformedLetterError(f"this letter asks for the view {ask.view.value!r}")
        if ask.step.sums is not None and view is View.EACH:
            raise MalformedLetterError(f"step {ask.step.name} is answered in sums only")
        asked = ask.shared.get(PARTY_BOUND)
        if asked is not None and asked != len(self._agreement.parties):
            raise MalformedLetterError(
                f"{len(self._agreement.parties)} parties share the noise, and the letter says "
                f"{asked}"
            )
        return ask

    def _check_budget(self, ask: Ask) -> Payment:
        cost = ask.step.spends(self._records, ask, self._memory)
        payment = Payment(cost, ask.step.speaks(self._records, ask))
        after = most_spent([*self._payments, payment])
        if exceeds(after, self._agreement.protocol.guarantee):
            raise MalformedLetterError("this run asks for more than the agreed guarantee")
        return payment

    def _pay(self, ask: Ask, letter: Letter, request: bytes) -> None:
        """Write down what an ask adds to the cost of the run, before anything is computed."""
        payment, before = self._check_budget(ask), self.spent
        after = most_spent([*self._payments, payment])
        if self._guard is not None:
            cost = added(before, after)
            self._guard(Debit(letter.session, letter.turn, ask.step.name, request, cost))
        self._payments.append(payment)
