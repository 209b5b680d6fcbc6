"""Evaluating: noise sources, repetitions, exact values, and the bytes that clients send."""

from __future__ import annotations

import numpy as np
import pytest

import tacit
from tacit.privacy.noise import NoNoise
from tacit.protocol.fields import encode
from tacit.results.figure import AUC_FIGURE
from tacit.running.evaluating import repeat_results
from tests.federations import binormal_clients


def real_clients() -> tacit.Clients:
    scores, labels = tacit.binormal_scores(200, 300, 0.8, seed=0)
    return tacit.Clients.from_arrays(scores, labels, np.arange(500) % 3)


def test_real_clients_get_system_noise_and_split_ones_simulated_noise() -> None:
    assert tacit.evaluate(real_clients(), tacit.FedAUC(1.0)).noise == "system"
    assert tacit.evaluate(real_clients(), tacit.FedAUC(1.0), seed=1).noise == "simulated"
    assert tacit.evaluate(binormal_clients(20, 30, 3), tacit.FedAUC(1.0)).noise == "simulated"
    assert tacit.evaluate(real_clients(), tacit.FedAUC(1.0), noise=NoNoise()).noise == "none"


def test_fresh_noise_differs_and_seeded_noise_repeats() -> None:
    clients, protocol = real_clients(), tacit.FedAUC(1.0)
    fresh = {tacit.evaluate(clients, protocol).auc.value for _ in range(4)}
    seeded = {tacit.evaluate(clients, protocol, seed=5).auc.value for _ in range(4)}
    assert (len(fresh), len(seeded)) == (4, 1)


def test_repetitions_are_independent_and_repeatable() -> None:
    clients, protocol = binormal_clients(200, 300, 5), tacit.FedAUC(1.0)
    first = tacit.repeat(clients, protocol, times=50, seed=1)
    assert np.unique(first).size == 50
    np.testing.assert_array_equal(first, tacit.repeat(clients, protocol, times=50, seed=1))
    assert not np.array_equal(first, tacit.repeat(clients, protocol, times=50, seed=2))


def test_groups_of_repetitions_are_independent(monkeypatch: pytest.MonkeyPatch) -> None:
    clients, protocol = binormal_clients(500, 1_500, 5), tacit.DPAUC(1.0)
    monkeypatch.setattr(
        "tacit.running.simulation.ONE_REPLICATE", 2 * protocol.replicate_size(clients)
    )
    values = tacit.repeat(clients, protocol, times=7, seed=1)
    assert np.unique(values).size == 7


def test_repetitions_have_the_limits_of_their_figure() -> None:
    """So the rule by which a figure is published can be asked of all of them at once."""
    clients, protocol = binormal_clients(40, 60, 5), tacit.FedAUC(1.0)
    assert repeat_results(clients, protocol, 3, seed=0).limits == AUC_FIGURE.limits


@pytest.mark.parametrize("times", [0, -1])
def test_a_number_of_repetitions_below_one_is_refused(times: int) -> None:
    with pytest.raises(ValueError, match=f"times must be at least 1, got {times}"):
        tacit.repeat(binormal_clients(4, 6, 2), tacit.FedAUC(1.0), times=times)


def test_repetitions_agree_with_single_evaluations() -> None:
    """Means of 400 estimates each; they differ by under five of their errors (alarm < 1e-6)."""
    clients = binormal_clients(2000, 3000, 5)
    protocol = tacit.PublishedFedAUC(1.0)
    several = repeat_results(clients, protocol, 400, seed=1)
    singles = np.array([tacit.evaluate(clients, protocol, seed=s).auc.value for s in range(400)])
    error = np.hypot(several.value.std(), singles.std()) / 20
    assert abs(several.value.mean() - singles.mean()) < 5 * error
    assert singles.std() == pytest.approx(several.value.std(), rel=0.25)


def test_the_bytes_reported_are_those_of_the_messages() -> None:
    clients = real_clients()
    result = tacit.evaluate(clients, tacit.PublishedFedAUC(1.0))
    scores = [len(encode({"scores": np.zeros(size)})) for size in clients.sizes]
    pair = len(encode({"positives": np.array(0.0), "residuals": np.array(0.0)}))
    np.testing.assert_array_equal(result.traffic.bytes_sent, np.array(scores) + pair)
    assert result.traffic.rounds == 2
