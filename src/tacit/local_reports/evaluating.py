"""A local protocol simulated on stored records that are a client each, in constant memory."""

from __future__ import annotations

import secrets

import numpy as np

from tacit.data.errors import DataError
from tacit.local_reports.drawing import CountedStage, Drawing
from tacit.local_reports.files import RecordFiles
from tacit.local_reports.summing import Progress, Summing, in_one_process, unheard
from tacit.protocol.conversation import Protocol, Query
from tacit.protocol.stages import Concluded, conversed
from tacit.results.evaluation import Evaluation
from tacit.results.traffic import Traffic

SIMULATED = (
    "this is a simulation: every record is taken for a client that does not exist, and nothing is "
    "protected"
)


def evaluate_one_record_clients(
    records: RecordFiles,
    protocol: Protocol,
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
        (``tacit.local_reports.spark_sums`` and ``ray_sums``).
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
        raise DataError(f"an evaluation needs at least two records, got {records.records}")
    seed = secrets.randbits(64) if seed is None else seed
    devices, stages = protocol.device_reports(records.records), list[CountedStage]()
    while len(stages) < devices.stages:
        drawing = Drawing(records, protocol, seed, tuple(stages))
        counts = drawing.counts(summing(drawing.vector, drawing.blocks, progress))
        stages.append(CountedStage(devices.reported(drawing.query, counts), counts))
    ended = conversed(protocol, devices, records.records, stages)
    if isinstance(ended, Query):
        raise TypeError("the conversation asked for more stages than it declares")
    return _evaluation(ended, records, protocol, federation)


def _evaluation(
    ended: Concluded, records: RecordFiles, protocol: Protocol, federation: str | None
) -> Evaluation:
    result, devices = ended.result.published(), protocol.device_reports(records.records)
    most = max(devices.payload_bytes(query) for query in ended.queries)
    return Evaluation(
        protocol={"name": protocol.name, **protocol.settings},
        estimate=result.estimate(),
        roc=result.roc,
        spent=protocol.guarantee,
        traffic=Traffic(len(ended.queries), np.broadcast_to(np.int64(most), records.records)),
        clients=records.records,
        positives=float(result.positives),
        negatives=float(result.negatives),
        noise="simulated",
        figure=protocol.figure,
        warnings=(SIMULATED, *result.warnings_to(())),
        histogram=result.histogram,
        federation=federation,
        simulated=True,
        unit=records.target or protocol.unit or "probability",
    )
