"""Unary bits of many records, packed into bytes, where records report in slots of their own size.

A slot is what a record was dealt to report, such as a level of a tree. All reports in a slot have
the same number of bits, one for each value that a record may hold there.
"""

from __future__ import annotations

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Integers
from tacit.privacy.unary import unary_bits
from tacit.protocol.fields import ragged_of

BITS_AT_ONCE = 2**24
"""Number of unary bits that are drawn and counted at a time, about."""


def report_cost(clients: tp.Clients, query: tp.Query, state: tp.ClientState) -> tp.Cost:
    """What one report a record costs: the protocol's guarantee, where a client has records."""
    guarantee: tp.Cost = query.protocol.guarantee
    return guarantee if clients.records else tp.NOTHING


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
