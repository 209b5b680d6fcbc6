"""Sliding windows: exact probabilities, exact privacy, unbiased values of least variance."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.privacy import bounded
from tacit.privacy.mechanisms.interface import Distribution
from tacit.privacy.mechanisms.response import UniformIntegers
from tacit.privacy.noise import NoNoise, SimulatedNoise

WINDOWS = [(2, 1), (5, 1), (4, 3), (3, 7), (33, 10)]


def even(size: int = 200) -> bounded.PointMasses:
    points = (np.arange(size) + 0.5) / size
    return bounded.PointMasses(points, np.full(size, 1 / size))


def peaked(size: int = 200) -> bounded.PointMasses:
    points = (np.arange(size) + 0.5) / size
    masses = stats.beta.pdf(points, 8, 2)
    return bounded.PointMasses(points, masses / masses.sum())


@dataclass
class Counting(NoNoise):
    """Gives every integer below the bound in turn: a batch of so many equal records sees them all.

    A draw for the rounding to a grid gets one number, the same for all records.
    """

    rounding: int = 0
    replicates: int | None = None

    def draw(self, distribution: Distribution, shape: tuple[int, ...]) -> Any:
        if not isinstance(distribution, UniformIntegers):
            return super().draw(distribution, shape)
        bounds: Any = distribution.bounds
        if bounds == bounded.ROUNDING:
            return np.full(shape, self.rounding, dtype=np.int64)
        assert shape == (bounds,)
        return np.arange(bounds, dtype=np.int64)


@pytest.fixture
def small_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "GRAIN", 50)
    monkeypatch.setattr(bounded, "ROUNDING", 8)


@settings(max_examples=200)
@given(epsilon=st.floats(1e-6, 800), inputs=st.integers(2, 300), width=st.integers(1, 300))
def test_the_ratio_of_the_weights_never_exceeds_what_is_declared(
    epsilon: float, inputs: int, width: int
) -> None:
    window = bounded.SlidingWindow(epsilon, inputs, width)
    inside, outside = window.weights
    with localcontext(prec=400):
        assert Decimal(inside) <= Decimal(outside) * Decimal(epsilon).exp()
    assert inside >= outside >= 1
    assert window.total < 2**63


@pytest.mark.parametrize("epsilon", [0.001, 0.5, 1.0, 5.0, 20.0, 36.0])
@pytest.mark.parametrize(("inputs", "width"), WINDOWS)
def test_hardly_any_budget_is_given_away(epsilon: float, inputs: int, width: int) -> None:
    inside, outside = bounded.SlidingWindow(epsilon, inputs, width).weights
    assert np.log(inside / outside) == pytest.approx(epsilon, rel=1e-8)


@pytest.mark.usefixtures("small_weights")
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize(("inputs", "width"), WINDOWS)
def test_every_draw_leads_to_the_report_it_should(epsilon: float, inputs: int, width: int) -> None:
    """All draws of every input, counted: the weights exactly, as many for every input."""
    window = bounded.SlidingWindow(epsilon, inputs, width)
    inside, outside = window.weights
    for place in range(inputs):
        reports = window.answers(np.full(window.total, place), Counting())
        variance = np.bincount(reports, minlength=window.outputs)
        expected = np.full(window.outputs, outside)
        expected[place : place + width] = inside
        np.testing.assert_array_equal(variance, expected)
        np.testing.assert_allclose(variance / window.total, window.probabilities[place], rtol=1e-14)


def test_replicates_are_a_leading_axis_and_no_noise_is_survived() -> None:
    window = bounded.SlidingWindow(1.0, 8, 3)
    places = np.arange(8)
    assert window.answers(places, SimulatedNoise(1, replicates=4)).shape == (4, 8)
    np.testing.assert_array_equal(window.answers(places, NoNoise()), places)
    report = bounded.GridReport(1.0, np.linspace(0, 1, 9), 3)
    assert report.answers(np.linspace(0, 1, 5), SimulatedNoise(1, replicates=4)).shape == (4, 5)
    np.testing.assert_array_equal(report.answers(np.array([0.0, 0.5, 1.0]), NoNoise()), [0, 4, 8])


@pytest.mark.parametrize("distribution", [even(), peaked()])
def test_values_have_the_least_variance(distribution: bounded.PointMasses) -> None:
    """Against the reference that solves the conditions of a constrained minimum as they stand."""
    report = bounded.GridReport(1.5, np.array([0.0, 0.2, 0.5, 0.8, 1.0]), 3)
    table, values = report.window.probabilities, report.values(distribution)
    rounded = np.zeros(5)
    for point, mass in zip(distribution.points, distribution.masses, strict=True):
        below = max(k for k in range(4) if report.grid[k] <= point)
        part = (point - report.grid[below]) / (report.grid[below + 1] - report.grid[below])
        rounded[below : below + 2] += mass * np.array([1 - part, part])
    weights = rounded @ table
    corner = np.zeros((5, 5))
    system = np.block([[2 * np.diag(weights), table.T], [table, corner]])
    variance = np.linalg.solve(system, np.concatenate([np.zeros(7), report.grid]))[:7]
    np.testing.assert_allclose(values, variance, rtol=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
@pytest.mark.parametrize("distribution", [even(), peaked()], ids=["even", "peaked"])
def test_the_mean_and_variance_of_reports_are_as_predicted(
    epsilon: float, distribution: bounded.PointMasses
) -> None:
    """False alarms: 400,000 reports know their variance to 0.6 %, so it misses 3 % with probability
    below 1e-5, as does the mean of the lower or upper half 4.5 standard errors. An epsilon 30 % too
    small or too large is noticed."""
    report = bounded.tailored_report(epsilon, distribution)
    numbers = np.sort(
        np.random.default_rng(4).choice(distribution.points, 400_000, p=distribution.masses)
    )
    values, predicted = report.values(distribution), report.variance(distribution)
    for claimed, holds in ((epsilon, True), (epsilon / 1.3, False), (epsilon * 1.3, False)):
        other = bounded.GridReport(claimed, report.grid, report.width)
        errors = values[other.answers(numbers, SimulatedNoise(5))] - numbers
        off = np.abs(errors.reshape(2, -1).mean(axis=-1)).max() / np.sqrt(predicted / 200_000)
        close = abs(float(np.mean(errors**2)) / predicted - 1) < 0.03
        assert bool(close and off < 4.5) is holds


@pytest.mark.parametrize("epsilon", [1.5, 3.0, 5.0])
def test_a_fine_even_grid_does_at_least_as_well_as_the_piecewise_mechanism(epsilon: float) -> None:
    """Wang et al. 2019, Lemma 1 on [-1, 1]: ``t^2 / (r - 1) + (r + 3) / (3 (r - 1)^2)``, r =
    exp(epsilon / 2), a quarter of it on [0, 1]; its reports stand for evenly spaced values."""
    root, numbers = np.exp(epsilon / 2), even()
    spread = (2 * numbers.points - 1) ** 2 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
    report = bounded.GridReport(epsilon, np.linspace(0, 1, 257), round(256 / root))
    table, outputs = report.window.probabilities, np.arange(report.window.outputs)
    means = table @ outputs
    values = (outputs - means[0]) / (means[-1] - means[0])
    second = report._grid_masses(numbers) @ table @ values**2
    affine = second - numbers.masses @ numbers.points**2
    assert affine == pytest.approx(numbers.masses @ spread / 4, rel=0.01)
    assert report.variance(numbers) <= affine


@pytest.mark.parametrize("numbers", [np.zeros(40), np.repeat([0.0, 1.0], 20), np.full(40, 0.3)])
def test_equal_numbers_leave_a_grid_that_ascends(numbers: Any) -> None:
    distribution = bounded.PointMasses(numbers, np.full(40, 1 / 40))
    report = bounded.tailored_report(2.0, distribution)
    assert (np.diff(report.grid) > 0).all()
    assert (report.grid[0], report.grid[-1]) == (0.0, 1.0)
    assert report.variance(distribution) > 0


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ((1.0, 1, 1), "inputs must be at least 2, got 1"),
        ((1.0, 3, 0), "width must be at least 1, got 0"),
        ((1.0, 2.5, 1), "inputs must be a whole number, got 2.5"),
    ],
)
def test_bad_parameters_are_refused_by_name(parameters: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        bounded.SlidingWindow(*parameters)


@pytest.mark.parametrize("epsilon", [0.5, 5.0, 20.0, 50.0, 300.0, 700.0])
@pytest.mark.parametrize("numbers", [[0.0], [0.0, 0.0, 0.5], [0.25, 0.875, 1.0]], ids=str)
def test_values_are_unbiased_at_every_epsilon(epsilon: float, numbers: list[float]) -> None:
    """Where many numbers are equal and epsilon is large, some reports almost never come."""
    distribution = bounded.PointMasses(np.array(numbers), np.full(len(numbers), 1 / len(numbers)))
    grid = bounded.tailored_report(epsilon, distribution).grid
    for width in bounded.WINDOWS:
        report = bounded.GridReport(epsilon, grid, width)
        mean = report.window.probabilities @ report.values(distribution)
        np.testing.assert_allclose(mean, grid, atol=1e-5)
