"""What a server asks and what answers: queries, views, and client steps with their cost.

Replies to a query: named fields of a batch of clients, cut, stacked and added up. What a client
remembers between steps, rounds and evaluations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import Clients
from tacit.data.ragged import Ragged
from tacit.privacy.cost import NOTHING, Cost
from tacit.privacy.noise import NoiseSource
from tacit.protocol.mpc import MPCProgram
from tacit.protocol.trust import Each, trust_of

Field = NDArray[Any] | Ragged[Any]
Reply = Mapping[str, Field]
"""Named fields. Arrays have the client axis last; ragged fields hold several values a client."""


def field_part(value: Field, start: int, stop: int) -> Field:
    """The clients ``start`` to ``stop - 1`` of a field."""
    if isinstance(value, Ragged):
        return value.part(start, stop)
    return value[..., start:stop]


def stack(replies: list[Reply]) -> Reply:
    """Replies of consecutive batches as one reply."""
    return {name: _join([reply[name] for reply in replies]) for name in replies[0]}


def _join(parts: list[Field]) -> Field:
    if len(parts) == 1:
        return parts[0]
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


class ClientState:
    """A batch of clients' private state, which lasts between steps and evaluations.

    What it holds by the place of a record serves these records in this order only. ``after_taking``
    is called whenever a note was taken out: who keeps notes on a disk sets it, to write them down
    without that note before anything is computed with it.

    Parameters
    ----------
    whole : the batch of which these clients are a part, and from where to where.
    same_places : whether the caller vouches that every record keeps its place when all get other
        scores, as a test set does that another model has scored. Nothing can check this: with
        labels alone in their places, two records of one label could have changed places.
    """

    def __init__(
        self, whole: tuple[ClientState, int, int] | None = None, *, same_places: bool = False
    ) -> None:
        self.same_places = same_places
        self._notes: dict[tuple[Any, ...], Any] = {}
        self._parts: dict[tuple[int, int], ClientState] = {}
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
        noted: Field | None = self._notes.get(key)
        if noted is not None or self._whole is None:
            return noted
        batch, start, stop = self._whole
        batch_field = batch.recall_field(key)
        return None if batch_field is None else field_part(batch_field, start, stop)

    def keep(self, key: tuple[Any, ...], note: Any) -> None:
        """Write a note."""
        self._notes[key] = note

    def take(self, key: tuple[Any, ...]) -> Any:
        """Remove a note and return it, or None: it is used once, whatever happens afterwards."""
        if key not in self._notes:
            return None
        note = self._notes.pop(key)
        self.after_taking()
        return note

    def part(self, start: int, stop: int) -> ClientState:
        """The state of the clients ``start`` to ``stop - 1`` of the batch."""
        made = ClientState((self, start, stop), same_places=self.same_places)
        return self._parts.setdefault((start, stop), made)


class Lasting:
    """A note that outlives a run: what was released once, and may be used again at no cost."""


MAX_RECORDS = 2**32
"""Number of records of a client for which sums have room where parties agree on no other."""

MAX_SUM = 2**62
"""Largest magnitude of a sum that any step may give as its bound."""

WRAP_BITS = 80
"""Minus the base-2 logarithm of the probability with which one number passes its bound."""


class PublicRefusalError(ValueError):
    """A step does not answer, for a reason that everyone may read: it follows from no record.

    Real parties decline the run and send the message, of at most 200 printable characters.
    """


class View(Enum):
    """What the server sees of the replies to a query."""

    EACH = "each"
    """Every client's reply. A step answers with the client axis last, or ragged fields."""
    SUM = "sum"
    """The sum over clients only, as secure aggregation gives it. A step answers with the sum over
    its batch, in integers: one client's reply where the batch is that client."""
    MPC = "joint"
    """What the clients compute together and no one sees in parts. The step is the ideal
    functionality: it answers for all clients of the run at once, and its reply, without a client
    axis, is all that the server receives. Real parties replace the step by its program
    (``Step.computes``), or refuse; answering for some of the clients alone has no meaning."""


StepFunction = Callable[[Clients, "Query", NoiseSource, ClientState], Reply]
StepCost = Callable[[Clients, "Query", ClientState], Cost]
Participation = Callable[[Clients, "Query"], NDArray[np.bool_]]
Layout = Mapping[str, tuple[int, ...]]
"""The names of integer fields, with their shapes."""
Bounds = Callable[["Query"], Mapping[str, int]]
"""By field, the largest magnitude of its sums over all clients."""
Releases = Callable[["Query"], Mapping[str, Any]]
"""By field, what a step releases (``tacit.protocol.releases``), from the query alone."""
NoiseSharing = Callable[["Query"], int | None]
"""The number of clients that divide the noise of a sum, by the query; None where none divides
it."""


def _free(clients: Clients, query: Query, state: ClientState) -> Cost:
    return NOTHING


def everybody(clients: Clients, query: Query) -> NDArray[np.bool_]:
    """All records, as one value that is read M times: memory may have no room for M values."""
    return np.broadcast_to(np.True_, (clients.records,))


def unshared(query: Query) -> None:
    """No client draws a noise share: the sum is exact, or each client adds whole noise."""


@dataclass(frozen=True)
class Step:
    """A client's part of a conversation, with what it spends.

    ``cost`` is called before the step runs; it returns the most that any record of the batch
    spends, so that a client can refuse, or write the debit down, before it answers.
    ``participates`` says which records the reply depends on, shape (M,): the others spend nothing.
    ``sums`` names the fields of a step that is asked for sums, with their shapes, from the query
    alone: real secure aggregation agrees on them before anybody answers. ``shares`` says by how
    many clients the step divides its noise: noise that is divided by a hundred does not protect a
    sum over ten. A party compares it with the agreement, and answers no sum whose step does not
    declare it. ``bounds`` gives the largest magnitude of every field's sum over all clients, from
    the query alone, with noise that is larger with a probability below ``2**-WRAP_BITS``: a secure
    sum then sends just as many bits. ``refuses_once`` is for a step that tests what the server
    sends: between real parties whatever it raises ends the run, and the server learns that it was
    refused, not why. ``once`` is for a step that begins something of which a run has one, such as
    the records' turns or the session of a key, or uses up keys that serve once: a real party
    answers it once a run, also where an older copy of its state was put back. ``computes`` makes
    the program by which real clients compute a step that is asked for with ``View.MPC``; without it
    they refuse the step. ``releases`` is what a step declares that was made by ``release``, from
    which all others follow.
    """

    answer: StepFunction
    cost: StepCost = _free
    participates: Participation = everybody
    sums: Callable[[Query], Layout] | None = None
    shares: NoiseSharing | None = None
    refuses_once: bool = False
    once: bool = False
    computes: Callable[[], MPCProgram] | None = None
    bounds: Bounds | None = None
    releases: Releases | None = None

    @property
    def name(self) -> str:
        """The function's name, by which queries name the step."""
        return self.answer.__name__

    def view_under(self, protocol: Any) -> View | None:
        """The only view under which clients answer the step; None where a query may choose."""
        if self.computes is not None:
            return View.MPC
        if self.releases is not None and isinstance(trust_of(protocol), Each):
            return View.EACH
        return None if self.sums is None else View.SUM

    def fields(self, query: Query) -> Mapping[str, Any]:
        """What a step releases that was made by ``release``.

        Raises
        ------
        TypeError : for another step.
        """
        if self.releases is None:
            raise TypeError(f"{self.name} does not declare what it releases: make it by release")
        return self.releases(query)

    def __reduce__(self) -> tuple[Callable[[str, str], Step], tuple[str, str]]:
        """Where it is declared: in another process it is the same step, not a copy."""
        return _declared, (self.answer.__module__, self.name)

    @property
    def summary(self) -> str:
        """The first paragraph of its docstring; its name where there is none.

        Examples
        --------
        >>> def send_counts(clients, query, noise, state): ...
        >>> Step(send_counts).summary
        'send counts.'
        """
        text = self.answer.__doc__ or f"{self.name.replace('_', ' ')}."
        return " ".join(text.partition("\n\n")[0].replace("``", "").split())

    @property
    def is_free(self) -> bool:
        """Whether it was declared without a cost, so that no answer to it is ever paid for."""
        return self.cost is _free


def _declared(module: str, name: str) -> Step:
    return getattr(import_module(module), name)


def step(
    cost: StepCost = _free,
    participates: Participation = everybody,
    sums: Callable[[Query], Layout] | None = None,
    shares: NoiseSharing | None = None,
    refuses_once: bool = False,
    once: bool = False,
    computes: Callable[[], MPCProgram] | None = None,
    bounds: Bounds | None = None,
    releases: Releases | None = None,
) -> Callable[[StepFunction], Step]:
    """Declare a function to be a client step.

    Without ``cost`` it costs nothing; without ``participates`` it is about all records; without
    ``sums`` and ``shares`` it can be simulated under ``View.SUM``, but not be summed securely.
    ``shares`` is ``unshared`` for a step that divides no noise. ``refuses_once`` makes any error in
    it the end of the run, and ``once`` its answer the only one of a run (``Step``). ``computes`` is
    for a step that clients compute together. ``bounds`` is for sums that need few bits.
    A step that releases whole numbers with noise is made by ``tacit.protocol.releases.release``.

    Examples
    --------
    >>> import numpy as np
    >>> @step(sums=lambda query: {"records": ()}, shares=unshared)
    ... def count_records(clients, query, noise, state):
    ...     return {"records": np.asarray(clients.records)}
    >>> count_records.name
    'count_records'
    """
    return lambda function: Step(
        function, cost, participates, sums, shares, refuses_once, once, computes, bounds, releases
    )


@dataclass(frozen=True)
class Query:
    """What the server asks of every client.

    Parameters
    ----------
    step : the client step that answers.
    protocol : the protocol, whose fields are public and agreed beforehand.
    broadcast : values that are the same for every client.
    per_client : values of which a client receives its own part; client axis last, or ragged.
    view : what the server sees of the replies.
    most_records : the records of a client for which a sum has bounds, as the parties agreed; None
        where nothing bounds it. It is never sent.
    """

    step: Step
    protocol: Any
    broadcast: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    per_client: Mapping[str, Field] = field(default_factory=lambda: MappingProxyType({}))
    view: View = View.EACH
    most_records: int | None = None

    def part(self, start: int, stop: int) -> Query:
        """The query as the clients ``start`` to ``stop - 1`` receive it."""
        each = {name: field_part(value, start, stop) for name, value in self.per_client.items()}
        return replace(self, per_client=each)
