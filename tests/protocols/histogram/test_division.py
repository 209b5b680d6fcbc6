"""A run whose aim is the AUC says how far rates err, and how far with another aim."""

import re

import numpy as np
import pytest

from tacit import Clients, ScoreHistogram, binormal_scores, evaluate
from tacit.metrics.trees import TreeNoise
from tacit.protocols.histogram.looking.rounds import division_warning, rate_error


def division_warnings(records: int, epsilon: float, **settings: object) -> list[str]:
    scores, labels = binormal_scores(records // 2, records // 2, 0.8, seed=3)
    clients = Clients.split(scores, labels, clients=5, seed=0)
    result = evaluate(clients, ScoreHistogram(epsilon=epsilon, **settings), seed=2)  # type: ignore[arg-type]
    return [each for each in result.warnings if each.startswith("rates, curves")]


def test_wide_rates_are_reported_with_both_errors() -> None:
    (sentence,) = division_warnings(4_000, 1.0)
    rate, even_rate, even_area, area = map(
        float, re.findall(r"(?:by|instead of) ([0-9.e-]+?)(?:[ ,;]|$)", sentence)
    )
    assert rate > 1.5 * even_rate
    assert even_area > 2 * area


@pytest.mark.parametrize("height", [1, 3, 6, 7])
def test_low_looks_are_compared_with_a_whole_tree(height: int) -> None:
    counts, noise = np.full((2, 1 << height), 50.0), TreeNoise(np.full(height + 2, 1e4))
    assert bool(division_warning(ScoreHistogram(epsilon=1.0, height=height), counts, noise, 1, 0.1))


def test_nothing_is_reported_where_rates_are_the_aim_or_err_little() -> None:
    assert not division_warnings(4_000, 1.0, aim="all")
    assert not division_warnings(200_000, 8.0)


@pytest.mark.parametrize("height", [3, 6])
def test_the_error_of_a_rate_is_that_of_noisy_cells(height: int) -> None:
    """The measured deviation of 4,000 is known to 1.1 %: a false alarm below one in a million."""
    variances = np.full(height + 2, np.inf)
    variances[1], variances[-1] = 1e-9, 25.0
    counts = np.full((2, 1 << height), 100.0)
    counts[0] /= 2
    cells = counts[0] + np.random.default_rng(1).normal(scale=5.0, size=(4_000, 1 << height))
    # class sizes are known here: what cells miss of them is spread evenly
    cells += (counts[0].sum() - cells.sum(axis=-1, keepdims=True)) / (1 << height)
    above = cells[:, -(-(1 << height) // 3) :].sum(axis=-1) / counts[0].sum()
    assert rate_error(counts, TreeNoise(variances)) == pytest.approx(above.std(), rel=0.06)
