"""The reports of a block of records, drawn and counted: from a number to a vector.

A block's draws come from a generator of its own, whose seed is the run's seed and the block's
number. So the sum over all blocks is the same to the last bit whoever draws which block.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.data.clients import Clients
from tacit.local_reports.files import RecordFiles
from tacit.privacy.sampling.noise import SimulatedNoise
from tacit.protocol.conversation import ClientState, Protocol, Query
from tacit.protocol.devices import DeviceReports, ReportsByInput
from tacit.protocol.stages import Concluded, conversed
from tacit.protocols.shared.reports.turns import SLOTS, at_their_turn

BLOCK_RECORDS = 2**18
"""Number of records whose reports are drawn together."""


@dataclass(frozen=True)
class CountedStage:
    """The counts of a stage's reports.

    Parameters
    ----------
    size : the number of reports.
    vector : the counts.
    """

    size: int
    vector: Integers

    def __len__(self) -> int:
        """The number of reports."""
        return self.size

    def counts(self, devices: DeviceReports, query: Query) -> Integers:
        """The counts."""
        return self.vector


@dataclass(frozen=True)
class Drawing:
    """How the reports of one stage are drawn, by number of block.

    Parameters
    ----------
    records : the records.
    protocol : of the local model, with a report a record.
    seed : of all draws.
    before : the stages that are over.
    """

    records: RecordFiles
    protocol: Protocol
    seed: int
    before: tuple[CountedStage, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: a query has functions, which no process can be sent."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return -(-self.records.records // BLOCK_RECORDS)

    @property
    def devices(self) -> DeviceReports:
        """What the protocol declares for clients of one record."""
        return self.protocol.device_reports(self.records.records)

    @cached_property
    def query(self) -> Query:
        """What the records of this stage answer."""
        stages = self.before
        made = conversed(self.protocol, self.devices, self.records.records, stages)
        if isinstance(made, Concluded):
            raise ValueError(f"{self.protocol.name} has {len(stages)} stages, and no more")
        return made

    def vector(self, block: int) -> Integers:
        """What is added up of a block: how many records hold each input, or how often reports came.

        Where the mechanism has few inputs, records with one input are alike, and ``counts`` draws
        their reports together. Else each record's report is drawn by the client step.
        """
        clients = self._reporting(block)
        if not isinstance(self.devices, ReportsByInput):
            return self._reports(block, clients)
        rng = self._rng(block, 1 + len(self.before))
        return self.devices.input_counts(self.query, clients, rng)

    def counts(self, vector: Integers) -> Integers:
        """How often each report came in this stage, from the sum of all blocks' vectors."""
        if not isinstance(self.devices, ReportsByInput):
            return vector
        rng = self._rng(self.blocks, 1 + len(self.before))
        return self.devices.simulated_counts(self.query, vector, rng)

    def _reports(self, block: int, clients: Clients) -> Integers:
        """How often each report of a block came, drawn one by one."""
        query, state = self.query, ClientState()
        if self.devices.first_turns:
            query = at_their_turn(clients, query, state, len(self.before))
        seed = int(self._words(block, 1 + len(self.before)).generate_state(1, np.uint64)[0])
        reply = query.step.answer(clients, query, SimulatedNoise(seed), state)
        return self.devices.counts(query, self.devices.payloads(query, reply))

    def size(self, block: int) -> int:
        """The number of records of a block."""
        start = block * BLOCK_RECORDS
        return min(BLOCK_RECORDS, self.records.records - start)

    def _reporting(self, block: int) -> Clients:
        """The records of a block that report in this stage, a client each."""
        start = block * BLOCK_RECORDS
        clients = self.records.read(start, start + self.size(block))
        first = self.devices.first_turns
        if not first:
            return clients
        early = self._turns(block) < first
        return self._records_of(np.flatnonzero(~early if self.before else early), clients)

    def _records_of(self, chosen: Integers, clients: Clients) -> Clients:
        """Some of the records, a client each."""
        offsets = np.arange(chosen.size + 1)
        scores, labels = clients.scores[chosen], clients.labels[chosen]
        return Clients(scores, labels, offsets, unit=clients.unit, _checked=True)

    def _turns(self, block: int) -> NDArray[np.uint8]:
        """The turns of a block's records, uniform on 0..255."""
        return self._rng(block, 0).integers(0, SLOTS, self.size(block), dtype=np.uint8)

    def _rng(self, block: int, use: int) -> np.random.Generator:
        return np.random.default_rng(self._words(block, use))

    def _words(self, block: int, use: int) -> np.random.SeedSequence:
        return np.random.SeedSequence(self.seed, spawn_key=(block, use))
