"""Buckets from noisy cells, calibration figures and recalibration, against loops over records."""

from __future__ import annotations

import math
from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from tacit.metrics.calibration import (
    bayesian_binning,
    calibration_figures,
    debiased_ece,
    equal_width_starts,
    histogram_binning,
    isotonic,
    width_error,
)
from tacit.metrics.cells.binning import (
    MIN_SIGNAL,
    Buckets,
    ScoreCells,
    equi_depth_starts,
    finest_starts,
    merge,
    reliable_starts,
)
from tacit.metrics.logistic import platt

Floats = NDArray[np.float64]

EXACT = st.lists(st.integers(0, 40), min_size=1, max_size=30)
NOISY = st.lists(st.integers(-20, 60), min_size=1, max_size=30)
PAIRS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=20)
FILLED = PAIRS.filter(lambda pairs: sum(map(sum, pairs)) > 0)
FITS = [histogram_binning, bayesian_binning, isotonic, platt]


def uniform_cells(pairs: list[tuple[int, int]], noise: float | None = None) -> ScoreCells:
    counts = np.array(pairs, dtype=np.float64)
    return ScoreCells(np.linspace(0, 1, len(pairs) + 1), counts[:, 0], counts[:, 1], noise)


def cells_of(scores: Floats, labels: NDArray[Any], cells: int) -> ScoreCells:
    """The exact counts of records."""
    edges = np.linspace(0, 1, cells + 1)
    return ScoreCells(edges, *(np.histogram(scores[labels == own], edges)[0] for own in (1, 0)))


def sampled_cells(rng: np.random.Generator, records: int, cells: int) -> ScoreCells:
    """Exact counts of scores that are the squares of the probabilities they stand for."""
    truth = rng.random(records)
    return cells_of(truth**2, rng.random(records) < truth, cells)


def discrete_laplace(rng: np.random.Generator, deviation: float, size: int) -> Floats:
    """Differences of geometric draws; ``2 q / (1 - q)^2`` is their variance."""
    q = 1 + (1 - math.sqrt(1 + 2 * deviation**2)) / deviation**2
    return (rng.geometric(1 - q, size) - rng.geometric(1 - q, size)).astype(np.float64)


def noised(rng: np.random.Generator, cells: ScoreCells, deviation: float) -> ScoreCells:
    noise = discrete_laplace(rng, deviation, 2 * cells.totals.size).reshape(2, -1)
    return ScoreCells(
        cells.edges, cells.positives + noise[0], cells.negatives + noise[1], deviation**2
    )


def records_of(cells: ScoreCells) -> list[tuple[float, int, int]]:
    """One (score, label, cell) a record, each score at its cell's centre."""
    values = []
    for j, score in enumerate(cells.predicted):
        values += [(float(score), 1, j)] * int(cells.positives[j])
        values += [(float(score), 0, j)] * int(cells.negatives[j])
    return values


def naive_gaps(cells: ScoreCells, starts: list[int]) -> list[tuple[int, float]]:
    """Records, and observed less predicted share, of every bucket with records."""
    buckets: dict[int, list[tuple[float, int]]] = {}
    for score, label, j in records_of(cells):
        bucket = sum(1 for start in starts if start <= j)
        buckets.setdefault(bucket, []).append((score, label))
    return [(len(each), sum(y - s for s, y in each) / len(each)) for each in buckets.values()]


# Buckets of equal depth


@given(st.one_of(EXACT, NOISY), st.integers(1, 40))
def test_buckets_hold_something_and_none_is_much_deeper(counts: list[int], buckets: int) -> None:
    totals = np.array(counts, dtype=np.float64)
    starts = equi_depth_starts(totals, buckets)
    assert starts[0] == 0
    assert (np.diff(starts) > 0).all()
    depths = merge(totals, starts)
    assert depths.sum() == totals.sum()
    if totals.min() >= 0:
        assert starts.size <= buckets
        assert depths.max() <= totals.sum() / buckets + totals.max() + 1e-9
    if totals.sum() > 0:
        assert (depths > 0).all()
    else:
        assert starts.tolist() == [0]


@given(st.lists(st.integers(1, 40), min_size=2, max_size=30), st.integers(2, 12))
def test_every_cut_is_the_nearest_to_a_share_of_the_total(counts: list[int], buckets: int) -> None:
    reached = [sum(counts[:i]) for i in range(len(counts) + 1)]
    starts = {reached[i] for i in equi_depth_starts(np.array(counts, dtype=np.float64), buckets)}
    for k in range(1, buckets):
        target = k * reached[-1] / buckets
        nearest = min(reached, key=lambda height: abs(height - target))
        other = min(reached[::-1], key=lambda height: abs(height - target))
        assert {nearest, other} & (starts | {reached[-1]})


def test_the_noise_of_empty_cells_does_not_move_cuts() -> None:
    # A cumulative count carries noise of deviation at most 3 sqrt(2 * 4096) = 272, so a bucket's
    # true depth is off by 6 * 2 * 272 + one cell with probability below 1e-7. Clipping cells at
    # zero would count about 1.2 * 3600 = 4300 records in the empty cells, in the last bucket.
    rng = np.random.default_rng(0)
    truth = np.concatenate((np.full(496, 40.0), np.zeros(3600)))
    noise = discrete_laplace(rng, 3.0, 4096) + discrete_laplace(rng, 3.0, 4096)
    depths = merge(truth, equi_depth_starts(truth + noise, 4))
    assert depths.size == 4
    assert np.abs(depths - truth.sum() / 4).max() < 12 * 272 + 40
    clipped = merge(truth, equi_depth_starts(np.maximum(truth + noise, 0), 4))
    assert np.abs(clipped - truth.sum() / 4).max() > 12 * 272 + 40


# Cells and their buckets


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edges": [0.1, 0.5, 1]}, "edges must run from 0 to 1, got 0.1 to 1.0"),
        ({"edges": [0, 0.5, 0.5, 1]}, "edges must ascend, got 0.5 before 0.5"),
        ({"edges": [0, math.nan, 1]}, "edges must ascend"),
        ({"edges": [0]}, r"edges must have shape \(B \+ 1,\)"),
        ({"positives": [1, 2, 3]}, r"positives must have shape \(2,\), got \(3,\)"),
        ({"negatives": [1, math.inf]}, "negatives must be finite, got inf"),
        ({"noise_variance": -1.0}, "noise_variance must not be negative, got -1.0"),
        ({"noise_variance": [1, 2, 3]}, r"noise_variance must have shape \(2,\)"),
        ({"centres": [0.6, 0.7]}, "centres must lie in their cells, got 0.6"),
        ({"centres": [0.5, 0.5]}, "centres must lie in their cells, got 0.5"),
    ],
)
def test_cells_refuse(changes: dict[str, list[float]], message: str) -> None:
    given: dict[str, Any]
    given = {"edges": [0, 0.5, 1], "positives": [1, 2], "negatives": [2, 1], **changes}
    with pytest.raises(ValueError, match=message):
        ScoreCells(**given)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1), st.integers(1, 9))
def test_cells_of_records_hold_every_record(records: list[tuple[float, int]], most: int) -> None:
    scores, labels = np.array([s for s, _ in records]), np.array([y for _, y in records])
    cells = ScoreCells.from_records(scores, labels, most)
    assert cells.totals.size <= most
    for j in range(cells.totals.size):
        last = j == cells.totals.size - 1
        inside = (scores >= cells.edges[j]) & ((scores < cells.edges[j + 1]) | last)
        assert cells.positives[j] == labels[inside].sum()
        assert cells.totals[j] == inside.sum()


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        (equi_depth_starts, ([1.0], 0), "buckets must be at least 1, got 0"),
        (equi_depth_starts, ([], 1), r"totals must have shape \(B,\)"),
        (equi_depth_starts, ([1.0, math.nan], 1), "totals must be finite, got nan"),
        (ScoreCells.from_records, ([], []), "n at least 1"),
        (ScoreCells.from_records, ([0.1, 0.2], [1]), "must have one shape"),
        (ScoreCells.from_records, ([0.1], [2]), "labels must be 0 or 1, got 2"),
        (ScoreCells.from_records, ([1.5], [1]), "scores must lie within 0 and 1, got 1.5"),
    ],
)
def test_what_makes_no_cells_and_no_buckets_is_refused(make: Any, given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(*given)


def test_noisy_buckets_hold_several_deviations_of_their_noise() -> None:
    assert finest_starts(uniform_cells([(0, 0), (1, 2), (0, 0), (3, 0)])).tolist() == [0, 3]
    rng = np.random.default_rng(1)
    cells = noised(rng, sampled_cells(rng, 20_000, 512), 4.0)
    starts = finest_starts(cells)
    buckets = Buckets.of(cells, starts)
    assert (buckets.totals >= MIN_SIGNAL * np.sqrt(2 * merge(cells.variance, starts))).all()
    assert 10 < starts.size < 512
    assert reliable_starts(cells, 5).size == 5


def test_effective_records_sample_shares_as_badly_as_noise_and_sampling_together() -> None:
    # Ten buckets of m records with share 1/4: variance 3/16 / m + v (9/16 + 1/16) / m^2.
    cells = uniform_cells([(250, 750)] * 10, 100.0)
    each = 3 / 16 / 1000 + 100 * 10 / 16 / 1000**2
    assert cells.effective_records == pytest.approx(10 * 3 / 16 / each, rel=1e-3)
    assert uniform_cells([(250, 750)] * 10).effective_records == 10_000


# Figures


@given(PAIRS, st.integers(1, 12))
def test_figures_are_those_of_records_at_centres(
    pairs: list[tuple[int, int]], buckets: int
) -> None:
    cells = uniform_cells(pairs)
    figures = calibration_figures(cells, buckets)
    total = sum(p + n for p, n in pairs)
    if total == 0:
        assert all(math.isnan(value) for value in astuple(figures))
        return
    places = [min(int(score * buckets), buckets - 1) for score in cells.predicted]
    wide = naive_gaps(cells, [j for j in range(len(places)) if j == 0 or places[j] > places[j - 1]])
    assert figures.ece == pytest.approx(sum(m * abs(gap) for m, gap in wide) / total)
    assert figures.mce == pytest.approx(max(abs(gap) for _, gap in wide))
    deep = naive_gaps(cells, equi_depth_starts(cells.totals, buckets).tolist())
    assert figures.adaptive_ece == pytest.approx(sum(m * abs(gap) for m, gap in deep) / total)
    squares = sum((score - label) ** 2 for score, label, _ in records_of(cells))
    assert figures.brier == pytest.approx(squares / total)
    parts = figures.reliability - figures.resolution + figures.uncertainty
    assert figures.brier == pytest.approx(parts)


@given(FILLED)
def test_with_a_bucket_a_cell_the_parts_are_murphys(pairs: list[tuple[int, int]]) -> None:
    figures = calibration_figures(uniform_cells(pairs), 2_500)
    positives, totals = np.array(pairs)[:, 0], np.sum(pairs, axis=1)
    weights, overall = totals / totals.sum(), positives.sum() / totals.sum()
    shares = positives / np.maximum(totals, 1)
    reliability = weights @ (shares - uniform_cells(pairs).predicted) ** 2
    assert figures.reliability == pytest.approx(reliability, abs=1e-12)
    assert figures.resolution == pytest.approx(weights @ (shares - overall) ** 2, abs=1e-12)
    assert figures.uncertainty == pytest.approx(overall * (1 - overall))


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1, max_size=60),
    st.integers(1, 12),
)
def test_width_bounds_what_centres_change(records: list[tuple[float, int]], buckets: int) -> None:
    scores, labels = np.array([s for s, _ in records]), np.array([y for _, y in records])
    cells = cells_of(scores, labels, 11)
    starts = equal_width_starts(cells, buckets)
    cell_of = np.searchsorted(cells.edges[1:-1], scores, side="right")
    place = np.searchsorted(starts, cell_of, side="right")
    own = sum(abs((labels - scores)[place == b].sum()) for b in set(place)) / scores.size
    assert abs(calibration_figures(cells, buckets).ece - own) <= width_error(cells) + 1e-12
    brier = float(((scores - labels) ** 2).mean())
    assert abs(calibration_figures(cells).brier - brier) <= 2 * width_error(cells) + 1e-12


def test_figures_of_noise_alone_are_nan() -> None:
    rng = np.random.default_rng(2)
    nothing = noised(rng, uniform_cells([(0, 0)] * 64), 5.0)
    assert all(math.isnan(value) for value in astuple(calibration_figures(nothing)))
    assert math.isnan(width_error(nothing))
    for fit in FITS:
        with pytest.raises(ValueError, match="exceed 5 standard deviations of its noise"):
            fit(nothing)


def test_buckets_that_noise_drowns_are_left_out_of_equal_width_figures() -> None:
    pairs = [(200, 1800), (900, 1100), (-30, 40)]
    noisy = calibration_figures(uniform_cells(pairs, 400.0), 3)
    alone = calibration_figures(uniform_cells([*pairs[:2], (0, 0)]), 3)
    assert (noisy.ece, noisy.mce) == (alone.ece, alone.mce)
    with pytest.raises(ValueError, match="buckets must be at least 1, got 0"):
        calibration_figures(uniform_cells(pairs), 0)


def test_noise_leaves_the_reliability_unbiased() -> None:
    # Beyond 4 standard errors by chance: 6e-5. A noise scale 30 % off must lie beyond.
    rng = np.random.default_rng(3)
    fractions = [round(90 * (j + 0.5) / 200) for j in range(200)]
    exact = uniform_cells([(fraction, 100 - fraction) for fraction in fractions])
    drawn, truth = [noised(rng, exact, 10.0) for _ in range(400)], calibration_figures(exact)

    def offset(variance: float) -> float:
        stated = [replace(cells, noise_variance=variance) for cells in drawn]
        found = np.array([calibration_figures(cells).reliability for cells in stated])
        errors = found - truth.reliability
        return float(abs(errors.mean()) / (errors.std(ddof=1) / math.sqrt(errors.size)))

    assert offset(100.0) < 4
    assert offset(100.0 * 1.3**2) > 4
    assert offset(100.0 * 0.7**2) > 4


# Debiased error


def noisy_buckets(mean: float, assumed: float = 1.0, count: int = 20_000) -> Buckets:
    """Many buckets whose positives are off by ``mean`` deviations of ``p - e t``."""
    rng = np.random.default_rng(4)
    fraction, records, deviation = 0.3, 500.0, 10.0
    noise = rng.normal(0.0, deviation, (2, count))
    scale = deviation * math.hypot(1 - fraction, fraction)
    positives = fraction * records + mean * scale + noise[0]
    totals = records + mean * scale + noise.sum(axis=0)
    variance = np.full(count, (assumed * deviation) ** 2, dtype=np.float64)
    # A shift by m in p and t moves p - e t by (1 - e) m; undo the (1 - e).
    positives += mean * scale * fraction / (1 - fraction)
    totals += mean * scale * fraction / (1 - fraction)
    return Buckets(np.full(count, fraction), positives, totals, variance, 2 * variance)


def remaining_bias(mean: float, assumed: float = 1.0) -> float:
    """What the debiased error keeps of the noise, in deviations of one bucket."""
    buckets = noisy_buckets(mean, assumed)
    scale = 10.0 * math.hypot(0.7, 0.3)
    return debiased_ece(buckets).value * float(buckets.totals.mean()) / scale - mean


def test_the_bias_that_remains_is_as_stated() -> None:
    # The mean over 20,000 buckets errs by 1.2 / 141; five such errors by chance: 6e-7.
    low, high = -0.22 - 0.043, 0.27 + 0.043
    for mean in (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 6.0):
        assert low < remaining_bias(mean) < high
    assert remaining_bias(0.0, assumed=0.7) > high
    assert remaining_bias(1.0, assumed=1.3) < low


@pytest.mark.parametrize("mean", [0.0, 1.5, 6.0])
def test_the_standard_error_is_never_too_small(mean: float) -> None:
    # 1,000 groups of 20 buckets: a deviation errs by 2.2 %; beyond 12 % by chance: 5e-8.
    buckets = noisy_buckets(mean)
    fields = [np.split(np.asarray(part), 1000) for part in astuple(buckets)]
    errors = [debiased_ece(Buckets(*parts)) for parts in zip(*fields, strict=True)]
    ratio = float(np.std([f.value for f in errors]) / np.mean([f.standard_error for f in errors]))
    assert 0.6 < ratio < 1.12


def test_buckets_without_records_have_no_error() -> None:
    nothing = Buckets(*np.zeros((5, 3)))
    assert all(math.isnan(value) for value in debiased_ece(nothing))


# Fits


def naive_bbq(cells: ScoreCells) -> list[float]:
    """BBQ cell by cell with loops and log-gammas."""

    def log_beta(a: float, b: float) -> float:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

    total = float(cells.totals.sum())
    most = min(math.ceil(total / 5), math.ceil(10 * total ** (1 / 3)), cells.totals.size)
    least = min(max(1, math.floor(total ** (1 / 3) / 10)), most)
    models: dict[tuple[int, ...], tuple[float, list[float]]] = {}
    for number in range(least, most + 1):
        starts = equi_depth_starts(cells.totals, number).tolist()
        evidence, means = 0.0, []
        for start, stop in zip(starts, [*starts[1:], cells.totals.size], strict=True):
            p = sum(float(cells.positives[j]) for j in range(start, stop))
            n = sum(float(cells.negatives[j]) for j in range(start, stop))
            middle = min(max((cells.edges[start] + cells.edges[stop]) / 2, 0.005), 0.995)
            a, b = 2 * middle, 2 * (1 - middle)
            evidence += log_beta(a + p, b + n) - log_beta(a, b)
            means += [(a + p) / (2 + p + n)] * (stop - start)
        models[tuple(starts)] = evidence, means
    best = max(evidence for evidence, _ in models.values())
    weights = [math.exp(evidence - best) for evidence, _ in models.values()]
    return [
        sum(w * means[j] for w, (_, means) in zip(weights, models.values(), strict=True))
        / sum(weights)
        for j in range(cells.totals.size)
    ]


@given(FILLED)
def test_bbq_is_the_average_by_evidence(pairs: list[tuple[int, int]]) -> None:
    cells = uniform_cells(pairs)
    edges, values = bayesian_binning(cells)
    at_centres = values[np.searchsorted(edges[1:-1], cells.predicted, side="right")]
    assert at_centres == pytest.approx(naive_bbq(cells), rel=1e-9)


def test_bbq_does_not_overflow() -> None:
    edges, values = bayesian_binning(uniform_cells([(10**9, 10**12), (10**12, 10**9)]))
    assert edges.tolist() == [0, 0.5, 1]
    assert values == pytest.approx([1e-3 / 1.001, 1 / 1.001], rel=1e-6)


@given(FILLED, st.integers(1, 10))
def test_binning_is_the_smoothed_share(pairs: list[tuple[int, int]], buckets: int) -> None:
    cells = uniform_cells(pairs)
    edges, values = histogram_binning(cells, buckets)
    starts = equi_depth_starts(cells.totals, buckets)
    positive_counts, totals = merge(cells.positives, starts), merge(cells.totals, starts)
    overall = (cells.positives.sum() + 1) / (cells.totals.sum() + 2)
    assert edges.tolist() == [*cells.edges[starts], 1.0]
    assert values == pytest.approx((positive_counts + 2 * overall) / (totals + 2))


def test_noise_lowers_the_number_of_buckets() -> None:
    rng = np.random.default_rng(6)
    exact = sampled_cells(rng, 50_000, 512)
    sizes = [histogram_binning(exact)[1].size]
    sizes += [histogram_binning(noised(rng, exact, scale))[1].size for scale in (5.0, 20.0)]
    assert sizes[0] == round(50_000 ** (1 / 3))
    assert sizes[0] > sizes[1] > sizes[2] > 1


@given(FILLED)
def test_isotonic_agrees_with_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    cells = uniform_cells(pairs)
    filled = cells.totals > 0
    reference = IsotonicRegression(out_of_bounds="clip").fit(
        cells.predicted[filled],
        cells.positives[filled] / cells.totals[filled],
        sample_weight=cells.totals[filled],
    )
    borders, values = isotonic(cells)
    grid = np.linspace(0, 1, 101)
    assert np.interp(grid, borders, values) == pytest.approx(reference.predict(grid), abs=1e-9)


def test_platt_agrees_with_scikit_learn_on_platts_targets() -> None:
    cells = sampled_cells(np.random.default_rng(7), 3000, 40)
    slope, intercept = platt(cells)
    positive_total, negative_total = cells.positives.sum(), cells.negatives.sum()
    high, low = (positive_total + 1) / (positive_total + 2), 1 / (negative_total + 2)
    up = cells.positives * high + cells.negatives * low
    column = np.tile(logit(cells.predicted), 2)[:, None]
    reference = LogisticRegression(C=1e10, tol=1e-12, max_iter=10_000).fit(
        column, np.repeat([1, 0], 40), sample_weight=np.concatenate((up, cells.totals - up))
    )
    assert slope == pytest.approx(reference.coef_[0, 0], abs=1e-5)
    assert intercept == pytest.approx(reference.intercept_[0], abs=1e-5)


@pytest.mark.parametrize("pairs", [[(3, 0)], [(0, 9), (5, 0)], [(5, 0), (0, 9)], [(0, 7), (0, 7)]])
def test_platt_stays_finite_where_classes_separate(pairs: list[tuple[int, int]]) -> None:
    slope, intercept = platt(uniform_cells(pairs))
    assert math.isfinite(slope)
    assert math.isfinite(intercept)
    if len(pairs) == 1:
        assert slope == 1
        assert expit(intercept) == pytest.approx(4 / 5)


@given(
    st.lists(st.tuples(st.integers(-40, 90), st.integers(-40, 90)), min_size=1, max_size=20),
    st.sampled_from([None, 1.0, 100.0]),
)
def test_fits_of_noise_are_probabilities(pairs: list[tuple[int, int]], noise: float | None) -> None:
    cells = uniform_cells(pairs, noise)
    if not cells.has_signal:
        with pytest.raises(ValueError, match="the counts' total must be positive"):
            bayesian_binning(cells)
        return
    for fit in (histogram_binning, bayesian_binning, isotonic):
        places, values = fit(cells)
        assert places.size - values.size == (fit is not isotonic)
        assert (np.diff(places) > 0).all()
        assert ((values >= 0) & (values <= 1)).all()
    assert (np.diff(isotonic(cells)[1]) >= 0).all()
    assert np.isfinite(platt(cells)).all()
    figures = calibration_figures(cells)
    assert 0 <= figures.adaptive_ece <= 1
    assert figures.reliability >= 0
