"""What a protocol declares besides its steps, with defaults for any protocol.

``Declarations`` is what audits, reports and laws take; ``ThreatModel`` says who sees what, in
sentences that a report shows; ``Revealed`` is the figure that clients of some protocols learn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.data.clients import Clients
from tacit.data.splitting import federation
from tacit.privacy.cost import Adjacency, Cost
from tacit.privacy.noise import NoNoise
from tacit.protocol import audits
from tacit.protocol.settings import known_settings
from tacit.protocol.steps import ClientState
from tacit.results.figure import Figure
from tacit.results.server_result import ServerResult

if TYPE_CHECKING:
    from tacit.protocol.conversation import Protocol
    from tacit.protocol.devices import DeviceReports
    from tacit.protocol.steps import Query


class Declarations:
    """The part of ``Protocol`` that audits, reports and laws read.

    A protocol overrides what differs. With nothing overridden its audit attacks every step of one
    configuration, a report derives its threat model, and every law applies. Methods import the
    modules that a run does not need, such as attacks.
    """

    name: ClassVar[str]
    draws_by_step: ClassVar[Mapping[str, int]] = MappingProxyType({})
    """Steps that cannot answer one query many times at once, with the draws that an audit makes."""
    trials_divisor: ClassVar[int] = 1
    """By how much fewer trials an attack on labels gets, where replicates run one at a time."""
    gives_curve: ClassVar[bool] = False
    """Whether a result has a ROC curve, so that the attacks on labels from curves concern it."""
    audit_records: ClassVar[int] = 4
    """Number of records of an audit of chosen settings."""
    audit_settings: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    """The settings that are attacked where none are chosen, without epsilon; empty for the default
    ones."""
    loose_audit_settings: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    """Further settings that are attacked, whose declared epsilon is not tight."""
    law_settings: ClassVar[audits.Configurations] = MappingProxyType({})
    """The settings that the laws run; epsilon is 1 where it is left out. Empty for one case."""
    noticed: ClassVar[tuple[str, ...] | None] = None
    """The cases of the laws in which wrong noise must be noticed; None for all."""
    replicated_fields: ClassVar[tuple[str, ...]] = ()
    """Fields of its queries of which a simulation sends each replicate its own."""
    gives_errors: ClassVar[bool] = True
    """Whether its errors and intervals are compared with those of many runs."""

    @property
    def lone_records(self) -> bool:
        """Whether clients are taken to hold one record each."""
        return False

    @classmethod
    def takes_epsilon(cls: Any, settings: Mapping[str, Any]) -> bool:
        """Whether these settings have a privacy budget, called epsilon."""
        return "epsilon" in known_settings(cls)

    @classmethod
    def audit_case(cls, settings: Mapping[str, Any]) -> audits.AuditCase:
        """How settings that somebody chose are attacked."""
        return audits.AuditCase(cls.name, settings, cls.audit_records, tight=False)

    @classmethod
    def audit_cases(cls) -> tuple[audits.AuditCase, ...]:
        """What is attacked where no settings are chosen, so that every client step answers.

        Sizes are small where that leaves the guarantee as it is: an event in which many counts are
        off the same way is too rare to be counted. The default is the default settings; what has no
        default is taken from the first case of the laws.
        """
        chosen = [replace(cls.audit_case(each), tight=True) for each in cls.audit_settings]
        chosen += map(cls.audit_case, cls.loose_audit_settings)
        if chosen:
            return tuple(chosen)
        needed = _without_default(cls) - {"epsilon"}
        if not needed:
            return (audits.AuditCase(cls.name, records=cls.audit_records),)
        settings = next(iter(cls.law_cases().values())).settings
        return (audits.AuditCase(cls.name, {name: settings[name] for name in sorted(needed)}),)

    def audit_federation(self: Any, records: int, apart: bool) -> Clients:
        """Evenly spread records in the protocol's range, each of its own client where ``apart``."""
        return federation(records, apart, *(self.score_range or ()))

    @classmethod
    def self_test_cases(cls) -> audits.SelfTestCases:
        """Mechanisms, with a mistake and without, on which the audit itself is tried."""
        return audits.SelfTestCases()

    def label_attacks(self) -> tuple[audits.LabelAttack, ...] | None:
        """Attacks that infer labels or scores from this protocol's messages.

        None leaves it to the audit's own attack on the fields that the server receives.
        """
        return None

    def hostile_query(self, query: Query) -> Query:
        """The query of a server that wants to learn most, as far as clients answer it."""
        return query

    def replicated_query(self, query: Query, replicates: int) -> Query:
        """The query that many draws at once answer, where a run sends one of its own to each."""
        sent = query.broadcast
        fields = {
            name: np.repeat(sent[name][np.newaxis], replicates, axis=0)
            for name in self.replicated_fields
            if sent.get(name) is not None
        }
        return replace(query, broadcast={**sent, **fields})

    def renew_state(self, clients: Clients, state: ClientState) -> None:
        """Make clients' notes those of neighbouring records, where a note depends on the records.

        An audit calls it before each answer. What a client draws without a look at its records is
        kept.
        """

    @classmethod
    def threats(cls, settings: Mapping[str, Any]) -> ThreatModel:
        """Who sees what under these settings, which are those of a result."""
        return derived_model(cls, settings)

    @classmethod
    def law_cases(cls: Any) -> Mapping[str, Protocol]:
        """The configurations that the laws run, by name.

        Those of ``law_settings``, or one, with epsilon 1 where there is an epsilon. A protocol with
        another field that has no default declares its own.
        """
        budget = {"epsilon": 1.0} if cls.takes_epsilon({}) else {}
        missing = _without_default(cls) - budget.keys()
        if missing and not cls.law_settings:
            listed = ", ".join(sorted(missing))
            raise TypeError(f"{cls.name} must override law_cases: no default for {listed}")
        declared = cls.law_settings or {cls.name: {}}
        return {name: cls(**{**budget, **settings}) for name, settings in declared.items()}

    def trial_records(self: Any, clients: Clients) -> Clients:
        """Synthetic records as the protocol takes them: in its range, and with second values where
        it needs some, which mirror the scores in the middle of the range."""
        fitted: Clients = self.fitted(clients)
        if not self.needs_second_values or fitted.second is not None:
            return fitted
        return replace(fitted, second=sum(self.score_range or (0.0, 1.0)) - fitted.scores)

    @classmethod
    def error_cases(cls) -> Mapping[str, audits.ErrorCase]:
        """The configurations whose errors and intervals are compared with those of many runs.

        By default those of the laws, and wrong noise must be noticed in each (``noticed``).
        """
        cases = cls.law_cases() if cls.gives_errors else {}
        noticed = cases if cls.noticed is None else cls.noticed
        return {
            name: audits.ErrorCase(each, noticed=name in noticed) for name, each in cases.items()
        }

    @property
    def law_traits(self) -> audits.LawTraits:
        """Which laws do not apply, and why."""
        return audits.LawTraits()

    def device_reports(self, devices: int) -> DeviceReports:
        """How a device of one record reports by one short message, and what the reports give.

        Parameters
        ----------
        devices : how many are expected.

        Raises
        ------
        ValueError : where these settings are not for devices; none are, unless a protocol says so.
        """
        raise ValueError(f"{self.name} with these settings has no reports of single devices")

    def noiseless_value(self: Any, clients: Clients) -> float:
        """The figure that a run without noise gives: of what is measured, exactly."""
        return float(self.exact(clients))

    def revealed_result(self, revealed: Revealed) -> ServerResult:
        """The result of a client, from the figure that it learned in a step.

        Raises
        ------
        TypeError : for a protocol whose steps keep a figure without a declaration of its result.
        """
        raise TypeError(f"{self.name} must override revealed_result, since a step keeps a figure")

    def sized_for(self: Any, clients: Clients) -> Protocol:
        """This protocol, with settings that must fit public sizes made to fit these clients."""
        return self


def _without_default(kind: Any) -> set[str]:
    """The settings of a protocol that have no default."""
    return {name for name, known in known_settings(kind).items() if known.needed}


NO_REPORTS = "without randomness these are no reports; tests enumerate their odds"
"""Why the privacy loss of a randomised report cannot be read from the noise that was drawn."""


class ReportDeclarations(Declarations):
    """Declarations of a protocol whose clients hold one record each, as a rule."""

    lone_records = True
    gives_errors = False
    """Tests of the estimates compare their errors."""

    @classmethod
    def audit_case(cls, settings: Mapping[str, Any]) -> audits.AuditCase:
        """Clients of one record."""
        return audits.AuditCase(cls.name, settings, cls.audit_records, apart=True, tight=False)

    def label_attacks(self) -> tuple[audits.LabelAttack, ...]:
        """None: what the server receives is public, or randomised."""
        return ()


RECORDS = 4
"""Records, of a client each, in the dry run that reads a protocol's views."""

NONE_WRITTEN = "The author of this protocol wrote no threat model; this follows from its code."

SEEN = {
    "each": "of every client, its reply to {steps}",
    "sum": "only the sum over all clients, of their replies to {steps}",
    "joint": "only the outcome of what the clients compute together, in {steps}",
}
"""What the server sees, by the value of a query's view."""

NO_ONE = (
    "No party: every client adds its own noise before anything leaves it. The server is expected "
    "to follow the protocol, and may analyse all that it receives."
)
LOCAL = (
    "No party: every record randomises its own report before it leaves the client. The server is "
    "expected to follow the protocol, and may analyse all that it receives."
)
LOCAL_PAGE = "threat-models/local.md"

HIDDEN = {
    Adjacency.LABEL: "the label of one record; scores and numbers of records are not protected",
    Adjacency.RECORD: "whether one record is there; what is true of many records is not protected",
    Adjacency.REPLACE: "the score and label of one record; numbers of records are not protected",
    Adjacency.SCORE: "the score of one record; labels and numbers of records are not protected",
}


@dataclass(frozen=True)
class ThreatModel:
    """A protocol's threat model, a paragraph each.

    Parameters
    ----------
    trust : whom a client has to trust, and with what.
    server : what the server sees.
    others : what the other clients see.
    left_open : what stays unprotected.
    page : where the whole model is written: a page below ``docs/``, or an address; empty for none.
    """

    trust: str
    server: str
    others: str
    left_open: str
    page: str = ""


def derived_model(kind: Any, settings: Mapping[str, Any]) -> ThreatModel:
    """The threat model that follows from a protocol's declared views and guarantee.

    It says that the author wrote none. Views are read from a dry run on a few synthetic records.

    Parameters
    ----------
    kind : the protocol's class.
    settings : its settings, as a result holds them.
    """
    try:
        protocol = kind(**settings)
    except (TypeError, ValueError):
        return ThreatModel(NONE_WRITTEN, *["Not known: the settings cannot be read."] * 3)
    seen: dict[str, list[str]] = {}
    for step, view in dict.fromkeys(asked_views(protocol)):
        seen.setdefault(view, []).append(step)
    parts = [SEEN[view].format(steps=_listed(steps)) for view, steps in seen.items()]
    return ThreatModel(
        NONE_WRITTEN,
        f"The server sees {'; '.join(parts)}." if parts else "The server sees nothing.",
        "What the server sends to every client, which is not described.",
        _protection(protocol.guarantee),
    )


def asked_views(protocol: Any) -> Iterator[tuple[str, str]]:
    """The name of each step that one conversation asks for, with the value of its view.

    The conversation runs without noise over a few records; it may end early where these do not
    suffice for the server. A step is named before it answers.

    Raises
    ------
    ValueError : where a step refuses these records: what it sends is then not known.
    """
    clients, state = protocol.fitted(federation(RECORDS, apart=True)), ClientState()
    conversation, reply = protocol.conversation(clients.count), None
    while True:
        try:
            query = next(conversation) if reply is None else conversation.send(reply)
        except (StopIteration, ValueError, FloatingPointError):
            return
        yield query.step.name, query.view.value
        with np.errstate(all="ignore"):
            reply = query.step.answer(clients, query, NoNoise(), state)


def _listed(steps: list[str]) -> str:
    return ", ".join(f"`{step}`" for step in steps)


def _protection(guarantee: Cost) -> str:
    """What a guarantee leaves open, in a sentence."""
    if math.isinf(guarantee.epsilon) or guarantee.adjacency is None:
        return "Everything: no differential privacy is guaranteed."
    delta = f" and delta {guarantee.delta:g}" if guarantee.delta else ""
    return (
        f"All but what epsilon {guarantee.epsilon:g}{delta} hides: {HIDDEN[guarantee.adjacency]}."
    )


REVEALED = ("told",)
"""The note under which a step keeps the figure that its client learned."""


@dataclass(frozen=True)
class Revealed:
    """A figure as a client computed it from what it was sent.

    Anyone who runs the client's steps takes the note, and writes it into the client's own file.

    Parameters
    ----------
    value : the figure.
    half_range : the largest distance of the exact figure from it.
    """

    value: float
    half_range: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", float(self.value))
        object.__setattr__(self, "half_range", float(self.half_range))


def revealed_to(state: ClientState) -> Revealed | None:
    """The figure that a client learned in its last run, taken out of its state; None for none."""
    note = state.take(REVEALED)
    return note if isinstance(note, Revealed) else None


def result_of_client(protocol: Protocol, revealed: Revealed) -> ServerResult:
    """The result of a client that learned the figure in a step."""
    return protocol.revealed_result(revealed).within(Figure.of(protocol.figure).limits)
