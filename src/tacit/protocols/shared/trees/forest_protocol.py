"""What protocols share whose records count in a forest: settings, guarantee, and the round.

What every protocol of forests declares alike: its laws, its errors and who sees what.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.data.clients import Clients
from tacit.metrics import trees
from tacit.metrics.cells.score_scale import EVEN
from tacit.protocol import releases
from tacit.protocol.conversation import Conversation, Query, Step
from tacit.protocol.declarations import audits
from tacit.protocol.declarations.threats import ThreatModel
from tacit.protocol.declarations.trust import Each, Local, SecureSum, Trust
from tacit.protocol.settings import scaled
from tacit.protocols.shared.counting import CountingProtocol
from tacit.protocols.shared.declared import forest_model
from tacit.protocols.shared.site_figures import has_sites
from tacit.protocols.shared.trees.forest_reports import (
    forest_reports,
    forests_from_reports,
    report_parts,
)
from tacit.protocols.shared.trees.forests import (
    Block,
    Forest,
    Votes,
    count_forest,
    exact_leaves,
    forest_fields,
    forest_of,
    noise_of,
)
from tacit.protocols.shared.trees.tree_budget import epsilon_by_level
from tacit.results.parts.sites import Sites
from tacit.results.server_result import ServerResult

ONE_REPLICATE = 2**26
"""Stated size of a replicate, where replicates have to run one at a time."""

HEIGHT, REPORT_HEIGHT, MAX_HEIGHT = 8, 5, 12
"""Height of the trees by default, that of private reports by default, and the largest."""

Forests = Mapping[str, Forest]


@dataclass(frozen=True)
class ForestProtocol(CountingProtocol):
    """A protocol whose records count in a forest: in one round, unless a subclass asks again.

    Parameters
    ----------
    trust, epsilon, adjacency, scale : as ``CountingProtocol`` has them.
    height : at most 12; None takes 8. With ``"local"`` at most 5, which None takes.
    """

    case_name: ClassVar[str]
    """What its cases of laws and errors are called."""
    summed: ClassVar[str]
    """What is summed, for its threat model."""
    setting_order = ("trust", "adjacency", "epsilon")

    def __post_init__(self) -> None:
        super().__post_init__()
        is_local = isinstance(self.trust, Local)
        if self.height is None:
            object.__setattr__(self, "height", REPORT_HEIGHT if is_local else HEIGHT)
        # records' reports leave deeper trees so few on each level that their cells bias the figures
        highest = REPORT_HEIGHT if is_local else MAX_HEIGHT
        if not 1 <= self.tree_height <= highest:
            raise ValueError(f"height must be from 1 to {highest}, got {self.height}")
        if isinstance(self.trust, SecureSum):
            releases.check_shares(self, forest_fields(Query(count_forest, self)))

    @abstractmethod
    def blocks(self) -> tuple[Block, ...]:
        """The blocks of the forest."""

    @abstractmethod
    def votes(self, clients: Clients) -> Mapping[str, Votes]:
        """Where the records count, by block."""

    @abstractmethod
    def conclusion(self, forests: Forests) -> ServerResult:
        """The figures of a forest."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The step of this trust model."""
        return (forest_reports if isinstance(self.trust, Local) else count_forest,)

    def replicate_size(self, clients: Clients) -> int:
        """The counts and their noise, of every client where it sends its own.

        Records draw what they report, and all replicates would have the same draw.
        """
        if isinstance(self.trust, Local):
            return ONE_REPLICATE
        counts = sum(4 * block.trees << block.height for block in self.blocks())
        return 8 * counts * (clients.count if isinstance(self.trust, Each) else 1)

    def tree_parts(self, fraction: float, votes: int) -> tuple[float, ...]:
        """The levels' epsilons of a block that has this fraction of the budget, shape (h + 1,).

        With private reports every record spends epsilon on one level, and these are in proportion
        to how many records report on each.

        Parameters
        ----------
        fraction : of epsilon.
        votes : the trees of the block in which a record counts.
        """
        if self.epsilon is None:
            return (*[0.0] * self.tree_height, float("inf"))
        budget = fraction * self.epsilon
        if isinstance(self.trust, Local):
            return report_parts(self.tree_height, budget)
        parts = epsilon_by_level(self.tree_height, budget, votes * self.distance, "auc")
        return parts[1:]  # a tree of two classes has its classes on level 1

    def count_part(self, fraction: float) -> tuple[float]:
        """The epsilon of plain counts, which have one level."""
        return (float("inf"),) if self.epsilon is None else (fraction * self.epsilon,)

    def check_scores(self, clients: Clients) -> None:
        """Refuse scores that have no cell.

        Raises
        ------
        DataError : for a score outside [0, 1] where scores are probabilities.
        """
        if self.score_range is not None:
            scaled.check_scores_in_unit_interval(clients)

    def cells_of(self, scores: Floats) -> Integers:
        """The cell of scores, of any shape."""
        cells = 1 << self.tree_height
        positions = self.score_scale.positions(scores)
        return np.minimum((positions * cells).astype(np.int64), cells - 1)

    @property
    def tree_height(self) -> int:
        """The height of every tree."""
        return HEIGHT if self.height is None else self.height

    @property
    def is_even(self) -> bool:
        """Whether scores are their own positions."""
        return self.scale == EVEN

    def conversation(self, clients: int) -> Conversation:
        """One round: the forest up."""
        if isinstance(self.trust, Local):
            reply = yield Query(forest_reports, self)
            return self.conclusion(forests_from_reports(self.blocks(), self.known_epsilon, reply))
        sums = yield from releases.ask(count_forest, self, clients)
        result = self.conclusion(self.forests_of(sums))
        has_clients = isinstance(self.trust, Each) and has_sites(sums.answered)
        single = np.ndim(next(iter(sums.sums.values()))) == 1
        if has_clients and single:
            return replace(result, sites=self.client_figures(self.forests_of(sums.by_client())))
        return result

    def client_figures(self, forests: Forests) -> Sites | None:
        """The figures of every client, from forests whose first axis is the clients'."""
        return None

    def forests_of(self, sums: releases.Sums) -> Forests:
        """The forest of the sums."""
        return {block.name: forest_of(block, sums) for block in self.blocks()}

    def expected_noise(self, clients: int) -> dict[str, trees.TreeNoise]:
        """The errors of a tree of every block, where so many clients answer."""
        fields = forest_fields(Query(count_forest, self))
        noises = float(clients if isinstance(self.trust, Each) else 1)
        return {block.name: noise_of(block, fields, noises) for block in self.blocks()}

    def exact_forests(self, clients: Clients) -> Forests:
        """The forest of exact counts, with the noise that a run would have."""
        votes, noise = self.votes(clients), self.expected_noise(clients.count)
        return {
            block.name: Forest(exact_leaves(block, votes[block.name]), noise[block.name])
            for block in self.blocks()
        }

    def noiseless_value(self, clients: Clients) -> float:
        """The figure of the exact cells, at the depth that suits the noise."""
        return float(self.conclusion(self.exact_forests(clients)).value)

    @classmethod
    def law_cases(cls) -> Mapping[str, Any]:
        """Sums and clients' own counts."""
        kind: Any = cls
        return {
            f"{cls.case_name}-exact": kind(Trust.EXACT_SUM.value),
            cls.case_name: kind(Trust.SECURE_SUM.value, 1.0),
            f"{cls.case_name}-replace": kind(Trust.SECURE_SUM.value, 1.0, adjacency="replace"),
            f"{cls.case_name}-each": kind(Trust.EACH.value, 1.0),
        }

    @classmethod
    def error_cases(cls) -> Mapping[str, audits.ErrorCase]:
        """The forms with noise."""
        kind: Any = cls
        return {
            cls.case_name: audits.ErrorCase(kind(Trust.SECURE_SUM.value, 1.0), noticed=True),
            f"{cls.case_name}-each": audits.ErrorCase(kind(Trust.EACH.value, 4.0), repeats=1200),
        }

    @classmethod
    def threats(cls, settings: Mapping[str, Any]) -> ThreatModel:
        """Who sees what."""
        return forest_model(settings, cls.summed)
