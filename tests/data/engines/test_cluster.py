"""Records on a cluster: counted by real local Spark and Ray, with the results of memory."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.data.engines import cluster as clusters
from tacit.data.engines.opening import from_table
from tacit.data.engines.relations import SPARK, Relation
from tacit.data.engines.statements import counting_statement
from tacit.data.persons import PersonWarning
from tacit.privacy.noise import NoNoise
from tests.classified import GROUPS
from tests.data.engines.test_persons import ALL as VISITS
from tests.data.engines.test_persons import BY, in_order
from tests.running import desks

pytestmark = [
    pytest.mark.slow,
    # Spark's driver leaves its sockets open
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

Batches = Callable[[pa.RecordBatch], pa.RecordBatch]


class Spark:
    """Real local Spark: frames of tables, also changed by a function of every batch."""

    source = "the Spark frame"
    program = """from pyspark.sql import SparkSession

def frame():
    session = SparkSession.builder.getOrCreate()
    return session.read.csv({file!r}, header=True, inferSchema=True)
"""

    def __init__(self, session: Any) -> None:
        self.session = session

    def frame(self, records: pa.Table, changed: Batches | None = None) -> Any:
        frame = self.session.createDataFrame(records).repartition(3)
        if changed is None:
            return frame
        return frame.mapInArrow(lambda batches: map(changed, batches), frame.schema)


class Ray:
    """Real local Ray, as ``Spark``."""

    source = "the Ray dataset"
    program = "import ray.data\n\ndef frame():\n    return ray.data.read_csv({file!r})\n"

    def frame(self, records: pa.Table, changed: Batches | None = None) -> Any:
        import ray

        dataset = ray.data.from_arrow(records).repartition(3)
        if changed is None:
            return dataset

        def of_block(block: pa.Table) -> pa.Table:
            return pa.Table.from_batches([changed(batch) for batch in block.to_batches()])

        return dataset.map_batches(of_block, batch_format="pyarrow")


@pytest.fixture(scope="module")
def spark() -> Iterator[Spark]:
    sql = pytest.importorskip("pyspark.sql", reason="Spark is not installed: tacit[spark]")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed: apt-get install openjdk-17-jre-headless")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        options = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
        options |= {"spark.log.level": "OFF", "spark.sql.shuffle.partitions": "3"}
        builder = sql.SparkSession.builder.master("local[2,2]")
        session = builder.config(map=options).getOrCreate()
        yield Spark(session)
        session.stop()


@pytest.fixture(scope="module")
def ray() -> Iterator[Ray]:
    ray = pytest.importorskip("ray", reason="Ray is not installed: tacit[ray]")
    pytest.importorskip("ray.data", reason="Ray is not installed: tacit[ray]")
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield Ray()
    ray.shutdown()


@pytest.fixture(params=["spark", "ray"])
def cluster(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def some_records(records: int = 3000) -> pa.Table:
    random = np.random.default_rng(3)
    labels = random.integers(0, 2, records)
    columns: dict[str, Any] = {
        "score": 1 / (1 + np.exp(-random.normal(labels, 1.0))),
        "label": labels,
        "site": random.integers(8, 12, records),
        "the.`ward": random.choice(GROUPS, records),
    }
    columns["percent"] = 100 * columns["score"]
    columns["pair"] = list(np.stack([labels, labels], axis=1))
    return pa.table({name: pa.array(values) for name, values in columns.items()})


RECORDS = some_records()


PLAIN = RECORDS.select(["score", "label"])
EXACT = tacit.ScoreHistogram("exact-sum", height=6)


@pytest.mark.usefixtures("no_room")
@pytest.mark.parametrize(
    ("settings", "columns"),
    [
        ({"protocol": EXACT}, {}),
        ({"protocol": tacit.ScoreHistogram("each", 1.0)}, {"client": "site"}),
        ({"epsilon": 1.0}, {"client": "the.`ward"}),
        ({"epsilon": 1.0}, {"unit": "percent", "score": "percent"}),
    ],
)
def test_equal_results(cluster: Any, settings: dict[str, Any], columns: dict[str, Any]) -> None:
    """One round or more, for clients in order of numbers and of names."""
    one, other = (
        tacit.evaluate(each, seed=1, **columns, **settings)
        for each in (cluster.frame(RECORDS), RECORDS)
    )
    assert one.to_dict() == other.to_dict()


def test_private_groups_are_those_in_memory(cluster: Any, tmp_path: Path) -> None:
    protocol = tacit.GroupedHistogram("secure-sum", 1.0, group_names=GROUPS)
    pq.write_table(RECORDS, file := tmp_path / "a.parquet")
    one, *others = (
        tacit.evaluate(each, protocol, 1, client="site", group="the.`ward").to_dict()
        for each in (cluster.frame(RECORDS), RECORDS, file)
    )
    assert others == [one, one]


@pytest.mark.usefixtures("no_room")
@pytest.mark.parametrize("by", [BY, {"person": "who"}])
def test_the_records_that_count_of_persons_are_those_in_memory(
    cluster: Any, by: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one seed and in every round, in several parts and another order; one is at two clients."""
    monkeypatch.setattr(clusters, "PART_ROWS", 200)
    sites = ["b", *VISITS["site"].to_pylist()[1:]]
    moved = VISITS.set_column(VISITS.column_names.index("site"), "site", [sites])
    shuffled = moved.take(np.random.default_rng(1).permutation(len(moved)))
    stored, memory = from_table(cluster.frame(shuffled), **by), in_order(moved, **by)
    protocol = tacit.ScoreHistogram("secure-sum", 4.0)
    at_two = pytest.warns(PersonWarning, match="^1 person") if "client" in by else nullcontext()
    with at_two:
        one = tacit.evaluate(stored, protocol, 1, per_person=2)
    assert one.to_dict() == tacit.evaluate(memory, protocol, 1, per_person=2).to_dict()


def test_a_party_has_its_records_on_a_cluster(cluster: Any, tmp_path: Path) -> None:
    """By a program of its own; its ledger then knows the records by their digest."""
    results = list[str]()
    for home in (tmp_path / "memory", tmp_path / "cluster"):
        identity = desks.federation(home, desks.HISTOGRAM, limit=desks.UNLIMITED)
        if results:
            own, named = home / "a", ('file = "records.csv"', 'records = "python:ads.py:frame"')
            desks.edited(own / "party.toml", named)
            (own / "ads.py").write_text(cluster.program.format(file=str(own / "records.csv")))
        results.append(repr(desks.carried(home, identity, NoNoise()).server_result))
    assert results[0] == results[1]


def replaced(column: str, values: list[Any]) -> pa.Table:
    """Records with other values of a column, from the first on."""
    rest = RECORDS[column].to_pylist()[len(values) :]
    place = RECORDS.column_names.index(column)
    return RECORDS.set_column(place, column, pa.array([*values, *rest]))


@pytest.mark.parametrize(
    ("records", "columns", "message"),
    [
        (replaced("label", [2]), {}, "labels must be 0 or 1, got 2 in a record of {}"),
        (replaced("label", [None]), {}, "column 'label' has no value in a record of {}"),
        (replaced("score", [np.inf]), {}, "scores must be finite, got inf in a record of {}"),
        (replaced("score", [None]), {}, "column 'score' has no value in a record of {}"),
        (replaced("site", [None]), {"client": "site"}, "column 'site' has no value in a record"),
        (RECORDS, {"score": "the.`ward"}, "scores must be numbers, got '.' in a record of {}"),
        (RECORDS, {"score": "pair"}, "column 'pair' of {} must hold numbers, got type .*list"),
        (RECORDS, {"label": "y"}, "{} has no column 'y', its columns are 'score', 'label'"),
        (RECORDS, {"unit": "probability", "score": "percent"}, "must be from 0 to 1, got"),
        (RECORDS.slice(0, 0), {}, "{} has no records"),
        (replaced("site", [None]), {"person": "site"}, "column 'site' has no value in a record"),
    ],
)
def test_records_that_cannot_be_used_are_refused(
    cluster: Any, records: pa.Table, columns: dict[str, Any], message: str
) -> None:
    with pytest.raises(tacit.DataError, match=message.format(cluster.source)):
        tacit.evaluate(cluster.frame(records), EXACT, **columns)


def test_a_step_that_needs_records_says_what_to_take(cluster: Any) -> None:
    with pytest.raises(tacit.DataError, match=r"stay on the cluster.*take a protocol that counts"):
        tacit.evaluate(cluster.frame(RECORDS), tacit.FedAUC(epsilon=1.0))


def noisy(batch: pa.RecordBatch) -> pa.RecordBatch:
    scores = np.random.default_rng().random(batch.num_rows)
    return batch.set_column(0, "score", pa.array(scores))


def without_tacit(batch: pa.RecordBatch) -> pa.RecordBatch:
    raise ModuleNotFoundError("No module named 'tacit'")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (noisy, "{} changed between two steps of a run"),
        (without_tacit, "{} cannot be read: tacit is not installed in its workers' Python"),
    ],
)
def test_faults_of_a_cluster_are_one_sentence(cluster: Any, changed: Batches, message: str) -> None:
    with pytest.raises(tacit.DataError, match=message.format(cluster.source)) as caught:
        tacit.evaluate(cluster.frame(PLAIN, changed), EXACT)
    assert "\n" not in str(caught.value)


def test_a_worker_that_is_lost_once_changes_nothing(cluster: Any, tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    def lost(batch: pa.RecordBatch) -> pa.RecordBatch:
        if not mark.exists():
            mark.touch()
            os._exit(3)
        return batch

    one, other = (tacit.evaluate(each, EXACT) for each in (cluster.frame(PLAIN, lost), PLAIN))
    assert one.to_dict() == other.to_dict()


@pytest.mark.parametrize("depth", [1, 6, 11])
def test_spark_finds_cells(spark: Spark, depth: int, capfd: pytest.CaptureFixture[str]) -> None:
    """To the last bit, also where edges are equal, infinite or neighbouring doubles."""
    random = np.random.default_rng(depth)
    size = (1 << depth) - 1
    edges = np.concatenate(([-np.inf, np.inf, 0.5], random.normal(0, 10.0 ** (depth - 5), size)))
    edges = np.sort(np.concatenate((edges, np.nextafter(edges[2:5], 1), edges[2:4])))
    finite = edges[np.isfinite(edges)]
    scores = np.concatenate((finite, np.nextafter(finite, -np.inf), random.normal(0, 1, 500)))
    labels = np.arange(scores.size) % 2
    records = pa.table({"score": scores, "label": labels, "a.`b": labels.astype(str)})
    spark.session.createDataFrame(records).createOrReplaceTempView("scored")
    relation = Relation(SPARK, "scored", "score", "label", "a.`b")
    capfd.readouterr()
    rows = spark.session.sql(counting_statement(relation, edges)).collect()
    assert capfd.readouterr().err == ""
    cells = np.searchsorted(edges, scores, side="right")
    known, counts = np.unique(2 * cells + labels, return_counts=True)
    expected = zip((known % 2).astype(str), known % 2, known // 2, counts, strict=True)
    assert sorted(map(tuple, rows)) == sorted(tuple(row) for row in expected)
