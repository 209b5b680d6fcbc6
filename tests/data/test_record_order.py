"""Digests of records in their order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.data.categories import Categories
from tacit.data.clients import Clients

WHOLE = replace(
    Clients.from_arrays([0.1, 0.4, 0.7], [1, 1, 0], second=[1, 2, 3], persons=["a", "b", "c"]),
    categories=Categories.of_values(("x", "y"), [0, 0, 1], np.arange(6.0).reshape(3, 2)),
)


def moved(which: str) -> Clients:
    """The same records, of which the first two have changed places in one column."""
    order = np.array([1, 0, 2])
    if which == "classes":
        made = Categories.of_values(("x", "y"), [0, 1, 0], np.arange(6.0).reshape(3, 2))
        return replace(WHOLE, categories=made)
    if which == "scores of classes":
        made = Categories.of_values(("x", "y"), [0, 0, 1], np.arange(6.0).reshape(3, 2)[order])
        return replace(WHOLE, categories=made)
    if which == "labels":
        return replace(WHOLE, labels=WHOLE.labels[::-1].copy())
    return replace(WHOLE, **{which: getattr(WHOLE, which)[order]})


@pytest.mark.parametrize("with_scores", [True, False])
@pytest.mark.parametrize(
    "which", ["scores", "second", "scores of classes", "labels", "persons", "classes"]
)
def test_every_column_counts_in_its_order(which: str, with_scores: bool) -> None:
    """Without scores, those of all kinds may differ, and nothing else."""
    same = moved(which).digest(b"", with_scores) == WHOLE.digest(b"", with_scores)
    assert same is (not with_scores and which in ("scores", "second", "scores of classes"))


def test_a_digest_needs_its_key_and_knows_whose_records_they_are() -> None:
    clients = Clients.from_arrays([0.1, 0.4, 0.7], [1, 1, 0])
    apart = replace(clients, offsets=np.array([0, 1, 3], dtype=np.int64))
    found = {each.digest(key) for each in (clients, apart) for key in (b"", b"k")}
    assert len(found) == 4
    assert clients.digest(b"k") == replace(clients).digest(b"k")
