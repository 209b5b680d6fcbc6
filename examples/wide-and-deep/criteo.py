"""Records in the form of Criteo's display-advertising challenge, read, written, and made numbers.

A line of ``train.txt`` holds a label, 13 integers and 26 hashed categories of 8 hexadecimal digits,
with tabs between them; a field that is missing is empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

INTEGERS, CATEGORIES = 13, 26
MISSING = -1
"""The code of a category that is missing."""
BLOCK_BYTES = 2**22

NAMES = (
    "label",
    *(f"I{place + 1}" for place in range(INTEGERS)),
    *(f"C{place + 1}" for place in range(CATEGORIES)),
)
TYPES = {name: pa.string() if name.startswith("C") else pa.int64() for name in NAMES}


@dataclass(frozen=True, eq=False)
class Impressions:
    """Advertisements that were shown.

    Parameters
    ----------
    labels : int8, shape (M,): 1 for a click.
    integers : float64, shape (M, 13); NaN where missing.
    categories : int64, shape (M, 26), from 0 to 2^32 - 1; ``MISSING`` where missing.
    """

    labels: NDArray[np.int8]
    integers: NDArray[np.float64]
    categories: NDArray[np.int64]

    @property
    def records(self) -> int:
        """M, the number of records."""
        return self.labels.size


@dataclass(frozen=True, eq=False)
class Features:
    """What the model reads of the records; nothing of it depends on labels.

    Parameters
    ----------
    numbers : float32, shape (M, 26): the integers on a logarithmic scale, 0 where missing, and
        a flag for each that is missing.
    places : int64, shape (M, 26): rows of a table in which every column owns ``buckets`` rows.
    """

    numbers: NDArray[np.float32]
    places: NDArray[np.int64]

    @classmethod
    def of(cls, impressions: Impressions, buckets: int) -> Features:
        """The features of records, with categories hashed into so many buckets a column."""
        known = np.nan_to_num(impressions.integers)
        scaled = np.sign(known) * np.log1p(np.abs(known))
        numbers = np.hstack([scaled, np.isnan(impressions.integers)]).astype(np.float32)
        columns = np.arange(CATEGORIES, dtype=np.int64)
        hashed = 1 + mixed(impressions.categories, columns) % (buckets - 1)
        indices = np.where(impressions.categories == MISSING, 0, hashed) + columns * buckets
        return cls(numbers, indices)


def mixed(values: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """31 well-mixed bits of each value, others in every column (multiplicative hashing)."""
    odd = np.uint64(0x9E3779B97F4A7C15)
    spread = (values.astype(np.uint64) + columns.astype(np.uint64) * odd) * odd
    spread = (spread ^ (spread >> np.uint64(29))) * odd
    return (spread >> np.uint64(33)).astype(np.int64)


def read_criteo(path: Path, records: int | None = None) -> Impressions:
    """The first records of a file in Criteo's format, plain or with gzip.

    Parameters
    ----------
    path : the file; the challenge's ``test.txt`` has no labels and does not fit.
    records : how many records to read; None reads all.

    Raises
    ------
    ValueError : naming the file, for lines of another form, or fewer records than asked for.
    OSError : for a file that cannot be read.
    """
    try:
        parts = list(_parts(path, records))
    except (pa.ArrowInvalid, ValueError) as error:
        raise ValueError(f"{path} is not in Criteo's format: {error}") from None
    count = sum(part.records for part in parts)
    if not count or (records is not None and count < records):
        raise ValueError(f"{path} holds {count} records, {records or 'some'} were asked for")
    return Impressions(
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.integers for part in parts]),
        np.concatenate([part.categories for part in parts]),
    )


def write_criteo(path: Path, impressions: Impressions) -> None:
    """Write records as the challenge's ``train.txt`` has them."""
    columns = [pa.array(impressions.labels.astype(np.int64))]
    columns += [
        pa.array(np.nan_to_num(part).astype(np.int64), mask=np.isnan(part))
        for part in impressions.integers.T
    ]
    columns += [_texts(part) for part in impressions.categories.T]
    form = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    csv.write_csv(pa.table(columns, names=list(NAMES)), path, form)


def _parts(path: Path, records: int | None) -> Iterator[Impressions]:
    left = np.inf if records is None else records
    reader = csv.open_csv(
        path,
        csv.ReadOptions(column_names=list(NAMES), block_size=BLOCK_BYTES),
        csv.ParseOptions(delimiter="\t", quote_char=False),
        csv.ConvertOptions(column_types=TYPES, null_values=[""], strings_can_be_null=True),
    )
    with reader:
        for batch in reader:
            if left <= 0:
                return
            part = batch.slice(0, int(min(left, batch.num_rows)))
            left -= part.num_rows
            yield _impressions(part)


def _impressions(batch: pa.RecordBatch) -> Impressions:
    columns = [batch.column(name) for name in NAMES]
    labels = columns[0].to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero((labels != 0) & (labels != 1))
    if wrong.size:
        raise ValueError(f"labels must be 0 or 1, got {labels[wrong[0]]}")
    numbers = [part.to_numpy(zero_copy_only=False) for part in columns[1 : 1 + INTEGERS]]
    codes = [_codes(part) for part in columns[1 + INTEGERS :]]
    integers = np.column_stack(numbers).astype(np.float64)
    return Impressions(labels.astype(np.int8), integers, np.column_stack(codes))


def _codes(column: pa.Array) -> NDArray[np.int64]:
    """Hexadecimal texts as numbers; every distinct text is read once."""
    encoded = column.dictionary_encode()
    known = [int(text, 16) for text in encoded.dictionary.to_pylist()]
    if known and not 0 <= min(known) <= max(known) < 2**32:
        raise ValueError("categories have at most 8 hexadecimal digits")
    table = np.array([*known, MISSING], dtype=np.int64)
    indices = encoded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
    return np.asarray(table[indices])


def _texts(codes: NDArray[np.int64]) -> pa.Array:
    """Numbers as 8 hexadecimal digits, nothing for what is missing."""
    distinct, indices = np.unique(codes, return_inverse=True)
    texts = pa.array([None if code == MISSING else f"{code:08x}" for code in distinct.tolist()])
    return texts.take(pa.array(indices))
