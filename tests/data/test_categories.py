"""Classes and private groups of records, and how they follow their records."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.data.categories import Categories
from tacit.data.clients import Clients
from tacit.data.errors import DataError


def clients_of_three() -> Clients:
    scores = np.arange(12, dtype=np.float64).reshape(4, 3) / 12
    return Clients.from_classes(scores, ["c", "a", "b", "a"], "abc", ["n", "s", "n", "s"])


def known(clients: Clients) -> Categories:
    assert clients.categories is not None
    return clients.categories


def test_categories_follow_their_records() -> None:
    clients = clients_of_three()
    assert known(clients).of_record.tolist() == [2, 1, 0, 0]
    scores = known(clients.part(1, 2)).scores
    assert scores is not None
    assert (12 * scores[:, 0]).round().tolist() == [3, 9]
    both = Clients.concatenate([clients.part(0, 1), clients.part(1, 2)])
    assert known(both).of_record.tolist() == [2, 1, 0, 0]
    blank = np.zeros(4)
    dealt = Clients.split(np.arange(4.0), blank, 2, seed=1, categories=known(clients))
    expected = known(clients).of_record[dealt.scores.astype(int)]
    assert known(dealt).of_record.tolist() == expected.tolist()


def test_counted_records_keep_their_categories() -> None:
    made = Categories.of_values("ab", ["a", "b", "b"])
    clients = Clients.from_arrays([0.1, 0.2, 0.3], [0, 1, 1], persons=["p", "p", "q"])
    chosen, inside = clients.with_categories(made).counted(1, bytes(32))
    assert known(chosen).of_record.tolist() == made.of_record[inside].tolist()


@pytest.mark.parametrize(
    ("names", "values", "scores", "message"),
    [
        ("a", ["a"], None, "2 to 200 classes or groups, got 1"),
        ("aa", ["a"], None, "must differ, got 'a', 'a'"),
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
