"""DPAUC as published: accounting, clamping, bias, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit import evaluate
from tacit.privacy.noise import NoNoise, SimulatedNoise
from tacit.protocols.published.dpauc import Gaussian, Laplace, PublishedDPAUC
from tacit.running.evaluating import exact_auc, repeat_results
from tacit.running.simulation import simulate
from tests.federations import binormal_clients

PAPER = PublishedDPAUC(1.0, mechanism=Laplace(accounting="paper"), adjacency="label")


@pytest.mark.parametrize(
    ("accounting", "adjacency", "distance"),
    [
        ("paper", "label", 400),
        ("paper", "record", 400),
        ("tight", "label", 200),
        ("tight", "replace", 200),
        ("tight", "record", 100),
    ],
)
def test_the_noise_on_a_count_follows_the_accounting(
    accounting: str, adjacency: str, distance: int
) -> None:
    protocol = PublishedDPAUC(2.0, 100, Laplace(accounting), adjacency)  # type: ignore[arg-type]
    noise: Any = protocol.count_noise
    assert noise.scale == distance / 2.0


def test_clamping_bias_is_known_and_taken_out_of_the_interval() -> None:
    clients = binormal_clients(12000, 34000, 100)
    server_result = repeat_results(clients, PAPER, 40, seed=3)
    exact = exact_auc(clients)
    plain = np.abs(server_result.value - exact) <= 1.96 * server_result.standard_error
    assert server_result.value.mean() < exact - 0.5 * server_result.value.std()
    assert server_result.covers(exact).mean() > plain.mean() + 0.1
    warned = evaluate(clients, PAPER, seed=0)
    assert any("clamping and ordering" in warning for warning in warned.warnings)


def test_errors_include_that_of_the_estimated_bias() -> None:
    """The bias of clamping is estimated from noisy counts: its error is a part of the result's.

    150 runs know the ratio of errors to 6 % and the coverage to 2 %.
    """
    clients = binormal_clients(200, 5_000, 5)
    protocol = PublishedDPAUC(1.0, 30, Gaussian(delta=1e-6))
    results = repeat_results(clients, protocol, 150, seed=3)
    exact = protocol.exact(clients)
    errors = results.value - results.bias - exact
    assert np.sqrt(np.mean(errors**2) / np.mean(results.standard_error**2)) < 1.06
    assert results.covers(exact).mean() >= 0.93


def test_the_curve_of_confusion_counts_belongs_to_its_thresholds() -> None:
    """200 curves, unclamped: errors of 5 % in each spread, averaged over ten thresholds."""
    clients = binormal_clients(8000, 12000, 5)
    protocol = PublishedDPAUC(1.0, 20, Laplace(points="plain"), scale="even")
    truth = simulate(clients, protocol, NoNoise()).server_result.roc
    assert truth is not None
    runs = (simulate(clients, protocol, SimulatedNoise(seed)) for seed in range(200))
    curves = [run.server_result.roc for run in runs]
    rates = np.array([curve.true_positive_rate for curve in curves if curve is not None])
    stated = np.array([curve.true_positive_error for curve in curves if curve is not None])
    middle = slice(4, 14)
    observed = np.sqrt(((rates - truth.true_positive_rate) ** 2).mean(axis=0))[middle]
    assert np.mean(observed / stated.mean(axis=0)[middle]) == pytest.approx(1.0, abs=0.15)
