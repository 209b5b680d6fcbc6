"""Which of a person's records count, and how persons are read."""

from __future__ import annotations

import secrets
import warnings
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tacit import Groups, read, read_with_groups
from tacit.data.checking import WEIGHTED
from tacit.data.persons import SEED_BYTES, PersonWarning, as_persons, counted
from tacit.protocol import Clients, DataError

VISITS = st.lists(st.integers(0, 4), min_size=1, max_size=30)


def drawn_of(persons: list[int], sizes: list[int], most: int, seed: bytes) -> set[tuple[int, int]]:
    """The counted records, as (person, place among the person's records at one client)."""
    kept = counted(as_persons(persons), np.cumsum([0, *sizes]), most, seed)
    places = [persons[:row].count(person) for row, person in enumerate(persons)]
    return {(persons[row], places[row]) for row in np.flatnonzero(kept)}


def assert_same(one: NDArray[Any] | None, other: NDArray[Any] | None) -> None:
    """Both are known, and equal."""
    assert one is not None
    assert other is not None
    np.testing.assert_array_equal(one, other)


class TestCounted:
    """The draw."""

    @settings(max_examples=60, deadline=None)
    @given(persons=VISITS, most=st.integers(1, 4), added=VISITS, seed=st.binary(min_size=32))
    def test_a_person_more_changes_at_most_k_counted_records(
        self, persons: list[int], most: int, added: list[int], seed: bytes
    ) -> None:
        """Whichever seed: others' records are the same, wherever the person's records stand."""
        draw = seed[:SEED_BYTES]
        without = drawn_of(persons, [len(persons)], most, draw)
        mixed = persons.copy()
        for position in added:
            mixed.insert(min(position * 7, len(mixed)), 99)
        both = drawn_of(mixed, [len(mixed)], most, draw)
        assert without <= both
        assert {person for person, _ in both - without} == {99}
        assert len(both - without) == min(most, len(added))

    @settings(max_examples=40, deadline=None)
    @given(persons=VISITS, most=st.integers(1, 4))
    def test_at_most_k_count_and_fewer_in_whole(self, persons: list[int], most: int) -> None:
        half = len(persons) // 2
        sizes = [half, len(persons) - half] if half else [len(persons)]
        kept = counted(as_persons(persons), np.cumsum([0, *sizes]), most, bytes(SEED_BYTES))
        start = 0
        for size in sizes:
            part, inside = persons[start : start + size], kept[start : start + size]
            for person in set(part):
                mine = [row for row, other in enumerate(part) if other == person]
                assert inside[mine].sum() == min(most, len(mine))
            start += size

    def test_every_set_of_k_records_is_drawn_equally_often(self) -> None:
        """8,000 draws of two of five records: chi-square over the ten pairs at level 1e-6.

        A record whose pairs come 30 % more often than others is noticed: see the next test.
        """
        counts = draws_of_pairs(8000)
        assert stats.chisquare(counts).pvalue > 1e-6

    def test_the_test_of_the_draw_has_power(self) -> None:
        """Pairs with one record 30 % more often are noticed, in each of 200 samples."""
        weights = np.array([1.3 if 0 in pair else 1.0 for pair in combinations(range(5), 2)])
        samples = np.random.default_rng(0).multinomial(8000, weights / weights.sum(), 200)
        assert (stats.chisquare(samples, axis=1).pvalue < 1e-6).all()

    def test_draws_of_two_persons_are_independent(self) -> None:
        """Of 3 records each: the nine outcomes of 1,800 draws, chi-square at level 1e-6."""
        outcomes = np.zeros(9)
        persons = as_persons([1, 1, 1, 2, 2, 2])
        for _ in range(1800):
            first, second = np.flatnonzero(
                counted(persons, np.array([0, 6]), 1, secrets.token_bytes(SEED_BYTES))
            )
            outcomes[3 * first + second - 3] += 1
        assert stats.chisquare(outcomes).pvalue > 1e-6

    def test_one_seed_draws_the_same_records(self) -> None:
        persons, seed = as_persons([1] * 50), secrets.token_bytes(SEED_BYTES)
        first, again = (counted(persons, np.array([0, 50]), 5, seed) for _ in range(2))
        np.testing.assert_array_equal(first, again)
        other = counted(persons, np.array([0, 50]), 5, secrets.token_bytes(SEED_BYTES))
        assert (first != other).any()


def draws_of_pairs(times: int) -> list[int]:
    """How often each pair of five records was drawn, with fresh seeds of the system."""
    pairs = list(combinations(range(5), 2))
    counts = dict.fromkeys(pairs, 0)
    persons = as_persons(["ada"] * 5)
    for _ in range(times):
        kept = counted(persons, np.array([0, 5]), 2, secrets.token_bytes(SEED_BYTES))
        first, second = map(int, np.flatnonzero(kept))
        counts[(first, second)] += 1
    return list(counts.values())


class TestClients:
    """Clients that know whose records they are."""

    def test_what_counts_is_cut_out_of_every_column(self) -> None:
        clients = Clients.from_arrays(
            [0.1, 0.2, 0.3, 0.4],
            [0, 1, 0, 1],
            ["b", "a", "a", "a"],
            second=[1, 2, 3, 4],
            persons=["x", "x", "x", "y"],
        )
        kept, inside = clients.counted(1, bytes(SEED_BYTES))
        assert kept.persons is None
        assert kept.sizes.tolist() == [2, 1]
        np.testing.assert_array_equal(kept.scores, clients.scores[inside])
        assert clients.second is not None
        assert_same(kept.second, clients.second[inside])
        assert kept.names == ("a", "b")

    def test_parts_and_groups_know_their_persons(self) -> None:
        clients = Clients.from_arrays(
            [0.1, 0.2, 0.3], [0, 1, 0], ["a", "a", "b"], persons=[1, 2, 1]
        )
        assert_same(clients.part(0, 1).persons, as_persons([1, 2]))
        members = Groups.from_arrays(["u", "v", "v"]).members(clients, 1).persons
        assert_same(members, as_persons([2, 1]))
        joined = Clients.concatenate([clients.part(0, 1), clients.part(1, 2)]).persons
        assert_same(joined, clients.persons)

    @pytest.mark.parametrize("persons", [["a", None], ["a", " "], [1.5, 2.0], ["a"], [[1], [2]]])
    def test_a_record_without_a_person_is_refused(self, persons: list[object]) -> None:
        with pytest.raises(DataError, match="person"):
            Clients.from_arrays([0.1, 0.2], [0, 1], persons=np.array(persons, dtype=object))

    def test_weights_are_refused_until_their_sensitivity_is_defined(self) -> None:
        with pytest.raises(DataError) as refused:
            Clients.from_arrays([0.1, 0.2], [0, 1], sample_weight=[1.0, 2.0])
        assert str(refused.value) == WEIGHTED


class TestReading:
    """Columns of persons in files and tables."""

    def test_formats_agree_on_who_is_who(self, tmp_path: Path) -> None:
        table = pa.table({"score": [0.1, 0.9, 0.5], "label": [0, 1, 1], "who": [7, 8, 7]})
        pq.write_table(table, tmp_path / "numbers.parquet")
        (tmp_path / "text.csv").write_text("score,label,who\n0.1,0,7\n0.9,1,8\n0.5,1, 7\n")
        numbers = read(tmp_path / "numbers.parquet", person="who").persons
        text = read(tmp_path / "text.csv", person="who").persons
        frame = Clients.from_frame(table, person="who").persons
        assert_same(numbers, as_persons([7, 8, 7]))
        assert_same(numbers, text)
        assert_same(numbers, frame)

    def test_persons_follow_their_records_to_clients(self, tmp_path: Path) -> None:
        path = tmp_path / "one.csv"
        path.write_text("score,label,site,who,ward\n.1,0,b,1,u\n.2,1,a,2,v\n.3,1,b,3,v\n")
        clients, groups = read_with_groups(path, "ward", client="site", person="who")
        assert_same(clients.persons, as_persons([2, 1, 3]))
        assert groups.of_record.tolist() == [1, 0, 1]

    @pytest.mark.parametrize("cell", ["", '""', '" "'])
    def test_an_empty_cell_is_named(self, tmp_path: Path, cell: str) -> None:
        path = tmp_path / "one.csv"
        path.write_text(f"score,label,who\n0.1,0,a\n0.2,1,{cell}\n")
        with pytest.raises(DataError, match=r"column 'who' has no value.* in .*one.csv, row 2"):
            read(path, person="who")

    def test_persons_at_two_clients_are_counted_on_the_screen(self, tmp_path: Path) -> None:
        for name, who in (("north", "a"), ("south", "a"), ("west", "b")):
            (tmp_path / f"{name}.csv").write_text(f"score,label,who\n0.1,0,{who}\n")
        paths = [tmp_path / f"{name}.csv" for name in ("north", "south", "west")]
        with pytest.warns(PersonWarning, match="1 person with records at two clients"):
            read(paths, person="who")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read(paths[1:], person="who")
