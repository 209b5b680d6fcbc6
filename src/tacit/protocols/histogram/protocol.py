"""Score histograms: everything about a classifier from one private pass (Cormode and Markov 2023;
docs, section 5).

Both classes' scores are counted in a tree of cells. ``trust`` says who may see what: the exact sum
over the clients, a sum with noise of which every client drew a share, or reports that are private
before they leave the client. All figures follow from the consistent tree.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from tacit.data.clients import Clients
from tacit.metrics.cells.score_scale import EVEN
from tacit.privacy.cost import NOTHING, UNPROTECTED, Adjacency, Cost, check_budget
from tacit.privacy.mechanisms.laplace import PolyaShare
from tacit.privacy.sampling.exact import MAX_SHARED_SCALE
from tacit.protocol.conversation import Conversation, Protocol, Step
from tacit.protocol.declarations.trust import Trust
from tacit.protocol.devices import DeviceReports
from tacit.protocol.one_count import OneCount
from tacit.protocol.settings.declaring import EPSILON, setting
from tacit.protocol.settings.scaled import ScaledScores, scale_setting
from tacit.protocols.histogram.declared import HistogramDeclarations
from tacit.protocols.histogram.local.rounds import (
    LOCAL_ROUNDS,
)
from tacit.protocols.histogram.looking.looks import (
    FIRST_PARTS,
    LOOK_HEIGHT,
    LOOKS,
    MAX_LOOK_HEIGHT,
    look_epsilons,
)
from tacit.protocols.histogram.placing import PLACING_FRACTION, placing_counts
from tacit.protocols.histogram.prior import curves_of
from tacit.protocols.histogram.second_round import (
    summed_influences,
)
from tacit.protocols.histogram.server import rounds
from tacit.protocols.histogram.steps import (
    FIRST_CELLS,
    summed_trees,
    unary_reports,
)
from tacit.protocols.shared.prior_curves import PriorCurves
from tacit.protocols.shared.reports.turns import Turns
from tacit.protocols.shared.sums.noise_shares import noise_fraction
from tacit.protocols.shared.sums.whole_units import units_for
from tacit.protocols.shared.trees.tree_budget import (
    EARLIER_AIMS,
    Aim,
    curve_height,
    epsilon_by_level,
    local_height,
    record_units,
)
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.server_result import ServerResult

EXACT_SUM, SECURE_SUM = Trust.EXACT_SUM.value, Trust.SECURE_SUM.value
LOCAL = Trust.LOCAL.value
TRUSTS = (EXACT_SUM, SECURE_SUM, LOCAL)

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
        With curves as the aim of a secure sum, None also places the cells: a first count of 128
        cells a class, with a part of 1/32 of epsilon, says where both classes score.
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
    prior : the curves of an earlier release (``Evaluation.release``) of noisy sums, which take all
        other passes' place: all of epsilon goes to the one number, and there is no curve. They have
        to be about much the same records; the error that a change of the data causes is not stated.
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
    prior: PriorCurves | None = setting(
        default=None,
        help=None,
        when=SECURE_SUM,
        shown=lambda protocol: asdict(protocol.prior),
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
        self._settle_rounds()

    def _settle_rounds(self) -> None:
        """Fill in whether there is a second pass, and refuse parts of epsilon that cannot be."""
        if self.prior is not None:
            self._start_from(self.prior)
        if self.second_round and self.budget == "sample":
            raise ValueError("second_round needs budget 'split', got 'sample'")
        if self.second_round:
            self._check_shared_noise()
        if self.second_round is not None:
            object.__setattr__(self, "second_round", float(self.second_round))
        elif not self._can_look():
            object.__setattr__(self, "second_round", 0.0)

    def _start_from(self, prior: PriorCurves) -> None:
        """Take no other pass than the number's, and refuse settings that ask for one."""
        for name, value in (("second_round", self.second_round), ("height", self.height)):
            if value:
                raise ValueError(
                    f"{name} must be None with a prior, got {value}: all of epsilon goes to the "
                    "number"
                )
        if self.trust != SECURE_SUM or self.budget != "split":
            raise ValueError(
                f"prior belongs to {SECURE_SUM} with budget 'split', got {self.trust} with "
                f"{self.budget!r}"
            )
        if prior.scale != self.scale:
            raise ValueError(f"prior: scale must be {self.scale!r}, got {prior.scale!r}")
        # a party would find out only after it paid
        prior.zoomed(self.score_scale)
        object.__setattr__(self, "second_round", 0.0)

    def _can_look(self) -> bool:
        """Whether the AUC is asked for in such a way that looks and one number serve it best."""
        if self.trust != SECURE_SUM or self.budget != "split" or self.aim != "auc":
            return False
        if self.height is not None and self.height > MAX_LOOK_HEIGHT:
            return False
        return (
            self.distance / min(look_epsilons(self.known_epsilon, FIRST_PARTS)) <= MAX_SHARED_SCALE
        )

    @property
    def looks(self) -> bool:
        """Whether the server chooses how much of epsilon looks at the scores get."""
        return self.second_round is None

    @property
    def places_cells(self) -> bool:
        """Whether the first reports say where the cells of the others lie."""
        return self.trust == LOCAL and self.scale != EVEN

    @property
    def places_trees(self) -> bool:
        """Whether a first count says where the cells of the summed tree lie.

        Where curves are the aim and no height was asked for; not where shares of that count's noise
        would have too large a scale.
        """
        asked = self.height is not None or self.second_round != 0 or self.prior is not None
        if self.trust != SECURE_SUM or self.budget != "split" or self.aim != "curves" or asked:
            return False
        first = self.distance / (self.known_epsilon * PLACING_FRACTION)
        return self.scale != EVEN and first <= MAX_SHARED_SCALE

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
        if self.prior is not None:
            return (summed_influences,)
        if self.trust == LOCAL:
            return LOCAL_ROUNDS if self.places_cells else (unary_reports,)
        if self.looks:
            return (*LOOKS, summed_influences)
        if self.places_trees:
            return (placing_counts, summed_trees)
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
        return self._cost(self._tree_fraction)

    @property
    def placing_cost(self) -> Cost:
        """What the count costs that says where the tree's cells lie."""
        return self._cost(PLACING_FRACTION) if self.places_trees else NOTHING

    @property
    def _tree_fraction(self) -> float:
        """The tree's part of epsilon."""
        placing = PLACING_FRACTION if self.places_trees else 0.0
        return 1 - (self.second_round or 0.0) - placing

    @property
    def influence_cost(self) -> Cost:
        """What the one number costs."""
        if self.prior is not None:
            return self.guarantee
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
            return local_height(clients, self.known_epsilon)
        if self.trust == SECURE_SUM and self.aim == "curves" and self.scale != EVEN:
            return curve_height(self.known_epsilon)
        return HEIGHTS[self.trust]

    @property
    def one_count(self) -> OneCount | None:
        """One tree over all records.

        None where records report by themselves or are dealt out, and where cells are placed.
        """
        if self.trust == LOCAL or self.budget == "sample" or self.places_trees:
            return None
        once = replace(self, second_round=0.0, prior=None)
        cells = 1 << once.tree_height(1)
        return OneCount(once, self.score_edges(np.arange(1, cells) / cells), self.score_ends)

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
            return dict.fromkeys(range(FIRST_CELLS, height + FIRST_CELLS), self.known_epsilon)
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

    def device_reports(self, devices: int) -> DeviceReports:
        """Unary bits of class and cell, in the local model."""
        if self.trust != LOCAL:
            return super().device_reports(devices)
        from tacit.protocols.histogram.local.devices import UnaryDevices

        return UnaryDevices(self, devices)

    def prior_estimate(self, records: int, server_result: ServerResult) -> PriorCurves | None:
        """Curves from which a later evaluation can start, of noisy sums that show signal."""
        sums = self.trust == SECURE_SUM and self.budget == "split"
        return curves_of(self, server_result) if sums else None

    def conversation(self, clients: int) -> Conversation:
        """One round: trees up; and a second for summed influences, if epsilon was kept for it."""
        return rounds(self, clients)

    @property
    def score_axis(self) -> ScoreAxis:
        """The scores of the cells."""
        return ScoreAxis(self.score_scale, self.unit)

    @property
    def known_epsilon(self) -> float:
        """The budget where there is one.

        Raises
        ------
        ValueError : where the trust has none.
        """
        if self.epsilon is None:
            raise ValueError(f"{self.trust} has no epsilon")
        return self.epsilon

    def _parts(self, height: int) -> tuple[float, ...]:
        """What each level costs a record, the root first."""
        budget = self.known_epsilon * self._tree_fraction
        return epsilon_by_level(height, budget, self.distance, self.aim, known_total=False)

    def inflation(self, queried: int, answered: int) -> float:
        """The noise that arrived, as a multiple of what the guarantee needs."""
        return float(self.noise_share(answered, queried)) if self.epsilon is not None else 1.0
