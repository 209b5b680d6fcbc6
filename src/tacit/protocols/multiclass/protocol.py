"""One-versus-rest figures of a classifier with several classes, from one private pass.

What is summed. A record has a class y and a score s_c of each of C classes. It counts

- in the *own* tree of its class: the cell of s_y among the C trees of records' own classes: 1 vote;
- in the *other* tree of every other class c: the cell of s_c: C - 1 votes;
- in the *hits*: among 2C numbers, the one of its class and of whether s_y is its largest score
  (of tied scores the first counts as the largest): 1 vote.

So the positives of class c against the rest are in the own tree c, its negatives in the other tree
c. Each block has a part of epsilon, and a record is in all of them: they cost epsilon together
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
proportion to the parts above (``protocols.multiclass.reports``). With M = C n records and
half of them in either block, a count of c's own tree has the variance ``2 M v``, v that of unary
bits. One of its other tree has ``2 (C - 1)^2 M v`` beside C - 1 times as many negatives. So the AUC
of c has about ``4 C v k / n``, and the mean of C AUCs ``4 v k / n`` whatever C is. Were one class
drawn instead, and a record reported whether that class is its own, with the score's cell, M/C
reports would give the AUC of c ``C^2 v k / n (1 + 1 / (C - 1)^2)``: more from C = 4 on.

With ``secure-sum`` a second round has the larger part of epsilon: one number a class
(``protocols.multiclass.second_round``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.data.categories import check_names
from tacit.data.clients import Clients
from tacit.metrics.cells.score_scale import EVEN
from tacit.metrics.ranking import auc
from tacit.metrics.trees import TreeNoise
from tacit.privacy.cost import Adjacency, Cost
from tacit.protocol import releases
from tacit.protocol.conversation import Conversation, Query, Step
from tacit.protocol.declarations.trust import Each, SecureSum
from tacit.protocol.settings import scaled
from tacit.protocols.multiclass import second_round
from tacit.protocols.multiclass.both_rounds import refined
from tacit.protocols.multiclass.declared import (
    HEIGHT,
    MAX_HEIGHT,
    REPORT_HEIGHT,
    MulticlassDeclarations,
)
from tacit.protocols.multiclass.estimate import result_from_forests
from tacit.protocols.multiclass.forests import (
    Block,
    ClassForests,
    Forest,
    Forests,
    count_forest,
    exact_leaves,
    forest_areas,
    forest_fields,
)
from tacit.protocols.multiclass.reports import (
    forest_reports,
    forests_from_reports,
    report_parts,
)
from tacit.protocols.shared.class_scores import scores_by_class
from tacit.protocols.shared.influence_sum import check_the_same_number
from tacit.protocols.shared.trees import summed
from tacit.protocols.shared.trees.tree_budget import epsilon_by_level
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.figure import MACRO_AUC
from tacit.results.server_result import ServerResult

OWN, OTHER, HITS = "own", "other", "hits"
"""The blocks."""

HITS_PART = 0.1
"""The fraction of epsilon of the hits, which also tell the classes' sizes. Either block of trees
has half of what numbers and hits leave."""

ONE_REPLICATE = 2**26
"""Stated size of a replicate, where replicates have to run one at a time."""

SECOND_ROUND = 0.65
"""The second round's part of epsilon: trees of a quarter of epsilon leave products of
errors that are small beside the noise of the numbers, from some 2,000 records a class on at
epsilon 1."""


@dataclass(frozen=True)
class MulticlassHistogram(MulticlassDeclarations):
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

    name = "multiclass-histogram"
    figure = MACRO_AUC
    categories_setting = "classes"
    scores_by_class = True
    planning_module = "tacit.protocols.multiclass.forecast"

    def __post_init__(self) -> None:
        check_names("classes", self.classes)
        super().__post_init__()
        if self.height is None:
            object.__setattr__(self, "height", REPORT_HEIGHT if self.lone_records else HEIGHT)
        # records' reports leave deeper trees so few on each level that their cells bias the figures
        highest = REPORT_HEIGHT if self.lone_records else MAX_HEIGHT
        if not 1 <= self.tree_height <= highest:
            raise ValueError(f"height must be from 1 to {highest}, got {self.height}")
        if isinstance(self.trust, SecureSum):
            releases.check_shares(self, forest_fields(Query(count_forest, self)))
        if self.number_part:
            second_round.number_units(self.number_cost.epsilon, len(self.classes))

    @property
    def number_part(self) -> float:
        """The second round's fraction of epsilon; 0 for one round."""
        return SECOND_ROUND if isinstance(self.trust, SecureSum) else 0.0

    @property
    def number_cost(self) -> Cost:
        """What the second round costs every record, where there is one (``number_part``)."""
        return Cost(self.number_part * (self.epsilon or 0.0), adjacency=Adjacency(self.adjacency))

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of this trust model."""
        if self.lone_records:
            return (forest_reports,)
        numbers = (second_round.summed_class_influences,) if self.number_part else ()
        return (count_forest, *numbers)

    def replicate_size(self, clients: Clients) -> int:
        """The counts and their noise, of every client where it sends its own.

        Records draw what they report, and all replicates would have the same draw.
        """
        if self.lone_records:
            return ONE_REPLICATE
        counts = sum(4 * block.trees << block.height for block in self.blocks())
        return 8 * counts * (clients.count if isinstance(self.trust, Each) else 1)

    def blocks(self) -> tuple[Block, ...]:
        """Own trees, other trees, and hits."""
        count, tree = len(self.classes), (1 - HITS_PART - self.number_part) / 2
        others = count - 1
        return (
            Block(OWN, count, 1, self.tree_parts(tree, 1)),
            Block(OTHER, count, others, self.tree_parts(tree, others)),
            Block(HITS, 2 * count, 1, (self.spent(HITS_PART),)),
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
            return report_parts(height, budget)
        parts = epsilon_by_level(height, budget, votes * self.distance, "auc")
        return parts[1:]  # a tree of two classes has its classes on level 1

    def classified(self, clients: Clients) -> tuple[Floats, Integers]:
        """The scores of all classes, shape (M, C), and the records' classes, shape (M,).

        Raises
        ------
        DataError : for clients of other classes than the agreed ones.
        """
        return scores_by_class(clients, self.classes, bounded=self.score_range is not None)

    def check_scores(self, clients: Clients) -> None:
        """Refuse scores that have no cell.

        Raises
        ------
        DataError : for a score outside [0, 1] where scores are probabilities.
        """
        if self.score_range is not None:
            scaled.check_scores_in_unit_interval(clients)

    def votes(self, clients: Clients) -> Mapping[str, Integers]:
        """Each record's cell in its own class's tree and in those of the others; and its hit.

        By block, as the vote's tree times ``2**height`` plus its cell, shape (M, votes).
        """
        self.check_scores(clients)
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

    @property
    def is_even(self) -> bool:
        """Whether scores are their own positions."""
        return self.scale == EVEN

    def conversation(self, clients: int) -> Conversation:
        """The forest up; with a second round what follows from it down, and a number a class up."""
        if self.lone_records:
            reply = yield Query(forest_reports, self)
            forests = forests_from_reports(self.blocks(), self.known_epsilon, reply)
            return self.conclusion(self.first_round(forests))
        sums = yield from releases.ask(count_forest, self, clients)
        forests = {
            block.name: Forest(*summed.consistent_trees(sums, block.name))
            for block in self.blocks()
        }
        first = self.first_round(forests)
        if not self.number_part:
            return self.conclusion(first)
        fields = second_round.published(first)
        second = yield from releases.ask(
            second_round.summed_class_influences, self, clients, fields
        )
        check_the_same_number(sums.answered, second.answered)
        noises = float(second.noises)
        return self.conclusion(refined(first, fields, second["sums"], self.number_cost, noises))

    def expected_noise(self, clients: int) -> dict[str, TreeNoise]:
        """The errors of a tree of every block, where so many clients answer."""
        fields = forest_fields(Query(count_forest, self))
        noises = float(clients if isinstance(self.trust, Each) else 1)
        return {
            block.name: summed.tree_noise(fields, noises, block.name) for block in self.blocks()
        }

    def exact_forests(self, clients: Clients) -> Forests:
        """The forest of exact counts, with the noise that a run would have."""
        votes, noise = self.votes(clients), self.expected_noise(clients.count)
        return {
            block.name: Forest(exact_leaves(block, votes[block.name]), noise[block.name])
            for block in self.blocks()
        }

    def first_round(self, forests: Forests) -> ClassForests:
        """The forests with the AUCs of the first round."""
        own, other = forests[OWN], forests[OTHER]
        areas = forest_areas(own, other, self.is_even)
        return ClassForests(own, other, forests[HITS], self.is_even, areas)

    def conclusion(self, made: ClassForests) -> ServerResult:
        """The macro AUC, and all figures by class."""
        return result_from_forests(self.classes, made, ScoreAxis(self.score_scale, self.unit))

    def expected_result(self, first: ClassForests) -> ServerResult:
        """What is concluded of expected counts, where the second round's noise is 0."""
        if not self.number_part:
            return self.conclusion(first)
        sums = np.zeros(len(self.classes))
        fields = second_round.published(first)
        return self.conclusion(refined(first, fields, sums, self.number_cost, 1.0))

    def noiseless_value(self, clients: Clients) -> float:
        """The figure of the exact cells, at the depth that suits the noise, or of both rounds."""
        first = self.first_round(self.exact_forests(clients))
        if not self.number_part:
            return float(self.conclusion(first).value)
        fields = second_round.published(first)
        influences = second_round.ClassInfluences.of(fields)
        sums = second_round.rounded_sums(self, clients, influences).sum(axis=-1)
        made = refined(first, fields, sums.astype(np.float64), self.number_cost, 1.0)
        return float(self.conclusion(made).value)

    def exact(self, clients: Clients) -> float:
        """The mean of the exact one-versus-rest AUCs, which is not private."""
        scores, classes = self.classified(clients)
        by_class = [
            auc(scores[:, number], (classes == number).astype(np.int8))
            for number in range(len(self.classes))
        ]
        return float(np.mean(by_class))
