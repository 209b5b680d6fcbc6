"""The random-effects model of sites against references, and its coverage."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from tacit.arrays import Floats
from tacit.metrics.sites import (
    between_interval,
    between_variance,
    outlier_probabilities,
    site_model,
)


def restricted_likelihood(between: float, values: Floats, variances: Floats) -> float:
    """Minus twice the restricted log-likelihood, by its definition."""
    weights = 1 / (variances + between)
    mean = np.average(values, weights=weights)
    scatter = float(np.sum(weights * (values - mean) ** 2))
    return scatter - float(np.sum(np.log(weights))) + float(np.log(weights.sum()))


@pytest.mark.parametrize("seed", range(4))
def test_the_variance_between_sites_has_the_largest_restricted_likelihood(seed: int) -> None:
    rng = np.random.default_rng(seed)
    variances = rng.uniform(0.01, 0.1, 12)
    values = rng.normal(0, 0.4, 12) + np.sqrt(variances) * rng.normal(size=12)
    best = scipy.optimize.minimize_scalar(
        restricted_likelihood, (0, 2), args=(values, variances), bounds=(0, 2), method="bounded"
    )
    assert between_variance(values, variances) == pytest.approx(best.x, abs=1e-4)


def test_equal_sites_do_not_differ() -> None:
    model = site_model(np.full(5, 0.7), np.full(5, 0.01))
    assert model.between_variance == 0.0
    assert model.mean == pytest.approx(0.7)
    assert between_interval(np.full(5, 0.7), np.full(5, 0.01)) == (0.0, 0.0)
    assert np.allclose(model.shrunk, 0.7)
    assert np.all(model.outlier_probabilities == 1.0)


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_intervals_cover_and_wrong_errors_are_noticed(factor: float) -> None:
    """200 federations of ten sites: a coverage of 95 % is known to 1.5 %, of sites to 0.5 %.

    Errors that are twice as large as stated (``factor`` 0.5) are noticed at the sites' own figures,
    of 50 federations, which know it to 1.5 %.
    """
    rng, runs = np.random.default_rng(7), 200 if factor == 1.0 else 50
    inside, alarms = np.zeros(4), 0
    for _ in range(runs):
        variances = rng.uniform(0.01, 0.06, 10)
        true = 1 + 0.25 * rng.normal(size=10)
        values = true + np.sqrt(variances) / factor * rng.normal(size=10)
        model = site_model(values, variances)
        new = 1 + 0.25 * rng.normal()
        pairs = ((model.mean_interval, 1.0), (model.prediction_interval, new))
        inside[:2] += [low <= x <= high for (low, high), x in pairs]
        inside[2] += model.between_interval[0] <= 0.25**2 <= model.between_interval[1]
        inside[3] += np.mean((model.shrunk_low <= true) & (true <= model.shrunk_high))
        alarms += bool((model.outlier_probabilities < 0.05).any())
    inside /= runs
    if factor == 1.0:
        assert np.all(inside >= 0.91), inside
        assert alarms / runs <= 0.1
    else:
        assert inside[3] < 0.9, inside


def test_a_site_far_from_the_others_is_noticed() -> None:
    values = np.array([1.0, 1.1, 0.9, 1.05, 0.95, 3.0])
    found = outlier_probabilities(values, np.full(6, 0.01))
    assert found[5] < 0.01
    assert np.all(found[:5] == 1.0)


def test_what_gives_no_model_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 3 sites are needed, got 2"):
        site_model(np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match="finite values and variances above 0"):
        site_model(np.ones(3), np.zeros(3))
