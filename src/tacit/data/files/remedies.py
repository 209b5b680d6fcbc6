"""What to do about a value that cannot be read, as a refusal and a check say it."""

from __future__ import annotations

import re

from tacit.data.files.form import FileForm

LIKELY_POSITIVE = ("yes", "y", "true", "t", "positive", "pos", "case", "event", "2", "1")
"""Words of which one probably means a label of 1, the likeliest first."""

LIKELY_NEGATIVE = frozenset(("no", "n", "false", "f", "negative", "neg", "control", "0", "-1"))
"""Words that mean a label of 0 beyond doubt, where another word is named for 1."""

MISSING_WORDS = frozenset(
    ("", "na", "n/a", "n/d", "nd", "nan", "null", "none", "nil", "missing", "?", ".")
)
"""What programs and people write where there is no value, without case."""

MISSING_REMEDY = "fill it in, or leave such records out: --missing drop"
DROPPED = f'; {MISSING_REMEDY}, in Python missing="drop"'
"""The remedy behind the refusal of a record without a score or a label."""

_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?|[+-]?\d{1,3}([. ']\d{3})+(,\d*)?")
_PERCENT = re.compile(r"[+-]?[\d.,]+\s*%")


def remedy_of_number(value: str, form: FileForm) -> str:
    """What to do about text that is no number, after a semicolon; empty where nothing is known.

    Examples
    --------
    >>> remedy_of_number("0,25", FileForm()), remedy_of_number("x", FileForm())
    ('; for numbers with a decimal comma: --decimal ,', '')
    """
    text = value.strip()
    if _PERCENT.fullmatch(text):
        return "; for scores in percent: --unit percent"
    if text.casefold() in MISSING_WORDS:
        return f"; it seems to be missing: {MISSING_REMEDY}"
    if form.decimal == "." and _DECIMAL_COMMA.fullmatch(text):
        return "; for numbers with a decimal comma: --decimal ,"
    if _THOUSANDS.fullmatch(text):
        return "; write numbers without separators of thousands"
    return ""


_REMEDIES_BY_END = {
    (".xlsx", ".xls", ".ods"): "save the sheet as CSV",
    (".zip", ".7z", ".rar", ".xz", ".zst"): "unpack it, or pack it by gzip",
    (".json", ".jsonl", ".ndjson"): "write the records as CSV or Parquet",
    (".sav", ".dta", ".sas7bdat", ".rds", ".rdata"): "export the records as CSV or Parquet",
    (".txt", ".dat", ".tab"): "if it holds one record a line, rename it to .csv or .tsv",
}


def remedy_of_name(name: str) -> str:
    """What to do about a file of another kind, by its name in lower case, after a semicolon.

    Examples
    --------
    >>> remedy_of_name("records.xlsx")
    '; save the sheet as CSV'
    """
    for ends, remedy in _REMEDIES_BY_END.items():
        if name.endswith(ends):
            return f"; {remedy}"
    return "" if "." in name else "; if it holds one record a line, rename it to .csv"
