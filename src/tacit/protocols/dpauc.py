"""DPAUC: labels and scores stay at the clients, after Sun et al. 2022b (docs, section 2c).

The scores' positions on a public scale are cut at public thresholds. Clients release noisy counts
in the cells between them, and the server forms the ROC curve and its area. The server sees every
client's noisy counts and nothing else, except that label adjacency treats the scores, and so each
cell's number of records, as public. Where records are hidden whole, ``ScoreHistogram`` with trust
``each`` chooses cells by noisy counts and gives the other figures as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.counts import cell_areas, site_figures
from tacit.metrics import curves
from tacit.metrics.cells.score_scale import EVEN
from tacit.privacy.doubles import RepeatedNoise, ScaledNoise
from tacit.protocol import audits, forecast, releases
from tacit.protocol.conversation import OneCount
from tacit.protocol.scenario import planned_scale
from tacit.protocols.shared import counting
from tacit.protocols.shared.declared import COUNTED, adjacency_setting, first_reply
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.parts import Sites

PAGE = "threat-models/dpauc.md"

WHOLE_RECORDS = replace(
    COUNTED[tp.Trust.EACH],
    server="With noise: each client's positives and negatives in every cell of scores, or above "
    "every threshold.",
    page=PAGE,
)

BY_ADJACENCY = {
    "record": WHOLE_RECORDS,
    "replace": replace(
        WHOLE_RECORDS,
        left_open="A client's number of records, though it is noisy, and what is true of a large "
        "client as a whole.",
    ),
    "label": replace(
        WHOLE_RECORDS,
        server="Scores are treated as known: each client's number of records in a cell may be "
        "exact. Its positives are noisy, or counted among flipped labels.",
        left_open="Scores, up to the width of a cell, and numbers of records.",
    ),
}


def _fields(query: tp.Query) -> releases.Fields:
    """The counts of both levels; at label adjacency those of positives, and public records."""
    settings: DPAUC = query.protocol
    levels, moved = settings.levels, settings.distance
    labelled = settings.adjacency == "label"
    classes = () if labelled else (2,)
    fields = {"cells": tp.Released((*classes, levels.cells), moved, levels.cell_epsilon)}
    if levels.groups:
        fields["groups"] = tp.Released((*classes, levels.groups), moved, levels.group_epsilon)
    return fields | {"records": tp.Released((levels.cells,), 0)} if labelled else fields


@tp.release(_fields)
def noisy_histograms(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send the numbers of positives and negatives in cells and groups of cells, with noise.

    A record sits in one cell, and its group, of one class: adding or removing it changes one count
    of each level by one, and replacing it at most two. Discrete Laplace noise of scale
    ``sensitivity / part`` on every count costs that level's fraction of epsilon, and both levels
    together epsilon (``tacit.protocol.releases``). At label adjacency the number of records in a
    cell is public and sent as it is; a label flip changes one positive count of each level by one.

    The server learns the noisy counts of each client's cells and groups.
    """
    settings: DPAUC = query.protocol
    positives, records = counting.cell_counts(settings.on_scale(clients), settings.edges)
    labelled = settings.adjacency == "label"
    cells = positives if labelled else np.stack([positives, records - positives])
    counts = {"cells": cells, "records": records}
    if settings.levels.groups:
        counts["groups"] = np.add.reduceat(cells, settings.levels.starts, axis=-2)
    return counts


@dataclass(frozen=True)
class Thresholds(tp.ScaledScores, tp.Protocol):
    """What all forms of DPAUC have in common: public thresholds, and the cells between them.

    Parameters
    ----------
    epsilon : the privacy budget of one evaluation, for every record.
    thresholds : how many there are.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.
    """

    epsilon: float = tp.setting(help=tp.EPSILON)
    thresholds: int = tp.setting(default=100, help="number of cells")

    gives_curve = True
    threats = staticmethod(lambda settings: BY_ADJACENCY[settings.get("adjacency", "record")])

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.thresholds <= 2**20:
            raise ValueError(f"thresholds must be between 2 and 2**20, got {self.thresholds}")

    @property
    def edges(self) -> Floats:
        """The lower edges of the cells, which are the thresholds, as positions."""
        return np.linspace(0.0, 1.0, self.thresholds + 1)[:-1]

    @property
    def one_count(self) -> OneCount | None:
        """All that a run asks for."""
        return OneCount(self, self.score_edges(self.edges[1:]), self.score_ends)

    @property
    def edge_scores(self) -> Floats:
        """The lower edges of the cells as scores."""
        return self.score_scale.scores(self.edges)


@dataclass(frozen=True)
class DPAUC(Thresholds):
    """The AUC and ROC curve with private labels and scores.

    Parameters
    ----------
    epsilon : the privacy budget of one evaluation, for every record.
    thresholds : the number of equal cells of positions.
    adjacency : ``"record"`` (added or removed), ``"label"`` or ``"replace"``.
    scale : where cells lie (``metrics.cells.score_scale``); ``"even"`` as in the paper.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> DPAUC(epsilon=1.0).guarantee
    Cost(epsilon=1.0, delta=0.0, adjacency=<Adjacency.RECORD: 'record'>, rho=None)
    """

    adjacency: Literal["record", "label", "replace"] = adjacency_setting()
    scale: str = tp.scale_setting()

    name = "dpauc"
    planning_module = __name__
    trust: ClassVar[tp.Each] = tp.Each()
    steps = (noisy_histograms,)
    audit_settings = (
        {"thresholds": 100},
        {"adjacency": "label"},
        {"adjacency": "replace", "thresholds": 20},
    )
    loose_audit_settings = ({"thresholds": 8},)
    law_settings: ClassVar[audits.Configurations] = {
        "dpauc": {"thresholds": 20},
        "dpauc-label": {"thresholds": 20, "adjacency": "label"},
        "dpauc-replace": {"thresholds": 20, "adjacency": "replace"},
        "dpauc-even": {"thresholds": 20, "scale": EVEN},
    }

    @property
    def levels(self) -> cell_areas.Levels:
        """How the histogram of one round divides epsilon, chosen from public figures."""
        return cell_areas.best_levels(self.thresholds, self.epsilon, self.distance)

    def replicate_size(self, clients: tp.Clients) -> int:
        """Numbers a replicate holds: its noisy counts."""
        return 8 * self.thresholds * clients.count

    def conversation(self, clients: int) -> tp.Conversation:
        """Noisy counts up."""
        sums = yield from tp.ask(noisy_histograms, self, clients)
        cells, noise = self._reconciled(sums)
        if self.adjacency == "label":
            return result_of(self, (cells, sums["records"] - cells), noise)
        classes = cells[..., 0, :], cells[..., 1, :]
        result = result_of(self, classes, noise)
        influences = tuple(map(np.nan_to_num, curves.cell_influences(*classes)))
        normal = np.asarray(result.approximation_error)
        law = self.levels.law(influences, sums.answered, self.distance, normal)
        result = replace(result, law=law)
        if cells.ndim > 2 or not site_figures.has_sites(sums.answered):
            return result
        return replace(result, sites=self._sites(sums.by_client()))

    def _reconciled(self, sums: tp.Sums) -> tuple[Floats, cell_areas.CellNoise]:
        """The counts in cells, made consistent with those in groups, and their noise."""
        noise = self.levels.noise(sums.answered, self.distance)
        groups = sums["groups"] if self.levels.groups else np.zeros(0)
        return noise.reconciled(sums["cells"], groups), noise

    def _sites(self, sums: tp.Sums) -> Sites:
        """The figures of every client, from the noisy counts that it sent."""
        cells, noise = self._reconciled(sums)
        classes = cells[:, 0], cells[:, 1]
        by_client = site_figures.ClientCells(
            *classes, lambda weights: float(noise.variance_of(weights))
        )
        axis = ScoreAxis(self.score_scale, self.unit)
        return site_figures.sites_of(result_of(self, classes, noise), by_client, axis)

    @classmethod
    def self_test_cases(cls) -> tp.SelfTestCases:
        """Histograms and releases of two of them, sound and with a mistake each."""
        histogram = cls(1.0, 4, scale=EVEN)
        small = SmallSensitivity(1.0, 4, adjacency="replace", scale=EVEN)
        twice = TwoReleases(1.0, 4, scale=EVEN)
        doubled = TwoReleases(1.0, 4, declared=1.0, scale=EVEN)
        halved, lowered = partial(ScaledNoise, 0.5), partial(ScaledNoise, 0.7)
        return tp.SelfTestCases(
            (
                tp.AuditTrial(audits.COUNTS, "noisy histogram", False, histogram),
                tp.AuditTrial(audits.COUNTS, "its noise halved", True, histogram, halved),
                tp.AuditTrial(audits.COUNTS, "its noise 30 % too small", True, histogram, lowered),
                tp.AuditTrial(audits.COUNTS, "its sensitivity too small", True, small),
                tp.AuditTrial(audits.COMPOSITION, "two releases at twice epsilon", False, twice),
                tp.AuditTrial(audits.COMPOSITION, "their budget counted twice", True, doubled),
                tp.AuditTrial(
                    audits.COMPOSITION, "their noise from one seed", True, twice, RepeatedNoise
                ),
            ),
            (cls(1.0, 100, scale=EVEN),),
        )

    def label_attacks(self) -> tuple[audits.LabelAttack, ...]:
        """The counts of clients with one record."""
        return (guesses_from_lone_counts,)

    @classmethod
    def error_cases(cls) -> Mapping[str, tp.ErrorCase]:
        """The papers' number of cells at every adjacency."""
        return {
            "dpauc": tp.ErrorCase(cls(1.0, 100, scale=EVEN), noticed=True),
            "dpauc-label": tp.ErrorCase(cls(1.0, 100, adjacency="label", scale=EVEN)),
            "dpauc-replace": tp.ErrorCase(cls(1.0, 100, adjacency="replace", scale=EVEN)),
        }

    def noiseless_value(self, clients: tp.Clients) -> float:
        """The area of the counts in cells, with what cells hide."""
        pooled = pooled_cells(self.on_scale(clients), self.edges)
        return float(curves.cell_area(*pooled)) + float(curves.density_correction(*pooled))


def result_of(
    protocol: Any, cells: tuple[Floats, Floats], noise: cell_areas.CellNoise
) -> tp.ServerResult:
    """The area of noisy positives and negatives in the protocol's cells.

    At label adjacency noise moves records from one class to the other, and cell totals are exact.
    """
    variance = cell_areas.area_variance(protocol.adjacency, cells, noise)
    return cell_areas.result_from_cells(
        protocol.edge_scores, cells, variance, noise, protocol.scale == EVEN
    )


def pooled_cells(placed: tp.Clients, edges: Floats) -> tuple[Floats, Floats]:
    """The positives and negatives in cells with these lower edges, of all clients together."""
    positives, records = counting.cell_counts(placed, edges)
    return positives.sum(-1), (records - positives).sum(-1)


CELLS = (10, 20, 50, 100, 200, 400)
"""Numbers of cells that a plan compares."""


def dpauc_forecast(protocol: DPAUC, scenario: tp.Scenario, shape: tp.Shape) -> tp.Forecast:
    """The variance formulas of noisy histograms, at the expected counts of the shape.

    Source: docs, sections 2b and 2c. The bias is what the area of expected counts, with densities
    linear inside cells, misses of the shape's AUC.

    Examples
    --------
    >>> scenario = tp.Scenario(40_000, 4_000, 10, 1.0)
    >>> round(dpauc_forecast(DPAUC(1.0), scenario, tp.Shape(0.8)).standard_error, 4)
    0.0033
    """
    levels = protocol.levels
    cells = scenario.counts(shape, levels.cells, planned_scale(protocol.scale))
    noise = levels.noise(scenario.clients, protocol.distance)
    return cells_forecast(cells, noise, protocol.adjacency, scenario, shape)


def cells_forecast(
    cells: tuple[Floats, Floats],
    noise: cell_areas.CellNoise,
    adjacency: str,
    scenario: tp.Scenario,
    shape: tp.Shape,
) -> tp.Forecast:
    """The error of the area of expected positives and negatives in cells with this noise."""
    value = float(curves.cell_area(*cells) + curves.density_correction(*cells))
    variance = float(cell_areas.area_variance(adjacency, cells, noise))
    return tp.Forecast(
        math.sqrt(variance + forecast.placement(cells, corrected=True)),
        value - shape.auc,
        min(scenario.positives, scenario.negatives),
        math.sqrt(noise.total),
    )


def dpauc_families(scenario: tp.Scenario) -> list[tp.Family]:
    """Noisy cells at every adjacency."""
    noise = "every client adds noise of its own, so the error grows with the number of clients"
    return [
        _noisy_cells(scenario, "record", noise),
        _noisy_cells(scenario, "replace", noise),
        _noisy_cells(scenario, "label", "a record's score is not hidden"),
    ]


def _noisy_cells(scenario: tp.Scenario, adjacency: Any, given_up: str) -> tp.Family:
    kind = partial(DPAUC, scenario.epsilon, adjacency=adjacency)
    made = [partial(kind, cells) for cells in CELLS]
    return tp.Family(tp.accepted(made), (tp.Trust.EACH,), given_up)


PLANNING = tp.Planning.of_figure(dpauc_families, dpauc_forecast)


THRESHOLDS = 100


def guesses_from_lone_counts(
    protocol: tp.Protocol, sizes: tp.AttackSizes, seed: int
) -> Iterator[tp.Guesses]:
    """The cell of a client's only record, and its label, from the client's noisy counts."""
    clients = lone_records(sizes, seed)
    histogram = DPAUC(protocol.guarantee.epsilon, THRESHOLDS, scale=EVEN)
    noisy = np.asarray(first_reply(histogram, clients, tp.SimulatedNoise(seed + 1))["cells"])
    index = np.argmax(noisy.reshape(-1, clients.count), axis=0)
    guess = index % THRESHOLDS, index < THRESHOLDS
    yield from guesses_of_lone_records("noisy histograms", histogram, clients, guess, True)


def lone_records(sizes: tp.AttackSizes, seed: int) -> tp.Clients:
    """Clients of one record each."""
    scores, labels = audits.synthetic_records(sizes.records // 10, seed, 0.5)
    return tp.Clients.from_arrays(scores, labels, np.arange(scores.size))


def guesses_of_lone_records(
    release: str,
    protocol: Any,
    clients: tp.Clients,
    guess: tuple[NDArray[Any], NDArray[Any]],
    protected: bool,
) -> Iterator[tp.Guesses]:
    """How often the cells and labels of lone records were guessed."""
    cells = np.searchsorted(protocol.edges, clients.scores, side="right") - 1
    blind = float(np.bincount(cells).max() / cells.size)
    right = [
        int(np.sum(guessed == true))
        for guessed, true in zip(guess, (cells, clients.labels), strict=True)
    ]
    hides = protected and protocol.adjacency != tp.Adjacency.LABEL.value
    yield tp.Guesses(
        "a lone record's cell, from its counts", release, hides, right[0], cells.size, blind
    )
    limit = protocol.guarantee if protected else None
    attack = "a lone record's label, from its counts"
    yield tp.Guesses(attack, release, protected, right[1], cells.size, 0.5, limit)


_HISTOGRAMS = tp.Step(noisy_histograms.answer, lambda clients, query, state: query.protocol.claim)


@dataclass(frozen=True)
class TwoReleases(DPAUC):
    """Two histograms of the same records, in cells that are shifted against each other.

    Parameters
    ----------
    declared : what the run declares, as a multiple of epsilon: 2 is true, as both releases cost
        epsilon, and 1 counts the same budget twice.
    shifted : whether cells are half as wide but for the last one.
    """

    declared: float = 2.0
    shifted: bool = False

    @property
    def edges(self) -> Floats:
        """The lower edges of the cells."""
        return super().edges / 2 if self.shifted else super().edges

    @property
    def claim(self) -> tp.Cost:
        """What each release costs."""
        return tp.Cost(self.epsilon, adjacency=super().guarantee.adjacency)

    @property
    def guarantee(self) -> tp.Cost:
        """What is declared of both releases together."""
        return tp.Cost(self.declared * self.epsilon, adjacency=super().guarantee.adjacency)

    def conversation(self, clients: int) -> tp.Conversation:
        """Two rounds: counts in both divisions of the scores."""
        for settings in (self, replace(self, shifted=True)):
            reply = yield tp.Query(_HISTOGRAMS, settings, broadcast={"thresholds": settings.edges})
        raise ValueError(f"an audit draws no conclusion from {len(reply)} fields")


@dataclass(frozen=True)
class SmallSensitivity(DPAUC):
    """Histograms with noise for one changed count, where a replaced record changes two."""

    distance = 1
    """One, whatever the adjacency."""
