"""Rates at every threshold, from a histogram and from a ROC curve."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tacit
from tacit.metrics.curves import counts_from_thresholds
from tacit.protocols.published.calibration import PublishedHistogram
from tacit.results.curves.curve import WRITTEN_RATES, Curve, rates_entry, rates_of_curve


def naive(scores: NDArray[Any], labels: NDArray[Any], threshold: float) -> dict[str, float]:
    called = scores >= threshold
    hit, false = (called & (labels == 1)).sum(), (called & (labels == 0)).sum()
    positives, negatives = (labels == 1).sum(), (labels == 0).sum()
    return {
        "precision": hit / (hit + false) if hit + false else np.nan,
        "recall": hit / positives,
        "specificity": 1 - false / negatives,
        "accuracy": (hit + negatives - false) / labels.size,
        "f1": 2 * hit / (hit + false + positives),
    }


def test_a_histogram_without_noise_has_the_exact_rates() -> None:
    scores, labels = tacit.binormal_scores(300, 700, 0.8, seed=0)
    clients = tacit.Clients.split(scores, labels, clients=3, seed=0)
    protocol = PublishedHistogram("exact-sum", height=6, buckets=16)
    made = tacit.evaluate(clients, protocol, seed=0).to_dict()["rates"]
    for index, threshold in enumerate(made["thresholds"]):
        for name, value in naive(scores, labels, threshold).items():
            assert made[name][index] == pytest.approx(value, abs=1e-9), (name, threshold)
            low, high = made[f"{name}_low"][index], made[f"{name}_high"][index]
            assert low <= made[name][index] <= high


def test_the_rates_agree_with_the_curves_beside_them() -> None:
    clients = tacit.Clients.split(*tacit.binormal_scores(300, 700, 0.8, seed=0), 3, seed=0)
    made = tacit.evaluate(clients, tacit.ScoreHistogram("secure-sum", 1.0), seed=0).to_dict()
    rates, curve, roc = made["rates"], made["precision_recall"], made["roc"]
    assert rates["thresholds"] == curve["thresholds"] == roc["thresholds"]
    assert rates["recall"] == curve["recall"] == roc["true_positive_rate"]
    assert rates["precision"] == curve["precision"]
    expected = [1 - rate for rate in roc["false_positive_rate"]]
    assert rates["specificity"] == pytest.approx(expected, abs=1e-12)
    for end in ("low", "high"):
        assert roc[f"true_positive_rate_{end}"] == rates[f"recall_{end}"]


def test_rates_at_a_border_are_those_at_that_threshold() -> None:
    clients = tacit.Clients.split(*tacit.binormal_scores(800, 1700, 0.8, seed=0), 3, seed=0)
    result = tacit.evaluate(clients, tacit.ScoreHistogram("secure-sum", 2.0, height=6), seed=0)
    rates = result.to_dict()["rates"]
    index = len(rates["thresholds"]) // 2
    there = result.at(rates["thresholds"][index])
    for name in ("f1", "accuracy", "precision"):
        assert rates[name][index] == pytest.approx(there[name].value, abs=1e-9)
        low, high = there[name].interval(about="population")
        assert rates[f"{name}_low"][index] == pytest.approx(max(low, 0), abs=1e-6)
        assert rates[f"{name}_high"][index] == pytest.approx(min(high, 1), abs=1e-6)


def test_a_curve_with_class_sizes_has_the_exact_rates() -> None:
    scores, labels = tacit.binormal_scores(300, 700, 0.8, seed=1)
    edges = np.linspace(0, 1, 21)[:-1]
    cells = np.searchsorted(edges, scores, side="right") - 1
    counts = [np.bincount(cells[labels == label], minlength=20) for label in (1, 0)]
    up, across = (counts_from_thresholds(part) / part.sum() for part in counts)
    none = np.zeros(20)
    rates = rates_of_curve(Curve(edges, across, up, none, none), 300, 700)
    entry = rates_entry(edges, rates)
    for index, threshold in enumerate(edges):
        for name, value in naive(scores, labels, threshold).items():
            assert rates[name].value[index] == pytest.approx(value, nan_ok=True)
    assert entry["recall_low"] == entry["recall"]
    assert set(entry["precision_low"]) == {None}
    assert entry.keys() == {"thresholds"} | {
        f"{name}{end}" for name in WRITTEN_RATES for end in ("", "_low", "_high")
    }


@pytest.mark.parametrize("sizes", [(-3.0, 100.0), (100.0, 0.0), (np.nan, 100.0)])
def test_without_class_sizes_only_the_curve_s_own_rates_are_known(
    sizes: tuple[float, float],
) -> None:
    rates, none = np.array([0.9, 0.2]), np.zeros(2)
    result = rates_of_curve(Curve(np.array([0.0, 0.5]), rates, rates, none, none), *sizes)
    assert np.isnan([result[name].value for name in ("precision", "accuracy", "f1")]).all()
    assert result["recall"].value.tolist() == [0.9, 0.2]
