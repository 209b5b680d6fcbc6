"""What a view determines, against the ranks of the equations of all unknowns."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.linalg import matrix_rank
from numpy.typing import NDArray

from tacit_studies.secure_sums import view

Rows = NDArray[np.int64]


def equations(
    partners: NDArray[np.bool_], seeds: NDArray[np.bool_], keys: NDArray[np.bool_]
) -> Rows:
    """The server's equations: columns are vectors, seeds, then one pair mask for each pair."""
    clients = len(seeds)
    pairs = [(i, j) for i in range(clients) for j in range(i + 1, clients)]
    index = {pair: 2 * clients + number for number, pair in enumerate(pairs)}
    known: list[Rows] = []
    for i in range(clients):
        row = np.zeros(2 * clients + len(pairs), dtype=np.int64)
        row[i] = row[clients + i] = 1
        for j in np.flatnonzero(partners[i]).tolist():
            row[index[min(i, j), max(i, j)]] = 1 if i < j else -1
        if partners[i].any():
            known.append(row)
        if seeds[i]:
            known.append(np.eye(1, row.size, clients + i, dtype=np.int64)[0])
        if keys[i]:
            known += [
                np.eye(1, row.size, column, dtype=np.int64)[0]
                for pair, column in index.items()
                if i in pair
            ]
    return np.array(known or [np.zeros(2 * clients + len(pairs), dtype=np.int64)])


def test_determined_sums_span_what_the_equations_do() -> None:
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(400):
        clients = int(rng.integers(2, 7))
        partners = rng.random((clients, clients)) < rng.random()
        if rng.random() < 0.7:
            partners |= partners.T  # most masks are added on both sides
        partners &= ~np.eye(clients, dtype=np.bool_)
        sent = partners.any(1)
        seeds, keys = rng.random(clients) < 0.8, rng.random(clients) < 0.25
        sums = view.sums_of(view.determined_sums(partners, seeds & sent, keys))
        system = equations(partners, seeds, keys)
        assert len(sums) == matrix_rank(system) - matrix_rank(system[:, clients:])
        for one in sums:
            row = np.zeros((1, system.shape[1]), dtype=np.int64)
            row[0, list(one)] = 1
            assert matrix_rank(np.concatenate([system, row])) == matrix_rank(system)
        seen.add(len(sums))
    assert {0, 1, 2, 3} <= seen


def test_many_views_are_solved_as_one_is() -> None:
    rng = np.random.default_rng(4)
    partners = rng.random((50, 6, 6)) < 0.5
    partners |= partners.swapaxes(1, 2)
    readable, keys = rng.random((50, 6)) < 0.8, rng.random((50, 6)) < 0.2
    labels = view.determined_sums(partners, readable, keys)
    for index, row in enumerate(labels):
        assert (row == view.determined_sums(partners[index], readable[index], keys[index])).all()
        sizes = [len(one) for one in view.sums_of(row)]
        assert view.least_sum(labels)[index] == min(sizes, default=0)
        assert sum(sizes) == (row != view.NOWHERE).sum()


def test_the_least_combination_is_that_of_all_coefficients() -> None:
    """All coefficients modulo 8: the elementary divisors of three rows of 0 and 1 are 1 and 2."""
    rng = np.random.default_rng(5)
    for _ in range(150):
        rows = rng.integers(0, 2, (int(rng.integers(1, 4)), 5))
        sums = [frozenset(np.flatnonzero(row).tolist()) for row in rows if row.any()]
        combined = np.array(list(product(range(8), repeat=len(rows)))) @ rows % 8
        sizes = (combined != 0).sum(1)
        assert view.least_combination(sums) == min(sizes[sizes > 0], default=0)


def test_no_more_sums_are_combined_than_can_be_tried() -> None:
    with pytest.raises(ValueError, match="at most 16 independent sums can be combined, got 17"):
        view.least_combination(frozenset({k, k + 1}) for k in range(17))
