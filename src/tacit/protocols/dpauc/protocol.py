"""DPAUC: labels and scores stay at the clients (Sun et al. 2022b; docs, sections 2a to 2d).

The scores' positions on a public scale are cut at public thresholds. Clients release noisy counts,
and the server forms the ROC curve and its area; with a second round each client then sends one
noisy number for a more accurate area. The server sees every client's noisy counts and number and
nothing else, except that label adjacency treats the scores, and so each cell's number of records,
as public.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.data.clients import Clients
from tacit.metrics.curves import counts_from_thresholds
from tacit.privacy.cost import Adjacency, Cost, check_budget
from tacit.privacy.mechanisms.gaussian import Gaussian
from tacit.privacy.mechanisms.interface import Mechanism
from tacit.privacy.mechanisms.laplace import DiscreteLaplace, Laplace
from tacit.privacy.mechanisms.response import (
    RandomisedResponse,
    flip_probability,
    response_variance,
)
from tacit.privacy.mechanisms.together import Together
from tacit.privacy.sampling.checks import MAX_SCALE
from tacit.privacy.sampling.grids import gaussian_delta
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import (
    MAX_RECORDS,
    ClientState,
    Conversation,
    Protocol,
    Query,
    Reply,
    Step,
    step,
)
from tacit.protocol.scaled import ScaledScores, scale_setting
from tacit.protocol.settings import EPSILON, setting
from tacit.protocols.dpauc.believable import check_counts, check_sums, noisy_records
from tacit.protocols.dpauc.declared import DPAUCDeclarations
from tacit.protocols.dpauc.estimate import PriorCurves, result_from_looks, result_from_prior
from tacit.protocols.dpauc.looks import (
    LOOK_CELLS,
    TOTALS_PART,
    Choice,
    Counts,
    Outlook,
    Parts,
    look_cells,
    look_levels,
)
from tacit.protocols.dpauc.second_round import (
    CELLS,
    PART,
    BothRounds,
    agreed_cells,
    agreed_part,
    both_rounds,
    influences_of,
    noisy_influences,
    published,
)
from tacit.protocols.shared.cell_counts import cell_counts
from tacit.protocols.shared.cells import (
    exchange_variance,
    independent_variance,
    result_from_cells,
    result_from_confusion,
)
from tacit.protocols.shared.confusion import CountNoise
from tacit.protocols.shared.flipped_labels import (
    Flipped,
    every_client,
    flipped_labels,
    flipping_cost,
)
from tacit.protocols.shared.influence_sum import FIXED_POINT
from tacit.protocols.shared.levels import CellNoise, Levels, best_levels
from tacit.protocols.shared.rank_noise import RESPONSE, SPELLINGS
from tacit.protocols.shared.whole_units import units_for
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


def _full_cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    guarantee: Cost = query.protocol.guarantee
    return guarantee


def _response_cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    return flipping_cost(clients, query.protocol.epsilon, state, every_client(clients))


@step(cost=_full_cost)
def noisy_confusion_counts(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    """Send TP, FP, TN and FN at every threshold, each with noise (Sun et al. 2022b, Methods).

    At a threshold a record counts in exactly one of the four. One label flip therefore changes two
    of them by one, a replaced record at most two, an added or removed record one: over T thresholds
    the L1 distance is 2T, 2T and T, and the squared L2 distance the same. Laplace noise of scale
    ``distance / epsilon``, or Gaussian noise of the analytic calibration for the L2 distance, gives
    the declared guarantee; the paper's accounting charges 4T, which bounds all three.

    The server learns the 4T noisy counts of each client.
    """
    settings: DPAUC = query.protocol
    placed = settings.on_scale(clients)
    positives, records = cell_counts(placed, settings.edges, clients.labels)
    reached = counts_from_thresholds(np.stack([positives, records - positives]).swapaxes(1, 2))
    totals = reached[..., :1]
    four = np.stack([reached[0], reached[1], (totals - reached)[1], (totals - reached)[0]])
    four = four.swapaxes(1, 2)
    return {"counts": four + noise.draw(settings.count_noise, four.shape)}


@step(cost=_full_cost)
def noisy_histograms(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    """Send the numbers of positives and negatives in cells and groups of cells, with noise.

    A record sits in one cell, and its group, of one class: adding or removing it changes one count
    of each level by one, and replacing it at most two. Discrete Laplace noise of scale
    ``sensitivity / part`` on every count costs that level's part of epsilon, by the Laplace
    mechanism on the integers, and both levels together epsilon. At label adjacency the number of
    records in a cell is public and sent as it is; a label flip changes one positive count of each
    level by one.

    The server learns the noisy counts of each client's cells and groups.
    """
    settings: DPAUC = query.protocol
    return _noisy_counts(clients, settings, settings.levels, settings.edges, noise)


def _noisy_counts(
    clients: Clients, settings: DPAUC, levels: Levels, edges: Floats, noise: NoiseSource
) -> dict[str, NDArray[np.int64]]:
    """The counts of both levels with their noise; at label adjacency those of positives only."""
    labelled = settings.adjacency == "label"
    positives, records = cell_counts(settings.on_scale(clients), edges, clients.labels)
    cells = positives if labelled else np.stack([positives, records - positives])
    noisy = {"cells": cells + _level_noise(settings, levels.cell_epsilon, cells, noise)}
    if levels.groups:
        groups = np.add.reduceat(cells, levels.starts, axis=-2)
        noisy["groups"] = groups + _level_noise(settings, levels.group_epsilon, groups, noise)
    return noisy | {"records": records} if labelled else noisy


def _level_noise(
    settings: DPAUC, epsilon: float, counts: NDArray[np.int64], noise: NoiseSource
) -> NDArray[np.int64]:
    drawn: NDArray[np.int64] = noise.draw(
        DiscreteLaplace(settings.record_distance, epsilon), counts.shape
    )
    return drawn


def _look_cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    settings: DPAUC = query.protocol
    return settings.cost_of(agreed_part(query, settings.look_menu))


@step(cost=_look_cost)
def noisy_looks(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send a histogram as ``noisy_histograms`` does, for a part of epsilon.

    The query says which part, and how many cells, both of those that the settings name; from them
    the levels follow: cells and class totals, or, for the part that ends the run after the first
    look, cells and the groups that suit them. Discrete Laplace noise of scale ``sensitivity /
    level's part`` on every count costs that level's part, and both levels together the part that
    the query says. All parts of a run add up to at most epsilon (``noisy_influences``).

    The server learns the noisy counts of each client's cells and groups.

    Raises
    ------
    DataError : for a score outside the range of its unit.
    ValueError : for a part or a number of cells that was not agreed.
    """
    settings: DPAUC = query.protocol
    levels = settings.levels_for(agreed_part(query, settings.look_menu), agreed_cells(query))
    edges = np.arange(levels.cells) / levels.cells
    return _noisy_counts(clients, settings, levels, edges, noise)


@step(cost=_response_cost)
def flipped_histograms(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    """Send the exact cell counts of labels flipped once by randomised response.

    Epsilon at label adjacency, spent when the labels were flipped; the counts are post-processing.
    As Sun et al. 2022b warns, the number of records in a cell is exact: the server learns each
    client's score histogram, which label adjacency does not protect.
    """
    settings: DPAUC = query.protocol
    flipped = flipped_labels(clients, settings.epsilon, noise, state, every_client(clients))
    positives, records = cell_counts(settings.on_scale(clients), settings.edges, flipped)
    return {"positives": positives, "records": records}


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
        both ends, or the number of equal cells of the histogram. None takes 100; with two rounds 64
        cells, or 48 where the clients are more than 20 times the square of epsilon.
    mechanism : ``"histogram"`` (noisy cells, and groups of cells where that pays), or the paper's
        ``"laplace"``, ``"gaussian"`` and ``"randomised-response"``.
    accounting : ``"tight"``, or ``"paper"``, which charges every count of the paper's forms apart.
    adjacency : ``"record"`` (added or removed), ``"label"`` or ``"replace"``.
    delta : for Gaussian noise only.
    clamp : the paper's forms clamp noisy counts at 0 and order the points, which biases the area
        downwards when noise is large; False leaves both out and pools the class totals.
    second_round : the part of epsilon for a second round, in which each client sends one number,
        its sum of influences on the AUC; the curve comes from the rest of epsilon. None leaves it
        to the noisy class sizes of a first look, which costs 0.12 of epsilon: the number gets from
        0.48 to 0.88, or nothing where the classes are too small. 0 asks for one round.
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
        default=None, help="thresholds or cells; 100 by default, 48 or 64 with two rounds"
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
        earlier=0.0,
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
            return Parts((), None, (1.0,))
        return Parts.of(self.second_round)

    @property
    def look_menu(self) -> tuple[float, ...]:
        """The parts that a histogram may cost, the one that ends the run last."""
        parts = self.parts
        return parts.looks if parts.closing is None else (*parts.looks, parts.closing)

    @property
    def cell_menu(self) -> tuple[int, ...]:
        """The numbers of cells that a party counts in, or that published functions may have."""
        if self.prior is not None:
            return (self.prior.cells,)
        return LOOK_CELLS if self.thresholds is None else (self.thresholds,)

    @property
    def cell_count(self) -> int:
        """The number of thresholds or cells; of several the largest."""
        return max(self.cell_menu)

    def cells_for(self, clients: int) -> int:
        """The number of cells of a look at so many clients."""
        return look_cells(clients, self.epsilon) if self.thresholds is None else self.thresholds

    def levels_for(self, part: float, cells: int) -> Levels:
        """How a histogram of these cells divides this part of epsilon."""
        spent = part * self.epsilon
        if part == self.parts.closing:
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
    def _distance(self) -> int:
        """The L1 distance of the confusion counts between neighbours; also their squared L2."""
        if self.accounting == "paper":
            return 4 * self.cell_count
        return (1 if self.adjacency == "record" else 2) * self.cell_count

    def replicate_size(self, clients: Clients) -> int:
        """Numbers a replicate holds: its noisy counts, and a bit a record for flipped labels."""
        counts = 8 * self.cell_count * clients.count
        return counts + (2 * clients.records if self.responds else 0)

    @property
    def edge_scores(self) -> Floats:
        """The lower edges of the cells as scores."""
        return self.score_scale.scores(self.edges)

    def prior_estimate(self, records: int, server_result: ServerResult) -> PriorCurves | None:
        """Curves from which a later evaluation can start, from a histogram that shows signal."""
        if not _may_ask_again(self):
            return None
        return PriorCurves.of_result(self.scale, server_result)

    def conversation(self, clients: int) -> Conversation:
        """Noisy counts up, in one round or several looks; then, in two rounds, numbers up."""
        if self.prior is not None:
            return (yield from self._after(self.prior))
        if self.asks_again:
            return (yield from self._two_rounds(clients))
        return (yield from self._one_round())

    def _two_rounds(self, clients: int) -> Conversation:
        """Looks at the histogram, and then the number; or a histogram for all the rest."""
        cells = self.cells_for(clients)
        edges = self.score_scale.scores(np.arange(cells) / cells)
        counts, records = yield from self._look(self.parts.looks[0], cells)
        choice = Choice(0.0, self.parts.numbers[0])
        if self.second_round is None:
            choice = self._choice(counts, clients)
        if not choice.number:
            reply = yield self._asked(choice.look, cells)
            return self._from_histogram(reply, self.levels_for(choice.look, cells), edges)
        if choice.look:
            counts = counts.with_look((yield from self._look(choice.look, cells))[0])
        fields = published(counts.consistent)
        second = yield from self._number(fields, choice.number, fields, records)
        return result_from_looks(edges, counts, second)

    def _asked(self, part: float, cells: int) -> Query:
        return Query(noisy_looks, self, broadcast={PART: part, CELLS: cells})

    def _look(self, part: float, cells: int) -> Generator[Query, Reply, tuple[Counts, Floats]]:
        """The counts of a look, and the most records that each client has by its totals."""
        reply = yield self._asked(part, cells)
        levels, clients = self.levels_for(part, cells), np.asarray(reply["cells"]).shape[-1]
        check_counts(reply, self._largest_scale(levels))
        noise = levels.noise(clients, self.record_distance)
        records = noisy_records(reply, self.record_distance / levels.group_epsilon)
        return Counts(_total(reply, "cells"), _total(reply, "groups"), noise), records

    def _largest_scale(self, levels: Levels) -> float:
        """The largest scale of the noise in a count."""
        parts = (levels.cell_epsilon, levels.group_epsilon)
        return max(self.record_distance / part for part in parts if part)

    def _number(
        self,
        fields: dict[str, Floats],
        part: float,
        sent: dict[str, Floats],
        records: Floats | float,
    ) -> Generator[Query, Reply, BothRounds]:
        """What the sums say, of clients with at most so many records."""
        reply = yield Query(noisy_influences, self, broadcast={PART: part, **sent})
        sums, epsilon = np.asarray(reply["sums"]), self.epsilon * part
        check_sums(sums, records, units_for(epsilon), units_for(epsilon) / epsilon)
        return both_rounds(fields, sums, epsilon, Adjacency(self.adjacency))

    def _after(self, prior: PriorCurves) -> Conversation:
        """The number alone, by the functions of an earlier release."""
        second = yield from self._number(prior.fields, 1.0, {}, MAX_RECORDS)
        return result_from_prior(prior, second)

    def _choice(self, counts: Counts, clients: int) -> Choice:
        """What follows the first look; of several replicates the mean counts decide."""
        cells = counts.consistent.reshape(-1, 2, counts.cells.shape[-1]).mean(axis=0)
        return self.outlook(cells, clients).choice()

    def outlook(self, counts: Floats, clients: int) -> Outlook:
        """What is predicted of the division of epsilon, at consistent counts of shape (2, B)."""
        influences = influences_of(published(counts))
        reach = float(influences.sensitivity(Adjacency(self.adjacency))) / FIXED_POINT
        return Outlook(clients, self.epsilon, self.record_distance, counts, reach)

    def _one_round(self) -> Conversation:
        """Noisy counts up."""
        if self.confused:
            reply = yield Query(noisy_confusion_counts, self)
            counts = np.asarray(reply["counts"])
            noise = CountNoise(counts.shape[-1], self.count_scale, self.kind is Gaussian)
            return result_from_confusion(self.edge_scores, counts.sum(axis=-1), noise, self.clamp)
        if self.responds:
            reply = yield Query(flipped_histograms, self)
            return self._from_flipped(*(_total(reply, k) for k in ("positives", "records")))
        reply = yield Query(noisy_histograms, self)
        return self._from_histogram(reply, self.levels, self.edge_scores)

    def _from_histogram(self, reply: Reply, levels: Levels, edges: Floats) -> ServerResult:
        """The area of the consistent cells, whose lower edges are these scores."""
        check_counts(reply, self._largest_scale(levels))
        drawn = levels.noise(np.asarray(reply["cells"]).shape[-1], self.record_distance)
        groups = _total(reply, "groups") if "groups" in reply else np.zeros(0)
        cells = drawn.reconciled(_total(reply, "cells"), groups)
        if self.adjacency == "label":
            return self._from_exchanged(cells, _total(reply, "records"), drawn)
        positives, negatives = cells[..., 0, :], cells[..., 1, :]
        variance = independent_variance(positives, negatives, drawn)
        return result_from_cells(edges, (positives, negatives), variance, drawn)

    def _from_flipped(self, flipped: Floats, records: Floats) -> ServerResult:
        flip = flip_probability(self.epsilon)
        noise = CellNoise(response_variance(self.epsilon) * records)
        return self._from_exchanged((flipped - flip * records) / (1 - 2 * flip), records, noise)

    def _from_exchanged(self, positives: Floats, records: Floats, noise: CellNoise) -> ServerResult:
        """Noise that moves a record from one class to the other; cell totals are exact."""
        cells = positives, records - positives
        variance = exchange_variance(*cells, noise)
        return result_from_cells(self.edge_scores, cells, variance, noise)


STEPS: dict[type[Mechanism], Step] = {
    DiscreteLaplace: noisy_histograms,
    Laplace: noisy_confusion_counts,
    Gaussian: noisy_confusion_counts,
    RandomisedResponse: flipped_histograms,
}
"""The step of each mechanism."""


def _total(reply: Reply, name: str) -> Floats:
    """A field's sum over clients."""
    return np.asarray(reply[name]).sum(axis=-1, dtype=np.float64)
