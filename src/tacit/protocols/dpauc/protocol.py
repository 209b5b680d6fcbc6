"""DPAUC: labels and scores stay at the clients (Sun et al. 2022b; docs, sections 2a to 2c).

The score range [0, 1] is cut at public thresholds. Clients release noisy counts, and the server
forms the ROC curve and its area. The server sees every client's noisy counts and nothing else,
except that label adjacency treats the scores, and so each cell's number of records, as public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
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
from tacit.privacy.sampling.grids import gaussian_delta
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import (
    ClientState,
    Conversation,
    Protocol,
    Query,
    Reply,
    Step,
    step,
)
from tacit.protocol.score_range import UNIT_INTERVAL
from tacit.protocol.settings import EPSILON, setting
from tacit.protocols.dpauc.declared import DPAUCDeclarations
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
from tacit.protocols.shared.levels import CellNoise, Levels, best_levels
from tacit.protocols.shared.rank_noise import RESPONSE, SPELLINGS
from tacit.results.server_result import ServerResult

KINDS: dict[str, type[DiscreteLaplace | Laplace | Gaussian | RandomisedResponse]] = {
    "histogram": DiscreteLaplace,
    "laplace": Laplace,
    "gaussian": Gaussian,
    RESPONSE: RandomisedResponse,
}
"""The mechanisms, by the setting ``mechanism``."""

MECHANISMS = tuple(KINDS)


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
    positives, records = cell_counts(clients, query.protocol.edges, clients.labels)
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
    levels, labelled = settings.levels, settings.adjacency == "label"
    positives, records = cell_counts(clients, query.protocol.edges, clients.labels)
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


@step(cost=_response_cost)
def flipped_histograms(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    """Send the exact cell counts of labels flipped once by randomised response.

    Epsilon at label adjacency, spent when the labels were flipped; the counts are post-processing.
    As Sun et al. 2022b warns, the number of records in a cell is exact: the server learns each
    client's score histogram, which label adjacency does not protect.
    """
    flipped = flipped_labels(clients, query.protocol.epsilon, noise, state, every_client(clients))
    positives, records = cell_counts(clients, query.protocol.edges, flipped)
    return {"positives": positives, "records": records}


def _is_confusion(protocol: DPAUC) -> bool:
    """Whether noise is on the confusion counts, as in the paper."""
    return protocol.mechanism in ("laplace", "gaussian")


@dataclass(frozen=True)
class DPAUC(DPAUCDeclarations, Protocol):
    """The AUC and ROC curve with private labels and scores.

    Parameters
    ----------
    epsilon : the privacy budget of one evaluation, for every record.
    thresholds : the number of thresholds of the paper's forms, spaced evenly over [0, 1] with both
        ends, or the number of equal cells of the histogram.
    mechanism : ``"histogram"`` (noisy cells, and groups of cells where that pays), or the paper's
        ``"laplace"``, ``"gaussian"`` and ``"randomised-response"``.
    accounting : ``"tight"``, or ``"paper"``, which charges every count of the paper's forms apart.
    adjacency : ``"record"`` (added or removed), ``"label"`` or ``"replace"``.
    delta : for Gaussian noise only.
    clamp : the paper's forms clamp noisy counts at 0 and order the points, which biases the area
        downwards when noise is large; False leaves both out and pools the class totals.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> DPAUC(epsilon=1.0).guarantee
    Cost(epsilon=1.0, delta=0.0, adjacency=<Adjacency.RECORD: 'record'>, rho=None)
    """

    epsilon: float = setting(help=EPSILON)
    thresholds: int = setting(default=100, help="thresholds or cells, 100 by default")
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

    name = "dpauc"
    planning_module = f"{__package__}.forecast"
    setting_order = ("epsilon", "thresholds", "mechanism", "adjacency", "accounting", "clamp")
    state_types = (Flipped,)
    score_range = UNIT_INTERVAL

    def __post_init__(self) -> None:
        super().__post_init__()
        check_budget(self.epsilon)
        if not 2 <= self.thresholds <= 2**20:
            raise ValueError(f"thresholds must be between 2 and 2**20, got {self.thresholds}")
        if self.responds and self.adjacency != "label":
            raise ValueError(
                "randomised response protects labels only: adjacency must be 'label', "
                f"got {self.adjacency!r}"
            )
        if self.kind.needs_delta:
            if not 0 < self.delta < 1:
                raise ValueError(f"gaussian noise needs a delta between 0 and 1, got {self.delta}")
            gaussian_delta(self.epsilon, self.delta, 4 * self.thresholds)
        elif self.delta != 0:
            raise ValueError(f"delta belongs to gaussian noise, got {self.delta}")

    @property
    def steps(self) -> tuple[Step, ...]:
        """The step of this mechanism."""
        return (STEPS[self.kind],)

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
            distance, numbers = math.sqrt(self._distance), 4 * self.thresholds
            return Gaussian(distance, self.epsilon, self.delta, numbers)
        return Laplace(self._distance, self.epsilon)

    @property
    def record_distance(self) -> float:
        """How many counts of a histogram's level a neighbour changes by one."""
        return 2.0 if self.adjacency == "replace" else 1.0

    @property
    def levels(self) -> Levels:
        """How the histogram divides epsilon, chosen from public figures."""
        return best_levels(self.thresholds, self.epsilon, self.record_distance)

    @property
    def edges(self) -> Floats:
        """The lower edges of the cells, which are the thresholds.

        Flipped labels are counted in the cells between the paper's thresholds, the last one closed.
        """
        if self.kind is DiscreteLaplace:
            return np.linspace(0.0, 1.0, self.thresholds + 1)[:-1]
        ends = np.linspace(0.0, 1.0, self.thresholds)
        return ends[:-1] if self.responds else ends

    @property
    def _distance(self) -> int:
        """The L1 distance of the confusion counts between neighbours; also their squared L2."""
        if self.accounting == "paper":
            return 4 * self.thresholds
        return (1 if self.adjacency == "record" else 2) * self.thresholds

    def replicate_size(self, clients: Clients) -> int:
        """Numbers a replicate holds: its noisy counts, and a bit a record for flipped labels."""
        counts = 8 * self.thresholds * clients.count
        return counts + (2 * clients.records if self.responds else 0)

    def conversation(self, clients: int) -> Conversation:
        """One round: noisy counts up."""
        if self.confused:
            reply = yield Query(noisy_confusion_counts, self)
            counts = np.asarray(reply["counts"])
            noise = CountNoise(counts.shape[-1], self.count_scale, self.kind is Gaussian)
            return result_from_confusion(self.edges, counts.sum(axis=-1), noise, self.clamp)
        if self.responds:
            reply = yield Query(flipped_histograms, self)
            return self._from_flipped(*(_total(reply, k) for k in ("positives", "records")))
        reply = yield Query(noisy_histograms, self)
        drawn = self.levels.noise(np.asarray(reply["cells"]).shape[-1], self.record_distance)
        groups = _total(reply, "groups") if "groups" in reply else np.zeros(0)
        cells = drawn.reconciled(_total(reply, "cells"), groups)
        if self.adjacency == "label":
            return self._from_exchanged(cells, _total(reply, "records"), drawn)
        positives, negatives = cells[..., 0, :], cells[..., 1, :]
        variance = independent_variance(positives, negatives, drawn)
        return result_from_cells(self.edges, (positives, negatives), variance, drawn)

    def _from_flipped(self, flipped: Floats, records: Floats) -> ServerResult:
        flip = flip_probability(self.epsilon)
        noise = CellNoise(response_variance(self.epsilon) * records)
        return self._from_exchanged((flipped - flip * records) / (1 - 2 * flip), records, noise)

    def _from_exchanged(self, positives: Floats, records: Floats, noise: CellNoise) -> ServerResult:
        """Noise that moves a record from one class to the other; cell totals are exact."""
        cells = positives, records - positives
        variance = exchange_variance(*cells, noise)
        return result_from_cells(self.edges, cells, variance, noise)


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
