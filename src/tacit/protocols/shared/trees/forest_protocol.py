"""What protocols share whose records count in a forest: settings, guarantee, and the round."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.data.clients import Clients
from tacit.metrics.cells.score_scale import EVEN
from tacit.privacy.cost import UNPROTECTED, Adjacency, Cost, check_budget
from tacit.protocol.conversation import Conversation, Protocol, Query, Reply, Step, View
from tacit.protocol.declarations.trust import Trust
from tacit.protocol.settings.declaring import EPSILON, setting
from tacit.protocol.settings.scaled import ScaledScores, scale_setting
from tacit.protocol.settings.score_range import check_scores_in_unit_interval
from tacit.protocols.shared.site_figures import has_sites
from tacit.protocols.shared.sums.noise_shares import answered_clients, noise_fraction
from tacit.protocols.shared.trees.forest_reports import (
    forest_reports,
    forests_from_reports,
    report_parts,
)
from tacit.protocols.shared.trees.forests import (
    Block,
    Forest,
    Votes,
    check_shared_scales,
    exact_leaves,
    forest_of,
    own_forest,
    summed_forest,
    supported_epsilon,
)
from tacit.protocols.shared.trees.tree_budget import epsilon_by_level
from tacit.results.parts.sites import Sites
from tacit.results.server_result import ServerResult

EXACT_SUM, SECURE_SUM = Trust.EXACT_SUM.value, Trust.SECURE_SUM.value
EACH = Trust.EACH.value
LOCAL = Trust.LOCAL.value
TRUSTS = (EXACT_SUM, SECURE_SUM, EACH)

ONE_REPLICATE = 2**26
"""Stated size of a replicate, where replicates have to run one at a time."""

HEIGHT, REPORT_HEIGHT, MAX_HEIGHT = 8, 5, 12
"""Height of the trees by default, that of private reports by default, and the largest."""

Forests = Mapping[str, Forest]


def _is_private(protocol: ForestProtocol) -> bool:
    return protocol.epsilon is not None


def _is_distributed(protocol: ForestProtocol) -> bool:
    return protocol.trust == SECURE_SUM


@dataclass(frozen=True)
class ForestProtocol(ScaledScores, Protocol):
    """A protocol whose records count in a forest, in one round.

    Parameters
    ----------
    trust : ``"exact-sum"`` (the server sees exact sums; no differential privacy), ``"secure-sum"``
        (sums with noise, of which every client draws a share) or ``"each"`` (every client's own
        counts, with the whole noise in each). A subclass may also offer ``"local"`` (every record
        sends one report that is private by itself).
    epsilon : the privacy budget of one record; none for ``"exact-sum"``.
    height : every tree has ``2**height`` cells, at most 12; None takes 8. With ``"local"`` at most
        5, which None takes.
    adjacency : ``"record"`` (added or removed; not with ``"local"``, where every record is seen to
        report) or ``"replace"``; None takes the first that applies.
    dropouts : the fraction of clients that may vanish without weakening the guarantee.
    scale : the public map of scores to the positions that equal cells cut.
    """

    trust: str = setting(
        default=SECURE_SUM, choices=TRUSTS, help="who may see what; secure-sum by default"
    )
    epsilon: float | None = setting(default=None, help=EPSILON)
    height: int | None = setting(default=None, help="2**height cells of scores")
    adjacency: Literal["record", "replace"] | None = setting(
        default=None,
        help="what epsilon hides; record by default where it applies",
        used=_is_private,
    )
    dropouts: float = setting(
        default=0.0,
        help="the fraction of clients that may vanish, 0 by default",
        when=SECURE_SUM,
        used=_is_distributed,
    )
    scale: str = scale_setting()

    name = "forest"
    title_settings = ("trust", "adjacency")
    setting_order = ("trust", "adjacency", "epsilon")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.trust == EXACT_SUM:
            if self.epsilon is not None:
                raise ValueError(f"{self.trust} takes no epsilon, got {self.epsilon}")
        elif self.epsilon is None:
            raise ValueError(f"{self.trust} needs an epsilon")
        else:
            check_budget(self.epsilon)
        if self.height is None:
            height = REPORT_HEIGHT if self.trust == LOCAL else HEIGHT
            object.__setattr__(self, "height", height)
        # records' reports leave deeper trees so few on each level that their cells bias the figures
        highest = REPORT_HEIGHT if self.trust == LOCAL else MAX_HEIGHT
        if not 1 <= self.tree_height <= highest:
            raise ValueError(f"height must be from 1 to {highest}, got {self.height}")
        if not 0 <= self.dropouts < 1:
            raise ValueError(f"dropouts must be from 0 to below 1, got {self.dropouts}")
        if self.dropouts and self.trust != SECURE_SUM:
            raise ValueError(f"dropouts belongs to {SECURE_SUM}, got {self.dropouts}")
        self._settle_adjacency()
        if self.trust == SECURE_SUM:
            check_shared_scales(self)

    def _settle_adjacency(self) -> None:
        """Take the first adjacency that applies where none was chosen, and refuse another."""
        allowed = ("replace",) if self.trust == LOCAL else ("record", "replace")
        if self.adjacency is None:
            object.__setattr__(self, "adjacency", allowed[0])
        elif self.adjacency not in allowed:
            raise ValueError(
                f"adjacency must be one of {allowed} for {self.trust}, got {self.adjacency!r}"
            )

    @classmethod
    def takes_epsilon(cls, settings: Mapping[str, Any]) -> bool:
        """Whether noise is added."""
        return settings.get("trust") != EXACT_SUM

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
        return ({EACH: own_forest, LOCAL: forest_reports}.get(self.trust, summed_forest),)

    @property
    def guarantee(self) -> Cost:
        """What one evaluation costs every record at most."""
        if self.epsilon is None:
            return UNPROTECTED
        return Cost(self.epsilon, adjacency=Adjacency(self.adjacency))

    @property
    def forest_cost(self) -> Cost:
        """What the counts cost every record: everything, where nothing else is asked."""
        return self.guarantee

    @property
    def distance(self) -> int:
        """How many records of a neighbour are others."""
        return 2 if self.adjacency == "replace" else 1

    def min_clients(self, clients: int) -> int:
        """With fewer than the clients that are planned to stay, the noise would not suffice."""
        return noise_fraction(1, clients, self.dropouts).denominator

    def noise_share(self, batch: int, queried: int) -> Fraction:
        """The part of the noise that a batch of clients draws."""
        return noise_fraction(batch, queried, self.dropouts)

    def replicate_size(self, clients: Clients) -> int:
        """The counts and their noise, of every client where it sends its own.

        Records draw what they report, and all replicates would have the same draw.
        """
        if self.trust == LOCAL:
            return ONE_REPLICATE
        counts = sum(4 * block.trees << block.height for block in self.blocks())
        return 8 * counts * (clients.count if self.trust == EACH else 1)

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
        if self.trust == LOCAL:
            return report_parts(self.tree_height, budget)
        parts = epsilon_by_level(self.tree_height, budget, votes * self.distance, "auc", False)
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
            check_scores_in_unit_interval(clients)

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
        if self.trust == EACH:
            reply = yield Query(own_forest, self)
            first = self.blocks()[0]
            level = next(iter(first.levels))
            answered = np.asarray(reply[first.field(level)]).shape[-1]
            result = self.conclusion(self.forests_of(reply, answered, by_client=True))
            single = np.asarray(reply[first.field(level)]).ndim == 2
            return self._with_sites(result, reply) if single and has_sites(answered) else result
        if self.trust == LOCAL and self.epsilon is not None:
            reply = yield Query(forest_reports, self)
            return self.conclusion(forests_from_reports(self.blocks(), self.epsilon, reply))
        reply = yield Query(summed_forest, self, broadcast={"clients": clients}, view=View.SUM)
        share = self.noise_share(answered_clients(reply, clients), clients)
        return self.with_protection(self.conclusion(self.forests_of(reply, float(share))), share)

    def with_protection(self, result: ServerResult, share: Fraction) -> ServerResult:
        """The result with what this share of the noise protects, where clients vanished."""
        if self.epsilon is None or share >= 1:
            return result
        protection = Cost(self.supported(share), adjacency=Adjacency(self.adjacency))
        return replace(result, protection=protection)

    def supported(self, share: Fraction) -> float:
        """The epsilon that this share of the noise supports."""
        return supported_epsilon(self, share)

    def _with_sites(self, result: ServerResult, reply: Reply) -> ServerResult:
        """The result with the figures of every client, from its own counts."""
        by_client = {name: np.moveaxis(np.asarray(sent), -1, 0) for name, sent in reply.items()}
        sites = self.client_figures(self.forests_of(by_client, 1.0))
        return replace(result, sites=sites)

    def client_figures(self, forests: Forests) -> Sites | None:
        """The figures of every client, from forests whose first axis is the clients'."""
        return None

    def forests_of(self, reply: Reply, noises: float, by_client: bool = False) -> Forests:
        """The forest of a reply, whose noise is this multiple of what the guarantee needs."""
        return {
            block.name: forest_of(self, block, reply, noises, by_client) for block in self.blocks()
        }

    def exact_forests(self, clients: Clients) -> Forests:
        """The forest of exact counts, with the noise of one that all clients sum."""
        votes, made = self.votes(clients), {}
        noises = clients.count if self.trust == EACH else 1.0
        for block in self.blocks():
            counts = exact_leaves(block, votes[block.name])
            empty = {block.field(level): np.zeros(block.trees << level) for level in block.levels}
            made[block.name] = Forest(counts, forest_of(self, block, empty, noises).noise)
        return made

    def noiseless_value(self, clients: Clients) -> float:
        """The figure of the exact cells, at the depth that suits the noise."""
        return float(self.conclusion(self.exact_forests(clients)).value)
