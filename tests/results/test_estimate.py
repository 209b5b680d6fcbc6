"""Estimates and their intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit import Estimate
from tacit.results.findings import Findings


def test_the_standard_error_is_about_the_data() -> None:
    estimate = Estimate(0.7, privacy_error=0.03, sampling_error=0.5, approximation_error=0.04)
    assert estimate.standard_error == pytest.approx(0.05)
    low, high = estimate.interval(0.95)
    assert high - low == pytest.approx(2 * 1.959964 * 0.05, rel=1e-6)


def test_the_population_interval_adds_the_sampling_error() -> None:
    estimate = Estimate(0.7, privacy_error=0.03, sampling_error=0.04)
    low, high = estimate.interval(0.9, about="population")
    assert high - low == pytest.approx(2 * 1.644854 * 0.05, rel=1e-6)


def test_a_known_bias_moves_the_interval_and_not_the_value() -> None:
    estimate = Estimate(0.7, privacy_error=0.01, sampling_error=0.0, bias=-0.02)
    assert sum(estimate.interval(0.95)) / 2 == pytest.approx(0.72)
    assert estimate.to_dict()["value"] == 0.7


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, math.nan])
def test_a_level_outside_its_range_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        Estimate(0.7, 0.1, 0.1).interval(level)


def test_an_unknown_subject_is_refused() -> None:
    with pytest.raises(ValueError, match="'data' or 'population', got 'model'"):
        Estimate(0.7, 0.1, 0.1).interval(0.95, about="model")  # type: ignore[arg-type]


def test_findings_cover_as_their_estimate_does() -> None:
    findings = Findings(
        value=np.array([0.70, 0.75]),
        privacy_error=np.array([0.01, 0.01]),
        sampling_error=np.zeros(2),
        positives=np.ones(2),
        negatives=np.ones(2),
        bias=np.array([0.0, 0.03]),
    )
    np.testing.assert_array_equal(findings.covers(0.71), [True, True])
    np.testing.assert_array_equal(findings.covers(0.735), [False, True])
