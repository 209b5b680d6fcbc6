"""Reports of single records: scales of scores, and figures within the ranges of pairs' kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

from tacit import Clients, DataError, TwoRoundAUC, UStatistic, binormal_scores, evaluate
from tacit.local.hierarchical.protocol import HierarchicalAUC
from tacit.local.paired.protocol import PairedUStatistic
from tacit.local.ustatistic.kernels import Area, Collision, Range, Scaled
from tacit.metrics.cells.score_scale import EVEN, PROBABILITY
from tacit.running.evaluating import exact_auc, repeat_results


def symbols(scale: str = PROBABILITY) -> UStatistic:
    """Of the AUC, in 16 bins."""
    domain = Range(bins=16) if scale == EVEN else Scaled(scale, 16)
    return UStatistic(Area(domain), 6.0)


@pytest.mark.parametrize(
    ("made", "records", "spread", "most", "least"),
    [
        (symbols, 20_000, 2.0, 0.03, 0.1),
        (partial(TwoRoundAUC, 5.0, "public"), 10_000, 1.5, 0.004, 0.016),
        (partial(HierarchicalAUC, 8.0, 6), 4_000, 2.0, 0.01, 0.05),
    ],
)
def test_an_increasing_map_of_scores_hardly_changes_the_error(
    made: Callable[..., Any], records: int, spread: float, most: float, least: float
) -> None:
    """The same draws over scores of 0.6 % and of 50 % on average.

    The standard error is near 0.004 for two rounds and 0.006 for a bit: equal cells, which put
    nearly all of the smaller scores in one, miss by more than four of them, and cells of the
    log-odds by less than two. Equal bins of symbols miss by more than a tenth.
    """
    scores, labels = binormal_scores(records, records, 0.8, seed=1)
    log_odds = spread * scipy.stats.norm.ppf(scores)
    missed = {}
    for scale in (PROBABILITY, EVEN):
        errors = []
        for shift in (0.0, -5.0):
            clients = Clients.from_arrays(scipy.special.expit(log_odds + shift), labels)
            results = repeat_results(clients, made(scale=scale), 20, seed=5)
            errors.append(float(np.mean(results.value)) - exact_auc(clients))
        missed[scale] = errors
    assert np.abs(missed[PROBABILITY]).max() < most
    assert abs(missed[EVEN][1]) > least


@pytest.mark.parametrize(
    ("kernel", "listed", "limits"),
    [
        ("kendall", "domain=listed(values=0 1 2 3 4 5)", (-1, 1)),
        ("gini", "domain=listed(values=0 1 2 3 4 5)", (0, 5 * 15 / 29)),
        ("collision", "values=0 1 2 3 4 5", (0, 1)),
    ],
)
@pytest.mark.parametrize("paired", [False, True])
def test_no_figure_lies_outside_the_range_of_its_kernel(
    paired: bool, kernel: str, listed: str, limits: tuple[float, float]
) -> None:
    """A figure is within its limits, and an interval that holds all of them gives no figure."""
    rng = np.random.default_rng(0)
    values, second = rng.integers(0, 6, (2, 30))
    clients = Clients.from_values(values, second=second)
    if paired:
        called = "gini(low=0, high=5)" if kernel == "gini" else kernel
        protocol: Any = PairedUStatistic(called, 0.5)
    else:
        protocol = UStatistic(f"{kernel}({listed})", 0.5)
    results = [evaluate(clients, protocol, seed=seed) for seed in range(30)]
    for result in results:
        if not result.has_signal:
            assert any("no figure: " in warning for warning in result.warnings)
            continue
        low, high = result.estimate.interval()
        assert limits[0] <= low <= result.estimate.value <= high <= limits[1] + 1e-12
        assert high - low < limits[1] - limits[0]
    assert not all(result.has_signal for result in results)


VALUES = Clients.from_values([0.5, 1.0, 1.5], [1, -1, 2], ["b", "a", "b"])
ONE_CLASS = Clients.from_arrays([0.5, 0.2], [1, 1])
RANGE = r"values must be in \[0, 1\], got 1.5 in b, row 2; set the domain by public bounds"


@pytest.mark.parametrize(
    ("protocol", "clients", "message"),
    [
        (TwoRoundAUC(1.0), VALUES, r"in \[0, 1\].* got 1.5 in b, row 2; name their unit"),
        (HierarchicalAUC(1.0), VALUES, r"in \[0, 1\].* got 1.5 in b, row 2; name their unit"),
        (PairedUStatistic("gini", 1.0), VALUES, RANGE),
        (UStatistic("gini", 1.0), VALUES, RANGE),
        (UStatistic("auc(domain=scaled)", 1.0), VALUES, RANGE),
        (
            UStatistic("gini(domain=listed(values=0.5 1))", 1.0),
            VALUES,
            "^values must be one of the 2 public values 0.5, 1, got 1.5 in b, row 2;",
        ),
        (
            UStatistic("kendall(domain=range(high=2), second=range(high=3))", 1.0),
            VALUES,
            r"^second values must be in \[0, 3\], got -1.0 in a, row 1;",
        ),
        (UStatistic(Collision(range(20)), 1.0), VALUES, "values 0, 1, 2, 3, ..., 19, got 0.5"),
        (UStatistic("kendall", 1.0), ONE_CLASS, "tau needs a second value of each record"),
        (PairedUStatistic("kendall", 1.0), ONE_CLASS, "tau needs a second value of each record"),
    ],
    ids=str,
)
def test_records_that_do_not_suit_a_protocol_are_refused(
    protocol: Any, clients: Clients, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        evaluate(clients, protocol)


@pytest.mark.parametrize(
    "protocol",
    [TwoRoundAUC(4.0), TwoRoundAUC(4.0, "public"), HierarchicalAUC(4.0, 6), symbols()],
    ids=lambda protocol: protocol.title,
)
def test_log_odds_report_what_their_probabilities_do(protocol: Any) -> None:
    """Their positions differ in the last bits of knots only, and no draw turns on them here."""
    scores, labels = binormal_scores(3000, 3000, 0.8, seed=2)
    clients = Clients.from_arrays(scores, labels)
    raw = replace(clients, scores=scipy.special.logit(scores))
    values = [
        repeat_results(each, of_unit, 3, seed=1).value
        for each, of_unit in ((clients, protocol), (raw, protocol.for_unit("log-odds")))
    ]
    np.testing.assert_allclose(values[0], values[1], atol=1e-3)


@pytest.mark.parametrize("protocol", [TwoRoundAUC(5.0), HierarchicalAUC(6.0, 6)])
def test_unbounded_scores_need_no_bounds_on_the_scale_of_real_numbers(protocol: Any) -> None:
    scores, labels = binormal_scores(10_000, 10_000, 0.8, seed=3)
    clients = Clients.from_arrays(np.sinh(30 * scipy.stats.norm.ppf(scores)), labels)
    low, high = evaluate(clients, protocol.for_unit("real"), seed=0).auc.interval(level=0.9999)
    assert low < exact_auc(clients) < high
