"""Forests from private reports: every record reports once, on one level of one block.

**What a record reports.** It draws a slot, that is a block and one of its levels, in proportion to
the levels' parts of epsilon. The draw does not depend on what the record holds, and is sent as it
is. Then it draws one of its votes in that block at random, in private, and sends the node of that
vote, among all nodes of the block's level, as unary bits.

**What it costs.** Given the slot, the report is a mixture, over the record's votes, of unary
reports of one node each. Any report is at most ``e^epsilon`` times as likely under one node as
under another (``unary_bits``). Its probability under a mixture lies between the least and the
largest of the nodes', so the same holds of any two mixtures. The whole report costs epsilon once
for the record's replacement by any other, whatever the number of trees, votes and levels.

**What follows.** Let r of M records report in a slot of a block with V votes a record. The debiased
counts of set bits are the votes that were drawn, of M V votes: times ``f = M V / r`` they estimate
all. With v the variance of unary bits, noise adds ``f^2 r v = M V f v`` to every node's count, and
the draws ``f (1 + 1) c - c`` for a node of c votes, where the second 1 is the own bit's.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tacit.arrays import Integers
from tacit.data.batches.ragged import Ragged
from tacit.data.clients import Clients
from tacit.privacy.mechanisms.response import Choices, UniformIntegers
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Query, Reply, step
from tacit.protocols.multiclass.forests import Block, Forest
from tacit.protocols.shared.reports.packed import packed_counts, packed_reports, report_cost
from tacit.protocols.shared.trees.reported import CHOICE_UNITS, trees_of_reports
from tacit.protocols.shared.trees.tree_budget import record_units

SLOTS, BITS = "slots", "bits"
"""Fields of a reply: the slot of every record, and its noisy bits."""


def report_parts(height: int, budget: float) -> tuple[float, ...]:
    """The parts of the levels of trees, the roots first, which are not asked for."""
    units = record_units(height, "auc")
    return (0.0, *(budget * each / CHOICE_UNITS for each in units))


def _slots(blocks: tuple[Block, ...]) -> list[tuple[Block, int]]:
    """Every level of every block that is asked for."""
    return [(block, level) for block in blocks for level in block.levels]


def _sizes(blocks: tuple[Block, ...]) -> Integers:
    """The number of nodes in every slot."""
    return np.array([block.trees << level for block, level in _slots(blocks)], dtype=np.int64)


def slot_units(blocks: tuple[Block, ...], epsilon: float) -> tuple[int, ...]:
    """In how many of about ``CHOICE_UNITS`` cases a record reports in every slot."""
    return tuple(
        max(round(block.parts[level] / epsilon * CHOICE_UNITS), 1)
        for block, level in _slots(blocks)
    )


@step(cost=report_cost)
def forest_reports(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send one vote of every record as unary bits, in a slot that the record drew.

    The module's docstring derives the cost: epsilon for a record's replacement by any other. It
    holds for every record by itself, whoever sees the report. Records report apart and in their own
    order, so a client with several spends epsilon for each.

    The server learns each record's slot and noisy bits.
    """
    settings = query.protocol
    blocks, votes = settings.blocks(), settings.votes(clients)
    drawn = noise.draw(Choices(slot_units(blocks, settings.epsilon)), (clients.records,))
    slots = np.asarray(drawn, dtype=np.int64)
    values = _drawn_nodes(blocks, votes, slots, noise)
    sent = packed_reports(values, slots, _sizes(blocks), clients.offsets, settings.epsilon, noise)
    return {SLOTS: Ragged(slots.astype(np.int8), clients.offsets), BITS: sent}


def _drawn_nodes(
    blocks: tuple[Block, ...], votes: Mapping[str, Integers], slots: Integers, noise: NoiseSource
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
    blocks: tuple[Block, ...], epsilon: float, reply: Reply
) -> dict[str, Forest]:
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
        block.name: Forest(
            *trees_of_reports(
                counted[block.name],
                records * block.votes,
                epsilon,
                block.trees,
                total_known=False,
            )
        )
        for block in blocks
    }
