"""Columns of tables as arrays of scores, labels and ids; wrong values are refused, or listed.

Anyone who reads records gets the error of the first wrong value; anyone who checks them for their
owner gets all, each kind with its number of rows.

Records without a score or a label are refused, or left out and counted. Leaving a record out looks
at this record alone. So records that differ in one before it differ in at most one after it, and
what is released about the rest keeps its guarantee. Where numbers of records are public (labels or
replaced records are protected), so is the number that is complete.
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from tacit.data import form as forms
from tacit.data.checking import MUST_BE_EXACT, ROUNDED, SCORES, SECOND
from tacit.data.errors import DataError, DataWarning, no_column
from tacit.data.persons import as_persons
from tacit.data.tables import Location, Problem, Table, is_text
from tacit.data.units import ENDS_OF_LOG_ODDS, LOG_ODDS, PERCENT, RANGES, outside

Rule = Literal["refuse", "drop"]
"""What is done with an incomplete record: an error that names it, or it is left out."""
RULES: tuple[str, ...] = get_args(Rule)

_BLANKS = pa.array(sorted(forms.MISSING_WORDS), pa.large_string())
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$|(?i)^[+-]?(nan|inf|infinity)$"


class MissingWarning(DataWarning):
    """Clients without any complete record, which take no part."""


def check_rule(rule: str) -> bool:
    """Whether incomplete records are left out.

    Raises
    ------
    ValueError : for another word.

    Examples
    --------
    >>> check_rule("drop"), check_rule("refuse")
    (True, False)
    """
    if rule not in RULES:
        raise ValueError(f"missing must be one of {RULES}, got {rule!r}")
    return rule == "drop"


@dataclass(frozen=True)
class Columns:
    """The columns that are read; None for one that is not.

    Parameters
    ----------
    scores : the columns of scores: one, or one of each class.
    label, client, second, group, person : the columns' names.
    drop : whether records without a score, second value or label are left out.
    form : how their values are written.
    unit : what the scores are; None where that is not said.
    classes : the agreed names of classes or private groups that groups are; empty for public ones.
    negative : the word that means a label of 0, once it was read; None before, and where labels
        are 0 and 1.
    """

    scores: tuple[str, ...]
    label: str | None
    client: str | None = None
    second: str | None = None
    group: str | None = None
    person: str | None = None
    drop: bool = False
    form: forms.FileForm = forms.PLAIN
    unit: str | None = None
    classes: tuple[str, ...] = ()
    negative: str | None = None

    @property
    def names(self) -> list[str]:
        """The names of the columns, each once."""
        return list(dict.fromkeys(name for _, name in self.by_option))

    @property
    def by_option(self) -> list[tuple[str, str]]:
        """What the columns hold, and their names."""
        read = [("score", name) for name in self.scores]
        read += [(option, getattr(self, option)) for option in HELD if option != "score"]
        return [(option, name) for option, name in read if name is not None]


@dataclass(frozen=True, eq=False)
class Records:
    """The values of the columns, each of shape (M,).

    Parameters
    ----------
    scores : of the records; of every class shape (M, C).
    labels : without labels they are all 0.
    ids, second, groups : the client ids in Arrow, second values, and groups; None without.
    persons : digests of whose records they are; None without.
    negative : the word that means a label of 0; None where it is not known.
    missing, missing_ids : of records that were left out whether each lacks no more than its label,
        shape (D,), and its client id; None where none may be.
    """

    scores: NDArray[np.float64]
    labels: NDArray[np.int8]
    ids: Any = None
    second: Any = None
    groups: Any = None
    persons: Any = None
    negative: str | None = None
    missing: Any = None
    missing_ids: Any = None

    @classmethod
    def joined(cls, parts: Sequence[Records]) -> Records:
        """The records of several batches in order."""

        def column(name: str) -> Any:
            columns = [getattr(part, name) for part in parts]
            if columns[0] is None:
                return None
            is_array = isinstance(columns[0], np.ndarray)
            return np.concatenate(columns) if is_array else pa.chunked_array(columns)

        more = {each.name: column(each.name) for each in fields(cls) if each.name != "negative"}
        return cls(negative=parts[-1].negative, **more)


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return bool(is_number or is_text(kind))


_NUMBERS = _is_number, "numbers"
_IDS = lambda kind: is_text(kind) or pa.types.is_integer(kind), "integers or strings"
HELD: dict[str, tuple[Callable[[pa.DataType], bool], str]] = {
    "score": _NUMBERS,
    "label": (lambda kind: _is_number(kind) or pa.types.is_boolean(kind), "0/1, booleans or words"),
    "client": _IDS,
    "second": _NUMBERS,
    "group": _IDS,
    "person": _IDS,
}
"""Which types columns may have, and what messages call what they hold."""


def records_of(table: Table, columns: Columns, problems: list[Problem] | None = None) -> Records:
    """The records of a table, decoded batch by batch.

    Parameters
    ----------
    table : the table.
    columns : what is read of it, and how it is written.
    problems : a list that gets all that is wrong, where the records are checked: if it then has a
        problem of more than records that are left out, the records are good for nothing.

    Raises
    ------
    DataError : for what is wrong where there is no list; for a table without records.
    """
    location = Location(table.source, line_of=table.line_of, problems=problems)
    names = readable(table, columns, location)
    parts, before = list[Records](), 0
    for batch, rows in _batches(table, names, problems):
        here = replace(location, before=before, rows=rows)
        parts.append(decoded(batch, columns, here))
        columns = replace(columns, negative=parts[-1].negative)
        before += batch.num_rows
    if not before and not problems:
        raise DataError(f"{table.source} has no records; leave it out")
    listed = [each for each in problems or () if not (columns.drop and each.may_be_left_out)]
    if not listed and not any(part.labels.size for part in parts):
        raise DataError(
            f"{table.source} has no complete record: all {before:,} lack a score or label"
        )
    return Records.joined(parts or [Records(np.zeros(0), np.zeros(0, dtype=np.int8))])


def _batches(
    table: Table, names: Sequence[str], problems: list[Problem] | None
) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64] | None]]:
    """Batches, and which records they hold; where problems are listed all at once."""
    if problems is None:
        yield from ((batch, None) for batch in table.batches(names))
        return
    if not names:
        return
    listed = list(table.batches(names))
    problems += _malformed(table)
    together = pa.Table.from_batches(listed).combine_chunks().to_batches() if listed else []
    skipped = np.array([row.number - 2 for row in table.malformed], dtype=np.int64)
    size = sum(batch.num_rows for batch in listed)
    rows = np.delete(np.arange(size + skipped.size), skipped)
    start = 0
    for batch in together:
        # of several batches all but the last are before
        yield batch, rows[start : start + batch.num_rows] - start
        start += batch.num_rows


def _malformed(table: Table) -> list[Problem]:
    """The records with another number of values, one problem for each number."""
    problems = []
    for actual in sorted({row.actual_columns for row in table.malformed}):
        same = [row for row in table.malformed if row.actual_columns == actual]
        first, many = same[0], actual > same[0].expected_columns
        remedy = "put values that hold the separator in quotation marks" if many else "complete it"
        what = f"{actual} values instead of {first.expected_columns}: {first.text!r:.60}"
        # the header is the first row
        number = first.number - 1
        line = table.line_of and table.line_of(number)
        problems.append(Problem(what, remedy, len(same), number, line))
    return problems


def readable(table: Table, columns: Columns, location: Location) -> list[str]:
    """The names of the columns that can be read; others are refused, or listed."""
    header, source = table.header, table.source
    if not header and table.schema is None:
        return []
    first = header[0] if header else ""
    if location.problems is not None and table.schema is None:
        if first.startswith("#"):
            location.refuse_whole(f"the first line is a comment, {first!r:.60}", "remove it", 1)
            return []
        if any(map(forms.reads_as_number, header)) and set(header).isdisjoint(columns.names):
            advice = f"add a line with the names of the columns, such as {','.join(columns.names)}"
            location.refuse_whole("the first line holds values, not names", advice, 1)
            return []
    names = dict[str, None]()
    for option, name in columns.by_option:
        count = header.count(name)
        if count > 1:
            wrong = f"{source} has {count} columns named {name!r}"
            location.refuse_whole(wrong, "rename all but one")
        elif not count:
            wrong = f"{source} has {no_column(name, header)}"
            # other commands call the others by other names
            same = option in ("score", "label", "client", "person") and len(columns.scores) == 1
            is_known = same or location.problems is not None
            location.refuse_whole(wrong, _other_name(option, name, header) if is_known else "")
        elif table.schema is None or _is_of_type(table.schema, name, option, location):
            names[name] = None
    return list(names)


def _other_name(option: str, name: str, header: list[str]) -> str:
    by_case = {each.casefold(): each for each in header}
    near = get_close_matches(name.casefold(), by_case, n=1, cutoff=0.6)
    if not near:
        return f"name it: --{option} COLUMN"
    return f"name it: --{option} {shlex.quote(by_case[near[0]])}"


def _is_of_type(schema: pa.Schema, name: str, option: str, location: Location) -> bool:
    kind = schema.field(name).type
    values = kind.value_type if pa.types.is_dictionary(kind) else kind
    accepts, description = HELD[option]
    if accepts(values) or pa.types.is_null(values):
        return True
    wrong = f"column {name!r} of {location.source} must hold {description}, got type {values}"
    location.refuse_whole(wrong, "")
    return False


def decoded(batch: pa.RecordBatch, columns: Columns, location: Location) -> Records:
    """The records of a batch.

    Raises
    ------
    DataError : naming the location, for a value that is missing or wrong.
    """
    present = [name for name in columns.names if name in batch.schema.names]
    values: dict[str | None, Any] = {name: _plain(batch.column(name)) for name in present}
    if not columns.drop:
        return _complete(values, batch.num_rows, columns, location)
    needed = [*columns.scores, columns.second, columns.label]
    lacking = {name: absent(values[name]) for name in needed if name in values}
    if location.problems is not None:
        for name, wrong in lacking.items():
            location.refuse_missing(wrong, values[name], str(name))
    none = np.zeros(batch.num_rows, dtype=np.bool_)
    no_label = lacking.pop(columns.label, none)
    no_score = np.logical_or.reduce([none, *lacking.values()])
    left = no_score | no_label
    inside, outside_ = np.flatnonzero(~left), pa.array(np.flatnonzero(left))
    taken = {name: column.take(pa.array(inside)) for name, column in values.items()}
    rows = inside if location.rows is None else location.rows[inside]
    made = _complete(taken, inside.size, columns, replace(location, rows=rows))
    ids = values[columns.client].take(outside_) if columns.client in values else None
    return replace(made, missing=~no_score[left], missing_ids=ids)


def _complete(
    values: dict[str | None, Any], rows: int, columns: Columns, location: Location
) -> Records:
    """The records of a batch of which none is left out."""
    form = replace(columns.form, percent=columns.form.percent or columns.unit == PERCENT)

    def numbers(name: str, called: str, unit: str | None = None) -> NDArray[np.float64]:
        return _numbers(values[name], name, called, location, form, unit)

    def ids(name: str | None, are_keys: bool = False) -> Any:
        if name is None or name not in values:
            return None
        return _ids(values[name], name, location, are_keys)

    scores = [numbers(name, SCORES, columns.unit) for name in columns.scores if name in values]
    labels, negative = np.zeros(rows, dtype=np.int8), columns.negative
    if columns.label is not None and columns.label in values:
        column = values[columns.label]
        labels, negative = _labels(column, columns.label, location, form, negative)
    second, groups, persons = columns.second, ids(columns.group), ids(columns.person, are_keys=True)
    return Records(
        np.stack(scores, axis=1) if len(scores) > 1 else (scores or [np.zeros(rows)])[0],
        labels,
        ids(columns.client),
        numbers(second, SECOND) if second is not None and second in values else None,
        None if groups is None else _as_names(groups),
        None if persons is None else as_persons(persons.to_numpy(zero_copy_only=False)),
        negative,
    )


def _plain(column: Any) -> Any:
    """A column without a dictionary; text has 64-bit offsets, which every kernel takes."""
    if pa.types.is_dictionary(column.type):
        return _plain(column.dictionary).take(column.indices)
    return column.cast(pa.large_string()) if is_text(column.type) else column


def absent(column: Any) -> NDArray[np.bool_]:
    """Which values of a column are absent, or are words that stand for an absent one."""
    nothing = column.is_null(nan_is_null=True)
    if is_text(column.type):
        word = pc.ascii_lower(pc.ascii_trim_whitespace(column))
        nothing = pc.or_(nothing, pc.is_in(word, _BLANKS))
    return _mask(nothing)


def _numbers(
    column: Any,
    name: str,
    called: str,
    location: Location,
    form: forms.FileForm = forms.PLAIN,
    unit: str | None = None,
) -> NDArray[np.float64]:
    """Finite numbers, shape (rows,); whole ones are those that float64 holds.

    Parameters
    ----------
    name, called : the column, and what its numbers are called.
    form : how they are written, where they are text.
    unit : what they are; None where that is not said.
    """
    # Arrow's floats of decimals are off by a last digit, those of their texts are not
    exact = column.cast(pa.string()) if pa.types.is_decimal(column.type) else column
    text = _plain_numbers(column, form) if is_text(column.type) else exact
    try:
        cast = text.cast(pa.float64(), safe=False)
        no_number = np.zeros(len(text), dtype=np.bool_)
    except pa.ArrowInvalid:
        no_number = ~_mask(pc.match_substring_regex(text, _NUMBER))
        cast = pc.if_else(pa.array(no_number), None, text).cast(pa.float64())
    numbers: NDArray[np.float64] = cast.to_numpy(zero_copy_only=False)
    finite = np.isfinite(numbers)
    if not finite.all():
        missing = ~finite & absent(column)
        location.refuse_missing(missing, column, name)
        no_number &= ~_refuse_header(column, name, no_number, location)
        _refuse_no_numbers(column, no_number & ~missing, called, form, location)
        remedy = ENDS_OF_LOG_ODDS if unit == LOG_ODDS else ""
        infinite = np.isinf(numbers)
        location.refuse(infinite, column, f"{called} must be finite", remedy)
        numbers = np.where(finite, numbers, 0.0)
    location.refuse(_rounded(numbers, column), column, f"{called} {MUST_BE_EXACT}")
    if unit is not None:
        low, high = RANGES[unit]
        must = f"{called} in {unit} must be from {low:g} to {high:g}"
        wrong = outside(numbers, unit) & finite
        location.refuse(wrong, column, must, advice="name another --unit")
    return numbers


def _refuse_header(
    column: Any, name: str, wrong: NDArray[np.bool_], location: Location
) -> NDArray[np.bool_]:
    """Refuse records that repeat the header, as joined files do; which they are."""
    if not (wrong.any() and is_text(column.type)):
        return np.zeros_like(wrong)
    again = wrong & _mask(pc.equal(pc.utf8_trim_whitespace(column), name))
    unquoted = pa.nulls(len(column))
    location.refuse(again, unquoted, "the line repeats the header", "delete it")
    return again


def _refuse_no_numbers(
    column: Any, wrong: NDArray[np.bool_], called: str, form: forms.FileForm, location: Location
) -> None:
    """Refuse text that is no number, or list it by what is to be done about it."""
    if not wrong.any():
        return
    encoded = pc.if_else(pa.array(wrong), column, None).dictionary_encode()
    # different words beyond these count as the last of them
    remedies = [
        forms.remedy_of_number(str(each), form) for each in encoded.dictionary[: forms.MAX_WORDS]
    ]
    index = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    by_word = np.minimum(index, forms.MAX_WORDS - 1)
    for remedy in dict.fromkeys(remedies):
        same = np.array([each == remedy for each in remedies])[by_word]
        location.refuse(wrong & same, column, f"{called} must be numbers", remedy)


def _rounded(numbers: NDArray[np.float64], column: Any) -> NDArray[np.bool_]:
    """Which numbers were whole and may have been rounded, so that different ones would tie."""
    if pa.types.is_floating(column.type):
        return np.zeros(numbers.size, dtype=np.bool_)
    large = np.abs(numbers) >= ROUNDED
    if large.any() and is_text(column.type):
        large &= _mask(pc.match_substring_regex(column, r"^\s*[+-]?[0-9]+\s*$"))
    return large


def _plain_numbers(text: Any, form: forms.FileForm) -> Any:
    """Text with numbers as Arrow reads them: no spaces around, a point, no percent sign."""
    text = pc.ascii_trim_whitespace(text)
    if form.percent:
        text = pc.replace_substring_regex(text, r"\s*%$", "")
    if form.decimal == ",":
        both = pc.and_(pc.match_substring(text, ","), pc.match_substring(text, "."))
        text = pc.if_else(both, text, pc.replace_substring(text, ",", "."))
    return text


def _labels(
    column: Any, name: str, location: Location, form: forms.FileForm, negative: str | None
) -> tuple[NDArray[np.int8], str | None]:
    """Labels, shape (rows,), and the word that means 0, as far as it is known.

    Parameters
    ----------
    name : of the column.
    form : its words mean 1; without them labels are numbers, or the words true and false.
    negative : the word that means 0 in earlier rows; None where there was none.
    """
    are_numbers = pa.types.is_integer(column.type) and not (form.positive or column.null_count)
    if are_numbers and {0, 1} >= set(pc.min_max(column).as_py().values()):
        return column.cast(pa.int8()).to_numpy(zero_copy_only=False), negative
    encoded = column.dictionary_encode()
    values = encoded.dictionary[: forms.MAX_WORDS].to_pylist()
    meant, negative = forms.meanings(values, form, negative)
    # a missing value's index is the last
    of_word = np.full(len(encoded.dictionary) + 1, forms.NO_LABEL, dtype=np.int8)
    of_word[: len(meant)] = meant
    labels = of_word[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
    wrong = labels == forms.NO_LABEL
    if wrong.any():
        wrong &= ~_refuse_header(column, name, wrong, location)
        missing = wrong & absent(column)
        location.refuse_missing(missing, column, name)
        must, remedy = forms.label_requirement(values, form, negative)
        words = ", ".join(f"{str(each)!r:.30}" for each in values[:5])
        more = f" and {len(encoded.dictionary) - 5:,} more" if len(encoded.dictionary) > 5 else ""
        advice = f"the values are {words}{more}: correct them"
        location.refuse(wrong & ~missing, column, must, remedy, advice)
    return labels, negative


def _ids(column: Any, name: str, location: Location, are_keys: bool) -> Any:
    """Ids, of which none is missing; keys are not blank either."""
    empty = _mask(column.is_null())
    if are_keys and is_text(column.type):
        empty = empty | _mask(pc.equal(pc.utf8_trim_whitespace(column), ""))
    if empty.any():
        location.refuse_missing(empty, column, name, remedy="")
        column = column.filter(pa.array(~empty))
    return column


def _as_names(column: Any) -> NDArray[Any]:
    """Groups as integers or as strings."""
    values = column.to_numpy(zero_copy_only=False)
    return values if values.dtype.kind in "iu" else values.astype(np.str_)


def _mask(array: Any) -> NDArray[np.bool_]:
    """An array of truth as NumPy has it; nothing is false."""
    mask: NDArray[np.bool_] = array.fill_null(False).to_numpy(zero_copy_only=False)
    return mask


def left_out_records(
    records: Records, names: Sequence[Any], source: str
) -> NDArray[np.int64] | None:
    """Records of each client without a score, and with one but no label, shape (2, K).

    None where none may be left out.

    Parameters
    ----------
    records : as they were decoded.
    names : of the clients that have records, in their order; of one that no column names any.
    source : the file or table.

    Raises
    ------
    DataError : where the client of a record is missing.

    Warns
    -----
    MissingWarning : for clients none of whose records is complete.

    Examples
    --------
    >>> ids, lacking = pa.array(["a", "b", "b"]), np.array([False, True, True])
    >>> records = Records(np.zeros(0), np.zeros(0), missing=lacking, missing_ids=ids)
    >>> left_out_records(records, ["a", "b"], "all.csv").tolist()
    [[1, 0], [0, 2]]
    """
    if records.missing is None:
        return None
    texts, ids = [source] * records.missing.size, [source]
    if records.missing_ids is not None:
        ids = list(map(str, names))
        texts = ["" if name is None else str(name) for name in records.missing_ids.to_pylist()]
    found, index = np.unique(np.array(texts, dtype=np.str_), return_inverse=True)
    counts = np.zeros((found.size, 2), dtype=np.int64)
    np.add.at(counts, (index, records.missing.astype(np.int64)), 1)
    return left_out_by_client(dict(zip(found.tolist(), counts, strict=True)), ids, source)


def left_out_by_client(
    counts: Mapping[str, ArrayLike], ids: Sequence[str], source: str
) -> NDArray[np.int64]:
    """What ``left_out_records`` says, of the numbers of each client.

    Parameters
    ----------
    counts : records without a score, and with one but no label, by the client's id, which is
        empty where there is none.
    ids : of the clients that have complete records, in their order.
    source : the file or table.
    """
    if "" in counts and "" not in ids:
        raise DataError(f"a record without a score or label has no client in {source}")
    nothing = np.zeros(2, dtype=np.int64)
    made = np.array([counts.get(name, nothing) for name in ids], dtype=np.int64).T
    unknown = counts.keys() - set(ids)
    if unknown:
        incomplete = sum(int(np.sum(counts[name])) for name in unknown)
        warnings.warn(
            f"{len(unknown):,} client{'s' * (len(unknown) > 1)} of {source} with no complete "
            f"record, {incomplete:,} incomplete in all, take no part and are not counted",
            MissingWarning,
            stacklevel=6,
        )
    return made


def dealt_out(left_out: NDArray[np.int64] | None, clients: int) -> NDArray[np.int64] | None:
    """Records that were left out, dealt to simulated clients as evenly as can be, shape (2, K).

    Examples
    --------
    >>> dealt_out(np.array([[5], [1]]), 2).tolist()
    [[3, 2], [1, 0]]
    """
    if left_out is None:
        return None
    totals = left_out.sum(axis=-1, keepdims=True)
    made: NDArray[np.int64] = totals // clients + (np.arange(clients) < totals % clients)
    return made
