"""Totals of ranks by one ascending pass, against ranking all records in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tacit.data.clients import Clients
from tacit.data.engines import ranking
from tacit.data.engines.ranking import Ascending, ranked
from tacit.data.ragged import Ragged, Ranked, rank_scatter
from tacit.data.scales import _fractions_outside, _widths
from tacit.metrics.ranking import auc_with_variance, doubled_mid_ranks


def drawn(distinct: int, clients: int, records: int, seed: int) -> Clients:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, distinct, records) / distinct * 1.5 - 0.2
    ids = np.concatenate((np.arange(clients), rng.integers(0, clients, records - clients)))
    return Clients.from_arrays(scores, rng.random(records) < 0.3, ids)


def ascending(clients: Clients, size: int) -> Iterator[Ascending]:
    order = np.argsort(clients.scores, kind="stable")
    codes = 2 * clients.client_of_record[order] + clients.labels[order]
    for first in range(0, order.size, size):
        yield clients.scores[order][first : first + size], codes[first : first + size]


def passed(clients: Clients, size: int) -> Ranked:
    return ranked(ascending(clients, size), clients.count, clients.sizes)


@pytest.mark.parametrize("distinct", [1, 2, 7, 300, 10**9])
@pytest.mark.parametrize("size", [1, 16, 1000])
@pytest.mark.parametrize("part", [13, 2**17])
def test_totals_are_those_of_ranks_in_memory(
    distinct: int, size: int, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "PART", part)
    clients = drawn(distinct, clients=5, records=600, seed=distinct + size)
    made = passed(clients, size)
    ranks = Ragged(doubled_mid_ranks(clients.scores), clients.offsets)
    assert made.ranks.sums.tolist() == ranks.sum().tolist()
    assert made.ranks.least.tolist() == ranks.minimum().tolist()
    assert made.ranks.largest.tolist() == ranks.maximum().tolist()
    np.testing.assert_allclose(made.ranks.scatter, rank_scatter(ranks), rtol=1e-12, atol=1e-9)
    positive = Ragged(ranks.values * clients.labels, clients.offsets)
    assert made.positive_sums.tolist() == positive.sum().tolist()
    labels = clients.ragged(clients.labels.astype(np.int64))
    assert made.positives.tolist() == labels.sum().tolist()


@pytest.mark.parametrize("distinct", [7, 300, 10**9])
def test_totals_that_are_public_follow_from_no_label(distinct: int) -> None:
    """To the last bit: they decide how a server asks, and stand in stated errors."""
    clients = drawn(distinct, clients=5, records=600, seed=distinct)
    ranks = passed(clients, 100).ranks
    for record in range(0, 600, 50):
        labels = clients.labels.copy()
        labels[record] ^= 1
        flipped = passed(replace(clients, labels=labels), 100).ranks
        assert flipped.scatter.tobytes() == ranks.scatter.tobytes()
        assert flipped.sums.tolist() == ranks.sums.tolist()


@pytest.mark.parametrize("distinct", [1, 2, 7, 300, 10**9])
@pytest.mark.parametrize("size", [1, 16, 1000])
def test_placements_and_ranges_are_those_of_records_in_memory(distinct: int, size: int) -> None:
    clients = drawn(distinct, clients=4, records=500, seed=distinct)
    made = passed(clients, size)
    placed, ranges, scores = made.placements, made.ranges, clients.ragged(clients.scores)
    value, variance = auc_with_variance(clients.scores, clients.labels)
    assert placed.positives == clients.positives
    assert placed.doubled_wins / (2 * placed.positives * placed.negatives) == value
    np.testing.assert_allclose(placed.variance, variance, rtol=1e-12, atol=1e-30)
    assert ranges.least.tolist() == scores.minimum().tolist()
    assert ranges.largest.tolist() == scores.maximum().tolist()
    assert (ranges.outside / clients.sizes).tolist() == _fractions_outside(scores).tolist()
    assert ranges.widths.tolist() == _widths(scores).tolist()


def test_one_record_of_a_class_has_no_variance() -> None:
    clients = Clients.from_arrays([0.1, 0.2, 0.3], [0, 1, 0])
    placed = passed(clients, 2).placements
    assert placed.doubled_wins == 2 and np.isnan(placed.variance)
