"""Variances, shapes and exact privacy of the noise distributions."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tacit.privacy import distributions
from tests.privacy import reference

EXTREME_EPSILONS = (1e-12, 1e-6, 1e-3, 50.0, 700.0, 800.0)


@settings(max_examples=40)
@given(width=st.integers(1, 50), epsilon=st.floats(0.1, 20))
@example(width=36, epsilon=8.0)
@example(width=50, epsilon=3.0)
def test_no_inner_width_has_less_variance(width: int, epsilon: float) -> None:
    """In the examples the best one lies two above that of the continuous optimum."""
    chosen = int(distributions.staircase_inner_width(width, epsilon))
    best = min(
        reference.discrete_staircase(width, inner, epsilon).variance
        for inner in range(1, width + 1)
    )
    assert reference.discrete_staircase(width, chosen, epsilon).variance <= best * (1 + 1e-11)


@settings(max_examples=40)
@given(epsilon=st.floats(0.01, 30))
def test_staircase_variance_is_the_integral_at_the_best_inner_share(epsilon: float) -> None:
    b = np.exp(-epsilon)
    zeroth, first, second = 1 / (1 - b), b / (1 - b) ** 2, b * (1 + b) / (1 - b) ** 3

    def second_moment(low: float, high: float) -> float:
        return float(
            second * (high - low) + first * (high**2 - low**2) + zeroth * (high**3 - low**3) / 3
        )

    def variance(gamma: float) -> float:
        mass = zeroth * (gamma + b * (1 - gamma))
        return float((second_moment(0, gamma) + b * second_moment(gamma, 1)) / mass)

    gamma = float(distributions.staircase_gamma(epsilon))
    assert float(distributions.staircase_variance(epsilon)) == pytest.approx(
        variance(gamma), rel=1e-10
    )
    for other in (0.9 * gamma, 1.1 * gamma):
        assert variance(gamma) <= variance(other) * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 1e-3, 0.1, 1.0, 8.0, 50.0, 700.0])
def test_staircase_gamma_to_full_precision(epsilon: float) -> None:
    with localcontext(prec=80):
        b = (-Decimal(epsilon)).exp()
        cube = (b - 2 * b**2 + 2 * b**4 - b**5) / 2
        exact = -b / (1 - b) + (cube.ln() / 3).exp() / (1 - b) ** 2
        assert abs(Decimal(float(distributions.staircase_gamma(epsilon))) / exact - 1) < Decimal(
            "1e-15"
        )


@pytest.mark.parametrize("epsilon", EXTREME_EPSILONS)
def test_variances_stay_finite_and_ordered_at_extreme_epsilons(epsilon: float) -> None:
    laplace = float(distributions.discrete_laplace_variance(1 / epsilon))
    one, thousand = distributions.discrete_staircase_variance([1, 1000], epsilon)
    assert 0 <= distributions.staircase_gamma(epsilon) <= 0.5
    assert 0 <= one <= thousand < np.inf
    assert one == pytest.approx(laplace, rel=1e-12)
    assert 0 <= distributions.staircase_variance(epsilon) <= 2 / epsilon**2 * (1 + 1e-12)


def test_limits_of_no_budget_and_no_sensitivity() -> None:
    assert distributions.discrete_staircase_variance([0, 1, 5], 0.0).tolist() == [0, np.inf, np.inf]
    assert distributions.discrete_staircase_variance(0, 1.0) == 0
    assert distributions.staircase_variance(0.0) == np.inf
    assert distributions.discrete_laplace_variance([0.0, np.inf]).tolist() == [0, np.inf]


@pytest.mark.parametrize(
    ("sensitivity", "shown"),
    [(1.5, "1.5"), (-1, "-1"), (float("nan"), "nan"), (float("inf"), "inf"), (2**44 + 1, "175921")],
)
def test_sensitivity_is_a_whole_number(sensitivity: float, shown: str) -> None:
    with pytest.raises(ValueError, match=rf"whole number from 0 to 2\*\*44, got {shown}"):
        distributions.whole_sensitivity([1, sensitivity])
