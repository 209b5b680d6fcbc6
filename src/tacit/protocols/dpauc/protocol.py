"""DPAUC: labels and scores stay at the clients, after Sun et al. 2022b (docs, sections 2c and 2d).

The scores' positions on a public scale are cut at public thresholds. Clients release noisy counts
in the cells between them, and the server forms the ROC curve and its area; in two rounds each
client then sends one noisy number for a more accurate area. The server sees every client's noisy
counts and number and nothing else, except that label adjacency treats the scores, and so each
cell's number of records, as public.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from tacit.arrays import Floats
from tacit.data.clients import Clients
from tacit.metrics.cells.score_scale import EVEN
from tacit.privacy.cost import Adjacency, Cost
from tacit.protocol.conversation import Conversation, Protocol, Step
from tacit.protocol.declarations.trust import Each
from tacit.protocol.one_count import OneCount
from tacit.protocol.settings.declaring import EPSILON, setting
from tacit.protocol.settings.scaled import ScaledScores, scale_setting
from tacit.protocols.dpauc import looks
from tacit.protocols.dpauc.declared import DPAUCDeclarations
from tacit.protocols.dpauc.server import rounds
from tacit.protocols.dpauc.steps import noisy_histograms, noisy_influences, noisy_looks
from tacit.protocols.shared.trees.levels import Levels, best_levels
from tacit.protocols.shared.zoomed_cells import fine_scales

THRESHOLDS = 100
"""Number of cells at label adjacency by default."""


@dataclass(frozen=True)
class DPAUC(ScaledScores, DPAUCDeclarations, Protocol):
    """The AUC and ROC curve with private labels and scores.

    Parameters
    ----------
    epsilon : the privacy budget of one evaluation, for every record.
    thresholds : the number of equal cells of positions, counted in one round. None lets the server
        choose from noisy counts where cells lie, how many there are and whether each client then
        sends one number, its sum of influences on the AUC; at label adjacency it takes 100.
    adjacency : ``"record"`` (added or removed), ``"label"`` or ``"replace"``.
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
        default=None, help="number of cells in one round; by default chosen from noisy counts"
    )
    adjacency: Literal["record", "label", "replace"] = setting(
        default="record", help="what epsilon hides; record by default where it applies"
    )
    scale: str = scale_setting()

    name = "dpauc"
    planning_module = f"{__package__}.forecast"
    trust: ClassVar[Each] = Each()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.thresholds is None and self.adjacency == "label":
            object.__setattr__(self, "thresholds", THRESHOLDS)
        if self.thresholds is not None and not 2 <= self.thresholds <= 2**20:
            raise ValueError(f"thresholds must be between 2 and 2**20, got {self.thresholds}")

    @property
    def asks_again(self) -> bool:
        """Whether the server chooses cells, and whether there is a second round."""
        return self.thresholds is None

    @property
    def steps(self) -> tuple[Step, ...]:
        """Histograms, in one round or in looks, and the number."""
        return (noisy_looks, noisy_influences) if self.asks_again else (noisy_histograms,)

    @property
    def look_menu(self) -> tuple[float, ...]:
        """The parts that a histogram may cost, those that end the run last."""
        return (*looks.LOOK_PARTS, *looks.CLOSING_PARTS)

    @property
    def cell_menu(self) -> tuple[int, ...]:
        """The numbers of cells that a party counts in, or that published functions may have."""
        return looks.MANY_CELLS if self.thresholds is None else (self.thresholds,)

    @property
    def cell_count(self) -> int:
        """The number of cells; of several the largest."""
        return max(self.cell_menu)

    def cells_for(self, clients: int) -> int:
        """The number of cells of a look at so many clients."""
        return looks.look_cells(clients, self.epsilon)

    @property
    def places_cells(self) -> bool:
        """Whether the server chooses where cells lie: nothing of them was agreed."""
        return self.asks_again and self.scale != EVEN

    def coarse_place(self, clients: int) -> looks.Cells:
        """Equal cells of positions for so many clients."""
        return looks.Cells(self.cells_for(clients), self.score_scale)

    def first_look(self, clients: int) -> tuple[float, looks.Cells]:
        """The first look's part of epsilon, and its cells."""
        few = looks.are_few(clients, self.epsilon)
        if few and self.places_cells:
            return looks.FIRST_LOOKS[few], looks.fine_place(self.scale, fine_scales(self.scale)[0])
        return looks.FIRST_LOOKS[few], self.coarse_place(clients)

    def levels_for(self, part: float, cells: int) -> Levels:
        """How a histogram of these cells divides this part of epsilon."""
        spent = part * self.epsilon
        if part in looks.CLOSING_PARTS:
            return best_levels(cells, spent, self.record_distance)
        return looks.look_levels(cells, spent)

    def cost_of(self, part: float) -> Cost:
        """What a part of epsilon costs."""
        return Cost(self.epsilon * part, adjacency=Adjacency(self.adjacency))

    @property
    def guarantee(self) -> Cost:
        """What one evaluation costs each client at most."""
        return Cost(self.epsilon, adjacency=Adjacency(self.adjacency))

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
        """One round of noisy counts."""
        once = replace(self, thresholds=THRESHOLDS) if self.asks_again else self
        return OneCount(once, self.score_edges(once.edges[1:]), self.score_ends)

    def replicate_size(self, clients: Clients) -> int:
        """Numbers a replicate holds: its noisy counts."""
        cells = self.cell_count
        if self.places_cells:
            cells = looks.split_cells(clients.count, self.epsilon)
        return 8 * cells * clients.count

    @property
    def edge_scores(self) -> Floats:
        """The lower edges of the cells as scores."""
        return self.score_scale.scores(self.edges)

    def conversation(self, clients: int) -> Conversation:
        """Noisy counts up, in one round or several looks; then, in two rounds, numbers up."""
        return rounds(self, clients)
