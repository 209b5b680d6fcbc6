"""Private reports: of class and cell, and before them of positions, so that cells suit the records.

A few records, drawn at random by themselves, report where on the protocol's scale they lie. From
these reports the server publishes cells that hold about equally many records each, and every other
record reports its class and cell there. A record reports once. Even cells of a fixed scale fit no
records in particular: where two thirds of them are empty the AUC's error is twice as large.

Devices of one record report in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy

import tacit.protocol as tp
from tacit.arrays import Flags, Floats, Integers
from tacit.counts import placing, tree_budget
from tacit.counts.tree_budget import FIRST_CELLS
from tacit.local import turns
from tacit.metrics import curves, trees
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.privacy import unary
from tacit.privacy.mechanisms.response import Bits, Choices, flip_probability
from tacit.protocol import devices, releases
from tacit.protocol.fields import ragged_of
from tacit.protocols.histogram import steps
from tacit.protocols.shared import counting

LEVEL_SIZES = 1 << np.arange(2**5)
"""The number of nodes of every level."""


@tp.step(cost=counting.report_cost, shares=releases.planned_clients)
def unary_reports(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send every record's class and cell as unary bits, on one level that it chose at random.

    The level does not depend on what the record holds, and is sent as it is. The bits hide class
    and cell together (``unary_bits``): epsilon for a record's replacement by any other. Records
    report apart and in their own order, so a client with several spends epsilon for each.

    The server learns each record's level and noisy bits.
    """
    leaves = steps.leaves_of(clients, steps.agreed_height(query), query.protocol)
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
    settings, height = query.protocol, steps.agreed_height(query)
    drawn = noise.draw(Choices(settings.level_units(height)), leaves.shape[-1:])
    levels = np.asarray(FIRST_CELLS + drawn)
    bits = counting.packed_reports(
        leaves >> (height + 1 - levels), levels, LEVEL_SIZES, offsets, settings.epsilon, noise
    )
    return {"levels": tp.Ragged(levels.astype(np.int8), offsets), "bits": bits}


def report_bytes(levels: Integers | int) -> Integers:
    """The bytes of a report on each of these levels."""
    return counting.packed_bytes(LEVEL_SIZES[levels])


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
    return counting.packed_counts(reply["levels"], reply["bits"], LEVEL_SIZES, level)


def local_tree(
    epsilon: float, reply: tp.Reply, height: int, records: int | None = None
) -> tuple[Floats, trees.TreeNoise]:
    """The consistent leaves of unary reports, on the deepest level that was reported on.

    They are about all ``records``, of which those that report are a random part; None takes
    those that report for all. Where none reports, the tree is even, and as uncertain as that of
    a single report.
    """
    by_level = {level: set_bits(reply, level) for level in range(FIRST_CELLS, height + FIRST_CELLS)}
    records = sum(sent for _, sent in by_level.values()) if records is None else records
    told = {level: each for level, each in by_level.items() if each[1]}
    first = {FIRST_CELLS: by_level[FIRST_CELLS]}
    leaves, noise = tree_budget.trees_of_reports(told or first, records, epsilon)
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
    reporting, height = turns.late(clients, query), steps.agreed_height(query)
    if noise.replicates is None:
        steps.query_scale(query, height)
    queries, chosen = steps.by_borders(query)
    scores = [steps.placed(clients, each, height).scores[reporting] for each in queries]
    leaves = np.stack([steps.leaves_at(each, clients.labels[reporting], height) for each in scores])
    leaves = leaves[chosen] if chosen.size else leaves[0]
    before = np.concatenate(([0], np.cumsum(reporting, dtype=np.int64)))
    return _reported(leaves, before[clients.offsets], query, noise)


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


def unary_counts_of(batches: Iterable[devices.Payloads], levels: range) -> Integers:
    """Of each level its number of reports, then its set bits (``level_start``).

    Parameters
    ----------
    batches : a level and its packed bits, each of shape (m, bytes); bits behind those of the level,
        and reports of other levels, are not counted.
    levels : all levels of the protocol's tree, from ``FIRST_CELLS`` on.
    """
    counters = {level: unary.BitCounter(int(report_bytes(level))) for level in levels}
    counts = np.zeros(level_start(levels.stop), dtype=np.int64)
    for batch in batches:
        for level, counter in counters.items():
            chosen = batch[:, 0] == level
            counts[level_start(level)] += np.count_nonzero(chosen)
            counter.add(batch[:, 1 : 1 + counter.size][chosen])
    for level, counter in counters.items():
        start, size = level_start(level) + 1, 1 << level
        counts[start : start + size] = counter.counts()[:size]
    return counts


def _levels(query: tp.Query) -> range:
    """The levels of the agreed tree that hold cells."""
    return range(FIRST_CELLS, steps.agreed_height(query) + FIRST_CELLS)


MAX_DEVICE_HEIGHT = 7
"""Largest height of devices: a report on its lowest level has 32 bytes."""


class UnaryDevices(devices.NumberReports, devices.ReportsByInput):
    """What devices send for a histogram in the local model: positions, then unary bits.

    Parameters
    ----------
    protocol : a ``ScoreHistogram`` whose trust is local.
    devices : how many are expected.

    Raises
    ------
    ValueError : for more cells than a short message holds.
    """

    number_bytes = 2

    def __init__(self, protocol: Any, devices: int) -> None:
        super().__init__(protocol)
        self._positions = position_round(protocol.epsilon)
        height = protocol.tree_height(devices)
        if height > MAX_DEVICE_HEIGHT:
            raise ValueError(
                f"height must be at most {MAX_DEVICE_HEIGHT} for reports of devices, got {height}"
            )
        if protocol.places_cells:
            self.steps = (report_positions, report_leaves)
            self.first_turns = early_slots(protocol.epsilon, devices)

    def numbers(self, query: tp.Query) -> int:
        """The window's outputs."""
        return self._positions.window.outputs

    def instructions(self, query: tp.Query) -> devices.Instructions:
        """A window over cells of the scale, or unary bits of class and cell."""
        protocol = self._protocol
        if query.step is report_positions:
            return self._positions.instructions(protocol.scale)
        height = steps.agreed_height(query)
        is_placed = counting.BORDERS in query.broadcast
        published = steps.query_scale(query, height) if is_placed else None
        return {
            "kind": "unary",
            "scale": devices.scale_entry(protocol.scale, published),
            "height": height,
            "level_units": list(protocol.level_units(height)),
            "set_words": str(Bits(flip_probability(protocol.epsilon)).threshold),
        }

    def payload_bytes(self, query: tp.Query) -> int:
        """A window's output; or a level, and as many bytes as the lowest level needs."""
        if query.step is report_positions:
            return super().payload_bytes(query)
        return 1 + int(report_bytes(steps.agreed_height(query) + 1))

    def payloads(self, query: tp.Query, reply: tp.Reply) -> devices.Payloads:
        """The reports of records, one a client."""
        if query.step is report_positions:
            return super().payloads(query, reply)
        levels, bits = ragged_of(reply["levels"]).values, ragged_of(reply["bits"]).values
        sent = np.zeros((levels.size, self.payload_bytes(query)), dtype=np.uint8)
        sent[:, 0] = levels
        sent[:, 1:][self._within(sent)] = bits
        return sent

    def counts(self, query: tp.Query, payloads: devices.Payloads) -> Integers:
        """How often each position came; or of each level its reports, then its set bits."""
        if query.step is report_positions:
            return super().counts(query, payloads)
        return self.counts_of_batches(query, [payloads])

    def counts_of_batches(self, query: tp.Query, batches: Iterable[devices.Payloads]) -> Integers:
        """``counts`` of all of them; unary bits are added up over batches before they are read."""
        if query.step is report_positions:
            return super().counts_of_batches(query, batches)
        return unary_counts_of(batches, _levels(query))

    def reported(self, query: tp.Query, counts: Integers) -> int:
        """The reports of all levels, or about positions."""
        if query.step is report_positions:
            return super().reported(query, counts)
        return int(sum(counts[level_start(level)] for level in _levels(query)))

    def input_counts(
        self, query: tp.Query, clients: tp.Clients, rng: np.random.Generator
    ) -> Integers:
        """How many records have each position, or each class and cell."""
        if query.step is report_positions:
            inputs = self._positions.inputs_of(self._protocol.on_scale(clients))
            return np.bincount(inputs, minlength=turns.CELLS)
        height = steps.agreed_height(query)
        placed = steps.placed(clients, query, height)
        leaves = steps.leaves_at(placed.scores, placed.labels, height)
        return np.bincount(leaves, minlength=2 << height)

    def simulated_counts(
        self, query: tp.Query, held: Integers, rng: np.random.Generator
    ) -> Integers:
        """By ``SlidingWindow``; or each record on a level, and by unary bits of its node there."""
        if query.step is report_positions:
            return self._positions.window.simulated_counts(held, rng)
        height = steps.agreed_height(query)
        units = np.array(self._protocol.level_units(height), dtype=np.float64)
        on_level = rng.multinomial(held, units / units.sum())
        parts = list[Integers]()
        for level, leaves in enumerate(on_level.T, FIRST_CELLS):
            nodes = leaves.reshape(1 << level, -1).sum(axis=-1)
            bits = unary.simulated_unary_counts(nodes, self._protocol.epsilon, rng)
            parts += [np.array([nodes.sum()]), bits]
        return np.concatenate(parts)

    def refused(self, query: tp.Query, payloads: devices.Payloads) -> Flags:
        """Unknown outputs, levels out of range, set padding, and impossible numbers of set bits."""
        if query.step is report_positions:
            return super().refused(query, payloads)
        levels, height = payloads[:, 0].astype(np.int64), steps.agreed_height(query)
        wrong = (levels < FIRST_CELLS) | (levels > height + 1)
        inside = np.clip(levels, FIRST_CELLS, height + 1)
        bits = np.unpackbits(payloads[:, 1:], axis=-1)
        padding = np.arange(bits.shape[-1]) >= (1 << inside)[:, np.newaxis]
        counts = bits.sum(axis=-1, dtype=np.int64)
        limits = [self._set_limits(level) for level in range(height + FIRST_CELLS)]
        least, most = np.array(limits)[inside].T
        return wrong | (bits & padding).any(axis=-1) | (counts < least) | (counts > most)

    def influences(self, query: tp.Query, counts: Sequence[Integers]) -> Floats:
        """By the weight of every bit in the area; those that only place cells have none.

        With ``n_l`` of n reports on level l, a report with bits b adds ``w . ((b - q) / (1/2 - q) -
        c / M) n / n_l`` over n to the area: w are the area's weights of the level's counts c of M
        records (``observation_weights`` of the cells' influences). The worst reports set the bits
        of largest or least weight, as many as are not refused.
        """
        if query.step is report_positions:
            return np.zeros(1)
        reply, height = devices.CountedReports(counts[-1]), steps.agreed_height(query)
        leaves, noise = local_tree(self._protocol.known_epsilon, reply, height)
        cells = leaves.reshape(2, -1)
        area_weights = np.nan_to_num(np.concatenate(curves.cell_influences(*cells)))
        by_level = trees.observation_weights(area_weights, noise.weighting)
        total, changes = self.reported(query, counts[-1]), [0.0]
        gap = unary.SET_PROBABILITY - flip_probability(self._protocol.epsilon)
        for level in range(FIRST_CELLS, len(by_level)):
            bits, reports = set_bits(reply, level)
            if reports:
                mean = float(by_level[level] @ bits) / reports
                ends = self._extremes(level, by_level[level])
                changes += [(end - mean) / gap * total**2 / reports for end in ends]
        return np.array(changes)

    def _extremes(self, level: int, weights: Floats) -> tuple[float, float]:
        """The least and the largest sum of the weights of a report's set bits."""
        least, most = self._set_limits(level)
        rising = np.concatenate([[0.0], np.cumsum(np.sort(weights))])
        falling = np.concatenate([[0.0], np.cumsum(np.sort(weights)[::-1])])
        return float(rising[least : most + 1].min()), float(falling[least : most + 1].max())

    def _set_limits(self, level: int) -> tuple[int, int]:
        """The least and the largest number of set bits that is not refused on a level.

        One bit is set with probability 1/2, the others are binomial: each tail has at most
        ``2**-(REFUSED_BITS + 1)``.
        """
        others, flip = (1 << level) - 1, flip_probability(self._protocol.epsilon)
        numbers, tail = np.arange(others + 1), 2.0 ** -(devices.REFUSED_BITS + 1)
        least = int(np.argmax(scipy.special.bdtr(numbers, others, flip) > tail))
        most = int(np.argmax(scipy.special.bdtrc(numbers, others, flip) <= tail))
        return least, most + 1

    def _within(self, payloads: devices.Payloads) -> Flags:
        """Which bytes after the level belong to its bits, shape (M, bytes - 1)."""
        size = payloads.shape[-1] - 1
        # a level is refused before; a byte's levels keep the table small
        widths = np.minimum(report_bytes(np.arange(2**5)), size)
        return np.asarray(np.arange(size) < widths[payloads[:, 0]][:, np.newaxis])
