"""Sealed batches: reports of a log in a fresh order, and their tokens in files apart.

Threads share the batches of a stage: each reads one while the others count.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tacit import files
from tacit.arrays import Integers
from tacit.collecting import log
from tacit.privacy.exact import words
from tacit.protocol.conversation import Query
from tacit.protocol.devices import BATCH_REPORTS, DeviceReports, Payloads, slices

LOG = re.compile(r"log-(\d+)\.bin")
BATCH = re.compile(r"batch-(\d+)-(\d+)\.parquet")


def log_name(number: int) -> str:
    """The name of a log."""
    return f"log-{number}.bin"


def log_numbers(folder: Path) -> list[int]:
    """The numbers of the logs in a folder, ascending."""
    matches = (LOG.fullmatch(path.name) for path in folder.iterdir())
    return sorted(int(match[1]) for match in matches if match)


def batch_files(names: Iterable[str], spent: set[str]) -> tuple[list[tuple[str, int]], list[str]]:
    """The files of whole batches, with their stages, and the logs that are in none of them.

    The tokens of a batch are written last: a batch without them is not whole, and its log is there.
    """
    batches = [match for match in map(BATCH.fullmatch, names) if match]
    whole = [(each[0], int(each[2])) for each in batches if f"batch-{each[1]}.parquet" in spent]
    logs = [match for match in map(LOG.fullmatch, names) if match]
    return whole, [each[0] for each in logs if f"batch-{each[1]}.parquet" not in spent]


def seal(reports: Path, spent: Path, number: int, bodies: Sequence[bytes]) -> None:
    """Seal a log: payloads in an order drawn from the system, tokens ascending, then no log.

    Whenever it is interrupted, the log or the whole batch is there; sealing again starts over.

    Raises
    ------
    OSError : when a file cannot be written; the log stays.
    """
    stages = max(log.Report.from_bytes(body).stage for body in bodies) + 1
    serials = np.array([serial_of(body) for body in bodies], dtype=np.uint64)
    write_batch(reports, spent, number, sealed_payloads(bodies, stages), serials)
    (reports / log_name(number)).unlink(missing_ok=True)
    files.sync(reports)


def write_batch(
    reports: Path,
    spent: Path,
    number: int,
    payloads: Sequence[Payloads],
    serials: NDArray[np.uint64],
) -> None:
    """Write a batch: payloads of every stage in a fresh order, then its tokens ascending."""
    for stage, each in enumerate(payloads):
        if each.size:
            order = np.argsort(words(each.shape[0]), kind="stable")
            _write(reports / f"batch-{number}-{stage}.parquet", "payload", _fixed(each[order]))
    _write(spent / f"batch-{number}.parquet", "serial", pa.array(np.sort(serials)))


def serial_of(body: bytes) -> int:
    """The serial number of the token in a report's bytes."""
    return int.from_bytes(log.Report.from_bytes(body).token[: log.SERIAL_BYTES], "little")


def sealed_payloads(bodies: Sequence[bytes], stages: int) -> list[Payloads]:
    """The payloads of every stage, shape (M, bytes), in the order of the reports."""
    made = []
    for stage in range(stages):
        chosen = [
            body[log.REPORT_HEADER.size :] for body in bodies if body[log.STAGE_PLACE] == stage
        ]
        flat = np.frombuffer(b"".join(chosen), dtype=np.uint8)
        made.append(flat.reshape(len(chosen), -1) if chosen else np.zeros((0, 1), dtype=np.uint8))
    return made


@dataclass(frozen=True)
class StoredReports:
    """The reports of one stage in sealed batches, and those that are not sealed yet.

    Parameters
    ----------
    files : of sealed batches.
    opened : payloads of reports in logs, shape (m, bytes).
    """

    files: tuple[Path, ...]
    opened: Payloads

    def __len__(self) -> int:
        """How many there are."""
        return len(self.opened) + sum(map(batch_size, self.files))

    def counts(self, devices: DeviceReports, query: Query) -> Integers:
        """How often each report came: a pass over the files by all processors, in constant memory.

        The counts are whole numbers, so it does not matter which thread counts a file.
        """
        threads = min(os.cpu_count() or 1, len(self.files))
        shares: list[Iterator[Payloads]] = [
            chain.from_iterable(map(parts_of_batch, self.files[k::threads])) for k in range(threads)
        ]
        if len(self.opened) or not self.files:
            shares.append(slices(self.opened))
        with ThreadPoolExecutor(len(shares), "tacit-counting") as pool:
            return reduce(np.add, pool.map(partial(devices.counts_of_batches, query), shares))


def parts_of_batch(path: Path) -> Iterator[Payloads]:
    """The payloads of a sealed batch, a part at a time, shape (m, bytes)."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        for part in file.iter_batches(BATCH_REPORTS, columns=["payload"], use_threads=False):
            yield payloads_of(part.column("payload"))


def payloads_of(column: pa.FixedSizeBinaryArray) -> Payloads:
    """A column of fixed-size bytes as payloads, without a copy, shape (m, bytes)."""
    size = column.type.byte_width
    flat = np.frombuffer(column.buffers()[1], dtype=np.uint8)
    return flat[column.offset * size : (column.offset + len(column)) * size].reshape(-1, size)


def batch_size(path: Path) -> int:
    """How many payloads a sealed batch holds."""
    rows: int = pq.read_metadata(path).num_rows
    return rows


def read_spent(path: Path) -> NDArray[np.uint64]:
    """The serial numbers of a batch's tokens, ascending."""
    numbers: NDArray[np.uint64] = (
        pq.read_table(path, page_checksum_verification=True).column("serial").to_numpy()
    )
    return numbers


def _fixed(payloads: Payloads) -> Any:
    kind = pa.binary(payloads.shape[1])
    buffer = pa.py_buffer(np.ascontiguousarray(payloads))
    return pa.FixedSizeBinaryArray.from_buffers(kind, payloads.shape[0], [None, buffer])


def _write(path: Path, name: str, column: Any) -> None:
    """Write one column, whole or not at all."""
    content = pa.BufferOutputStream()
    pq.write_table(pa.table({name: column}), content, write_page_checksum=True)
    files.write_private(path, content.getvalue())
