"""Estimates and their intervals."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import Estimate, Interval
from tacit.results.parts import difference
from tacit.results.server_result import ServerResult


def test_intervals_lie_around_the_value_less_its_bias_and_add_sampling_where_asked() -> None:
    estimate = Estimate(0.7, 0.03, sampling_error=0.12, approximation_error=0.04, bias=-0.02)
    assert estimate.standard_error == pytest.approx(0.05)
    assert estimate.to_dict()["value"] == 0.7
    reaches = 1.959964 * 0.05, 1.644854 * 0.13
    intervals = estimate.interval(0.95), estimate.interval(0.9, about="population")
    for reach, interval in zip(reaches, intervals, strict=True):
        assert interval == pytest.approx((0.72 - reach, 0.72 + reach), rel=1e-6)
    with pytest.raises(ValueError, match="'data' or 'population', got 'model'"):
        estimate.interval(0.95, about="model")  # type: ignore[arg-type]


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, math.nan])
def test_a_level_outside_its_range_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        Estimate(0.7, 0.1, 0.1).interval(level)


def test_findings_cover_as_their_estimate_does() -> None:
    errors, sizes = (np.full(2, 0.01), np.zeros(2)), (np.ones(2), np.ones(2))
    found = ServerResult(np.array([0.70, 0.75]), *errors, *sizes, bias=np.array([0.0, 0.03]))
    np.testing.assert_array_equal(found.covers(0.71), [True, True])
    np.testing.assert_array_equal(found.covers(0.735), [False, True])


@given(
    value=st.floats(-0.5, 1.5),
    error=st.floats(0.0, 0.5),
    bias=st.floats(-0.3, 0.3),
    exact=st.floats(0.0, 1.0),
)
def test_limits_change_no_coverage_and_keep_the_centre(
    value: float, error: float, bias: float, exact: float
) -> None:
    raw = Estimate(value, error, 0.0, bias=bias)
    cut = raw.within((0.0, 1.0))
    assert 0 <= cut.value <= 1
    assert cut.value - cut.bias == pytest.approx(value - bias, abs=1e-12)
    (low, high), (wide_low, wide_high) = cut.interval(), raw.interval()
    assert 0 <= low <= high <= 1
    if min(abs(exact - wide_low), abs(exact - wide_high)) > 1e-9 and wide_low < 1 and wide_high > 0:
        assert (low <= exact <= high) == (wide_low <= exact <= wide_high)
        assert low - 1e-9 <= cut.value <= high + 1e-9


def server_result(
    value: float, error: float, positives: float = 100.0, wrong: float = 0.0
) -> ServerResult:
    sizes, none = (np.array(positives), np.array(100.0)), np.zeros(())
    known = (np.array(value), np.array(error), none, *sizes)
    return ServerResult(*known, positives_error=wrong, limits=(0.0, 1.0))


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (
            server_result(2.5, 0.4),
            "interval (these records), 1.72 to 3.28, holds no value in [0, 1]",
        ),
        (server_result(0.5, 0.26), "interval (these records) holds every value in [0, 1]"),
        (server_result(2.5, 2.0), "interval (these records) holds every value in [0, 1]"),
        (
            server_result(0.7, 0.01, 59.0, 10.0),
            "estimated at 59 records with a standard error of 10, and a figure needs at least 6",
        ),
    ],
)
def test_no_figure_is_told_that_says_nothing(found: ServerResult, reason: str) -> None:
    reported = found.published()
    assert np.isnan(reported.value)
    assert reason in reported.warnings[-1]
    assert reported.histogram is None
    assert reported.roc is None


def test_figures_that_say_something_are_told() -> None:
    told = server_result(0.5, 0.25), server_result(0.7, 0.01, 80.0, 10.0), server_result(1.0, 0.0)
    assert all(result.published() is result for result in told)
    hardly = server_result(0.7, 0.01, 61.0, 10.0).published()
    assert hardly.estimate().value == 0.7
    assert "little more than the 6 standard errors" in hardly.warnings[0]
    over = server_result(1.02, 0.03).published()
    assert over.estimate().value == 1
    assert over.warnings == (
        "the estimate came out as 1.0200; the nearest value in [0, 1] is given",
    )


def test_an_absent_estimate_equals_its_copy() -> None:
    absent = Estimate.absent("too noisy")
    assert pickle.loads(pickle.dumps(absent)) == absent  # noqa: S301
    assert absent != Estimate.absent("too few records")
    assert len({absent, Estimate.absent("too noisy")}) == 1
    assert str(absent) == "none: too noisy"
    assert str(Estimate(0.5, math.nan, 0.0)) == "0.5000 (without an interval)"


def test_stated_intervals_are_known_at_their_level_only() -> None:
    stated = Estimate(2.0, 0.1, 0.0, intervals=(Interval(1.7, 2.4), Interval(1.5, 2.6)))
    assert stated.interval() == (1.7, 2.4)
    assert 2.5 in stated.interval(about="population")
    with pytest.raises(ValueError, match=r"known at 0\.95 only, got 0\.9"):
        stated.interval(0.9)


def test_intervals_of_differences_cover_and_errors_30_percent_too_small_are_noticed() -> None:
    """Of 2,000 pairs: 4.9 deviations of a binomial count, a false alarm in 1e-6."""
    pairs = np.random.default_rng(1).normal([0.8, 0.7], [0.03, 0.04], (2000, 2)).tolist()
    for shrunk in (1.0, 0.7):
        made = [
            difference(Estimate(one, 0.03 * shrunk, 0.0), Estimate(other, 0.04 * shrunk, 0.0))
            for one, other in pairs
        ]
        covered = np.mean([0.1 in each.interval() for each in made])
        assert (abs(covered - 0.95) < 4.9 * math.sqrt(0.95 * 0.05 / 2000)) == (shrunk == 1.0)
