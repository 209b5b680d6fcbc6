"""DPAUC of Sun, Yang, Yao, Xie, Wu and Wang, 2022 (Sun et al. 2022b; docs, sections 2a and 2b).

Labels and scores stay at the clients. At each of T public thresholds a client counts its true and
false positives and negatives. It adds noise to these counts, or flips its labels before it counts,
and the server forms the ROC curve of the sums over clients and its area by straight lines. The
server sees every client's noisy counts and nothing else; of flipped labels it sees exact counts,
and so each client's number of records between thresholds, which label adjacency does not protect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tacit.arrays import Floats
from tacit.data.clients import Clients
from tacit.privacy.cost import Adjacency, Cost, check_budget
from tacit.privacy.mechanisms import gaussian, laplace
from tacit.privacy.mechanisms.response import flip_probability, response_variance
from tacit.privacy.mechanisms.together import Together
from tacit.privacy.sampling.grids import gaussian_delta
from tacit.protocol.conversation import Conversation, Protocol, Query, Step
from tacit.protocol.one_count import OneCount
from tacit.protocol.settings.declaring import EPSILON, setting
from tacit.protocol.settings.scaled import ScaledScores, scale_setting
from tacit.protocols.dpauc.server import from_exchanged
from tacit.protocols.published.dpauc.declared import PublishedDPAUCDeclarations
from tacit.protocols.published.dpauc.estimate import CountNoise, result_from_confusion
from tacit.protocols.published.dpauc.noises import Gaussian, Laplace, RandomisedResponse
from tacit.protocols.published.dpauc.steps import flipped_histograms, noisy_confusion_counts
from tacit.protocols.shared.reports.flipped_labels import Flipped
from tacit.protocols.shared.trees.levels import CellNoise


@dataclass(frozen=True)
class PublishedDPAUC(ScaledScores, PublishedDPAUCDeclarations, Protocol):
    """The AUC and ROC curve from confusion counts, as Sun et al. 2022b form them.

    Parameters
    ----------
    epsilon : the privacy budget of one evaluation, for every record.
    thresholds : T, spaced evenly over positions with both ends.
    mechanism : ``Laplace()``, ``Gaussian(delta=...)`` or ``RandomisedResponse()``, or their words.
    adjacency : ``"record"`` (added or removed), ``"label"`` or ``"replace"``; flipped labels
        protect ``"label"`` only.
    scale : where thresholds lie (``metrics.score_scale``); ``"even"`` as in the paper.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> float(PublishedDPAUC(1.0, mechanism="laplace(accounting=paper)").count_noise.scale)
    400.0
    """

    epsilon: float = setting(help=EPSILON)
    thresholds: int = setting(default=100, help="number of thresholds; 100 by default")
    mechanism: Laplace | Gaussian | RandomisedResponse | str = setting(
        default=Laplace(),
        help="laplace, gaussian(delta=...) or randomised-response; laplace by default",
    )
    adjacency: Literal["record", "label", "replace"] = setting(
        default="record", help="what epsilon hides; record by default where it applies"
    )
    scale: str = scale_setting()

    name = "published-dpauc"
    planning_module = f"{__package__}.forecast"
    state_types = (Flipped,)

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
        if isinstance(self.mechanism, Gaussian):
            gaussian_delta(self.epsilon, self.mechanism.delta, 4 * self.thresholds)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The step of this mechanism."""
        return (flipped_histograms if self.responds else noisy_confusion_counts,)

    @property
    def responds(self) -> bool:
        """Whether labels answer by randomised response."""
        return isinstance(self.mechanism, RandomisedResponse)

    @property
    def on_counts(self) -> Laplace | Gaussian:
        """The noise on counts.

        Raises
        ------
        TypeError : where labels answer by randomised response.
        """
        if not isinstance(self.mechanism, Laplace | Gaussian):
            raise TypeError(f"{self.mechanism} adds no noise to counts")
        return self.mechanism

    @property
    def count_noise(self) -> laplace.Laplace | gaussian.Gaussian:
        """The noise on a confusion count."""
        return self.on_counts.drawn(self.thresholds, self.adjacency, self.epsilon)

    @property
    def guarantee(self) -> Cost:
        """What one evaluation costs each client at most."""
        adjacency = Adjacency(self.adjacency)
        if self.responds:
            return Cost(self.epsilon, adjacency=adjacency)
        if isinstance(self.mechanism, Gaussian):
            return self.count_noise.cost(adjacency)
        distance = self.on_counts.distance(self.thresholds, self.adjacency)
        all_counts = Together((laplace.Laplace(1, self.epsilon / distance),), distance)
        return Cost(self.epsilon, adjacency=adjacency, mechanism=all_counts)

    @property
    def edges(self) -> Floats:
        """The thresholds as positions.

        Flipped labels are counted in the cells between them, the last one closed.
        """
        ends = np.linspace(0.0, 1.0, self.thresholds)
        return ends[:-1] if self.responds else ends

    @property
    def edge_scores(self) -> Floats:
        """The thresholds as scores."""
        return self.score_scale.scores(self.edges)

    @property
    def one_count(self) -> OneCount | None:
        """The counts at the thresholds; None where every label is flipped by itself."""
        if self.responds:
            return None
        return OneCount(self, self.score_edges(self.edges[1:]), self.score_ends)

    def replicate_size(self, clients: Clients) -> int:
        """Numbers a replicate holds: its noisy counts, and a bit a record for flipped labels."""
        counts = 8 * self.thresholds * clients.count
        return counts + (2 * clients.records if self.responds else 0)

    def conversation(self, clients: int) -> Conversation:
        """One round: counts up."""
        if self.responds:
            reply = yield Query(flipped_histograms, self)
            flipped, records = (
                np.asarray(reply[name]).sum(axis=-1, dtype=np.float64)
                for name in ("positives", "records")
            )
            flip = flip_probability(self.epsilon)
            positives = (flipped - flip * records) / (1 - 2 * flip)
            noise = CellNoise(response_variance(self.epsilon) * records)
            return from_exchanged(self, positives, records, noise)
        reply = yield Query(noisy_confusion_counts, self)
        counts, drawn = np.asarray(reply["counts"]), self.count_noise
        is_gaussian = isinstance(drawn, gaussian.Gaussian)
        scale = float(drawn.sigma if isinstance(drawn, gaussian.Gaussian) else drawn.scale)
        on_sums = CountNoise(counts.shape[-1], scale, is_gaussian)
        clamps = self.on_counts.clamps
        return result_from_confusion(self.edge_scores, counts.sum(axis=-1), on_sums, clamps)
