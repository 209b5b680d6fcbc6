"""Devices of one record that report class and cell as unary bits; the first may place the cells.

How often unary reports set each bit of each level, from their payloads.

The first two bytes of a payload are its level and its first bits. So one histogram of both says how
many reports each level has, and all about levels of at most 8 bits. On longer levels bits are added
up over the reports of a level and of all below it, and those below are taken off again: each level
is selected from what the one above selected, by Arrow, whose filter takes half the time of NumPy's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import scipy
from numpy.typing import NDArray

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

Words = NDArray[np.uint16]

BYTES = 256
"""Values of a byte."""

FIRST_LONG = 4
"""The first level of more than 8 bits: it has 16."""

BLOCK = 2**16
"""Reports whose first bytes are counted at a time, in a processor's second cache."""


def unary_counts_of(batches: Iterable[devices.Payloads], levels: range) -> Integers:
    """Of each level its number of reports, then its set bits (``level_start``).

    Parameters
    ----------
    batches : a level and its packed bits, each of shape (m, bytes); bits behind those of the level,
        and reports of other levels, are not counted.
    levels : those that there are, from ``FIRST_CELLS`` on.
    """
    first = np.zeros((levels.stop, BYTES), dtype=np.int64)
    longs = _LongCounts(levels.stop)
    for batch in batches:
        if len(batch):
            payloads = np.ascontiguousarray(batch)
            # level times 256, plus the first bits
            heads = _pairs(payloads, 0, ">u2").astype(np.uint16)
            _add_heads(first, heads)
            longs.add(payloads, heads)
    bits = dict(enumerate(first @ unary.BITS_OF_BYTE)) | longs.counts()
    counts = np.zeros(local_rounds.level_start(levels.stop), dtype=np.int64)
    for level in levels:
        start, size = local_rounds.level_start(level), 1 << level
        counts[start] = first[level].sum()
        counts[start + 1 : start + 1 + size] = bits[level][:size]
    return counts


def _add_heads(counts: Integers, heads: NDArray[np.uint16]) -> None:
    """Add how often each first byte came with each level, shape (levels, 256)."""
    for start in range(0, heads.size, BLOCK):
        found = np.bincount(heads[start : start + BLOCK], minlength=counts.size)
        counts += found[: counts.size].reshape(counts.shape)


class _LongCounts:
    """How often the reports of each long level set each of its bits.

    Parameters
    ----------
    stop : the level behind the last one.
    """

    def __init__(self, stop: int) -> None:
        # of each level and of all below it, the first bits, as many as the level has
        self._reaching = {
            level: unary.BitCounter(_width(min(level, stop - 1)))
            for level in range(FIRST_LONG, stop + 1)
            if stop > FIRST_LONG
        }

    def add(self, payloads: devices.Payloads, heads: NDArray[np.uint16]) -> None:
        """Add reports, and the level of each times 256 with its first byte."""
        if not self._reaching:
            return
        # two bytes are set to 0 faster than reports are selected
        pairs = _pairs(payloads, 1, "<u2") * (heads >= FIRST_LONG * BYTES)
        self._reaching[FIRST_LONG].add(pairs.view(np.uint8).reshape(-1, 2))
        below = _selected(payloads, heads >= (FIRST_LONG + 1) * BYTES)
        for level in range(FIRST_LONG + 1, max(self._reaching) + 1):
            if not len(below):
                return
            self._reaching[level].add(_first_bytes(below, self._reaching[level].size))
            below = _selected(below, below[:, 0] > level)

    def counts(self) -> dict[int, Integers]:
        """By level, each of shape (2**level,)."""
        reaching = {level: counter.counts() for level, counter in self._reaching.items()}
        longs = list(reaching)[:-1]
        return {level: reaching[level] - reaching[level + 1][: 1 << level] for level in longs}


def _width(level: int) -> int:
    """The bytes of a level's bits."""
    return int(local_rounds.report_bytes(np.array([level]))[0])


def _pairs(payloads: devices.Payloads, offset: int, kind: str) -> NDArray[Any]:
    """Two bytes of each report as a number, shape (m,)."""
    rows, size = payloads.shape
    pairs: NDArray[Any] = np.ndarray((rows,), kind, payloads, offset=offset, strides=(size,))
    return pairs


def _first_bytes(payloads: devices.Payloads, width: int) -> devices.Payloads:
    """The first bytes of bits of some reports, shape (m, width)."""
    rows, size = payloads.shape
    # they move as one item: several times as fast as byte by byte
    bits: NDArray[Any] = np.ndarray((rows,), f"V{width}", payloads, offset=1, strides=(size,))
    return np.ascontiguousarray(bits).view(np.uint8).reshape(-1, width)


def _selected(payloads: devices.Payloads, chosen: Flags) -> devices.Payloads:
    """Some of the payloads."""
    rows, size = payloads.shape
    kind, mask = pa.binary(size), pa.py_buffer(np.packbits(chosen, bitorder="little"))
    reports = pa.FixedSizeBinaryArray.from_buffers(kind, rows, [None, pa.py_buffer(payloads)])
    some = reports.filter(pa.BooleanArray.from_buffers(pa.bool_(), rows, [None, mask]))
    flat = np.frombuffer(some.buffers()[1], dtype=np.uint8, count=len(some) * size)
    return flat.reshape(-1, size)


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
        if counting.KNOTS in query.broadcast:
            placed = counting.scale_of_knots(protocol, query.broadcast[counting.KNOTS], 1 << height)
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
        return 1 + int(local_rounds.report_bytes(np.array([steps.agreed_height(query) + 1]))[0])

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
        levels = range(FIRST_CELLS, steps.agreed_height(query) + FIRST_CELLS)
        return unary_counts_of(batches, levels)

    def reported(self, query: Query, counts: Integers) -> int:
        """The reports of all levels, or about positions."""
        if query.step is local_rounds.report_positions:
            return super().reported(query, counts)
        levels = range(FIRST_CELLS, steps.agreed_height(query) + FIRST_CELLS)
        return int(counts[[local_rounds.level_start(level) for level in levels]].sum())

    def input_counts(self, query: Query, clients: Clients, rng: np.random.Generator) -> Integers:
        """How many records have each position, or each class and cell."""
        if query.step is local_rounds.report_positions:
            inputs = self._positions.inputs_of(self._protocol.on_scale(clients))
            return np.bincount(inputs, minlength=CELLS)
        height = steps.agreed_height(query)
        if counting.KNOTS in query.broadcast:
            self._protocol.check_range(clients)
            scale = counting.scale_of_knots(
                self._protocol, query.broadcast[counting.KNOTS], 1 << height
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
        for level in range(FIRST_CELLS, len(by_level)):
            bits, reports = local_rounds.set_bits(reply, level)
            if reports:
                mean = float(by_level[level] @ bits) / reports
                ends = self._extremes(level, by_level[level])
                changes += [(end - mean) / self._gap * total**2 / reports for end in ends]
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

    @property
    def _gap(self) -> float:
        return unary.SET_PROBABILITY - flip_probability(self._protocol.epsilon)

    def _within(self, payloads: devices.Payloads) -> Flags:
        """Which bytes after the level belong to its bits, shape (M, bytes - 1)."""
        size = payloads.shape[-1] - 1
        # a level is refused before; a byte's levels keep the table small
        widths = np.minimum(local_rounds.report_bytes(np.arange(2**5)), size)
        return np.asarray(np.arange(size) < widths[payloads[:, 0]][:, np.newaxis])
