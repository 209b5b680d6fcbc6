from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from tacit.data.splitting import binormal_scores, resample_scores
from tacit.metrics.ranking import auc, auc_with_variance
from tacit.protocol import Clients, DataError


def alternating(records: Any) -> Any:
    return np.arange(records) / records, (np.arange(records) % 2).astype(np.int8)


@given(st.integers(1, 60), st.data(), st.sampled_from(["uniform", "score"]))
def test_every_record_goes_to_one_client_of_equal_sizes(records: Any, data: Any, by: Any) -> None:
    count = data.draw(st.integers(1, records))
    scores, labels = alternating(records)
    clients = Clients.split(scores, labels, count, by, seed=1, second=10 * scores)
    np.testing.assert_array_equal(np.asarray(clients.second), 10 * clients.scores)
    assert clients.count == count
    assert np.ptp(clients.sizes) <= 1
    assert (clients.simulated, clients.names) == (True, ())
    dealt = sorted(zip(clients.scores, clients.labels, strict=True))
    assert dealt == sorted(zip(scores, labels, strict=True))


def test_split_by_score_gives_neighbouring_scores_to_one_client() -> None:
    scores = np.random.default_rng(2).permutation(40) / 40
    clients = Clients.split(scores, np.zeros(40, dtype=np.int8), 7, "score")
    ragged = clients.ragged(clients.scores)
    assert (ragged.maximum()[:-1] < ragged.minimum()[1:]).all()


def test_a_uniform_split_deals_labels_at_random() -> None:
    """Half of sorted records to a client: its positives are hypergeometric.

    The two tails beyond the band have a total false-alarm probability of at most 2e-9.
    """
    scores, labels = np.arange(2000) / 2000, np.repeat([0, 1], 1000).astype(np.int8)
    dealt = hypergeom(2000, 1000, 1000)
    for seed in range(20):
        first = Clients.split(scores, labels, 2, seed=seed).part(0, 1).positives
        assert dealt.ppf(5e-11) <= first <= dealt.isf(5e-11)


@pytest.mark.parametrize("area", [0.2, 0.5, 0.8, 0.95])
def test_binormal_scores_have_the_asked_auc(area: Any) -> None:
    """Five standard errors: a false-alarm probability of 6e-7 an AUC."""
    scores, labels = binormal_scores(4000, 6000, area, seed=5)
    assert ((scores > 0) & (scores < 1)).all()
    error = auc(scores, labels) - area
    assert abs(error) < 5 * auc_with_variance(scores, labels)[1] ** 0.5


def test_resampling_fewer_draws_without_replacement() -> None:
    scores, labels = alternating(100)
    drawn, made = resample_scores(scores, labels, 20, 50, seed=1)
    assert (made.sum(), made.size) == (20, 70)
    assert np.unique(drawn).size == 70
    assert set(drawn[made == 1]) <= set(scores[labels == 1])
    assert set(drawn[made == 0]) <= set(scores[labels == 0])


def test_resampling_more_tells_repeated_scores_apart_by_a_small_jitter() -> None:
    scores, labels = np.array([0.25, 0.5, 0.75]), np.array([1, 0, 1], dtype=np.int8)
    drawn, made = resample_scores(scores, labels, 200, 1, seed=1, jitter=1e-3)
    distance = np.abs(drawn[made == 1][:, None] - [0.25, 0.75]).min(axis=1)
    assert distance.max() <= 1e-3
    assert np.unique(drawn).size == 201


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        (Clients.split, ([0.1, 0.2, 0.3], [0, 1, 1], 0), "between 1 and 3, got 0"),
        (Clients.split, ([0.1, 0.2, 0.3], [0, 1, 1], 4), "between 1 and 3, got 4"),
        (Clients.split, ([0.1, 0.2], [0, 1], 2, "label"), "by 'uniform' or 'score', got 'label'"),
        (Clients.split, ([0.1, 0.2], [0], 1), "2 scores but 1 labels"),
        (Clients.split, ([0.1, 0.2], [0, 1], 2, "score", 1, [1.0]), "2 scores but 1 second values"),
        (binormal_scores, (3, 3, 0.0), "between 0 and 1, both excluded, got 0.0"),
        (binormal_scores, (3, 3, float("nan")), "between 0 and 1, both excluded, got nan"),
        (binormal_scores, (0, 3, 0.7), "both classes need a record, got 0 and 3"),
        (resample_scores, ([0.1], [0], 1, 1), "no record with label 1"),
    ],
)
def test_what_cannot_be_made_is_refused(make: Any, given: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        make(*given)
