"""What steps count: records in cells of scores, nodes of trees of cells, and one number.

Cells lie between thresholds, or between edges that the server publishes as scores, from noisy
counts alone. These edges are values like any other that a server chooses: whatever they are, a
record counts in one cell, and a function of a score has the same bounds. Of trees, a field
``name-level`` carries one level of so many trees of one name: all nodes of the first tree, then
those of the next. The roots are level 0.

Records that report alone send unary bits, packed into bytes, in slots of their own size. A slot is
what a record was dealt to report, such as a level of a tree. All reports in a slot have the same
number of bits, one for each value that a record may hold there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.counts import influence
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.metrics.trees import TreeNoise, consistent_leaves
from tacit.privacy.unary import unary_bits
from tacit.protocol import releases
from tacit.protocol.fields import ragged_of


@dataclass(frozen=True, eq=False)
class Strata:
    """Parts of the records each of which is counted separately; every record is in one.

    Parameters
    ----------
    count : how many there are.
    of_record : the stratum of every record, shape (M,); 0 where there is one, or records are not at
        hand.
    """

    count: int = 1
    of_record: Integers | int = 0


ALL_RECORDS = Strata()
"""One stratum."""


def cell_counts(
    clients: tp.Clients, thresholds: Floats, labels: NDArray[np.int8] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positives and records of every client in every cell, shapes (..., T, K) and (T, K).

    Cell ``j`` holds the scores from ``thresholds[j]`` up to the next threshold. A first threshold
    of minus infinity makes room for every score.

    Parameters
    ----------
    clients : whose records are counted.
    thresholds : ascending, shape (T,).
    labels : shape (..., M); None for the records' own, which are counted by a statement where
        records are not at hand.

    Raises
    ------
    DataError : for a score outside [0, 1], naming the client and the score.
    """
    if np.isfinite(thresholds[0]):
        tp.check_scores_in_unit_interval(clients)
    if labels is None and not clients.at_hand:
        positives, negatives = clients.counts_in(thresholds)[:, 1:]
        return positives, positives + negatives
    labels = clients.labels if labels is None else labels
    cell = np.searchsorted(thresholds, clients.scores, side="right") - 1
    index, shape = cell * clients.count + clients.client_of_record, (thresholds.size, clients.count)
    counts = [
        np.bincount(index[chosen], minlength=math.prod(shape))
        for chosen in (..., *(labels.reshape(math.prod(labels.shape[:-1]), labels.shape[-1]) == 1))
    ]
    return np.reshape(counts[1:], (*labels.shape[:-1], *shape)), counts[0].reshape(shape)


BORDERS = "knots"
"""Field of a query: the scores at the inner edges of its cells."""


def scale_of_borders(protocol: tp.ScaledScores, borders: Any, cells: int) -> ScoreScale:
    """The scale whose equal cells end at these cell edges.

    Raises
    ------
    ValueError : for cell edges that are not one fewer than the cells, finite and ascending.
    """
    received = (getattr(borders, "dtype", type(borders)), np.shape(borders))
    if received != (np.dtype(np.float64), (cells - 1,)):
        raise ValueError(f"{BORDERS} must be {cells - 1} 64-bit floats, got {received}")
    base = protocol.score_scale
    return ScoreScale(borders, base.low, base.high)


LEVEL = "level"
"""The name of the trees, where all have the same."""


def level_fields(
    name: str, trees: int, reach: int, parts: Mapping[int, float]
) -> dict[str, releases.Released]:
    """The counts of some levels.

    Parameters
    ----------
    name : of the trees.
    trees : how many there are.
    reach : by how much a neighbour changes the counts of one level, all together.
    parts : the epsilon of each level.
    """
    return {
        f"{name}-{level}": releases.Released((trees << level,), reach, part)
        for level, part in parts.items()
    }


def counts_at(leaves: Integers, size: int, query: tp.Query, clients: tp.Clients) -> Integers:
    """How often each leaf occurs, of all clients or of each as the query asks.

    Parameters
    ----------
    leaves : of every record, shape (M, ...).
    size : how many leaves there are, for a result of shape (size,) or (size, K).
    query : its view says whose counts are asked for.
    clients : K of them.
    """
    if query.view is not tp.View.EACH:
        return np.bincount(leaves.ravel(), minlength=size)
    places = leaves.T * clients.count + clients.client_of_record
    counts = np.bincount(places.ravel(), minlength=size * clients.count)
    return counts.reshape(size, clients.count)


def level_counts(
    name: str, leaves: Integers, height: int, levels: Iterable[int], query: tp.Query
) -> dict[str, Integers]:
    """The counts of these levels by field, from those of the leaves of trees of this height."""
    axis = -2 if query.view is tp.View.EACH else -1
    by_level = {}
    for level in levels:
        below = (1 << height) >> level
        nodes = leaves.shape[axis] // below
        shape = (*leaves.shape[:axis], nodes, below, *leaves.shape[leaves.ndim + axis + 1 :])
        by_level[f"{name}-{level}"] = leaves.reshape(shape).sum(axis=axis)
    return by_level


def summed_levels(sums: releases.Sums, name: str = LEVEL) -> dict[int, Floats]:
    """The summed counts by level, shape (..., trees, 2**level)."""
    counts = {level: sums[f"{name}-{level}"] for level in _by_level(sums.fields, name)}
    return {level: each.reshape(*each.shape[:-1], -1, 1 << level) for level, each in counts.items()}


def tree_noise(fields: releases.Fields, noises: float = 1.0, name: str = LEVEL) -> TreeNoise:
    """The errors of a summed tree, with this multiple of the noise that the guarantee needs."""
    released = _by_level(fields, name)
    variances = np.full(max(released) + 1, np.inf)
    for level, each in released.items():
        variances[level] = each.variance(noises)
    return TreeNoise(variances)


def pooled(noise: TreeNoise, strata: int) -> TreeNoise:
    """The noise of the sum of so many trees, each of which has this noise."""
    return TreeNoise(noise.variances * strata)


def consistent_trees(sums: releases.Sums, name: str = LEVEL) -> tuple[Floats, TreeNoise]:
    """The consistent leaves of all trees, shape (..., trees, 2**height), and a tree's noise."""
    noise, counts = tree_noise(sums.fields, float(sums.noises), name), summed_levels(sums, name)
    levels = [counts.get(level) for level in range(noise.variances.size)]
    return consistent_leaves(levels, noise.variances), noise


def _by_level(fields: releases.Fields, name: str) -> dict[int, releases.Released]:
    prefix = f"{name}-"
    return {
        int(field.removeprefix(prefix)): each
        for field, each in fields.items()
        if field.startswith(prefix)
    }


def number_field(epsilon: float) -> releases.Released:
    """One number in units, which a neighbour moves by all of them."""
    units = influence.units_for(epsilon)
    return releases.Released((), units, epsilon, per_record=units)


def on_scale(
    sums: Any, released: releases.Released, reach: Floats | float, noises: float = 1.0
) -> tuple[Floats, Floats]:
    """The number that was released in units, and its variance by noise, shape (...) each.

    Parameters
    ----------
    sums : in units, shape (...).
    released : what was declared of them.
    reach : how far a neighbour moves the number, shape (...).
    noises : the noise that arrived, as a multiple of what epsilon needs.
    """
    unit = np.asarray(reach) / released.per_record
    return np.asarray(sums * unit), np.asarray(released.variance(noises) * unit**2)


def check_the_same_number(first: int, second: int) -> None:
    """Refuse a second sum over other clients than the first round's figures are about.

    Raises
    ------
    DataError : for another number of clients.
    """
    if first != second:
        raise tp.DataError(
            f"both rounds must have the same clients: {first} answered the first and {second} the "
            "second; evaluate the clients that are left again"
        )


BITS_AT_ONCE = 2**24
"""Number of unary bits that are drawn and counted at a time, about."""


def report_cost(clients: tp.Clients, query: tp.Query, state: tp.ClientState) -> tp.Cost:
    """What one report a record costs: the protocol's guarantee, where a client has records."""
    return query.protocol.guarantee if clients.records else tp.NOTHING


def packed_bytes(sizes: Integers) -> Integers:
    """The bytes of reports of so many bits each."""
    return -(-sizes // 8)


def packed_reports(
    values: Integers,
    slots: Integers,
    sizes: Integers,
    offsets: Integers,
    epsilon: float,
    noise: tp.NoiseSource,
) -> tp.Ragged[np.uint8]:
    """Every record's value as unary bits (``unary_bits``): epsilon for its replacement by another.

    Parameters
    ----------
    values : below the size of the record's slot, shape (M,), or (R, M) where each replicate has
        its own.
    slots : in which the records report, shape (M,).
    sizes : the number of values in each slot, shape (S,).
    offsets : where each client's records start, and M, shape (K+1,).
    epsilon : of one report.
    noise : draws the bits.
    """
    widths = packed_bytes(sizes)[slots]
    ends = np.cumsum(widths)
    sent = np.zeros(noise.full_shape((int(widths.sum()),)), dtype=np.uint8)
    for slot in np.unique(slots):
        rows, size = np.flatnonzero(slots == slot), int(sizes[slot])
        step_rows = max(1, BITS_AT_ONCE // size)
        for start in range(0, rows.size, step_rows):
            chunk = rows[start : start + step_rows]
            packed = np.packbits(unary_bits(values[..., chunk], size, epsilon, noise), axis=-1)
            positions = (ends - widths)[chunk][:, np.newaxis] + np.arange(packed.shape[-1])
            sent[..., positions] = packed
    return tp.Ragged(sent, np.concatenate(([0], ends))[offsets])


def packed_counts(
    slots: tp.Field, sent: tp.Field, sizes: Integers, slot: int
) -> tuple[Integers, int]:
    """How many reports of a slot have each bit set, shape (..., size), and how many there are.

    Raises
    ------
    ValueError : for reports whose bytes do not fit their slots.
    """
    chosen, packed = ragged_of(slots, "slots").values, ragged_of(sent, "unary reports").values
    if chosen.size and not (chosen.min() >= 0 and chosen.max() < sizes.size):
        raise ValueError(f"slots must be from 0 to {sizes.size - 1}, got {chosen.max()}")
    widths = packed_bytes(sizes)[chosen]
    if int(widths.sum()) != packed.shape[-1]:
        raise ValueError(f"reports must hold {widths.sum()} bytes, got {packed.shape[-1]}")
    starts, size = (np.cumsum(widths) - widths)[chosen == slot], int(sizes[slot])
    counts = np.zeros((*packed.shape[:-1], size), dtype=np.int64)
    step_rows = max(1, BITS_AT_ONCE // size)
    for start in range(0, starts.size, step_rows):
        positions = starts[start : start + step_rows, np.newaxis]
        bits = np.unpackbits(
            packed[..., positions + np.arange(packed_bytes(sizes)[slot])], axis=-1, count=size
        )
        counts += bits.sum(axis=-2, dtype=np.int64)
    return counts, starts.size
