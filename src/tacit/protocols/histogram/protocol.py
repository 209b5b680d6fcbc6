"""Score histograms: everything about a classifier from one private pass (after Cormode and Markov
2023, whose own form is ``published.calibration``; docs, section 5).

Both classes' scores are counted in a tree of cells. ``trust`` says who may see what: the exact sum
over the clients, a sum with noise of which every client drew a share, or reports that are private
before they leave the client. All figures follow from the consistent tree.

What the server of a score histogram asks for, and what it concludes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats
from tacit.counts import influence, placing, tree_budget, tree_results
from tacit.data.units import PROBABILITY, are_convertible, converted
from tacit.local import turns
from tacit.metrics import trees
from tacit.metrics.cells.score_scale import EVEN
from tacit.privacy.exact import MAX_SHARED_SCALE
from tacit.protocol import audits, devices, releases
from tacit.protocol.conversation import OneCount
from tacit.protocol.declared import LOCAL, LOCAL_PAGE
from tacit.protocols.histogram import local_rounds, steps
from tacit.protocols.histogram.histogram_rounds import after_rounds
from tacit.protocols.shared import counting
from tacit.protocols.shared.declared import HISTOGRAM_PAGE, CountingProtocol, forest_model
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.measures.catalogue import THRESHOLDS
from tacit.results.parts import Breakdown

REPORTED = tp.ThreatModel(
    LOCAL,
    "Exactly: each client's number of records, in which round each spoke, and about which level. "
    "With noise: of every record some bits about its class and cell, or, of a few where cells are "
    "placed, where their scores lie.",
    "Cells that hold about equally many records, as far as noisy reports tell.",
    "Numbers of records, and the order in which they were sent.",
    LOCAL_PAGE,
)
PUBLISHED = dict.fromkeys(
    (tp.Trust.SECURE_SUM, tp.Trust.EACH),
    "Cells where noisy counts placed them, and both classes' noisy distributions and sizes where "
    "there was a second round; else nothing.",
)


def threats_of(settings: Mapping[str, Any]) -> tp.ThreatModel:
    """The threat model of these settings."""
    trust = tp.Trust.of(str(settings.get("trust", tp.Trust.SECURE_SUM.value)))
    if trust is tp.Trust.LOCAL:
        return REPORTED
    counted = "how many positives and negatives lie in every cell"
    if trust is not tp.Trust.EXACT_SUM:
        counted += ", and, with a second round, the sum of the records' influences on the AUC"
    return forest_model(settings, counted, PUBLISHED, HISTOGRAM_PAGE)


SECURE_SUM = tp.SecureSum.word

ROUND_REPEATS = 800
"""Repetitions of runs whose rounds follow from what came before, which are slow."""


def reported_tree(
    protocol: ScoreHistogram, clients: int, buckets: int | None = None
) -> tp.Conversation:
    """Unary reports up."""
    height = protocol.tree_height(clients)
    reply = yield tp.Query(
        local_rounds.unary_reports, protocol, broadcast={"clients": clients, "height": height}
    )
    leaves, noise = local_rounds.local_tree(protocol.known_epsilon, reply, height)
    return tree_results.result_from_tree(leaves, noise, buckets, axis=protocol.score_axis)


def one_tree(protocol: ScoreHistogram, clients: int, buckets: int | None = None) -> tp.Conversation:
    """Summed trees up."""
    height = protocol.tree_height(clients)
    sums = yield from releases.ask(steps.summed_trees, protocol, clients, {"height": height})
    strata, noise = counting.consistent_trees(sums)
    leaves, all_noise = strata.sum(axis=-2), counting.pooled(noise, protocol.strata)
    axis = protocol.score_axis
    result = tree_results.result_from_tree(
        leaves, all_noise, buckets, releases.total_protection((sums,)), axis=axis
    )
    single = leaves.ndim == 1
    return replace(result, breakdown=protocol.breakdown(sums, axis) if single else None)


def _placed_reports(protocol: ScoreHistogram, clients: int) -> tp.Conversation:
    """Positions of a few records up, cells down, and all others' reports in them up."""
    epsilon, height = protocol.known_epsilon, protocol.tree_height(clients)
    drawn = yield tp.Query(local_rounds.draw_report_turns, protocol)
    records, each = turns.records_of(drawn), turns.each_turn(drawn)
    shared = {
        "clients": clients,
        "height": height,
        "first": local_rounds.early_slots(epsilon, records),
    }
    reply = yield tp.Query(local_rounds.report_positions, protocol, shared, each)
    borders = local_rounds.reported_borders(protocol.score_scale, reply, epsilon, height)
    published_borders = borders if turns.has_replicates(reply) else borders[0]
    reply = yield tp.Query(
        local_rounds.report_leaves, protocol, {**shared, counting.BORDERS: published_borders}, each
    )
    leaves, noise = local_rounds.local_tree(epsilon, reply, height, records)
    axis = ScoreAxis(counting.scale_of_borders(protocol, borders[0], 1 << height), protocol.unit)
    return tree_results.result_from_tree(leaves, noise, None, axis=axis)


MOST_THRESHOLDS = 50
"""How many thresholds may be asked for: of 256 cells enough are left for curves."""

EXACT_HEIGHT, SUM_HEIGHT, MAX_HEIGHT = 14, 10, 24
"""The height of exact sums by default, that of noisy counts in one round, and the largest."""


@dataclass(frozen=True)
class ScoreHistogram(CountingProtocol):
    """ROC, precision, recall, accuracy, calibration and the AUC from one histogram of both classes.

    Parameters
    ----------
    trust, epsilon, adjacency, scale : as ``CountingProtocol`` has them; ``Local()`` too.
    height : there are ``2**height`` cells; None takes 14 for exact sums, what suits the number of
        clients for local reports, and what suits the first round for noisy counts.
    aim : what epsilon serves: all figures of a ``"report"``, or the ``"auc"`` alone. The server
        first looks at the scores with a small fraction of epsilon. For a report it then places the
        cells of a tree where both classes score, and asks for the AUC as one number only with what
        its noise needs to stay below 0.45 of its sampling error; where all of epsilon would not do,
        and for the AUC alone, the AUC gets all that is left. With a height that was asked for there
        is one tree (for the AUC from ``2**8`` cells on), and local reports are dealt out to its
        levels.
    thresholds : scores at which placed cells end, so that rates there are those of whole cells, and
        at which decisions are reported; None takes the probabilities ``THRESHOLDS``.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> ScoreHistogram("secure-sum", epsilon=1.0).guarantee
    Cost(epsilon=1.0, delta=0.0, adjacency=<Adjacency.RECORD: 'record'>, rho=None)
    """

    aim: Literal["report", "auc"] = tp.setting(
        default="report", help="what epsilon serves: all figures of a report, or the AUC alone"
    )
    thresholds: tuple[float, ...] | None = tp.setting(
        default=None, help="scores at which cells end and decisions are reported"
    )

    name = "score-histogram"
    planning_module = "tacit.protocols.histogram.forecast"
    setting_order = ("trust", "adjacency", "epsilon", "aim")
    plan_example: ClassVar[Mapping[str, Any] | None] = {"trust": tp.SecureSum.word, "epsilon": 1.0}
    demonstrated: ClassVar[Mapping[str, Any]] = {
        "hospitals": {"score-histogram, secure sum": plan_example},
        "phones": {"score-histogram, local": {"trust": tp.Local.word, "epsilon": 5.0}},
    }
    gives_curve = True
    gives_histogram = True
    replicated_fields = (*influence.PUBLISHED, counting.BORDERS)
    state_types = (turns.Turns,)
    threats = staticmethod(threats_of)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.height is not None and not 1 <= self.height <= MAX_HEIGHT:
            raise ValueError(f"height must be from 1 to {MAX_HEIGHT}, got {self.height}")
        if self.thresholds is not None:
            self._check_thresholds(self.thresholds)

    def _check_thresholds(self, thresholds: tuple[float, ...]) -> None:
        low, high = self.score_range or (-math.inf, math.inf)
        wrong = [each for each in thresholds if not low < each < high]
        if wrong:
            raise ValueError(f"thresholds must be between {low:g} and {high:g}, got {wrong[0]}")
        if not 1 <= len(thresholds) <= MOST_THRESHOLDS:
            raise ValueError(f"thresholds must be 1 to {MOST_THRESHOLDS}, got {len(thresholds)}")

    @property
    def counts_in_rounds(self) -> bool:
        """Whether the server counts in several rounds, each of which follows from those before.

        Of noisy counts (``SecureSum`` and ``Each``) without a height, or for the AUC with a height
        of rounds; not where shares of the first round's noise would have too large a scale.
        """
        most = tree_budget.MAX_FLAT_HEIGHT if self.aim == "auc" and not self.by_group else 0
        if not isinstance(self.trust, tp.SecureSum | tp.Each) or (self.height or 0) > most:
            return False
        first = self.known_epsilon * tree_budget.FIRST_PARTS / tree_budget.PARTS
        return self.distance / (first * tree_budget.CLASS_FRACTION) <= MAX_SHARED_SCALE

    @property
    def places_cells(self) -> bool:
        """Whether the first reports say where the cells of the others lie."""
        return isinstance(self.trust, tp.Local) and self.scale != EVEN

    @property
    def round_heights(self) -> tuple[int, ...]:
        """The heights of rounds: the first, those with zoomed cells, and a report's trees."""
        first, (low, high) = self.height or tree_budget.ROUND_HEIGHT, placing.TREE_HEIGHTS
        least = (
            tree_budget.LEAST_ROUND_HEIGHT
            if isinstance(self.trust, tp.Each) and not self.height
            else first
        )
        trees_too = range(low, high + 1) if self.aim == "report" or self.by_group else ()
        zoomed = min(first + 1, tree_budget.MAX_FLAT_HEIGHT)
        return tuple(sorted({*range(least, first), first, zoomed, *trees_too}))

    @property
    def served(self) -> tree_budget.Aim:
        """What the levels of a tree serve."""
        return self.aim

    @property
    def strata_names(self) -> tuple[str, ...]:
        """The strata each of which a tree counts separately; empty where all records are one
        stratum."""
        return ()

    @property
    def middle_edge(self) -> float | None:
        """The score on either side of which half of a tree's placed cells lie; None for no such."""
        return None

    @property
    def by_group(self) -> bool:
        """Whether figures of strata are given."""
        return bool(self.strata_names)

    @property
    def strata(self) -> int:
        """How many tables of counts a tree holds."""
        return max(len(self.strata_names), 1)

    def first_height(self, clients: int) -> int:
        """The height of the first round: fewer cells where each client adds the whole noise.

        The product of both functions' errors grows with the noise and the number of cells.
        """
        if self.height is not None or not isinstance(self.trust, tp.Each):
            return self.height or tree_budget.ROUND_HEIGHT
        return max(
            tree_budget.ROUND_HEIGHT - round(math.log2(clients) / 2),
            tree_budget.LEAST_ROUND_HEIGHT,
        )

    @property
    def threshold_edges(self) -> Floats:
        """The scores at which placed cells end, ascending, shape (T,)."""
        if self.thresholds is not None:
            return np.unique(self.thresholds)
        has_usual = are_convertible(PROBABILITY, self.unit)
        return converted(THRESHOLDS, PROBABILITY, self.unit) if has_usual else np.zeros(0)

    @property
    def decisions(self) -> tuple[float, ...]:
        """The thresholds as probabilities; the usual ones where scores have none."""
        if self.thresholds is None or not are_convertible(self.unit, PROBABILITY):
            return THRESHOLDS
        return tuple(converted(self.threshold_edges, self.unit, PROBABILITY).tolist())

    def deciding(self, probabilities: Sequence[float]) -> Self:
        """The same whose cells end at these probabilities, where scores are such or log-odds."""
        if not probabilities or not are_convertible(PROBABILITY, self.unit):
            return self
        edges = np.unique(converted(probabilities, PROBABILITY, self.unit))
        return replace(self, thresholds=tuple(edges.tolist()))

    @property
    def steps(self) -> tuple[tp.Step, ...]:
        """The steps of these settings."""
        if isinstance(self.trust, tp.Local):
            return local_rounds.LOCAL_ROUNDS if self.places_cells else (local_rounds.unary_reports,)
        if self.counts_in_rounds:
            return (*steps.ROUNDS, steps.summed_influences)
        return (steps.summed_trees,)

    def tree_height(self, clients: int) -> int:
        """The height that was asked for, or the default for this trust and number of clients."""
        if self.height is not None:
            return self.height
        if isinstance(self.trust, tp.Local):
            return tree_budget.local_height(clients, self.known_epsilon)
        if isinstance(self.trust, tp.ExactSum):
            return EXACT_HEIGHT
        return SUM_HEIGHT

    @property
    def one_count(self) -> OneCount | None:
        """One tree over all records; None where records report by themselves.

        The tree of few cells for which there would be rounds serves the report.
        """
        if isinstance(self.trust, tp.Local):
            return None
        height = self.tree_height(1)
        once = replace(self, height=height) if self.counts_in_rounds else self
        if once.counts_in_rounds:
            once = replace(once, aim="report")
        cells = 1 << height
        edges = self.score_edges(np.arange(1, cells) / cells)
        return OneCount(once, edges, self.score_ends, self.strata_names)

    def strata_of(self, clients: tp.Clients) -> counting.Strata:
        """The strata of the records."""
        return counting.ALL_RECORDS

    def breakdown(self, sums: releases.Sums, axis: ScoreAxis) -> Breakdown | None:
        """The figures of strata that were counted in a tree; None where there is one."""
        return None

    def level_units(self, height: int) -> tuple[int, ...]:
        """In how many of ``CHOICE_UNITS`` cases a record reports on each level of cells."""
        return tree_budget.record_units(height, self.aim)

    def level_parts(self, height: int) -> dict[int, float]:
        """The levels of the tree that are asked for, with what each costs a record.

        Exact sums are asked for their leaves, which cost infinity.
        """
        if self.epsilon is None:
            return {height + 1: math.inf}
        budget = self.epsilon
        divided = tree_budget.epsilon_by_level(height, budget, self.distance, self.served)
        parts = {level: part for level, part in enumerate(divided) if part > 0}
        largest = max(parts, key=lambda level: parts[level])
        while math.fsum(parts.values()) > budget:  # by the last digit
            parts[largest] = math.nextafter(parts[largest], 0.0)
        return parts

    def replicate_size(self, clients: tp.Clients) -> int:
        """Numbers a replicate holds: of rounds and, where few clients add their noise, of trees."""
        vectors = clients.count if isinstance(self.trust, tp.Each) else 2
        numbers = vectors << (self.tree_height(clients.count) + 1)
        if self.counts_in_rounds:
            numbers = max(numbers, min(2 * vectors, 8) << (max(self.round_heights) + 1))
        return 8 * self.strata * numbers

    @property
    def title(self) -> str:
        """The name with trust and adjacency, and where there is a choice what epsilon serves."""
        if not isinstance(self.trust, tp.SecureSum | tp.Each):
            return super().title
        form = f", aim {self.aim}" if self.counts_in_rounds else ", one round"
        return super().title + ("" if form == ", aim report" else form)

    @property
    def serves_report(self) -> bool:
        """Whether epsilon serves all figures."""
        return self.aim == "report"

    def comparison(self) -> tp.Protocol:
        """Two models' AUCs at this epsilon, under this trust.

        Raises
        ------
        ValueError : for exact sums and private reports, of which there is no comparison.
        """
        from tacit.protocols.histogram.comparing import ComparedHistograms

        if not isinstance(self.trust, tp.SecureSum | tp.Each):
            raise ValueError(f"two models are compared by secure-sum or each, got {self.trust}")
        hides: Any = self.adjacency
        return ComparedHistograms(self.known_epsilon, self.trust, hides, self.scale)

    def device_reports(self, devices: int) -> devices.DeviceReports:
        """Unary bits of class and cell, in the local model."""
        if not isinstance(self.trust, tp.Local):
            return super().device_reports(devices)
        return local_rounds.UnaryDevices(self, devices)

    def conversation(self, clients: int) -> tp.Conversation:
        """Rounds and one number, a tree in given or placed cells, or private reports."""
        if self.counts_in_rounds:
            return after_rounds(self, clients)
        if self.places_cells:
            return _placed_reports(self, clients)
        return reported_tree(self, clients) if self.lone_records else one_tree(self, clients)

    @property
    def score_axis(self) -> ScoreAxis:
        """The scores of the cells."""
        return ScoreAxis(self.score_scale, self.unit)

    audit_settings: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {"trust": SECURE_SUM, "height": 2},
        {"trust": SECURE_SUM, "height": 2, "adjacency": "replace"},
        {"trust": SECURE_SUM, "height": 2, "aim": "auc"},
        {"trust": SECURE_SUM},
        {"trust": tp.Each.word, "height": 2},
        {"trust": tp.Each.word},
        {"trust": tp.Local.word, "height": 2},
        {"trust": tp.Local.word, "height": 2, "scale": EVEN},
        {"trust": tp.ExactSum.word, "height": 2},
    )
    """Every trust model, on small trees."""

    def hostile_query(self, query: tp.Query) -> tp.Query:
        """Published functions under which a low negative moves the sum most.

        All positives lie in the middle and all negatives at the top, so that the AUC is 0. A
        negative below the middle has the influence 1, a positive there 0. The other query holds
        nothing that changes how much a step reveals.
        """
        if influence.SIZES not in query.broadcast:
            return query
        inner = query.broadcast[influence.POSITIVES].shape[-1]
        positives = (np.arange(inner) >= inner // 2).astype(np.float64)
        fields = zip(influence.PUBLISHED, (positives, np.zeros(inner), np.ones(2)), strict=True)
        return replace(query, broadcast={**query.broadcast, **dict(fields)})

    def renew_state(self, clients: tp.Clients, state: tp.ClientState) -> None:
        """Keep the turns that were drawn, without reading the records."""
        turns.renew_turns(clients, state)

    law_settings: ClassVar[audits.Configurations] = {
        "histogram-secure": {"trust": tp.ExactSum.word, "epsilon": None, "height": 5},
        "histogram-rounds": {"epsilon": 30.0},
        "histogram-rounds-replace": {"epsilon": 60.0, "adjacency": "replace"},
        "histogram-auc": {"epsilon": 30.0, "aim": "auc"},
        "histogram-tree": {"height": 5},
        "histogram-each": {"trust": tp.Each.word, "height": 5},
        "histogram-each-rounds": {"trust": tp.Each.word, "epsilon": 30.0},
        "local-histogram": {"trust": tp.Local.word, "height": 4},
    }
    """Every trust model, and every aim. Rounds get an epsilon at which the classes of small data
    show, so that there is an AUC."""

    @classmethod
    def error_cases(cls: Any) -> Mapping[str, audits.ErrorCase]:
        """The forms with noise in a sum."""
        return {
            "histogram": audits.ErrorCase(cls(SECURE_SUM, 1.0, 10), noticed=True),
            "histogram-replace": audits.ErrorCase(cls(SECURE_SUM, 2.0, 10, adjacency="replace")),
            "histogram-dropouts": audits.ErrorCase(cls(tp.SecureSum(0.3), 1.0, 10), noticed=True),
            "histogram-rounds": audits.ErrorCase(cls(SECURE_SUM, 1.0), ROUND_REPEATS, True),
            "histogram-rounds-replace": audits.ErrorCase(
                cls(SECURE_SUM, 1.0, adjacency="replace"), ROUND_REPEATS
            ),
            "histogram-auc": audits.ErrorCase(cls(SECURE_SUM, 1.0, aim="auc"), noticed=True),
            "histogram-each": audits.ErrorCase(cls(tp.Each(), 1.0), ROUND_REPEATS, True),
            "histogram-each-auc": audits.ErrorCase(cls(tp.Each(), 1.0, aim="auc")),
        }

    @property
    def law_traits(self) -> audits.LawTraits:
        """A second round and debiased bits are not exact."""
        local, inexact = self.lone_records, ""
        if self.counts_in_rounds:
            inexact = "noisy counts place the cells, and a number cancels errors to first order"
        elif self.places_cells:
            inexact = "records that report where scores lie are not among those counted"
        elif local:
            inexact = "records that are assigned to levels are not all"
        return audits.LawTraits(
            inexact=inexact,
            unforecast="plans use other settings" if self.counts_in_rounds else "",
            unmeasured_loss="bits without flips are no reports" if local else "",
        )

    def summed_noise(self, height: int, clients: int) -> trees.TreeNoise:
        """The errors of the sum of all strata's trees, where so many clients answer."""
        noises = float(releases.noises_of(self.trust, clients, clients)) * self.strata
        return counting.tree_noise(steps.tree_fields(self, height), noises)

    def noiseless_value(self, clients: tp.Clients) -> float:
        """The area of the exact tree at the depth that suits the protocol's noise."""
        height = self.tree_height(clients.count)
        leaves = np.bincount(steps.leaves_of(clients, height, self), minlength=2 << height)
        exact = trees.TreeNoise(np.zeros(height + 2))
        noise = exact if self.epsilon is None else self.summed_noise(height, clients.count)
        cells = leaves.reshape(2, -1).astype(np.float64)
        return float(tree_results.area_from_tree(cells, noise, self.score_axis).value)
