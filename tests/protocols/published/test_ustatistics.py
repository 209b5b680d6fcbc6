"""The published forms of Bell et al. 2020: the traversal, and the table of bins as it is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import tacit
from tacit import PublishedUStatistic, UStatistic
from tacit.local.hierarchical.estimate import LevelCounts
from tacit.local.ustatistic.kernels import Gini, Range
from tacit.privacy.noise import SimulatedNoise
from tacit.protocols.published.ustatistics import Forms, threshold_factor, traversal_area
from tacit.running.simulation import simulate
from tests.local.hierarchical.test_estimate import noisy_levels


def walked(levels: LevelCounts, replicate: int) -> float:
    """Bell et al. 2020, section 4, as written: a recursion over nodes; leaves count one half."""
    negatives, positives = ([own[replicate, k] for own in levels.counts] for k in (0, 1))
    gain, height = levels.noise.gain, levels.noise.height
    v = [gain**2 * n * height for n in levels.classes]
    a = threshold_factor(levels.classes, gain)

    def area(level: int, node: int) -> float:
        if level == height:
            return float(negatives[level][node] * positives[level][node]) / 2
        raised = [
            max(own[level][node], math.sqrt(a * bound) / 2)
            for own, bound in zip((negatives, positives), v, strict=True)
        ]
        low, high = 2 * node, 2 * node + 1
        n, p = negatives[level + 1], positives[level + 1]
        if level > 0 and raised[0] * raised[1] < a * math.sqrt(v[0] * v[1]):
            return float((n[low] + n[high]) * (p[low] + p[high])) / 2
        return float(n[low] * p[high]) + area(level + 1, low) + area(level + 1, high)

    return area(0, 0) / levels.pairs


@pytest.mark.parametrize("seed", range(8))
def test_the_traversal_is_the_papers_recursion(seed: int) -> None:
    levels = noisy_levels(seed)
    area = traversal_area(levels)
    for replicate in range(3):
        assert area.value[replicate] == pytest.approx(walked(levels, replicate), rel=1e-12)


def test_the_traversal_stops_at_some_nodes_and_not_at_others() -> None:
    """So that the comparison above sees both."""
    cell_variance = traversal_area(noisy_levels(0)).cell_variance
    influences = traversal_area(noisy_levels(0)).influences
    assert (cell_variance > 0).any()
    assert any((own == 0).any() for own in influences)
    assert (influences[-1] != 0).any()


def test_a_forms_norm_is_that_of_its_matrix() -> None:
    rng = np.random.default_rng(0)
    for lowest in (False, True):
        after_rounds = rng.random(8) < 0.5
        stopped = ~after_rounds & (rng.random(8) < 0.5)
        forms = Forms.of(after_rounds, stopped, lowest)
        identity = np.eye(16)
        children = np.stack([identity, np.zeros((16, 16))], axis=-2)
        matrix = forms.influences(children)[:, 1].T
        centre = np.eye(16) - 1 / 16
        expected = np.sum((centre @ matrix @ centre) ** 2)
        assert forms.norm() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("classes", [(340000.0, 117000.0), (50.0, 1000.0)])
def test_the_threshold_factor_minimises_the_bound(classes: tuple[float, float]) -> None:
    """Bell et al. 2020, Theorem 3, with the squared gain as C."""
    total, least, gain = sum(classes), min(classes), 1.3

    def bound(a: float) -> float:
        inner = 21 * math.sqrt(2 * total * gain**2 * a) / (math.sqrt(a) - 1)
        return 2 * total + (4 * a + 1) * least + inner

    factor = threshold_factor(np.array(classes), gain)
    best = minimize_scalar(bound, bounds=(1.001, 50.0), method="bounded", options={"xatol": 1e-9})
    assert factor == pytest.approx(best.x, rel=1e-4)


def smooth_values(records: int) -> tacit.Clients:
    return tacit.Clients.from_values(np.random.default_rng(0).beta(2, 3, records))


def test_the_papers_table_is_not_extrapolated() -> None:
    """At epsilon 60 only the bins err; the paper's table by the square of the width."""
    clients, kernel = smooth_values(20_000), Gini(Range(bins=8))
    exact = UStatistic(kernel, 60.0).exact(clients)
    published, own = (
        abs(
            float(simulate(clients, kind(kernel, 60.0), SimulatedNoise(0)).server_result.value)
            - exact
        )
        for kind in (PublishedUStatistic, UStatistic)
    )
    assert own < published / 4 < 1 / 8**2


@pytest.mark.parametrize("bins", [8, 16])
def test_what_bins_hide_is_within_the_approximation_error(bins: int) -> None:
    clients, protocol = smooth_values(20_000), PublishedUStatistic(Gini(Range(bins=bins)), 60.0)
    result = simulate(clients, protocol, SimulatedNoise(0)).server_result
    assert abs(result.value - protocol.exact(clients)) < 2 * result.approximation_error
