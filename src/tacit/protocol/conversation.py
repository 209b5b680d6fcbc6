"""How a protocol is written: a server that asks, client steps that answer.

A protocol's server is a generator. It yields a ``Query`` and receives the clients' reply; it never
sees a socket or a record. A client step is a pure function of a batch of clients: the same function
answers for one hospital and simulates a million phones. Anyone who runs the conversation only
carries messages, and shows the server what the query's ``View`` allows. The parts of which
conversations are made (steps and queries, clients' state, replies) can be imported from here.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

from tacit.arrays import Floats
from tacit.crypto.identities import Identity, Roster
from tacit.data import units
from tacit.data.clients import Clients
from tacit.metrics.ranking import auc
from tacit.privacy.cost import MAX_BUDGET, Adjacency, Cost, check_budget
from tacit.protocol.declared import Declarations
from tacit.protocol.forecast import Family, Forecast, Metric, Planning, accepted
from tacit.protocol.scaled import UNIT_INTERVAL
from tacit.protocol.settings import check_choices, known_settings, setting, settings_of
from tacit.protocol.steps import ClientState, Query, Reply, Step
from tacit.protocol.trust import ExactSum, SecureSum, Trust, trust_of
from tacit.results.figure import AUC_FIGURE, Figure
from tacit.results.measures.catalogue import THRESHOLDS
from tacit.results.server_result import ServerResult

if TYPE_CHECKING:
    from tacit.protocol.scenario import Scenario, Shape, Traffic

Conversation = Generator[Query, Reply, ServerResult]

ONE_REPLICATE = 2**26
"""The ``replicate_size`` of a protocol whose replicates would share draws: they run one by one."""


@dataclass_transform(frozen_default=True, field_specifiers=(setting, field))
class Protocol(Declarations, ABC):
    """A protocol's settings, its server side, and its declared guarantee.

    A protocol is a frozen dataclass; its fields are its settings, each declared by ``setting``.
    ``Declarations`` has what it declares for audits, reports and laws.
    """

    name: ClassVar[str]
    figure: ClassVar[str] = AUC_FIGURE
    """What the protocol estimates: a ``Figure``, or a text where there is no more to say of it."""
    query_types: ClassVar[tuple[type, ...]] = ()
    """Frozen dataclasses whose values the server may send; they check themselves when made."""
    state_types: ClassVar[tuple[type, ...]] = ()
    """Dataclasses and named tuples whose values a client may note, besides numbers and arrays."""
    setting_order: ClassVar[tuple[str, ...]] = ()
    """The settings that a result writes first, where that is not the order of the fields."""
    plan_example: ClassVar[Mapping[str, Any] | None] = None
    """Settings with which ``tacit init`` may begin a plan; None where it should not."""
    demonstrated: ClassVar[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {}
    """Settings with which ``tacit demo`` runs it, by the federation and the name of the row."""
    largest_epsilon: ClassVar[float] = MAX_BUDGET
    """What epsilon may be at most; mechanisms that take no ``exp(epsilon)`` allow more."""

    def __post_init__(self) -> None:
        """Refuse unknown choices and a budget out of range.

        A protocol with further checks calls this one first.
        """
        check_choices(self)
        declared = known_settings(type(self)).get("epsilon")
        epsilon: Any = getattr(self, "epsilon", None)
        if declared is not None and not (declared.optional and epsilon is None):
            check_budget(epsilon, self.largest_epsilon)

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
        return units.PROBABILITY if self.score_range == UNIT_INTERVAL else units.REAL

    def for_unit(self, unit: str) -> Self:
        """The protocol with the settings that suit scores in a unit, as far as there are such."""
        return self

    @property
    def needs_labels(self) -> bool:
        """Whether records need labels."""
        return True

    @property
    def needs_second_values(self) -> bool:
        """Whether records need a second value besides their score."""
        return False

    @property
    def needs_both_classes(self) -> bool:
        """Whether the figure is undefined where all records have one label."""
        return Figure.of(self.figure).is_auc

    draws_noise: ClassVar[bool] = True
    """Whether anything random is drawn; a result of a protocol that draws none says so."""
    counts_missing: ClassVar[bool] = False
    """Whether its figure is the number of records that were left out as incomplete."""

    @property
    def serves_report(self) -> bool:
        """Whether epsilon serves all figures that it gives, and not one at the others' cost."""
        return True

    gives_histogram: ClassVar[bool] = False
    """Whether its results hold both classes' score histograms."""

    @property
    def decisions(self) -> tuple[float, ...]:
        """The probabilities at which results give net benefit and the rates of a decision."""
        return THRESHOLDS

    def deciding(self, probabilities: Sequence[float]) -> Self:
        """The protocol that serves decisions at these probabilities; as it is where all are alike.

        Parameters
        ----------
        probabilities : between 0 and 1, in any order.
        """
        return self

    def fitted(self, clients: Clients) -> Clients:
        """The clients with values beyond the public range moved to its nearest end.

        Where a party answers to others, a refusal would show them that one of its records is out of
        range. The map takes one record at a time, so that neighbouring records stay neighbours and
        every step keeps its guarantee.
        """
        if self.score_range is None:
            return clients
        low, high = self.score_range
        return clients.rescored(units.LinearMap(low=low, high=high), clients.unit)

    @abstractmethod
    def conversation(self, clients: int) -> Conversation:
        """The server side, from the first query to the result, for this many clients.

        Runners run it through ``releases.conducted``, which adds to its result the figure's limits
        and what the noise protects.
        """

    def exact(self, clients: Clients) -> float:
        """The exact figure of all clients' records, which is not private."""
        return auc(clients.scores, clients.labels)

    def doubts(self, clients: Clients) -> Iterator[str]:
        """What the holder of the records should know of them before a run, in sentences.

        They are about records, so they are for this reader's screen alone.
        """
        yield from ()

    record_columns: ClassVar[Mapping[str, str]] = {}
    """The options that name its records' columns, and what each of them is read as: the score, the
    label or the second value. They choose the protocol where none is named."""
    categories_setting: ClassVar[str] = ""
    """The setting that names the classes or private groups of records; empty where there are none.
    """
    scores_by_class: ClassVar[bool] = False
    """Whether records have a score of every class."""
    trusts: ClassVar[tuple[Trust, ...]] = ()
    """The trust models under which a plan tries the protocol."""
    planned: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    """The settings without epsilon that a plan compares under ``trusts``; by default the defaults.
    """
    given_up: ClassVar[str] = ""
    """What is given up by using the protocol, to end a plan's sentence; empty for nothing."""
    planning_module: ClassVar[str] = ""
    """The module whose constant ``PLANNING`` is a ``Planning``; empty for the defaults below."""
    title_settings: ClassVar[tuple[str, ...]] = ("mechanism", "labels", "adjacency")
    """The settings that distinguish a configuration from others of its protocol, in its title."""

    @property
    def title(self) -> str:
        """The protocol's name with the settings that distinguish it from others of its kind."""
        used = self.settings
        parts = [str(used[name]) for name in self.title_settings if name in used]
        return ", ".join([self.name, *parts])

    @classmethod
    def families(cls, scenario: Scenario, metric: Metric) -> Sequence[Family]:
        """The configurations that a plan tries for a metric, by what they hide and whom they trust.

        The default is the ``planned`` settings, under the class's ``trusts``, for its ``figure``.
        """
        planning = _planning_of(cls)
        if planning is not None and planning.families is not None:
            return planning.families(scenario, metric)
        if not cls.trusts or metric != Metric.of_figure(cls.figure):
            return ()
        budget = {"epsilon": scenario.epsilon} if "epsilon" in known_settings(cls) else {}
        made = accepted(partial(cls, **each, **budget) for each in cls.planned)
        tuned = len(cls.planned) > 1
        return (Family(made, cls.trusts, cls.given_up, metric, tuned=tuned),)

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
        from tacit.protocol.scenario import measured_traffic

        return measured_traffic(self, scenario)

    def min_clients(self, clients: int) -> int:
        """The least number of clients in a sum with which each spends no more than declared.

        By default as many as the noise is divided among, where a step releases sums with shares,
        and all where sums are exact: the difference of two of them, over all clients and over all
        but one, would be that client's counts.
        """
        trust = trust_of(self)
        if isinstance(trust, ExactSum):
            return clients
        if isinstance(trust, SecureSum) and any(each.releases for each in self.steps):
            return trust.needed(clients)
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
    def guarantee(self) -> Cost:
        """What one evaluation costs each client at most.

        By default the setting ``epsilon`` at ``adjacency``, a setting or a name of the class, or at
        record adjacency.
        """
        epsilon = getattr(self, "epsilon", None)
        if epsilon is None:
            raise TypeError(f"{self.name} has no epsilon, so it must say what it guarantees")
        return Cost(epsilon, adjacency=Adjacency(getattr(self, "adjacency", "record")))

    @property
    def distance(self) -> int:
        """How many counts a neighbour changes by one: two where a record may be replaced."""
        return 2 if self.guarantee.adjacency is Adjacency.REPLACE else 1

    def replicate_size(self, clients: Clients) -> int:
        """How many numbers one replicate holds in memory at once, for choosing chunks.

        By default two of every record, which suffices for a step that draws for each.
        ``ONE_REPLICATE`` for replicates that would share draws, such as turns of records.
        """
        return 2 * clients.records

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


def _planning_of(kind: type[Protocol]) -> Planning | None:
    if not kind.planning_module:
        return None
    return import_module(kind.planning_module).PLANNING


@dataclass(frozen=True, eq=False)
class OneCount:
    """A protocol that counts once, and its cells: what somebody else can count for it.

    Parameters
    ----------
    protocol : the protocol in the form that counts once.
    edges : the inner edges of B cells as scores, ascending, shape (B-1,).
    ends : the least and the largest score there can be.
    groups : the private groups each of which is counted separately; empty for none.
    """

    protocol: Any
    edges: Floats
    ends: tuple[float, float]
    groups: tuple[str, ...] = ()

    def mark(self, per_person: int = 0) -> str:
        """A short word for these cells and groups: counts in others have another.

        Parameters
        ----------
        per_person : the most records of a person that are counted; 0 for all records.

        Examples
        --------
        >>> import numpy as np
        >>> import tacit
        >>> once = OneCount(tacit.ExactAUC(), np.array([0.5]), (0.0, 1.0))
        >>> once.mark(), once.mark(per_person=2)
        ('2-4cfa5b42', '2-4cfa5b42-2')
        """
        named = "\n".join(self.groups).encode()
        digits = hashlib.sha256(self.edges.astype("<f8").tobytes() + named).hexdigest()
        counted = f"-{per_person}" if per_person else ""
        return f"{self.edges.size + 1}-{digits[:8]}{counted}"
