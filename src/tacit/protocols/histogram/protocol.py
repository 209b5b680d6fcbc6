"""Score histograms: everything about a classifier from one private pass (Cormode and Markov 2023;
docs, section 5).

Both classes' scores are counted in a tree of cells. ``trust`` says who may see what: the exact sum
over the clients, a sum with noise of which every client drew a share, or reports that are private
before they leave the client. All figures follow from the consistent tree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np

from tacit.arrays import Floats
from tacit.data.clients import Clients
from tacit.metrics.score_scale import EVEN
from tacit.metrics.tree_noise import TreeNoise
from tacit.metrics.trees import consistent_leaves
from tacit.privacy.cost import NOTHING, UNPROTECTED, Adjacency, Cost, check_budget
from tacit.privacy.local.unary import SET_BIT_VARIANCE, unary_counts, unary_variance
from tacit.privacy.mechanisms.laplace import PolyaShare
from tacit.privacy.sampling.distributions import discrete_laplace_variance, shared_laplace_epsilon
from tacit.privacy.sampling.exact import MAX_SHARED_SCALE
from tacit.protocol.conversation import Conversation, Protocol, Query, Reply, Step, View
from tacit.protocol.scaled import ScaledScores, scale_setting
from tacit.protocol.settings import EPSILON, setting
from tacit.protocol.trust import OLDER_WORDS, Trust
from tacit.protocols.histogram.budget import (
    CHOICE_UNITS,
    EARLIER_AIMS,
    Aim,
    curve_height,
    epsilon_by_level,
    local_height,
    record_units,
)
from tacit.protocols.histogram.declared import HistogramDeclarations
from tacit.protocols.histogram.estimate import result_from_tree
from tacit.protocols.histogram.local_rounds import (
    KNOTS,
    LOCAL_ROUNDS,
    all_turns,
    draw_report_turns,
    early_slots,
    placed_knots,
    position_masses,
    published_scale,
    report_counts,
    report_leaves,
    report_positions,
)
from tacit.protocols.histogram.look_rounds import looked
from tacit.protocols.histogram.looks import (
    FIRST_PARTS,
    LOOK_HEIGHT,
    LOOKS,
    MAX_LOOK_HEIGHT,
    look_epsilons,
)
from tacit.protocols.histogram.second_round import (
    both_rounds,
    check_the_same_number,
    published,
    summed_influences,
)
from tacit.protocols.histogram.steps import (
    FIRST_CELLS,
    level_name,
    set_bits,
    summed_trees,
    unary_reports,
)
from tacit.protocols.shared.noise_shares import answered_clients, noise_fraction
from tacit.protocols.shared.turns import Turns, ragged_of
from tacit.protocols.shared.whole_units import units_for
from tacit.results.score_axis import ScoreAxis

EXACT_SUM, SECURE_SUM = Trust.EXACT_SUM.value, Trust.SECURE_SUM.value
LOCAL = Trust.LOCAL.value
TRUSTS = (EXACT_SUM, SECURE_SUM, LOCAL)
EARLIER_TRUSTS = {word: today for word, today in OLDER_WORDS.items() if today in TRUSTS}

HEIGHTS = {EXACT_SUM: 14, SECURE_SUM: 10}
MAX_HEIGHT = 24

ONE_REPLICATE = 2**26
"""Stated size of a replicate, where replicates have to run one at a time."""


def _is_private(protocol: ScoreHistogram) -> bool:
    """Whether there is an epsilon."""
    return protocol.epsilon is not None


def _divides_by_itself(protocol: ScoreHistogram) -> bool:
    """Whether the second round's part was said, or follows from the other settings."""
    return protocol.trust == SECURE_SUM and not protocol.looks


def _is_distributed(protocol: ScoreHistogram) -> bool:
    """Whether every client draws a share of the noise."""
    return protocol.trust == SECURE_SUM


@dataclass(frozen=True)
class ScoreHistogram(ScaledScores, HistogramDeclarations, Protocol):
    """ROC, precision, recall, accuracy, calibration and the AUC from one histogram of both classes.

    Parameters
    ----------
    trust : ``"exact-sum"`` (the server sees the exact sum, nothing of a client, and there is no
        differential privacy), ``"secure-sum"`` (the same with noise in the sum, of which every
        client draws a share) or ``"local"`` (every record's report is private by itself). The
        earlier words ``"secure-aggregation"``, ``"distributed-dp"`` and ``"local-dp"`` are
        understood.
    epsilon : the privacy budget of one record; none for ``"exact-sum"``.
    height : there are ``2**height`` cells; None takes 14, 10, or what suits the number of clients.
    buckets : the number of equi-depth buckets of curves and calibration; None takes as many as the
        counts support under their noise.
    adjacency : ``"record"`` (added or removed; distributed only) or ``"replace"``; None takes the
        first that applies.
    budget : ``"split"`` counts every record on every level of the tree and divides epsilon over the
        levels; ``"sample"`` deals records out to levels, as ``"local"`` always does. None takes the
        first that applies.
    aim : what the division over the levels serves: ``"auc"``, ``"curves"`` (rates at thresholds;
        earlier ``"cdf"``) or ``"all"`` (every level gets the same; earlier ``"even"``).
    dropouts : the fraction of clients that may vanish without weakening the guarantee; the others
        draw more noise for it.
    second_round : the part of epsilon kept for a second pass, in which the AUC is measured again
        as one sum against the published histogram; the other figures have the rest of epsilon. None
        chooses: where the AUC is the aim, in one secure sum of at most ``2**7`` cells, a small part
        goes to ``looks`` at the scores, more where their noise or crowded cells ask for it, and the
        rest to the one number. Elsewhere there is no second pass.
    scale : the public map of scores to the positions that ``2**height`` equal cells cut (``SCALES``
        of ``metrics.score_scale``).

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> ScoreHistogram("secure-sum", epsilon=1.0).guarantee
    Cost(epsilon=1.0, delta=0.0, adjacency=<Adjacency.RECORD: 'record'>, rho=None)
    """

    trust: str = setting(
        default=SECURE_SUM,
        choices=TRUSTS,
        aliases=EARLIER_TRUSTS,
        help="who may see what; secure-sum by default",
    )
    epsilon: float | None = setting(default=None, help=EPSILON)
    height: int | None = setting(default=None, help="2**height cells of scores")
    buckets: int | None = setting(default=None, help="equi-depth buckets of curves and calibration")
    adjacency: Literal["record", "replace"] | None = setting(
        default=None,
        help="what epsilon hides; record by default where it applies",
        used=_is_private,
    )
    budget: Literal["split", "sample"] | None = setting(
        default=None,
        help="divide epsilon over the tree's levels, or the records",
        used=_is_private,
    )
    aim: Aim = setting(
        default="auc",
        aliases=EARLIER_AIMS,
        help="what that division serves best; auc by default",
        used=_is_private,
    )
    dropouts: float = setting(
        default=0.0,
        help="the fraction of clients that may vanish, 0 by default",
        when=SECURE_SUM,
        used=_is_distributed,
    )
    second_round: float | None = setting(
        default=None,
        help="epsilon's part for a second pass for the AUC alone; 0 for none, chosen by default",
        when=SECURE_SUM,
        used=_divides_by_itself,
    )
    scale: str = scale_setting()

    name = "score-histogram"
    planning_module = f"{__package__}.forecast"
    title_settings = ("trust", "adjacency")
    setting_order = (
        *("trust", "adjacency", "epsilon", "budget", "aim"),
        *("dropouts", "second_round"),
    )
    plan_example: ClassVar = {"trust": SECURE_SUM, "epsilon": 1.0}
    gives_histogram = True
    state_types = (Turns,)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_budget()
        if self.height is not None and not 1 <= self.height <= MAX_HEIGHT:
            raise ValueError(f"height must be from 1 to {MAX_HEIGHT}, got {self.height}")
        if self.buckets is not None and self.buckets < 1:
            raise ValueError(f"buckets must be at least 1, got {self.buckets}")
        distributed = self.trust == SECURE_SUM
        for name, value in (
            ("dropouts", self.dropouts),
            ("second_round", self.second_round or 0.0),
        ):
            if not 0 <= value < 1:
                raise ValueError(f"{name} must be from 0 to below 1, got {value}")
            if value and not distributed:
                raise ValueError(f"{name} belongs to {SECURE_SUM}, got {value}")
        self._settle("adjacency", ("record", "replace") if distributed else ("replace",))
        budgets = {SECURE_SUM: ("split", "sample"), LOCAL: ("sample",)}
        self._settle("budget", budgets.get(self.trust, ("split",)))
        if self.second_round and self.budget == "sample":
            raise ValueError("second_round needs budget 'split', got 'sample'")
        if self.second_round:
            self._check_shared_noise()
        if self.second_round is not None:
            object.__setattr__(self, "second_round", float(self.second_round))
        elif not self._can_look():
            object.__setattr__(self, "second_round", 0.0)

    def _can_look(self) -> bool:
        """Whether the AUC is asked for in such a way that looks and one number serve it best."""
        if self.trust != SECURE_SUM or self.budget != "split" or self.aim != "auc":
            return False
        if self.height is not None and self.height > MAX_LOOK_HEIGHT:
            return False
        return self.distance / min(look_epsilons(self._epsilon, FIRST_PARTS)) <= MAX_SHARED_SCALE

    @property
    def looks(self) -> bool:
        """Whether the server chooses how much of epsilon looks at the scores get."""
        return self.second_round is None

    @property
    def places_cells(self) -> bool:
        """Whether the first reports say where the cells of the others lie."""
        return self.trust == LOCAL and self.scale != EVEN

    @property
    def look_heights(self) -> tuple[int, ...]:
        """The height of the first look, and that of looks with zoomed cells."""
        first = LOOK_HEIGHT if self.height is None else self.height
        return tuple(sorted({first, min(first + 1, MAX_LOOK_HEIGHT)}))

    def _check_shared_noise(self) -> None:
        """Refuse parts of epsilon of whose noise no shares are drawn, before anybody pays them."""
        scales = self.level_scales(self.height or HEIGHTS[SECURE_SUM]).values()
        largest = max(*scales, float(self.influence_noise(Fraction(1)).scale))
        if largest > MAX_SHARED_SCALE:
            raise ValueError(
                f"shared noise has a scale of at most {MAX_SHARED_SCALE:g}, got {largest:.6g}: "
                f"take a larger epsilon than {self.epsilon}, another second_round than "
                f"{self.second_round}, or a lower height"
            )

    def _check_budget(self) -> None:
        if self.trust == EXACT_SUM:
            if self.epsilon is not None:
                raise ValueError(f"{self.trust} takes no epsilon, got {self.epsilon}")
        elif self.epsilon is None:
            raise ValueError(f"{self.trust} needs an epsilon")
        else:
            check_budget(self.epsilon)

    def _settle(self, name: str, allowed: tuple[str, ...]) -> None:
        """Take the first allowed choice where none was made, and refuse others."""
        chosen = getattr(self, name)
        if chosen is None:
            object.__setattr__(self, name, allowed[0])
        elif chosen not in allowed:
            raise ValueError(f"{name} must be one of {allowed} for {self.trust}, got {chosen!r}")

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of this trust model."""
        if self.trust == LOCAL:
            return LOCAL_ROUNDS if self.places_cells else (unary_reports,)
        if self.looks:
            return (*LOOKS, summed_influences)
        return (summed_trees, summed_influences) if self.second_round else (summed_trees,)

    def min_clients(self, clients: int) -> int:
        """With fewer than the clients that are planned to stay, the noise would not suffice."""
        return noise_fraction(1, clients, self.dropouts).denominator

    @property
    def guarantee(self) -> Cost:
        """What one evaluation costs every record at most."""
        return self._cost(1.0)

    @property
    def tree_cost(self) -> Cost:
        """What the tree costs."""
        return self._cost(1 - (self.second_round or 0.0))

    @property
    def influence_cost(self) -> Cost:
        """What the second round costs."""
        return self._cost(self.second_round) if self.second_round else NOTHING

    def _cost(self, fraction: float) -> Cost:
        if self.epsilon is None:
            return UNPROTECTED
        return Cost(self.epsilon * fraction, adjacency=Adjacency(self.adjacency))

    @property
    def distance(self) -> int:
        """How many counts of a level a neighbour changes by one."""
        return 2 if self.adjacency == "replace" else 1

    def tree_height(self, clients: int) -> int:
        """The height that was asked for, or the default for this trust and number of clients."""
        if self.height is not None:
            return self.height
        if self.trust == LOCAL:
            return local_height(clients, self._epsilon)
        if self.trust == SECURE_SUM and self.aim == "curves" and self.scale != EVEN:
            return curve_height(self._epsilon)
        return HEIGHTS[self.trust]

    def level_units(self, height: int) -> tuple[int, ...]:
        """In how many of ``CHOICE_UNITS`` cases a record reports on each level of cells."""
        return record_units(height, self.aim)

    def level_scales(self, height: int) -> dict[int, float]:
        """The levels that are asked for, with the scales of their noise."""
        if self.epsilon is None:
            return {height + 1: 0.0}
        return {level: self.distance / part for level, part in self._level_parts(height).items()}

    def level_noise(self, height: int, fraction: Fraction) -> dict[int, PolyaShare]:
        """A share of the noise of every level that has any."""
        parts = {} if self.epsilon is None else self._level_parts(height)
        return {level: PolyaShare(self.distance, part, fraction) for level, part in parts.items()}

    def _level_parts(self, height: int) -> dict[int, float]:
        """The levels that are asked for, with what a record spends on each."""
        if self.budget == "sample":
            return dict.fromkeys(range(FIRST_CELLS, height + FIRST_CELLS), self._epsilon)
        return {level: part for level, part in enumerate(self._parts(height)) if part > 0}

    def influence_noise(self, fraction: Fraction) -> PolyaShare:
        """A share of the noise on the summed influences, in units of a part of their reach."""
        epsilon = self.influence_cost.epsilon
        return PolyaShare(units_for(epsilon), epsilon, fraction)

    def noise_share(self, batch: int, queried: int) -> Fraction:
        """The part of the noise that a batch of clients draws."""
        return noise_fraction(batch, queried, self.dropouts)

    def replicate_size(self, clients: Clients) -> int:
        """Numbers a replicate holds; those of sampled levels run one at a time."""
        if self.budget == "sample":
            return ONE_REPLICATE
        return 16 << (self.tree_height(clients.count) + 1)

    @property
    def title(self) -> str:
        """The name with trust and adjacency, and whether there is a second round."""
        return super().title if self.second_round == 0 else f"{super().title}, two rounds"

    def conversation(self, clients: int) -> Conversation:
        """One round: trees up; and a second for summed influences, if epsilon was kept for it."""
        if self.looks:
            return (yield from looked(self, clients))
        if self.places_cells:
            return (yield from self._placed_reports(clients))
        height = self.tree_height(clients)
        shared: dict[str, Any] = {"clients": clients, "height": height}
        if self.trust == LOCAL:
            reply = yield Query(unary_reports, self, broadcast=shared)
            leaves, noise = self._local_tree(reply, height)
            return result_from_tree(leaves, noise, self.buckets, axis=self.score_axis)
        reply = yield Query(summed_trees, self, broadcast=shared, view=View.SUM)
        answered = answered_clients(reply, clients)
        leaves, noise = self._summed_tree(reply, height, clients, answered)
        if not self.second_round:
            protection = self._protection(height, clients, answered)
            return result_from_tree(leaves, noise, self.buckets, protection, axis=self.score_axis)
        fields = published(leaves, noise)
        reply = yield Query(summed_influences, self, broadcast={**shared, **fields}, view=View.SUM)
        check_the_same_number(answered, answered_clients(reply, clients))
        sums = np.asarray(reply["sum"], dtype=np.float64)
        adjacency, inflation = Adjacency(self.adjacency), self._inflation(clients, answered)
        second = both_rounds(fields, sums, self.influence_cost.epsilon, adjacency, inflation)
        protection = self._protection(height, clients, answered)
        return result_from_tree(leaves, noise, self.buckets, protection, second, self.score_axis)

    def _placed_reports(self, clients: int) -> Conversation:
        """Positions of a few records up, cells down, and all others' reports in them up."""
        turns = all_turns((yield Query(draw_report_turns, self)))
        first, height = early_slots(self._epsilon, turns.values.size), self.tree_height(clients)
        shared, each = {"clients": clients, "height": height, "first": first}, {"turns": turns}
        reply = yield Query(report_positions, self, shared, each)
        masses = position_masses(report_counts(reply, self._epsilon), self._epsilon)
        knots = np.stack([placed_knots(self.score_scale, row, height) for row in masses])
        single = ragged_of(reply["reports"]).values.ndim == 1
        published = {KNOTS: knots[0] if single else knots}
        reply = yield Query(report_leaves, self, {**shared, **published}, each)
        leaves, noise = self._local_tree(reply, height, turns.values.size)
        axis = ScoreAxis(published_scale(self, knots[0], height), self.unit)
        return result_from_tree(leaves, noise, self.buckets, axis=axis)

    @property
    def score_axis(self) -> ScoreAxis:
        """The scores of the cells."""
        return ScoreAxis(self.score_scale, self.unit)

    @property
    def _epsilon(self) -> float:
        if self.epsilon is None:
            raise ValueError(f"{self.trust} has no epsilon")
        return self.epsilon

    def _parts(self, height: int) -> tuple[float, ...]:
        """What each level costs a record, the root first."""
        budget = self._epsilon * (1 - (self.second_round or 0.0))
        return epsilon_by_level(height, budget, self.distance, self.aim, known_total=False)

    def _summed_tree(
        self, reply: Reply, height: int, queried: int, answered: int
    ) -> tuple[Floats, TreeNoise]:
        """The consistent leaves of the summed trees, and their noise."""
        scales, inflation = self.level_scales(height), self._inflation(queried, answered)
        variances = np.full(height + 2, np.inf)
        for level, scale in scales.items():
            variances[level] = inflation * discrete_laplace_variance(scale) if scale else 0.0
        sums = {level: np.asarray(reply[level_name(level)], dtype=np.float64) for level in scales}
        if self.budget == "split":
            levels = [sums.get(level) for level in range(height + 2)]
            return consistent_leaves(levels, variances), TreeNoise(variances)
        factors = np.zeros(height + 2)
        factors[FIRST_CELLS:] = CHOICE_UNITS / np.array(self.level_units(height), dtype=np.float64)
        variances[FIRST_CELLS:] *= factors[FIRST_CELLS:] ** 2
        scaled = {level: factors[level] * counts for level, counts in sums.items()}
        records = max(float(np.mean([counts.sum(axis=-1) for counts in scaled.values()])), 1.0)
        noise = sampled_noise(variances, factors, records, centred=False)
        levels = [scaled.get(level) for level in range(height + 2)]
        return consistent_leaves(levels, noise.weighting), noise

    def _local_tree(
        self, reply: Reply, height: int, records: int | None = None
    ) -> tuple[Floats, TreeNoise]:
        """The consistent leaves of unary reports, on the deepest level that was reported on.

        They are about all ``records``, of which those that report are a random part; None takes
        those that report for all. Where none reports, the tree is even, and as uncertain as that of
        a single report.
        """
        records = ragged_of(reply["levels"]).values.shape[-1] if records is None else records
        by_level = {
            level: set_bits(reply, level) for level in range(FIRST_CELLS, height + FIRST_CELLS)
        }
        if not any(reports for _, reports in by_level.values()):
            return unknown_tree(by_level[FIRST_CELLS][0].shape, records, self._epsilon)
        deepest = max(level for level, (_, reports) in by_level.items() if reports)
        variances, factors = np.full(deepest + 1, np.inf), np.zeros(deepest + 1)
        levels: list[Floats | None] = [np.array([float(records)]), None]
        variances[0] = 0.0
        for level in range(FIRST_CELLS, deepest + 1):
            bits, reports = by_level[level]
            if not reports:
                levels.append(None)
                continue
            factors[level] = records / reports
            variances[level] = factors[level] ** 2 * reports * unary_variance(self._epsilon)
            levels.append(factors[level] * unary_counts(bits, reports, self._epsilon))
        noise = sampled_noise(variances, factors, records, centred=True)
        return consistent_leaves(levels, noise.weighting), noise

    def _inflation(self, queried: int, answered: int) -> float:
        """The noise that arrived, as a multiple of what the guarantee needs."""
        return float(self.noise_share(answered, queried)) if self.epsilon is not None else 1.0

    def _protection(self, height: int, queried: int, answered: int) -> Cost | None:
        """What the noise that arrived supports, where too many clients vanished with theirs."""
        fraction = self._inflation(queried, answered)
        if self.epsilon is None or fraction >= 1:
            return None
        scales = list(self.level_scales(height).values())
        if self.budget == "sample":
            scales = scales[:1]
        losses = [self.distance * shared_laplace_epsilon(scale, fraction) for scale in scales]
        if self.second_round:
            epsilon = self.influence_cost.epsilon
            units = units_for(epsilon)
            losses.append(shared_laplace_epsilon(units / epsilon, fraction, units))
        return Cost(math.fsum(losses), adjacency=Adjacency(self.adjacency))


def unknown_tree(shape: tuple[int, ...], records: int, epsilon: float) -> tuple[Floats, TreeNoise]:
    """An even tree of the first cells, shape (..., 4), with the noise of one report about all."""
    factors = np.zeros(FIRST_CELLS + 1)
    variances = np.array([0.0, np.inf, records**2 * unary_variance(epsilon)])
    factors[FIRST_CELLS] = records
    noise = sampled_noise(variances, factors, records, centred=True)
    return np.full(shape, records / shape[-1]), noise


def sampled_noise(variances: Floats, factors: Floats, records: float, centred: bool) -> TreeNoise:
    """The noise of a tree whose records reported on one level each.

    Consistency weighs a level by its noise and by what sampling adds to an average node.
    """
    extra = SET_BIT_VARIANCE if centred else 0.0
    nodes = 2.0 ** np.arange(variances.size)
    assumed = variances + factors * (1 + extra) * records / nodes
    return TreeNoise(variances, assumed, factors, extra, centred)
