"""How a protocol is written: a server that asks, client steps that answer.

A protocol's server is a generator. It yields an ``Ask`` and receives the clients' reply; it never
sees a socket or a record. A client step is a pure function of a batch of clients: the same function
answers for one hospital and simulates a million phones. Whoever runs the conversation only carries
messages, and shows the server what the ask's ``View`` allows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.identities import Identity, Roster
from tacit.data.clients import Clients, Ragged
from tacit.metrics.ranking import auc
from tacit.privacy.cost import NOTHING, Cost
from tacit.privacy.noise import NoiseSource
from tacit.results.findings import Findings

Field = NDArray[Any] | Ragged[Any]
Reply = Mapping[str, Field]
"""Named fields. Arrays have the client axis last; ragged fields hold several values a client."""


class View(Enum):
    """What the server sees of the replies to an ask."""

    EACH = "each"
    """Every client's reply. A step answers with the client axis last, or ragged fields."""
    SUM = "sum"
    """The sum over clients only, as secure aggregation gives it. A step answers with the sum over
    its batch, in integers: one client's reply where the batch is that client."""
    JOINT = "joint"
    """What the clients compute together and no one sees in parts. The step is the ideal
    functionality: it answers for all clients of the run at once, and its reply, without a client
    axis, is all that the server receives. A runner between real parties replaces the step by
    cryptography, or refuses; answering for some of the clients alone has no meaning."""


class Memory:
    """A batch of clients' private notebook, kept between steps and evaluations.

    It belongs to one set of records: their labels, number and order must not change.
    ``after_taking`` is called whenever a note was taken out: who keeps notes on a disk sets it, to
    write them down without that note before anything is computed with it.
    """

    def __init__(self, whole: tuple[Memory, int, int] | None = None) -> None:
        self._notes: dict[tuple[Any, ...], Any] = {}
        self._parts: dict[tuple[int, int], Memory] = {}
        self._whole = whole
        self.after_taking: Callable[[], None] = lambda: None

    @property
    def notes(self) -> dict[tuple[Any, ...], Any]:
        """All notes, but for those of parts of the batch."""
        return dict(self._notes)

    def recall(self, key: tuple[Any, ...]) -> Any:
        """The note under ``key``, or None."""
        return self._notes.get(key)

    def recall_field(self, key: tuple[Any, ...]) -> Field | None:
        """A field of these clients, noted here or for the batch of which they are a part."""
        own: Field | None = self._notes.get(key)
        if own is not None or self._whole is None:
            return own
        batch, start, stop = self._whole
        found = batch.recall_field(key)
        return None if found is None else field_part(found, start, stop)

    def keep(self, key: tuple[Any, ...], note: Any) -> None:
        """Write a note."""
        self._notes[key] = note

    def take(self, key: tuple[Any, ...]) -> Any:
        """Tear a note out and return it, or None: it serves once, whatever happens afterwards."""
        if key not in self._notes:
            return None
        note = self._notes.pop(key)
        self.after_taking()
        return note

    def part(self, start: int, stop: int) -> Memory:
        """The notebook of the clients ``start`` to ``stop - 1`` of the batch."""
        return self._parts.setdefault((start, stop), Memory((self, start, stop)))


StepFunction = Callable[[Clients, "Ask", NoiseSource, Memory], Reply]
Spending = Callable[[Clients, "Ask", Memory], Cost]
Speaking = Callable[[Clients, "Ask"], NDArray[np.bool_]]
Layout = Mapping[str, tuple[int, ...]]
"""The names of integer fields, with their shapes."""
Sharing = Callable[["Ask"], int | None]
"""How many clients an ask says to share the noise of a sum; None where nobody draws a share."""


def unshared(ask: Ask) -> None:
    """Nobody draws a share of noise: the sum is exact, or every client's own noise is whole."""


@dataclass(frozen=True)
class Step:
    """A client's part of a conversation, with what it spends.

    ``spends`` is asked before the step runs; it returns the most that any record of the batch
    spends, so that a client can refuse, or write the debit down, before it answers. ``speaks`` says
    which records the reply depends on, shape (M,): the others spend nothing. ``sums`` names the
    fields of a step that is asked for sums, with their shapes, from the ask alone: real secure
    aggregation agrees on them before anybody answers. ``shares`` says by how many clients the step
    divides its noise: what is drawn for a hundred protects nobody in a sum over ten. A party
    compares it with the agreement, and answers no sum whose step does not declare it.
    ``refuses_once`` is for a step that tests what the server sends: between real parties whatever
    it raises ends the run, and the server is told that it was refused, not why.
    """

    name: str
    answer: StepFunction
    spends: Spending
    speaks: Speaking
    sums: Callable[[Ask], Layout] | None = None
    shares: Sharing | None = None
    refuses_once: bool = False


def step(
    spends: Spending | None = None,
    speaks: Speaking | None = None,
    sums: Callable[[Ask], Layout] | None = None,
    shares: Sharing | None = None,
    refuses_once: bool = False,
) -> Callable[[StepFunction], Step]:
    """Declare a function to be a client step.

    Without ``spends`` it costs nothing; without ``speaks`` it is about all records; without
    ``sums`` and ``shares`` it can be simulated under ``View.SUM``, but not be summed securely.
    ``shares`` is ``unshared`` for a step that divides no noise. ``refuses_once`` makes any error in
    it the end of the run (``Step``).

    Examples
    --------
    >>> import numpy as np
    >>> @step(sums=lambda ask: {"records": ()}, shares=unshared)
    ... def count_records(clients, ask, noise, memory):
    ...     return {"records": np.asarray(clients.records)}
    >>> count_records.name
    'count_records'
    """

    def declare(function: StepFunction) -> Step:
        return Step(
            function.__name__,
            function,
            spends or (lambda clients, ask, memory: NOTHING),
            speaks or (lambda clients, ask: np.ones(clients.records, dtype=np.bool_)),
            sums,
            shares,
            refuses_once,
        )

    return declare


@dataclass(frozen=True)
class Ask:
    """What the server asks of every client.

    Parameters
    ----------
    step : the client step that answers.
    settings : the protocol, whose fields are public and agreed beforehand.
    shared : values that are the same for every client.
    each : values of which a client receives its own part; client axis last, or ragged.
    view : what the server sees of the replies.
    """

    step: Step
    settings: Any
    shared: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    each: Mapping[str, Field] = field(default_factory=lambda: MappingProxyType({}))
    view: View = View.EACH

    def part(self, start: int, stop: int) -> Ask:
        """The ask as the clients ``start`` to ``stop - 1`` receive it."""
        each = {name: field_part(value, start, stop) for name, value in self.each.items()}
        return Ask(self.step, self.settings, self.shared, each, self.view)


Conversation = Generator[Ask, Reply, Findings]


class Protocol(ABC):
    """A protocol's settings, its server side, and its declared guarantee."""

    name: str
    figure: str = "AUC"
    """What the protocol estimates."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The client steps that may be asked for under these settings; a client answers no other.

        A step under settings that it is not for may cost more than the protocol declares.
        """
        return ()

    @property
    def score_range(self) -> tuple[float, float] | None:
        """The public range in which scores must lie; None where only their order counts."""
        return None

    def fitted(self, clients: Clients) -> Clients:
        """The clients with values beyond the public range moved to its nearest end.

        Where a party answers to others, a refusal would tell them that one of its records is out of
        range. The map takes one record at a time, so that neighbouring records stay neighbours and
        every step keeps its guarantee.
        """
        if self.score_range is None:
            return clients
        return replace(clients, scores=np.clip(clients.scores, *self.score_range))

    @abstractmethod
    def conversation(self, clients: int) -> Conversation:
        """The server side, from the first ask to the findings; it asks so many clients."""

    def exact(self, clients: Clients) -> float:
        """The exact figure of all clients' records, which is not private."""
        return auc(clients.scores, clients.labels)

    def fewest(self, clients: int) -> int:
        """How many of so many clients must be in a sum for each to spend no more than declared."""
        return 1

    def enrol(self, memory: Memory, identity: Identity, roster: Roster) -> None:  # noqa: B027
        """Tell a client's notebook who it is and whom it may believe, before it answers.

        Protocols whose steps have keys of their own write it down; others need nothing.
        """

    @property
    @abstractmethod
    def guarantee(self) -> Cost:
        """What one evaluation costs each client at most."""

    @abstractmethod
    def draws(self, clients: Clients) -> int:
        """How many numbers one replicate holds in memory at once, for choosing chunks."""

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The settings by name, for a result."""


def field_part(value: Field, start: int, stop: int) -> Field:
    """The clients ``start`` to ``stop - 1`` of a field."""
    if isinstance(value, Ragged):
        return value.part(start, stop)
    return value[..., start:stop]


def stack(replies: list[Reply]) -> Reply:
    """Replies of consecutive batches as one reply."""
    return {name: _join([reply[name] for reply in replies]) for name in replies[0]}


def _join(parts: list[Field]) -> Field:
    ragged = [part for part in parts if isinstance(part, Ragged)]
    if not ragged:
        return np.concatenate([part for part in parts if not isinstance(part, Ragged)], axis=-1)
    sizes = np.concatenate([part.sizes for part in ragged])
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return Ragged(np.concatenate([part.values for part in ragged], axis=-1), offsets)


def total(replies: list[Reply]) -> Reply:
    """The sum of several batches' sums, as ``View.SUM`` shows it."""
    return {name: _sum_field(name, [reply[name] for reply in replies]) for name in replies[0]}


def _sum_field(name: str, parts: list[Field]) -> NDArray[Any]:
    summed = np.zeros((), dtype=np.int64)
    for part in parts:
        if isinstance(part, Ragged) or part.dtype != np.int64:
            raise TypeError(f"field {name!r} must be an array of 64-bit integers to be summed")
        summed = summed + part
    return summed
