"""Differences of results: their intervals, and what is refused."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.reporting.comparing import CALIBRATION, Drift, differences
from tacit.results.estimate import About
from tacit.results.saved.reading import Result
from tests.federations import binormal_clients
from tests.reporting.examples import FEDERATION, changed, content, result

REACH = NormalDist().inv_cdf(0.975)


def with_estimate(label: str, federation: str | None = FEDERATION, **estimate: Any) -> Result:
    """A result with an estimate of these parts."""
    made = content("fedauc", federation=federation)
    return Result(label, changed(made, auc={**made["auc"], **estimate}, warnings=[label]))


def half(estimate: tacit.Estimate, about: About = "data") -> float:
    low, high = estimate.interval(about=about)
    return (high - low) / 2 / REACH


ERRORS = ("value", "privacy_error", "sampling_error", "approximation_error", "bias")
PARTS: dict[str, Any] = {
    "one": (0.7, 0.03, 0.02, 0.001, 0.01),
    "two": (0.8, 0.04, 0.01, 0.002, 0.0),
}
ONE, TWO = (
    with_estimate(name, **dict(zip(ERRORS, values, strict=True))) for name, values in PARTS.items()
)


def test_the_errors_add_as_documented() -> None:
    (observed,) = differences([ONE, TWO])
    assert observed.estimate.value == pytest.approx(0.11)
    noise = math.hypot(0.05, 0.003)
    assert half(observed.estimate) == pytest.approx(noise)
    assert half(observed.estimate, "population") == pytest.approx(math.hypot(noise, 0.02, 0.01))
    assert sum(observed.estimate.interval()) / 2 == pytest.approx(0.11)
    assert observed.paired


def test_noise_that_may_be_shared_adds_as_it_is() -> None:
    reused = Result("reused", changed(TWO.content, spent={**TWO.content["spent"], "epsilon": 0}))
    (observed,) = differences([ONE, reused])
    assert observed.shared_noise
    assert half(observed.estimate) == pytest.approx(math.hypot(0.07, 0.003))


def test_single_laplace_draws_widen_the_interval_as_their_sum_does() -> None:
    """Of two draws of one scale the half-width is 2.056 errors, not 1.960, and 2.118 of one."""
    parts: dict[str, Any] = {"sampling_error": 0.0, "approximation_error": 0.0}
    parts["privacy_error"] = 0.01
    plain = with_estimate("plain", **parts)
    drawn = [with_estimate(name, **parts, laplace_error=0.01) for name in ("a", "b")]
    (both,) = differences(drawn)
    assert half(both.estimate) * REACH == pytest.approx(2.056 * math.hypot(0.01, 0.01), rel=1e-3)
    (one,) = differences([plain, drawn[0]])
    assert 1.961 < half(one.estimate) * REACH / math.hypot(0.01, 0.01) < 2.056
    (none,) = differences([plain, with_estimate("other", **parts)])
    assert half(none.estimate) == pytest.approx(math.hypot(0.01, 0.01))


def test_every_further_result_is_compared_with_the_first() -> None:
    third = with_estimate("three", value=0.75)
    difference_list = differences([ONE, TWO, third])
    assert [(d.first, d.second) for d in difference_list] == [("one", "two"), ("one", "three")]


def test_without_a_name_results_are_not_paired() -> None:
    first, second = (with_estimate(label, federation=None, value=0.7) for label in "ab")
    (observed,) = differences([first, second])
    assert not observed.paired


def test_without_a_signal_there_is_no_difference() -> None:
    (observed,) = differences([ONE, result("silent", federation=FEDERATION)])
    assert not observed.known
    assert not observed.significant


def of_clients(clients: tacit.Clients, federation: str | None) -> Result:
    made = tacit.evaluate(clients, tacit.DPAUC(1.0), seed=0, federation=federation)
    return Result.of(made.to_dict(), f"{clients.count} clients")


FIVE, SIX = (binormal_clients(400, 600, count) for count in (5, 6))


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (ONE, ONE, "one and one are one and the same result"),
        (ONE, with_estimate("b", "other"), "different federations, 'five hospitals.*' and 'other'"),
        (ONE, with_estimate("b", None), "one names 'five hospitals, test set 3', the other none"),
        (result("dpauc"), result("gini"), "one is a AUC, the other a Gini mean difference"),
        (result("dpauc"), of_clients(SIX, None), "of 5 and of 6 clients"),
        (of_clients(FIVE, "a"), of_clients(SIX, "a"), "of 5 and of 6 clients"),
    ],
)
def test_what_cannot_be_compared_is_refused(first: Result, second: Result, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        differences([first, second])


def test_clients_of_other_names_are_other_federations_unless_it_is_said() -> None:
    scores, labels = tacit.binormal_scores(400, 600, 0.8, seed=0)
    here, there = (
        tacit.Clients.from_arrays(scores, labels, np.repeat(list(ids), 500)) for ids in ("ab", "cd")
    )
    with pytest.raises(ValueError, match=r"whose clients have different names.*--federation NAME"):
        differences([of_clients(here, None), of_clients(there, None)])
    (observed,) = differences([of_clients(here, "said"), of_clients(there, "said")])
    assert observed.paired


def released(auc: float, seed: int) -> Result:
    """A release about fresh records."""
    records = tacit.binormal_scores(300, 900, auc, seed=seed)
    made = tacit.evaluate(records, tacit.ScoreHistogram("secure-sum", 4.0), seed=seed)
    return Result.of(made.to_dict(), f"{auc} {seed}")


def test_drift_of_two_periods_is_within_its_interval_about_the_population() -> None:
    """Of 19 pairs from populations that differ as is known, most intervals hold the difference."""
    releases = [released(0.8 if seed % 2 else 0.75, seed) for seed in range(20)]
    held = 0
    for seed, pair in enumerate(pairwise(releases)):
        moved = Drift.between(*pair).moved
        assert {"AUC", *CALIBRATION, "population_stability", "kolmogorov_smirnov"} == moved.keys()
        held += (-0.05 if seed % 2 else 0.05) in moved["AUC"].interval(about="population")
    assert held >= 16


def test_drift_without_a_histogram_says_why() -> None:
    one = of_clients(FIVE, "spring")
    moved = Drift.between(one, of_clients(SIX, "autumn")).moved
    assert moved["AUC"].given
    assert moved.keys() == {"AUC", "population_stability"}
    assert moved["population_stability"].reason == "dpauc gives no score histogram"
    with pytest.raises(ValueError, match="are one and the same result"):
        Drift.between(one, one)
