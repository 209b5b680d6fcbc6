"""The coordinator's side of one ask: who answered, and what the server may see of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.crypto.secure_sum_restart import SumRestart
from tacit.crypto.secure_sum_server import SumServer
from tacit.crypto.sum_errors import RefusedError, TooFewError
from tacit.data.clients import Ragged
from tacit.protocols.ask_messages import encode_ask
from tacit.protocols.conversation import Ask, Reply, stack
from tacit.protocols.messages import MessageError, as_reply, decode
from tacit.protocols.values import encode_values
from tacit.running.letters import Agreement, Kind
from tacit.running.sums import layout_of, length_of, shaped, sum_terms

Letters = dict[int, tuple[Kind, bytes]]
"""What goes to each party."""


class Exchange(ABC):
    """One ask, in one or more legs. After the last one there is a reply of those who took part.

    Parameters
    ----------
    active : the parties that are asked, ascending.
    """

    def __init__(self, active: tuple[int, ...]) -> None:
        self.active = active
        self.members: tuple[int, ...] = ()
        self.refused: dict[int, str] = {}
        self.reply: Reply = {}

    @abstractmethod
    def open(self) -> Letters:
        """The first letters."""

    @abstractmethod
    def take(self, party: int, content: bytes) -> None:
        """Take what a party answered in this leg; ValueError for what cannot be an answer."""

    @abstractmethod
    def close(self) -> Letters:
        """End the leg: the next letters, or none when the reply is there."""


class EachExchange(Exchange):
    """The server sees every party's reply.

    Replies must have the same fields, types and shapes. Where a few differ from more than half of
    all, those few are refused.
    """

    def __init__(self, ask: Ask, active: tuple[int, ...]) -> None:
        super().__init__(active)
        self._ask = ask
        self._came: dict[int, Reply] = {}

    def open(self) -> Letters:
        """Every party's own part of the ask."""
        return {
            party: (Kind.ASK, encode_ask(self._ask.part(place, place + 1)))
            for place, party in enumerate(self.active)
        }

    def take(self, party: int, content: bytes) -> None:
        """Keep a reply whose numbers are numbers."""
        reply = as_reply(decode(content))
        for name, value in reply.items():
            numbers = value.values if isinstance(value, Ragged) else value
            if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
                raise MessageError(f"field {name!r} holds a number that is not finite")
        self._came[party] = reply

    def close(self) -> Letters:
        """All replies of the common form, in the order of the parties."""
        forms = {party: _form(self._came[party]) for party in sorted(self._came)}
        if forms:
            common, times = Counter(forms.values()).most_common(1)[0]
            if 2 * times <= len(forms):
                raise MessageError("the parties' replies have different forms, and none prevails")
            self.members = tuple(party for party, form in forms.items() if form == common)
            others = forms.keys() - set(self.members)
            self.refused = dict.fromkeys(others, "its reply has another form than the others'")
            self.reply = stack([self._came[party] for party in self.members])
        return {}


class SumExchange(Exchange):
    """The server sees the sum of all replies, by a secure sum of five legs.

    Where too few parties are left before any has revealed a share, parties are asked to give the
    attempt up, and those who do are asked again.

    Parameters
    ----------
    ask : what is summed.
    active : the parties that are asked.
    agreement : what was agreed.
    session : the run.
    attempts : how often the sum is tried.
    """

    def __init__(
        self,
        ask: Ask,
        active: tuple[int, ...],
        agreement: Agreement,
        session: bytes,
        attempts: int = 1,
    ) -> None:
        super().__init__(active)
        self._ask, self._layout = encode_ask(ask), layout_of(ask)
        self._step, self._attempts = ask.step.name, attempts
        self._terms = sum_terms(agreement, session, self._ask, length_of(self._layout), 0)
        self._server = SumServer(self._terms)
        self._restart: SumRestart | None = None

    def open(self) -> Letters:
        """The ask."""
        return self._asked(self.active, b"")

    def _asked(self, parties: tuple[int, ...], restart: bytes) -> Letters:
        values = {"ask": self._ask, "attempt": self._terms.attempt, "restart": restart}
        return dict.fromkeys(parties, (Kind.SUM, encode_values(values)))

    def take(self, party: int, content: bytes) -> None:
        """Hand a message to the sum."""
        receiver = self._server if self._restart is None else self._restart
        receiver.receive(party, content)

    def close(self) -> Letters:
        """The sum's next messages, or its result."""
        if self._restart is not None:
            return self._begun_again(self._restart)
        if self._server.is_revealing:
            result = self._server.conclude()
            self.members, self.reply = result.clients, shaped(result.total, self._layout)
            return {}
        try:
            messages = self._server.close_round()
        except (TooFewError, RefusedError):
            if self._terms.attempt + 1 >= self._attempts:
                raise
            return self._given_up()
        return {
            party: (Kind.ROUND, encode_values({"content": message}))
            for party, message in messages.items()
        }

    def _given_up(self) -> Letters:
        self._restart = SumRestart(self._terms)
        values = {"step": self._step, "attempt": self._terms.attempt}
        return dict.fromkeys(self.active, (Kind.RESTART, encode_values(values)))

    def _begun_again(self, restart: SumRestart) -> Letters:
        message = restart.message()
        self._terms, self._restart = restart.terms, None
        self._server = SumServer(self._terms)
        return self._asked(self.active, message)


def _form(reply: Mapping[str, Any]) -> tuple[Any, ...]:
    """A reply's fields with their types and shapes, but for how many values a party holds.

    Whole and real numbers are one type: with one mechanism a party may send either.
    """
    form = []
    for name in sorted(reply):
        value = reply[name]
        ragged = isinstance(value, Ragged)
        array = value.values if isinstance(value, Ragged) else value
        number = array.dtype in (np.int64, np.float64)
        form.append((name, ragged, "number" if number else array.dtype.str, array.shape[:-1]))
    return tuple(form)
