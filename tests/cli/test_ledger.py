"""``tacit ledger``: show, limit, verify, export."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import Result

from tacit.cli.ledger import ledger
from tacit.ledger.entries import Entry, LimitError
from tacit.ledger.ledger import Ledger
from tacit.privacy.cost import UNPROTECTED, Adjacency, Cost
from tests import terminal


def run(*arguments: object) -> Result:
    return terminal.run("ledger", *arguments)


def spend(path: Path, cost: Cost, times: int, dataset: str = "registry") -> None:
    with Ledger(path) as opened:
        for number in range(times):
            records = dataset.encode().ljust(32)
            session = f"{dataset} {number}"
            opened.debit(Entry(dataset, records, "fedauc", "0", session, bytes(32), cost))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with a limit at label adjacency, 20 debits of 0.1 and a refusal."""
    path = tmp_path / "ledger.db"
    arguments = ("--dataset", "registry", "--epsilon", 2, "--period", "365d")
    assert run("limit", path, *arguments, "--adjacency", "label").exit_code == 0
    cost = Cost(0.1, adjacency=Adjacency.LABEL)
    with pytest.raises(LimitError):
        spend(path, cost, 21)
    return path


def test_it_prints_sums_and_tightest_bounds(path: Path) -> None:
    shown = run("show", path)
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert "22: 20 debits, 1 refusals, 1 limits" in shown.stdout
    with Ledger.open_readonly(path) as pages:
        assert f"head     {pages.head.hex()}" in shown.stdout
    rows = [line.split() for line in shown.stdout.splitlines() if line.startswith("registry")]
    (limit, *runs), rows = rows[:21], rows[21:]
    assert limit == ["registry", "label", "365", "days", "2", "0", "basic", "2", "0", "0.1"]
    assert runs[0][4:] == ["registry", "fedauc", "1", "0.1", "0", "0"]
    assert runs[-1][-4:] == ["0", "0", "0", "1"]
    assert "the last 20 of 21; all: tacit ledger export" in shown.stdout
    label = rows[0]
    assert label[:5] == ["registry", "label", "20", "2", "0"]
    loose, tight = (
        float(run("show", path, "--delta", delta).stdout.split("registry")[-4].split()[4])
        for delta in (1e-9, 1e-3)
    )
    assert tight < loose
    assert 1.5 < float(label[5]) < 2.0
    assert label[6:8] == ["1e-06", "pld"]
    # 20 mus of 0.1, and what an attack gains by them
    assert float(label[8]) == pytest.approx(math.sqrt(20) * Cost(0.1).mu, rel=1e-4)
    assert float(label[9]) == pytest.approx(0.221, abs=1e-3)
    assert [row[1:6] for row in rows[1:4]] == [
        [hidden, "20", "unlimited", "0", "unlimited"] for hidden in ("record", "replace", "score")
    ]


def test_an_empty_ledger_and_a_clock_that_lags_are_told(tmp_path: Path) -> None:
    times, path = iter((2e9, 1e9)), tmp_path / "ledger.db"
    with Ledger(path, clock=lambda: next(times)) as opened:
        assert "none yet" in run("show", path).stdout
        opened.limit("registry", 1.0)
        opened.limit("registry", 2.0)
    assert "clock    behind the ledger's own time in 1 entries" in run("show", path).stdout


def test_several_data_sets_are_also_shown_together(path: Path) -> None:
    run("limit", path, "--dataset", "open data", "--epsilon", "inf")
    spend(path, UNPROTECTED, 2, "open data")
    shown = run("show", path).stdout
    assert "(all together)  label    22" in shown
    assert "open data       record   2       unlimited" in shown
    alone = run("show", path, "--dataset", "registry").stdout
    assert "open data" not in alone
    assert "together)" not in alone


def test_errors_are_one_sentence(path: Path, tmp_path: Path) -> None:
    for arguments, sentence in (
        (("show", path, "--dataset", "x"), "the ledger has no data set 'x'"),
        (("show", tmp_path / "none.db"), "none.db: No such file or directory"),
        (("show", path, "--delta", "1"), "1.0 is not in the range 0<=x<1"),
    ):
        assert sentence in terminal.refusal_of(run(*arguments))


@pytest.mark.parametrize("command", ["show", "verify", "export"])
def test_what_is_no_file_is_no_ledger(tmp_path: Path, command: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    held = os.open(tmp_path / "pipe", os.O_RDWR)  # nobody who opens it waits for another
    try:
        for path in (tmp_path, tmp_path / "pipe"):
            result = run(command, path)
            assert result.exit_code in (1, 2)
            assert f"{path} is not a ledger: it is no regular file" in result.output
    finally:
        os.close(held)


@pytest.mark.parametrize(("period", "days"), [("52w", 364), ("99999y", 99_999 * 365), ("48h", 2)])
def test_it_makes_a_ledger(tmp_path: Path, period: str, days: int) -> None:
    path = tmp_path / "ledger.db"
    result = run("limit", path, "--dataset", "registry", "--epsilon", 3, "--period", period)
    assert result.exit_code == 0
    with Ledger.open_readonly(path) as pages:
        (line,) = pages.lines()
        first, limit, head = result.stdout.splitlines()
        assert (first, head) == ("entry 1: limit set", f"head {pages.head.hex()}")
        assert limit == f"allows epsilon 3 in any {days} days at record adjacency; 0 spent"
    assert (line.limit.epsilon, line.limit.adjacency) == (3.0, Adjacency.RECORD)
    assert line.limit.period == timedelta(days)


@pytest.mark.parametrize(
    ("epsilon", "period", "reason"),
    [
        *((3, period, "like 30m, 12h") for period in ("0d", "-1d", "d", "1.5h", "", "100000y")),
        (-1, "1y", "a limit's epsilon must be positive, got -1.0"),
    ],
)
def test_bad_limits_make_no_ledger(tmp_path: Path, epsilon: int, period: str, reason: str) -> None:
    arguments = ("--dataset", "registry", "--epsilon", epsilon, "--period", period)
    assert reason in terminal.refusal_of(run("limit", tmp_path / "ledger.db", *arguments))
    assert not list(tmp_path.iterdir())


def test_a_ledger_that_verifies(path: Path) -> None:
    with Ledger.open_readonly(path) as pages:
        heads = [line.hash.hex() for line in pages.lines()]
    for arguments in ((), ("--head", heads[3]), ("--head", heads[-1].upper())):
        result = run("verify", path, *arguments)
        assert result.exit_code == 0
        assert result.stdout == f"{path} verifies: 22 entries\nhead {heads[-1]}\n"


def test_a_ledger_that_does_not(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE entries SET epsilon = 0.01 WHERE number = 7")
    said = broken("verify", path)
    assert "does not verify: entry 7 was changed" in said
    assert said.count("\n") == 1
    assert run("show", path).exit_code == 2
    assert run("export", path).exit_code == 0


def broken(*arguments: object) -> str:
    """What is said of a ledger that does not verify."""
    result = run(*arguments)
    assert result.exit_code == 1
    return result.stdout


def test_heads_of_other_ledgers_and_what_is_no_ledger(path: Path, tmp_path: Path) -> None:
    foreign = broken("verify", path, "--head", "ab" * 32)
    assert "none of its 22 entries has the head abab" in foreign
    (tmp_path / "text").write_text("score,label\n")
    said = broken("verify", tmp_path / "text")
    assert "text cannot be used as a ledger: file is not a database" in said
    for head in ("ab", "x" * 64):
        sentence = terminal.refusal_of(run("verify", path, "--head", head))
        assert "a head is 64 hexadecimal digits" in sentence


def test_json_holds_every_field(path: Path) -> None:
    content = json.loads(run("export", path).stdout)
    with Ledger.open_readonly(path) as pages:
        lines = pages.lines()
    assert len(content) == 22
    assert [one["hash"] for one in content] == [line.hash.hex() for line in lines]
    assert content[1]["epsilon"] == 0.1
    assert content[1]["adjacency"] == "label"
    assert content[0]["period"] == 365 * 86_400 * 10**6
    assert (content[-1]["kind"], content[-1]["reason"]) == ("refusal", "LimitError")


@pytest.mark.parametrize("name", ['=HYPERLINK("http://x")', "+1+1", "-2", "@SUM(A1)", "registry"])
def test_no_cell_of_csv_is_a_formula(tmp_path: Path, name: str) -> None:
    """Whoever names a data set, or a protocol in a plan, writes into others' spreadsheets."""
    with pytest.raises(LimitError):
        spend(tmp_path / "ledger.db", Cost(0.1, adjacency=Adjacency.LABEL), 1, name)
    table = run("export", tmp_path / "ledger.db", "--format", "csv").stdout
    (row,) = csv.DictReader(io.StringIO(table))
    assert row["dataset"] == (name if name == "registry" else f"'{name}")
    assert not any(str(cell).startswith(("=", "+", "-", "@")) for cell in row.values())
    assert float(row["epsilon"]) == 0.1
    (reported,) = json.loads(run("export", tmp_path / "ledger.db").stdout)
    assert reported["dataset"] == name


def test_csv_says_the_same(path: Path, tmp_path: Path) -> None:
    run("limit", path, "--dataset", "registry", "--epsilon", "inf")
    file = tmp_path / "ledger.csv"
    assert run("export", path, "--format", "csv", "--output", file).stdout == ""
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    content = json.loads(run("export", path).stdout)
    assert rows == [
        {name: "" if value is None else str(value) for name, value in one.items()}
        for one in content
    ]
    assert rows[-1]["epsilon"] == "unlimited"


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert all(name in run().stdout for name in ledger.commands)
    for name in ("limit", "show", "verify", "export"):
        epilog = ledger.commands[name].epilog
        lines = [
            line.strip() for line in (epilog or "").splitlines() if line.startswith("  tacit ")
        ]
        assert lines
        for line in lines:
            result = run(*line.split()[2:])
            assert (result.exit_code, result.stderr) == (0, "")
            assert line in run(name, "--help").stdout
    assert (tmp_path / "budget.csv").read_text().startswith("number,kind,")
