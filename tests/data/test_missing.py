"""Records without a score or label: refused by default, or left out and counted by client."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.data.columns import MissingWarning, Records, dealt_out, left_out_records
from tests import known

ROWS = "score,label,site\n0.5,1,a\n,1,a\n0.7,,b\nNA,nan,b\n0.2,0,b\n0.1, null ,a\n"


def written(folder: Path, text: str = ROWS, name: str = "north.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def left_out_of(clients: tacit.Clients) -> list[list[int]]:
    """How many records of each client lacked a score, and how many only a label."""
    return [list(map(int, counts)) for counts in known(clients.left_out)]


def test_incomplete_records_are_left_out_and_counted_by_what_they_lack(tmp_path: Path) -> None:
    clients = tacit.read(written(tmp_path), missing="drop")
    assert clients.scores.tolist() == [0.5, 0.2]
    assert left_out_of(clients) == [[2], [2]]


def test_counts_are_of_each_client(tmp_path: Path) -> None:
    clients = tacit.read(written(tmp_path), client="site", missing="drop")
    assert clients.names == ("a", "b")
    assert left_out_of(clients) == [[1, 1], [1, 1]]
    both = tacit.Clients.concatenate([clients, tacit.Clients.from_arrays([0.1], [1], ["c"])])
    assert left_out_of(both) == [[1, 1, 0], [1, 1, 0]]
    assert left_out_of(both.part(1, 3)) == [[1, 0], [1, 0]]


def test_parquet_and_frames_count_nulls_and_nan(tmp_path: Path) -> None:
    table = pa.table({"score": [0.1, None, float("nan"), 0.4], "label": [True, True, None, None]})
    pq.write_table(table, tmp_path / "a.parquet")
    for clients in (
        tacit.read(tmp_path / "a.parquet", missing="drop"),
        tacit.Clients.from_frame(table, missing="drop"),
    ):
        assert clients.scores.tolist() == [0.1]
        assert left_out_of(clients) == [[2], [1]]


def test_records_without_labels_need_none(tmp_path: Path) -> None:
    clients = tacit.read(written(tmp_path), label=None, missing="drop")
    assert clients.records == 4
    assert left_out_of(clients) == [[2], [0]]


def test_a_wrong_value_is_still_an_error_that_names_its_row_in_the_file(tmp_path: Path) -> None:
    for wrong in ("0.3,2,a", "inf,1,a", "high,1,a"):
        path = written(tmp_path, ROWS + wrong + "\n")
        with pytest.raises(tacit.DataError, match=r"row 7 \(line 8\)"):
            tacit.read(path, missing="drop")


def test_a_client_without_a_complete_record_takes_no_part_and_is_said_to(tmp_path: Path) -> None:
    path = written(tmp_path, ROWS + ",1,c\n,0,c\n")
    with pytest.warns(MissingWarning, match=r"1 client of .* 2 incomplete in all, take no part"):
        clients = tacit.read(path, client="site", missing="drop")
    assert clients.names == ("a", "b")
    with pytest.raises(tacit.DataError, match="has no complete record: all 1 lack"):
        tacit.read(written(tmp_path, "score,label\n,1\n"), missing="drop")


def test_an_unknown_rule_and_a_missing_client_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"missing must be one of \('refuse', 'drop'\), got 'ign"):
        tacit.read(written(tmp_path), missing="ignore")  # type: ignore[arg-type]
    with pytest.raises(tacit.DataError, match="has no client"):
        tacit.read(written(tmp_path, ROWS + ",1,\n"), client="site", missing="drop")


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(-1, 3)), max_size=30))
def test_counts_agree_with_a_loop(dropped: list[tuple[int, int]]) -> None:
    kinds = np.array([kind == 2 for kind, _ in dropped], dtype=np.bool_)
    names = pa.array([str(owner) for _, owner in dropped], pa.string())
    none = np.zeros(0)
    records = Records(none, none.astype(np.int8), missing=kinds, missing_ids=names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingWarning)
        found = left_out_records(records, ["0", "1", "2", "3"], "all.csv")
    assert found is not None
    assert found.tolist() == [
        [sum(each == (kind, owner) for each in dropped) for owner in range(4)] for kind in (1, 2)
    ]


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 7))
def test_dealing_keeps_totals(first: int, second: int, clients: int) -> None:
    dealt = known(dealt_out(np.array([[first], [second]]), clients))
    assert dealt.sum(axis=1).tolist() == [first, second]
    assert np.ptp(dealt, axis=1).max() <= 1
