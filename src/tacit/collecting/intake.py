"""Taking reports: what is checked, what is stored, and in which order.

Form, campaign, stage and token are checked when a report arrives; what its payload may be, for a
group at once, just before the group is written. A report counts when fsync has returned. A token is
spent from then on, also after a restart: the log and the sealed batches say which are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from tacit.collecting import log
from tacit.collecting.campaign import CampaignError, ReportError
from tacit.collecting.folder import Folder, log_name, log_numbers, read_spent, seal

ACCEPTED = "accepted"
"""What becomes of a report that is stored."""

SEAL_EVERY = 10_000
"""Number of reports of a sealed batch, by default."""


class Intake:
    """The state of a collector: its open log, the tokens that are spent, and its counters.

    ``check`` and the two that settle tokens are for one thread, ``store`` for another. ``warnings``
    says in a sentence a log what its start cut off.

    Parameters
    ----------
    folder : of a campaign that is signed.
    seal_every : how many reports a batch has.
    clock : the time, in UTC.
    disk : how logs are written.

    Raises
    ------
    CampaignError : for a damaged log.
    OSError : for files that cannot be read or written.
    """

    def __init__(
        self,
        folder: Folder,
        seal_every: int = SEAL_EVERY,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        disk: log.Disk | None = None,
    ) -> None:
        self._folder, self._seal_every, self._clock = folder, seal_every, clock
        self._disk = disk or log.Disk()
        self._terms = folder.campaign.terms
        self.stages = self._terms.reports.stages
        self._prefix = folder.campaign.digest[: log.DIGEST_PREFIX]
        self._spent, self._pending = log.Spent(), set[int]()
        self.counters: Counter[str] = Counter()
        self.warnings: list[str] = []
        for path in folder.spent.glob("batch-*.parquet"):
            for serial in read_spent(path).tolist():
                self._spent.add(serial)
        self._log = self._opened()
        self.open = folder.open_stage()

    def _opened(self) -> log.Log:
        """The log to write to: the last one; earlier ones are sealed first."""
        numbers = log_numbers(self._folder.reports)
        for number in numbers:
            opened = log.Log(self._folder.reports / log_name(number), self._disk)
            sealed = (self._folder.spent / f"batch-{number}.parquet").exists()
            self.warnings += opened.warnings
            for body in opened.bodies:
                self._spent.add(self._serial_of(body, opened.path))
            if number == numbers[-1] and not sealed and opened.records < self._seal_every:
                return opened
            opened.close()
            if opened.bodies and not sealed:
                seal(self._folder.reports, self._folder.spent, number, opened.bodies)
            else:
                opened.path.unlink()
        return self._new_log()

    def _serial_of(self, body: bytes, path: Path) -> int:
        """The serial number of a report's token, which must be one of this folder."""
        try:
            return self._folder.tokens.serial_of(log.Report.from_bytes(body).token)
        except ReportError:
            raise CampaignError(
                f"{path} has reports of another folder's campaign: move it there"
            ) from None

    def _new_log(self) -> log.Log:
        """A log of a number that no batch has."""
        batches = (path.stem.split("-")[1] for path in self._folder.spent.glob("batch-*.parquet"))
        used = [*log_numbers(self._folder.reports), *map(int, batches), 0]
        return log.Log(self._folder.reports / log_name(max(used) + 1), self._disk)

    def follow_stage(self) -> None:
        """Take the reports of the stage that was signed last."""
        if self.open.number + 1 == self.stages:
            return
        if self._folder.current_stage != self.open.number:
            self.open = self._folder.open_stage()

    def check(self, message: bytes) -> int:
        """Check a report that arrived, and hold its token until it is settled; its serial number.

        Raises
        ------
        ReportError : for a report that is not counted, with the reason.
        """
        now = self._clock()
        if not self._terms.opens <= now < self._terms.closes:
            raise ReportError("closed", "the campaign takes no reports at this time")
        stage, size = self.open.number, self.open.size
        if len(message) != size:
            sentence = f"a report of stage {stage} has {size} bytes, got {len(message)}"
            raise ReportError("size", sentence)
        try:
            report = log.Report.from_bytes(message)
        except ValueError as error:
            raise ReportError("form", str(error)) from None
        if report.campaign != self._prefix:
            raise ReportError("campaign", "the report is of another campaign")
        if report.stage != stage:
            raise ReportError("stage", f"stage must be {stage}, got {report.stage}")
        serial = self._folder.tokens.serial_of(report.token)
        if serial in self._pending:
            raise ReportError("busy", "the same token is being stored: ask again")
        if serial in self._spent:
            raise ReportError("replayed", "the token was spent before")
        self._pending.add(serial)
        return serial

    def settle(self, serial: int, stored: bool) -> None:
        """Spend a token that ``check`` held, or give it back."""
        self._pending.discard(serial)
        if stored:
            self._spent.add(serial)

    def store(self, messages: Sequence[bytes]) -> list[str]:
        """Write a group of checked reports; what becomes of each: ``"accepted"``, or a reason.

        Raises
        ------
        OSError : when the disk failed; no report of the group is stored then.
        """
        stage = self.open
        outcomes = ["stage" if each[log.STAGE_PLACE] != stage.number else "" for each in messages]
        current = [index for index, outcome in enumerate(outcomes) if not outcome]
        joined = b"".join(messages[index] for index in current)
        reports = np.frombuffer(joined, dtype=np.uint8).reshape(-1, stage.size)
        refused = self._terms.reports.refused(stage.query, reports[:, log.REPORT_HEADER.size :])
        with self._folder.locked(alone=False):
            closed = self._folder.closed(stage.number)
            for index, is_refused in zip(current, refused, strict=True):
                outcomes[index] = "payload" if is_refused else "stage" if closed else ACCEPTED
            taken = [
                message
                for message, each in zip(messages, outcomes, strict=True)
                if each == ACCEPTED
            ]
            if taken:
                self._append(taken)
        return outcomes

    def _append(self, bodies: list[bytes]) -> None:
        if self._log.failed:
            self._replace_log()
        self._log.append(bodies)
        if self._log.records >= self._seal_every:
            self._seal()

    def _replace_log(self) -> None:
        """After a fault: a new file, for nothing is known of what fsync says about the old one.

        The old one is cut first: its group comes again, and would count in both.
        """
        self._log.cut()
        new = self._new_log()
        self._log.close()
        self._log = new

    def _seal(self) -> None:
        """Seal the log that is full; where that fails, a later group or the next start does it.

        Its reports are stored already: a fault here must not have them sent again. A log that is
        damaged stays as it is, and stops the next start.
        """
        try:
            full, self._log = self._log, self._new_log()
            full.close()
            number = int(full.path.stem.split("-")[1])
            seal(self._folder.reports, self._folder.spent, number, log.read_log(full.path))
        except (OSError, CampaignError):
            self.counters["not sealed"] += 1

    def close(self) -> None:
        """Close the log; what it holds is stored already."""
        self._log.close()
