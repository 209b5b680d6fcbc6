"""Client steps of score histograms: summed trees of counts, and unary reports and their tree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.counts import reported_trees
from tacit.counts.reported_trees import FIRST_CELLS
from tacit.metrics.trees import TreeNoise
from tacit.privacy.mechanisms.response import Choices
from tacit.protocol import devices, releases
from tacit.protocols.shared.cells import ALL_RECORDS, Strata
from tacit.protocols.shared.reports import packed
from tacit.protocols.shared.tree_counts import LEVEL, counts_at, level_counts, level_fields

LEVEL_SIZES = 1 << np.arange(2**5)
"""The number of nodes of every level."""


def leaves_of(clients: tp.Clients, height: int, protocol: tp.ScaledScores) -> Integers:
    """The leaf of every record, shape (M,): cells of positives first, then those of negatives.

    Raises
    ------
    DataError : for a score outside [0, 1] where the protocol's scores are probabilities.
    """
    return leaves_at(protocol.on_scale(clients).scores, clients.labels, height)


def leaves_at(positions: Floats, labels: NDArray[Any], height: int) -> Integers:
    """The leaf of every record at a position from 0 to 1, shape (M,)."""
    cells = 1 << height  # a power of two, so that a position times it is exact
    cell = np.minimum((positions * cells).astype(np.int64), cells - 1)
    return cell + np.where(labels == 1, 0, cells)


def agreed_height(query: tp.Query) -> int:
    """The height of the tree, which follows from the settings and the number of clients.

    Raises
    ------
    ValueError : for a query that says another.
    """
    height, agreed = (
        query.broadcast["height"],
        query.protocol.tree_height(query.broadcast["clients"]),
    )
    if height != agreed:
        raise ValueError(f"height must be {agreed}, as agreed, got {height}")
    return int(agreed)


def tree_fields(protocol: Any, height: int) -> dict[str, releases.Released]:
    """The counts of a summed tree's levels, of which a neighbour changes ``distance`` by one."""
    return level_fields(LEVEL, protocol.strata, protocol.distance, protocol.level_parts(height))


@releases.release(lambda query: tree_fields(query.protocol, agreed_height(query)))
def summed_trees(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send the tree of both classes' counts.

    On one level a record counts in one node, of its group where groups are agreed
    (``histogram.grouped``). Adding or removing it changes one count of each level by one, replacing
    it two. A level costs its part, and the parts add up to the tree's
    (``tacit.protocol.releases``); with exact sums there is no noise and no guarantee.

    The server learns the noisy sum of the trees, and how many clients answered.
    """
    height, protocol = agreed_height(query), query.protocol
    strata = protocol.strata_of(clients)
    counts = leaf_counts(query, protocol.on_scale(clients), height, strata)
    return level_counts(LEVEL, counts, height + 1, protocol.level_parts(height), query)


def leaf_counts(
    query: tp.Query, clients: tp.Clients, height: int, strata: Strata = ALL_RECORDS
) -> Integers:
    """Both classes' counts in equal cells of positions, of each client or of all as the query asks.

    Positives, then negatives, stratum by stratum: shape (S * 2 * cells,), or (S * 2 * cells, K)
    where the server sees each client.
    """
    cells, leaves = 1 << height, 2 << height
    if not clients.at_hand:
        counts = clients.counts_in(np.arange(1, cells) / cells, by_group=strata.count > 1)
        return releases.by_view(query, counts.reshape(strata.count * leaves, clients.count))
    own = leaves_at(clients.scores, clients.labels, height) + strata.of_record * leaves
    return counts_at(own, strata.count * leaves, query, clients)


@tp.step(cost=packed.report_cost, shares=releases.planned_clients)
def unary_reports(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send every record's class and cell as unary bits, on one level that it chose at random.

    The level does not depend on what the record holds, and is sent as it is. The bits hide class
    and cell together (``unary_bits``): epsilon for a record's replacement by any other. Records
    report apart and in their own order, so a client with several spends epsilon for each.

    The server learns each record's level and noisy bits.
    """
    settings, height = query.protocol, agreed_height(query)
    leaves = leaves_of(clients, height, settings)
    levels = drawn_levels(clients.records, settings, height, noise)
    return {
        "levels": tp.Ragged(levels.astype(np.int8), clients.offsets),
        "bits": encoded_leaves(leaves, levels, clients.offsets, settings, height, noise),
    }


def drawn_levels(records: int, settings: Any, height: int, noise: tp.NoiseSource) -> Integers:
    """The level on which each record reports, shape (M,)."""
    drawn = noise.draw(Choices(settings.level_units(height)), (records,))
    return np.asarray(FIRST_CELLS + drawn)


def encoded_leaves(
    leaves: Integers,
    levels: Integers,
    offsets: Integers,
    settings: Any,
    height: int,
    noise: tp.NoiseSource,
) -> tp.Ragged[np.uint8]:
    """Unary bits of records that lie at these leaves, each on its level, by client.

    Parameters
    ----------
    leaves : shape (M,), or (R, M) where each replicate has its own.
    levels : shape (M,).
    offsets : where each client's records start, and M, shape (K+1,).
    settings : the protocol.
    height : of the tree.
    noise : draws the bits.
    """
    values = leaves >> (height + 1 - levels)
    return packed.packed_reports(values, levels, LEVEL_SIZES, offsets, settings.epsilon, noise)


def report_bytes(levels: Integers) -> Integers:
    """The bytes of a report on each of these levels."""
    return packed.packed_bytes(LEVEL_SIZES[levels])


def level_start(level: int) -> int:
    """Where a level is in the counts of reports: each has its number of reports, then its bits.

    Examples
    --------
    >>> [level_start(level) for level in (2, 3, 4)]
    [0, 5, 14]
    """
    return sum(1 + (1 << above) for above in range(FIRST_CELLS, level))


def set_bits(reply: tp.Reply, level: int) -> tuple[Integers, int]:
    """How many reports on a level have each bit set, shape (..., 2**level), and how many there are.

    Raises
    ------
    ValueError : for reports whose bytes do not fit their levels.
    """
    counts = devices.counts_in(reply)
    if counts is not None:
        start = level_start(level)
        return counts[start + 1 : start + 1 + (1 << level)], int(counts[start])
    return packed.packed_counts(reply["levels"], reply["bits"], LEVEL_SIZES, level)


def local_tree(
    epsilon: float, reply: tp.Reply, height: int, records: int | None = None
) -> tuple[Floats, TreeNoise]:
    """The consistent leaves of unary reports, on the deepest level that was reported on.

    They are about all ``records``, of which those that report are a random part; None takes
    those that report for all. Where none reports, the tree is even, and as uncertain as that of
    a single report.
    """
    by_level = {level: set_bits(reply, level) for level in range(FIRST_CELLS, height + FIRST_CELLS)}
    records = sum(sent for _, sent in by_level.values()) if records is None else records
    told = {level: each for level, each in by_level.items() if each[1]}
    first = {FIRST_CELLS: by_level[FIRST_CELLS]}
    leaves, noise = reported_trees.trees_of_reports(told or first, records, epsilon)
    return leaves[..., 0, :], noise
