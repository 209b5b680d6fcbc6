"""Predictions for other figures than the AUC, from the expected cells of a score histogram."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.cells.score_scale import PROBABILITY, named_scale
from tacit.metrics.tree_noise import TreeNoise
from tacit.protocol.declarations.forecast import Forecast
from tacit.protocol.declarations.metric import ECE, Metric
from tacit.protocol.declarations.scenario import Scenario, Shape
from tacit.protocols.histogram.calibration_errors import ece_error, ece_of
from tacit.protocols.histogram.estimate import result_from_tree
from tacit.protocols.histogram.separation_forecast import separation_error
from tacit.results.curves.histogram import Histogram
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.measures.computing import Measures
from tacit.results.measures.names import SEPARATION

MEASURED_CELLS = 2**14
"""The number of cells in which a plan takes the measures of a shape's expected records."""

POPULATION = 1e9
"""Records of a population: so many that no figure of it is absent for want of records."""


def figure_forecast(
    leaves: Floats,
    noise: TreeNoise,
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
    metric : another one than the AUC.
    """
    smaller = min(scenario.positives, scenario.negatives)
    if metric.name == ECE:
        whole = result_from_tree(leaves, noise, None, axis=axis)
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
    exact = TreeNoise(np.zeros(MEASURED_CELLS.bit_length() + 1))
    histogram = Histogram(fine, exact, 1, 1, ScoreAxis(named_scale(PROBABILITY)))
    return Measures.of(histogram, metric.decisions).named(metric.name).value


def _measure_forecast(histogram: Histogram, metric: Metric, exact: float, smaller: int) -> Forecast:
    """The stated errors of a measure at the expected counts, and what its cells miss."""
    measure = Measures.of(histogram, metric.decisions).named(metric.name)
    if not (measure.given and math.isfinite(exact)):
        return Forecast(math.inf)
    # what cells' width adds is the bias here, since the shape is known
    known = math.isfinite(measure.placement_error)
    cells = measure.placement_error if known else measure.cell_error
    return Forecast(
        math.hypot(measure.privacy_error, cells),
        measure.value - measure.bias - exact,
        smaller,
        _class_error(histogram),
        max_error=math.inf,
    )


def _separation_forecast(histogram: Histogram, shape: Shape, smaller: int) -> Forecast:
    """Of the classes' largest difference, whose records' own place of the largest moves as well."""
    measures = Measures.of(histogram)
    if not measures.named(SEPARATION).given:
        return Forecast(math.inf)
    bias, error = separation_error(measures.view, shape)
    return Forecast(error, bias, smaller, _class_error(histogram), max_error=math.inf)


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
    precision = histogram.at(threshold)["precision"]
    above = histogram.axis.reaching(np.array([threshold]), histogram.counts.shape[-1])[0]
    positives, negatives = (float(class_counts @ above) for class_counts in histogram.counts)
    cut = histogram.counts * above * (1 - above)
    cut_variance = (
        float(negatives**2 * cut[0].sum() + positives**2 * cut[1].sum())
        / (positives + negatives) ** 4
    )
    return Forecast(
        math.sqrt(precision.privacy_error**2 + cut_variance),
        precision.value - exact,
        smaller,
        _class_error(histogram),
    )
