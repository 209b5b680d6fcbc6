"""Every messy file: what ``tacit check`` says, and that the options it names read the records."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from click.testing import Result
from pyarrow.feather import write_feather

from tacit import FileForm, read
from tacit.cli.preparing import PROBLEMS
from tacit.protocol import Clients, DataError
from tests.first_hour.messy import ALL, LABELS, SCORES, YES, Messy, replaced, text, worded
from tests.terminal import content_of, in_python, refusal_of, run, succeeded

NOTE = "note: "


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working directory, so that messages name files alone."""
    monkeypatch.chdir(tmp_path)


def check(*arguments: str) -> Result:
    return run("check", *arguments)


def read_with(files: list[str], options: tuple[str, ...]) -> Clients:
    """The records by the function of Python, with the options of the command."""
    given = dict(zip(options[::2], options[1::2], strict=True))
    positive = (given["--positive"],) if "--positive" in given else ()
    form = FileForm(positive, given.get("--separator"), given.get("--decimal", "."))
    names = given.get("--score", "score"), given.get("--label", "label")
    return read(files, *names, unit=given.get("--unit"), form=form)


@pytest.mark.parametrize("messy", ALL, ids=str)
def test_what_a_check_says_and_that_its_options_read_the_records(messy: Messy) -> None:
    messy.save()
    said = check(messy.name)
    if messy.says is None:
        assert (said.exit_code, len(said.stdout.splitlines())) == (0, 1), said.output
    else:
        assert messy.says in said.stdout
        assert said.exit_code == (0 if messy.says.startswith(NOTE) else PROBLEMS)
    if messy.options is None:
        assert messy.name in refusal_of(run("evaluate", messy.name, "--protocol", "exact"))
        return
    clients = read_with([messy.name], messy.options)
    np.testing.assert_array_equal(clients.scores, messy.scores)
    np.testing.assert_array_equal(clients.labels, messy.labels)
    succeeded(check(messy.name, *messy.options))


def test_all_problems_of_all_files_are_said_at_once() -> None:
    Path("north.csv").write_text(text(worded("no", "yes")))
    lines = text(scores=["NA", "0.1,5", *SCORES[2:]]).splitlines()
    Path("south.csv").write_text(
        "\n".join([*lines, "p,0.5,1,e,n,more,yet", "p,0.5,1,e,n,more", "p,0.5,1,e,n,two"])
    )
    said = check("north.csv", "south.csv", "gone.csv")
    assert said.exit_code == PROBLEMS
    assert said.stdout.splitlines() == [
        "north.csv: 1 problem",
        "  line 2: labels must be 0 or 1: 'no' (400 rows); name the word that means 1: "
        "--positive yes, in Python FileForm(positive=(...,))",
        "south.csv: 4 problems",
        "  line 2: column 'score' has no value: 'NA' (1 row); fill it in, or leave such "
        'records out: --missing drop, in Python missing="drop"',
        "  line 3: scores must be numbers: '0.1,5' (1 row); correct it",
        "  line 402: 7 values instead of 5: 'p,0.5,1,e,n,more,yet' (1 row); put values that hold "
        "the separator in quotation marks",
        "  line 403: 6 values instead of 5: 'p,0.5,1,e,n,more' (2 rows); put values that hold "
        "the separator in quotation marks",
        "gone.csv: 1 problem",
        "  gone.csv does not exist",
    ]
    assert said.stderr == "tacit: 6 problems\n"


def test_lines_are_counted_as_an_editor_does() -> None:
    content = (
        'score,label,note\n0.5,1,"two\nlines"\n\n0.5\n0.1,0,"a ""b""\nc\nd"\n0.2,x,e\n0.3,0,f\n'
    )
    Path("a.csv").write_text(content)
    said = json.loads(check("a.csv", "--json").stdout)["files"][0]["problems"]
    assert [(each["row"], each["line"]) for each in said] == [(2, 5), (4, 9)]
    Path("a.csv").write_text(content.replace("0.5\n", "", 1))
    with pytest.raises(DataError, match=r"got 'x' in a\.csv, row 3 \(line 8\)$"):
        read("a.csv")


def test_files_in_different_units_are_a_problem_of_both_together() -> None:
    """One hospital in percent beside one from 0 to 1 would give a wrong figure."""
    Path("north.csv").write_text(text())
    Path("south.csv").write_text(text(scores=(100 * SCORES).round(2)))
    Path("lost.csv").write_text(text(scores=["x", *SCORES[1:]]))
    said = check("north.csv", "south.csv")
    assert said.exit_code == PROBLEMS
    assert "south.csv: 1 problem\n  scores are not from 0 to 1; if they are in perc" in said.stdout
    assert "; all problems at once: tacit check" in refusal_of(run("evaluate", "lost.csv"))
    named = check("north.csv", "south.csv", "--unit", "south.csv=percent")
    assert (named.exit_code, named.stdout.count("\n")) == (0, 2)


def test_each_file_may_have_its_own_word_for_zero() -> None:
    Path("north.csv").write_text(text(worded("no", "yes")))
    Path("south.csv").write_text(text(worded("0", "Yes")))
    Path("west.csv").write_text(text(["no"] * LABELS.size))
    labels = read_with(["north.csv", "south.csv", "west.csv"], YES).labels
    np.testing.assert_array_equal(labels, [*LABELS, *LABELS, *(0 * LABELS)])
    Path("east.csv").write_text(text())
    assert "; where a file has 0 and 1: --positive FILE=1" in check("east.csv", *YES).stdout
    assert check("north.csv", "east.csv", *YES, "--positive", "east.csv=1").exit_code == 0


def test_a_file_with_one_strange_word_is_refused() -> None:
    """All labels of a file would read 0, where they may mean 1."""
    Path("north.csv").write_text(text(worded("no", "yes")))
    Path("south.csv").write_text(text(["case"] * LABELS.size))
    with pytest.raises(DataError, match=r"all labels of south\.csv are 'case'.*--positive case"):
        read_with(["north.csv", "south.csv"], YES)


def test_a_word_for_a_missing_value_means_0_where_no_other_word_does() -> None:
    words = worded("none", "case")
    Path("a.csv").write_text(text(words))
    np.testing.assert_array_equal(read_with(["a.csv"], ("--positive", "case")).labels, LABELS)
    assert check("a.csv", "--positive", "case").exit_code == 0
    Path("a.csv").write_text(text(["NA", *worded("no", "case")[1:]]))
    said = check("a.csv", "--positive", "case")
    assert "line 2: column 'label' has no value: 'NA' (1 row)" in said.stdout
    with pytest.raises(DataError, match=r"no value, got 'NA' in a\.csv, row 1 \(line 2\)"):
        read_with(["a.csv"], ("--positive", "case"))


def test_a_third_word_in_a_later_batch_is_refused() -> None:
    many = ["yes", "no"] * 40_000
    Path("a.csv").write_text(
        "score,label\n" + "".join(f"0.123456789,{w}\n" for w in [*many, "maybe"])
    )
    with pytest.raises(DataError, match=r"'no', got 'maybe' in a\.csv, row 80001 \(line 80002\)"):
        read_with(["a.csv"], YES)


def test_a_comma_and_a_point_are_both_decimal_marks_but_not_in_one_number() -> None:
    rows = "score;label\n0,5;1\n0.25;0\n{};0\n"
    Path("a.csv").write_text(rows.format("1e-1"))
    clients = read_with(["a.csv"], ("--decimal", ","))
    np.testing.assert_array_equal(clients.scores, [0.5, 0.25, 0.1])
    Path("a.csv").write_text(rows.format("1.234,5"))
    with pytest.raises(DataError, match=r"got '1\.234,5' in a\.csv, row 3 .*; write numbers"):
        read_with(["a.csv"], ("--decimal", ","))


def test_words_and_commas_are_evaluated() -> None:
    scores = [str(score).replace(".", ",") for score in SCORES]
    Path("words.csv").write_text(text(worded("no", "yes"), scores, separator=";"))
    Path("plain.csv").write_text(text())
    form = ["--positive", "yes", "--decimal", ","]
    words, plain = (
        content_of("evaluate", *arguments, "--protocol", "exact")
        for arguments in (["words.csv", *form], ["plain.csv"])
    )
    assert words["auc"] == plain["auc"]


ENDS = """
import sys
from tacit.cli import main
main(["check", *sys.argv[1:]])
"""


def test_a_process_that_checked_broken_files_ends_by_itself() -> None:
    """Arrow's threads must not call into an interpreter that has ended."""
    names = ["inf.csv", "long_row.csv", "yes_no.csv", "broken.parquet"]
    for each in (each for each in ALL if each.name in names):
        each.save()
    done = in_python(ENDS, *names)
    assert (done.returncode, done.stderr) == (PROBLEMS, "tacit: 4 problems\n")


def test_records_without_a_value_are_left_out_and_noted_where_that_is_asked_for() -> None:
    scores = replaced(replaced(SCORES, 6, "n/d"), 9, "")
    Path("a.csv").write_text(text(replaced(LABELS, 7, "NA"), scores))
    said = succeeded(check("a.csv", "--missing", "drop"))
    assert said.stdout.splitlines()[1:] == [
        "  note: left out: line 7: column 'score' has no value: 'n/d' (2 rows)",
        "  note: left out: line 8: column 'label' has no value: 'NA' (1 row)",
    ]


@pytest.mark.parametrize("name", ["wards.csv", "wards.parquet", "wards.feather"])
def test_a_missing_column_is_said_beside_all_columns_of_the_file(name: str) -> None:
    table = pa.table({"risk": [0.2, 0.9], "label": [0, 1], "ward": ["east", "west"]})
    writers = {".csv": pa_csv.write_csv, ".parquet": pq.write_table, ".feather": write_feather}
    writers[Path(name).suffix](table, name)
    said = check(name)
    assert "no column 'score', its columns are 'risk', 'label', 'ward'" in said.stdout
    assert said.exit_code == PROBLEMS
