"""The figures of Cormode and Markov 2023: their points, and a row for every claim about one.

The paper prints no numbers for its figures, so a point has none to compare with. Figures 2 and 4
show all three trust models, Figure 3 the same over the number of records, Figure 5 the calibration
error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from tacit.metrics.cells.binning import equi_depth_starts, merge
from tacit.metrics.curves import cell_area
from tacit.protocols.published.calibration import PublishedHistogram
from tacit.results.curves.calibrator import Calibrator
from tacit.results.curves.histogram import Histogram
from tacit_studies.measuring import Bench, Job, quotient
from tacit_studies.papers.federated import (
    MEASURED_RATES,
    SIZES,
    Records,
    all_records,
    calibration_error,
    histogram_of,
    mean_of,
    protocol_for,
    rate_errors,
    runs,
    sizes_within,
    slope,
)
from tacit_studies.references import federated as paper
from tacit_studies.rows import Row
from tacit_studies.sources import Floats

TRUSTS = tuple(paper.EPSILON)

HEIGHTS: dict[str, tuple[int, ...]] = {
    paper.FEDERATED: (2, 4, 6, 8, 10, 12, 14),
    paper.DISTRIBUTED: (4, 6, 8, 9, 10, 11, 12, 13, 14),
    paper.LOCAL: (3, 4, 5, 6, 7, 8, 9),
}
"""The heights of Figure 2."""

BUCKETS = (5, 10, 20, 40, 60, 80, 100)
"""Numbers of buckets of Figure 4; the paper's text does not say which ones it shows."""

BINS = (5, 10, 20, 50, 100)
"""Numbers of bins of Figure 5; the paper's text does not say which ones it shows."""

METHODS = ("binning", "bbq")

POWER = 2
"""Power to which Figure 5's scores are raised: without it they may be calibrated already."""


def figure_2(table: str) -> list[Job]:
    """Figure 2: errors of precision, recall and accuracy over the height of the tree."""
    points = [
        Job(partial(_rate_points, table, f"{trust} h={height}", _by_height(trust, height), None))
        for trust in TRUSTS
        for height in HEIGHTS[trust]
    ]
    return [*points, *(Job(partial(_height_claims, table, trust)) for trust in TRUSTS)]


def _by_height(trust: str, height: int) -> PublishedHistogram:
    """The histogram of this height, with few buckets: only curves need them."""
    return protocol_for(trust, height=height, buckets=10, aim="curves")


def _rate_points(
    table: str, row: str, protocol: PublishedHistogram, size: int | None, bench: Bench
) -> list[Row]:
    """The mean error of every rate, and the error bars of the paper: how thresholds differ."""
    errors = rate_errors(bench, protocol, size)
    rows = []
    for index, name in enumerate(MEASURED_RATES):
        errors_of_rate = errors[:, index]
        by_threshold = np.array([mean_of(column) for column in errors_of_rate.T])
        standard_deviation = (
            float(np.nanstd(by_threshold)) if np.isfinite(by_threshold).any() else math.nan
        )
        rows.append(Row(table, row, name, None, mean_of(errors_of_rate)))
        rows.append(Row(table, row, f"{name}, spread over thresholds", None, standard_deviation))
    return rows


def _height_claims(table: str, trust: str, bench: Bench) -> list[Row]:
    by_rate = {
        height: [
            mean_of(errors_of_rate)
            for errors_of_rate in _rates_apart(bench, _by_height(trust, height), None)
        ]
        for height in HEIGHTS[trust]
    }
    errors = {height: float(np.mean(means)) for height, means in by_rate.items()}
    if trust == paper.FEDERATED:
        height, bound = paper.FEDERATED_RATES
        within = [h for h in HEIGHTS[trust] if h <= paper.HEIGHT]
        falling = slope([2.0**h for h in within], [errors[h] for h in within])
        precision = [quotient(means[0], max(means[1:])) for means in by_rate.values()]
        return [
            Row(table, trust, "claim: slope in 2**h", paper.RATES_BY_HEIGHT, falling),
            Row(table, trust, f"claim: error < {bound:g} at h={height}", bound, errors[height]),
            Row(
                table,
                trust,
                "claim: precision errs more (over the worse of the others)",
                None,
                float(np.median(precision)),
            ),
        ]
    low, high = paper.GOOD_HEIGHTS[trust]
    best = min(errors, key=lambda height: errors[height])
    return [
        Row(table, trust, f"claim: best height in [{low}, {high}]", None, best),
        Row(table, trust, "claim: least error", paper.RATE_ERROR[trust], errors[best]),
    ]


def _rates_apart(bench: Bench, protocol: PublishedHistogram, size: int | None) -> list[Floats]:
    """The errors of each rate."""
    return list(np.moveaxis(rate_errors(bench, protocol, size), 1, 0))


def figure_3(table: str) -> list[Job]:
    """Figure 3: errors of precision, recall and accuracy over the number of records."""
    points = [Job(partial(_size_points, table, trust, size)) for trust in TRUSTS for size in SIZES]
    return [*points, *(Job(partial(_size_claims, table, trust)) for trust in TRUSTS)]


def _size_points(table: str, trust: str, size: int, bench: Bench) -> list[Row]:
    if size not in sizes_within(bench, SIZES):
        return []
    protocol = _by_height(trust, paper.HEIGHT)
    return _rate_points(table, f"{trust} M={size}", protocol, size, bench)


def _size_claims(table: str, trust: str, bench: Bench) -> list[Row]:
    protocol, sizes = _by_height(trust, paper.HEIGHT), sizes_within(bench, SIZES)
    errors = {size: mean_of(rate_errors(bench, protocol, size)) for size in sizes}
    falling = slope(sizes, list(errors.values()))
    rows = [Row(table, trust, "claim: slope in M", paper.RATES_BY_SIZE[trust], falling)]
    enough = paper.ENOUGH_RECORDS.get(trust)
    if enough in errors:
        column = f"claim: good from M={enough} on (error there)"
        rows.append(Row(table, trust, column, None, errors[enough]))
    return rows


def figure_4(table: str) -> list[Job]:
    """Figure 4: the error of the AUC over the number of buckets; half the records at a time."""
    return [Job(partial(_auc_points, table, trust)) for trust in TRUSTS]


def _auc_points(table: str, trust: str, bench: Bench) -> list[Row]:
    half = all_records(bench).size // 2
    sampled = list(runs(bench, protocol_for(trust, height=paper.HEIGHT), half))
    curves = {
        name: [
            mean_of(
                np.array(
                    [_or_nan(measure, records, histogram, number) for records, histogram in sampled]
                )
            )
            for number in BUCKETS
        ]
        for name, measure in _AUC_CURVES.items()
    }
    points = [
        Row(table, f"{trust} B={number}", name, None, errors[index])
        for index, number in enumerate(BUCKETS)
        for name, errors in curves.items()
    ]
    return [*points, *_auc_claims(table, trust, curves)]


def _or_nan(
    measure: Callable[[Records, Histogram, int], float],
    records: Records,
    histogram: Histogram | None,
    buckets: int,
) -> float:
    return math.nan if histogram is None else measure(records, histogram, buckets)


def _equi_depth(records: Records, histogram: Histogram, buckets: int) -> float:
    return abs(histogram.auc(buckets, density=False) - records.auc)


def _with_density(records: Records, histogram: Histogram, buckets: int) -> float:
    return abs(histogram.auc(buckets) - records.auc)


def _equal_width(records: Records, histogram: Histogram, buckets: int) -> float:
    cells = histogram.counts.shape[-1]
    merged = merge(histogram.counts, np.arange(buckets) * cells // buckets)
    return abs(float(cell_area(merged[0], merged[1])) - records.auc)


def _worst_case(records: Records, histogram: Histogram, buckets: int) -> float:
    """Half the pairs inside a bucket: the error if all were won, or all lost (Lemma 3)."""
    starts = equi_depth_starts(histogram.counts.sum(axis=0), buckets)
    positives, negatives = np.maximum(merge(histogram.counts, starts), 0.0)
    return float(np.sum(positives * negatives) / (2 * positives.sum() * negatives.sum()))


_AUC_CURVES: dict[str, Callable[[Records, Histogram, int], float]] = {
    "quantile buckets": _equi_depth,
    "uniform buckets": _equal_width,
    "quantile buckets with densities (ours)": _with_density,
    "worst case, half the pairs within": _worst_case,
}


def _auc_claims(table: str, trust: str, curves: dict[str, list[float]]) -> list[Row]:
    quantile, uniform = (
        dict(zip(BUCKETS, curves[f"{kind} buckets"], strict=True))
        for kind in ("quantile", "uniform")
    )
    worst = curves["worst case, half the pairs within"]
    last, reached = paper.AUC_BUCKETS, quantile[paper.AUC_BUCKETS]
    rows = [Row(table, trust, f"claim: error at B={last}", paper.AUC_ERROR[trust], reached)]
    if trust != paper.FEDERATED:
        flat = paper.FLAT_FROM[trust]
        column = f"claim: flat from B={flat} on (error at {last} / at {flat})"
        return [*rows, Row(table, trust, column, None, quotient(reached, quantile[flat]))]
    gain = np.array([quotient(uniform[number], quantile[number]) for number in BUCKETS])
    gap = [error * 3 * number**2 for number, error in quantile.items()]
    reach = [error * 2 * number for number, error in zip(BUCKETS, worst, strict=True)]
    tenfold = paper.UNIFORM_TO_QUANTILE
    return [
        *rows,
        Row(table, trust, "claim: error * 3 B**2 near 1 (median)", 1.0, float(np.median(gap))),
        Row(table, trust, "claim: worst case * 2 B near 1 (median)", 1.0, float(np.median(reach))),
        Row(table, trust, "claim: slope in B", -2.0, slope(BUCKETS, list(quantile.values()))),
        Row(table, trust, "claim: uniform / quantile (median)", tenfold, float(np.median(gain))),
    ]


def figure_5(table: str) -> list[Job]:
    """Figure 5: the calibration error over the number of bins, with as many buckets.

    Half of the records calibrate and the other half measure; the error of the latter is a sample's,
    and does not vanish for perfect scores.
    """
    points = [
        Job(partial(_calibration_points, table, trust, index))
        for trust in TRUSTS
        for index in range(len(BINS))
    ]
    return [*points, *(Job(partial(_calibration_claims, table, trust)) for trust in TRUSTS)]


def _calibration_points(table: str, trust: str, index: int, bench: Bench) -> list[Row]:
    bins, errors_by_method = BINS[index], _calibration_errors(bench, trust)
    return [
        Row(table, f"{trust} bins={bins}", name, None, errors[index])
        for name, errors in errors_by_method.items()
    ]


def _calibration_claims(table: str, trust: str, bench: Bench) -> list[Row]:
    """Section 6: DistDP differs little from exact counts, LocalDP differs somewhat."""
    errors, exact = (_calibration_errors(bench, model) for model in (trust, paper.FEDERATED))
    rows = []
    for method in METHODS:
        gain = np.median(np.array(errors[method]) / np.array(errors["uncalibrated"]))
        rows.append(
            Row(table, trust, f"claim: {method} / uncalibrated < 1 (median)", None, float(gain))
        )
        if trust != paper.FEDERATED:
            cost = np.median(np.array(errors[method]) / np.array(exact[method]))
            column = f"claim: {method} / {method} of exact counts near 1 (median)"
            rows.append(Row(table, trust, column, None, float(cost)))
    return rows


def _calibration_errors(bench: Bench, trust: str) -> dict[str, list[float]]:
    """The mean calibration error at every number of bins, by method."""

    def measured() -> dict[str, list[float]]:
        trials = [_calibrated_once(bench, trust, index) for index in range(bench.repeats)]
        return {
            name: [
                mean_of(np.array([trial[name][at] for trial in trials])) for at in range(len(BINS))
            ]
            for name in trials[0]
        }

    return bench.once(("calibration by bins", trust), measured)


def _calibrated_once(bench: Bench, trust: str, index: int) -> dict[str, list[float]]:
    """Both halves of the records in a random order: one to calibrate on, one to measure."""
    known, seed = all_records(bench), bench.seed("halves", trust, index)
    order = np.random.default_rng(seed).permutation(known.size)
    fitted, fresh = (
        Records(known.scores[half] ** POWER, known.labels[half])
        for half in np.array_split(order, 2)
    )
    histogram = histogram_of(fitted, protocol_for(trust), seed)
    errors = {"uncalibrated": [calibration_error(fresh, fresh.scores, bins) for bins in BINS]}
    for method in METHODS:
        errors[method] = [_recalibrated(fresh, histogram, method, bins) for bins in BINS]
    return errors


def _recalibrated(fresh: Records, histogram: Histogram | None, method: str, bins: int) -> float:
    """The error of fresh records under a map fitted on as many buckets as there are bins."""
    cells = None if histogram is None else replace(histogram, buckets=bins).cells
    if cells is None or not cells.has_signal:
        return math.nan
    fitted = Calibrator.from_cells(cells, method, bins if method == "binning" else None)
    return calibration_error(fresh, fitted.transform(fresh.scores), bins)
