"""How a file writes what it holds, labels by their words, and what to do about other values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.data.errors import DataError

DECIMALS = (".", ",")
SEPARATORS = (",", ";", "\t", "|")
"""Separators that are tried where a header does not have the columns with the usual one."""


@dataclass(frozen=True)
class FileForm:
    """How values are written in files; the default is that of most programs.

    Parameters
    ----------
    positive : the words that mean a label of 1, such as ``("yes",)``; each file then has at most
        one other word, which means 0. Case, spaces around and the form of a number make no
        difference: ``1`` is ``+1`` and ``1.0``. Empty for labels of 0/1 or true/false.
    separator : what stands between the values of a line of text; None for the usual one of the
        file's extension or, where the header has the columns only with another, for that one.
    decimal : ``"."``, or ``","`` for numbers such as ``0,5``; a number with a point is then read
        too, one with both is refused.
    percent : whether a percent sign may follow a number.

    Raises
    ------
    DataError : for another decimal mark, a separator of more or less than one character or one
        that is part of numbers, and an empty word.

    Examples
    --------
    >>> sorted(FileForm(positive=("Yes", "+1")).words)
    ['1', 'yes']
    >>> FileForm(separator=";", decimal=",").decimal
    ','
    """

    positive: tuple[str, ...] = ()
    separator: str | None = None
    decimal: str = "."
    percent: bool = False

    def __post_init__(self) -> None:
        if self.decimal not in DECIMALS:
            raise DataError(f"decimal must be one of . and , got {self.decimal!r}")
        if self.separator is not None:
            _check_separator(self.separator, self.decimal)
        if not all(map(canonical, self.positive)):
            raise DataError("a positive label must have a character, got an empty word")

    @property
    def words(self) -> frozenset[str]:
        """The words that mean 1, as they are compared."""
        return frozenset(map(canonical, self.positive))


def canonical(word: object) -> str:
    """A label as labels are compared: without case and spaces, numbers by their value.

    Examples
    --------
    >>> canonical(" Yes"), canonical("+1"), canonical(1), canonical(True), canonical("0_1")
    ('yes', '1', '1', 'true', '0_1')
    """
    text = str(word).strip().casefold()
    if "_" in text:  # Python's numbers may have it between digits
        return text
    try:
        return f"{float(text):.17g}"
    except ValueError:
        return text


def _check_separator(separator: str, decimal: str) -> None:
    if len(separator) != 1 or separator in '\r\n"':
        raise DataError(f"separator must be one character, got {separator!r}")
    if separator == decimal or separator.isalnum() or separator in ".+-":
        raise DataError(f"separator must be no part of numbers, got {separator!r}")


PLAIN = FileForm()
"""Labels of 0/1 or true/false, the usual separator, and a decimal point."""


LIKELY_POSITIVE = ("yes", "y", "true", "t", "positive", "pos", "case", "event", "2", "1")
"""Words of which one probably means a label of 1, the likeliest first."""

LIKELY_NEGATIVE = frozenset(("no", "n", "false", "f", "negative", "neg", "control", "0", "-1"))
"""Words that mean a label of 0 beyond doubt, where another word is named for 1."""

MISSING_WORDS = frozenset(
    {"", ".", "?", "#n/a", "<na>", "missing", "n/a", "n/d", "na", "nan", "nat", "nd", "nil"}
    | {"none", "null"}
)
"""What programs and people write where there is no value, without case."""

DROPPED = 'fill it in, or leave such records out: --missing drop, in Python missing="drop"'
"""What to do about a record without a score or a label."""

_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?|[+-]?\d{1,3}([. ']\d{3})+(,\d*)?")
_PERCENT = re.compile(r"[+-]?[\d.,]+\s*%")


def remedy_of_number(value: str, form: FileForm) -> str:
    """What to do about text that is no number; empty where nothing is known.

    Examples
    --------
    >>> remedy_of_number("0,25", FileForm()), remedy_of_number("x", FileForm())
    ('for numbers with a decimal comma: --decimal ,', '')
    """
    text = value.strip()
    if _PERCENT.fullmatch(text):
        return "for scores in percent: --unit percent"
    if form.decimal == "." and _DECIMAL_COMMA.fullmatch(text):
        return "for numbers with a decimal comma: --decimal ,"
    if _THOUSANDS.fullmatch(text):
        return "write numbers without separators of thousands"
    return ""


_REMEDIES_BY_END = {
    (".xlsx", ".xls", ".ods"): "save the sheet as CSV",
    (".zip", ".7z", ".rar", ".xz", ".zst"): "unpack it, or pack it by gzip",
    (".json", ".jsonl", ".ndjson"): "write the records as CSV or Parquet",
    (".sav", ".dta", ".sas7bdat", ".rds", ".rdata"): "export the records as CSV or Parquet",
    (".duckdb", ".ddb"): "name a database by its address, duckdb://FILE, with --table or --query",
    (".txt", ".dat", ".tab"): "if it holds one record a line, rename it to .csv or .tsv",
}


def remedy_of_name(name: str) -> str:
    """What to do about a file of another kind, by its name in lower case; empty where unknown.

    Examples
    --------
    >>> remedy_of_name("records.xlsx")
    'save the sheet as CSV'
    """
    for ends, remedy in _REMEDIES_BY_END.items():
        if name.endswith(ends):
            return remedy
    return "" if "." in name else "if it holds one record a line, rename it to .csv"


NO_LABEL = -1
"""Instead of a label, for a word that is none."""
MAX_WORDS = 1000
"""Labels have two values; a column of more values than this holds something else."""

LABEL_WORDS = {"0": 0, "1": 1, "-0": 0, "false": 0, "true": 1}
"""What canonical words mean where no others are named, in files and in statements."""


def meanings(
    values: Sequence[object], form: FileForm, negative: str | None = None
) -> tuple[list[int], str | None]:
    """The labels that different values mean, and the one word that means 0, where words do.

    Parameters
    ----------
    values : different values of a column, in the order of their first rows.
    form : its words mean 1, and one other word 0; without words 0 and 1, true and false are labels.
    negative : the word that means 0 so far; None where there was none.

    Examples
    --------
    >>> meanings(["1", " TRUE", 0.0, "yes"], FileForm())
    ([1, 1, 0, -1], None)
    >>> meanings(["No", "yes", "no", "unknown"], FileForm(("yes",)))
    ([0, 1, 0, -1], 'no')
    """
    if not form.positive:
        return [LABEL_WORDS.get(canonical(value), NO_LABEL) for value in values], negative
    words = list(map(canonical, values))
    # a word for a missing value means 0 only where there is no other
    others = sorted(
        (word for word in words if word not in form.words), key=MISSING_WORDS.__contains__
    )
    negative = negative or next(iter(others), None)
    of_word = {negative: 0} | dict.fromkeys(form.words, 1)
    return [of_word.get(word, NO_LABEL) for word in words], negative


def label_requirement(
    values: Sequence[object], form: FileForm, negative: str | None
) -> tuple[str, str]:
    """What labels must be, and the remedy, for a refusal.

    Parameters
    ----------
    values : different values of the column.
    form : its words mean 1.
    negative : the word that means 0 so far.
    """
    if form.positive:
        words = " or ".join(map(repr, form.positive))
        are_numbers = {canonical(value) for value in values} <= {"0", "1"}
        remedy = "where a file has 0 and 1: --positive FILE=1" if are_numbers else ""
        return f"labels must be {words} or one other word, here {negative!r}", remedy
    different = {canonical(value): str(value).strip() for value in values}
    for word in MISSING_WORDS & different.keys():
        del different[word]
    if not _are_two_words(set(different)):
        return "labels must be 0 or 1", ""
    positive = next((different[word] for word in LIKELY_POSITIVE if word in different), None)
    word = positive or f"WORD ({' or '.join(map(repr, different.values()))})"
    remedy = f"name the word that means 1: --positive {word}, in Python FileForm(positive=(...,))"
    return "labels must be 0 or 1", remedy


def _are_two_words(words: set[str]) -> bool:
    """Whether two values are labels in other words, and not 0 or 1 with a mistake among them."""
    return words in ({"1", "2"}, {"1", "-1"}) or (
        len(words) == 2 and words.isdisjoint(LABEL_WORDS) and not any(map(reads_as_number, words))
    )


def reads_as_number(text: str) -> bool:
    """Whether a text is a number as Python reads it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def with_remedy(sentence: str, remedy: str) -> str:
    """A refusal, and what to do about it behind a semicolon where that is known."""
    return f"{sentence}; {remedy}" if remedy else sentence
