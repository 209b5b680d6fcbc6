"""Client steps of score histograms: summed trees of counts, summed ranks, and unary reports."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.data.clients import Clients, Ragged
from tacit.privacy.cost import NOTHING, Cost
from tacit.privacy.local.unary import unary_bits
from tacit.privacy.mechanisms.choices import Choices
from tacit.privacy.mechanisms.laplace import PolyaShare
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Layout, Query, Reply, step
from tacit.protocol.score_range import check_scores_in_unit_interval

BITS_AT_ONCE = 2**24
"""Unary bits are drawn and counted in groups of about this many."""

FIRST_CELLS = 2
"""The first level with cells, after the total and the classes."""

RANK_UNITS = 2**10
"""Fractions of a class are sent as whole multiples of one over this; finer ones would need noise of
a scale at which exact shares of it are not drawn (``MAX_SHARED_SCALE``)."""


def leaves_of(clients: Clients, height: int) -> Integers:
    """The leaf of every record, shape (M,): cells of positives first, then those of negatives.

    Raises
    ------
    DataError : for a score outside [0, 1].
    """
    check_scores_in_unit_interval(clients)
    cells = 2**height
    cell = np.minimum((clients.scores * cells).astype(np.int64), cells - 1)
    return cell + np.where(clients.labels == 1, 0, cells)


def _tree_cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    cost: Cost = query.protocol.tree_cost
    return cost


def _rank_cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    cost: Cost = query.protocol.rank_cost
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


def _rank_layout(query: Query) -> Layout:
    return {"sums": (2,), "clients": ()}


def _noise_sharers(query: Query) -> int:
    """Among how many clients a query divides the noise."""
    queried: int = query.broadcast["clients"]
    return queried


@step(cost=_tree_cost, sums=_tree_layout, shares=_noise_sharers)
def summed_trees(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send the tree of both classes' counts, with this batch's share of the noise.

    On one level a record counts in one node. Adding or removing it changes one count of each level
    by one, replacing it two. The noise shares of all queried clients add up to discrete Laplace
    noise of scale ``distance / epsilon_l`` on every count of level l, which costs ``epsilon_l`` by
    the Laplace mechanism on the integers; the levels' parts add up to epsilon. Where records are
    dealt out to levels (``budget="sample"``), each chooses one level, whatever it holds, and counts
    there only: every level's noise has the scale ``distance / epsilon``, and a record costs epsilon
    once. The guarantee is about the sum over all clients, and holds against a server that sees the
    sum only and colludes with nobody; with ``exact-sum`` there is no noise.

    The server learns the noisy sum of the trees, and how many clients answered.
    """
    settings, height = query.protocol, agreed_height(query)
    leaves = leaves_of(clients, height)
    sampled = settings.budget == "sample"
    chosen = (
        noise.draw(Choices(settings.level_units(height)), (clients.records,)) if sampled else None
    )
    share = settings.noise_share(clients.count, query.broadcast["clients"])
    reply: dict[str, Any] = {}
    drawn: dict[int, PolyaShare] = settings.level_noise(height, share)
    for level in settings.level_scales(height):
        counted = leaves if chosen is None else leaves[chosen == level - FIRST_CELLS]
        node_counts = np.bincount(counted >> (height + 1 - level), minlength=1 << level)
        if level in drawn:
            node_counts = node_counts + noise.draw(drawn[level], node_counts.shape)
        reply[level_name(level)] = node_counts
    return reply | {"clients": np.asarray(clients.count, dtype=np.int64)}


@step(cost=_rank_cost, sums=_rank_layout, shares=_noise_sharers)
def summed_ranks(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send the sums of the other class's published distribution over the own class's records.

    ``query.broadcast["ranks"]`` gives every leaf a whole number from ``-pivot`` to
    ``RANK_UNITS - pivot``: for positives the fraction of negatives that they beat, for negatives
    the fraction of positives that beat them, in units of ``1 / RANK_UNITS`` less the pivot. Other
    numbers, and more or fewer than one a leaf, are refused: fractions would pass through whole
    noise, and two sets would share it. A record changes one of the two sums by at most ``max(pivot,
    RANK_UNITS - pivot)``, replacing it both sums together by twice that: discrete Laplace noise of
    that scale over the step's part of epsilon costs that part. Shares of the noise add up over the
    clients, as in ``summed_trees``.

    The server learns the two noisy sums over all clients, and how many clients answered.
    """
    settings, height = query.protocol, agreed_height(query)
    ranks, pivot = query.broadcast["ranks"], query.broadcast["pivot"]
    half = 1 << height
    _check_ranks(ranks, pivot, noise.full_shape((2 * half,)))
    counts = np.bincount(leaves_of(clients, height), minlength=2 * half)
    weighted = ranks * counts
    sums = np.stack([weighted[..., :half].sum(-1), weighted[..., half:].sum(-1)], axis=-1)
    share = settings.noise_share(clients.count, query.broadcast["clients"])
    drawn = noise.draw(settings.rank_noise(pivot, share), (2,))
    return {"sums": sums + drawn, "clients": np.asarray(clients.count, dtype=np.int64)}


def _check_ranks(ranks: NDArray[Any], pivot: int, shape: tuple[int, ...]) -> None:
    """Refuse what a record could move by more than the noise is made for."""
    if not 0 <= pivot <= RANK_UNITS:
        raise ValueError(f"pivot must be from 0 to {RANK_UNITS}, got {pivot}")
    if ranks.dtype != np.int64 or ranks.shape != shape:
        raise ValueError(
            f"ranks must be 64-bit integers of shape {shape}, got {ranks.dtype} of {ranks.shape}"
        )
    for outermost in (ranks.min(), ranks.max()):
        if not -pivot <= outermost <= RANK_UNITS - pivot:
            raise ValueError(
                f"ranks must be from {-pivot} to {RANK_UNITS - pivot}, got {outermost}"
            )


def level_name(level: int) -> str:
    """The field that carries a level's counts."""
    return f"level-{level}"


def _unary_cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    guarantee: Cost = query.protocol.guarantee
    return guarantee if clients.records else NOTHING


@step(cost=_unary_cost, shares=_noise_sharers)
def unary_reports(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send every record's class and cell as unary bits, on one level that it chose at random.

    The level does not depend on what the record holds, and is sent as it is. The bits hide class
    and cell together (``unary_bits``): epsilon for a record's replacement by any other. Records
    report apart and in their own order, so a client with several spends epsilon for each.

    The server learns each record's level and noisy bits.
    """
    settings, height = query.protocol, agreed_height(query)
    leaves = leaves_of(clients, height)
    levels = FIRST_CELLS + noise.draw(Choices(settings.level_units(height)), (clients.records,))
    widths = report_bytes(levels)
    ends = np.cumsum(widths)
    sent = np.zeros(noise.full_shape((int(ends[-1]),)), dtype=np.uint8)
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
    offsets = np.concatenate(([0], ends))[clients.offsets]
    return {
        "levels": Ragged(levels.astype(np.int8), clients.offsets),
        "bits": Ragged(sent, offsets),
    }


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


def noise_fraction(batch: int, queried: int, dropouts: float) -> Fraction:
    """The part of the noise that a batch draws, so that it suffices when some clients vanish."""
    needed = max(1, int(np.ceil(queried * (1 - dropouts) - 1e-9)))
    return Fraction(batch, needed)
