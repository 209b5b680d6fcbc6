"""Counting stored local reports beside reading them: ``python -m benchmarks.local_reports``.

Reports are drawn at random and written to a temporary folder on disk, which is removed. Each case
runs in a process of its own, whose peak memory it states; the ratio is of runs in turn.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.timing import paired
from tacit.collecting.folder import StoredReports, parts_of_batch
from tacit.data.clients import Clients
from tacit.privacy.noise import SimulatedNoise
from tacit.protocol.devices import BATCH_REPORTS, DeviceReports, Payloads, conversed
from tacit.protocol.registry import protocol_of
from tacit.protocol.steps import ClientState, Query

ROWS = 1_000_000
FILE_REPORTS = 10_000_000
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "unary bits": (
        "score-histogram",
        {"trust": "local", "epsilon": 2.0, "height": 5, "scale": "even"},
    ),
    "symbols": ("ustatistic", {"kernel": "auc", "epsilon": 2.0}),
    "one bit": ("hierarchical-auc", {"epsilon": 2.0}),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local_reports", description=__doc__)
    parser.add_argument("--rows", type=float, default=ROWS, help="reports, 1e6 by default")
    parser.add_argument("--times", type=int, default=2, help="paired runs of a case")
    parser.add_argument("--case", choices=CASES, action="append", help="default: all")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    rows = int(options.rows)
    if options.folder is not None:
        measure(options.case[0], rows, options.folder, options.times)
        return
    print(f"{rows:,} reports; load {', '.join(f'{each:.1f}' for each in os.getloadavg())}")
    for case in options.case or CASES:
        with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
            write(case, rows, Path(folder))
            arguments = ("--folder", folder, "--case", case, "--times", str(options.times))
            command = [sys.executable, "-m", "benchmarks.local_reports", *arguments]
            subprocess.run([*command, "--rows", str(rows)], check=True)


def asked(case: str, rows: int) -> tuple[DeviceReports, Query]:
    """What devices report in a case, and the query that they answer."""
    name, settings = CASES[case]
    protocol = protocol_of(name, settings)
    devices = protocol.device_reports(rows)
    query = conversed(protocol, devices, rows, [])
    assert isinstance(query, Query)
    return devices, query


def write(case: str, rows: int, folder: Path) -> None:
    """Reports of the client step, drawn once for a batch and repeated in another order."""
    devices, query = asked(case, rows)
    rng = np.random.default_rng(0)
    size = min(rows, BATCH_REPORTS)
    labels = rng.integers(0, 2, size).astype(np.int8)
    clients = Clients(rng.random(size), labels, np.arange(size + 1))
    reply = query.step.answer(clients, query, SimulatedNoise(0), ClientState())
    payloads = devices.payloads(query, reply)
    for number, start in enumerate(range(0, rows, FILE_REPORTS)):
        schema = pa.schema([("payload", pa.binary(payloads.shape[1]))])
        with pq.ParquetWriter(folder / f"batch-{number:03}.parquet", schema) as file:
            for first in range(start, min(start + FILE_REPORTS, rows), size):
                sent = rng.permutation(payloads)[: min(size, rows - first)]
                file.write_table(pa.table({"payload": fixed(sent)}))


def fixed(payloads: Payloads) -> pa.FixedSizeBinaryArray:
    """Payloads as a column."""
    kind, buffer = pa.binary(payloads.shape[1]), pa.py_buffer(np.ascontiguousarray(payloads))
    return pa.FixedSizeBinaryArray.from_buffers(kind, payloads.shape[0], [None, buffer])


def measure(case: str, rows: int, folder: Path, times: int) -> None:
    """Print the time of a case, its ratio to reading alone, and the peak memory."""
    devices, query = asked(case, rows)
    stored = StoredReports(tuple(sorted(folder.iterdir())), np.zeros((0, 1), dtype=np.uint8))

    def read() -> object:
        return sum(len(part) for file in stored.files for part in parts_of_batch(file))

    counted, reading, ratio = paired(lambda: stored.counts(devices, query), read, times)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{case:12s} counted in {counted:7.2f} s   read in {reading:7.2f} s   "
        f"ratio {ratio:5.2f}   peak {peak:6,.0f} MiB",
        flush=True,
    )


if __name__ == "__main__":
    main()
