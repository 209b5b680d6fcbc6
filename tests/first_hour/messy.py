"""The files that people have: the same 400 records, written in many ways."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

ROWS = 400
rng = np.random.default_rng(18)
LABELS = (rng.random(ROWS) < 0.3).astype(np.int64)
SCORES = np.round(1 / (1 + np.exp(-(rng.normal(size=ROWS) + 1.5 * LABELS - 1))), 4)
HEADER = ("patient_id", "score", "label", "ward", "note")


Content = str | bytes | Callable[[Path], Any]


@dataclass(frozen=True)
class Messy:
    """One file and what must be said of it.

    Parameters
    ----------
    name : of the file.
    content : of the file, or what writes it to a path.
    says : a part of what ``tacit check`` prints without options; None where it must read the
        file silently.
    options : with which the file holds the 400 records; None where no option helps.
    scores, labels : what is read with the options.
    """

    name: str
    content: Content
    says: str | None = None
    options: tuple[str, ...] | None = ()
    scores: Any = field(default_factory=lambda: SCORES)
    labels: Any = field(default_factory=lambda: LABELS)

    def __str__(self) -> str:
        """The name that pytest shows."""
        return self.name

    def save(self) -> None:
        """Write the file into the working directory."""
        if callable(self.content):
            self.content(Path(self.name))
        else:
            content = self.content
            Path(self.name).write_bytes(content.encode() if isinstance(content, str) else content)


def hopeless(name: str, content: Content, says: str) -> Messy:
    """A file that no option makes readable."""
    return Messy(name, content, says, None)


def text(
    labels: Sequence[object] = tuple(LABELS),
    scores: Sequence[object] = tuple(SCORES),
    *,
    header: Sequence[str] | None = HEADER,
    separator: str = ",",
    end: str = "\n",
) -> str:
    """The records as CSV."""
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=separator, lineterminator=end)
    if header is not None:
        writer.writerow(header)
    for row, (score, label) in enumerate(zip(scores, labels, strict=True)):
        writer.writerow((f"p{row}", score, label, "east", "fell, at home"))
    return stream.getvalue()


def worded(negative: object, positive: object) -> list[object]:
    """The labels in two words."""
    return [positive if label else negative for label in LABELS]


def replaced(values: Any, row: int, value: object) -> list[object]:
    """The values with another one in one row from 1."""
    changed = list(values)
    changed[row - 1] = value
    return changed


def packed(path: Path) -> None:
    """Writes a zip file of one member."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", text())


def parquet(labels: Any = LABELS, scores: Any = SCORES) -> Callable[[Path], Any]:
    """Writes Parquet."""
    return lambda path: pq.write_table(pa.table({"score": scores, "label": labels}), path)


def categories(values: Sequence[object]) -> pa.Array:
    """A column as pandas writes categories."""
    return pa.array(values).dictionary_encode()


LOGITS = np.log(SCORES / (1 - SCORES)).round(6)
LINES = text().split("\n")
YES = ("--positive", "yes")

LABEL_FILES = (
    Messy("yes_no.csv", text(worded("no", "yes")), "--positive yes", YES),
    Messy("y_n.csv", text(worded("N", "Y")), "--positive Y", ("--positive", "y")),
    Messy("true_false.csv", text(worded("False", "True"))),
    Messy("decimals.csv", text(worded("0.0", "1.0"))),
    Messy("plus_minus.csv", text(worded("-1", "+1")), "--positive +1", ("--positive", "+1")),
    Messy("one_two.csv", text(worded(1, 2)), "--positive 2", ("--positive", "2")),
    hopeless(
        "one_missing.csv",
        text(replaced(LABELS, 7, "")),
        "line 8: column 'label' has no value (1 row)",
    ),
    Messy("categories_01.parquet", parquet(categories(LABELS.tolist()))),
    Messy("categories_text.parquet", parquet(categories(worded("0", "1")))),
    Messy(
        "categories_yes.parquet",
        parquet(categories(worded("no", "yes"))),
        "row 1: labels must be 0 or 1",
        YES,
    ),
    Messy(
        "bool_float32.parquet",
        parquet(LABELS == 1, SCORES.astype(np.float32)),
        scores=SCORES.astype(np.float32).astype(np.float64),
    ),
    Messy("uint8.parquet", parquet(LABELS.astype(np.uint8))),
    Messy("one_class.csv", text([0] * ROWS), "note: all labels are 0", labels=np.zeros(ROWS)),
    hopeless(
        "three_words.csv",
        text(replaced(worded("no", "yes"), 9, "unknown")),
        "line 2: labels must be 0 or 1: 'no' (400 rows)",
    ),
)

SCORE_FILES = (
    *(
        hopeless(f"{name}.csv", text(scores=replaced(SCORES, 6, value)), f"line 7: {says} (1 row)")
        for name, value, says in (
            ("one_nan", "NaN", "column 'score' has no value: NaN"),
            ("n_d", "n/d", "column 'score' has no value: 'n/d'"),
            ("nullable", "<NA>", "column 'score' has no value: '<NA>'"),
            ("time", "NaT", "column 'score' has no value: 'NaT'"),
            ("sheet", "#N/A", "column 'score' has no value: '#N/A'"),
            ("inf", "inf", "scores must be finite: inf"),
        )
    ),
    hopeless(
        "na.csv",
        text(scores=replaced(replaced(SCORES, 6, "NA"), 9, "NA")),
        "line 7: column 'score' has no value: 'NA' (2 rows)",
    ),
    Messy(
        "logits.csv",
        text(scores=LOGITS),
        "scores are not from 0 to 1; if they are log-odds: --unit log-odds",
        ("--unit", "log-odds"),
        LOGITS,
    ),
    Messy(
        "percent.csv",
        text(scores=(100 * SCORES).round(2)),
        "scores are not from 0 to 1; if they are in percent: --unit percent",
        ("--unit", "percent"),
        (100 * SCORES).round(2),
    ),
    Messy(
        "percent_signs.csv",
        text(scores=[f"{100 * s:.2f}%" for s in SCORES]),
        "(400 rows); for scores in percent: --unit percent",
        ("--unit", "percent"),
        (100 * SCORES).round(2),
    ),
    hopeless(
        "thousands.csv",
        text(scores=replaced(SCORES, 6, "1,234.5")),
        "'1,234.5' (1 row); write numbers without separators of thousands",
    ),
    Messy(
        "all_equal.csv",
        text(scores=[0.5] * ROWS),
        "note: all scores are 0.5",
        scores=np.full(ROWS, 0.5),
    ),
    Messy(
        "one_digit.csv",
        text(scores=SCORES.round(1)),
        "note: only 11 different scores",
        scores=SCORES.round(1),
    ),
    Messy("quoted.csv", text(scores=[f" {s} " for s in SCORES])),
)

COMMAS = text(scores=[str(s).replace(".", ",") for s in SCORES], separator=";")
TABS = text(separator="\t")
FORM_FILES = (
    Messy("crlf.csv", text(end="\r\n")),
    Messy("mark.csv", text().encode("utf-8-sig")),
    Messy("utf16.csv", text().encode("utf-16")),
    Messy("latin1.csv", text().replace("fell", "gest\u00fcrzt").encode("latin-1")),
    Messy("semicolons.csv", text(separator=";")),
    Messy(
        "decimal_commas.csv",
        COMMAS,
        "(400 rows); for numbers with a decimal comma: --decimal ,",
        ("--decimal", ","),
    ),
    Messy("tabs.tsv", TABS),
    Messy("tabs.csv", TABS),
    Messy("bars.csv", text(separator=":"), "no column 'score'", ("--separator", ":")),
    Messy(
        "evident.csv",
        text(header=("id", "Risk Score", "label", "w", "n"), separator=";"),
        "its columns are 'id', 'Risk Score', 'label', 'w', 'n'; name it: --score 'Risk Score'",
        ("--score", "Risk Score"),
    ),
    hopeless(
        "joined.csv",
        "\n".join([*LINES[:9], LINES[0], *LINES[9:]]),
        "1 problem\n  line 10: the line repeats the header (1 row); delete it\n",
    ),
    Messy("packed.csv.gz", gzip.compress(text().encode())),
    Messy("packed.csv.bz2", bz2.compress(text().encode())),
    hopeless("packed.zip", packed, "unpack it, or pack it by gzip"),
    hopeless("clinic.duckdb", text(), "by its address, duckdb://FILE, with"),
    hopeless(
        "no_header.csv",
        text(header=None),
        "line 1: the first line holds values, not names; add a line",
    ),
    hopeless("empty.csv", "", "has no records"),
    hopeless("header_only.csv", LINES[0] + "\n", "has no records"),
    Messy(
        "three.csv",
        "\n".join(LINES[:4]),
        "note: only 3 records",
        scores=SCORES[:3],
        labels=LABELS[:3],
    ),
    Messy(
        "twice.csv",
        "\n".join(LINES[:-1] + LINES[1:]),
        "note: every record is there",
        scores=np.tile(SCORES, 2),
        labels=np.tile(LABELS, 2),
    ),
    Messy(
        "other_names.csv",
        text(header=("id", "Score", "Outcome", "w", "n")),
        "its columns are 'id', 'Score', 'Outcome', 'w', 'n'; name it: --score Score",
        ("--score", "Score", "--label", "Outcome"),
    ),
    Messy("spaced_names.csv", text(header=("id", " score", "label ", "w", "n"))),
    hopeless(
        "name_twice.csv",
        text(header=("id", "score", "label", "score", "n")),
        "2 columns named 'score'; rename all but one",
    ),
    hopeless(
        "long_row.csv",
        "\n".join([*LINES[:5], "p,0.5,1,e,n,more", *LINES[5:]]),
        "line 6: 6 values instead of 5: 'p,0.5,1,e,n,more' (1 row)",
    ),
    Messy("blank_lines.csv", "\n".join([*LINES[:5], "", "", *LINES[5:]])),
    hopeless(
        "comment.csv",
        "# exported on Monday\n" + text(),
        "line 1: the first line is a comment, '# exported on Monday'; remove it",
    ),
    Messy("upper.CSV", text()),
    hopeless("no_extension", text(), "rename it to .csv"),
    Messy(
        "table.feather",
        lambda path: pyarrow.feather.write_feather(
            pa.table({"score": SCORES, "label": LABELS}), str(path)
        ),
    ),
    hopeless("list.json", '[{"score": 0.5, "label": 1}]', "write the records as CSV"),
    hopeless("lines.jsonl", '{"score": 0.5, "label": 1}\n', "write the records as CSV"),
    hopeless("broken.xlsx", b"PK\x03\x04broken", "save the sheet as CSV"),
    hopeless("broken.parquet", b"PAR1broken", "broken.parquet cannot be read"),
)

ALL = (*LABEL_FILES, *SCORE_FILES, *FORM_FILES)
