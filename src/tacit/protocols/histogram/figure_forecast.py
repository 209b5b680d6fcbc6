"""Predictions for other figures than the AUC, from the expected cells of a score histogram.

Predictions for the expected calibration error, which is no smooth function of the counts.

The predicted error of the classes' Kolmogorov-Smirnov distance, a largest value, by simulation.

Let ``D`` be the difference of sensitivity and false-positive rate from a threshold on, of the
population. That of P positives and N negatives is ``D + W`` with ``W = B1 / sqrt(P) - B0 /
sqrt(N)``, two independent Brownian bridges in the distribution functions of both classes (Donsker
1952). At the largest ``D`` both densities are equal, so close to it W is a random walk of the
variance ``1/P + 1/N`` a unit of all records. The records' own distance is the largest ``D + W``
over all thresholds. A result sees it at borders of cells only, with noise, and looks at some
quantiles. Both largest values are elsewhere than that of D: no expansion at one place has their
difference, and so they are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from tacit.arrays import Floats
from tacit.counts import tree_results
from tacit.metrics import calibration, functional, operating_points, trees
from tacit.metrics.cells.binning import Buckets
from tacit.metrics.cells.score_scale import PROBABILITY, named_scale
from tacit.protocol.forecast import ECE, Forecast, Metric
from tacit.protocol.scenario import Scenario, Shape
from tacit.results.curves.histogram import Histogram
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.measures import distances
from tacit.results.measures.catalogue import SEPARATION
from tacit.results.measures.computing import Measures
from tacit.results.measures.figures import CellView, too_few_records
from tacit.results.measures.smooth_calibration import distance_value

IMITATIONS = 200
"""Number of simulated histograms whose calibration errors are compared with the shape's."""

CALIBRATION_CELLS = 2**12
"""Number of cells in which the shape's own calibration error is computed."""


def ece_of(shape: Shape, scenario: Scenario) -> float:
    """The population's expected calibration error: the mean distance of score and probability.

    Examples
    --------
    >>> scenario = Scenario(1000, 100, 10, 1.0)
    >>> round(ece_of(Shape(0.8, "calibrated"), scenario), 5)
    0.0
    """
    positives, negatives = scenario.counts(shape, CALIBRATION_CELLS)
    middles = (np.arange(CALIBRATION_CELLS) + 0.5) / CALIBRATION_CELLS
    return float(np.sum(np.abs(positives * (1 - middles) - negatives * middles))) / scenario.records


def ece_error(histogram: Histogram, noise: trees.TreeNoise, exact: float) -> tuple[float, float]:
    """The standard error and the bias of ``Histogram.debiased_ece`` about an exact value.

    From imitations, always of one seed: the tree is made consistent from normal noise of the
    levels' variances, and each bucket's counts vary by sampling as Poisson counts do. The buckets
    stay where the expected counts put them.

    Parameters
    ----------
    histogram : of expected counts.
    noise : the errors of the tree.
    exact : the population's calibration error.
    """
    cells, starts = histogram.cells, histogram.starts
    rng = np.random.default_rng(0)
    counts = np.maximum(np.stack([cells.positives, cells.negatives]), 0.0)
    drawn = rng.standard_normal((IMITATIONS, *counts.shape)) * np.sqrt(counts)
    leaves = noise.drawn(rng, IMITATIONS).reshape(IMITATIONS, 2, -1)
    imitated = counts + drawn + np.add.reduceat(leaves, starts, axis=-1)
    errors = [_debiased(cells.predicted, cells.variance, imitation) for imitation in imitated]
    return float(np.std(errors)), float(np.mean(errors)) - exact


def _debiased(predicted: Floats, privacy: Floats, counts: Floats) -> float:
    """The debiased error of imitated buckets, as a histogram takes it."""
    positives, negatives = np.maximum(counts, 0.0)
    variance = privacy + positives * negatives / np.maximum(positives + negatives, 1.0)
    buckets = Buckets(predicted, counts[0], counts.sum(axis=0), variance, 2 * variance)
    return float(calibration.debiased_ece(buckets).value)


DRAWS = 500
"""Simulated results: they tell a standard deviation to 3 %."""
FINER = 5
"""Number of places between two of the quantiles that a result compares first."""
SEPARATION_CELLS = 2**14
"""Number of cells in which the population's distribution functions are tabulated."""


def separation_error(view: CellView, shape: Shape) -> tuple[float, float]:
    """The standard error and the bias of the distance that a result states, about the records' own.

    Parameters
    ----------
    view : the expected counts, with the noise of a result.
    shape : of the scores.
    """
    source = np.random.default_rng(0)
    borders = np.arange(view.size + 1, dtype=np.float64)
    totals = view.counts.sum(axis=0)
    shares = np.linspace(0, 1, distances.BORDERS * FINER + 1)[1:-1]
    between = operating_points.quantiles(totals, shares)
    places = borders if view.noise.exact else between
    # the population's difference bends between borders of wide cells
    points, at = np.unique(np.concatenate([borders, between]), return_inverse=True)
    differences, steps = _drawn(view, shape, points, source)
    own = _largest(differences, steps, source)
    # between borders a result knows straight lines
    published = differences[:, at[: borders.size]]
    noisy = _interpolated(published, places) + _noise(view, places, source)
    stated = noisy.max(axis=-1) if view.noise.exact else _largest_counted(noisy)
    # by how much a result takes its largest value to be too large, at the expected counts
    largest = float(operating_points.separation(view.counts, places).value.max())
    errors = stated - (largest - distances.class_separation(view).value) - own
    return float(np.std(errors)), float(np.mean(errors))


def _drawn(
    view: CellView, shape: Shape, points: Floats, source: np.random.Generator
) -> tuple[Floats, Floats]:
    """``D + W`` of simulated records, shape (R, T), and the variances of W's steps, shape (T - 1).

    Parameters
    ----------
    points : ascending places among the cells, from 0 to B, shape (T,).
    """
    sizes = view.counts.sum(axis=-1)
    fraction = float(sizes[0] / sizes.sum())
    edges = named_scale(PROBABILITY).scores(np.linspace(0.0, 1.0, SEPARATION_CELLS + 1))
    scores = view.scores_of(points)
    made, variances = np.zeros((DRAWS, points.size)), np.zeros(points.size - 1)
    fractions = shape.cell_fractions(SEPARATION_CELLS, fraction, PROBABILITY)
    for sign, size, fine in zip((1.0, -1.0), sizes, fractions, strict=True):
        cumulative = np.append(0.0, np.cumsum(fine))
        below = np.interp(scores, edges, cumulative / cumulative[-1])
        steps = np.maximum(np.diff(below), 0.0) / size
        walk = np.cumsum(np.sqrt(steps) * source.standard_normal((DRAWS, steps.size)), axis=-1)
        walk = np.concatenate([np.zeros((DRAWS, 1)), walk], axis=-1)
        # above: 1 - F, and a bridge, which ends at 0
        made += sign * (1 - below - (walk - walk[:, -1:] * below))
        variances += steps
    return made, variances


def _largest(differences: Floats, steps: Floats, source: np.random.Generator) -> Floats:
    """The largest values over all thresholds, shape (R,).

    Between the ends a and b a Brownian bridge of variance v exceeds m with the probability ``exp(-2
    (m - a) (m - b) / v)`` (Borodin and Salminen 2002, part II, 1.1.8).
    """
    low, high = differences[:, :-1], differences[:, 1:]
    logs = np.log1p(-source.random(low.shape))
    # the m of which that probability is a uniform number
    largest = (low + high + np.sqrt((low - high) ** 2 - 2 * steps * logs)) / 2
    return np.asarray(largest.max(axis=-1))


def _interpolated(published: Floats, places: Floats) -> Floats:
    """What linear pieces between the borders of cells make of places, shape (R, T)."""
    below = np.minimum(places.astype(np.int64), published.shape[-1] - 2)
    part = places - below
    return published[:, below] * (1 - part) + published[:, below + 1] * part


def _noise(view: CellView, places: Floats, source: np.random.Generator) -> Floats:
    """Noise of the differences at these places, shape (R, T)."""
    if view.noise.exact:
        return np.zeros((DRAWS, places.size))
    covariance = view.noise_covariance(operating_points.separation(view.counts, places).gradient)
    return distances.normal_draws(covariance, DRAWS, source)


def _largest_counted(noisy: Floats) -> Floats:
    """The largest value close to the largest of the quantiles that are compared first."""
    first = np.arange(FINER - 1, noisy.shape[-1], FINER)
    top = first[np.argmax(noisy[:, first], axis=-1)]
    apart = np.abs(np.arange(noisy.shape[-1]) - top[:, np.newaxis])
    return np.asarray(np.where(apart <= distances.WINDOW * FINER, noisy, -math.inf).max(axis=-1))


Pair = tuple[Histogram, Histogram]

MEASURED_CELLS = 2**14
"""The number of cells in which a plan takes the measures of a shape's expected records."""

POPULATION = 1e9
"""Records of a population: so many that no figure of it is absent for want of records."""


def figure_forecast(
    leaves: Floats,
    noise: trees.TreeNoise,
    axis: ScoreAxis,
    scenario: Scenario,
    shape: Shape,
    metric: Metric,
) -> Forecast:
    """The predicted error of a metric.

    Parameters
    ----------
    leaves : the expected positives and negatives of the cells, shape (2 B,).
    noise, axis : the errors of these counts, and the cells' scores.
    scenario, shape : of the plan.
    metric : another one than the AUC, and no distance of the smooth calibration curve.
    """
    smaller = min(scenario.positives, scenario.negatives)
    if metric.name == ECE:
        whole = tree_results.result_from_tree(leaves, noise, None, axis=axis)
        if whole.histogram is None:
            return Forecast(math.inf)
        error, bias = ece_error(whole.histogram, noise, ece_of(shape, scenario))
        return Forecast(error, bias, smaller, float(whole.positives_error))
    histogram = Histogram(leaves.reshape(2, -1), noise, 1, 1, axis)
    if metric.name == SEPARATION:
        return _separation_forecast(histogram, shape, smaller)
    if metric.is_measure:
        exact = population_measure(shape, scenario.positive_fraction, metric)
        return _measure_forecast(histogram, metric, exact, smaller)
    exact = precision_of(shape, scenario, metric.threshold)
    return _precision_forecast(histogram, metric.threshold, exact, smaller)


@lru_cache(maxsize=64)
def population_measure(shape: Shape, positive_fraction: float, metric: Metric) -> float:
    """A measure of the population of a shape, from the finest cells; NaN where it is absent.

    Examples
    --------
    >>> metric = Metric("net benefit at 0.2")
    >>> round(population_measure(Shape(0.8, "calibrated"), 0.1, metric), 4)
    0.0239
    """
    parts = np.array([positive_fraction, 1 - positive_fraction]) * POPULATION
    fractions = shape.cell_fractions(MEASURED_CELLS, positive_fraction, PROBABILITY)
    fine = np.stack(fractions) * parts[:, np.newaxis]
    exact = trees.TreeNoise(np.zeros(MEASURED_CELLS.bit_length() + 1))
    histogram = Histogram(fine, exact, 1, 1, ScoreAxis(named_scale(PROBABILITY)))
    return Measures(histogram, metric.decisions).named(metric.name).value


def _measure_forecast(histogram: Histogram, metric: Metric, exact: float, smaller: int) -> Forecast:
    """The stated errors of a measure at the expected counts, and what its cells miss."""
    measure = Measures(histogram, metric.decisions).named(metric.name)
    if not (measure.given and math.isfinite(exact)):
        return Forecast(math.inf)
    # what cells' width adds is the bias here, since the shape is known
    known = math.isfinite(measure.placement_error)
    cells = measure.placement_error if known else measure.approximation_error
    return Forecast(
        math.hypot(measure.privacy_error, cells),
        measure.value - measure.bias - exact,
        smaller,
        _class_error(histogram),
    )


def _separation_forecast(histogram: Histogram, shape: Shape, smaller: int) -> Forecast:
    """Of the classes' largest difference, whose records' own place of the largest moves as well."""
    measures = Measures(histogram)
    if not measures.named(SEPARATION).given:
        return Forecast(math.inf)
    error, bias = separation_error(measures.view, shape)
    return Forecast(error, bias, smaller, _class_error(histogram))


IMITATED_RESULTS = 40
"""Simulated results of a distance, each with a fit of its own: they tell its error to 11 %."""


def distance_forecast(
    expected: Histogram, pair: Callable[[np.random.Generator], Pair], metric: Metric, smaller: int
) -> Forecast:
    """Of a distance of the smooth calibration curve, which is no smooth function of the counts.

    It depends on which records are drawn and on where noisy counts place the cells, as well as on
    the noise in these, so whole results are imitated.

    Parameters
    ----------
    expected : the expected counts, with the noise of a result.
    pair : draws what a result states, and the exact counts of its records.
    metric : the distance.
    smaller : the size of the smaller class.
    """
    if not Measures(expected).named(metric.name).given:
        return Forecast(math.inf)

    def imitated(histogram: Histogram) -> float:
        view = CellView.of(histogram)
        return math.nan if too_few_records(view) else distance_value(view, metric.name)

    source = np.random.default_rng(0)
    pairs = np.array([[*map(imitated, pair(source))] for _ in range(IMITATED_RESULTS)])
    errors = np.diff(pairs[np.isfinite(pairs).all(axis=1)], axis=1)
    if len(errors) <= IMITATED_RESULTS / 2:
        return Forecast(math.inf)
    # of every pair the exact distance, less the stated one
    error, bias = float(errors.std()), -float(errors.mean())
    return Forecast(error, bias, smaller, _class_error(expected))


def _class_error(histogram: Histogram) -> float:
    """The standard error of the number of positives."""
    weights = np.zeros_like(histogram.counts)
    weights[0] = 1.0
    return math.sqrt(float(histogram.variance(weights)))


def precision_of(shape: Shape, scenario: Scenario, threshold: float) -> float:
    """The population's precision of calling scores from the threshold on positive.

    Examples
    --------
    >>> precision_of(Shape(0.8), Scenario(100, 30, 1, 1.0), 0.0)
    0.3
    """
    positive_rate, negative_rate = shape.reaching(threshold, scenario.positive_fraction)
    called = scenario.positives * positive_rate, scenario.negatives * negative_rate
    return called[0] / max(sum(called), 1e-300)


def _precision_forecast(
    histogram: Histogram, threshold: float, exact: float, smaller: int
) -> Forecast:
    """Errors from noise and from records in the cell that the threshold cuts; that cell's bias."""
    reached = histogram.axis.reaching(np.array([threshold]), histogram.counts.shape[-1])
    precision, above = functional.positive_predictive_value(histogram.counts, reached), reached[0]
    noise_variance = float(histogram.variance(precision.gradient)[0])
    positives, negatives = (float(class_counts @ above) for class_counts in histogram.counts)
    cut = histogram.counts * above * (1 - above)
    cut_variance = (
        float(negatives**2 * cut[0].sum() + positives**2 * cut[1].sum())
        / (positives + negatives) ** 4
    )
    return Forecast(
        math.sqrt(noise_variance + cut_variance),
        float(precision.value[0]) - exact,
        smaller,
        _class_error(histogram),
    )
