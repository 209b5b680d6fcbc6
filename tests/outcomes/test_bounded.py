"""Bounded scores and regressions: figures beside naive ones, private groups, what is absent."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import metrics

import tacit.protocol as tp
from tacit import BoundedMean, Clients, Evaluation, RegressionError, evaluate
from tacit.arrays import Floats
from tacit.data.categories import Categories
from tacit.outcomes.bounded import ORIGIN, sum_values
from tacit.results.parts import Breakdown
from tacit.running.evaluating import repeat_results
from tests.terminal import run

pytestmark = pytest.mark.filterwarnings("ignore:.*outside the bounds")

EXACT = tp.ExactSum.word
BOUNDS = [(0.0, 100.0), (-3.0, 250.0)]


def pairs(records: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Predictions and outcomes about 50, some of them outside of 0 to 100."""
    rng = np.random.default_rng(seed)
    outcome = rng.normal(50, 20, records)
    return outcome + rng.normal(2, 10, records), outcome


def parts_of(result: Evaluation) -> Breakdown:
    """The figures besides the first."""
    assert result.breakdown is not None
    return result.breakdown


@pytest.mark.parametrize("bounds", BOUNDS)
def test_exact_sums_give_the_figures_of_clipped_values(bounds: tuple[float, float]) -> None:
    values, second = pairs(900)
    p, y = np.clip(values, *bounds), np.clip(second, *bounds)
    clients = Clients.from_values(values, second, np.arange(900) % 7)
    width = bounds[1] - bounds[0]
    for protocol, expected in (
        (BoundedMean(bounds, trust=EXACT), p.mean()),
        (BoundedMean(bounds, trust=EXACT, difference=True), (p - y).mean()),
    ):
        result = evaluate(clients, protocol, exact=True)
        assert result.estimate.value == pytest.approx(expected, abs=1e-12 * width)
        assert result.exact == pytest.approx(expected, abs=1e-12 * width)
    result = evaluate(clients, RegressionError(bounds, trust=EXACT), exact=True)
    figures = {name: each.value for name, each in parts_of(result).overall.items()}
    slope, intercept = np.polyfit(p, y, 1)
    spread = 1.959964 * np.std(p - y)
    expected = {
        "root mean squared error": math.sqrt(metrics.mean_squared_error(y, p)),
        "bias": (p - y).mean(),
        "R2": metrics.r2_score(y, p),
        "calibration slope": slope,
        "calibration intercept": intercept,
        "lower limit of agreement": (p - y).mean() - spread,
        "upper limit of agreement": (p - y).mean() + spread,
    }
    assert figures == pytest.approx(expected, rel=1e-7)
    assert figures["R2"] == pytest.approx(expected["R2"], abs=1e-9)
    for x, y_of_x, curve in zip(
        (p, (p + y) / 2), (y, p - y), parts_of(result).curves.values(), strict=True
    ):
        line = np.polyval(np.polyfit(x, y_of_x, 1), curve.places)
        assert curve.value == pytest.approx(line, rel=1e-7, abs=1e-7)
    assert result.estimate.value == pytest.approx(
        metrics.mean_absolute_error(y, p), abs=1e-12 * width
    )
    assert result.estimate.sampling_error == pytest.approx(np.abs(p - y).std() / 30, rel=1e-6)
    written = json.loads(json.dumps(result.to_dict()))
    assert Evaluation.from_dict(written).to_dict() == written


@pytest.mark.parametrize("mean", [0.5, 0.8])
def test_a_thousand_scores_have_the_stated_error(mean: float) -> None:
    """5,000 runs tell a deviation to 1.6 %, and a coverage to 0.3 points."""
    scores = np.clip(np.random.default_rng(1).normal(mean, 0.15, 1000), 0, 1)
    clients, protocol = Clients.from_values(scores), BoundedMean((0, 1), 1.0)
    runs = repeat_results(clients, protocol, 5000, seed=4)
    assert np.std(runs.value) <= (9.2e-4 if mean == 0.5 else 1.5e-3)
    assert abs(np.mean(runs.value) - protocol.exact(clients)) < 5e-5
    assert 0.93 < np.mean(runs.covers(protocol.exact(clients))) < 0.97


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_reports_of_single_records_have_the_stated_error(epsilon: float) -> None:
    """800 runs tell a deviation to 2.5 %, and a coverage to 0.8 points."""
    values, second = pairs(4000)
    clients = Clients.from_values(values, second)
    for difference in (False, True):
        protocol = BoundedMean((-3, 250), epsilon, "local", difference=difference)
        runs, exact = repeat_results(clients, protocol, 800, seed=4), protocol.exact(clients)
        assert np.std(runs.value) == pytest.approx(np.mean(runs.privacy_error), rel=0.1)
        assert 0.92 < np.mean(runs.covers(exact)) < 0.98
        assert abs(np.mean(runs.value) - exact) < 5 * np.std(runs.value) / 28
        drawn = np.std(values - second if difference else values) / np.sqrt(4000)
        known = runs.sampling_error[np.isfinite(runs.sampling_error)]
        assert known.size < 20 or np.median(known) == pytest.approx(drawn, rel=0.5)


@pytest.mark.parametrize("trust", ["secure-sum", "each"])
def test_errors_of_all_figures_of_a_regression_hold(trust: str) -> None:
    """Of 300 runs 95 % are covered, less 4 standard errors of 1.3 %."""
    clients = Clients.from_values(*pairs(20_000), np.arange(20_000) % 4)
    protocol = RegressionError((0, 100), 2.0, trust)
    exact = parts_of(evaluate(clients, RegressionError((0, 100), trust=EXACT))).overall
    runs = [parts_of(evaluate(clients, protocol, seed=seed)).overall for seed in range(300)]
    for name, figure in exact.items():
        bounds = np.array([run[name].interval() for run in runs])
        held = (bounds[:, 0] <= figure.value) & (figure.value <= bounds[:, 1])
        assert np.mean(held) > 0.90, name


def test_groups_sites_and_quantiles_hold_what_they_are_about() -> None:
    rng = np.random.default_rng(2)
    group = rng.integers(0, 2, 8000)
    scores = np.clip(rng.normal(0.4 + 0.3 * group, 0.2), 0, 1)
    sites = np.arange(8000) % 4
    clients = Clients.from_values(scores, client_ids=sites).with_categories(
        Categories(("old", "young"), group), sites
    )
    protocol = BoundedMean((0, 1), 4.0, "each", group_names=("old", "young"))
    result = evaluate(clients, protocol, seed=1)
    assert abs(result.estimate.value - scores.mean()) < 5 * result.estimate.standard_error < 0.01
    for index, name in enumerate(("old", "young")):
        part = parts_of(result)[name].figures["mean"]
        assert abs(part.value - scores[group == index].mean()) < 5 * part.standard_error < 0.01
    (apart,) = parts_of(result).differences
    assert apart.estimate.value == pytest.approx(
        scores[group == 1].mean() - scores[group == 0].mean(), abs=0.01
    )
    assert result.sites is not None
    for index, site in enumerate(result.sites["mean"].sites):
        assert site.estimate.value == pytest.approx(scores[sites == index].mean(), abs=0.02)
    for name, share in (("quantile 0.1", 0.1), ("median", 0.5), ("quantile 0.9", 0.9)):
        low, high = parts_of(result).overall[name].interval()
        assert low - 1e-9 <= np.quantile(scores, share) <= high + 1e-9
    with pytest.raises(tp.DataError, match="groups must be old, young, got none"):
        evaluate(Clients.from_values(scores), protocol, seed=1)


def test_what_cannot_be_told_is_absent_with_its_reason() -> None:
    few = evaluate(Clients.from_values(np.full(9, 0.3)), BoundedMean((0, 1), 1.0), seed=1)
    assert not few.has_signal
    assert "not enough signal at this epsilon" in few.warnings[-1]
    same = Clients.from_values(np.full(5000, 3.0), np.full(5000, 3.0))
    for protocol in (RegressionError((0, 9), trust=EXACT), RegressionError((0, 9), 1.0)):
        figures = parts_of(evaluate(same, protocol, seed=1)).overall
        assert "outcomes are constant" in figures["R2"].reason
        assert "predictions are constant" in figures["calibration slope"].reason
        assert "no larger than their noise" in figures["root mean squared error"].reason


@pytest.mark.parametrize(
    "origins", [None, np.array([1.5]), np.array([np.nan]), np.zeros(2), np.zeros(1, np.float32)]
)
def test_origins_that_no_server_needs_are_declined(origins: Any) -> None:
    asked = {ORIGIN: origins, "clients": 1}
    query = tp.Query(sum_values, BoundedMean((0, 1), 1.0), asked, view=tp.View.SUM)
    with pytest.raises(ValueError, match="origins must be 1 64-bit floats from -1 to 1"):
        sum_values.cost(Clients.from_values([0.1]), query, tp.ClientState())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bounds": (1.0, 1.0), "epsilon": 1.0}, "bounds must be finite and ascend, got 1 and 1"),
        ({"bounds": (0.0, math.inf), "epsilon": 1.0}, "bounds must be finite"),
        ({"bounds": (0.0, 1.0)}, "needs an epsilon"),
        ({"bounds": (0.0, 1.0), "epsilon": 1.0, "trust": EXACT}, "takes no epsilon"),
        ({"bounds": (0.0, 1.0), "epsilon": 1.0, "cells": 1}, "cells must be from 2"),
        ({"bounds": (0.0, 1.0), "epsilon": 1.0, "trust": "local", "group_names": ("a",)}, "sums"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BoundedMean(**settings)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--value yhat --bounds 0 100 --epsilon 5", "mean "),
        ("--value yhat --second y --difference --bounds 0 100 --epsilon 5", "median"),
        ("--prediction yhat --outcome y --bounds 0 100 --epsilon 5", "calibration slope"),
        ("--prediction yhat --bounds 0 100 --epsilon 5", "--prediction needs --outcome"),
        ("--value yhat --outcome y --bounds 0 100", "--outcome cannot be used with --value"),
        ("--value yhat --score y --bounds 0 100", "--score cannot be used with --value"),
        ("--value yhat --epsilon 5", "--protocol bounded-mean needs --bounds"),
        ("--value yhat --bounds 0 100 --protocol fedauc --epsilon 5", "--value is for --protocol"),
    ],
)
def test_columns_choose_the_protocol(options: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "site.csv"
    rows = "\n".join(f"{p:.3f},{y:.3f}" for p, y in zip(*pairs(900), strict=True))
    path.write_text(f"yhat,y\n{rows}\n", encoding="utf-8")
    shown = run("evaluate", path, *options.split())
    assert expected in shown.stdout + shown.stderr
    told = "values are outside the bounds 0 and 100" in shown.stderr
    assert told == (not expected.startswith("--"))
