"""Runs that draw numbers of reports have the distribution of those that draw every report."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import tacit
from tacit.arrays import Floats
from tacit.local.paired.mpc import drawn_seats, seated_pairs
from tacit.privacy.bounded import GridReport, SlidingWindow
from tacit.protocol import Clients, Protocol, SimulatedNoise
from tacit.running.evaluating import repeat_results
from tacit_studies.floors.counted_runs import class_reports, mixed_pairs, simulated_results

RUNS = 8_000
BINS = 10
FALSE_ALARM = 1e-5
"""Of one comparison: a chi-square test of equal distributions in ten bins of the pooled values.

Between normal samples of 8,000 the noncentrality is 372 where one has a spread 30 % larger, 694
where it is 30 % smaller. Nine degrees of freedom reject above 40, so the chance to miss it is below
1e-40. Over six seeds the wrong cases below had noncentralities of at least 400.
"""


def differ(first: Floats, second: Floats) -> bool:
    """Whether two samples have different distributions; values may be few."""
    # equal values differ in their last digits where they were computed in another order
    samples = [each.round(9) for each in (first, second)]
    shares = np.arange(1, BINS) / BINS
    edges = np.unique(np.quantile(np.concatenate(samples), shares, method="lower"))
    size = edges.size + 1
    table = np.stack(
        [np.bincount(np.searchsorted(edges, each), minlength=size) for each in samples]
    )
    used = table[:, table.sum(axis=0) > 0]
    return float(stats.chi2_contingency(used).pvalue) < FALSE_ALARM


def few_records(records: int = 60, ties: bool = True) -> Clients:
    """Records of which four in ten are positive, some of them with tied scores."""
    rng = np.random.default_rng(0)
    labels = (np.arange(records) % 5 < 2).astype(np.int8)
    scores = np.clip(rng.normal(0.4 + 0.2 * labels, 0.2), 0, 1)
    return Clients.split(scores.round(1) if ties else scores, labels, 3, "uniform", 0)


def values(protocol: Protocol, together: bool, seed: int) -> Floats:
    draw = simulated_results if together else repeat_results
    results = draw(few_records(61), protocol, RUNS, seed)
    return np.nan_to_num(np.stack([results.value, results.privacy_error]), nan=9.0)


THREE_BINS = "auc(domain=range(bins=3))"

CASES = {
    "symbols": (tacit.UStatistic(THREE_BINS, 2.0), tacit.UStatistic(THREE_BINS, 1.4)),
    "matchings": (
        tacit.PairedUStatistic("auc", 4.0, matchings=2),
        tacit.PairedUStatistic("auc", 2.8, matchings=2),
    ),
}
"""Protocols, and the same with noise of a scale about 30 % larger."""


@pytest.mark.parametrize("case", CASES)
def test_estimates_and_stated_errors_have_the_same_distribution(case: str) -> None:
    """Two comparisons a case: a false alarm of 2e-5 at most over seeds, none at this one."""
    protocol, noisier = CASES[case]
    together = values(protocol, together=True, seed=1)
    apart, off = (values(each, together=False, seed=2) for each in (protocol, noisier))
    for mine, reference, wrong in zip(together, apart, off, strict=True):
        assert not differ(mine, reference)
        assert differ(mine, wrong)


def test_pairs_of_both_classes_are_as_frequent_as_in_a_matching() -> None:
    positives, negatives = 5, 8
    rng = np.random.default_rng(3)
    labels = np.arange(positives + negatives) < positives
    seats = drawn_seats(rng.integers(0, 2**62, (RUNS, 1)), 1, labels.size)
    first, second = (labels[each[:, 0]] for each in seated_pairs(seats))
    reference = np.stack([np.sum(first & ~second, axis=1), np.sum(second & ~first, axis=1)])
    drawn = np.array([mixed_pairs(positives, negatives, rng) for _ in range(RUNS)]).T
    code = np.array([10, 1])
    assert not differ(code @ drawn, code @ reference)
    assert not differ(drawn.sum(axis=0), reference.sum(axis=0))
    unordered = np.stack([reference.max(axis=0), reference.min(axis=0)])
    assert differ(code @ drawn, code @ unordered)


def window_sums(epsilon: float, seed: int, together: bool) -> Floats:
    """A weighted sum of the reports of 40 records of either class, which round a number first."""
    numbers = np.tile(np.linspace(0.5, 1.0, 40), 2)
    labels = np.repeat([0, 1], 40).astype(np.int8)
    report = GridReport(epsilon, np.array([0.0, 0.2, 0.7, 1.0]), 2)
    if not together:
        reports = report.answers(numbers, SimulatedNoise(seed, replicates=RUNS))
        return reports @ np.where(labels == 1, 2.0, 1.0)
    rng = np.random.default_rng(seed)
    drawn = (
        class_reports(report.window, report.rounded(numbers, rng), labels, rng) for _ in range(RUNS)
    )
    return np.array([each @ np.where(labels == 1, 2.0, 1.0) for each in drawn])


def test_numbers_of_reports_of_either_class_are_those_of_single_reports() -> None:
    """A report at epsilon 1.5 has an error 31 % larger than at epsilon 2."""
    together = window_sums(2.0, 1, together=True)
    assert not differ(together, window_sums(2.0, 2, together=False))
    assert differ(together, window_sums(1.5, 2, together=False))


def test_reports_are_ordered_by_class() -> None:
    window = SlidingWindow(30.0, inputs=4, width=1)
    labels = np.array([0, 0, 0, 1, 1], dtype=np.int8)
    reports = class_reports(window, np.array([2, 0, 2, 3, 1]), labels, np.random.default_rng(0))
    assert reports.tolist() == [0, 2, 2, 1, 3]


@pytest.mark.parametrize("labels", ["private", "public"])
def test_two_rounds_without_much_noise_are_those_of_single_reports(labels: str) -> None:
    """At epsilon 12 the estimate varies by the turns alone, so few runs tell what replies mean.

    Means of twelve runs that are equal differ by more than eight standard errors with a chance of
    about 1e-7. A swapped class moves the value by hundreds. The noise has its test above.
    """
    clients = few_records(400, ties=False)
    protocol = tacit.TwoRoundAUC(12.0, labels)  # type: ignore[arg-type]
    draws = [draw(clients, protocol, 12, 5) for draw in (simulated_results, repeat_results)]
    for name in ("value", "privacy_error", "sampling_error", "positives", "positives_error"):
        first, second = (np.broadcast_to(getattr(each, name), (12,)) for each in draws)
        error = np.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 12)
        assert abs(first.mean() - second.mean()) <= 8 * error + 1e-12, name


def test_other_protocols_run_record_by_record() -> None:
    clients, protocol = few_records(), tacit.FedAUC(8.0)
    drawn = simulated_results(clients, protocol, 3, 1).value
    np.testing.assert_array_equal(drawn, repeat_results(clients, protocol, 3, 1).value)
    noisy = tacit.PairedUStatistic("auc", 4.0, noise="laplace")
    drawn = simulated_results(clients, noisy, 3, 1).value
    np.testing.assert_array_equal(drawn, repeat_results(clients, noisy, 3, 1).value)
