"""A local protocol simulated on stored records that are a client each, in constant memory.

The reports of a block of records are drawn and counted: a block's number becomes a vector.

A block's draws come from a generator of its own, whose seed is the run's seed and the block's
number. So the sum over all blocks is the same to the last bit no matter who draws which block.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Integers
from tacit.data.reading import RecordFiles
from tacit.local import turns
from tacit.local.summing import Progress, Summing, in_one_process, unheard
from tacit.protocol.devices import Concluded, DeviceReports, ReportsByInput, conversed
from tacit.results.evaluation import Evaluation, evaluation_of
from tacit.results.run import Traffic

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

    def counts(self, devices: DeviceReports, query: tp.Query) -> Integers:
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
    protocol: tp.Protocol
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
    def query(self) -> tp.Query:
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

    def _reports(self, block: int, clients: tp.Clients) -> Integers:
        """How often each report of a block came, drawn one by one."""
        query, state = self.query, tp.ClientState()
        if self.devices.first_turns:
            query = turns.at_their_turn(clients, query, state, len(self.before))
        seed = int(self._words(block, 1 + len(self.before)).generate_state(1, np.uint64)[0])
        reply = query.step.answer(clients, query, tp.SimulatedNoise(seed), state)
        return self.devices.counts(query, self.devices.payloads(query, reply))

    def _reporting(self, block: int) -> tp.Clients:
        """The records of a block that report in this stage, a client each."""
        start = block * BLOCK_RECORDS
        clients = self.records.read(start, min(start + BLOCK_RECORDS, self.records.records))
        first = self.devices.first_turns
        if not first:
            return clients
        drawn = self._rng(block, 0).integers(0, turns.SLOTS, clients.records, dtype=np.uint8)
        early = drawn < first
        chosen = ~early if self.before else early
        return clients.taken(chosen, np.arange(np.count_nonzero(chosen) + 1))

    def _rng(self, block: int, use: int) -> np.random.Generator:
        return np.random.default_rng(self._words(block, use))

    def _words(self, block: int, use: int) -> np.random.SeedSequence:
        return np.random.SeedSequence(self.seed, spawn_key=(block, use))


SIMULATED = (
    "this is a simulation: every record is taken for a client that does not exist, and nothing is "
    "protected"
)


def evaluate_one_record_clients(
    records: RecordFiles,
    protocol: tp.Protocol,
    seed: int | None = None,
    *,
    summing: Summing = in_one_process,
    federation: str | None = None,
    progress: Progress = unheard,
) -> Evaluation:
    """Simulate a report of every record, and estimate from the sums of all reports.

    Every record is a client. Blocks of ``BLOCK_RECORDS`` records give whole numbers that add up:
    how many records hold each input of the mechanism, whose reports are then drawn together, or
    the counts of reports that the client step drew for each. A block's draws follow from the seed
    and the block's number alone. So the result is the same to the last bit for every way of
    summing, and memory holds a few blocks.

    Parameters
    ----------
    records : the records.
    protocol : of the local model, which declares reports of clients of one record.
    seed : of the draws; None takes one from fresh entropy.
    summing : who adds up the blocks: this process, several (``in_processes``), or a cluster
        (``in_spark``, ``in_ray``).
    federation : what the records are called, as for ``tacit.evaluate``.
    progress : is called with the number of blocks that were added, in every stage.

    Raises
    ------
    DataError : for fewer than two records, or a record that cannot be used.
    ValueError : for a protocol that declares no such reports.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq, tacit
    >>> scores, labels = tacit.binormal_scores(3000, 3000, 0.8, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(pa.table({"score": scores, "label": labels}), f"{folder}/all.parquet")
    ...     records = RecordFiles.of([f"{folder}/all.parquet"], unit="real", target="real")
    ...     protocol = tacit.TwoRoundAUC(epsilon=4.0, scale="real")
    ...     result = evaluate_one_record_clients(records, protocol, seed=1)
    >>> low, high = result.auc.interval(0.999)
    >>> low < 0.8 < high
    True
    """
    if records.records < 2:
        raise tp.DataError(f"an evaluation needs at least two records, got {records.records}")
    seed = secrets.randbits(64) if seed is None else seed
    devices, stages = protocol.device_reports(records.records), list[CountedStage]()
    while len(stages) < devices.stages:
        drawing = Drawing(records, protocol, seed, tuple(stages))
        counts = drawing.counts(summing(drawing.vector, drawing.blocks, progress))
        stages.append(CountedStage(devices.reported(drawing.query, counts), counts))
    ended = conversed(protocol, devices, records.records, stages)
    if isinstance(ended, tp.Query):
        raise TypeError("the conversation asked for more stages than it declares")
    most = max(devices.payload_bytes(query) for query in ended.queries)
    return evaluation_of(
        protocol,
        ended.result,
        spent=protocol.guarantee,
        traffic=Traffic(len(ended.queries), np.broadcast_to(np.int64(most), records.records)),
        clients=records.records,
        noise="simulated",
        before=(SIMULATED,),
        federation=federation,
        simulated=True,
        unit=records.target or protocol.unit or "probability",
    )
