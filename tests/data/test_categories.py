"""Classes and groups of records, and how they follow their records; groups from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.data.categories import Categories, Groups
from tacit.data.reading import read, read_with_groups
from tacit.protocol import Clients, DataError
from tests import known
from tests.federations import federations


def clients_of_three() -> Clients:
    scores = np.arange(12, dtype=np.float64).reshape(4, 3) / 12
    return Clients.from_classes(scores, ["c", "a", "b", "a"], "abc", ["n", "s", "n", "s"])


def test_categories_follow_their_records() -> None:
    clients = clients_of_three()
    assert known(clients.categories).of_record.tolist() == [2, 1, 0, 0]
    scores = known(known(clients.part(1, 2).categories).scores)
    assert (12 * scores[:, 0]).round().tolist() == [3, 9]
    both = Clients.concatenate([clients.part(0, 1), clients.part(1, 2)])
    assert known(both.categories).of_record.tolist() == [2, 1, 0, 0]
    blank = np.zeros(4)
    dealt = Clients.split(np.arange(4.0), blank, 2, seed=1, categories=known(clients.categories))
    expected = known(clients.categories).of_record[dealt.scores.astype(int)]
    assert known(dealt.categories).of_record.tolist() == expected.tolist()


def test_counted_records_keep_their_categories() -> None:
    made = Categories.of_values("ab", ["a", "b", "b"])
    clients = Clients.from_arrays([0.1, 0.2, 0.3], [0, 1, 1], persons=["p", "p", "q"])
    chosen, inside = clients.with_categories(made).counted(1, bytes(32))
    assert known(chosen.categories).of_record.tolist() == made.of_record[inside].tolist()


@pytest.mark.parametrize(
    ("names", "values", "scores", "message"),
    [
        ("a", ["a"], None, "classes or groups must be 2 to 200 names that differ, got 1: a$"),
        ("aa", ["a"], None, "2 to 200 names that differ, got 2: a, a"),
        ("ab", ["a", "z"], None, "'z' in row 2 is none of a, b"),
        ("ab", [0, 2], None, "'2' in row 2 is none of a, b"),
        ("ab", [0.5], None, "integers or strings, got type float64"),
        ("ab", ["a"], [[0.1]], r"scores must have the shape \(1, 2\), got \(1, 1\)"),
        ("ab", ["a"], [[0.1, np.nan]], "scores must be finite, got nan in row 1"),
    ],
)
def test_what_is_no_category_is_refused(
    names: str, values: list[object], scores: list[list[float]] | None, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        Categories.of_values(tuple(names), values, scores)  # type: ignore[arg-type]


def test_batches_of_other_classes_do_not_go_together() -> None:
    plain = Clients.from_arrays([0.1], [0])
    with pytest.raises(DataError, match="1 of 2 batches have categories: all must"):
        Clients.concatenate([clients_of_three(), plain])
    other = plain.with_categories(Categories.of_values("xyz", ["x"]))
    with pytest.raises(DataError, match="all batches must have the same classes"):
        Clients.concatenate([clients_of_three(), other])
    with pytest.raises(DataError, match="1 records but 2 categories"):
        plain.with_categories(Categories.of_values("ab", ["a", "b"]))


@given(clients=federations(), seed=st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_members_are_a_group_and_nothing_else(clients: Clients, seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 3, clients.records)
    groups = Groups.from_arrays(values)
    seen = 0
    for index, name in enumerate(groups.names):
        members = groups.members(clients, index)
        rows = [i for i in range(clients.records) if str(values[i]) == name]
        assert members.scores.tolist() == clients.scores[rows].tolist()
        assert members.labels.tolist() == clients.labels[rows].tolist()
        clients_of_rows = [int(clients.client_of_record[i]) for i in rows]
        remaining = sorted(set(clients_of_rows))
        assert members.sizes.tolist() == [clients_of_rows.count(k) for k in remaining]
        seen += members.records
    assert seen == clients.records


def test_groups_are_in_the_order_of_their_clients() -> None:
    assert Groups.from_arrays(["x", "y"], ["b", "a"]).of_record.tolist() == [1, 0]


def test_agreed_numbers_are_names_of_groups() -> None:
    assert Groups.from_arrays([10, 9, 10]).names == ("9", "10")
    assert Groups.from_arrays([10, 2], names=[2, 10]).names == ("2", "10")  # type: ignore[list-item]
    with pytest.raises(DataError, match="is none of 2, 3: agree on every group"):
        Groups.from_arrays([10, 2], names=[2, 3])  # type: ignore[list-item]


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("client", [None, "site"])
def test_files_give_each_record_its_group(tmp_path: Path, form: str, client: str | None) -> None:
    rng = np.random.default_rng(3)
    paths, ward_of = [], dict[float, str]()
    for index in range(2):
        scores, wards = rng.random(40).round(6), rng.choice(["10", "9"], 40)
        sites = [f"{index}{site}" for site in rng.integers(0, 3, 40)]
        columns = {"score": scores, "label": rng.integers(0, 2, 40), "site": sites, "ward": wards}
        paths.append(tmp_path / f"file{index}.{form}")
        write = pq.write_table if form == "parquet" else pa_csv.write_csv
        write(pa.table(columns), paths[-1])
        ward_of |= dict(zip(scores.tolist(), wards.tolist(), strict=True))
    clients, groups = read_with_groups(paths, "ward", client=client)
    assert clients.scores.tolist() == read(paths, client=client).scores.tolist()
    assert groups.names == ("10", "9")
    named = [groups.names[group] for group in groups.of_record]
    assert named == [ward_of[score] for score in clients.scores.tolist()]


def test_a_record_without_a_group_is_named(tmp_path: Path) -> None:
    path = tmp_path / "north.csv"
    path.write_text("score,label,ward\n0.1,0,a\n0.2,1,\n")
    with pytest.raises(DataError, match=r"column 'ward' has no value in .*north.csv, row 2"):
        read_with_groups(path, "ward")
    with pytest.raises(DataError, match="has no column 'bed'"):
        read_with_groups(path, "bed")
    typed = tmp_path / "typed.parquet"
    pq.write_table(pa.table({"score": [0.1], "label": [0], "ward": [40.5]}), typed)
    with pytest.raises(DataError, match=r"'ward' of .* must hold integers or strings, got .*dou"):
        read_with_groups(typed, "ward")


@pytest.mark.parametrize(
    ("values", "match"),
    [
        (np.arange(300), r"^groups must be 0 to 200 names that differ, got 300: 0, 1, .*\.\.\.$"),
        ([0.5, 1.5], "one axis of integers or strings, got type float64"),
        ([[1, 2]], "one axis of integers or strings"),
        (np.array(["a", 1], dtype=object), "all integers or all strings"),
    ],
)
def test_what_is_no_group_is_refused(values: object, match: str) -> None:
    with pytest.raises(DataError, match=match):
        Groups.from_arrays(values)  # type: ignore[arg-type]


def test_groups_of_other_records_are_refused() -> None:
    clients = Clients.from_arrays([0.1, 0.2], [0, 1])
    with pytest.raises(DataError, match="2 records but 3 groups"):
        Groups.from_arrays([1, 2, 3]).members(clients, 0)
    with pytest.raises(DataError, match="3 groups but 2 client ids"):
        Groups.from_arrays([1, 2, 3], ["a", "b"])
