"""Every question of the command line, of records in memory and of all places where records stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tacit.data.engines import opening
from tacit.data.engines.stored import StoredClients
from tests.data.engines.conftest import Server, database
from tests.data.engines.test_duckdb import parts, table
from tests.terminal import content_of

SITES = ("--client", "site", "--seed", "1")
HISTOGRAM = ("--protocol", "score-histogram", "--epsilon", "1")
GROUPS = ("--groups", "ward")
WORDS = ("--label", "word", "--positive", "Yes", "--positive", "ja")
DROP = (*WORDS, "--score", "holes", "--missing", "drop")
MODELS = ("--score", "score", "--versus", "other", "--epsilon", "1")
CLASSES = (
    *("evaluate", "--protocol", "multiclass-histogram", "--epsilon", "9"),
    *("--scores", "score,other,third", "--classes", "a,b,c"),
)
QUESTIONS: dict[str, tuple[str, ...]] = {
    "words": ("evaluate", *HISTOGRAM, *WORDS),
    "incomplete": ("evaluate", *HISTOGRAM, *DROP),
    "incomplete ranks": ("evaluate", "--protocol", "fedauc", "--epsilon", "1", *DROP),
    "count of incomplete": ("evaluate", *HISTOGRAM, *DROP, "--count-missing", "0.2"),
    "pairs": (
        *("evaluate", "--protocol", "paired-ustatistic", "--kernel", "kendall"),
        *("--epsilon", "2", "--second", "other"),
    ),
    "models": ("compare", *MODELS, "--protocol", "score-histogram"),
    "models by ranks": ("compare", *MODELS, "--protocol", "fedauc"),
    "groups": ("evaluate", *HISTOGRAM, *GROUPS),
    "agreed groups": (
        *("evaluate", *HISTOGRAM, *GROUPS, "--group-name", "x"),
        *("--group-name", "none", "--group-name", "z"),
    ),
    "groups by ranks": ("evaluate", "--protocol", "fedauc", "--epsilon", "1", *GROUPS, *WORDS),
    "incomplete groups": ("evaluate", *HISTOGRAM, *GROUPS, *DROP),
    "private groups": (
        *("evaluate", "--protocol", "grouped-histogram", "--epsilon", "1", *WORDS),
        *("--private-group", "ward", "--group-names", "x,z"),
    ),
    "classes": (*CLASSES, "--label", "kind"),
    "classes by number": (*CLASSES, "--label", "number"),
}
PERSONS = ("--person", "who", "--per-person", "2")
QUESTIONS |= {
    "words of persons": (*QUESTIONS["words"], *PERSONS),
    "models of persons": (*QUESTIONS["models"], *PERSONS),
    "groups of persons": (*QUESTIONS["groups by ranks"], *PERSONS),
}
OPENED = ("words", "models", "groups", "private groups", "classes")
"""These open records in all ways; whatever is asked of files, DuckDB answers as of a database."""
IN_MEMORY = {"pairs", "models by ranks"}
"""What these do not sum, they read into memory."""


def records() -> pa.Table:
    """Records with more scores, labels in words, incomplete ones, groups and classes."""
    random, made = np.random.default_rng(1), table(3000)
    positive, scores = made["label"].to_numpy() == 1, made["score"].to_numpy()
    words = np.where(positive, np.array(["Yes", " yes", "ja"])[random.integers(0, 3, 3000)], "no")
    kinds = positive.astype(int) + (random.random(3000) < 0.3)
    more = {
        "other": np.clip(scores + random.normal(0, 0.2, 3000), 0, 1),
        "third": random.random(3000),
        "word": np.where(random.random(3000) < 0.05, "n/a ", words),
        "holes": pa.array(
            np.where(np.arange(3000) % 50, scores, np.nan), mask=random.random(3000) < 0.1
        ),
        "ward": np.array(["x", "z"])[random.integers(0, 2, 3000)],
        "kind": np.array(["a", "b", "c"])[kinds],
        "number": kinds,
        "who": np.arange(3000).astype(str),
    }
    for name, values in more.items():
        made = made.append_column(name, pa.array(values))
    return made


def without_incomplete(made: pa.Table) -> pa.Table:
    return made.filter(pc.not_equal(made["word"], "n/a "))


def same(one: Any, other: Any) -> None:
    """Two results are equal, numbers to 1e-12."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one.keys() - {"time", "fingerprint"}:
            same(one[name], other[name])
    elif isinstance(one, list):
        for each in zip(one, other, strict=True):
            same(*each)
    else:
        assert one == (pytest.approx(other, rel=1e-12) if isinstance(one, float) else other)


@pytest.mark.parametrize(
    ("question", "source"),
    [
        *((question, source) for question in QUESTIONS for source in ("duckdb", "postgres")),
        *((question, source) for question in OPENED for source in ("pattern", "folder", "large")),
    ],
)
def test_every_question_reaches_every_source(
    question: str,
    source: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    made = records() if "incomplete" in question else without_incomplete(records())
    command, *options = (*QUESTIONS[question], *SITES)
    pq.write_table(made, tmp_path / "all.parquet")
    expected = content_of(command, tmp_path / "all.parquet", *options)
    folder = tmp_path / "parts"
    folder.mkdir()
    pattern, where = parts(folder, made), list[str]()
    if source == "postgres":
        server: Server = request.getfixturevalue("postgres")
        server.fill("scored", made)
        where = [server.address, "--table", "scored"]
    elif source == "duckdb":
        where = [database(tmp_path / "d.duckdb", made), "--query", "SELECT * FROM scored"]
    elif source == "large":
        monkeypatch.setattr(opening, "LARGE_BYTES", 1)
        where = sorted(map(str, folder.iterdir()))
    else:
        where = [pattern] if source == "pattern" else [str(folder)]
    if question not in IN_MEMORY:
        monkeypatch.setattr(StoredClients, "_loaded", property(None))
    same(expected, content_of(command, *where, *options))
