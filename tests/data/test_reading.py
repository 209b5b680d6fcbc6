import gzip
import math
import os
import re
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.data import columns as decoding
from tacit.data import tables
from tacit.data.form import DROPPED
from tacit.data.reading import read
from tacit.protocol import Clients, DataError

MIB = 1 << 20
GOOD = "score,label\n0.2,0\n0.9,1\n"


def refused(message: str) -> Any:
    return pytest.raises(DataError, match=f"^{re.escape(message)}$")


def named(source: str) -> str:
    """What messages call a file, or a frame."""
    return source if "." in source else "the table"


def at(source: str, row: int) -> str:
    """The location of a record, with its line where no record before it has two."""
    has_lines = "." in source and not source.endswith((".parquet", ".pq"))
    return f"{named(source)}, row {row}" + (f" (line {row + 1})" if has_lines else "")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An empty working directory, so that messages name files alone."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def save(name: str, columns: Any) -> Any:
    """Write a table in the format of the file's name."""
    table = pa.table(columns)
    if name.endswith((".parquet", ".pq")):
        pq.write_table(table, name, row_group_size=2)
    else:
        separator = "\t" if ".tsv" in name else ","
        with pa.output_stream(name) as stream:
            pa_csv.write_csv(table, stream, pa_csv.WriteOptions(delimiter=separator))
    return name


FORMATS = ["a.csv", "a.csv.gz", "a.tsv", "a.tsv.gz", "a.parquet", "a.pq", "a.CSV"]


@pytest.mark.parametrize("name", FORMATS)
def test_one_file_is_one_client_named_by_its_stem(folder: Path, name: str) -> None:
    save(name, {"score": [0.2, 0.9, 0.4], "label": [0, 1, 1], "x": ["u", "v", "w"]})
    for paths in (name, Path(name), [name]):
        clients = read(paths)
        assert clients.names == ("a",)
        np.testing.assert_array_equal(clients.scores, [0.2, 0.9, 0.4])
        np.testing.assert_array_equal(clients.labels, [0, 1, 1])
        assert (clients.scores.dtype.name, clients.labels.dtype.name) == ("float64", "int8")
        assert not clients.simulated


FRAMES: dict[str, Callable[[Any], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
}
SOURCES = [*FORMATS, *FRAMES]


def clients_of(source: str, columns: Any, **options: Any) -> Clients:
    """Clients of a frame, or of a file in the format of its name."""
    if source in FRAMES:
        return Clients.from_frame(FRAMES[source](columns), **options)
    return read(save(source, columns), **options)


@pytest.mark.parametrize("source", SOURCES)
def test_records_are_grouped_by_a_client_column(folder: Path, source: str) -> None:
    columns = {"y": [0, 1, 1], "site": ["b", "a", "b"], "p": [0.1, 0.2, 0.3], "z": [7, 8, 9]}
    clients = clients_of(source, columns, score="p", label="y", client="site", second="z")
    assert clients.names == ("a", "b")
    np.testing.assert_array_equal(clients.scores, [0.2, 0.1, 0.3])
    np.testing.assert_array_equal(clients.labels, [1, 0, 1])
    np.testing.assert_array_equal(np.asarray(clients.second), [8.0, 7.0, 9.0])
    bare = clients_of(source, columns, score="p", label=None)
    assert (bare.count, bare.names) == (1, () if source in FRAMES else ("a",))
    assert bare.second is None and not bare.labels.any()


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "labels", [[True, False, True], [1, 0, 1], [1.0, 0.0, 1.0], ["1", "0", "1"]]
)
def test_labels_may_be_booleans_or_numbers(folder: Path, source: str, labels: Any) -> None:
    clients = clients_of(source, {"score": [1, 2, 3], "label": labels})
    np.testing.assert_array_equal(clients.labels, [1, 0, 1])


def with_bad_row_17(column: str, value: Any) -> Any:
    """A table of 20 good records but for one value, whose row group does not start the file."""
    columns: dict[str, list[Any]]
    columns = {"score": [0.5] * 20, "label": [1] * 20, "site": ["s"] * 20, "z": [2.5] * 20}
    columns[column][16] = value
    return columns


BLANK = "column {!r} has no value in ROW; " + DROPPED
ONE = {"score": [0.5], "label": [1], "site": ["s"], "z": [1.5]}
WORD = "high"

WRONG: list[tuple[Any, str]] = [
    (with_bad_row_17("score", math.nan), BLANK.format("score").replace("value", "value, got nan")),
    (with_bad_row_17("score", None), BLANK.format("score")),
    (with_bad_row_17("score", float("inf")), "scores must be finite, got inf in ROW"),
    (with_bad_row_17("score", float("-inf")), "scores must be finite, got -inf in ROW"),
    (with_bad_row_17("label", 3), "labels must be 0 or 1, got 3 in ROW"),
    (with_bad_row_17("label", -3), "labels must be 0 or 1, got -3 in ROW"),
    (with_bad_row_17("label", None), BLANK.format("label")),
    (with_bad_row_17("site", None), "column 'site' has no value in ROW"),
    (with_bad_row_17("z", float("inf")), "second values must be finite, got inf in ROW"),
    (with_bad_row_17("z", None), BLANK.format("z")),
    (ONE | {"score": [WORD]}, "scores must be numbers, got 'high' in FIRST"),
    (ONE | {"label": [WORD]}, "labels must be 0 or 1, got 'high' in FIRST"),
    (ONE | {"z": [WORD]}, "second values must be numbers, got 'high' in FIRST"),
    *(
        (
            {key: values for key, values in ONE.items() if key != name},
            f"NAME has no column {name!r}, its columns are "
            f"{', '.join(repr(key) for key in ONE if key != name)}{remedy}",
        )
        for name, remedy in (
            ("score", "; name it: --score COLUMN"),
            ("label", "; name it: --label COLUMN"),
            ("site", "; name it: --client COLUMN"),
            ("z", ""),
        )
    ),
]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_wrong_value_is_refused_with_its_place(folder: Path, number: int, source: str) -> None:
    columns, message = WRONG[number]
    if source == "pandas":  # there a value that is absent is none
        message = message.replace(", got nan", "")
    message = message.replace("ROW", at(source, 17)).replace("FIRST", at(source, 1))
    with refused(message.replace("NAME", named(source))):
        clients_of(source, columns, client="site", second="z")


@pytest.mark.parametrize("source", ["a.parquet", *FRAMES])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"score": [True]}, "'score' of NAME must hold numbers, got type bool"),
        ({"site": [1.5]}, "'site' of NAME must hold integers or strings, got type double"),
        ({"who": [1.5]}, "'who' of NAME must hold integers or strings, got type double"),
    ],
)
def test_columns_of_wrong_types(folder: Path, changed: Any, message: str, source: str) -> None:
    with refused(f"column {message.replace('NAME', named(source))}"):
        clients_of(source, ONE | {"who": ["p"]} | changed, client="site", person="who")


@pytest.mark.parametrize("source", ["a.parquet", *FRAMES])
def test_a_table_without_records_is_refused(folder: Path, source: str) -> None:
    columns = {"score": np.zeros(0), "label": np.zeros(0, dtype=np.int8)}
    with refused(f"{named(source)} has no records; leave it out"):
        clients_of(source, columns)


def test_records_of_one_id_are_one_clients_whatever_their_files(folder: Path) -> None:
    save("a.parquet", {"score": [0.1, 0.2, None], "label": [0, 1, 1], "site": [10, 9, 9]})
    save("b.parquet", {"score": [0.3, 0.4, 0.5], "label": [0, None, 1], "site": [9, 10, 10]})
    clients = read(["b.parquet", "a.parquet"], client="site", missing="drop")
    assert (clients.names, clients.offsets.tolist()) == (("9", "10"), [0, 2, 4])
    assert clients.scores.tolist() == [0.3, 0.2, 0.5, 0.1]
    assert clients.left_out is not None
    assert clients.left_out.tolist() == [[1, 0], [0, 1]]


def test_files_with_one_stem_are_named_by_their_paths(folder: Path) -> None:
    for name in ("north/a.csv", "south/a.csv", "b.csv"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(GOOD)
    clients = read(["north/a.csv", Path("south/a.csv"), "b.csv"])
    assert clients.names == ("north/a.csv", "south/a.csv", "b")


@pytest.mark.parametrize(
    "scores",
    [
        pa.array([1, 0, 1], pa.int8()),
        pa.array([1, 0, 1], pa.uint64()),
        pa.array([0.5, 0.25, 1.0], pa.float32()),
        pa.array([Decimal("0.50"), Decimal("0.70"), Decimal("-1.00")]),
        pa.array([0.5, 0.25, 0.5]).dictionary_encode(),
    ],
)
def test_scores_of_any_numeric_type_are_read_as_float64(folder: Path, scores: Any) -> None:
    save("a.parquet", {"score": scores, "label": [0, 1, 1]})
    expected = [float(value) for value in scores.to_pylist()]
    np.testing.assert_array_equal(read("a.parquet").scores, expected)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
@pytest.mark.parametrize("size", [2**53, 2**53 + 1, -(2**60) - 1])
def test_whole_numbers_that_would_round_are_refused(folder: Path, name: str, size: int) -> None:
    """2**53 and 2**53 + 1 are one float64: records of different scores would tie."""
    save(name, {"score": [1, size], "label": [0, 1]})
    bound = "scores that are whole numbers must be below 2**53 in size"
    with refused(f"{bound}, got {size} in {at(name, 2)}"):
        read(name)
    save(name, {"score": [1 - 2**53, 2**53 - 1], "label": [0, 1]})
    np.testing.assert_array_equal(read(name).scores, [1 - 2**53, 2**53 - 1])


def put(name: str, content: str | bytes) -> str:
    """Write a file of text, packed as its name says."""
    with pa.output_stream(name) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)
    return name


MISSING = "column {!r} has no value, got {} in NAME, row 2 (line 3); " + DROPPED
LABEL = "labels must be 0 or 1, got {} in NAME, row 2 (line 3)"
NOT_CLOSED = (
    "a quotation mark of NAME is not closed, in the record that begins on line {} and goes on to "
    "line {}"
)
NOTES = "score,label,note\n"

REFUSED = [
    *((head, "NAME has no records; leave it out") for head in ("", "score,label", "score,label\n")),
    ("score,label,score\n0.5,1,0.6\n", "NAME has 2 columns named 'score'; rename all but one"),
    ("score,label\r0.5,1\r0.25,0", "lines of NAME must end in LF or CR LF, got CR alone"),
    ("score,label\r0.5,1\r0.25,0\r", "lines of NAME must end in LF or CR LF, got CR alone"),
    *(
        (
            "\n".join(["score,label", *["0.5,1"] * (row - 1), "O.5,1", *["0.5,1"] * (20 - row)]),
            f"scores must be numbers, got 'O.5' in NAME, row {row} (line {row + 1})",
        )
        for row in (1, 2, 17, 19, 20)
    ),
    *(
        (f"score,label\n0.5,1\n0.5,{label}\n0.5,0\n", LABEL.format(shown))
        for label, shown in (("yes", "'yes'"), ("tru", "'tru'"), ("10", "10"), ("0.5", "0.5"))
    ),
    *(
        (f"score,label\n0.5,1\n{row}\n0.5,0\n", MISSING.format(column, shown))
        for word, shown in (("nan", "nan"), ("NA", "'NA'"), (" n/d ", "' n/d '"))
        for column, row in (("label", f"0.5,{word}"), ("score", f"{word},1"))
    ),
    *(
        (
            f"score,label\n0.5,1\n\n0.5,1\n{line}\n0.5,1\n",
            f"a record must have 2 fields, got {fields} in NAME, row 3 (line 5)",
        )
        for line, fields in (("0.5", 1), ("0.5,1,3", 3))
    ),
    (
        NOTES + '0.2,0,a\n0.5,1,"' + "x" * 3 * MIB + '"\n',
        "a record of NAME must have at most 1,048,576 bytes, got more; "
        "is a quotation mark not closed?",
    ),
    # a record that a mark at its beginning makes too short: it goes on to the end of the file
    (
        'score,label\n0.5,1\n"0.5,1\n0.2,0\n',
        "a record must have 2 fields, got 1 in NAME, row 2 (line 3)",
    ),
    # a mark that is never closed, so that its value would be all that follows
    *(
        (
            NOTES + '0.5,1,"a\nb"\n0.2,0,"c\n' + "0.9,1,d\n" * after,
            NOT_CLOSED.format(4, 4 + after),
        )
        for after in (3, 20_000)
    ),
    # two of them: the second would close the first, and what is between them would be one value
    *(
        (
            NOTES + before + '0.5,1,"a\n0.2,0,b\n0.9,1,"c\n0.1,0,d\n',
            NOT_CLOSED.format(first, first + 2),
        )
        for before, first in (("", 2), ('0.2,0,"c"d"e\n', 3))
    ),
]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_a_file_of_text_is_refused_with_its_place(folder: Path, number: int, name: str) -> None:
    content, message = REFUSED[number]
    with refused(message.replace("NAME", name)):
        read(put(name, content))


MANY = b"score,label\n" + b"".join(b"%f,%d\n" % (k * 0.618 % 1, k % 2) for k in range(1000))


@pytest.mark.parametrize(
    ("content", "pattern"),
    [
        # a damaged file may hold values of a million characters
        (f"score,label\n0.5,0\n{'x' * 1_000_000},1\n", r"scores must be numbers, got 'x*\.\.\. in"),
        (f"score,label\n0.5,0\n{'9' * 400},1\n", r"scores must be finite, got 9*\.\.\. in"),
        (b"\x89PNG\r\n\x1a\n\x00\xff", r"a\.csv cannot be read: .*(utf-8|UTF8)"),
        (b"score,label\n0.5,\xff\xfe\n", r"a\.csv cannot be read: .*(utf-8|UTF8)"),
        ("scor\u00e9,label\n0.5,1\n".encode("latin-1"), r"decode .*; save it as UTF-8$"),
        (gzip.compress(MANY, mtime=0), r"decode .*; it is packed: end its name in \.gz$"),
        (",".join(f"c{number}" for number in range(500)) + "\n0\n", "'c19', 480 more; name it"),
    ],
)
def test_damaged_files_are_refused(folder: Path, content: str | bytes, pattern: str) -> None:
    with pytest.raises(DataError, match=pattern) as caught:
        read(put("a.csv", content))
    assert len(str(caught.value)) < 250


LONG = 'a 5"" tube\n' * 20_000
"""Python's parser takes values of 131,072 characters, unless it is told otherwise."""

READ: dict[str, str | bytes] = {
    "plain": GOOD,
    "a byte-order mark": "\ufeff" + GOOD,
    "spaces, signs and words": "score,label\n +2e-1, False\n0.9 ,TRUE \n",
    "labels with a point": "score,label\n.2,0.0\n0.90,1.0\n",
    "records of several lines": 'score,note,label\n0.2,"one\ntwo",0\n\n0.9,"three, ""four""",1\n',
    "a CR in a name": 'score,label,"a\rnote"\n0.2,0,x\n0.9,1,y\n',
    "a long value": f'score,label,note\n0.2,0,"{LONG}"\n0.9,1,a 5" tube\n',
    "marks within values": 'score,label,note\n0.2,0,a 5" tube\n0.9,1,"b ""c"""\n',
    "UTF-16": GOOD.encode("utf-16"),
    "UTF-16 LE": ("\ufeff" + GOOD).encode("utf-16-le"),
    "UTF-16 BE": ("\ufeff" + GOOD).encode("utf-16-be"),
    "another encoding beside": "score,label,place\n0.2,0,Orléans\n0.9,1,x\n".encode("latin-1"),
}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind in READ
        for name in ("a.csv", "a.csv.gz", "a.csv.bz2")
        if name == "a.csv" or not kind.startswith("UTF-16")
    ],
)
def test_a_file_of_text_is_read(folder: Path, kind: str, name: str) -> None:
    clients = read(put(name, READ[kind]))
    assert (clients.names, clients.scores.tolist()) == (("a",), [0.2, 0.9])
    assert clients.labels.tolist() == [0, 1]


@pytest.mark.parametrize("text", ["1e300", "9007199254740993.5", "-1e16"])
def test_large_numbers_that_are_not_written_as_whole_ones_are_read(folder: Path, text: str) -> None:
    assert read(put("a.csv", f"score,label\n{text},0\n0.5,1\n")).scores[0] == float(text)


def test_ids_of_a_csv_file_stay_as_written(folder: Path) -> None:
    put("a.csv", "score,label,site\n0.1,0,01\n0.2,1,1\n0.3,1,NA\n")
    assert read("a.csv", client="site").names == ("01", "1", "NA")


finite = st.floats(allow_nan=False, allow_infinity=False)
record = st.tuples(finite, st.integers(0, 1), st.text('ab,"\n é', min_size=1, max_size=3))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all examples of a test."""
    return tmp_path_factory.mktemp("shared")


@settings(deadline=None)
@given(st.lists(record, min_size=1, max_size=30))
def test_both_formats_and_a_frame_give_the_same_clients(shared: Path, records: Any) -> None:
    scores, labels, sites = (list(column) for column in zip(*records, strict=True))
    columns = {"score": scores, "label": labels, "site": sites}
    expected = Clients.from_frame(pa.table(columns), client="site")
    for name in ("a.csv", "a.parquet"):
        clients = read(save(str(shared / name), columns), client="site")
        assert clients.names == expected.names
        for field in ("scores", "labels", "offsets"):
            np.testing.assert_array_equal(getattr(clients, field), getattr(expected, field))


@pytest.mark.parametrize(
    ("name", "limit", "size"),
    [*(("a.parquet", "BATCH_ROWS", rows) for rows in (1, 3, 16, 17)), ("a.csv", "BLOCK_BYTES", 64)],
)
def test_rows_are_counted_over_batches(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: str, size: int
) -> None:
    monkeypatch.setattr(tables, limit, size)
    save(name, with_bad_row_17("label", 5))
    with refused(f"labels must be 0 or 1, got 5 in {at(name, 17)}"):
        read(name)


ENDS = ".csv, .csv.gz, .csv.bz2, .tsv, .tsv.gz, .tsv.bz2, .parquet, .pq, .feather, .arrow"


@pytest.mark.parametrize(
    ("paths", "options", "message"),
    [
        ([], {}, "at least one file is needed, got none"),
        ("gone.csv", {}, "gone.csv does not exist"),
        ("gone.parquet", {}, "gone.parquet does not exist"),
        ("folder.csv", {}, "folder.csv cannot be read: Is a directory"),
        ("pipe.csv", {}, "pipe.csv cannot be read: it is no regular file"),  # it does not wait
        (["a.csv", "./a.csv"], {}, "duplicate file ./a.csv"),
        ("a.xlsx", {}, f"files must end in {ENDS}, got a.xlsx; save the sheet as CSV"),
        (
            "a.csv",
            {"unit": "percent"},
            "scores in percent must be from 0 to 100, got 130 in a.csv, row 2 (line 3)",
        ),
    ],
)
def test_unreadable_files_are_refused(folder: Path, paths: Any, options: Any, message: str) -> None:
    Path("folder.csv").mkdir()
    os.mkfifo("pipe.csv")
    put("a.csv", "score,label\n50,1\n130,0\n")
    with refused(message):
        read(paths, **options)


def test_a_parquet_id_that_is_no_text_is_refused(folder: Path) -> None:
    save("a.parquet", {"score": [0.5], "label": [1], "site": ["north"]})
    whole = Path("a.parquet").read_bytes()
    Path("a.parquet").write_bytes(whole.replace(b"north", b"n\xffrth"))
    with pytest.raises(DataError, match=r"^a\.parquet cannot be read: .*UTF8"):
        read("a.parquet", client="site")


@settings(deadline=None)
@given(st.binary(max_size=200), st.sampled_from([b"", b"score,label\n", b"score,label\n0.5,1\n"]))
def test_any_bytes_are_read_or_refused(shared: Path, tail: Any, head: Any) -> None:
    for name in ("a.csv", "a.csv.gz", "a.parquet"):
        (shared / name).write_bytes(head + tail)
        try:
            assert read(shared / name).records >= 1
        except DataError as error:
            assert name in str(error)


@pytest.mark.parametrize("name", ["a.parquet", "a.csv.gz"])
def test_a_file_cut_off_anywhere_is_refused(folder: Path, name: str) -> None:
    save(name, {"score": [0.5, 0.25, 0.75] * 9, "label": [0, 1, 1] * 9})
    whole = Path(name).read_bytes()
    for length in [*range(0, len(whole), 19), len(whole) - 1]:
        Path(name).write_bytes(whole[:length])
        with pytest.raises(DataError, match=f"^{name} (cannot be read: |has no records; leave )"):
            read(name)


def test_a_refusal_is_shown_without_the_error_below_it(folder: Path) -> None:
    Path("a.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(DataError) as refusal:
        read("a.parquet")
    assert refusal.value.__suppress_context__
    assert "\n" not in str(refusal.value)


def change_while_decoding(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    decode = decoding.decoded

    def decode_and_change(batch: Any, columns: Any, location: Any) -> Any:
        change()
        return decode(batch, columns, location)

    monkeypatch.setattr(decoding, "decoded", decode_and_change)


def append(name: str) -> None:
    with Path(name).open("ab") as handle:
        handle.write(b"0.1,0\n")


def touch(name: str) -> None:
    os.utime(name, ns=(0, Path(name).stat().st_mtime_ns + 1))


@pytest.mark.parametrize("label", [1, 2], ids=["good", "which caused a fault"])
@pytest.mark.parametrize("change", [append, touch])
@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.csv.gz"])
def test_a_file_that_changes_while_it_is_read_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, change: Any, label: int
) -> None:
    save(name, {"score": [0.5, 0.25], "label": [0, label]})
    change_while_decoding(monkeypatch, lambda: change(name))
    with refused(f"{name} changed while it was being read"):
        read(name)


def wide(records: Any, others: Any) -> Any:
    rng = np.random.default_rng(4)
    columns = {"score": rng.random(records), "label": rng.integers(0, 2, records, dtype=np.int8)}
    return pa.table(columns | {f"x{index}": rng.random(records) for index in range(others)})


def peak_of_reading(path: Path) -> Any:
    """The most bytes that Arrow and Python hold at once, added; both are counted from here on."""
    usual = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        read(path)
        return pool.max_memory() + tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)


def test_other_parquet_columns_are_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    pq.write_table(wide(20_000, 200), path, compression="none")
    assert path.stat().st_size > 30 * MIB
    assert peak_of_reading(path) < 3 * MIB


def test_a_csv_file_is_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "BLOCK_BYTES", MIB // 16)
    path = tmp_path / "wide.csv"
    path.write_bytes(b"score,label,x\n" + (b"0.5,1," + b"x" * 1000 + b"\n") * 40_000)
    assert path.stat().st_size > 38 * MIB
    assert peak_of_reading(path) < 8 * MIB


@pytest.mark.parametrize("name", FORMATS)
def test_arrow_alone_reads_files(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Arrow's threads outlive a reading that was refused; a file of Python would abort the end."""
    save(name, {"score": [0.2, 0.9], "label": [0, 1]})
    packed, text, parquet = (
        Mock(wraps=each) for each in (pa.CompressedInputStream, pa_csv.open_csv, pq.ParquetFile)
    )
    monkeypatch.setattr(pa, "CompressedInputStream", packed)
    monkeypatch.setattr(pa_csv, "open_csv", text)
    monkeypatch.setattr(pq, "ParquetFile", parquet)
    read(name)
    assert text.called or parquet.called
    given = [call.args[0] for each in (packed, text, parquet) for call in each.call_args_list]
    assert all(isinstance(each, pa.NativeFile) for each in given), given
    assert not any(isinstance(each, pa.PythonFile) for each in given), given


def test_a_damaged_page_with_a_checksum_is_refused(folder: Path) -> None:
    rows = pa.table({"score": np.linspace(0, 1, 4000), "label": np.arange(4000) % 2})
    plain = {"compression": "none", "use_dictionary": False}
    pq.write_table(rows, "a.parquet", write_page_checksum=True, **plain)
    content = bytearray(Path("a.parquet").read_bytes())
    content[9000] ^= 1
    Path("a.parquet").write_bytes(content)
    with pytest.raises(DataError, match="CRC checksum"):
        read("a.parquet")
