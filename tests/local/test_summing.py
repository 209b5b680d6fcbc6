"""Sums of columns of reports; on local clusters they are those of one process, to the last bit.

The packages of clusters are large, and not in the locked environment: without them their tests are
skipped.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.collecting.campaign import concluded, stage_query
from tacit.data.engines import adding
from tacit.data.reading import RecordFiles
from tacit.local import summing
from tacit.local.drawing import evaluate_one_record_clients
from tacit.protocol import DataError, SimulatedNoise
from tacit.protocol.devices import Payloads
from tests.collecting.support import DOUBLE, SINGLE, all_payloads, in_memory, records_of, terms_of


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(2)], ids=str)
def test_every_kind_of_binary_column_gives_its_payloads(kind: pa.DataType) -> None:
    column = pa.chunked_array([[b"ab", b"cd"], [b"ef"]], kind)
    assert bytes(summing.payloads_in(column, 2)) == b"abcdef"
    assert bytes(summing.payloads_in(pa.array([b"ab", b"cd", b"ef"], kind)[1:], 2)) == b"cdef"
    assert summing.payloads_in(pa.array([], kind), 2).shape == (0, 2)


def test_reports_of_another_length_or_without_a_value_are_named() -> None:
    with pytest.raises(DataError, match="a report has 2 bytes, got one of 3"):
        summing.payloads_in(pa.array([b"ab", b"cde"]), 2)
    with pytest.raises(DataError, match="1 reports have no value"):
        summing.payloads_in(pa.array([b"ab", None]), 2)


def test_reports_that_no_device_sends_are_counted_in_an_error() -> None:
    terms = terms_of()
    query = stage_query(terms, [])
    good, bad = bytes([2, 0b10010000, 0]), bytes([1, 0, 0])
    assert summing.column_counts(terms.reports, query, pa.array([good, good])).sum() > 0
    with pytest.raises(DataError, match="no device sends 2 of these reports"):
        summing.column_counts(terms.reports, query, pa.array([bad, good, bad]))


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(2)], ids=str)
def test_parts_of_record_batches_are_counted(kind: pa.DataType) -> None:
    """Of batches that are slices, as clusters cut them, the others' values stay out."""
    payloads = pa.array([b"\1\0", b"\2\0", b"\2\0", b"\3\0", b"\1\0"], kind)
    whole = pa.RecordBatch.from_arrays([payloads], ["payload"])

    def counts(batch: pa.RecordBatch) -> pa.Table:
        column = summing.payloads_in(batch.column(0), 2)
        return adding.totals_of(np.bincount(column[:, 0], minlength=5))

    for batches in (
        [whole.slice(1, 2), whole.slice(3, 1)],
        [whole.slice(1, 1)] * 2 * adding.FAN_IN,
    ):
        rows = adding.combined(map(counts, batches), adding.TOTALS)
        taken = np.concatenate([summing.payloads_in(each.column(0), 2)[:, 0] for each in batches])
        assert adding.summed(rows).tolist() == np.bincount(taken, minlength=5).tolist()


def test_without_the_extras_one_sentence_says_how_to_install_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("ray", "ray.data", "pyspark"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install 'tacit\[ray\]'"):
        summing.in_ray(lambda block: np.zeros(1, dtype=np.int64), 1, lambda blocks: None)
    with pytest.raises(ImportError, match=r"pip install 'tacit\[spark\]'"):
        summing.in_spark(None)


def on_clusters(test: Any) -> Any:
    """A test that needs a cluster; warnings are those of the clusters' own packages."""
    for mark in (pytest.mark.thorough, pytest.mark.slow, pytest.mark.filterwarnings("ignore")):
        test = mark(test)
    return test


CASES = (SINGLE[0], SINGLE[1], DOUBLE[1])
RECORDS = 600_000


def payload_table(payloads: Payloads) -> pa.Table:
    return pa.table({"payload": pa.array([bytes(each) for each in payloads], pa.binary())})


@contextmanager
def spark() -> Iterator[tuple[summing.Summing, Callable[[Payloads], Any]]]:
    sql = pytest.importorskip("pyspark.sql", reason="the extra spark is not installed")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "700m")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )

    def stage(payloads: Payloads) -> summing.ClusterReports:
        rows = [(bytearray(each),) for each in payloads]
        return summing.ClusterReports(
            session.createDataFrame(rows, "payload binary").repartition(5)
        )

    yield summing.in_spark(session), stage
    session.stop()


@contextmanager
def ray() -> Iterator[tuple[summing.Summing, Callable[[Payloads], Any]]]:
    module = pytest.importorskip("ray", reason="the extra ray is not installed")
    module.init(num_cpus=2, object_store_memory=2**28, include_dashboard=False)

    def stage(payloads: Payloads) -> summing.ClusterReports:
        return summing.ClusterReports(
            module.data.from_arrow(payload_table(payloads)).repartition(5)
        )

    yield summing.in_ray, stage
    module.shutdown()


@pytest.fixture(scope="module", params=[spark, ray])
def cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """How a cluster adds up, and how it has the reports of a stage."""
    with request.param() as made:
        yield made


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> RecordFiles:
    clients = records_of(RECORDS)
    path = tmp_path_factory.mktemp("records") / "all.parquet"
    pq.write_table(pa.table({"score": clients.scores, "label": clients.labels}), path)
    return RecordFiles.of([str(path)])


@on_clusters
def test_a_cluster_simulates_the_same(cluster: Any, records: RecordFiles) -> None:
    for case in CASES:
        protocol = terms_of(case).protocol
        alone = evaluate_one_record_clients(records, protocol, seed=1)
        told: list[int] = []
        there = evaluate_one_record_clients(
            records, protocol, seed=1, summing=cluster[0], progress=told.append
        )
        assert there.estimate == alone.estimate
        assert sum(told) in (3, 6)


@on_clusters
def test_a_cluster_counts_reports_of_its_own_frames(cluster: Any) -> None:
    for case in CASES:
        terms = terms_of(case, 3000)
        sent = all_payloads(terms, records_of(3000), SimulatedNoise(1))
        alone = concluded(terms, in_memory(sent))
        there = concluded(terms, list(map(cluster[1], sent)))
        assert there.result.value == alone.result.value
        assert all(map(np.array_equal, there.counts, alone.counts))
