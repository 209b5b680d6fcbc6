"""How a protocol is written: a server that asks, client steps that answer.

A protocol's server is a generator. It yields a ``Query`` and receives the clients' reply; it never
sees a socket or a record. A client step is a pure function of a batch of clients: the same function
answers for one hospital and simulates a million phones. Whoever runs the conversation only carries
messages, and shows the server what the query's ``View`` allows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.identities import Identity, Roster
from tacit.data.clients import Clients
from tacit.data.linear_map import LinearMap
from tacit.data.ragged import Ragged
from tacit.data.units import PROBABILITY, REAL
from tacit.metrics.ranking import auc
from tacit.privacy.cost import NOTHING, Cost
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.declarations import Declarations
from tacit.protocol.forecast import Family, Forecast, Planning, accepted
from tacit.protocol.mpc import MPCProgram
from tacit.protocol.score_range import UNIT_INTERVAL
from tacit.protocol.settings import check_choices, setting, settings_of
from tacit.protocol.trust import Trust
from tacit.results.server_result import ServerResult

if TYPE_CHECKING:
    from tacit.protocol.metric import Metric
    from tacit.protocol.one_count import OneCount
    from tacit.protocol.scenario import Scenario, Shape
    from tacit.protocol.traffic import Traffic

Field = NDArray[Any] | Ragged[Any]
Reply = Mapping[str, Field]
"""Named fields. Arrays have the client axis last; ragged fields hold several values a client."""


MAX_RECORDS = 2**32
"""Number of records of a client for which sums have room where parties agree on no other."""

MAX_SUM = 2**62
"""Largest magnitude of a sum that any step may give as its bound."""

WRAP_BITS = 80
"""Minus the base-2 logarithm of the probability with which one number passes its bound."""


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


class ClientState:
    """A batch of clients' private state, which lasts between steps and evaluations.

    It belongs to one set of records: their labels, number and order must not change.
    ``after_taking`` is called whenever a note was taken out: who keeps notes on a disk sets it, to
    write them down without that note before anything is computed with it.
    """

    def __init__(self, whole: tuple[ClientState, int, int] | None = None) -> None:
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
        return self._parts.setdefault((start, stop), ClientState((self, start, stop)))


class Lasting:
    """A note that outlives a run: what was released once, and may be used again at no cost."""


StepFunction = Callable[[Clients, "Query", NoiseSource, ClientState], Reply]
StepCost = Callable[[Clients, "Query", ClientState], Cost]
Participation = Callable[[Clients, "Query"], NDArray[np.bool_]]
Layout = Mapping[str, tuple[int, ...]]
"""The names of integer fields, with their shapes."""
Bounds = Callable[["Query"], Mapping[str, int]]
"""By field, the largest magnitude of its sums over all clients."""
NoiseSharing = Callable[["Query"], int | None]
"""The number of clients that divide the noise of a sum, by the query; None where none divides
it."""


def _free(clients: Clients, query: Query, state: ClientState) -> Cost:
    return NOTHING


def _everybody(clients: Clients, query: Query) -> NDArray[np.bool_]:
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
    the records' turns or the session of a key: a real party answers it once a run. ``computes``
    makes the program by which real clients compute a step that is asked for with ``View.MPC``;
    without it they refuse the step.
    """

    name: str
    answer: StepFunction
    cost: StepCost
    participates: Participation
    sums: Callable[[Query], Layout] | None = None
    shares: NoiseSharing | None = None
    refuses_once: bool = False
    once: bool = False
    computes: Callable[[], MPCProgram] | None = None
    bounds: Bounds | None = None

    def __reduce__(self) -> tuple[Callable[[str, str], Step], tuple[str, str]]:
        """Where it is declared: in another process it is the same step, not a copy."""
        return _declared, (self.answer.__module__, self.name)

    @property
    def is_free(self) -> bool:
        """Whether it was declared without a cost, so that no answer to it is ever paid for."""
        return self.cost is _free


def _declared(module: str, name: str) -> Step:
    declared: Step = getattr(import_module(module), name)
    return declared


def step(
    cost: StepCost | None = None,
    participates: Participation | None = None,
    sums: Callable[[Query], Layout] | None = None,
    shares: NoiseSharing | None = None,
    refuses_once: bool = False,
    once: bool = False,
    computes: Callable[[], MPCProgram] | None = None,
    bounds: Bounds | None = None,
) -> Callable[[StepFunction], Step]:
    """Declare a function to be a client step.

    Without ``cost`` it costs nothing; without ``participates`` it is about all records; without
    ``sums`` and ``shares`` it can be simulated under ``View.SUM``, but not be summed securely.
    ``shares`` is ``unshared`` for a step that divides no noise. ``refuses_once`` makes any error in
    it the end of the run, and ``once`` its answer the only one of a run (``Step``). ``computes`` is
    for a step that clients compute together. ``bounds`` is for sums that need few bits.

    Examples
    --------
    >>> import numpy as np
    >>> @step(sums=lambda query: {"records": ()}, shares=unshared)
    ... def count_records(clients, query, noise, state):
    ...     return {"records": np.asarray(clients.records)}
    >>> count_records.name
    'count_records'
    """

    def declare(function: StepFunction) -> Step:
        return Step(
            function.__name__,
            function,
            cost or _free,
            participates or _everybody,
            sums,
            shares,
            refuses_once,
            once,
            computes,
            bounds,
        )

    return declare


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


Conversation = Generator[Query, Reply, ServerResult]


@dataclass_transform(frozen_default=True, field_specifiers=(setting, field))
class Protocol(Declarations, ABC):
    """A protocol's settings, its server side, and its declared guarantee.

    A protocol is a frozen dataclass; its fields are its settings, each declared by ``setting``.
    ``Declarations`` has what it declares for audits, reports and laws.
    """

    name: ClassVar[str]
    figure: ClassVar[str] = "AUC"
    """What the protocol estimates."""
    query_types: ClassVar[tuple[type, ...]] = ()
    """Frozen dataclasses whose values the server may send; they check themselves when made."""
    state_types: ClassVar[tuple[type, ...]] = ()
    """Dataclasses and named tuples whose values a client may note, beside numbers and arrays."""
    setting_order: ClassVar[tuple[str, ...]] = ()
    """The settings that a result writes first, where that is not the order of the fields."""
    plan_example: ClassVar[Mapping[str, Any] | None] = None
    """Settings with which ``tacit init`` may begin a plan; None where it should not."""

    def __post_init__(self) -> None:
        """Refuse unknown choices; a protocol with further checks calls this one first."""
        check_choices(self)

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

    @property
    def unit(self) -> str | None:
        """The unit in which scores are taken; None where only their order counts.

        It is ``"real"`` for another public range than from 0 to 1.
        """
        if self.score_range is None:
            return None
        return PROBABILITY if self.score_range == UNIT_INTERVAL else REAL

    def for_unit(self, unit: str) -> Self:
        """The protocol with the settings that suit scores in a unit, as far as there are such."""
        return self

    @property
    def needs_labels(self) -> bool:
        """Whether records need labels."""
        return True

    @property
    def needs_second_values(self) -> bool:
        """Whether records need a second value beside their score."""
        return False

    @property
    def needs_both_classes(self) -> bool:
        """Whether the figure is undefined where all records have one label."""
        return self.figure == "AUC"

    @property
    def draws_noise(self) -> bool:
        """Whether anything random is drawn; a result of a protocol that draws none says so."""
        return True

    counts_missing: ClassVar[bool] = False
    """Whether its figure is the number of records that were left out as incomplete."""

    @property
    def gives_histogram(self) -> bool:
        """Whether its results hold both classes' score histograms."""
        return False

    def fitted(self, clients: Clients) -> Clients:
        """The clients with values beyond the public range moved to its nearest end.

        Where a party answers to others, a refusal would show them that one of its records is out of
        range. The map takes one record at a time, so that neighbouring records stay neighbours and
        every step keeps its guarantee.
        """
        if self.score_range is None:
            return clients
        low, high = self.score_range
        return clients.rescored(LinearMap(low=low, high=high), clients.unit)

    @abstractmethod
    def conversation(self, clients: int) -> Conversation:
        """The server side, from the first query to the result, for this many clients."""

    def exact(self, clients: Clients) -> float:
        """The exact figure of all clients' records, which is not private."""
        return auc(clients.scores, clients.labels)

    categories_setting: ClassVar[str] = ""
    """The setting that names the classes or private groups of records; empty where there are none.
    """
    scores_by_class: ClassVar[bool] = False
    """Whether records have a score of every class."""
    trusts: ClassVar[tuple[Trust, ...]] = ()
    """The trust models under which a plan tries the protocol with its default settings."""
    given_up: ClassVar[str] = ""
    """What is given up by using the protocol, to end a plan's sentence; empty for nothing."""
    planning_module: ClassVar[str] = ""
    """The module whose constant ``PLANNING`` is a ``Planning``; empty for the defaults below."""
    title_settings: ClassVar[tuple[str, ...]] = ("mechanism", "labels", "adjacency")
    """The settings that distinguish a configuration from others of its protocol, in its title."""

    @property
    def title(self) -> str:
        """The protocol's name with the settings that tell it from others of its kind."""
        used = self.settings
        parts = [str(used[name]) for name in self.title_settings if name in used]
        return ", ".join([self.name, *parts])

    @classmethod
    def families(cls, scenario: Scenario, metric: Metric) -> Sequence[Family]:
        """The configurations that a plan tries for a metric, by what they hide and whom they trust.

        The default is one configuration, under the class's ``trusts``, for its ``figure``.
        """
        planning = _planning_of(cls)
        if planning is not None:
            return planning.families(scenario, metric)
        if not cls.trusts or metric.title != cls.figure:
            return ()
        settings = getattr(cls, "__dataclass_fields__", {})
        budget = {"epsilon": scenario.epsilon} if "epsilon" in settings else {}
        return (Family(accepted([lambda: cls(**budget)]), cls.trusts, cls.given_up, metric),)

    def forecast(self, scenario: Scenario, shape: Shape, metric: Metric) -> Forecast | None:
        """The predicted error where scores have a shape; None where nothing is predicted.

        Raises
        ------
        ValueError : for settings that are not planned.
        """
        planning = _planning_of(type(self))
        return None if planning is None else planning.forecast(self, scenario, shape, metric)

    def traffic(self, scenario: Scenario) -> Traffic:
        """The bytes and rounds of an evaluation, by default measured in a small dry run."""
        planning = _planning_of(type(self))
        if planning is not None and planning.traffic is not None:
            return planning.traffic(self, scenario)
        from tacit.protocol.traffic import measured_traffic

        return measured_traffic(self, scenario)

    def min_clients(self, clients: int) -> int:
        """The least number of clients in a sum with which each spends no more than declared."""
        return 1

    def enrol(
        self, state: ClientState, identity: Identity, roster: Roster, least: int | None = None
    ) -> None:
        """Write into a client's state who it is and whom it may trust, before it answers.

        Protocols whose steps have keys of their own write it down; others need nothing. ``least``
        is how many of the roster take part in a result at least; None needs all.
        """

    @property
    def one_count(self) -> OneCount | None:
        """The form of this protocol that counts once, with its cells; None where it needs records.

        Somebody who may not run programs at the records can count in these cells by a statement.
        """
        return None

    @property
    @abstractmethod
    def guarantee(self) -> Cost:
        """What one evaluation costs each client at most."""

    @abstractmethod
    def replicate_size(self, clients: Clients) -> int:
        """How many numbers one replicate holds in memory at once, for choosing chunks."""

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that apply, by name, for a result."""
        return settings_of(self)

    def comparison(self) -> Protocol | None:
        """The protocol that compares two models at this one's budget; None where there is none.

        Raises
        ------
        ValueError : for settings that a comparison does not use.
        """
        return None

    def told_result(self, told: Any) -> ServerResult:
        """The result that a client has, where a step told it the figure (``protocol.told``)."""
        raise NotImplementedError(f"{self.name} tells its clients no figure")

    def prior_estimate(self, records: int, server_result: ServerResult) -> Any:
        """What a later evaluation of these records may start from; None for nothing.

        Parameters
        ----------
        records : how many were evaluated.
        server_result : of a single run, as they were published.
        """
        return None


def _planning_of(kind: type[Protocol]) -> Planning | None:
    if not kind.planning_module:
        return None
    planning: Planning = import_module(kind.planning_module).PLANNING
    return planning


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
