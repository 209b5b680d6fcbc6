"""One-versus-rest figures of a classifier with several classes, from one private pass.

What is summed. A record has a class y and a score s_c of each of C classes. It counts

- in the *own* tree of its class: the cell of s_y among the C trees of records' own classes: 1 vote;
- in the *other* tree of every other class c: the cell of s_c: C - 1 votes;
- in the *hits*: among 2C numbers, the one of its class and of whether s_y is its largest score
  (of tied scores the first counts as the largest): 1 vote.

So the positives of class c against the rest are in the own tree c, its negatives in the other tree
c. Each block has a fraction of epsilon, and a record is in all of them: they cost epsilon together
(``protocols.multiclass.forests``). C separate histograms of both classes would have C votes in
one block.

Why the parts are equal. With n records of each class, the variance by noise of the AUC of c is
about ``k (v_own / n^2 + v_other / ((C - 1) n)^2)``. Here k depends on the cells, v_own is in
proportion to ``1 / e_own^2``, and v_other to ``(C - 1)^2 / e_other^2``: the C - 1 votes cancel
against the C - 1 times as many negatives. ``1 / e_own^2 + 1 / e_other^2`` is least at equal parts.
Against two classes of n records each at the whole epsilon, an AUC then has 4 times the variance,
and the mean of C AUCs, whose noises are independent, ``4 / C`` times: the error of the macro AUC is
``2 / sqrt(C)`` of the error with two classes, and a tenth more for the part of the hits.

With ``local`` every record sends one report, on one level of one block, which it draws in
proportion to the parts above (``protocols.multiclass.forests``). With M = C n records and
half of them in either block, a count of c's own tree has the variance ``2 M v``, v that of unary
bits. One of its other tree has ``2 (C - 1)^2 M v`` with C - 1 times as many negatives. So the AUC
of c has about ``4 C v k / n``, and the mean of C AUCs ``4 v k / n`` whatever C is. Were one class
drawn instead, and a record reported whether that class is its own, with the score's cell, M/C
reports would give the AUC of c ``C^2 v k / n (1 + 1 / (C - 1)^2)``: more from C = 4 on.

With ``secure-sum`` a second round has the larger fraction of epsilon: one number a class
(``protocols.multiclass.second_round``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.counts import class_forests, tree_budget
from tacit.data.categories import check_names
from tacit.metrics.cells.score_scale import EVEN
from tacit.metrics.trees import TreeNoise
from tacit.protocol import audits, releases
from tacit.protocol.conversation import ONE_REPLICATE
from tacit.protocol.declared import NO_REPORTS
from tacit.protocol.scenario import planned_scale
from tacit.protocols.multiclass import forests, second_round
from tacit.protocols.shared import counting, declared
from tacit.results.curves.score_axis import ScoreAxis

HEIGHT, REPORT_HEIGHT, MAX_HEIGHT = 8, 5, 12
"""Height of the trees by default, that of private reports by default, and the largest."""

PUBLISHED = (
    "Of every class the noisy distributions of its score, in the class and in all others, and both "
    "sizes."
)
"""What a client receives before the second round."""

OWN, OTHER, HITS = "own", "other", "hits"
"""The blocks."""

HITS_PART = 0.1
"""The fraction of epsilon of the hits, which also tell the classes' sizes. Either block of trees
has half of what numbers and hits leave."""

SECOND_ROUND = 0.65
"""The second round's fraction of epsilon: trees of a quarter of epsilon leave products of
errors that are small compared with the noise of the numbers, from some 2,000 records a class on at
epsilon 1."""


@dataclass(frozen=True)
class MulticlassHistogram(declared.ScoresByClass, declared.CountingProtocol):
    """One-versus-rest AUC of every class, their averages, top-1 accuracy and calibration by class.

    Parameters
    ----------
    classes : the agreed names of the classes, in the order of the columns of scores.
    trust : as ``CountingProtocol`` has it, and ``Local()``: every record sends one private report.
        With ``SecureSum()`` a second round of one number a class has a fraction of 0.65 of epsilon.
    height : at most 12; None takes 8. With ``Local()`` at most 5, which None takes.
    epsilon, adjacency, scale : as ``CountingProtocol`` has them.

    Clients without classes are taken to have two, with the scores 1 - s and s: a binary classifier.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> MulticlassHistogram("secure-sum", 1.0, classes=("a", "b", "c")).guarantee.epsilon
    1.0
    """

    classes: tuple[str, ...] = tp.setting(
        default=("0", "1"), help="the agreed names of the classes, as their columns are ordered"
    )

    name = "multiclass-histogram"
    planning_module = __name__
    setting_order = ("trust", "adjacency", "epsilon")
    replicated_fields = second_round.FIELDS
    summed = (
        "how many records of each class, and of all others, lie in every cell of the class's "
        "score; how many of each class have their largest score at their class; with a second "
        "round also the sum of all records' influences on each class's AUC"
    )
    loose_audit_settings = (
        {"height": 2, "classes": ("a", "b", "c")},
        {"height": 1, "adjacency": "replace"},
        {"height": 2, "trust": tp.Trust.EACH.value},
        {"height": 2, "classes": ("a", "b", "c"), "trust": tp.Trust.LOCAL.value},
    )
    law_settings: ClassVar[audits.Configurations] = {
        "multiclass-exact": {"trust": tp.Trust.EXACT_SUM.value, "epsilon": None},
        "multiclass": {},
        "multiclass-replace": {"adjacency": "replace"},
        "multiclass-each": {"trust": tp.Trust.EACH.value},
        "multiclass-local": {"trust": tp.Trust.LOCAL.value, "height": 4},
    }
    """Every trust model."""

    def __post_init__(self) -> None:
        check_names("classes", self.classes)
        super().__post_init__()
        if self.height is None:
            object.__setattr__(self, "height", REPORT_HEIGHT if self.lone_records else HEIGHT)
        # records' reports leave deeper trees so few on each level that their cells bias the figures
        highest = REPORT_HEIGHT if self.lone_records else MAX_HEIGHT
        if not 1 <= self.tree_height <= highest:
            raise ValueError(f"height must be from 1 to {highest}, got {self.height}")
        if isinstance(self.trust, tp.SecureSum):
            releases.check_shares(self, forests.forest_fields(tp.Query(forests.count_forest, self)))
        if self.number_part:
            second_round.number_units(self.number_cost.epsilon, len(self.classes))

    @property
    def number_part(self) -> float:
        """The second round's fraction of epsilon; 0 for one round."""
        return SECOND_ROUND if isinstance(self.trust, tp.SecureSum) else 0.0

    @property
    def number_cost(self) -> tp.Cost:
        """What the second round costs every record, where there is one (``number_part``)."""
        return tp.Cost(
            self.number_part * (self.epsilon or 0.0), adjacency=tp.Adjacency(self.adjacency)
        )

    @property
    def steps(self) -> tuple[tp.Step, ...]:
        """The steps of this trust model."""
        if self.lone_records:
            return (forests.forest_reports,)
        numbers = (second_round.summed_class_influences,) if self.number_part else ()
        return (forests.count_forest, *numbers)

    def replicate_size(self, clients: tp.Clients) -> int:
        """The counts and their noise, of every client where it sends its own.

        Records draw what they report, and all replicates would have the same draw.
        """
        if self.lone_records:
            return ONE_REPLICATE
        counts = sum(4 * block.trees << block.height for block in self.blocks())
        return 8 * counts * (clients.count if isinstance(self.trust, tp.Each) else 1)

    def blocks(self) -> tuple[forests.Block, ...]:
        """Own trees, other trees, and hits."""
        count, tree = len(self.classes), (1 - HITS_PART - self.number_part) / 2
        others = count - 1
        return (
            forests.Block(OWN, count, 1, self.tree_parts(tree, 1)),
            forests.Block(OTHER, count, others, self.tree_parts(tree, others)),
            forests.Block(HITS, 2 * count, 1, (self.spent(HITS_PART),)),
        )

    def spent(self, fraction: float) -> float:
        """This fraction of epsilon; infinity for exact sums."""
        return math.inf if self.epsilon is None else fraction * self.epsilon

    def tree_parts(self, fraction: float, votes: int) -> tuple[float, ...]:
        """The levels' epsilons of a block that has this fraction of the budget, shape (h + 1,).

        With private reports every record spends epsilon on one level, and these are in proportion
        to how many records report on each.

        Parameters
        ----------
        fraction : of epsilon.
        votes : the trees of the block in which a record counts.
        """
        budget, height = self.spent(fraction), self.tree_height
        if math.isinf(budget):
            return (*[0.0] * height, budget)
        if self.lone_records:
            return forests.report_parts(height, budget)
        parts = tree_budget.epsilon_by_level(height, budget, votes * self.distance, "auc")
        return parts[1:]  # a tree of two classes has its classes on level 1

    def votes(self, clients: tp.Clients) -> Mapping[str, Integers]:
        """Each record's cell in its own class's tree and in those of the others; and its hit.

        By block, as the vote's tree times ``2**height`` plus its cell, shape (M, votes).
        """
        self.check_range(clients)
        scores, classes = self.classified(clients)
        count, cells = len(self.classes), 1 << self.tree_height
        positions = self.score_scale.positions(scores)
        leaves = np.minimum((positions * cells).astype(np.int64), cells - 1)
        leaves += np.arange(count) * cells
        in_class = np.arange(count) == classes[:, np.newaxis]
        hit = np.argmax(scores, axis=1) == classes
        return {
            OWN: leaves[in_class].reshape(-1, 1),
            OTHER: leaves[~in_class].reshape(-1, count - 1),
            HITS: (2 * classes + hit).reshape(-1, 1),
        }

    def conversation(self, clients: int) -> tp.Conversation:
        """The forest up; with a second round what follows from it down, and a number a class up."""
        if self.lone_records:
            reply = yield tp.Query(forests.forest_reports, self)
            reported = forests.forests_from_reports(self.blocks(), self.known_epsilon, reply)
            return self.conclusion(self.first_round(reported))
        sums = yield from tp.ask(forests.count_forest, self, clients)
        first = self.first_round(
            {
                block.name: class_forests.Forest(*counting.consistent_trees(sums, block.name))
                for block in self.blocks()
            }
        )
        if not self.number_part:
            return self.conclusion(first)
        fields = second_round.published(first)
        second = yield from tp.ask(second_round.summed_class_influences, self, clients, fields)
        counting.check_the_same_number(sums.answered, second.answered)
        noises = float(second.noises)
        return self.conclusion(
            second_round.refined(first, fields, second["sums"], self.number_cost, noises)
        )

    def expected_noise(self, clients: int) -> dict[str, TreeNoise]:
        """The errors of a tree of every block, where so many clients answer."""
        fields = forests.forest_fields(tp.Query(forests.count_forest, self))
        noises = float(clients if isinstance(self.trust, tp.Each) else 1)
        return {
            block.name: counting.tree_noise(fields, noises, block.name) for block in self.blocks()
        }

    def exact_forests(self, clients: tp.Clients) -> class_forests.Forests:
        """The forest of exact counts, with the noise that a run would have."""
        votes, noise = self.votes(clients), self.expected_noise(clients.count)
        return {
            block.name: class_forests.Forest(
                forests.exact_leaves(block, votes[block.name]), noise[block.name]
            )
            for block in self.blocks()
        }

    def first_round(self, counted: class_forests.Forests) -> class_forests.ClassForests:
        """The forests with the AUCs of the first round."""
        own, other, even = counted[OWN], counted[OTHER], self.scale == EVEN
        areas = class_forests.forest_areas(own, other, even)
        return class_forests.ClassForests(own, other, counted[HITS], even, areas)

    def conclusion(self, made: class_forests.ClassForests) -> tp.ServerResult:
        """The macro AUC, and all figures by class."""
        return class_forests.result_from_forests(
            self.classes, made, ScoreAxis(self.score_scale, self.unit)
        )

    def expected_result(
        self, first: class_forests.ClassForests, numbers: Floats | float = 0.0
    ) -> tp.ServerResult:
        """What is concluded of a first round without noise, and of a second round's numbers."""
        if not self.number_part:
            return self.conclusion(first)
        sums, fields = numbers + np.zeros(len(self.classes)), second_round.published(first)
        return self.conclusion(second_round.refined(first, fields, sums, self.number_cost, 1.0))

    def noiseless_value(self, clients: tp.Clients) -> float:
        """The figure of the exact cells, at the depth that suits the noise, or of both rounds."""
        first = self.first_round(self.exact_forests(clients))
        sums: Floats | float = 0.0
        if self.number_part:
            influences = second_round.ClassInfluences.of(second_round.published(first))
            sums = second_round.rounded_sums(self, clients, influences).sum(axis=-1)
        return float(self.expected_result(first, sums).value)

    @classmethod
    def error_cases(cls: Any) -> Mapping[str, tp.ErrorCase]:
        """The forms with noise."""
        return {
            "multiclass": tp.ErrorCase(cls(tp.Trust.SECURE_SUM.value, 1.0), noticed=True),
            "multiclass-each": tp.ErrorCase(cls(tp.Trust.EACH.value, 4.0), repeats=1200),
        }

    @property
    def tree_height(self) -> int:
        """The height of every tree."""
        return HEIGHT if self.height is None else self.height

    @classmethod
    def threats(cls, settings: Mapping[str, Any]) -> tp.ThreatModel:
        """Who sees what; before a second round clients receive what the first one says."""
        return declared.forest_model(settings, cls.summed, {tp.Trust.SECURE_SUM: PUBLISHED})

    @property
    def law_traits(self) -> tp.LawTraits:
        """Private reports are about some of a record's votes, and debiased all the same."""
        if not self.lone_records:
            numbers = "what a second round leaves of errors is known to first order"
            return tp.LawTraits(few_records=numbers if self.number_part else "")
        return tp.LawTraits(
            inexact="records report on one level of one block each", unmeasured_loss=NO_REPORTS
        )

    @classmethod
    def self_test_cases(cls: Any) -> tp.SelfTestCases:
        """The numbers of three classes, sound and with too little noise."""
        classes = cls(epsilon=2.0, height=2, classes=("a", "b", "c"))
        broken = "the noise of classes 30 % too small"
        return declared.lowered_noise(audits.SUMS, "numbers of classes", broken, classes)

    def hostile_query(self, query: tp.Query) -> tp.Query:
        """Published functions under which a record of any class moves the others' sums most.

        The own records of every class lie in the last cell but one and all others in the last, so
        that AUCs are 0, and there are far more own records than others. A record that is low in the
        scores of all other classes then has the influence 1 on each, and none on its own.
        """
        if second_round.SIZES not in query.broadcast:
            return query
        shape = len(self.classes), (1 << self.tree_height) - 1
        below = np.zeros(shape)
        below[:, -1] = 1.0
        sizes = np.tile([1e6, 1.0], (len(self.classes), 1))
        fields = zip(second_round.FIELDS, (below, np.zeros(shape), sizes), strict=True)
        return replace(query, broadcast={**query.broadcast, **dict(fields)})


def classes_forecast(
    protocol: MulticlassHistogram, scenario: tp.Scenario, shape: tp.Shape
) -> tp.Forecast | None:
    """What the server would conclude from the expected forest; nothing for private reports.

    Noise adds the same to every class, independently. What cells hide is bounded by the mean of the
    classes' errors, as a result bounds it. With two rounds the second one's number has the area
    that cells miss; with one the bias is what cells miss of the shape's AUC.

    Examples
    --------
    >>> scenario = tp.Scenario(30_000, 10_000, 10, 1.0, 3)
    >>> protocol = MulticlassHistogram(epsilon=1.0, classes=scenario.class_names)
    >>> forecast = classes_forecast(protocol, scenario, tp.Shape(0.8))
    >>> 0 < forecast.error < 0.002
    True
    """
    if protocol.lone_records:
        return None
    first = protocol.first_round(expected_forests(protocol, scenario, shape))
    result = protocol.expected_result(first)
    if result.withheld:
        return tp.Forecast(math.inf)
    _, variances = first.sizes()
    return tp.Forecast(
        math.hypot(float(result.privacy_error), float(result.approximation_error)),
        0.0 if protocol.number_part else float(result.value) - shape.auc,
        min(scenario.positives, scenario.negatives),
        math.sqrt(float(np.max(variances))),
    )


def expected_forests(
    protocol: MulticlassHistogram, scenario: tp.Scenario, shape: tp.Shape
) -> class_forests.Forests:
    """The expected counts of every block, with the noise of a run.

    How many of a class have their largest score at it changes no AUC: half of them are taken.
    """
    classes, scale = len(protocol.classes), planned_scale(protocol.scale)
    own, other = scenario.counts(shape, 1 << protocol.tree_height, scale)
    halves = np.full((2 * classes, 1), scenario.positives / 2)
    counts = {OWN: np.tile(own, (classes, 1)), OTHER: np.tile(other, (classes, 1)), HITS: halves}
    noise = protocol.expected_noise(scenario.clients)
    return {name: class_forests.Forest(each, noise[name]) for name, each in counts.items()}


def classes_families(scenario: tp.Scenario) -> list[tp.Family]:
    """Noisy sums in two rounds, every client's own counts, and exact sums."""
    named = partial(MulticlassHistogram, classes=scenario.class_names)
    noisy = partial(named, epsilon=scenario.epsilon)
    sums, each, exact = tp.Trust.SECURE_SUM, tp.Trust.EACH, tp.Trust.EXACT_SUM
    weaker = "clients that vanish weaken the guarantee unless dropouts is set"
    no_privacy = "there is no differential privacy: the sum is exact, and epsilon is not kept"
    tried = [
        (noisy, sums, f"there is no curve, and {weaker}"),
        (
            partial(noisy, adjacency="replace"),
            sums,
            f"the number of records is public, and {weaker}",
        ),
        (partial(noisy, trust=each.value), each, ""),
        (partial(named, trust=exact.value), exact, no_privacy),
    ]
    metric = tp.Metric.of_figure(MulticlassHistogram.figure)
    return [
        tp.Family(tp.accepted([make]), (trust,), given_up, metric)
        for make, trust, given_up in tried
    ]


PLANNING = tp.Planning.of_figure(
    classes_families, classes_forecast, figure=MulticlassHistogram.figure
)
