"""Means over pairs by joint computation: what is revealed, what it costs, how wrong it is."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import tacit
from tacit import Clients, ClientState, DataError, PairedUStatistic
from tacit.local.paired import noise as noises
from tacit.local.paired.mpc import drawn_seats
from tacit.local.paired.protocol import compute_pairs, count_positives
from tacit.protocol import NoiseSource, NoNoise, Query, Ragged, SimulatedNoise, SystemNoise, View
from tacit.running.simulation import simulate
from tacit.testing.recording import Recorder
from tests.federations import binormal_clients
from tests.local.paired.test_kernels import naive_value

AUC = PairedUStatistic("auc", 2.0)
TWO = binormal_clients(150, 450, 2)


@pytest.mark.parametrize("kernel", ["auc", "kendall", "gini", "collision"])
@pytest.mark.parametrize("records", [30, 31])
def test_without_noise_it_is_the_mean_over_the_pairs_drawn(kernel: str, records: int) -> None:
    """Against loops over records; an odd one stays out of every matching."""
    rng = np.random.default_rng(records)
    scores, labels = rng.integers(0, 9, records) / 8, rng.integers(0, 2, records)
    second = rng.integers(0, 4, records) / 4
    clients = Clients.from_arrays(scores, labels, np.arange(records) % 4, second)
    protocol = PairedUStatistic(kernel, 1.0, matchings=2, noise="laplace")
    run = float(simulate(clients, protocol, NoNoise()).server_result.value)
    other = clients.labels if kernel == "auc" else clients.second
    assert other is not None
    rows = list(zip(clients.scores, other, strict=True))
    total = 0
    for row in drawn_seats(np.zeros(4, dtype=np.int64), 2, records):
        order = [int(np.flatnonzero(row == seat)[0]) for seat in range(records)]
        pairs = [(order[2 * p], order[2 * p + 1]) for p in range(records // 2)]
        total += sum(naive_value(kernel, rows[i], rows[j]) for i, j in pairs)
    mean = total / (2 * (records // 2))
    if kernel == "gini":
        mean /= 2**12
    if kernel == "auc":
        positives, negatives = clients.positives, records - clients.positives
        spread = noises.count_variance(clients.sizes, protocol.class_epsilon(clients.sizes))
        mean *= records * (records - 1) / 2 / (positives * negatives + spread)
    assert run == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize("kind", noises.NOISES)
@pytest.mark.parametrize("source", [SimulatedNoise(3), SystemNoise()])
def test_noise_has_the_variance_that_is_stated(kind: str, source: NoiseSource) -> None:
    """48,000 values of a kurtosis of at most 7, whose variance errs by 1.1 %; false alarm 1e-7.

    A scale 30 % off changes the variance by a third at least.
    """
    noise = noises.PairNoise(kind, 1.0, 1)
    values = np.zeros((2, 24_000), dtype=np.int64)
    crossing = np.broadcast_to(np.arange(24_000) % 4 != 0, values.shape)
    found = noise.debiased(noise.applied(values, crossing, source))
    assert found.var() == pytest.approx(noise.variance(0.75), rel=0.06)
    assert abs(found.mean()) < 6 * math.sqrt(noise.variance(0.75) / 48_000)


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_colluding_client_leaves_what_is_stated(width: int, epsilon: float) -> None:
    """The largest log ratio of what is left, from its probabilities, term by term."""
    noise = noises.PairNoise(noises.SHARED, epsilon, width)
    k = np.arange(400)
    single = stats.nbinom.pmf(k, 0.5, -math.expm1(-epsilon / width))
    half = np.convolve(single, single[::-1])
    centre = half.size // 2
    inner = half[centre - 100 : centre + 101]
    worst = np.max(np.abs(np.log(inner[width:] / inner[:-width])))
    assert noise.collusion_epsilon == pytest.approx(float(worst), rel=1e-6)
    assert noise.collusion_epsilon > epsilon
    for kind in ("laplace", noises.RESPONSE):
        assert noises.PairNoise(kind, epsilon, 1).collusion_epsilon == epsilon


def test_shared_noise_says_what_a_colluding_client_leaves() -> None:
    warned = tacit.evaluate(TWO, replace(AUC, noise="shared"), seed=1).warnings
    assert any("a client that tells it all it knows leaves epsilon" in text for text in warned)
    assert not any("tells it all" in text for text in tacit.evaluate(TWO, AUC).warnings)


def test_a_lone_records_label_is_flipped_and_several_are_counted_with_noise() -> None:
    """20,000 draws: the mean within 5 standard errors, the variance within 5 %."""
    sizes, counts = np.array([1, 1, 6]), np.array([0, 1, 4])
    sent = noises.noisy_counts(counts, sizes, 1.0, SimulatedNoise(1, replicates=20_000))
    assert set(np.unique(sent[:, :2]).tolist()) == {0, 1}
    totals, variance = noises.counted_positives(sent, sizes, 1.0)
    assert variance == noises.count_variance(sizes, 1.0)
    assert totals.var() == pytest.approx(variance, rel=0.05)
    assert abs(totals.mean() - 5) < 5 * math.sqrt(variance / 20_000)
    flips = Recorder()
    noises.noisy_counts(counts, sizes, 1.0, flips)
    assert math.log((1 - flips.flips[0]) / flips.flips[0]) == pytest.approx(1.0)


def test_a_stated_part_of_epsilon_is_spent_on_class_sizes() -> None:
    own = AUC.class_epsilon(TWO.sizes)
    cost = count_positives.cost(TWO, Query(count_positives, AUC, {"epsilon": own}), ClientState())
    assert 0 < cost.epsilon == own < 1.0
    assert PairedUStatistic("kendall", 2.0).class_epsilon(TWO.sizes) == 0.0


@pytest.mark.parametrize(
    ("seats", "message"),
    [
        ([[0, 0, 1, 2]], "each record has one seat"),
        ([[0, 1, 2, 4]], "each record has one seat"),
        ([[0, 1, 2, 3], [3, 2, 1, 0]], "take part in 1 matchings"),
    ],
)
def test_a_record_is_let_into_no_more_pairs_than_agreed(seats: Any, message: str) -> None:
    clients = Clients.from_arrays([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])
    each = {"seats": Ragged(np.array(seats), clients.offsets)}
    query = Query(compute_pairs, AUC, {"epsilon": 1.0}, each, View.MPC)
    with pytest.raises(DataError, match=message):
        compute_pairs.answer(clients, query, NoNoise(), ClientState())


@pytest.mark.parametrize("simulated", [True, False])
def test_a_result_says_that_a_trusted_party_computed_the_pairs(simulated: bool) -> None:
    clients = TWO if simulated else Clients(TWO.scores, TWO.labels, TWO.offsets)
    result = tacit.evaluate(clients, AUC)
    assert result.noise == ("simulated" if simulated else "system")
    assert any("computed by a trusted party" in text for text in result.warnings)
