"""Batches of clients: from arrays and frames, as parts, and their digests."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.categories import Categories
from tacit.data.persons import as_persons
from tacit.protocol import Clients, DataError


def refused(message: str) -> Any:
    return pytest.raises(DataError, match=f"^{re.escape(message)}$")


def three() -> Any:
    return Clients.from_arrays([0.1, 0.2, 0.3, 0.4, 0.5], [0, 1, 1, 0, 1], [*"babcb"])


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_grouping_is_that_of_a_naive_loop(ids: Any) -> None:
    numbers = np.arange(len(ids))
    clients = Clients.from_arrays(numbers, numbers % 2, ids)
    assert clients.names == tuple(map(str, sorted(set(ids))))
    for index, name in enumerate(sorted(set(ids))):
        expected = [number for number, part in zip(numbers, ids, strict=True) if part == name]
        np.testing.assert_array_equal(clients.part(index, index + 1).scores, expected)
        np.testing.assert_array_equal(clients.scores[clients.client_of_record == index], expected)
    np.testing.assert_array_equal(clients.labels, clients.scores % 2)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=12), st.integers(1, 5))
def test_parts_join_to_the_whole(sizes: Any, chunk: Any) -> None:
    ids = np.repeat(np.arange(len(sizes)), sizes)
    numbers = np.arange(ids.size)
    clients = Clients.from_arrays(numbers, ids % 2, ids, second=-numbers, persons=numbers)
    starts = range(0, clients.count, chunk)
    parts = [clients.part(start, min(start + chunk, clients.count)) for start in starts]
    joined = Clients.concatenate(parts)
    for field in ("scores", "second", "persons", "offsets"):
        np.testing.assert_array_equal(getattr(joined, field), getattr(clients, field))
    assert joined.names == clients.names


def test_concatenation_keeps_that_clients_are_simulated() -> None:
    split = Clients.split([0.1, 0.2], [0, 1], 2)
    assert Clients.concatenate([split, split]).simulated
    assert not Clients.concatenate([three()]).simulated


def test_ragged_sums_and_extremes_are_those_of_each_client() -> None:
    ragged = three().ragged(np.array([[2, 1, 3, 5, 4], [0, 0, 1, 0, -1]]))
    np.testing.assert_array_equal(ragged.sum(), [[2, 9, 4], [0, 1, -1]])
    np.testing.assert_array_equal(ragged.minimum(), [[2, 1, 4], [0, 0, -1]])
    np.testing.assert_array_equal(ragged.maximum(), [[2, 5, 4], [0, 1, -1]])
    np.testing.assert_array_equal(ragged.sizes, [1, 3, 1])
    assert ragged.part(1, 3).clients == 2
    np.testing.assert_array_equal(ragged.part(1, 3).sum(), [[9, 4], [1, -1]])


def test_whole_scores_that_would_be_rounded_are_refused() -> None:
    bound = "scores that are whole numbers must be below 2**53 in size"
    with refused(f"{bound}, got 9007199254740992 in row 2"):
        Clients.from_arrays([0, 2**53], [0, 1])
    with refused("scores must be numbers: int too large to convert to float"):
        Clients.from_arrays([0, 10**400], [0, 1])
    assert Clients.from_arrays([0.0, 2.0**60], [0, 1]).scores[1] == 2.0**60


@pytest.mark.parametrize("value", [2, -1, 0.5, float("nan")])
def test_a_label_other_than_zero_and_one_is_refused(value: Any) -> None:
    with pytest.raises(DataError, match=rf"^labels must be 0 or 1, got {value}(\.0)? in row 3$"):
        Clients.from_arrays([0.1, 0.2, 0.3], [0, 1, value])


def of_offsets(offsets: list[int], names: tuple[str, ...], labels: Any = (0, 0)) -> Clients:
    """Clients of finished arrays."""
    return Clients(np.zeros(2), np.array(labels, dtype=np.int8), np.array(offsets), names)


def wrong(value: str) -> list[float]:
    """Values of which the last is not finite."""
    return [0.1, 0.2, float(value)]


def beside(**more: Any) -> list[Clients]:
    """A batch without, and one with a further column."""
    return [Clients.from_values([1]), Clients.from_arrays([1], [0], **more)]


SITES = ["b", "a", "b"]
IDS = "client ids must be one axis of integers or strings"
BOTH = "client ids must be all integers or all strings"
LENGTHS = "scores, labels and client ids must have one length"
NO_NUMBER = "could not convert string to float:"


REFUSED: dict[Any, list[tuple[Any, str]]] = {
    Clients.from_arrays: [
        ((["high"], [0]), f"scores must be numbers: {NO_NUMBER} 'high'"),
        (([[0.1]], [0]), "scores must have one axis, got shape (1, 1)"),
        (
            ([[0.1, 0.9]], [0]),
            "scores must have one axis, got shape (1, 2); "
            "of probabilities of both classes pass p[:, 1]",
        ),
        (([0.1], [[0]]), "labels must have one axis, got shape (1, 1)"),
        (([0.1], ["yes"]), "labels must be 0 or 1, got values of type <U3"),
        (([0.1, 0.2], [0]), "2 scores but 1 labels"),
        (([], np.zeros(0, dtype=int)), "client 0 has no records"),
        (([1, 2], [0, 1], [1]), f"{LENGTHS}, got (2,), (2,) and (1,)"),
        (([1, 2], [0, 1], [1.5, 2]), f"{IDS}, got type float64 of shape (2,)"),
        (([1, 2], [0, 1], np.array(["a", None])), BOTH),
        (([1, 2], [0, 1], np.array(["a", 1], dtype=object)), BOTH),
        ((wrong("nan"), [0, 1, 0]), "scores must be finite, got nan in client 0, row 3"),
        ((wrong("-inf"), [0, 1, 0], SITES), "scores must be finite, got -inf in b, row 2"),
    ],
    of_offsets: [
        (([0], ()), "at least one client is needed, got none"),
        (([0, 1], ()), "offsets must run from 0 to 2, got 0 to 1"),
        (([1, 2], ()), "offsets must run from 0 to 2, got 1 to 2"),
        (([0, 2, 2], ()), "client 1 has no records"),
        (([0, 2], ("a", "b")), "1 clients but 2 names"),
        (([0, 1, 2], ("a", "a")), "client names must be unique, got 'a' twice"),
        (([0, 2], ("y",), (0, 7)), "labels must be 0 or 1, got 7 in y, row 2"),
    ],
    Clients.from_values: [
        (([1, 2], [1.0]), "2 scores but 1 second values"),
        (([1, 2], [1.0], [1, 2]), "2 scores but 1 second values"),
        (([1, 2], [[1], [2]]), "second values must have one axis, got shape (2, 1)"),
        (([1, 2], ["x", "y"]), f"second values must be numbers: {NO_NUMBER} 'x'"),
        (([1, 2, 3], wrong("inf"), SITES), "second values must be finite, got inf in b, row 2"),
    ],
    Clients.concatenate: [
        (([],), "no clients were given"),
        (([three(), three()],), "client names must be unique, got 'a' twice"),
        ((beside(second=[2]),), "1 of 2 batches have second values: all must, or none"),
        ((beside(persons=["p"]),), "1 of 2 batches have persons: all must, or none"),
    ],
}


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [(make, *row) for make, rows in REFUSED.items() for row in rows],
)
def test_what_makes_no_clients_is_refused(make: Any, given: Any, message: str) -> None:
    with refused(message):
        make(*given)


@pytest.mark.parametrize(
    "sites",
    [
        pd.Series(["b", "a"], dtype="category"),
        pd.Series([12, 3], dtype="category"),
        pl.Series(["b", "a"], dtype=pl.Categorical),
    ],
)
def test_a_frame_may_hold_clients_as_categories(sites: Any) -> None:
    frame = pd.DataFrame if isinstance(sites, pd.Series) else pl.DataFrame
    table = frame({"score": [0.1, 0.2], "label": [0, 1], "site": sites})
    clients = Clients.from_frame(table, client="site")
    assert clients.names == tuple(str(name) for name in sorted(sites))
    np.testing.assert_array_equal(clients.scores, [0.2, 0.1])


def test_a_frame_that_arrow_cannot_hold_is_refused() -> None:
    table = pd.DataFrame({"score": [0.1, 0.2], "label": [0, 1], "x": [1, "a"]})
    with pytest.raises(DataError, match=r"the table cannot be read as Arrow: .*column x"):
        Clients.from_frame(table)
    with pytest.raises(DataError, match=r"must have an Arrow stream, .*, got dict$"):
        Clients.from_frame({"score": [0.1], "label": [0]})


def test_a_record_is_named_by_its_client_and_row() -> None:
    clients = three()
    assert [clients.location(record) for record in (0, 3)] == ["a, row 1", "b, row 3"]
    unnamed = Clients.from_values([1, 2])
    assert (unnamed.count, unnamed.names, unnamed.location(1)) == (1, (), "client 0, row 2")


def two_classes(of_record: list[int], order: list[int]) -> Categories:
    return Categories.of_values(("x", "y"), of_record, np.arange(6.0).reshape(3, 2)[order])


WHOLE = replace(
    Clients.from_arrays([0.1, 0.4, 0.7], [1, 1, 0], second=[1, 2, 3], persons=["a", "b", "c"]),
    categories=two_classes([0, 0, 1], [0, 1, 2]),
)


MOVED: dict[str, dict[str, Any]] = {
    "scores": {"scores": WHOLE.scores[[1, 0, 2]]},
    "second": {"second": np.array([2.0, 1.0, 3.0])},
    "scores of classes": {"categories": two_classes([0, 0, 1], [1, 0, 2])},
    "labels": {"labels": WHOLE.labels[::-1].copy()},
    "persons": {"persons": as_persons(["b", "a", "c"])},
    "classes": {"categories": two_classes([0, 1, 0], [0, 1, 2])},
}
"""The records of which two have changed places in one column."""


@pytest.mark.parametrize("with_scores", [True, False])
@pytest.mark.parametrize("which", MOVED)
def test_every_column_counts_in_its_order(which: str, with_scores: bool) -> None:
    """Without scores, those of all kinds may differ, and nothing else."""
    moved: Clients = replace(WHOLE, **MOVED[which])
    same = moved.digest(b"", with_scores) == WHOLE.digest(b"", with_scores)
    assert same is (not with_scores and which in ("scores", "second", "scores of classes"))


def test_a_digest_needs_its_key_and_knows_whose_records_they_are() -> None:
    clients = Clients.from_arrays([0.1, 0.4, 0.7], [1, 1, 0])
    apart = replace(clients, offsets=np.array([0, 1, 3], dtype=np.int64))
    found = {each.digest(key) for each in (clients, apart) for key in (b"", b"k")}
    assert len(found) == 4
    assert clients.digest(b"k") == replace(clients).digest(b"k")
