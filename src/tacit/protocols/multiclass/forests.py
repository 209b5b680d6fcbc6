"""Forests: several trees of counts in which a record counts in a known number of trees.

A *block* is a set of trees of the same height, of which one record counts in at most ``votes``, in
one cell each. What is summed, and how far a record moves it:

- On one level of one tree a record counts in at most one node. On one level of a block it counts
  in at most ``votes`` nodes, by 1 each. Adding or removing the record changes ``votes`` counts by
  1, so the L1 sensitivity of a level is ``votes``. Replacing a record removes its counts and adds
  others: ``2 votes``.
- Discrete Laplace noise of scale ``reach / part`` on every count of a level, with ``reach`` that
  sensitivity, costs ``part`` by the Laplace mechanism on the integers.
- A record is in every level of every block, so the parts add up (basic composition): to epsilon, or
  to what a second round leaves of it.

**Private reports.** Where every record reports alone, it draws a slot, that is a block and one
of its levels, in proportion to the levels' fractions of epsilon. The draw does not depend on what
the record holds, and is sent as it is. Then it draws one of its votes in that block at random, in
private, and sends the node of that vote, among all nodes of the block's level, as unary bits.

Given the slot, the report is a mixture, over the record's votes, of unary reports of one node each.
Any report is at most ``e^epsilon`` times as likely under one node as under another
(``unary_bits``). Its probability under a mixture lies between the least and the largest of the
nodes', so the same holds of any two mixtures. The whole report costs epsilon once for the record's
replacement by any other, whatever the number of trees, votes and levels.

Let r of M records report in a slot of a block with V votes a record. The debiased counts of set
bits are the votes that were drawn, of M V votes: times ``f = M V / r`` they estimate all. With v
the variance of unary bits, noise adds ``f^2 r v = M V f v`` to every node's count, and the draws
``f (1 + 1) c - c`` for a node of c votes, where the second 1 is the own bit's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.counts import class_forests, tree_budget
from tacit.privacy.mechanisms.response import Choices, UniformIntegers
from tacit.protocol import releases
from tacit.protocols.shared import counting
from tacit.protocols.shared.counting import packed_counts, packed_reports, report_cost


@dataclass(frozen=True)
class Block:
    """Trees of one height, and what their counts cost.

    Parameters
    ----------
    name : of its fields in a reply.
    trees : how many there are.
    votes : the most trees in which one record counts.
    parts : the epsilon of each level, the roots first, shape (height + 1,); 0 where a level is not
        asked for, and infinity where it is exact.
    """

    name: str
    trees: int
    votes: int
    parts: tuple[float, ...]

    @property
    def height(self) -> int:
        """Every tree has ``2**height`` cells."""
        return len(self.parts) - 1

    @property
    def levels(self) -> dict[int, float]:
        """The levels that are asked for, with what each costs a record."""
        return {level: part for level, part in enumerate(self.parts) if part > 0}

    def fields(self, distance: int) -> dict[str, releases.Released]:
        """The counts of its levels, of which a neighbour changes so many votes' by 1."""
        return counting.level_fields(self.name, self.trees, self.votes * distance, self.levels)


def forest_fields(query: tp.Query) -> dict[str, releases.Released]:
    """The counts of all blocks' levels."""
    settings = query.protocol
    by_block = (block.fields(settings.distance) for block in settings.blocks())
    return {name: field for fields in by_block for name, field in fields.items()}


@releases.release(forest_fields)
def count_forest(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send the counts of every class and of all others, in the cells of several levels.

    The module's docstring derives how far a record moves each level; a level costs its part, and
    all parts add up to the forest's cost (``tacit.protocol.releases``). With exact sums there is no
    noise and no guarantee.

    The server learns the noisy sums of all counts and how many clients answered, or each client's
    noisy counts.
    """
    counts, blocks = dict[str, Integers](), query.protocol.blocks()
    ends = np.cumsum([block.trees << block.height for block in blocks])[:-1]
    leaves = np.split(clients.added(partial(_leaf_counts, query)), ends)
    for block, each in zip(blocks, leaves, strict=True):
        counts |= counting.level_counts(block.name, each, block.height, block.levels, query)
    return counts


def _leaf_counts(query: tp.Query, clients: tp.Clients) -> Integers:
    """The counts of all blocks' leaves one after another, as the query asks for them."""
    settings = query.protocol
    votes = settings.votes(clients)
    return np.concatenate(
        [
            counting.counts_at(votes[block.name], block.trees << block.height, query, clients)
            for block in settings.blocks()
        ]
    )


def exact_leaves(block: Block, votes: Integers) -> Floats:
    """The exact counts of a block's cells, shape (trees, 2**height)."""
    counts = np.bincount(votes.ravel(), minlength=block.trees << block.height)
    return counts.reshape(block.trees, -1).astype(np.float64)


SLOTS, BITS = "slots", "bits"
"""Fields of a reply: the slot of every record, and its noisy bits."""


def report_parts(height: int, budget: float) -> tuple[float, ...]:
    """The parts of the levels of trees, the roots first, which are not asked for."""
    units = tree_budget.record_units(height, "auc")
    return (0.0, *(budget * each / tree_budget.CHOICE_UNITS for each in units))


def _slots(blocks: tuple[Block, ...]) -> list[tuple[Block, int]]:
    """Every level of every block that is asked for."""
    return [(block, level) for block in blocks for level in block.levels]


def _sizes(blocks: tuple[Block, ...]) -> Integers:
    """The number of nodes in every slot."""
    return np.array([block.trees << level for block, level in _slots(blocks)], dtype=np.int64)


def slot_units(blocks: tuple[Block, ...], epsilon: float) -> tuple[int, ...]:
    """In how many of about ``CHOICE_UNITS`` cases a record reports in every slot."""
    return tuple(
        max(round(block.parts[level] / epsilon * tree_budget.CHOICE_UNITS), 1)
        for block, level in _slots(blocks)
    )


@tp.step(cost=report_cost)
def forest_reports(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send one vote of every record as unary bits, in a slot that the record drew.

    The module's docstring derives the cost: epsilon for a record's replacement by any other. It
    holds for every record, no matter who sees the report. Records report apart and in their own
    order, so a client with several spends epsilon for each.

    The server learns each record's slot and noisy bits.
    """
    settings = query.protocol
    blocks, votes = settings.blocks(), settings.votes(clients)
    drawn = noise.draw(Choices(slot_units(blocks, settings.epsilon)), (clients.records,))
    slots = np.asarray(drawn, dtype=np.int64)
    values = _drawn_nodes(blocks, votes, slots, noise)
    sent = packed_reports(values, slots, _sizes(blocks), clients.offsets, settings.epsilon, noise)
    return {SLOTS: tp.Ragged(slots.astype(np.int8), clients.offsets), BITS: sent}


def _drawn_nodes(
    blocks: tuple[Block, ...], votes: Mapping[str, Integers], slots: Integers, noise: tp.NoiseSource
) -> Integers:
    """The node of one vote of every record, on the level of its slot, shape (..., M)."""
    nodes = np.zeros(noise.full_shape(slots.shape), dtype=np.int64)
    for number, (block, level) in enumerate(_slots(blocks)):
        rows = np.flatnonzero(slots == number)
        cast = votes[block.name][rows]
        chosen = noise.draw(UniformIntegers(block.votes), (rows.size,))
        leaves = cast[np.arange(rows.size), chosen]
        nodes[..., rows] = leaves >> (block.height - level)
    return nodes


def forests_from_reports(
    blocks: tuple[Block, ...], epsilon: float, reply: tp.Reply
) -> dict[str, class_forests.Forest]:
    """The consistent trees of every block, about all records.

    A level on which no record reported is taken as even, and as uncertain as one report about all.

    Parameters
    ----------
    blocks : those of the protocol.
    epsilon : of one report.
    reply : the reports of all clients.

    Raises
    ------
    ValueError : for reports that do not fit their slots.
    """
    slots, sizes = reply[SLOTS], _sizes(blocks)
    counted: dict[str, dict[int, tuple[Integers, int]]] = {block.name: {} for block in blocks}
    for number, (block, level) in enumerate(_slots(blocks)):
        counted[block.name][level] = packed_counts(slots, reply[BITS], sizes, number)
    records = sum(reports for levels in counted.values() for _, reports in levels.values())
    return {
        block.name: class_forests.Forest(
            *tree_budget.trees_of_reports(
                counted[block.name], records * block.votes, epsilon, block.trees, total_known=False
            )
        )
        for block in blocks
    }
