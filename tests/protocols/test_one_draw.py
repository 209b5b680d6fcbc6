"""Where one draw of Laplace noise is an error, the interval is its quantile with the others."""

from __future__ import annotations

import numpy as np
import pytest

from tacit import DPAUC, FedAUC, ScoreHistogram, evaluate
from tacit.protocol.conversation import Protocol
from tacit.running.evaluating import exact_auc, repeat_results
from tests.federations import binormal_clients


@pytest.mark.parametrize(
    ("protocol", "clients"),
    [
        (ScoreHistogram("secure-sum", 1.0, aim="auc"), 3),
        (FedAUC(1.0, trust="secure-sum"), 3),
        (ScoreHistogram("each", 1.0, aim="auc"), 1),
    ],
)
def test_one_draw_widens_the_interval(protocol: Protocol, clients: int) -> None:
    result = evaluate(binormal_clients(2000, 3000, clients, seed=1), protocol, seed=1)
    error, low_high = result.auc.standard_error, result.auc.interval(0.95)
    half = (low_high.high - low_high.low) / 2
    assert 0 < result.auc.laplace_error <= result.auc.privacy_error
    assert 1.961 * error < half < 2.119 * error
    assert result.to_dict()["auc"]["laplace_error"] == result.auc.laplace_error


@pytest.mark.parametrize(
    ("protocol", "clients"),
    [(DPAUC(1.0), 3), (FedAUC(1.0), 3), (ScoreHistogram("secure-sum", 1.0, 10), 3)],
)
def test_many_draws_are_taken_as_normal(protocol: Protocol, clients: int) -> None:
    result = evaluate(binormal_clients(2000, 3000, clients, seed=1), protocol, seed=1)
    assert result.auc.laplace_error == 0
    assert "laplace_error" not in result.to_dict()["auc"]


def test_the_number_alone_is_covered_as_often_as_said() -> None:
    """At epsilon 1 one draw is nearly all of the error.

    The stated coverage of 16,000 runs lies within 3.3 of its standard errors: a false alarm has a
    probability of 0.001. Normal intervals cover 0.938 or so, seven standard errors less.
    """
    clients = binormal_clients(20_000, 20_000, 1, seed=2)
    results = repeat_results(clients, FedAUC(1.0, trust="secure-sum"), 16_000, 5)
    errors, deviation = results.value - exact_auc(clients), np.sqrt(0.95 * 0.05 / 16_000)
    assert abs(np.mean(results.covers(exact_auc(clients))) - 0.95) < 3.3 * deviation
    normal = np.mean(np.abs(errors) <= 1.96 * results.standard_error)
    assert normal < 0.95 - 3.3 * deviation
