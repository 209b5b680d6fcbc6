"""The folder of a campaign: its documents and keys, the open log, and sealed batches.

campaign.json  stage-1.json          signed documents
keys/coordinator.key  tokens.key     secrets; the first is needed to sign only
reports/log-1.bin                    what was taken and is not sealed yet
reports/log-1.torn                   what a crash left of a report that was never acknowledged
reports/batch-1-0.parquet            a sealed batch: payloads of one stage, in an order drawn
spent/batch-1.parquet                the tokens of that batch, in ascending order

Threads share the batches of a stage: each reads one while the others count.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, partial, reduce
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
from tacit.collecting.campaign import Campaign, CampaignError, Signed, Terms, stage_query
from tacit.crypto.identities import Identity
from tacit.privacy.exact import words
from tacit.protocol.devices import BATCH_REPORTS, DeviceReports, Payloads, slices
from tacit.protocol.steps import Query

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
    """The reports of one stage: sealed batches, and reports in logs.

    Parameters
    ----------
    files : of sealed batches.
    opened : payloads of reports in logs, shape (m, bytes).
    """

    files: tuple[Path, ...]
    opened: Payloads

    def __len__(self) -> int:
        """How many there are."""
        return len(self.opened) + sum(self.sealed)

    @property
    def sealed(self) -> list[int]:
        """How many reports each sealed batch holds."""
        return [pq.read_metadata(path).num_rows for path in self.files]

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


def sum_of(stored: Sequence[StoredReports]) -> StoredReports:
    """The reports of one stage in several folders."""
    opened = [each.opened for each in stored if len(each.opened)] or [stored[0].opened]
    return StoredReports(tuple(chain(*(each.files for each in stored))), np.concatenate(opened))


def parts_of_batch(path: Path) -> Iterator[Payloads]:
    """The payloads of a sealed batch, a part at a time, shape (m, bytes)."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        for part in file.iter_batches(BATCH_REPORTS, columns=["payload"], use_threads=False):
            column = part.column("payload")
            size, values = column.type.byte_width, column.buffers()[1]
            # without a copy
            flat = np.frombuffer(values, np.uint8, len(column) * size, column.offset * size)
            yield flat.reshape(-1, size)


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


READS = 5
"""Number of times that a folder is read again where batches were sealed meanwhile."""


@dataclass(frozen=True)
class OpenStage:
    """The stage whose reports are taken.

    Parameters
    ----------
    number : from 0.
    query : what devices answer.
    size : how long every report is.
    """

    number: int
    query: Query
    size: int


class Folder:
    """A campaign's files.

    Parameters
    ----------
    path : the folder.

    Attributes
    ----------
    reports : where logs and batches are.
    spent : where tokens of sealed batches are.
    coordinator_key : the key that signs the campaign and its stages.
    token_key : the key of this folder's tokens, which no other collector takes.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.reports, self.spent = path, path / "reports", path / "spent"
        self.coordinator_key = path / "keys" / "coordinator.key"
        self.token_key = path / "keys" / "tokens.key"

    def signed(self, terms: Terms) -> Campaign:
        """The campaign of these terms: the one that is there, or a new one, signed now.

        A further collector's folder has the campaign that the first one signed, and its own tokens.

        Raises
        ------
        CampaignError : where the folder has a campaign with other terms, which devices would
            refuse, or of several stages that another collector signed: the second follows from all
            reports of the first.
        """
        for folder in (self.reports, self.spent):
            folder.mkdir(parents=True, exist_ok=True)
        if (self.path / "campaign.json").exists():
            if terms.reports.stages > 1:
                self._signer()
            there = {**self.campaign.signed.content}
            there.pop("report")
            if there != terms.to_content():
                changed = sorted(
                    name for name, value in terms.to_content().items() if there.get(name) != value
                )
                raise CampaignError(
                    f"{self.path} has a campaign {there['name']!r} with other {', '.join(changed)};"
                    " devices refuse a campaign that changed: take another name and folder"
                )
            return self.campaign
        files.private_folder(self.coordinator_key.parent)
        query = stage_query(terms, [])
        _report_size(terms, query)
        content = terms.to_content() | {"report": dict(terms.reports.instructions(query))}
        identity = Identity.from_bytes(stored_secret(self.coordinator_key))
        files.write_private(
            self.path / "campaign.json", Signed.by(identity, content).to_json().encode()
        )
        return self.campaign

    @cached_property
    def campaign(self) -> Campaign:
        """The signed campaign.

        Raises
        ------
        CampaignError : where there is none.
        """
        return Campaign(self._document("campaign.json"))

    @cached_property
    def tokens(self) -> log.Tokens:
        """The campaign's tokens, under a key that is made at its first use."""
        return log.Tokens(stored_secret(self.token_key), self.campaign.digest)

    def reserve_tokens(self, count: int) -> int:
        """The first of so many serial numbers that are never given again."""
        path = self.path / "tokens-made"
        with self.locked(alone=True):
            start = int(path.read_text(encoding="ascii")) if path.exists() else 0
            files.write_private(path, str(start + count).encode())
        return start

    def open_stage(self) -> OpenStage:
        """The stage whose reports are taken."""
        number = self.current_stage
        query = self.query(number)
        return OpenStage(number, query, _report_size(self.campaign.terms, query))

    def stage(self, number: int) -> Signed:
        """The signed document of a later stage.

        Raises
        ------
        CampaignError : where there is none.
        """
        return self._document(f"stage-{number}.json")

    @property
    def current_stage(self) -> int:
        """The stage whose reports are taken, from 0."""
        stages = self.campaign.terms.reports.stages
        return sum((self.path / f"stage-{number}.json").exists() for number in range(1, stages))

    def closed(self, stage: int) -> bool:
        """Whether a stage takes no more reports."""
        return (self.path / f"stage-{stage}.closed").exists()

    def locked(self, alone: bool) -> AbstractContextManager[None]:
        """Held while reports are written, and ``alone`` while a stage is closed."""
        return files.locked(self.path / "lock", alone)

    def owned(self) -> AbstractContextManager[None]:
        """Held by the one collector of a folder: two would each take the same token once.

        Raises
        ------
        CampaignError : where another one takes reports.
        """
        refusal = CampaignError(f"another collector takes reports in {self.path}")
        return files.locked(self.path / "collector.lock", refusal=refusal)

    def next_stage(self) -> Signed:
        """Close the stage that is open, and sign the next one.

        Raises
        ------
        CampaignError : where there is no further stage, or not the key that signed the campaign;
            the open stage stays open then.
        """
        terms, stage = self.campaign.terms, self.current_stage + 1
        if stage == terms.reports.stages:
            raise CampaignError(f"the campaign has {stage} stages, and the last one is open")
        identity = self._signer()
        with self.locked(alone=True):
            (self.path / f"stage-{stage - 1}.closed").touch()
        query = self.query(stage)
        _report_size(terms, query)
        content = self.campaign.stage_content(stage, terms.reports.instructions(query))
        signed = Signed.by(identity, content).to_json()
        files.write_private(self.path / f"stage-{stage}.json", signed.encode())
        return self.stage(stage)

    def _signer(self) -> Identity:
        """The identity that signed the campaign.

        Raises
        ------
        CampaignError : where its key is not there, or another one is.
        """
        path = self.coordinator_key
        if not path.exists():
            raise CampaignError(f"{path} does not exist: stages are signed where the campaign was")
        identity = Identity.from_bytes(stored_secret(path))
        if identity.public != self.campaign.signed.key:
            raise CampaignError(f"{path} is not the key that signed the campaign")
        return identity

    def query(self, stage: int) -> Query:
        """The query that devices answer in a stage that is open."""
        return stage_query(self.campaign.terms, self.stages()[:stage])

    def stages(self) -> list[StoredReports]:
        """What was taken in every stage up to the current one, sealed or not."""
        for _ in range(READS):
            try:
                return self._stages()
            except FileNotFoundError:
                continue  # a log was sealed meanwhile
        raise CampaignError(f"{self.reports} changes faster than it can be read")

    def _stages(self) -> list[StoredReports]:
        stages = range(self.current_stage + 1)
        # both at one moment between two steps of sealing
        spent, names = self._batches(), sorted(path.name for path in self.reports.iterdir())
        if spent != self._batches():
            raise FileNotFoundError(f"{self.spent} has a new batch")
        sealed, logs = batch_files(names, spent)
        bodies = [body for name in logs for body in log.read_log(self.reports / name)]
        opened = sealed_payloads(bodies, len(stages))
        closed = [
            tuple(self.reports / name for name, of_stage in sealed if of_stage == stage)
            for stage in stages
        ]
        return [StoredReports(*each) for each in zip(closed, opened, strict=True)]

    def _batches(self) -> set[str]:
        """The files of tokens, one a whole batch."""
        return {path.name for path in self.spent.iterdir()}

    def _document(self, name: str) -> Signed:
        path = self.path / name
        if not path.exists():
            raise CampaignError(f"{path} does not exist")
        return Signed.from_json(path.read_bytes())


def stages_of(folders: Sequence[Folder]) -> list[StoredReports]:
    """What all collectors of a campaign took, in every stage.

    A token is spent once: one collector has a folder (``Folder.owned``), and takes only tokens made
    with its folder's key. Where two folders had one key, each would take a token once.

    Raises
    ------
    CampaignError : for folders of different campaigns, or with the same key.
    OSError : where a key is not there.
    """
    if len({folder.campaign.signed.to_json() for folder in folders}) > 1:
        raise CampaignError("the folders are of different campaigns: estimate each separately")
    if len(folders) > 1 and len({each.token_key.read_bytes() for each in folders}) < len(folders):
        raise CampaignError(
            "two folders have the same key of tokens, and a token may count in both: leave out the "
            "copy; a further collector's folder begins with campaign.json alone"
        )
    return [sum_of(each) for each in zip(*(folder.stages() for folder in folders), strict=True)]


def _report_size(terms: Terms, query: Query) -> int:
    """How long a report of a stage is.

    Raises
    ------
    CampaignError : where that is more than a report may have.
    """
    size = log.REPORT_HEADER.size + terms.reports.payload_bytes(query)
    if size > log.MAX_REPORT:
        raise CampaignError(f"a report must have at most {log.MAX_REPORT} bytes, got {size}")
    return size


def stored_secret(path: Path) -> bytes:
    """32 secret bytes in hexadecimal digits, made at the first use, readable by the owner only."""
    files.create_private(path, os.urandom(log.KEY_BYTES).hex().encode())
    try:
        return bytes.fromhex(path.read_text(encoding="ascii").strip())
    except ValueError:
        raise CampaignError(f"{path} must hold {2 * log.KEY_BYTES} hexadecimal digits") from None
