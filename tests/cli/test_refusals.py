"""Commands that are refused in one sentence, by their words and a part of the sentence."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.terminal import refusal_of, run

NEVER_READ = "absent.csv"
HISTOGRAM = f"evaluate {NEVER_READ} --protocol score-histogram --epsilon 2"
PAIRED = f"evaluate {NEVER_READ} --protocol paired-ustatistic --epsilon 2 --kernel"
COUNTED = "--protocol score-histogram --epsilon 8 --missing drop --count-missing"
DPAUC = "--protocol dpauc --epsilon 1"
FEDAUC = "--protocol fedauc --epsilon 1"
COMPARED = "compare models.parquet --score new"
OF_SERVERS = "postgresql://a:secret@h/d"
COLLISIONS = "--protocol paired-ustatistic --kernel collision --epsilon 2"
ONCE = "given once for each name, as [CLIENT=]FILE, got"
CLASSES = "--protocol multiclass-histogram --scores a,b --classes 0,1 --trust exact-sum"
GROUPED = f"evaluate {NEVER_READ} --protocol grouped-histogram --epsilon 1"

REFUSED: dict[str, tuple[tuple[str, str], ...]] = {
    "": (
        ("nothing", "there is no command 'nothing': see --help"),
        ("evaluat", "there is no command 'evaluat'; did you mean 'evaluate'?"),
        ("evaluate a.csv --client a --client b", "--client is given twice, and takes one value"),
        ("evaluate a.csv --epsilon=1 --epsilon 2", "--epsilon is given twice, and takes one value"),
    ),
    "evaluate": (  # records
        ("absent.csv --protocol exact", "absent.csv does not exist"),
        ("nan.csv --protocol exact", "nan.csv, row 2"),
        ("negatives.csv --protocol exact", "both classes"),
        ("--protocol exact", "FILES"),
        ("north.csv", "epsilon is needed"),
        ("odds.parquet --protocol score-histogram --epsilon 2 --rescale -1 1", "the public bounds"),
    ),
    "evaluate north.csv south.csv east.csv": (  # without a protocol
        ("--epsilon 1 --aim all", "--aim needs --protocol"),
        ("--epsilon 1 --groups label", "--groups needs --protocol NAME, one of `tacit proto"),
        ("--epsilon 1 --private-group label", "--private-group needs --protocol"),
        ("--epsilon 1 --thresholds 0.2", "need --protocol grouped-histogram or"),
        ("--epsilon 1 --second score", "--second needs --protocol"),
        ("--epsilon 1 --trust encrypted", "would not be kept"),
        ("--epsilon 0.001", "is predicted to give an AUC at epsilon 0.001"),
        ("--epsilon 1 --trust server-sees-scores --calibrate bbq", "cannot be used with --pro"),
        ("--epsilon 1 --trust nobody", "'nobody' is not one of"),
        ("--epsilon 1 --protocol score-histogramm", "did you mean 'score-histogram'?"),
    ),
    f"evaluate north.csv south.csv {FEDAUC}": (
        ("--unit percent --unit real", "--unit is given twice, as percent and real"),
        ("--unit north.csv=percent --unit north.csv=percent", "--unit is given twice, as percent"),
        ("--unit west.csv=percent", "--unit west.csv=percent: FILE= names one of north.csv"),
        ("--unit north.csv=percent --rescale 0 1", "--rescale maps scores of --unit real"),
        ("--score a --score b", "--score is given twice, as a and b"),
        ("--label north.csv=a --label north.csv=b", "--label is given twice"),
        ("--score nort.csv=risk", "FILE= names one of north.csv, south.csv"),
        ("--positive nort.csv=yes", "FILE= names one of north.csv, south.csv"),
        ("--scores a,b", "--scores cannot be used with --protocol fedauc"),
    ),
    f"evaluate {NEVER_READ} --protocol": (
        (f"{DPAUC[11:]} --calibrate bbq", "--calibrate cannot be"),
        ("ustatistic --epsilon 1", "--protocol ustatistic needs --kernel"),
        ("two-round-auc", "--protocol two-round-auc needs --epsilon"),
        ("encrypted-auc --thresholds 0,0.5,0.2,0.8,1", "thresholds must ascend from 0 to 1"),
    ),
    HISTOGRAM: (("--save-calibrator x.json", "--save-calibrator needs --calibrate"),),
    PAIRED: (
        ("kendall", "--protocol paired-ustatistic with these settings needs --second"),
        ("'gini(low=1)'", "a range must run from a lower to a higher end"),
    ),
    "evaluate north.csv": (
        ("--protocol encrypted-auc --thresholds 20 --most-records 1000", "at least 2 parties, g"),
        (f"{COUNTED} 8", "must be below epsilon, 8, got 8.0"),
        (f"{COUNTED} 1 --groups label", "cannot be used with --g"),
        ("--protocol exact --missing drop --count-missing 1", "has no epsilon of which"),
        (f"{DPAUC} --count-missing 0.1", "--count-missing needs --missing drop"),
    ),
    "evaluate visits.csv": (
        (f"{COUNTED} 1 --person patient", "cannot be used where a"),
        (f"{DPAUC} --per-person 2", "--per-person needs --person"),
        (f"{DPAUC} --person patient --per-person all", "declared in advance"),
        (f"{DPAUC} --weights score", "weights on records are not supported"),
    ),
    GROUPED: (
        ("", "grouped-histogram needs --private-group"),
        ("--private-group ward", "--private-group needs --group-names"),
        ("--private-group ward --group-names x,y --rescale 0 1", "cannot be used with --private-g"),
    ),
    "evaluate --protocol score-histogram --epsilon 1": (
        ("", "Missing argument 'FILES...'"),
        ("--counts x.csv y.csv", "--counts cannot be used with FILES"),
        ("--counts x.csv --split 3", "--split needs records, and --counts has none"),
        ("x.csv --table t", "--table and --query need a database's address"),
        ("duckdb://x", "a database needs a table or a query, one of them"),
        ("python:ads.py:frame --table x", "ads.py:frame is a program: it needs no table"),
        ("duckdb://x y.csv --table t", "must be the only one of FILES"),
        ("duckdb://x --table t --decimal ,", "--decimal needs files, not a database"),
        ("duckdb://x --table t --groups g --separator ;", "needs files, not a database"),
        ("duckdb://x --table t --score x.csv=s", "x.csv=s: FILE= needs files, not a database"),
        (f"{OF_SERVERS} --table t", "a password must not be part of"),
    ),
    f"evaluate duckdb://x --table t {CLASSES}": (("--decimal ,", "needs files, not a database"),),
    f"evaluate north.csv south.csv {COLLISIONS}": (
        ("--engine spu", "own ledger: ledgers must be given for north, south"),
        ("--engine ideal --ledger north=first.db", "ledgers need engine 'spu'"),
        # a second ledger would leave the limit of the first one out, without a word
        *(
            (f"--ledger north=first.db --ledger {text}", f"{ONCE} '{text}'")
            for text in ("north", "=north.db", "north=", "north=second.db")
        ),
    ),
    "evaluate north.csv --protocol fedauc --trust mpc --epsilon 20 --allocation": (
        # the server knows no ranks here; the protocol that has allocations sends them all
        ("adaptive", "--allocation cannot be used with --protocol fedauc; published-fedauc has it"),
    ),
    "evaluate --counts c.csv --epsilon 1": (("", "--counts needs --protocol"),),
    f"evaluate models.parquet {FEDAUC} --score new --groups": (
        ("ward --split 4", "--split cannot be used with --groups"),
        ("ward --at 0.2", "cannot be used with --groups; a protocol's --thresholds"),
        ("ward --group-names a,b", "--groups takes --group-name, once for each group"),
    ),
    COMPARED: (
        ("--versus old --epsilon 1 --trust 'each(emphasis=2)'", "must be from 0.1 to 0.99, got 2"),
        ("--versus old --epsilon 1 --trust 'local(emphasis=0.5)'", "has no parameter 'emphasis'"),
        ("--versus new --epsilon 1", "--versus names the same column as --score, 'new'"),
        ("--versus old --epsilon 1 --split 3 --client site", "--client cannot be used with --sp"),
    ),
    "compare n?rth.csv south.csv --epsilon 1": (
        ("--score north.csv=risk --versus old", "--score names no column of south.csv"),
        ("--score north.csv=label --score other --versus score", "south.csv has no column 'other'"),
        (
            "--score risk --score south.csv=x --versus y --versus south.csv=x",
            "--versus names the same column as --score, 'x'",
        ),
    ),
    "audit": (
        ("", "give --protocol, or --self-test"),
        ("--protocol exact --epsilon 1", "--epsilon cannot be used with --protocol exact"),
        ("--protocol all --epsilon 1 --height 3", "takes no settings but --epsilon"),
        ("--protocol dpauc --epsilon 1 --height 3", "--height cannot be used with"),
        ("--self-test --epsilon 1", "--self-test takes no protocol and no settings"),
    ),
    "simulate": (
        (f"north.parquet {FEDAUC}", "fedauc with these settings has no reports"),
        ("north.parquet --protocol ustatistic --kernel kendall --epsilon 1", "second values"),
        ("duckdb://x.duckdb --protocol two-round-auc --epsilon 1", "needs files, not a database"),
    ),
    "sql": (
        ("--table t --protocol fedauc", "needs records: counts in cells are not enough"),
        ("--protocol dpauc", "give --table or --query"),
        ("--table t --protocol dpauc --unit percent", "give a --query that divides by 100"),
    ),
    "report result.json": (
        ("-o ./result.json", "./result.json is one of the"),
        ("--task a", "--task needs --format model-index"),
        ("--format md --title a", "--title cannot be used with"),
        ("-o missing/report.html", "missing/report.html cannot be written"),
    ),
    "check north.csv": (
        ("--separator ';;'", "separator must be one character, got ';;'"),
        ("--positive ' '", "a positive label must have a character, got an empty word"),
    ),
}


@pytest.mark.parametrize(
    ("line", "said"),
    [(f"{words} {more}", said) for words, rows in REFUSED.items() for more, said in rows],
)
@pytest.mark.usefixtures("folder")
def test_what_does_not_fit_is_one_sentence(line: str, said: str) -> None:
    refusal = refusal_of(run(*shlex.split(line)))
    assert said in refusal
    assert "secret" not in refusal


@pytest.mark.parametrize(
    "options",
    [
        "exact --epsilon 1",
        "fedauc --epsilon 1 --thresholds 100",
        "published-fedauc --epsilon 1 --allocation adaptive(beta=0.5)",
        "fedauc --epsilon 1 --by score",
        "fedauc --epsilon 1 --split 5 --client phone",
        "fedauc",
        *(f"fedauc --epsilon {e}" for e in ("0", "-1", "inf", "nan", "x")),
        "fedauc --epsilon 1 --split 0",
        "fedauc --epsilon 1 --seed -1",
        "fedauc --epsilon 1 --plot nowhere/roc.png",
        "fedauc --epsilon 1 --plot .",
        "fedauc --epsilon 1 --plot roc.xyz",
        "fedauc --epsilon 1 --plot roc",
        "guess --epsilon 1",
    ],
)
def test_options_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str) -> None:
    monkeypatch.chdir(tmp_path)
    refusal = refusal_of(run("evaluate", NEVER_READ, "--protocol", *options.split()))
    assert "does not exist" not in refusal
    assert not list(tmp_path.iterdir())
