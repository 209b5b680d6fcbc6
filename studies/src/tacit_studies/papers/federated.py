"""Errors of rates, AUC and calibration, as in Cormode and Markov 2023; the jobs of its Table 1.

Every record is one client, as in the paper. A figure that needs the histogram itself is
measured run by run, for a histogram exists only where there is no replicate axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from tacit.data.clients import Clients
from tacit.data.splitting import binormal_scores
from tacit.metrics import ranking
from tacit.metrics.functional import RATES, rate_name, reaching
from tacit.privacy.noise import SimulatedNoise
from tacit.protocol.trust import ExactSum, Local
from tacit.protocols.published.calibration import LevelSum, PublishedHistogram
from tacit.results.curves.histogram import Histogram
from tacit.running.evaluating import repeat
from tacit.running.simulation import simulate
from tacit_studies.measuring import Bench, Job
from tacit_studies.references import federated as paper
from tacit_studies.rows import Row
from tacit_studies.sources import Floats, Labels

POSITIVE_SHARE = 229_380 / 458_407
AUC = 0.745
"""The binormal records that stand in for real ones: half of them positive, this AUC."""

MEASURED_RATES = ("precision", "recall", "accuracy")

SIZES = (3_000, 10_000, 30_000, 100_000, 300_000)
EPSILONS = (0.25, 0.5, 1.0, 2.0)
BUCKETS = (10, 20, 50, 100, 200)
"""Ranges over which Table 1's slopes are fitted; the bounds hold for small epsilons."""

ECE_EPSILONS = (0.5, 1.0, 2.0, 4.0)
"""Range for the ECE: below it, local noise leaves two or three buckets, too few for the bound."""

CELL_HEIGHTS = (2, 4, 6, 8, 10)
LOCAL_HEIGHTS = (5, 6, 7, 8, 9, 10)

SLOPE_SIZE = 100_000
"""Number of records in slopes over epsilon; a tenth in slopes over height: tall trees are slow."""

AUC_TIMES = {paper.DISTRIBUTED: 50, paper.LOCAL: 5}
"""Factors on the repetitions of the AUC: a run gives one AUC, but thirty rates."""

LOCAL_HEIGHT = 6
FINE_HEIGHT = 14

ECE_BINS = 15

DISTORTIONS: dict[str, Callable[[Floats], Floats]] = {
    "squared": np.square,
    "overconfident": lambda chances: expit(2 * logit(chances) + 0.5),
}
"""Monotone maps from probabilities to scores that are not calibrated."""


@dataclass(frozen=True, eq=False)
class Records:
    """Scores and labels of shape (M,); with ``chances``, every label's probability of being 1."""

    scores: Floats
    labels: Labels
    chances: Floats | None = None

    @property
    def size(self) -> int:
        """M, the number of records."""
        return self.scores.size

    @cached_property
    def auc(self) -> float:
        """The exact AUC."""
        return ranking.auc(self.scores, self.labels)

    @property
    def clients(self) -> Clients:
        """Every record as a client."""
        return Clients(self.scores, self.labels, np.arange(self.size + 1), simulated=True)

    def sample(self, size: int, seed: int) -> Records:
        """``size`` records, drawn without replacement; all records where there are fewer."""
        if size >= self.size:
            return self
        indices = np.random.default_rng(seed).choice(self.size, size, replace=False)
        return Records(self.scores[indices], self.labels[indices])

    def distorted(self, size: int, distortion: str, seed: int) -> Records:
        """A sample: labels drawn anew with the scores as chances, then the scores distorted."""
        chances = self.sample(size, seed).scores
        rng = np.random.default_rng((seed, 1))
        labels = (rng.random(chances.size) < chances).astype(np.int8)
        return Records(DISTORTIONS[distortion](chances), labels, chances)


def all_records(bench: Bench) -> Records:
    """The real records as they are, or as many binormal ones as the source's small set holds."""

    def made() -> Records:
        real, size = bench.source.real, bench.source.small.records
        if real is not None:
            return Records(real.scores, real.labels)
        positives = round(POSITIVE_SHARE * size)
        seed = bench.seed("binormal records", size)
        return Records(*binormal_scores(positives, size - positives, AUC, seed))

    return bench.once("records of paper 5", made)


def protocol_for(
    trust: str, epsilon: float | None = None, budget: str = "split", **settings: Any
) -> PublishedHistogram:
    """The paper's histogram under this trust; None takes the epsilon of its figures.

    Epsilon is divided for the AUC unless ``aim`` says otherwise.
    """
    models: dict[str, ExactSum | LevelSum | Local] = {
        paper.FEDERATED: ExactSum(),
        paper.DISTRIBUTED: LevelSum(budget=budget),
        paper.LOCAL: Local(),
    }
    chosen_epsilon = paper.EPSILON[trust] if epsilon is None else epsilon
    return PublishedHistogram(models[trust], chosen_epsilon, **{"aim": "auc", **settings})


def histogram_of(records: Records, protocol: PublishedHistogram, seed: int) -> Histogram | None:
    """The histogram of a single run; None where the noise left no signal."""
    return simulate(records.clients, protocol, SimulatedNoise(seed)).server_result.histogram


def runs(
    bench: Bench, protocol: PublishedHistogram, size: int | None = None
) -> Iterator[tuple[Records, Histogram | None]]:
    """A sample and its histogram for every repetition; without ``size``, of all records.

    The exact histogram of all records is the same every time, and is made once.
    """
    known = all_records(bench)
    constant = protocol.epsilon is None and size is None
    for index in range(1 if constant else bench.repeats):
        seed = bench.seed("paper 5", protocol, size, index)
        sampled = known if size is None else known.sample(size, seed)
        yield sampled, histogram_of(sampled, protocol, seed)


def rate_errors(
    bench: Bench,
    protocol: PublishedHistogram,
    size: int | None = None,
    thresholds: tuple[float, ...] = paper.THRESHOLDS,
) -> Floats:
    """Absolute errors of precision, recall and accuracy, shape (R, 3, T).

    Estimates are those of ``Histogram.at``, clipped to [0, 1]. The error is 1 where noise left the
    estimate undefined, and NaN where the exact rate is undefined.
    """

    def measured() -> Floats:
        cuts = np.array(thresholds)
        return np.stack(
            [
                _rate_errors(records, histogram, cuts)
                for records, histogram in runs(bench, protocol, size)
            ]
        )

    return bench.once(("rate errors", protocol, size, thresholds), measured)


def _rate_errors(records: Records, histogram: Histogram | None, cuts: Floats) -> Floats:
    exact = exact_rates(records, cuts)
    estimates = np.full(exact.shape, np.nan)
    if histogram is not None:
        above = reaching(histogram.edges, cuts)
        estimates = np.stack(
            [RATES[rate_name(name)](histogram.counts, above).value for name in MEASURED_RATES]
        )
    wrong = np.where(np.isnan(estimates), 1.0, np.abs(np.clip(estimates, 0.0, 1.0) - exact))
    return np.where(np.isnan(exact), np.nan, wrong)


def exact_rates(records: Records, thresholds: Floats) -> Floats:
    """Precision, recall and accuracy of ``score >= threshold``, shape (3, T); thresholds ascend.

    Examples
    --------
    >>> known = Records(np.array([0.1, 0.6, 0.8]), np.array([0, 0, 1], dtype=np.int8))
    >>> exact_rates(known, np.array([0.5])).round(2).ravel()
    array([0.5 , 1.  , 0.67])
    """
    size = thresholds.size + 1
    index = np.searchsorted(thresholds, records.scores, side="right")
    counts = np.stack(
        [np.bincount(index[records.labels == label], minlength=size) for label in (1, 0)]
    )
    above = np.triu(np.ones((size - 1, size)), 1)
    return np.stack(
        [RATES[rate_name(name)](counts.astype(np.float64), above).value for name in MEASURED_RATES]
    )


def auc_error(
    bench: Bench, protocol: PublishedHistogram, size: int | None = None, times: int | None = None
) -> float:
    """The mean absolute error of the AUC of one sample over repetitions of the noise."""

    def measured() -> float:
        known = all_records(bench)
        sampled = known if size is None else known.sample(size, bench.seed("sample", size))
        seed = bench.seed("auc", protocol, size)
        estimates = repeat(sampled.clients, protocol, times or bench.repeats, seed)
        return float(np.mean(np.abs(estimates - sampled.auc)))

    return bench.once(("auc error", protocol, size, times), measured)


def calibration_errors(
    bench: Bench,
    protocol: PublishedHistogram,
    size: int,
    methods: Sequence[str],
    distortion: str = "squared",
) -> dict[str, Floats]:
    """The expected calibration error of recalibrated scores, shape (R,) for every method.

    Scores are distorted probabilities (``Records.distorted``), so that what a recalibrated score
    should be is known for every record; NaN where the noise left nothing to fit.
    """

    def measured() -> dict[str, Floats]:
        errors: dict[str, list[float]] = {method: [] for method in methods}
        for index in range(bench.repeats):
            seed = bench.seed("calibration", protocol, size, distortion, index)
            distorted = all_records(bench).distorted(size, distortion, seed)
            histogram = histogram_of(distorted, protocol, seed)
            for method in methods:
                errors[method].append(recalibrated_error(distorted, histogram, method))
        return {method: np.array(values) for method, values in errors.items()}

    return bench.once(("calibration", protocol, size, tuple(methods), distortion), measured)


def recalibrated_error(records: Records, histogram: Histogram | None, method: str) -> float:
    """The calibration error of records' scores under a map that the histogram gives."""
    if histogram is None or not histogram.cells.has_signal:
        return math.nan
    return calibration_error(records, histogram.calibrator(method).transform(records.scores))


def calibration_error(records: Records, predicted: Floats, bins: int = ECE_BINS) -> float:
    """The expected calibration error over bins of equal width.

    Source: Cormode and Markov 2023, section 2.1, footnote 1.

    What a bin should predict is its records' mean chance where that is known, else the fraction of
    positives.

    Examples
    --------
    >>> known = Records(np.array([0.2, 0.4]), np.array([0, 1], dtype=np.int8))
    >>> round(calibration_error(known, known.scores, bins=1), 3)
    0.2
    """
    truth = records.labels if records.chances is None else records.chances
    index = np.minimum((predicted * bins).astype(np.int64), bins - 1)
    missed = np.bincount(index, weights=truth - predicted, minlength=bins)
    return float(np.abs(missed).sum()) / records.size


def slope(sizes: Sequence[float], errors: Sequence[float]) -> float:
    """The exponent of the power law that fits best: least squares on logarithms.

    Points whose error is not positive and finite are left out; NaN with fewer than two.

    Examples
    --------
    >>> round(slope([1, 10, 100], [3.0, 0.03, 0.0003]), 9)
    -2.0
    """
    log_sizes, height = np.asarray(sizes, np.float64), np.asarray(errors, np.float64)
    usable = np.isfinite(height) & (height > 0)
    if np.count_nonzero(usable) < 2:
        return math.nan
    return float(np.polyfit(np.log(log_sizes[usable]), np.log(height[usable]), 1)[0])


def mean_of(errors: NDArray[np.float64]) -> float:
    """The mean of the errors that are defined; NaN where none is."""
    known = errors[np.isfinite(errors)]
    return float(known.mean()) if known.size else math.nan


def sizes_within(bench: Bench, sizes: Iterable[int]) -> list[int]:
    """The sizes that the records allow."""
    most = all_records(bench).size
    return [size for size in sizes if size <= most]


def table_1(table: str) -> list[Job]:
    """Table 1: log-log slopes of measured errors beside the exponents of the bounds."""
    lines = (
        ("P/R/A", _rate_slopes, paper.RATES_BOUND),
        ("ROC AUC", _auc_slopes, paper.AUC_BOUND),
        ("ECE", _ece_slopes, paper.ECE_BOUND),
    )
    return [
        Job(partial(_slopes, table, f"{name} {trust}", partial(measure, trust), bounds[trust]))
        for name, measure, bounds in lines
        for trust in bounds
    ]


def _slopes(
    table: str,
    row: str,
    measure: partial[dict[str, float]],
    bounds: Mapping[str, float],
    bench: Bench,
) -> list[Row]:
    """An error may fall faster than its bound, so the bound's exponent is the maximum slope."""
    slopes = measure(bench)
    rows = [
        Row(table, row, f"slope in {name}, at most", bound, slopes[name])
        for name, bound in bounds.items()
    ]
    margin = max(slopes[name] - bound for name, bound in bounds.items())
    column = "claim: as steep as the bound (largest excess)"
    return [*rows, Row(table, row, column, None, margin)]


def _rate_slopes(trust: str, bench: Bench) -> dict[str, float]:
    def error(size: int | None, epsilon: float | None = None, height: int = paper.HEIGHT) -> float:
        protocol = protocol_for(trust, epsilon, height=height, buckets=10, aim="curves")
        return mean_of(rate_errors(bench, protocol, size))

    if trust == paper.FEDERATED:
        errors = [error(None, height=height) for height in CELL_HEIGHTS]
        return {"B": slope([2.0**height for height in CELL_HEIGHTS], errors)}
    height = LOCAL_HEIGHT if trust == paper.LOCAL else paper.HEIGHT
    sizes = sizes_within(bench, SIZES)
    return {
        "eps": slope(EPSILONS, [error(SLOPE_SIZE, eps, height) for eps in EPSILONS]),
        "M": slope(sizes, [error(size, 1.0, height) for size in sizes]),
    }


def _auc_slopes(trust: str, bench: Bench) -> dict[str, float]:
    if trust == paper.FEDERATED:
        return {"B": slope(BUCKETS, bucket_errors(bench, BUCKETS))}
    sizes, local = sizes_within(bench, SIZES), trust == paper.LOCAL
    height = LOCAL_HEIGHT if local else paper.HEIGHT

    def error(size: int, epsilon: float, height: int = height) -> float:
        protocol = protocol_for(trust, epsilon, height=height)
        return auc_error(bench, protocol, size, AUC_TIMES[trust] * bench.repeats)

    slopes = {
        "eps": slope(EPSILONS, [error(SLOPE_SIZE, eps) for eps in EPSILONS]),
        "M": slope(sizes, [error(size, 1.0) for size in sizes]),
    }
    if local:
        tall = [error(SLOPE_SIZE // 10, 1.0, height) for height in LOCAL_HEIGHTS]
        slopes["h"] = slope(LOCAL_HEIGHTS, tall)
    return slopes


def bucket_errors(bench: Bench, buckets: Sequence[int], density: bool = False) -> list[float]:
    """Errors of the AUC of all records' exact histogram, by number of equi-depth buckets."""
    known, histogram = next(runs(bench, protocol_for(paper.FEDERATED, height=FINE_HEIGHT)))
    if histogram is None:
        return [math.nan] * len(buckets)
    return [abs(histogram.auc(number, density) - known.auc) for number in buckets]


def _ece_slopes(trust: str, bench: Bench) -> dict[str, float]:
    """Slopes of the error of histogram binning, which Theorems 7 and 8 bound."""

    def error(size: int, epsilon: float | None = None) -> float:
        errors = calibration_errors(bench, protocol_for(trust, epsilon), size, ("binning",))
        return mean_of(errors["binning"])

    sizes = sizes_within(bench, SIZES)
    slopes = {"M": slope(sizes, [error(size) for size in sizes])}
    if trust != paper.FEDERATED:
        slopes["eps"] = slope(ECE_EPSILONS, [error(SIZES[-1], eps) for eps in ECE_EPSILONS])
    return slopes
