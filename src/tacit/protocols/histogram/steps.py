"""Client steps of score histograms: summed trees of counts, and unary reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.batches.ragged import Ragged
from tacit.data.clients import Clients
from tacit.privacy.cost import NOTHING, Cost
from tacit.privacy.mechanisms.choices import Choices
from tacit.privacy.mechanisms.laplace import PolyaShare
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Layout, Query, Reply, step
from tacit.protocol.devices import counts_in
from tacit.protocol.settings.scaled import ScaledScores
from tacit.protocol.sum_bounds import clipped, clipped_sum_bound, planned_clients
from tacit.protocols.shared.cell_counts import even_cell_counts, even_leaves
from tacit.protocols.shared.published_knots import KNOTS, placed_on, published_scale
from tacit.protocols.shared.reports.packed_reports import (
    packed_bytes,
    packed_counts,
    packed_reports,
)

LEVEL_SIZES = 1 << np.arange(2**5)
"""The number of nodes of every level."""

FIRST_CELLS = 2
"""Index of the first level with cells, after the total and the classes."""


def leaves_of(clients: Clients, height: int, protocol: ScaledScores) -> Integers:
    """The leaf of every record, shape (M,): cells of positives first, then those of negatives.

    Raises
    ------
    DataError : for a score outside [0, 1] where the protocol's scores are probabilities.
    """
    return leaves_at(protocol.on_scale(clients).scores, clients.labels, height)


def leaves_at(positions: Floats, labels: NDArray[Any], height: int) -> Integers:
    """The leaf of every record at a position from 0 to 1, shape (M,)."""
    return even_leaves(positions, labels, 1 << height)


def _tree_cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    cost: Cost = query.protocol.tree_cost
    return cost


def agreed_height(query: Query) -> int:
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


def _tree_layout(query: Query) -> Layout:
    levels = query.protocol.level_scales(agreed_height(query))
    return {level_name(level): (1 << level,) for level in levels} | {"clients": ()}


def _tree_bounds(query: Query) -> dict[str, int]:
    settings, planned = query.protocol, planned_clients(query)
    height = agreed_height(query)
    shares = settings.level_noise(height, settings.noise_share(1, planned))
    levels = settings.level_scales(height)
    bounds = {level_name(level): clipped_sum_bound(query, shares.get(level)) for level in levels}
    return bounds | {"clients": planned}


@step(cost=_tree_cost, sums=_tree_layout, shares=planned_clients, bounds=_tree_bounds)
def summed_trees(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send the tree of both classes' counts, with this batch's share of the noise.

    On one level a record counts in one node. Adding or removing it changes one count of each level
    by one, replacing it two. The noise shares of all queried clients add up to discrete Laplace
    noise of scale ``distance / epsilon_l`` on every count of level l, which costs ``epsilon_l`` by
    the Laplace mechanism on the integers; the levels' parts add up to epsilon. Where records are
    assigned to levels (``budget="sample"``), each draws one level, independent of its data, and
    counts there only: every level's noise has the scale ``distance / epsilon``, and a record costs
    epsilon once. The guarantee is about the sum over all clients, and holds against a server that
    sees the sum only and colludes with no client; with ``exact-sum`` there is no noise.

    Where the query publishes knots (``placing_counts``), the cells end at these: whatever they are,
    a record counts in one.

    The server learns the noisy sum of the trees, and how many clients answered.

    Raises
    ------
    ValueError : for knots where none were agreed, and those that are not one fewer than the cells,
        finite and ascending.
    """
    settings, height = query.protocol, agreed_height(query)
    counts_at = _level_counts(clients, query, height, noise)
    share = settings.noise_share(clients.count, planned_clients(query))
    reply: dict[str, Any] = {}
    drawn: dict[int, PolyaShare] = settings.level_noise(height, share)
    for level in settings.level_scales(height):
        node_counts = clipped(counts_at(level), query)
        if level in drawn:
            node_counts = node_counts + noise.draw(drawn[level], (1 << level,))
        reply[level_name(level)] = node_counts
    return reply | {"clients": np.asarray(clients.count, dtype=np.int64)}


def _level_counts(
    clients: Clients, query: Query, height: int, noise: NoiseSource
) -> Callable[[int], Integers]:
    """The counts of a level's nodes: of all records, or of those that were dealt to the level."""
    settings = query.protocol
    if settings.budget == "sample":
        leaves = leaves_of(clients, height, settings)
        chosen = noise.draw(Choices(settings.level_units(height)), (clients.records,))
        return lambda level: np.bincount(
            leaves[chosen == level - FIRST_CELLS] >> (height + 1 - level), minlength=1 << level
        )
    leaf_counts = _leaf_counts(clients, query, height, noise)
    return lambda level: leaf_counts.reshape(*leaf_counts.shape[:-1], 1 << level, -1).sum(axis=-1)


def _leaf_counts(clients: Clients, query: Query, height: int, noise: NoiseSource) -> Integers:
    """The counts of the leaves, shape (2B,), or (R, 2B) where each replicate has its own cells."""
    settings, cells, knots = query.protocol, 1 << height, query.broadcast.get(KNOTS)
    if (knots is not None) != settings.places_trees:
        raise ValueError(f"{KNOTS} must be published where they were agreed, and nowhere else")
    if knots is None or noise.replicates is None or np.ndim(knots) < 2:
        placed = placed_on(published_scale(query, cells), settings, clients)
        return even_cell_counts(placed, cells)
    apart = [replace(query, broadcast={**query.broadcast, KNOTS: each}) for each in knots]
    scales = [published_scale(each, cells) for each in apart]
    return np.stack(
        [even_cell_counts(placed_on(scale, settings, clients), cells) for scale in scales]
    )


def level_name(level: int) -> str:
    """The field that carries a level's counts."""
    return f"level-{level}"


def _unary_cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    guarantee: Cost = query.protocol.guarantee
    return guarantee if clients.records else NOTHING


@step(cost=_unary_cost, shares=planned_clients)
def unary_reports(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
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
        "levels": Ragged(levels.astype(np.int8), clients.offsets),
        "bits": encoded_leaves(leaves, levels, clients.offsets, settings, height, noise),
    }


def drawn_levels(records: int, settings: Any, height: int, noise: NoiseSource) -> Integers:
    """The level on which each record reports, shape (M,)."""
    drawn = noise.draw(Choices(settings.level_units(height)), (records,))
    return np.asarray(FIRST_CELLS + drawn)


def encoded_leaves(
    leaves: Integers,
    levels: Integers,
    offsets: Integers,
    settings: Any,
    height: int,
    noise: NoiseSource,
) -> Ragged[np.uint8]:
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
    return packed_reports(values, levels, LEVEL_SIZES, offsets, settings.epsilon, noise)


def report_bytes(levels: Integers) -> Integers:
    """The bytes of a report on each of these levels."""
    return packed_bytes(LEVEL_SIZES[levels])


def level_start(level: int) -> int:
    """Where a level is in the counts of reports: each has its number of reports, then its bits.

    Examples
    --------
    >>> [level_start(level) for level in (2, 3, 4)]
    [0, 5, 14]
    """
    return sum(1 + (1 << above) for above in range(FIRST_CELLS, level))


def set_bits(reply: Reply, level: int) -> tuple[Integers, int]:
    """How many reports on a level have each bit set, shape (..., 2**level), and how many there are.

    Raises
    ------
    ValueError : for reports whose bytes do not fit their levels.
    """
    counts = counts_in(reply)
    if counts is not None:
        start = level_start(level)
        return counts[start + 1 : start + 1 + (1 << level)], int(counts[start])
    return packed_counts(reply["levels"], reply["bits"], LEVEL_SIZES, level)
