"""Figures of private groups, from one histogram over group, class and cell.

What is summed. There is a tree of cells for every group and class. A record is in one group and
has one class and one score: on every level it counts in one node of one tree. Adding or removing it
changes one count of each level by 1, so the sensitivity is 1, however many groups there are;
replacing it, whatever its group, changes at most 2. The levels' parts of epsilon add up
(``protocols.shared.forests``, one block of 2G trees with 1 vote). So epsilon hides a record's group
as it hides its class and score; only the list of groups is public.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Integers
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.protocol.declarations.trust import Trust
from tacit.protocol.settings.declaring import setting
from tacit.protocols.private_groups.declared import GroupedDeclarations
from tacit.protocols.private_groups.estimate import Cut, result_from_groups, sites_from_groups
from tacit.protocols.shared.trees.forest_protocol import ForestProtocol, Forests
from tacit.protocols.shared.trees.forests import Block, Votes
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.parts.sites import Sites
from tacit.results.server_result import ServerResult

RECORDS = "records"
"""The block: positives of all groups, then negatives."""

MAX_GROUPS = 200
"""Largest number of groups."""


@dataclass(frozen=True)
class GroupedHistogram(GroupedDeclarations, ForestProtocol):
    """The AUC, rates at a threshold and their differences, of groups that are protected.

    Parameters
    ----------
    group_names : the agreed names of the groups; differences are taken from the first.
    threshold : the score from which a record is predicted positive; the nearest border of cells is
        taken. None takes the probability 1/2, or the middle position of other scores.
    trust, epsilon, height, adjacency, scale : as ``ForestProtocol`` has them.

    Where one group is agreed, clients without groups belong to it.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> GroupedHistogram("secure-sum", 1.0, group_names=("women", "men")).guarantee.epsilon
    1.0
    """

    group_names: tuple[str, ...] = setting(
        default=("all",), help="the agreed names of private groups"
    )
    threshold: float | None = setting(
        default=None, help="scores from here on are predicted positive; 0.5 by default"
    )

    name = "grouped-histogram"
    categories_setting = "group_names"
    trusts = (Trust.SECURE_SUM, Trust.EACH)

    def __post_init__(self) -> None:
        count = len(self.group_names)
        if not 1 <= count <= MAX_GROUPS or len(set(self.group_names)) < count:
            listed = ", ".join(map(str, self.group_names))
            raise ValueError(
                f"group_names must be 1 to {MAX_GROUPS} names that differ, got {count}: "
                f"{listed[:60]}"
            )
        super().__post_init__()
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise ValueError(f"threshold must be finite, got {self.threshold}")

    def blocks(self) -> tuple[Block, ...]:
        """One block: a record is in one group and class."""
        return (Block(RECORDS, 2 * len(self.group_names), 1, self.tree_parts(1.0, 1)),)

    def grouped(self, clients: Clients) -> Integers:
        """The group of every record, shape (M,).

        Raises
        ------
        DataError : for clients of other groups than the agreed ones, or of none where there are
            several.
        """
        known = clients.categories
        if known is None and len(self.group_names) > 1:
            raise DataError(
                f"{len(self.group_names)} groups are agreed, but the records have none: name their "
                "column"
            )
        if known is None:
            return np.zeros(clients.records, dtype=np.int64)
        if known.names != self.group_names:
            raise DataError(
                f"groups must be {', '.join(self.group_names)}, got {', '.join(known.names)}"
            )
        return known.of_record

    def votes(self, clients: Clients) -> Mapping[str, Votes]:
        """Each record's cell in the tree of its group and class."""
        self.check_scores(clients)
        tree = self.grouped(clients) + np.where(clients.labels == 1, 0, len(self.group_names))
        leaves = (tree << self.tree_height) + self.cells_of(clients.scores)
        return {RECORDS: Votes(np.arange(clients.records), leaves)}

    @property
    def cut(self) -> Cut:
        """The border of cells nearest to the threshold."""
        cells = 1 << self.tree_height
        position = 0.5
        if self.threshold is not None:
            position = float(self.score_scale.positions(np.array([self.threshold]))[0])
        first = int(np.clip(round(position * cells), 1, cells - 1))
        return Cut(first, float(self.score_scale.scores(np.array([first / cells]))[0]))

    def conclusion(self, forests: Forests) -> ServerResult:
        """The AUC of all records, and the figures of every group."""
        return result_from_groups(self.group_names, forests[RECORDS], self.cut, self.is_even)

    def client_figures(self, forests: Forests) -> Sites:
        """The AUC of all groups' records of every client, and its calibration."""
        axis = ScoreAxis(self.score_scale, self.unit)
        return sites_from_groups(len(self.group_names), forests[RECORDS], axis, self.is_even)
