"""The estimator of pairs against definitions written out, and what bins of few pairs hide."""

from __future__ import annotations

import numpy as np
import pytest

from tacit import Clients, UStatistic
from tacit.local.ustatistic.estimate import PairEstimator
from tacit.metrics.pairwise import auc_table, class_table
from tacit.privacy.symbols import SymbolResponse
from tacit.running.evaluating import exact_auc, repeat_results


def test_a_bin_with_most_pairs_of_opposite_classes_is_a_crowd() -> None:
    """Six positives above 342 negatives share a bin with 2.7 % of all pairs of both classes, which
    are 0.6 % of all pairs of records. The interval held the AUC in 0.82 of runs before such bins
    counted. The bound is missed by chance in less than one of 10^6 choices of the seed."""
    scores = np.repeat([0.1, 0.2, 0.4, 0.6, 0.9], [342, 6, 14, 13, 194])
    parts = [(342, 6), (12, 2), (2, 11), (1, 193)]
    labels = np.concatenate([np.repeat([0, 1], part) for part in parts])
    clients = Clients.split(scores, labels.astype(np.int8), clients=10, seed=0)
    results = repeat_results(clients, UStatistic("auc(domain=range(bins=4))", 5.0), 200, seed=0)
    assert float(np.mean(results.covers(exact_auc(clients)))) > 0.93
    assert 0.005 < float(np.median(results.approximation_error)) < 0.02


@pytest.mark.parametrize("tables", [1, 2])
def test_variances_are_those_of_their_definitions(tables: int) -> None:
    """Against matrices written out in full, two replicates with weights of their own."""
    rng = np.random.default_rng(2)
    kernels = (auc_table(3), class_table(3))[:tables]
    response = SymbolResponse(6, 1.5)
    counts = rng.integers(200, 900, (2, 6))
    counts[1, 0] += counts[0].sum() - counts[1].sum()
    weights = rng.normal(size=(2, tables))
    estimator = PairEstimator(kernels, response, counts)
    n = float(estimator.records)
    variances = estimator.privacy_variance(weights), estimator.sampling_variance(weights)
    for row in range(2):
        table = sum(w * k for w, k in zip(weights[row], kernels, strict=True))
        debiased = response.debiased(counts[row])
        own, shared = response.covariance(counts[row])
        noise = np.diag(own) - np.outer(shared, np.ones(6)) - np.outer(np.ones(6), shared)
        np.testing.assert_allclose(noise.sum(axis=0), 0, atol=1e-6 * n)
        second = 2 * np.trace(table @ noise @ table @ noise)
        first = 4 * debiased @ table @ noise @ table @ debiased
        expected = (max(first - 2 * second, 0) + second) / (n * (n - 1)) ** 2
        assert variances[0][row] == pytest.approx(expected, rel=1e-9)
        shares = debiased / n
        one = shares @ (table @ shares) ** 2 - (shares @ table @ shares) ** 2
        both = shares @ table**2 @ shares - (shares @ table @ shares) ** 2
        expected = 2 / (n * (n - 1)) * (2 * (n - 2) * max(one, 0) + max(both, 0))
        assert variances[1][row] == pytest.approx(expected, rel=1e-9)
