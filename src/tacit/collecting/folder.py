"""The folder of a campaign: its documents and keys, the open log, and sealed batches.

campaign.json  stage-1.json          signed documents
keys/coordinator.key  tokens.key     secrets; the first is needed to sign only
reports/log-1.bin                    what was taken and is not sealed yet
reports/log-1.torn                   what a crash left of a report that was never acknowledged
reports/batch-1-0.parquet            a sealed batch: payloads of one stage, in an order drawn
spent/batch-1.parquet                the tokens of that batch, in ascending order
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from tacit import files
from tacit.collecting import batches
from tacit.collecting.campaign import Campaign, CampaignError, Signed, Terms, stage_query
from tacit.collecting.log import KEY_BYTES, MAX_REPORT, REPORT_HEADER, Tokens, read_log
from tacit.crypto.identities import Identity
from tacit.protocol.conversation import Query

READS = 5
"""Number of times that a folder is read again where batches were sealed meanwhile."""


@dataclass(frozen=True)
class Folder:
    """A campaign's files.

    Parameters
    ----------
    path : the folder.
    """

    path: Path

    @property
    def reports(self) -> Path:
        """Where logs and batches are."""
        return self.path / "reports"

    @property
    def spent(self) -> Path:
        """Where tokens of sealed batches are."""
        return self.path / "spent"

    @property
    def coordinator_key(self) -> Path:
        """The key that signs the campaign and its stages."""
        return self.path / "keys" / "coordinator.key"

    def signed(self, terms: Terms) -> Campaign:
        """The campaign of these terms: the one that is there, or a new one, signed now.

        Raises
        ------
        CampaignError : where the folder has a campaign with other terms; devices would refuse it.
        """
        if (self.path / "campaign.json").exists():
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
        for folder in (self.reports, self.spent):
            folder.mkdir(parents=True, exist_ok=True)
        files.private_folder(self.coordinator_key.parent)
        reports = terms.reports
        query = stage_query(terms, [])
        _check_size(reports.payload_bytes(query))
        content = terms.to_content() | {"report": dict(reports.instructions(query))}
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
    def tokens(self) -> Tokens:
        """The campaign's tokens, under a key that is made at its first use."""
        key = stored_secret(self.path / "keys" / "tokens.key")
        return Tokens(key, self.campaign.digest)

    def reserve_tokens(self, count: int) -> int:
        """The first of so many serial numbers that are never given again."""
        path = self.path / "tokens-made"
        with self.locked(alone=True):
            start = int(path.read_text(encoding="ascii")) if path.exists() else 0
            files.write_private(path, str(start + count).encode())
        return start

    @property
    def report_bytes(self) -> int:
        """How long a report of the current stage is."""
        payload = self.campaign.terms.reports.payload_bytes(self.query(self.current_stage))
        return REPORT_HEADER.size + payload

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
        query = stage_query(terms, self.stages()[:stage])
        _check_size(terms.reports.payload_bytes(query))
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

    def stages(self) -> list[batches.StoredReports]:
        """What was taken in every stage up to the current one, sealed or not."""
        for _ in range(READS):
            try:
                return self._stages()
            except FileNotFoundError:
                continue  # a log was sealed meanwhile
        raise CampaignError(f"{self.reports} changes faster than it can be read")

    def _stages(self) -> list[batches.StoredReports]:
        stages = range(self.current_stage + 1)
        names, spent = self._names()
        sealed, logs = batches.batch_files(names, spent)
        bodies = [body for name in logs for body in read_log(self.reports / name)]
        opened = batches.sealed_payloads(bodies, len(stages))
        batch_files = [
            tuple(self.reports / name for name, of_stage in sealed if of_stage == stage)
            for stage in stages
        ]
        return [batches.StoredReports(*each) for each in zip(batch_files, opened, strict=True)]

    def _names(self) -> tuple[list[str], set[str]]:
        """The files of reports and of tokens, at one moment between two steps of sealing.

        Raises
        ------
        FileNotFoundError : where a batch became whole meanwhile.
        """
        before = {path.name for path in self.spent.iterdir()}
        names = sorted(path.name for path in self.reports.iterdir())
        if before != {path.name for path in self.spent.iterdir()}:
            raise FileNotFoundError(f"{self.spent} has a new batch")
        return names, before

    def sealed_sizes(self) -> list[int]:
        """How many reports of the first stage every whole sealed batch holds."""
        names = sorted(path.name for path in self.reports.iterdir())
        sealed, _ = batches.batch_files(names, {path.name for path in self.spent.iterdir()})
        return [batches.batch_size(self.reports / name) for name, stage in sealed if stage == 0]

    def spent_serials(self) -> Iterator[np.ndarray[tuple[int], np.dtype[np.uint64]]]:
        """The serial numbers of tokens in sealed batches, a batch at a time."""
        return (batches.read_spent(path) for path in sorted(self.spent.glob("batch-*.parquet")))

    def _document(self, name: str) -> Signed:
        path = self.path / name
        if not path.exists():
            raise CampaignError(f"{path} does not exist")
        return Signed.from_json(path.read_bytes())


def _check_size(payload_bytes: int) -> None:
    size = REPORT_HEADER.size + payload_bytes
    if size > MAX_REPORT:
        raise CampaignError(f"a report must have at most {MAX_REPORT} bytes, got {size}")


def stored_secret(path: Path) -> bytes:
    """32 secret bytes in hexadecimal digits, made at the first use, readable by the owner only."""
    files.create_private(path, os.urandom(KEY_BYTES).hex().encode())
    try:
        return bytes.fromhex(path.read_text(encoding="ascii").strip())
    except ValueError:
        raise CampaignError(f"{path} must hold {2 * KEY_BYTES} hexadecimal digits") from None
