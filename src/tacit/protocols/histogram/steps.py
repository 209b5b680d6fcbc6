"""Client steps of score histograms: summed trees of counts, and unary reports."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.clients import Clients, Ragged
from tacit.privacy.cost import NOTHING, Cost
from tacit.privacy.local.unary import unary_bits
from tacit.privacy.mechanisms.choices import Choices
from tacit.privacy.mechanisms.laplace import PolyaShare
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Layout, Query, Reply, step
from tacit.protocol.scaled import ScaledScores
from tacit.protocols.shared.noise_shares import planned_clients
from tacit.protocols.shared.sum_bounds import clipped, clipped_sum_bound

BITS_AT_ONCE = 2**24
"""Number of unary bits that are drawn and counted at a time, about."""

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
    cells = 2**height
    cell = np.minimum((positions * cells).astype(np.int64), cells - 1)
    return cell + np.where(labels == 1, 0, cells)


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

    The server learns the noisy sum of the trees, and how many clients answered.
    """
    settings, height = query.protocol, agreed_height(query)
    leaves = leaves_of(clients, height, settings)
    sampled = settings.budget == "sample"
    chosen = (
        noise.draw(Choices(settings.level_units(height)), (clients.records,)) if sampled else None
    )
    share = settings.noise_share(clients.count, planned_clients(query))
    reply: dict[str, Any] = {}
    drawn: dict[int, PolyaShare] = settings.level_noise(height, share)
    for level in settings.level_scales(height):
        counted = leaves if chosen is None else leaves[chosen == level - FIRST_CELLS]
        node_counts = np.bincount(counted >> (height + 1 - level), minlength=1 << level)
        node_counts = clipped(node_counts, query)
        if level in drawn:
            node_counts = node_counts + noise.draw(drawn[level], node_counts.shape)
        reply[level_name(level)] = node_counts
    return reply | {"clients": np.asarray(clients.count, dtype=np.int64)}


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
    leaves, levels : shape (M,).
    offsets : where each client's records start, and M, shape (K+1,).
    settings : the protocol.
    height : of the tree.
    noise : draws the bits.
    """
    widths = report_bytes(levels)
    ends = np.cumsum(widths)
    sent = np.zeros(noise.full_shape((int(widths.sum()),)), dtype=np.uint8)
    for level in np.unique(levels):
        rows = np.flatnonzero(levels == level)
        step_rows = max(1, BITS_AT_ONCE >> int(level))
        for start in range(0, rows.size, step_rows):
            chunk = rows[start : start + step_rows]
            values = leaves[chunk] >> (height + 1 - level)
            bits = unary_bits(values, 1 << int(level), settings.epsilon, noise)
            packed = np.packbits(bits, axis=-1)
            positions = (ends - widths)[chunk][:, np.newaxis] + np.arange(packed.shape[-1])
            sent[..., positions] = packed
    return Ragged(sent, np.concatenate(([0], ends))[offsets])


def report_bytes(levels: Integers) -> Integers:
    """The bytes of a report on each of these levels."""
    return np.maximum((1 << levels.astype(np.int64)) >> 3, 1)


def set_bits(reply: Reply, level: int) -> tuple[Integers, int]:
    """How many reports on a level have each bit set, shape (..., 2**level), and how many there are.

    Raises
    ------
    ValueError : for reports whose bytes do not fit their levels.
    """
    levels, sent = reply["levels"], reply["bits"]
    if not (isinstance(levels, Ragged) and isinstance(sent, Ragged)):
        raise TypeError("unary reports must be ragged")
    widths = report_bytes(levels.values)
    if int(widths.sum()) != sent.values.shape[-1]:
        raise ValueError(f"reports must hold {widths.sum()} bytes, got {sent.values.shape[-1]}")
    starts = (np.cumsum(widths) - widths)[levels.values == level]
    size, width = 1 << level, int(report_bytes(np.array([level]))[0])
    bit_counts = np.zeros((*sent.values.shape[:-1], size), dtype=np.int64)
    step_rows = max(1, BITS_AT_ONCE // size)
    for start in range(0, starts.size, step_rows):
        positions = starts[start : start + step_rows, np.newaxis] + np.arange(width)
        bits = np.unpackbits(sent.values[..., positions], axis=-1, count=size)
        bit_counts += bits.sum(axis=-2, dtype=np.int64)
    return bit_counts, starts.size
