"""DPAUC: labels and scores stay at the clients (Sun et al. 2022b; docs, sections 2a to 2d).

The scores' positions on a public scale are cut at public thresholds. Clients release noisy counts,
and the server forms the ROC curve and its area; with a second round each client then sends one
noisy number for a more accurate area. The server sees every client's noisy counts and number and
nothing else, except that label adjacency treats the scores, and so each cell's number of records,
as public.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np

from tacit.arrays import Floats
from tacit.data.clients import Clients
from tacit.metrics.cells.score_scale import EVEN
from tacit.privacy.cost import Adjacency, Cost, check_budget
from tacit.privacy.mechanisms.gaussian import Gaussian
from tacit.privacy.mechanisms.laplace import DiscreteLaplace, Laplace
from tacit.privacy.mechanisms.response import RandomisedResponse
from tacit.privacy.mechanisms.together import Together
from tacit.privacy.sampling.checks import MAX_SCALE
from tacit.privacy.sampling.grids import gaussian_delta
from tacit.protocol.conversation import Conversation, Protocol, Step
from tacit.protocol.one_count import OneCount
from tacit.protocol.settings.declaring import EPSILON, setting
from tacit.protocol.settings.scaled import ScaledScores, scale_setting
from tacit.protocols.dpauc.declared import DPAUCDeclarations
from tacit.protocols.dpauc.estimate import curves_of
from tacit.protocols.dpauc.looks import (
    FIRST_LOOKS,
    MANY_CELLS,
    TOTALS_PART,
    Cells,
    Parts,
    are_few,
    fine_place,
    look_cells,
    look_levels,
    split_cells,
)
from tacit.protocols.dpauc.second_round import noisy_influences
from tacit.protocols.dpauc.server import rounds
from tacit.protocols.dpauc.steps import STEPS, noisy_looks
from tacit.protocols.shared.fine_cells import fine_scales
from tacit.protocols.shared.prior_curves import PriorCurves
from tacit.protocols.shared.reports.flipped_labels import Flipped
from tacit.protocols.shared.sums.rank_noise import RESPONSE, SPELLINGS
from tacit.protocols.shared.sums.whole_units import units_for
from tacit.protocols.shared.trees.levels import Levels, best_levels
from tacit.results.server_result import ServerResult

KINDS: dict[str, type[DiscreteLaplace | Laplace | Gaussian | RandomisedResponse]] = {
    "histogram": DiscreteLaplace,
    "laplace": Laplace,
    "gaussian": Gaussian,
    RESPONSE: RandomisedResponse,
}
"""The mechanisms, by the setting ``mechanism``."""

MECHANISMS = tuple(KINDS)

THRESHOLDS = 100
"""Number of thresholds, or of the histogram's cells where there is one round, by default."""


def _is_confusion(protocol: DPAUC) -> bool:
    """Whether noise is on the confusion counts, as in the paper."""
    return protocol.mechanism in ("laplace", "gaussian")


def _may_ask_again(protocol: DPAUC) -> bool:
    """Whether a second round is possible: both classes' counts are noisy, and cells are exact."""
    return protocol.mechanism == "histogram" and protocol.adjacency != "label"


@dataclass(frozen=True)
class DPAUC(ScaledScores, DPAUCDeclarations, Protocol):
    """The AUC and ROC curve with private labels and scores.

    Parameters
    ----------
    epsilon : the privacy budget of one evaluation, for every record.
    thresholds : the number of thresholds of the paper's forms, spaced evenly over positions with
        both ends, or the number of equal cells of the histogram. None takes 100; with two rounds
        the server chooses from noisy counts where 48 to 128 cells lie.
    mechanism : ``"histogram"`` (noisy cells, and groups of cells where that pays), or the paper's
        ``"laplace"``, ``"gaussian"`` and ``"randomised-response"``.
    accounting : ``"tight"``, or ``"paper"``, which charges every count of the paper's forms apart.
    adjacency : ``"record"`` (added or removed), ``"label"`` or ``"replace"``.
    delta : for Gaussian noise only.
    clamp : the paper's forms clamp noisy counts at 0 and order the points, which biases the area
        downwards when noise is large; False leaves both out and pools the class totals.
    second_round : the part of epsilon for a second round, in which each client sends one number,
        its sum of influences on the AUC; the curve comes from the rest of epsilon. None leaves it
        to the noisy counts of a first look, which costs 0.12 of epsilon, or 0.15 where the clients
        are more than 20 times the square of epsilon: the number gets what further looks leave, or
        nothing where the classes are too small. 0 asks for one round.
    prior : the curves of an earlier release (``Evaluation.release``), which take the first round's
        place: all of epsilon goes to the number. They have to be about much the same records; the
        error that a change of the data causes is not stated.
    scale : where cells lie (``metrics.score_scale``); ``"even"`` as in the paper.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> DPAUC(epsilon=1.0).guarantee
    Cost(epsilon=1.0, delta=0.0, adjacency=<Adjacency.RECORD: 'record'>, rho=None)
    """

    epsilon: float = setting(help=EPSILON)
    thresholds: int | None = setting(
        default=None, help="thresholds or cells; 100 by default, chosen with two rounds"
    )
    mechanism: str = setting(
        default="histogram",
        choices=MECHANISMS,
        help=f"{', '.join(MECHANISMS)}; the first by default",
        type=str,
        aliases=SPELLINGS,
    )
    accounting: Literal["tight", "paper"] = setting(
        default="tight",
        help="tight by default",
        when="laplace or gaussian",
        used=_is_confusion,
    )
    adjacency: Literal["record", "label", "replace"] = setting(
        default="record", help="what epsilon hides; record by default where it applies"
    )
    delta: float = setting(
        default=0.0,
        help="the chance that epsilon fails",
        when="gaussian",
        used=lambda protocol: protocol.mechanism == "gaussian",
    )
    clamp: bool = setting(
        default=True,
        help="clamp and order noisy counts, as the paper does",
        when="laplace or gaussian",
        used=_is_confusion,
    )
    second_round: float | None = setting(
        default=None,
        help="epsilon's part for one number a client; by default chosen, and 0 for one round",
        when="histogram",
        used=_may_ask_again,
    )
    prior: PriorCurves | None = setting(
        default=None, help=None, shown=lambda protocol: asdict(protocol.prior)
    )
    scale: str = scale_setting()

    name = "dpauc"
    planning_module = f"{__package__}.forecast"
    setting_order = ("epsilon", "thresholds", "mechanism", "adjacency", "accounting", "clamp")
    state_types = (Flipped,)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_budget(self.epsilon)
        self._settle_rounds()
        if self.thresholds is not None and not 2 <= self.thresholds <= 2**20:
            raise ValueError(f"thresholds must be between 2 and 2**20, got {self.thresholds}")
        if self.responds and self.adjacency != "label":
            raise ValueError(
                "randomised response protects labels only: adjacency must be 'label', "
                f"got {self.adjacency!r}"
            )
        if self.kind.needs_delta:
            if not 0 < self.delta < 1:
                raise ValueError(f"gaussian noise needs a delta between 0 and 1, got {self.delta}")
            gaussian_delta(self.epsilon, self.delta, 4 * self.cell_count)
        elif self.delta != 0:
            raise ValueError(f"delta belongs to gaussian noise, got {self.delta}")

    def _settle_rounds(self) -> None:
        """Fill in what was left open, and refuse what one round has no use for."""
        if not _may_ask_again(self):
            for name, value in (("second_round", self.second_round), ("prior", self.prior)):
                if value:
                    raise ValueError(
                        f"{name} needs a histogram at adjacency record or replace, got "
                        f"{self.mechanism} at {self.adjacency}"
                    )
            object.__setattr__(self, "second_round", 0.0)
        if self.second_round is not None and not 0 <= self.second_round < 1:
            raise ValueError(f"second_round must be from 0 to below 1, got {self.second_round}")
        if self.second_round:
            self._check_noise(self.second_round)
        if self.prior is not None:
            self._check_prior(self.prior)
        if self.thresholds is None and not self.asks_again:
            object.__setattr__(self, "thresholds", THRESHOLDS)

    def _check_noise(self, second_round: float) -> None:
        """Refuse parts of epsilon of whose noise nothing can be drawn, before anybody pays them."""
        spent = second_round * self.epsilon
        totals = TOTALS_PART * (1 - second_round) * self.epsilon
        if units_for(spent) > MAX_SCALE * spent or self.record_distance > MAX_SCALE * totals:
            raise ValueError(
                f"second_round must leave both rounds more of epsilon, got {second_round}: noise "
                f"has a scale of at most {MAX_SCALE:g}"
            )

    def _check_prior(self, prior: PriorCurves) -> None:
        """Refuse curves of another scale, and a first round beside them."""
        if self.second_round is not None:
            raise ValueError(
                f"second_round must be None with a prior, got {self.second_round}: all of epsilon "
                "goes to the number"
            )
        if prior.scale != self.scale:
            raise ValueError(f"prior: scale must be {self.scale!r}, got {prior.scale!r}")

    @property
    def asks_again(self) -> bool:
        """Whether there may be a second round."""
        return self.second_round != 0

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of this mechanism."""
        if self.prior is not None:
            return (noisy_influences,)
        return (noisy_looks, noisy_influences) if self.asks_again else (STEPS[self.kind],)

    @property
    def parts(self) -> Parts:
        """The parts of epsilon that a party answers to in two rounds."""
        if self.prior is not None:
            return Parts((), (), (1.0,))
        return Parts.of(self.second_round)

    @property
    def look_menu(self) -> tuple[float, ...]:
        """The parts that a histogram may cost, those that end the run last."""
        parts = self.parts
        return (*parts.looks, *parts.closing)

    @property
    def cell_menu(self) -> tuple[int, ...]:
        """The numbers of cells that a party counts in, or that published functions may have."""
        if self.prior is not None:
            return (self.prior.cells,)
        return MANY_CELLS if self.thresholds is None else (self.thresholds,)

    @property
    def cell_count(self) -> int:
        """The number of thresholds or cells; of several the largest."""
        return max(self.cell_menu)

    def cells_for(self, clients: int) -> int:
        """The number of cells of a look at so many clients."""
        return look_cells(clients, self.epsilon) if self.thresholds is None else self.thresholds

    @property
    def places_cells(self) -> bool:
        """Whether the server chooses where cells lie: nothing of them was agreed."""
        return self.thresholds is None and self.second_round is None and self.scale != EVEN

    def coarse_place(self, clients: int) -> Cells:
        """Equal cells of positions for so many clients."""
        return Cells(self.cells_for(clients), self.score_scale)

    def first_look(self, clients: int) -> tuple[float, Cells]:
        """The first look's part of epsilon, and its cells."""
        few = are_few(clients, self.epsilon)
        part = self.parts.looks[0] if self.second_round is not None else FIRST_LOOKS[few]
        if few and self.places_cells:
            return part, fine_place(self.scale, fine_scales(self.scale)[0])
        return part, self.coarse_place(clients)

    def levels_for(self, part: float, cells: int) -> Levels:
        """How a histogram of these cells divides this part of epsilon."""
        spent = part * self.epsilon
        if part in self.parts.closing:
            return best_levels(cells, spent, self.record_distance)
        return look_levels(cells, spent)

    def cost_of(self, part: float) -> Cost:
        """What a part of epsilon costs."""
        return Cost(self.epsilon * part, adjacency=Adjacency(self.adjacency))

    @property
    def kind(self) -> type[DiscreteLaplace | Laplace | Gaussian | RandomisedResponse]:
        """The class of the mechanism."""
        return KINDS[self.mechanism]

    @property
    def responds(self) -> bool:
        """Whether labels answer by randomised response."""
        return self.kind is RandomisedResponse

    @property
    def confused(self) -> bool:
        """Whether confusion counts are released, as the paper does; their noise is continuous."""
        return not self.kind.whole

    @property
    def guarantee(self) -> Cost:
        """What one evaluation costs each client at most."""
        adjacency = Adjacency(self.adjacency)
        if self.kind.needs_delta:
            return self.count_noise.cost(adjacency)
        if self.confused:
            on_a_count = Laplace(1, self.epsilon / self._distance)
            all_counts = Together((on_a_count,), self._distance)
            return Cost(self.epsilon, adjacency=adjacency, mechanism=all_counts)
        return Cost(self.epsilon, adjacency=adjacency)

    @property
    def count_scale(self) -> float:
        """The noise on a confusion count: a Laplace scale, or a standard deviation."""
        noise = self.count_noise
        return float(noise.sigma if isinstance(noise, Gaussian) else noise.scale)

    @property
    def count_noise(self) -> Laplace | Gaussian:
        """The noise on a confusion count."""
        if self.kind.needs_delta:
            distance, numbers = math.sqrt(self._distance), 4 * self.cell_count
            return Gaussian(distance, self.epsilon, self.delta, numbers)
        return Laplace(self._distance, self.epsilon)

    @property
    def record_distance(self) -> float:
        """How many counts of a histogram's level a neighbour changes by one."""
        return 2.0 if self.adjacency == "replace" else 1.0

    @property
    def levels(self) -> Levels:
        """How the histogram of one round divides epsilon, chosen from public figures."""
        return best_levels(self.cell_count, self.epsilon, self.record_distance)

    @property
    def edges(self) -> Floats:
        """The lower edges of the cells, which are the thresholds, as positions.

        Flipped labels are counted in the cells between the paper's thresholds, the last one closed.
        """
        if self.kind is DiscreteLaplace:
            return np.linspace(0.0, 1.0, self.cell_count + 1)[:-1]
        ends = np.linspace(0.0, 1.0, self.cell_count)
        return ends[:-1] if self.responds else ends

    @property
    def one_count(self) -> OneCount | None:
        """One round of noisy counts; None where every label is flipped by itself."""
        if self.responds:
            return None
        once = replace(self, second_round=0.0, prior=None)
        return OneCount(once, self.score_edges(once.edges[1:]), self.score_ends)

    @property
    def _distance(self) -> int:
        """The L1 distance of the confusion counts between neighbours; also their squared L2."""
        if self.accounting == "paper":
            return 4 * self.cell_count
        return (1 if self.adjacency == "record" else 2) * self.cell_count

    def replicate_size(self, clients: Clients) -> int:
        """Numbers a replicate holds: its noisy counts, and a bit a record for flipped labels."""
        cells = self.cell_count
        if self.places_cells:
            cells = split_cells(clients.count, self.epsilon)
        counts = 8 * cells * clients.count
        return counts + (2 * clients.records if self.responds else 0)

    @property
    def edge_scores(self) -> Floats:
        """The lower edges of the cells as scores."""
        return self.score_scale.scores(self.edges)

    def prior_estimate(self, records: int, server_result: ServerResult) -> PriorCurves | None:
        """Curves from which a later evaluation can start, from a histogram that shows signal."""
        if not _may_ask_again(self):
            return None
        return curves_of(self.scale, server_result)

    def conversation(self, clients: int) -> Conversation:
        """Noisy counts up, in one round or several looks; then, in two rounds, numbers up."""
        return rounds(self, clients)
