"""Files larger than memory beside the engine's own statement: ``python -m benchmarks.engines``.

Records are written to a temporary folder on disk, which is removed. Each case runs in a process of
its own, whose peak memory it states; ratios are of runs in turn in that process.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import tacit
from benchmarks.timing import clock
from tacit.data.clients import Clients
from tacit.data.engines.opening import PERSONS_MEMORY, from_files, from_table
from tacit.data.engines.relations import DUCKDB, NUMBER, SPARK, Relation
from tacit.data.engines.statements import counting_statement
from tacit.data.persons import PersonWarning
from tacit.data.scales import in_unit

ROWS = 1_000_000
CELLS = 64
CLIENTS = 20
COUNTS = ("count", "count by site", "count beside plain SQL", "exact sum", "two or more rounds")
RANKS = ("exact AUC", "FedAUC", "FedAUC, secure sum", "FedAUC, flips", "exact AUC, converted")
PERSONS = ("persons", "persons by site")
CLUSTERS = ("Spark, a round", "Ray, a round", "Spark statement")
"""A round beside a pass of the engine through its workers; counts beside plain GROUP BY."""
CASES = (*COUNTS, *RANKS, *PERSONS)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines", description=__doc__)
    parser.add_argument("--rows", type=float, default=ROWS, help="records, 1e6 by default")
    parser.add_argument("--times", type=int, default=2, help="paired runs of a case")
    beside = "default: all but those of Spark and Ray"
    parser.add_argument("--case", choices=(*CASES, *CLUSTERS), action="append", help=beside)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder is not None:
        measure(options.case[0], options.folder, options.times)
        return
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
        rows = int(options.rows)
        seconds = clock(lambda: write(Path(folder), rows))
        size = sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e6
        load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
        print(f"{rows:,} records, {size:,.0f} MB, written in {seconds:.1f} s; load {load}")
        for case in options.case or CASES:
            arguments = ("--folder", folder, "--case", case, "--times", str(options.times))
            command = [sys.executable, "-m", "benchmarks.engines", *arguments]
            subprocess.run(command, check=True)


def write(folder: Path, rows: int) -> None:
    """Scores of a binormal model, as doubles, in eight Parquet files, of persons with 4 records."""
    size = -(-rows // 8)
    with duckdb.connect() as connection:
        for part, start in enumerate(range(0, rows, size)):
            made = min(size, rows - start)
            connection.execute(
                f"""COPY (
                SELECT 1 / (1 + exp(-(label + sqrt(-2 * ln(1 - u)) * cos(2 * pi() * v)))) AS score,
                  label, site, person
                FROM (
                  SELECT random() AS u, random() AS v, (random() < 0.3)::INTEGER AS label,
                    i % {CLIENTS} AS site, floor(random() * {rows} / 4)::BIGINT AS person
                  FROM range({made}) AS r(i))
                ) TO '{folder / f"part-{part:03}.parquet"}'"""
            )


def measure(case: str, folder: Path, times: int) -> None:
    """Print the time of a case, its ratio to the engine's own statement, and the peak memory."""
    files = str(folder / "*.parquet")
    if case in CLUSTERS:
        by_tacit, by_engine = cluster_work(case, folder)
    else:
        by_tacit = our_work(case, files)
        by_engine = engine_sort(files) if case in RANKS else engine_count(case, files)
    warnings.simplefilter("ignore", PersonWarning)
    # before the engine's own statement, which may take more memory
    by_tacit()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    pairs = [(both_times(by_tacit), both_times(by_engine)) for _ in range(times)]
    seconds, engine_seconds = (
        statistics.median(pair[side][0] for pair in pairs) for side in (0, 1)
    )
    ratio, busy = (
        statistics.median(pair[0][kind] / pair[1][kind] for pair in pairs) for kind in (0, 1)
    )
    print(
        f"{case:22s} {seconds:8.2f} s   engine {engine_seconds:8.2f} s   ratio {ratio:5.2f}   "
        f"of processor time {busy:5.2f}   "
        f"peak {peak:7,.0f} MiB",
        flush=True,
    )


def both_times(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and processor time of all threads, which a busy machine changes less."""
    start = time.process_time()
    return clock(work), time.process_time() - start


def our_work(case: str, files: str) -> Callable[[], object]:
    """What ``tacit`` does in a case."""
    edges = np.arange(1, CELLS) / CELLS
    protocols: dict[str, tacit.Protocol] = {
        "exact sum": tacit.ScoreHistogram("exact-sum", height=6),
        "two or more rounds": tacit.ScoreHistogram(epsilon=1.0),
        "exact AUC": tacit.ExactAUC(),
        "FedAUC": tacit.FedAUC(epsilon=1.0),
        "FedAUC, secure sum": tacit.FedAUC(epsilon=1.0, trust="secure-sum"),
        "FedAUC, flips": tacit.FedAUC(epsilon=1.0, trust="local"),
    }
    if case == "exact AUC, converted":
        return lambda: tacit.evaluate(log_odds(files), tacit.ExactAUC())
    if case in PERSONS:
        client = None if case == "persons" else "site"
        protocol = protocols["two or more rounds"]
        return lambda: tacit.evaluate(from_files([files], client=client, person="person"), protocol)
    if case in protocols:
        return lambda: tacit.evaluate(from_files([files], client="site"), protocols[case])
    stored = from_files([files], client=None if case == "count" else "site")
    return lambda: stored.counts_in(edges)


def log_odds(files: str) -> Clients:
    """The records with their scores as log-odds: a map that rounding may put out of order."""
    return in_unit(from_files([files], client="site", unit="probability"), "log-odds")


def engine_count(case: str, files: str) -> Callable[[], object]:
    """The statement that ``tacit sql`` prints, or a plain one with other cells, in DuckDB."""
    edges = np.arange(1, CELLS) / CELLS
    table = f"read_parquet('{files}')"
    relation = Relation(
        DUCKDB, table, "score", "label", None if case == "count" else "site", NUMBER
    )
    group = counting_statement(relation, edges)
    if case == "count beside plain SQL":
        cell = f"CAST(FLOOR(score * {CELLS}) AS INTEGER)"
        group = f"SELECT site, label, {cell} AS cell, count(*) FROM {table} GROUP BY ALL"
    if case in PERSONS:
        client = "filename" if case == "persons" else "site"
        drawn = f"row_number() OVER (PARTITION BY {client}, person ORDER BY hash(score)) AS turn"
        taken = f"SELECT {client} AS client, label, score, {drawn} FROM {table}"
        cell = f"CAST(FLOOR(score * {CELLS}) AS INTEGER)"
        counted = f"SELECT client, label, {cell} AS cell, count(*) FROM ({taken}) WHERE turn = 1"
        group = f"{counted} GROUP BY ALL"
    # a draw of persons' records has so much memory
    spilled = str(Path(files).parent / "spilled")
    limits: dict[str, Any] = {"memory_limit": f"{PERSONS_MEMORY}MB", "temp_directory": spilled}
    connection = duckdb.connect(config=limits if case in PERSONS else {})
    return lambda: connection.execute(group).fetchall()


def engine_sort(files: str) -> Callable[[], object]:
    """The rank sum of the positives by DuckDB's own sort."""
    ranks = f"SELECT label, rank() OVER (ORDER BY score) AS place FROM read_parquet('{files}')"
    ranked = f"SELECT sum(place * label) FROM ({ranks})"
    connection = duckdb.connect()
    return lambda: connection.execute(ranked).fetchall()


def cluster_work(case: str, folder: Path) -> tuple[Callable[[], object], Callable[[], object]]:
    """What ``tacit`` does on a cluster, and the engine's own pass."""
    edges, columns = np.arange(1, CELLS) / CELLS, ["score", "label", "site"]
    if case.startswith("Ray"):
        import ray  # noqa: PLC0415 -- an extra

        ray.init(logging_level="ERROR", log_to_driver=False)
        dataset = ray.data.read_parquet(str(folder)).select_columns(columns)
        bare = dataset.map_batches(row_numbers, batch_format="pyarrow", batch_size=None)
        return partial(from_table(dataset, client="site").counts_in, edges), bare.take_all
    from pyspark.sql import SparkSession  # noqa: PLC0415 -- an extra

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    options = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    session = SparkSession.builder.master("local[*]").config(map=options).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    frame = session.read.parquet(str(folder)).select(columns)
    if case == "Spark, a round":
        bare = frame.mapInArrow(lambda batches: map(row_numbers, batches), "rows bigint")
        return partial(from_table(frame, client="site").counts_in, edges), (
            lambda: bare.groupBy().sum().collect()
        )
    frame.createOrReplaceTempView("scored")
    relation = Relation(SPARK, "scored", "score", "label", "site")
    edges = np.arange(1, 256) / 256
    ours = counting_statement(relation, edges, 0.0, 1.0, "256-cells")
    plain = "SELECT site, label, FLOOR(score * 256) AS cell, COUNT(*) FROM scored GROUP BY ALL"
    return (lambda: session.sql(ours).collect()), (lambda: session.sql(plain).collect())


def row_numbers(batch: Any) -> Any:
    """How many rows a batch has, as one of one row."""
    return type(batch).from_pydict({"rows": [batch.num_rows]})


if __name__ == "__main__":
    main()
