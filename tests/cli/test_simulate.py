"""``tacit simulate``: one report of every record, in any number of processes."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result

from tacit.cli import shell
from tests import terminal
from tests.collecting.support import records_of

USTATISTIC = ("--protocol", "ustatistic", "--kernel", "auc", "--epsilon", "2")


def written(folder: Path, count: int = 3000) -> str:
    clients = records_of(count)
    table = pa.table({"score": clients.scores, "label": clients.labels})
    pq.write_table(table.slice(0, count // 2), folder / "a.parquet")
    pq.write_table(table.slice(count // 2), folder / "b.parquet")
    return str(folder / "*.parquet")


def simulated(*arguments: str) -> Result:
    return terminal.run("simulate", *arguments)


def test_a_pattern_gives_one_result_whatever_the_workers(tmp_path: Path) -> None:
    pattern = written(tmp_path)
    texts = {
        simulated(pattern, *USTATISTIC, "--seed", "3", "--json", "--workers", number).stdout
        for number in ("1", "2")
    }
    assert len(texts) == 1
    result = json.loads(texts.pop())
    assert result["clients"] == 3000
    assert result["noise"] == "simulated"
    assert 0.7 < result["auc"]["value"] < 0.85


def test_scores_in_percent_are_converted(tmp_path: Path) -> None:
    clients = records_of(2000)
    for name, factor in (("percent", 100.0), ("probability", 1.0)):
        table = pa.table({"score": factor * clients.scores, "label": clients.labels})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    more = ("--protocol", "two-round-auc", "--epsilon", "4", "--seed", "1")
    percent, probability = (
        terminal.content_of("simulate", tmp_path / f"{unit}.parquet", "--unit", unit, *more)
        for unit in ("percent", "probability")
    )
    assert percent["auc"]["value"] == pytest.approx(probability["auc"]["value"], abs=0.01)


def test_no_signal_has_its_exit_status(tmp_path: Path) -> None:
    settings = ("--protocol", "hierarchical-auc", "--epsilon", "0.01", "--seed", "1")
    made = simulated(written(tmp_path, 40), *settings)
    assert (made.exit_code, made.stderr) == (3, "")
    assert "this is a simulation: every record is taken for a client" in made.output


def test_progress_is_shown_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with shell.progress_of(1000, "reports") as told:
        told(400)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with shell.progress_of(1000, "reports") as told:
        told(400)
        told(900)  # a last block is shorter than others
    shown = capsys.readouterr().err
    assert "400/1000" in shown
    assert "1000/1000" in shown
    assert "rows/s" in shown


def on_terminal(folder: Path, *arguments: str) -> tuple[subprocess.Popen[bytes], int]:
    """The command on a terminal of its own, with a temporary folder of its own."""
    leader, follower = pty.openpty()
    temporary = folder / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-c", "from tacit.cli import main; main()", "simulate", *arguments]
    process = subprocess.Popen(
        command,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**os.environ, "TMPDIR": str(temporary)},
        start_new_session=True,
    )
    os.close(follower)
    return process, leader


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interrupt_ends_it_in_one_line_without_files(tmp_path: Path, workers: str) -> None:
    """All processes of the terminal get the interrupt, once it shows that reports are drawn."""
    settings = ("--protocol", "hierarchical-auc", "--epsilon", "1", "--workers", workers)
    process, leader = on_terminal(tmp_path, written(tmp_path, 4_000_000), *settings)
    shown = b""
    while b"rows/s" not in shown.split(b"0/4000000")[-1] or b"0/4000000" not in shown:
        shown += os.read(leader, 4096)
    os.killpg(process.pid, signal.SIGINT)
    shown = drained(leader)
    assert process.wait(60) == 130
    assert b"Traceback" not in shown
    assert shown.strip().splitlines()[-1].strip().endswith(b"tacit: interrupted")
    assert list((tmp_path / "temporary").iterdir()) == []


def drained(leader: int) -> bytes:
    """What the terminal still shows until its last process ends."""
    shown, start = b"", time.monotonic()
    while time.monotonic() - start < 60:
        try:
            shown += os.read(leader, 4096)
        except OSError:
            break
    return shown
