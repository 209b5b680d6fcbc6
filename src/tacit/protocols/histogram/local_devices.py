"""Devices of one record that report class and cell as unary bits; the first may place the cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy

from tacit.arrays import Flags, Floats, Integers
from tacit.counts.reported_trees import FIRST_CELLS
from tacit.data.clients import Clients
from tacit.local.turns import CELLS
from tacit.metrics import curves, trees
from tacit.privacy import unary
from tacit.privacy.mechanisms.response import Bits, flip_probability
from tacit.protocol import devices
from tacit.protocol.conversation import Query, Reply
from tacit.protocol.fields import ragged_of
from tacit.protocols.histogram import local_rounds, steps
from tacit.protocols.shared import counting


def unary_counts_of(batches: Iterable[devices.Payloads], levels: range) -> Integers:
    """Of each level its number of reports, then its set bits (``level_start``).

    Parameters
    ----------
    batches : a level and its packed bits, each of shape (m, bytes); bits behind those of the level,
        and reports of other levels, are not counted.
    levels : those that there are, from ``FIRST_CELLS`` on.
    """
    counters = {level: unary.BitCounter(_width(level)) for level in levels}
    counts = np.zeros(local_rounds.level_start(levels.stop), dtype=np.int64)
    for batch in batches:
        for level, counter in counters.items():
            chosen = batch[:, 0] == level
            counts[local_rounds.level_start(level)] += np.count_nonzero(chosen)
            counter.add(batch[:, 1 : 1 + counter.size][chosen])
    for level, counter in counters.items():
        start, size = local_rounds.level_start(level) + 1, 1 << level
        counts[start : start + size] = counter.counts()[:size]
    return counts


def _width(level: int) -> int:
    """The bytes of a level's bits."""
    return int(local_rounds.report_bytes(np.array([level]))[0])


def _levels(query: Query) -> range:
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
        self._protocol = protocol
        self._positions = local_rounds.position_round(protocol.epsilon)
        height = protocol.tree_height(devices)
        if height > MAX_DEVICE_HEIGHT:
            raise ValueError(
                f"height must be at most {MAX_DEVICE_HEIGHT} for reports of devices, got {height}"
            )
        self.steps = (local_rounds.unary_reports,)
        if protocol.places_cells:
            self.steps = (local_rounds.report_positions, local_rounds.report_leaves)
            self.first_turns = local_rounds.early_slots(protocol.epsilon, devices)

    def numbers(self, query: Query) -> int:
        """The window's outputs."""
        return self._positions.window.outputs

    def instructions(self, query: Query) -> devices.Instructions:
        """A window over cells of the scale, or unary bits of class and cell."""
        protocol = self._protocol
        if query.step is local_rounds.report_positions:
            return self._positions.instructions(protocol.scale)
        height = steps.agreed_height(query)
        scale = devices.scale_entry(protocol.scale)
        if counting.BORDERS in query.broadcast:
            placed = counting.scale_of_borders(
                protocol, query.broadcast[counting.BORDERS], 1 << height
            )
            scale = devices.scale_entry(protocol.scale, placed)
        return {
            "kind": "unary",
            "scale": scale,
            "height": height,
            "level_units": list(protocol.level_units(height)),
            "set_words": str(Bits(flip_probability(protocol.epsilon)).threshold),
        }

    def payload_bytes(self, query: Query) -> int:
        """A window's output; or a level, and as many bytes as the lowest level needs."""
        if query.step is local_rounds.report_positions:
            return super().payload_bytes(query)
        return 1 + _width(steps.agreed_height(query) + 1)

    def payloads(self, query: Query, reply: Reply) -> devices.Payloads:
        """The reports of records, one a client."""
        if query.step is local_rounds.report_positions:
            return super().payloads(query, reply)
        levels, bits = ragged_of(reply["levels"]).values, ragged_of(reply["bits"]).values
        sent = np.zeros((levels.size, self.payload_bytes(query)), dtype=np.uint8)
        sent[:, 0] = levels
        sent[:, 1:][self._within(sent)] = bits
        return sent

    def counts(self, query: Query, payloads: devices.Payloads) -> Integers:
        """How often each position came; or of each level its reports, then its set bits."""
        if query.step is local_rounds.report_positions:
            return super().counts(query, payloads)
        return self.counts_of_batches(query, [payloads])

    def counts_of_batches(self, query: Query, batches: Iterable[devices.Payloads]) -> Integers:
        """``counts`` of all of them; unary bits are added up over batches before they are read."""
        if query.step is local_rounds.report_positions:
            return super().counts_of_batches(query, batches)
        return unary_counts_of(batches, _levels(query))

    def reported(self, query: Query, counts: Integers) -> int:
        """The reports of all levels, or about positions."""
        if query.step is local_rounds.report_positions:
            return super().reported(query, counts)
        return int(sum(counts[local_rounds.level_start(level)] for level in _levels(query)))

    def input_counts(self, query: Query, clients: Clients, rng: np.random.Generator) -> Integers:
        """How many records have each position, or each class and cell."""
        if query.step is local_rounds.report_positions:
            inputs = self._positions.inputs_of(self._protocol.on_scale(clients))
            return np.bincount(inputs, minlength=CELLS)
        height = steps.agreed_height(query)
        if counting.BORDERS in query.broadcast:
            self._protocol.check_range(clients)
            scale = counting.scale_of_borders(
                self._protocol, query.broadcast[counting.BORDERS], 1 << height
            )
            leaves = steps.leaves_at(scale.positions(clients.scores), clients.labels, height)
        else:
            leaves = steps.leaves_of(clients, height, self._protocol)
        return np.bincount(leaves, minlength=2 << height)

    def simulated_counts(self, query: Query, held: Integers, rng: np.random.Generator) -> Integers:
        """By ``SlidingWindow``; or each record on a level, and by unary bits of its node there."""
        if query.step is local_rounds.report_positions:
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

    def refused(self, query: Query, payloads: devices.Payloads) -> Flags:
        """Unknown outputs, levels out of range, set padding, and impossible numbers of set bits."""
        if query.step is local_rounds.report_positions:
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

    def influences(self, query: Query, counts: Sequence[Integers]) -> Floats:
        """By the weight of every bit in the area; those that only place cells have none.

        With ``n_l`` of n reports on level l, a report with bits b adds ``w . ((b - q) / (1/2 - q) -
        c / M) n / n_l`` over n to the area: w are the area's weights of the level's counts c of M
        records (``observation_weights`` of the cells' influences). The worst reports set the bits
        of largest or least weight, as many as are not refused.
        """
        if query.step is local_rounds.report_positions:
            return np.zeros(1)
        reply, height = devices.CountedReports(counts[-1]), steps.agreed_height(query)
        leaves, noise = local_rounds.local_tree(self._protocol.known_epsilon, reply, height)
        cells = leaves.reshape(2, -1)
        area_weights = np.nan_to_num(np.concatenate(curves.cell_influences(*cells)))
        by_level = trees.observation_weights(area_weights, noise.weighting)
        total, changes = self.reported(query, counts[-1]), [0.0]
        gap = unary.SET_PROBABILITY - flip_probability(self._protocol.epsilon)
        for level in range(FIRST_CELLS, len(by_level)):
            bits, reports = local_rounds.set_bits(reply, level)
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
        widths = np.minimum(local_rounds.report_bytes(np.arange(2**5)), size)
        return np.asarray(np.arange(size) < widths[payloads[:, 0]][:, np.newaxis])
