"""The coordinator of a run: carries a protocol's conversation by letters, without I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tacit.crypto.identities import Identity
from tacit.crypto.secure_sum import new_session
from tacit.crypto.sum_errors import ReplayError, SumError
from tacit.privacy.cost import NOTHING, Cost
from tacit.protocols.conversation import Ask, View
from tacit.protocols.hidden_ranks import rank_together
from tacit.protocols.messages import MessageError
from tacit.protocols.paired_ustatistic import compute_pairs
from tacit.protocols.values import named_values
from tacit.results.findings import Findings
from tacit.running.exchanges import EachExchange, Exchange, Letters, SumExchange
from tacit.running.keeping import cost_of
from tacit.running.letters import (
    COORDINATOR,
    Agreement,
    ForeignLetterError,
    Kind,
    Letter,
    MalformedLetterError,
    StaleLetterError,
    opened,
)
from tacit.running.reasons import checked_reason, printable

SUM_ATTEMPTS = 3
"""How often a run that restarts tries one sum."""

JOINT = frozenset({compute_pairs.name, rank_together.name})
"""Steps that parties compute together."""


class RunError(RuntimeError):
    """A run that ended without a result.

    ``refusals`` are the letters that were not accepted, as far as the runner kept them.
    """

    refusals: tuple[Any, ...] = ()


class LostPartyError(RunError):
    """Parties vanished after others had answered with regard to them.

    Parameters
    ----------
    lost : their places.
    """

    def __init__(self, lost: Sequence[int]) -> None:
        names = " and ".join(str(place) for place in lost)
        super().__init__(
            f"party {names} vanished after the first round, on which the others' replies depend"
        )
        self.lost = tuple(lost)


class Coordinator:
    """Asks the parties what a protocol's conversation asks, until it has found its figure.

    ``open`` and then each ``close`` give the letters of the next leg, by party; ``receive`` takes
    the replies that come. The caller decides when it has waited long enough. Who did not answer a
    leg has left the run. A leg may be lost without harm in the first ask, and in asks for sums; in
    a later ask every reply is needed.

    Parameters
    ----------
    agreement : what was agreed.
    identity : the coordinator's signing key.
    parties : who is asked; None asks all.
    attempts : how often a sum is tried for which too few parties stayed; each attempt after the
        first costs what the sum costs, where a party had sent its numbers.

    Raises
    ------
    ValueError : for an identity that is not the agreement's coordinator.
    """

    def __init__(
        self,
        agreement: Agreement,
        identity: Identity,
        parties: Sequence[int] | None = None,
        attempts: int = 1,
    ) -> None:
        if identity.public != agreement.coordinator:
            raise ValueError("the identity is not that of the agreement's coordinator")
        everybody = range(len(agreement.parties))
        self.session = new_session()
        self.active = tuple(everybody if parties is None else parties)
        self.asks = 0
        self.spent: dict[int, Cost] = dict.fromkeys(self.active, NOTHING)
        self.declined: dict[int, str] = {}
        self.findings: Findings | None = None
        self._agreement, self._identity = agreement, identity
        self._conversation = agreement.protocol.conversation(len(agreement.parties))
        self._attempts = attempts
        self._turn = -1
        self._waiting: set[int] = set()
        self._exchange: Exchange | None = None

    @property
    def turn(self) -> int:
        """The number of the present leg, from 0."""
        return self._turn

    @property
    def waiting(self) -> tuple[int, ...]:
        """Whose replies to the present leg have not come."""
        return tuple(sorted(self._waiting))

    def open(self) -> dict[int, bytes]:
        """The first letters, by party.

        Raises
        ------
        RunError : for a protocol with a step that parties compute together, before anybody spends.
        """
        for step in self._agreement.protocol.steps:
            if step.name in JOINT:
                raise _between_parties(step.name)
        return self._begin(next(self._conversation))

    def receive(self, sender: int, message: bytes) -> None:
        """Take a party's reply.

        Parameters
        ----------
        sender : the party that the message came from, as the caller's connection tells.
        message : what ``Party.answer`` gave.

        Raises
        ------
        LetterError : for a letter that is not accepted: of another run, forged, late, a second one,
            or not an answer. Nothing was changed.
        """
        if sender not in self.spent:
            raise ForeignLetterError(f"party {sender} was not asked")
        letter = opened(message, self._agreement, sender, COORDINATOR)
        if letter.session != self.session:
            raise ForeignLetterError("this letter is of another run")
        if letter.turn != self._turn:
            raise StaleLetterError(f"a reply to turn {letter.turn} came in turn {self._turn}")
        if sender not in self._waiting or self._exchange is None:
            raise StaleLetterError(f"party {sender} has answered turn {letter.turn}, or has left")
        try:
            if letter.kind is Kind.DECLINE:
                self.declined[sender] = _reason(letter.body)
            else:
                said = named_values(letter.body, content=bytes, spent=dict)
                cost = cost_of(said["spent"])
                self._exchange.take(sender, said["content"])
                self.spent[sender] = cost
        except ReplayError as error:
            raise StaleLetterError(str(error)) from error
        except (MessageError, SumError) as error:
            raise MalformedLetterError(printable(str(error))) from error
        self._waiting.discard(sender)

    def close(self) -> dict[int, bytes]:
        """End the leg: the next letters, by party; none when ``findings`` are there.

        Raises
        ------
        RunError : when too few parties are left for a result.
        LostPartyError : when one vanished whose reply the rest depends on.
        """
        exchange = self._exchange
        if exchange is None:
            raise RunError("no leg is open")
        try:
            letters = exchange.close()
        except (SumError, MessageError) as error:
            raise RunError(f"{error}{self._reasons()}") from error
        if letters:
            return self._sealed(letters)
        return self._conclude(exchange)

    def _conclude(self, exchange: Exchange) -> dict[int, bytes]:
        """Take in the reply of an ask, and go on with the next one."""
        self.declined |= exchange.refused
        lost = sorted(set(self.active) - set(exchange.members))
        if len(exchange.members) < self._agreement.fewest:
            raise RunError(
                f"a result needs {self._agreement.fewest} parties, "
                f"and {len(exchange.members)} answered{self._reasons()}"
            )
        if lost and self.asks > 1 and isinstance(exchange, EachExchange):
            raise LostPartyError(lost)
        self.active, self._exchange = exchange.members, None
        try:
            ask = self._conversation.send(exchange.reply)
        except StopIteration as end:
            self.findings = end.value
            return {}
        except (ValueError, TypeError, LookupError) as error:
            raise RunError(f"nothing follows from what the parties replied: {error}") from error
        return self._begin(ask)

    def _begin(self, ask: Ask) -> dict[int, bytes]:
        self.asks += 1
        if ask.view is View.JOINT:
            raise _between_parties(ask.step.name)
        if ask.view is View.SUM:
            self._exchange = SumExchange(
                ask, self.active, self._agreement, self.session, self._attempts
            )
        else:
            self._exchange = EachExchange(ask, self.active)
        return self._sealed(self._exchange.open())

    def _sealed(self, letters: Letters) -> dict[int, bytes]:
        self._turn += 1
        self._waiting = set(letters)
        return {
            party: Letter(kind, self.session, self._turn, COORDINATOR, party, body).sealed(
                self._agreement, self._identity
            )
            for party, (kind, body) in letters.items()
        }

    def _reasons(self) -> str:
        told = [f"party {party} declined: {why}" for party, why in sorted(self.declined.items())]
        return "".join(f"; {one}" for one in told)


def _reason(body: bytes) -> str:
    """Why a party declines: results and terminals show it, so it is short and printable.

    Raises
    ------
    MessageError : for any other reason.
    """
    reason = named_values(body, reason=str)["reason"]
    try:
        return checked_reason(reason)
    except ValueError as error:
        raise MessageError(str(error)) from None


def _between_parties(step: str) -> RunError:
    return RunError(f"step {step} is computed between parties: this runner does not do that")
