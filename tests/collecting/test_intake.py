"""Taking reports: each refusal, restarts, sealed batches and how they are counted, and stages."""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from tacit import files
from tacit.cli.collecting import serve_campaign
from tacit.collecting import folder as folders
from tacit.collecting import service
from tacit.collecting.campaign import CampaignError, ReportError, evaluation_of, stage_query
from tacit.collecting.folder import (
    Folder,
    StoredReports,
    log_name,
    parts_of_batch,
    read_spent,
    stages_of,
    write_batch,
)
from tacit.collecting.intake import ACCEPTED, Intake
from tacit.collecting.log import REPORT_HEADER, STAGE_PLACE, read_log
from tacit.privacy.noise import SimulatedNoise
from tests.collecting import support
from tests.terminal import run

CAMPAIGN = Path(__file__).parents[2] / "examples" / "phone" / "campaign.toml"


def taken(intake: Intake, messages: list[bytes]) -> list[bool]:
    """Check, store and settle a group, as the service does; which were accepted."""
    serials = [intake.check(message) for message in messages]
    stored = [outcome == ACCEPTED for outcome in intake.store(messages)]
    for serial, each in zip(serials, stored, strict=True):
        intake.settle(serial, each)
    return stored


def collected(folder: Folder) -> list[bytes]:
    """All payloads, in ascending order."""
    return sorted(bytes(each) for stage in support.stored_payloads(folder) for each in stage)


def payloads_in(messages: list[bytes]) -> list[bytes]:
    """The payloads of reports, in ascending order."""
    return sorted(message[REPORT_HEADER.size :] for message in messages)


def changed(message: bytes, place: int) -> bytes:
    return message[:place] + bytes([message[place] ^ 1]) + message[place + 1 :]


MISTAKES: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    ("size", lambda message: message[:-1]),
    ("size", lambda message: message + b"\x00"),
    ("size", lambda message: b""),
    ("form", lambda message: b"TXXX" + message[4:]),
    ("form", lambda message: changed(message, 4)),
    ("campaign", lambda message: changed(message, 6)),
    ("stage", lambda message: changed(message, STAGE_PLACE)),
    ("token", lambda message: changed(message, STAGE_PLACE + 1)),
    ("token", lambda message: changed(message, REPORT_HEADER.size - 1)),
)


def refusal(intake: Intake, message: bytes) -> str:
    with pytest.raises(ReportError) as caught:
        intake.check(message)
    return caught.value.reason


@pytest.mark.parametrize(("reason", "mistake"), MISTAKES)
def test_refused_reports(folder: Folder, reason: str, mistake: Callable[[bytes], bytes]) -> None:
    year = [2020]
    intake = Intake(folder, clock=lambda: datetime(year[0], 1, 1, tzinfo=UTC))
    (message,) = support.messages_of(folder, 1)
    assert refusal(intake, mistake(message)) == reason
    for year[0] in (2019, 2101):
        assert refusal(intake, message) == "closed"
    year[0] = 2099
    assert taken(intake, [message]) == [True]


def test_a_token_is_spent_once_also_after_a_restart(folder: Folder) -> None:
    intake, messages = Intake(folder, seal_every=5), support.messages_of(folder, 8)
    assert all(taken(intake, messages[:5]) + taken(intake, messages[5:7]))
    intake.close()
    again = Intake(Folder(folder.path), seal_every=5)
    for message in messages[:7]:
        with pytest.raises(ReportError, match="spent before"):
            again.check(message)
    assert taken(again, messages[7:]) == [True]
    assert len(collected(folder)) == 8


def further(folder: Folder, path: Path) -> Folder:
    """A further collector's folder, which begins with the signed campaign."""
    path.mkdir()
    shutil.copy(folder.path / "campaign.json", path)
    made = Folder(path)
    made.signed(folder.campaign.terms)
    return made


def test_a_token_is_spent_once_whichever_collector_it_reaches(tmp_path: Path) -> None:
    first = support.new_folder(tmp_path)
    folders, every = [first, further(first, tmp_path / "north")], list[bytes]()
    intakes = [Intake(folder, seal_every=3) for folder in folders]
    for folder, count, intake, other in zip(folders, (3, 5), intakes, intakes[::-1], strict=True):
        every += (messages := support.messages_of(folder, count, seed=count))
        assert {refusal(other, each) for each in messages} == {"token"}
        assert all(
            stored for part in (messages[:3], messages[3:]) for stored in taken(intake, part)
        )
        assert {refusal(intake, each) for each in messages} == {"replayed"}
    (both,) = stages_of(folders)
    sealed = [part for file in both.files for part in parts_of_batch(file)]
    assert sorted(map(bytes, np.concatenate([both.opened, *sealed]))) == payloads_in(every)
    shown = run("collect", "estimate", "--json", *(folder.path for folder in folders))
    assert json.loads(shown.stdout)["clients"] == 8
    # a copy of a whole folder would take each token again
    copy = Folder(Path(shutil.copytree(first.path, tmp_path / "copy")))
    another = support.new_folder(tmp_path / "another")
    for late, words in ((copy, "same key"), (first, "same key"), (another, "different")):
        with pytest.raises(CampaignError, match=words):
            stages_of([*folders, late])
    placed = support.new_folder(tmp_path / "placed", support.terms_of(support.DOUBLE[1]))
    with pytest.raises(CampaignError, match="stages are signed where"):
        further(placed, tmp_path / "late")


def test_a_token_is_held_while_its_report_is_stored(folder: Folder) -> None:
    intake, (message,) = Intake(folder), support.messages_of(folder, 1)
    serial = intake.check(message)
    with pytest.raises(ReportError) as caught:
        intake.check(message)
    assert caught.value.reason == "busy"
    intake.settle(serial, stored=False)
    assert taken(intake, [message]) == [True]


def test_a_payload_of_nobody_is_not_stored(folder: Folder) -> None:
    intake, (good, other) = Intake(folder), support.messages_of(folder, 2)
    bad = other[: REPORT_HEADER.size] + b"\xff" * (len(other) - REPORT_HEADER.size)
    assert taken(intake, [good, bad]) == [True, False]
    assert taken(intake, [other]) == [True]
    assert len(collected(folder)) == 2


def test_a_sealed_batch_holds_the_reports_without_their_order(folder: Folder) -> None:
    """The chance that 200 reports stay in their order is 1 in 200!."""
    intake, messages = Intake(folder, seal_every=200), support.messages_of(folder, 200)
    taken(intake, messages)
    sent = [message[REPORT_HEADER.size :] for message in messages]
    sealed = [
        bytes(each)
        for part in parts_of_batch(folder.reports / "batch-1-0.parquet")
        for each in part
    ]
    assert sorted(sealed) == sorted(sent)
    assert sealed != sent
    assert read_spent(folder.spent / "batch-1.parquet").tolist() == list(range(200))
    assert [path.name for path in folder.reports.glob("log-*")] == [log_name(2)]


@pytest.mark.parametrize("calls", range(10))
def test_sealing_is_interrupted(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    """Whatever was written when the process died, each report is there once, then and later."""
    intake, messages = Intake(folder, seal_every=100), support.messages_of(folder, 20)
    taken(intake, messages)
    intake.close()
    left = [calls]

    def dying(name: str, function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt(name)
            return function(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        for module, name in ((folders, "_write"), (files, "sync")):
            patch.setattr(module, name, dying(name, getattr(module, name)))
        with contextlib.suppress(KeyboardInterrupt):
            Intake(Folder(folder.path), seal_every=10)
    expected = payloads_in(messages)
    assert collected(folder) == expected
    again = Intake(Folder(folder.path), seal_every=10)
    assert collected(folder) == expected
    with pytest.raises(ReportError, match="spent before"):
        again.check(messages[0])
    assert not list(folder.reports.glob(log_name(1)))


def test_a_group_counts_once_where_a_failed_log_could_not_be_cut_at_once(folder: Folder) -> None:
    """It may be whole in the failed log: nobody may send it again before it is gone from there."""
    faults = set[str]()
    intake, messages = Intake(folder, disk=support.faulty(faults)), support.messages_of(folder, 3)
    faults |= {"fsync", "truncate"}
    for message in messages:
        intake.check(message)
    for repaired in ("fsync", "truncate"):
        with pytest.raises(OSError, match="No space left"):
            intake.store(messages)
        faults.remove(repaired)
    assert intake.store(messages) == ["accepted"] * 3
    intake.close()
    assert len(collected(folder)) == 3


def test_a_flipped_bit_in_a_sealed_batch_is_refused(tmp_path: Path) -> None:
    """Else tokens that were spent are taken again, and payloads change without a word."""
    payloads = np.random.default_rng(0).integers(0, 256, (41, 2)).astype(np.uint8)
    folders.write_batch(
        tmp_path, tmp_path, 1, [payloads], np.arange(0, 40_000, 977, dtype=np.uint64)
    )
    for name, read in (("batch-1-0", lambda p: list(parts_of_batch(p))), ("batch-1", read_spent)):
        path = tmp_path / f"{name}.parquet"
        content, column = path.read_bytes(), pq.read_metadata(path).row_group(0).column(0)
        end = (column.dictionary_page_offset or 4) + column.total_compressed_size
        # the last page, with the end of its header
        for bit in range(8 * (end - 40), 8 * end):
            changed = bytearray(content)
            changed[bit // 8] ^= 1 << bit % 8
            path.write_bytes(changed)
            with pytest.raises((OSError, ValueError)):
                read(path)


def test_a_full_disk_loses_no_report(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The group that fills a log is stored, also where there is no room for another log."""
    intake, messages = Intake(folder, seal_every=3), support.messages_of(folder, 4)
    with monkeypatch.context() as patch:
        patch.setattr(Intake, "_new_log", lambda _: support.faulty({"fsync"}).fsync(0))
        assert taken(intake, messages[:3]) == [True, True, True]
    assert intake.counters["not sealed"] == 1
    assert taken(intake, messages[3:]) == [True]
    assert collected(folder) == collected(Folder(folder.path)) == payloads_in(messages)
    assert (folder.spent / "batch-1.parquet").exists()


def test_a_log_that_is_damaged_before_it_is_sealed_stays_and_reports_go_on(folder: Folder) -> None:
    """A fault that no retry mends must not end the one task that writes for everybody."""
    intake, messages = Intake(folder, seal_every=3), support.messages_of(folder, 5)
    taken(intake, messages[:2])
    log = folder.reports / log_name(1)
    content = bytearray(log.read_bytes())
    content[0] ^= 1
    log.write_bytes(content)
    assert taken(intake, messages[2:3]) == [True]
    assert intake.counters["not sealed"] == 1
    assert taken(intake, messages[3:]) == [True, True]
    with pytest.raises(CampaignError, match="damaged at byte 0"):
        Intake(Folder(folder.path), seal_every=3)


@pytest.mark.parametrize("listing", range(3))
def test_reading_while_a_batch_is_sealed_counts_each_report_once(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, listing: int
) -> None:
    """A log is sealed after one of the listings of a reader."""
    intake, messages = Intake(folder), support.messages_of(folder, 6)
    taken(intake, messages)
    intake.close()
    listed, left = Path.iterdir, [listing]

    def sealing(path: Path) -> Iterator[Path]:
        entries = list(listed(path))
        left[0] -= 1
        if left[0] == -1:
            log = folder.reports / log_name(1)
            folders.seal(folder.reports, folder.spent, 1, read_log(log))
        return iter(entries)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "iterdir", sealing)
        found = collected(folder)
    assert found == payloads_in(messages)


def test_a_log_of_another_campaign_is_refused(tmp_path: Path) -> None:
    """Logs have names that are the same everywhere; somebody may have copied one."""
    folders = [support.new_folder(tmp_path / name) for name in ("here", "there")]
    for folder in folders:
        intake = Intake(folder)
        taken(intake, support.messages_of(folder, 2))
        intake.close()
    here, there = (folder.reports / log_name(1) for folder in folders)
    here.write_bytes(there.read_bytes())
    with pytest.raises(CampaignError, match=r"log-1\S* has reports of another"):
        Intake(folders[0])


def test_a_folder_has_one_collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second one would cut the log that the first one writes, and take its tokens again."""
    monkeypatch.setattr(service, "serve", lambda *arguments: None)
    start = [str(CAMPAIGN), "--folder", str(tmp_path)]
    assert CliRunner().invoke(serve_campaign, start).exit_code == 0
    with Folder(tmp_path).owned():
        second = CliRunner().invoke(serve_campaign, start)
    assert isinstance(second.exception, CampaignError)
    assert "another collector" in str(second.exception)
    assert CliRunner().invoke(serve_campaign, start).exit_code == 0


def test_a_report_that_a_crash_cut_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "serve", lambda *arguments: None)
    start = [str(CAMPAIGN), "--folder", str(tmp_path)]
    CliRunner().invoke(serve_campaign, start)
    folder = Folder(tmp_path)
    intake, messages = Intake(folder), support.messages_of(folder, 3)
    taken(intake, messages)
    intake.close()
    path = folder.reports / log_name(1)
    path.write_bytes(path.read_bytes()[:-1])
    said = CliRunner().invoke(serve_campaign, start).output
    assert said.count("warning: ") == 1
    assert "never acknowledged" in said
    assert "warning: " not in CliRunner().invoke(serve_campaign, start).output
    again = Intake(Folder(tmp_path))
    assert again.warnings == []
    assert taken(again, messages[2:]) == [True]
    assert len(collected(folder)) == 3


@pytest.mark.parametrize("case", support.DOUBLE, ids=str)
def test_stages_follow_one_another(tmp_path: Path, case: tuple[str, dict[str, object]]) -> None:
    folder = support.new_folder(tmp_path, support.terms_of(case))
    intake = Intake(folder, seal_every=300)
    early = support.messages_of(folder, 500)
    taken(intake, early[:400])
    with pytest.raises(CampaignError, match="needs the reports of 2 stages, got 1"):
        evaluation_of(folder.campaign, folder.stages(), 40)
    held = intake.check(early[400])
    signed = folder.next_stage()
    assert intake.store([early[400]]) == ["stage"]
    intake.follow_stage()
    assert intake.store([early[400]]) == ["stage"]
    intake.settle(held, stored=False)
    late = support.messages_of(folder, 3000, stage=1, seed=1)
    assert refusal(intake, early[450]) in ("stage", "size")
    assert all(taken(intake, late))
    assert signed.content["stage"] == 1
    assert [each.shape[0] for each in support.stored_payloads(folder)] == [400, 3000]
    result = evaluation_of(folder.campaign, folder.stages(), 40)
    assert abs(result.estimate.value - 0.76) < 5 * result.estimate.privacy_error + 0.05
    with pytest.raises(CampaignError, match="the last one is open"):
        folder.next_stage()


def test_a_stage_stays_open_where_nobody_can_sign_the_next_one(tmp_path: Path) -> None:
    """Its key may have been moved to another machine: no other key is made in its place."""
    folder = support.new_folder(tmp_path, support.terms_of(support.DOUBLE[1]))
    intake, messages = Intake(folder), support.messages_of(folder, 2)
    key = folder.coordinator_key.read_text(encoding="ascii")
    folder.coordinator_key.unlink()
    with pytest.raises(CampaignError, match=r"coordinator\.key does not exist"):
        folder.next_stage()
    assert not folder.coordinator_key.exists()
    folder.coordinator_key.write_text(key[::-1], encoding="ascii")
    with pytest.raises(CampaignError, match="not the key that signed"):
        folder.next_stage()
    assert not folder.closed(0)
    assert taken(intake, messages) == [True, True]


def test_what_was_signed_is_what_the_estimate_uses(tmp_path: Path) -> None:
    """The second query follows from the reports of the first stage alone: it can be made again."""
    folder = support.new_folder(tmp_path, support.terms_of(support.DOUBLE[1]))
    intake = Intake(folder)
    taken(intake, support.messages_of(folder, 300))
    signed = folder.next_stage().content["report"]
    again = folder.campaign.terms.reports.instructions(folder.query(1))
    assert np.allclose(signed["grid"], again["grid"], rtol=1e-12)


SIZES = (0, 1, 40, 3, 7, 1, 90, 12)


def test_every_file_is_counted_once(tmp_path: Path) -> None:
    """Whether fewer or more than there are processors, with reports in logs or without."""
    terms = support.terms_of()
    (payloads,) = support.all_payloads(terms, support.records_of(sum(SIZES)), SimulatedNoise(0))
    query, serials = stage_query(terms, []), np.zeros(0, dtype=np.uint64)
    opened, *sealed = np.split(payloads, np.cumsum(SIZES[1:])[:-1])
    for number, part in enumerate(sealed):
        write_batch(tmp_path, tmp_path, number, [part], serials)
    files = tuple(sorted(tmp_path.glob("batch-*-0.parquet")))
    assert len(files) == len(sealed)
    for count in range(len(files) + 1):
        read = [part for file in files[:count] for part in parts_of_batch(file)]
        for there in (opened, opened[:0]):
            stored = StoredReports(files[:count], there)
            expected = terms.reports.counts(query, np.concatenate([there, *read]))
            np.testing.assert_array_equal(stored.counts(terms.reports, query), expected)
            assert len(stored) == len(there) + sum(map(len, read))


def test_an_error_of_reading_is_raised_and_no_thread_stays(tmp_path: Path) -> None:
    damaged = tmp_path / "batch-1-0.parquet"
    damaged.write_bytes(b"PAR1 no batch PAR1")
    terms = support.terms_of()
    stored = StoredReports((damaged,), np.zeros((0, 1), dtype=np.uint8))
    with pytest.raises(ValueError, match="Parquet"):
        stored.counts(terms.reports, stage_query(terms, []))
    assert not [each for each in threading.enumerate() if each.name.startswith("tacit-counting")]
