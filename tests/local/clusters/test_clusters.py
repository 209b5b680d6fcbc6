"""Sums on local clusters of two workers are those of one process, to the last bit.

Both packages are large, and not in the locked environment: without them these tests are skipped.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.collecting.estimating import concluded
from tacit.local.drawing import RecordFiles, evaluate_one_record_clients
from tacit.local.summing import RayReports, SparkReports, in_ray, in_spark
from tacit.privacy.noise import SimulatedNoise
from tacit.protocol.devices import Payloads
from tests.collecting.support import DOUBLE, SINGLE, all_payloads, in_memory, records_of, terms_of

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of the clusters' own packages
]
CASES = (SINGLE[0], SINGLE[1], DOUBLE[1])
RECORDS = 600_000


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
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
    yield session
    session.stop()


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    module = pytest.importorskip("ray", reason="the extra ray is not installed")
    module.init(num_cpus=2, object_store_memory=2**28, include_dashboard=False)
    yield module
    module.shutdown()


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> RecordFiles:
    clients = records_of(RECORDS)
    path = tmp_path_factory.mktemp("records") / "all.parquet"
    pq.write_table(pa.table({"score": clients.scores, "label": clients.labels}), path)
    return RecordFiles.of([str(path)])


def test_spark_simulates_the_same(spark: Any, records: RecordFiles) -> None:
    check_simulated(in_spark(spark), records)


def test_ray_simulates_the_same(ray: Any, records: RecordFiles) -> None:
    check_simulated(in_ray, records)


def check_simulated(summing: Any, records: RecordFiles) -> None:
    for case in CASES:
        protocol = terms_of(case).protocol
        alone = evaluate_one_record_clients(records, protocol, seed=1)
        told: list[int] = []
        there = evaluate_one_record_clients(
            records, protocol, seed=1, summing=summing, progress=told.append
        )
        assert there.estimate == alone.estimate
        assert sum(told) in (3, 6)


def payload_table(payloads: Payloads) -> pa.Table:
    return pa.table({"payload": pa.array([bytes(each) for each in payloads], pa.binary())})


def test_spark_counts_reports_of_its_own_frames(spark: Any) -> None:
    def stage(payloads: Payloads) -> SparkReports:
        rows = [(bytearray(each),) for each in payloads]
        return SparkReports(spark.createDataFrame(rows, "payload binary").repartition(5))

    check_counted(stage)


def test_ray_counts_reports_of_its_own_datasets(ray: Any) -> None:
    def stage(payloads: Payloads) -> RayReports:
        return RayReports(ray.data.from_arrow(payload_table(payloads)).repartition(5))

    check_counted(stage)


def check_counted(stage: Any) -> None:
    for case in CASES:
        terms = terms_of(case, 3000)
        sent = all_payloads(terms, records_of(3000), SimulatedNoise(1))
        alone, there = concluded(terms, in_memory(sent)), concluded(terms, list(map(stage, sent)))
        assert there.result.value == alone.result.value
        assert all(map(np.array_equal, there.counts, alone.counts))
