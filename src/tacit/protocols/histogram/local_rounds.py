"""Private reports: of class and cell, and before them of positions, so that cells suit the records.

A few records, drawn at random by themselves, report where on the protocol's scale they lie. From
these reports the server publishes cells that hold about equally many records each, and every other
record reports its class and cell there. A record reports once. Even cells of a fixed scale fit no
records in particular: where two thirds of them are empty the AUC's error is twice as large.
"""

from __future__ import annotations

import math

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.counts import placing, reported_trees
from tacit.counts.reported_trees import FIRST_CELLS
from tacit.local import turns
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.metrics.trees import TreeNoise
from tacit.privacy import unary
from tacit.privacy.mechanisms.response import Choices
from tacit.protocol import devices, releases
from tacit.protocols.histogram.steps import agreed_height, leaves_at, leaves_of
from tacit.protocols.shared import counting, packed_reports

LEVEL_SIZES = 1 << np.arange(2**5)
"""The number of nodes of every level."""


@tp.step(cost=packed_reports.report_cost, shares=releases.planned_clients)
def unary_reports(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send every record's class and cell as unary bits, on one level that it chose at random.

    The level does not depend on what the record holds, and is sent as it is. The bits hide class
    and cell together (``unary_bits``): epsilon for a record's replacement by any other. Records
    report apart and in their own order, so a client with several spends epsilon for each.

    The server learns each record's level and noisy bits.
    """
    leaves = leaves_of(clients, agreed_height(query), query.protocol)
    return _reported(leaves, clients.offsets, query, noise)


def _reported(
    leaves: Integers, offsets: Integers, query: tp.Query, noise: tp.NoiseSource
) -> tp.Reply:
    """Of records that lie at these leaves a level that each draws, and unary bits there, by client.

    Parameters
    ----------
    leaves : shape (M,), or (R, M) where each replicate has its own.
    offsets : where each client's records start, and M, shape (K+1,).
    query : of which protocol, and of which tree.
    noise : draws the levels, then the bits.
    """
    settings, height = query.protocol, agreed_height(query)
    drawn = noise.draw(Choices(settings.level_units(height)), leaves.shape[-1:])
    levels = np.asarray(FIRST_CELLS + drawn)
    bits = packed_reports.packed_reports(
        leaves >> (height + 1 - levels), levels, LEVEL_SIZES, offsets, settings.epsilon, noise
    )
    return {"levels": tp.Ragged(levels.astype(np.int8), offsets), "bits": bits}


def report_bytes(levels: Integers) -> Integers:
    """The bytes of a report on each of these levels."""
    return packed_reports.packed_bytes(LEVEL_SIZES[levels])


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
    return packed_reports.packed_counts(reply["levels"], reply["bits"], LEVEL_SIZES, level)


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


FIXED_PART = 0.05
"""Part of the cells that lies evenly on the protocol's scale, whatever the reports say: it bounds
what is lost where the reports mislead."""

WEIGHT_OF_PLACING = 10.0
"""Relative excess of the AUC's standard error by badly placed cells, over the variance of a
report divided by the number of reports in the first round; a rough measure."""

MAX_EARLY = turns.SLOTS // 4
"""Largest number of slots of the first round."""


@tp.step(once=True)
def draw_report_turns(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Draw every record's turn, uniform on 0..255, and send it.

    A turn depends on nothing private. The client draws it and stores it, once a run, so that a
    server cannot choose which records report first, nor make one report twice. The server learns
    the turns.

    Raises
    ------
    DataError : for a score outside [0, 1] where scores are probabilities.
    """
    query.protocol.check_range(clients)
    return {"turns": turns.drawn_turns(clients, noise, state)}


@tp.step(cost=turns.turn_cost, participates=turns.early)
def report_positions(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Report where on the scale the records lie whose turn is early, one report a record.

    Epsilon for each record that reports, by ``SlidingWindow.answers`` about its cell; the class has
    no part in it. The reply does not depend on the other records. The server learns the reports, in
    the order of the client's records.

    Raises
    ------
    DataError : when the turns are not those that the client drew for this conversation, or the
        records or their order changed since.
    """
    return position_round(query.protocol.epsilon).reports(clients, query, noise, state)


@tp.step(cost=turns.turn_cost, participates=turns.late, shares=releases.planned_clients)
def report_leaves(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send class and cell as unary bits of the records whose turn is late, one report a record.

    As ``unary_reports``, in the published cells: epsilon for each record that reports. Whatever
    cells are published, a record lies in one, and its level does not depend on what it holds. The
    server learns each record's level and noisy bits.

    Raises
    ------
    DataError : when the turns are not those that the client drew for this conversation, or the
        records or their order changed since.
    ValueError : for cell edges that are not one fewer than the cells, finite and ascending.
    """
    turns.take_turn(clients, query, state, rounds=1)
    reporting, protocol, height = turns.late(clients, query), query.protocol, agreed_height(query)
    protocol.check_range(clients)
    before = np.concatenate(([0], np.cumsum(reporting, dtype=np.int64)))

    def leaves(borders: Floats) -> Integers:
        positions = counting.scale_of_borders(protocol, borders, 1 << height).positions(
            clients.scores[reporting]
        )
        return leaves_at(positions, clients.labels[reporting], height)

    borders = query.broadcast[counting.BORDERS]
    if noise.replicates is not None and np.ndim(borders) > 1:
        distinct, chosen = np.unique(borders, axis=0, return_inverse=True)
        reported = np.stack([leaves(each) for each in distinct])[chosen.ravel()]
    else:
        reported = leaves(borders)
    return _reported(reported, before[clients.offsets], query, noise)


LOCAL_ROUNDS = (draw_report_turns, report_positions, report_leaves)
"""The steps of a run, in order."""


def position_round(epsilon: float) -> turns.WindowReports:
    """How records report their positions, in which their classes have no part."""
    return turns.WindowReports(epsilon, private_labels=False)


def early_slots(epsilon: float, records: int) -> int:
    """How many of the ``SLOTS`` slots report positions.

    With a fraction f of M records there, the AUC's standard error grows by about ``f / 2`` for the
    records that are missing later, and by ``c v / (f M)`` for cells that are placed by noisy
    reports, v the variance of a report and c = ``WEIGHT_OF_PLACING``. The sum is least at ``f =
    sqrt(2 c v / M)``.

    Examples
    --------
    >>> [early_slots(1.0, records) for records in (100, 20_000, 458_407)]
    [64, 16, 3]
    """
    variance = unary.unary_variance(epsilon) + 0.25
    fraction = math.sqrt(2 * WEIGHT_OF_PLACING * variance / max(records, 1))
    return min(max(round(turns.SLOTS * fraction), 1), MAX_EARLY)


def reported_borders(scale: ScoreScale, reply: tp.Reply, epsilon: float, height: int) -> Floats:
    """Where the cells lie by the reported positions, for every replicate."""
    reports = position_round(epsilon)
    counts = devices.report_counts(reply, "reports", reports.window.outputs)
    masses = reports.masses(np.atleast_2d(counts))
    return np.stack([placing.placed_borders(scale, row, height, FIXED_PART) for row in masses])


def expected_borders(scale: ScoreScale, masses: Floats, height: int) -> Floats:
    """The cell edges where reports show masses as they are, in cells of a multiple of their
    number."""
    merged = masses.reshape(turns.CELLS, -1).sum(axis=-1)
    return placing.placed_borders(
        scale, merged / max(merged.sum(), np.finfo(float).tiny), height, FIXED_PART
    )
