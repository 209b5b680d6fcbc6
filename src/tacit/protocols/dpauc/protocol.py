"""DPAUC: labels and scores stay at the clients, after Sun et al. 2022b (docs, section 2c).

The scores' positions on a public scale are cut at public thresholds. Clients release noisy counts
in the cells between them, and the server forms the ROC curve and its area. The server sees every
client's noisy counts and nothing else, except that label adjacency treats the scores, and so each
cell's number of records, as public. Where records are hidden whole, ``ScoreHistogram`` with trust
``each`` chooses cells by noisy counts and gives the other figures as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from tacit.arrays import Floats
from tacit.data.clients import Clients
from tacit.protocol.conversation import Conversation, OneCount, Protocol, Step
from tacit.protocol.declarations.trust import Each
from tacit.protocol.settings.declaring import EPSILON, setting
from tacit.protocol.settings.scaled import ScaledScores, scale_setting
from tacit.protocols.dpauc.declared import DPAUCDeclarations
from tacit.protocols.dpauc.server import rounds
from tacit.protocols.dpauc.steps import noisy_histograms
from tacit.protocols.shared.trees.levels import Levels, best_levels


@dataclass(frozen=True)
class DPAUC(ScaledScores, DPAUCDeclarations, Protocol):
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

    epsilon: float = setting(help=EPSILON)
    thresholds: int = setting(default=100, help="number of cells")
    adjacency: Literal["record", "label", "replace"] = setting(
        default="record", help="what epsilon hides; record by default where it applies"
    )
    scale: str = scale_setting()

    name = "dpauc"
    planning_module = f"{__package__}.forecast"
    trust: ClassVar[Each] = Each()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.thresholds <= 2**20:
            raise ValueError(f"thresholds must be between 2 and 2**20, got {self.thresholds}")

    @property
    def steps(self) -> tuple[Step, ...]:
        """The one step."""
        return (noisy_histograms,)

    @property
    def cell_count(self) -> int:
        """The number of cells."""
        return self.thresholds

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
        """The lower edges of the cells, which are the thresholds, as positions."""
        return np.linspace(0.0, 1.0, self.cell_count + 1)[:-1]

    @property
    def one_count(self) -> OneCount:
        """All that a run asks for."""
        return OneCount(self, self.score_edges(self.edges[1:]), self.score_ends)

    def replicate_size(self, clients: Clients) -> int:
        """Numbers a replicate holds: its noisy counts."""
        return 8 * self.cell_count * clients.count

    @property
    def edge_scores(self) -> Floats:
        """The lower edges of the cells as scores."""
        return self.score_scale.scores(self.edges)

    def conversation(self, clients: int) -> Conversation:
        """Noisy counts up."""
        return rounds(self, clients)
