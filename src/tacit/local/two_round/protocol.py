"""AUC in the local model by two rounds of reports, one report a record (docs, section 4d).

A few records, drawn at random by themselves, report their cell; the server publishes what it makes
of both classes' distribution functions. Every other record reports its influence on the AUC, a
bounded number that can be reported with little noise. Errors of the first round cancel to first
order in

    AUC = a + b - integral of F^- dF^+

with a and b the mean reports of ``F^-`` and ``1 - F^+``: what remains is ``- integral of (F^- -
G^-) d(F^+ - G^+)``, G the true distribution functions.

Predictions come from the distribution functions that the first round is expected to estimate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.local import turns
from tacit.local.two_round import first_round, second_round
from tacit.local.two_round.first_round import FirstRound, ScoreModel
from tacit.privacy import bounded
from tacit.protocol import audits, devices, forecast
from tacit.protocol.conversation import ONE_REPLICATE
from tacit.protocol.declared import LOCAL, LOCAL_PAGE, NO_REPORTS, ReportDeclarations

RECORDS = 8
"""Number of records of an audit, so that some report in each round."""

PRIVATE_LABELS = tp.ThreatModel(
    LOCAL,
    "Exactly: each client's number of records, and in which round each spoke. With noise: one "
    "report of every record.",
    "Both classes' distributions, as far as the first round's noisy reports tell them.",
    "Numbers of records, and the order in which they were sent.",
    LOCAL_PAGE,
)

BY_LABELS = {
    "private": PRIVATE_LABELS,
    "public": replace(
        PRIVATE_LABELS,
        server="Exactly: every label, each client's number of records, and in which round each "
        "spoke. With noise: one report about every record's score.",
        left_open="Labels: the server sees every one of them.",
    ),
}


@tp.step(once=True)
def draw_turns(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Draw every record's turn, uniform on 0..255, and send it; with public labels, send these too.

    A turn depends on nothing private. The client draws it and stores it, once a run, so that a
    server cannot choose which records report first, nor make one report twice. The server learns
    the turns, and each record's label where labels are public, which score adjacency does not
    protect.

    Raises
    ------
    DataError : for a score outside [0, 1].
    """
    query.protocol.check_range(clients)
    drawn = turns.drawn_turns(clients, noise, state)
    if query.protocol.first_round.private_labels:
        return {"turns": drawn}
    return {"turns": drawn, "labels": clients.ragged(clients.labels)}


@tp.step(cost=turns.turn_cost, participates=turns.early)
def report_cells(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Report the cells of the records whose turn is early, one report a record.

    Epsilon for each record that reports, by ``SlidingWindow.answers``: for its score where the
    report is about its cell, for score and label where it is about class and cell. The reply does
    not depend on the other records. The server learns the reports, in the order of the client's
    records.

    Raises
    ------
    DataError : when the turns are not those that the client drew for this conversation, or the
        records or their order changed since.
    """
    return query.protocol.first_round.reports(clients, query, noise, state)


@tp.step(cost=turns.turn_cost, participates=turns.late)
def report_influences(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Report the influence of the records whose turn is late, one report a record.

    Epsilon for each record that reports, by ``GridReport.answers``: the number is a function of the
    record's score and label and of what the server published, and the probability of every report
    changes by a factor of at most ``exp(epsilon)`` with it, whatever was published. That protects
    the score and the label; with public labels the server knows the label already. The server
    learns the reports, in the order of the client's records.

    Raises
    ------
    DataError : when the turns are not those that the client drew for this conversation, or the
        records or their order changed since.
    """
    turns.take_turn(clients, query, state, rounds=1)
    reporting = turns.late(clients, query)
    positions = query.protocol.on_scale(clients).scores[reporting]
    labels = clients.labels[reporting]

    def answers(borders: Floats, grid: Floats, width: int) -> Integers:
        report = bounded.GridReport(query.protocol.epsilon, grid, width)
        return report.answers(second_round.reported_numbers(positions, labels, borders), noise)

    published = [query.broadcast[name] for name in ("knots", "grid", "width")]
    if noise.replicates is None:
        return {"reports": turns.reports_of(clients, reporting, answers(*published))}
    reports = [answers(*plan)[k] for k, plan in enumerate(zip(*published, strict=True))]
    return {"reports": turns.reports_of(clients, reporting, np.stack(reports))}


@dataclass(frozen=True)
class TwoRoundAUC(tp.ScaledScores, ReportDeclarations, tp.Protocol):
    """The AUC from one locally private report of every record.

    Parameters
    ----------
    epsilon : the privacy budget of one evaluation, for every record.
    labels : ``"private"`` (a report covers score and label) or ``"public"`` (the server knows the
        labels, and reports cover the scores).
    mechanism : how the second round reports a number: ``"window"``, the best of a family that holds
        randomised response and the piecewise mechanism, or ``"bit"``, rounded to one bit.
    scale : the map of scores to positions, of which the first round counts equal cells, and the
        second takes functions at the exact position: ``"probability"``, ``"log-odds"``, ``"real"``
        or ``"even"`` (``metrics.cells.score_scale``).

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> TwoRoundAUC(epsilon=1.0).guarantee
    Cost(epsilon=1.0, delta=0.0, adjacency=<Adjacency.REPLACE: 'replace'>, rho=None)
    """

    epsilon: float = tp.setting(help=tp.EPSILON)
    labels: Literal["private", "public"] = tp.setting(
        default="private", help="whether the server may know the classes; private by default"
    )
    mechanism: Literal["window", "bit"] = tp.setting(
        default="window", help="window, bit; the first by default"
    )
    scale: str = tp.scale_setting()

    name = "two-round-auc"
    planning_module = __name__
    demonstrated: ClassVar[Mapping[str, Any]] = {"phones": {"two-round-auc": {"epsilon": 5.0}}}
    state_types = (turns.Turns,)
    steps = (draw_turns, report_cells, report_influences)
    draws_by_step = MappingProxyType({"report_influences": 4_000})
    trials_divisor = 8
    audit_records = RECORDS
    audit_settings = ({}, {"labels": "public"})
    law_settings: ClassVar[audits.Configurations] = {
        "local-two-round": {"labels": "public"},
        "local-two-round-private": {"labels": "private"},
    }
    threats = staticmethod(lambda settings: BY_LABELS[settings.get("labels", "private")])
    law_traits = audits.LawTraits(
        inexact="reports are debiased all the same", unmeasured_loss=NO_REPORTS
    )

    @property
    def guarantee(self) -> tp.Cost:
        """What one evaluation costs each record: it reports in one of the two rounds."""
        private = self.labels == "private"
        return tp.Cost(
            self.epsilon, adjacency=tp.Adjacency.REPLACE if private else tp.Adjacency.SCORE
        )

    @property
    def first_round(self) -> FirstRound:
        """How records report in the first round."""
        return FirstRound(self.epsilon, self.labels == "private")

    def replicate_size(self, clients: tp.Clients) -> int:
        """A size at which replicates run one at a time: they use the same turns."""
        return ONE_REPLICATE

    def device_reports(self, devices: int) -> devices.DeviceReports:
        """One output of a window a device, where labels are private."""
        if self.labels != "private":
            return super().device_reports(devices)
        return TwoRoundDevices(self, devices)

    def conversation(self, clients: int) -> tp.Conversation:
        """Turns up; cells of a few records up; distribution functions down, influences up."""
        drawn, private = (yield tp.Query(draw_turns, self)), self.labels == "private"
        slots = self.first_round.slots(turns.records_of(drawn))
        assignment = first_round.AssignedRounds.of(drawn, slots, private)
        each, first = assignment.turns, {"first": slots}
        reply = yield tp.Query(report_cells, self, first, each)
        counts = assignment.counted(reply, True, self.first_round.window.outputs)
        single = not turns.has_replicates(reply)
        models = [self.first_round.model(each, assignment.positive_fraction) for each in counts]
        plans = [self.influence(model, assignment.sizes) for model in models]
        published = _published(plans, single)
        reply = yield tp.Query(report_influences, self, first | published, each)
        outputs = max(plan.report.window.outputs for plan in plans)
        answered = assignment.counted(reply, False, outputs)
        results = [
            second_round.Result.of(self.first_round, plan, *rounds)
            for plan, *rounds in zip(plans, counts, answered, strict=True)
        ]
        return second_round.result_of(results, assignment.records, single)

    def influence(self, model: ScoreModel, sizes: Integers) -> second_round.Influence:
        """How records report in the second round, by the model of the first.

        Parameters
        ----------
        model : without a replicate axis.
        sizes : the numbers of records, and of those that report then (``Influence``).
        """
        private, bits = self.labels == "private", self.mechanism == "bit"
        return second_round.Influence(model, self.epsilon, private, bits, sizes)

    def renew_state(self, clients: tp.Clients, state: tp.ClientState) -> None:
        """Keep the turns that were drawn, without a look at the records."""
        turns.renew_turns(clients, state)


def _published(plans: list[second_round.Influence], single: bool) -> dict[str, Any]:
    """What the second round's reports are made with; a leading axis holds replicates."""
    published = {
        "knots": np.stack([plan.borders for plan in plans]),
        "grid": np.stack([plan.report.grid for plan in plans]),
        "width": np.array([plan.report.width for plan in plans]),
    }
    return {name: stacked[0] for name, stacked in published.items()} if single else published


class TwoRoundDevices(devices.NumberReports, devices.ReportsByInput):
    """One output of a sliding window a device.

    Parameters
    ----------
    protocol : a ``TwoRoundAUC`` with private labels.
    devices : how many are expected.
    """

    number_bytes = 2

    def __init__(self, protocol: Any, devices: int) -> None:
        super().__init__(protocol)
        self._first: FirstRound = protocol.first_round
        self.steps = protocol.steps[1:]
        self.first_turns = self._first.slots(devices)

    def instructions(self, query: tp.Query) -> devices.Instructions:
        """A window over class and cell; or the published numbers, and a window over their grid."""
        if query.step is self.steps[0]:
            return self._first.instructions(self._protocol.scale)
        return {
            "kind": "influence",
            "scale": devices.scale_entry(self._protocol.scale),
            **{name: query.broadcast[name].tolist() for name in ("knots", "grid")},
            **devices.window_entry(self._window(query)),
        }

    def numbers(self, query: tp.Query) -> int:
        """The window's outputs."""
        return self._window(query).outputs

    def input_counts(
        self, query: tp.Query, clients: tp.Clients, rng: np.random.Generator
    ) -> Integers:
        """How many records have each class and cell; or each number, rounded to the grid."""
        scaled = self._protocol.on_scale(clients)
        if query.step is self.steps[0]:
            values = self._first.inputs_of(scaled)
        else:
            numbers = second_round.reported_numbers(
                scaled.scores, scaled.labels, query.broadcast["knots"]
            )
            values = self._grid(query).rounded(numbers, rng)
        return np.bincount(values, minlength=self._window(query).inputs)

    def simulated_counts(
        self, query: tp.Query, held: Integers, rng: np.random.Generator
    ) -> Integers:
        """By ``SlidingWindow``."""
        return self._window(query).simulated_counts(held, rng)

    def influences(self, query: tp.Query, counts: Sequence[Integers]) -> Floats:
        """Of the second round: a report's value about the mean, over the rarer class's fraction.

        The first round's errors cancel to first order, and so do its liars; a report there changes
        the AUC by products of errors only.
        """
        if query.step is self.steps[0]:
            return np.zeros(1)
        plan = self._plan(counts)
        values, came = plan.report.values(plan.distributions[0]), counts[1]
        return np.asarray((values - values @ came / max(came.sum(), 1)) / plan.rarer)

    def _plan(self, counts: Sequence[Integers]) -> second_round.Influence:
        """How records report in the second round, from the reports of the first."""
        sizes = np.array([[sum(int(each.sum()) for each in counts)], [int(counts[1].sum())]])
        model = self._first.model(counts[0][np.newaxis], 0.0)
        return self._protocol.influence(model, sizes)

    def _window(self, query: tp.Query) -> bounded.SlidingWindow:
        if query.step is self.steps[0]:
            return self._first.window
        return self._grid(query).window

    def _grid(self, query: tp.Query) -> bounded.GridReport:
        grid, width = query.broadcast["grid"], int(query.broadcast["width"])
        return bounded.GridReport(self._protocol.epsilon, grid, width)


TAILORING = 2**20
"""Number of records for which reports are tailored, for every real number of records."""

PLANNED_TRIALS = 64
"""Number of simulated first rounds: a class's predicted error is known to 9 %, not to 25 % as from
the server's few, and a plan does not fail by chance."""

FINER = 32
"""Number of points in a cell at which the true distribution functions are taken."""


def planned_influence(
    protocol: TwoRoundAUC, records: int, positives: int, shape: tp.Shape
) -> second_round.Influence:
    """The second round, if the first round estimates the shape exactly."""
    fraction, first_round = positives / records, protocol.first_round
    kinds = [records] if first_round.private_labels else [records - positives, positives]
    whole = np.array(kinds, dtype=np.int64)
    late = np.rint(whole * (1 - first_round.slots(records) / turns.SLOTS)).astype(np.int64)
    by_class = shape.cell_fractions(turns.CELLS, fraction, protocol.scale)
    model = ScoreModel(np.array(fraction), *reversed(by_class))
    return protocol.influence(model, np.stack([whole, late]))


@lru_cache(maxsize=64)
def two_round_forecast(
    protocol: TwoRoundAUC, scenario: tp.Scenario, shape: tp.Shape
) -> forecast.Forecast:
    """The second round's variance, and the second-order error of the first (docs, section 4d).

    The second-order error comes, as on the server, from simulated first rounds.

    Examples
    --------
    >>> scenario = tp.Scenario(40_000, 4_000, 40_000, 2.0)
    >>> forecast = two_round_forecast(TwoRoundAUC(2.0), scenario, tp.Shape(0.8))
    >>> round(forecast.standard_error, 3)
    0.027
    """
    influence = planned_influence(protocol, scenario.records, scenario.positives, shape)
    whole, late = influence.sizes
    expected = protocol.first_round.expected(influence.model) * (whole - late)[:, np.newaxis]
    # what the first round leaves does not depend on the second's report
    bits = replace(influence, bits=True)
    ones = np.ones((late.size, bits.report.window.outputs), dtype=np.int64)
    result = second_round.Result.of(
        protocol.first_round, bits, np.rint(expected).astype(np.int64), ones, PLANNED_TRIALS
    )
    report = best_report(protocol, round(TAILORING * scenario.positive_fraction), shape)
    variance = second_round_variance(influence, report) + result.first_round_error**2
    return forecast.Forecast(
        math.sqrt(variance),
        interpolation_bias(shape, scenario.positive_fraction, protocol.scale),
        min(scenario.positives, scenario.negatives),
        scenario.records * result.positive_fraction_error,
    )


def two_round_families(scenario: tp.Scenario) -> list[forecast.Family]:
    """Private and public labels."""
    return [
        forecast.Family(
            (TwoRoundAUC(scenario.epsilon),),
            (tp.Trust.LOCAL, tp.Trust.EACH),
            "there is no curve, only the AUC, and every record must be reachable in three rounds",
        ),
        forecast.Family(
            (TwoRoundAUC(scenario.epsilon, "public"),),
            (tp.Trust.LOCAL,),
            "every record's label is shown to the server",
        ),
    ]


def interpolation_bias(shape: tp.Shape, positive_fraction: float, scale: str) -> float:
    """The bias of distribution functions that are linear within cells.

    ``- integral of (F^- - G^-) d(F^+ - G^+)``, F linear and G true at every ``FINER``-th of a cell
    (docs, section 4d).

    Examples
    --------
    >>> abs(interpolation_bias(tp.Shape(0.8), 0.5, "even")) < 1e-6
    True
    """
    errors = [
        np.repeat(coarse / FINER, FINER) - fine
        for coarse, fine in zip(
            shape.cell_fractions(turns.CELLS, positive_fraction, scale),
            shape.cell_fractions(turns.CELLS * FINER, positive_fraction, scale),
            strict=True,
        )
    ]
    return -float(first_round.area_of(*errors))


@lru_cache(maxsize=64)
def best_report(protocol: TwoRoundAUC, positives: int, shape: tp.Shape) -> bounded.GridReport:
    """The second round's mechanism; the number of records hardly matters to it."""
    positives = min(max(1, positives), TAILORING - 1)
    return planned_influence(protocol, TAILORING, positives, shape).report


def second_round_variance(influence: second_round.Influence, report: bounded.GridReport) -> float:
    """The variance that ``Influence.conclude`` states, for a report that was chosen before."""
    whole, reporting = influence.sizes
    if not reporting.all():
        return math.inf
    noise = np.array([report.variance(distribution) for distribution in influence.distributions])
    drawn = np.array([distribution.variance for distribution in influence.distributions])
    variance = float(np.sum(noise / reporting + drawn * (1 / reporting - 1 / whole)))
    fraction = float(influence.model.positive_fraction)
    return variance / min(fraction, 1 - fraction) ** 2 if influence.private_labels else variance


PLANNING = forecast.Planning.of_figure(two_round_families, two_round_forecast)
