from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom

from tacit.auditing.distinguishing import (
    epsilon_bound,
    interval,
    least_probability,
    most_probability,
)


@given(tries=st.integers(1, 400), share=st.floats(0, 1), error=st.floats(1e-6, 0.4))
def test_bounds_are_clopper_and_pearsons(tries: int, share: float, error: float) -> None:
    hits = round(share * tries)
    low, high = least_probability(hits, tries, error), most_probability(hits, tries, error)
    assert low == (0 if hits == 0 else pytest.approx(beta.ppf(error, hits, tries - hits + 1)))
    assert high == (
        1 if hits == tries else pytest.approx(beta.ppf(1 - error, hits + 1, tries - hits))
    )
    if 0 < hits < tries:
        assert binom.sf(hits - 1, tries, low) == pytest.approx(error)
        assert binom.cdf(hits, tries, high) == pytest.approx(error)


@pytest.mark.parametrize("probability", [0.0, 0.02, 0.5, 0.97, 1.0])
def test_an_interval_covers_at_its_level(probability: float) -> None:
    """Exact: the probability of all outcomes whose interval holds the truth."""
    outcomes = np.arange(61)
    covering = [low <= probability <= high for low, high in (interval(k, 60) for k in outcomes)]
    assert binom.pmf(outcomes, 60, probability)[covering].sum() >= 0.95


@given(ours=st.integers(0, 200), theirs=st.integers(0, 200), delta=st.floats(0, 0.5))
def test_an_epsilon_bound_is_never_negative_and_falls_with_delta(
    ours: int, theirs: int, delta: float
) -> None:
    bound = epsilon_bound(ours, theirs, 200, delta, 0.01)
    assert 0 <= bound <= epsilon_bound(ours, theirs, 200, 0.0, 0.01) < math.inf


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.0), (1.0, 0.0), (1.0, 0.05), (4.0, 0.0)])
def test_an_epsilon_bound_errs_no_more_often_than_it_says(epsilon: float, delta: float) -> None:
    """The worst event of a mechanism that is exactly (epsilon, delta)-private, 20,000 times.

    With an error of 0.05 a sound bound is wrong 1,000 times or less; the test alarms above 1,130,
    with probability below 1e-4.
    """
    rng = np.random.default_rng(0)
    rare = 0.8 * (1 - delta) / (1 + math.exp(epsilon))
    first = rng.binomial(500, math.exp(epsilon) * rare + delta, 20_000)
    second = rng.binomial(500, rare, 20_000)
    pairs, counts = np.unique(np.stack([first, second]), axis=1, return_counts=True)
    wrong = [epsilon_bound(int(a), int(b), 500, delta, 0.05) > epsilon for a, b in pairs.T]
    assert counts[np.array(wrong)].sum() <= 1130
