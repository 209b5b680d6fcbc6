"""The command that this distribution adds: its tables, errors, interrupts and examples."""

from __future__ import annotations

import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit_studies.command import reproduce
from tests.cli.test_help import examples
from tests.terminal import in_python, refusal_of, run, strict_json, succeeded


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with records whose columns have names of their own, and with a file."""
    scores, labels = tacit.binormal_scores(1500, 3500, 0.8, seed=0)
    pq.write_table(pa.table({"risk": scores, "died": labels}), tmp_path / "named.parquet")
    (tmp_path / "north.csv").write_text("score,label\n0.5,0\n0.7,1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_list_of_tables() -> None:
    result = succeeded(run("reproduce", "list"))
    assert re.search(r"^fedauc-table-1 +\S", result.stdout, re.MULTILINE)
    assert re.search(r"^dpauc-table-4 +\S", result.stdout, re.MULTILINE)


def test_a_table_is_printed_and_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "rows.json"
    result = succeeded(run("reproduce", "fedauc-figure-8", "--repeats", 1, "--json", path))
    assert result.stderr == ""
    assert "synthetic scores" in result.stdout
    assert "percentile 50" in result.stdout
    rows = strict_json(path.read_text())
    assert {"table", "row", "column", "paper", "ours", "ratio"} == set(rows[0])
    assert [path] == list(path.parent.iterdir())


def test_a_table_of_real_scores(folder: Path) -> None:
    named = ("--scores", "named.parquet", "--score", "risk", "--label", "died")
    assert "scores from named.parquet" in run("reproduce", "fedauc-figure-8", *named).stdout


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ("fedauc-table-99", "tacit reproduce list"),
        ("fedauc-figure-8 --scores absent.csv", "does not exist"),
        ("fedauc-figure-8 --repeats 0", "--repeats"),
        ("fedauc-figure-8 --json=.", "cannot be written"),
        ("fedauc-figure-8 --json north.csv/rows.json", "cannot be written"),
    ],
)
def test_bad_requests_for_tables(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, part: str
) -> None:
    monkeypatch.setattr("tacit_studies.command._measure", lambda *given: pytest.fail("measured"))
    assert part in refusal_of(run("reproduce", *arguments.split()))


def test_a_table_is_interrupted_at_once() -> None:
    script = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from tacit.cli import main; main(['reproduce', 'fedauc-table-6'])"
    )
    terminal, other = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.DEVNULL, stderr=other
    ) as running:
        os.close(other)
        seen = b""
        while b"fedauc-table-6" not in seen:
            seen += os.read(terminal, 1024)
        running.send_signal(signal.SIGINT)
        with suppress(OSError):
            while text := os.read(terminal, 1024):
                seen += text
        assert running.wait() == 130
    assert b"100%" not in seen
    os.close(terminal)


def test_an_interrupt_while_a_line_is_written_ends_with_its_status() -> None:
    """The buffer of standard error is then in use, and refuses what a signal's handler writes."""
    script = (
        "import io, signal, sys\n"
        "from tacit.cli.shell import prompt_interrupt\n"
        "class Interrupting(io.RawIOBase):\n"
        "    def writable(self): return True\n"
        "    def write(self, text): signal.raise_signal(signal.SIGINT); return len(text)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "sys.stderr = io.TextIOWrapper(io.BufferedWriter(Interrupting()))\n"
        "with prompt_interrupt():\n"
        "    print('a line', file=sys.stderr, flush=True)\n"
    )
    ended = in_python(script)
    assert (ended.returncode, ended.stderr) == (130, "tacit: interrupted\n")


def test_help_shows_the_examples_on_lines_of_their_own() -> None:
    shown = run("reproduce", "-h").stdout
    assert len(examples(reproduce)) >= 2
    assert set(examples(reproduce)) <= {line.strip() for line in shown.splitlines()}


@pytest.mark.parametrize("line", examples(reproduce))
def test_the_examples_run(folder: Path, line: str) -> None:
    result = succeeded(run(*shlex.split(line)[1:]))
    assert result.stdout
