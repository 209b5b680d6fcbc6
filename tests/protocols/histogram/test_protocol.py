"""ScoreHistogram: its settings, what it says without noise, and how wrong it is with noise."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tacit import Clients, ScoreHistogram, binormal_scores
from tacit.counts.tree_budget import epsilon_by_level
from tacit.privacy.noise import SimulatedNoise, SystemNoise
from tacit.protocol import UNPROTECTED, ClientState, DataError, Histogram, SecureSum, ServerResult
from tacit.running.evaluating import exact_auc, repeat_results
from tacit.running.simulation import simulate
from tacit.testing import checks
from tests import known
from tests.federations import binormal_clients

SHARED = ScoreHistogram("secure-sum", 1.0, 10, scale="even")
ROUNDS = ScoreHistogram("secure-sum", 1.0)


def test_exact_sums_name_no_guarantee() -> None:
    assert ScoreHistogram("exact-sum").guarantee == UNPROTECTED


def test_the_first_choice_that_applies_is_taken() -> None:
    local = ScoreHistogram("local", 1.0)
    assert (SHARED.adjacency, local.adjacency) == ("record", "replace")
    assert replace(SHARED, height=None).tree_height(5) == 10
    heights = [ScoreHistogram("exact-sum", height=h).tree_height(5) for h in (None, 1, 24)]
    assert heights == [14, 1, 24]
    assert local.tree_height(10) < ScoreHistogram("local", 5.0).tree_height(10**8)
    assert replace(SHARED, trust=SecureSum(0.99)).min_clients(100) == 1


def histogram_of(server_result: ServerResult) -> Histogram:
    return known(server_result.histogram)


def cells_of(clients: Clients, height: int) -> NDArray[np.int64]:
    edges = np.linspace(0, 1, 2**height + 1)
    return np.stack(
        [np.histogram(clients.scores[clients.labels == own], edges)[0] for own in (1, 0)]
    )


class TestWithoutNoise:
    @pytest.mark.parametrize("chunk", [None, 3])
    def test_secure_aggregation_counts_exactly(self, chunk: int | None) -> None:
        clients = binormal_clients(900, 1400, 8, seed=2)
        protocol = ScoreHistogram("exact-sum", scale="even")
        server_result = simulate(clients, protocol, SystemNoise(), chunk=chunk).server_result
        histogram = histogram_of(server_result).counts
        np.testing.assert_array_equal(histogram, cells_of(clients, 14))
        assert server_result.privacy_error == 0
        assert float(server_result.approximation_error) < 1e-4
        assert abs(server_result.value - exact_auc(clients)) < 3 * server_result.approximation_error


@pytest.fixture(scope="module")
def clients() -> Clients:
    return binormal_clients(8000, 12000, 20, seed=5)


class TestErrors:
    def test_class_sizes_are_as_wrong_as_said(self, clients: Clients) -> None:
        """1,000 runs: the spread's own error is 2.3 %; false alarm below 1e-5."""
        server_result = repeat_results(clients, SHARED, 1000, seed=4)
        predicted = float(np.mean(server_result.positives_error))
        assert abs(np.mean(server_result.positives) - 8000) < 5 * predicted / math.sqrt(1000)
        assert np.std(server_result.positives) == pytest.approx(predicted, rel=0.12)


def loss_of_counts(scale: float, share: float, distance: int = 1) -> float:
    """The largest log-ratio of a share of noise to itself a distance on, by convolution."""
    reach = int(60 * scale) + 60 + distance
    single = stats.nbinom.pmf(np.arange(reach), share, -np.expm1(-1 / scale))
    near = [float(single[z:] @ single[: reach - z]) for z in (0, distance)]
    return math.log(near[0] / near[1])


class TestVanishedClients:
    """20 clients answer where more were asked."""

    @pytest.mark.parametrize("adjacency", ["record", "replace"])
    def test_what_is_left_of_the_guarantee_is_said(self, adjacency: Any, clients: Clients) -> None:
        protocol = replace(SHARED, adjacency=adjacency, height=3, aim="report")
        run = simulate(clients, protocol, SimulatedNoise(1), asked=25)
        distance = protocol.distance
        parts = [part for part in epsilon_by_level(3, 1.0, distance, "curves") if part]
        expected = distance * sum(loss_of_counts(distance / part, 0.8) for part in parts)
        found = known(run.server_result.protection)
        assert found.adjacency is protocol.guarantee.adjacency
        assert found.epsilon == pytest.approx(expected, rel=1e-3)
        assert found.epsilon > 1.1 * protocol.guarantee.epsilon
        assert any(f"supports epsilon {found.epsilon:.4g}" in w for w in run.server_result.warnings)
        assert run.spent == protocol.guarantee

    @pytest.mark.parametrize("protocol", [SHARED, ROUNDS])
    def test_enough_dropouts_cover_them(self, protocol: ScoreHistogram, clients: Clients) -> None:
        protocol = replace(protocol, trust=SecureSum(0.2))
        run = simulate(clients, protocol, SimulatedNoise(1), asked=25)
        assert run.server_result.protection is None
        assert not any("vanished" in each for each in run.server_result.warnings)
        few = simulate(clients, protocol, SimulatedNoise(1), asked=26)
        assert few.server_result.protection is not None

    def test_errors_are_those_of_the_noise_that_arrived(self, clients: Clients) -> None:
        """1,000 runs with four fifths of the noise: the spread's own error is 2.3 %."""
        noise = SimulatedNoise(5, replicates=1000)
        server_result = simulate(clients, SHARED, noise, asked=25).server_result
        spread, _ = checks.deviation_and_coverage(server_result, exact_auc(clients))
        assert spread == pytest.approx(1.0, abs=0.09)
        whole = simulate(clients, SHARED, SimulatedNoise(5, replicates=5)).server_result
        ratio = np.mean(server_result.privacy_error**2) / np.mean(whole.privacy_error**2)
        assert ratio == pytest.approx(0.8, rel=0.05)

    def test_clients_that_vanish_between_the_rounds_end_the_run(self, clients: Clients) -> None:
        """The server is told of 20 answers to the first query and of 10 to the second."""
        conversation = ROUNDS.conversation(20)
        query = next(conversation)
        reply = query.step.answer(clients, query, SimulatedNoise(1), ClientState())
        query = conversation.send(reply)
        part = clients.part(0, 10)
        with pytest.raises(DataError, match="20 answered the first and 10 the second"):
            conversation.send(query.step.answer(part, query, SimulatedNoise(2), ClientState()))


def test_many_clients_of_one_record_fit_in_memory() -> None:
    """64 MiB for 100,000 clients at the deepest default height, where 22 were measured.

    A million clients may take 4 GiB; reports that are not packed, or drawn all at once, would not
    fit here.
    """
    scores, labels = binormal_scores(40_000, 60_000, 0.8, seed=0)
    phones = Clients.from_arrays(scores, labels, np.arange(100_000))
    protocol = ScoreHistogram("local", 2.0, height=10)
    tracemalloc.start()
    simulate(phones, protocol, SimulatedNoise(1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**26
