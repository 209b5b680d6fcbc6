"""Measures that a clinical evaluation is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.measures import decisions, recalibration
from tacit.metrics.measures.functional import Functional, prevalence
from tacit.metrics.measures.net_benefit import net_benefit, treat_all
from tacit.metrics.measures.partial_area import partial_auc, standardised
from tacit.metrics.measures.squared_error import brier, scaled_brier
from tacit.results.measures.figures import (
    BENEFIT,
    POSITIVE_RATIO,
    RATE,
    RATIO_AT_THRESHOLD,
    SMOOTH,
    Kind,
    by_threshold,
    measured,
    only,
)
from tacit.results.measures.measure import Measure
from tacit.results.measures.view import CellView

THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.5)
"""Probabilities at which figures of a decision are given by default."""
PARTIAL = 0.1
"""The largest false-positive rate of the partial AUC: specificities from 0.9 to 1."""
SHARE = Kind((0.0, 1.0))

Named = Iterator[tuple[str, Measure]]
AtThreshold = Callable[[Floats, Floats], Functional]

AT_THRESHOLD: dict[str, tuple[AtThreshold, Kind]] = {
    "sensitivity": (decisions.sensitivity, RATE),
    "specificity": (decisions.specificity, RATE),
    "positive_predictive_value": (decisions.positive_predictive_value, RATE),
    "negative_predictive_value": (decisions.negative_predictive_value, RATE),
    "positive_likelihood_ratio": (decisions.positive_likelihood_ratio, RATIO_AT_THRESHOLD),
    "negative_likelihood_ratio": (decisions.negative_likelihood_ratio, RATIO_AT_THRESHOLD),
}
"""Figures of calling scores positive from a threshold on, by name."""


def ranking_measures(view: CellView) -> Named:
    """Figures that scores of any unit have."""
    yield "prevalence", only(measured(view, lambda cells: prevalence(cells.counts), SHARE))
    yield "partial_auc", only(measured(view, _partial_auc, Kind((0.0, PARTIAL))))
    yield "standardised_partial_auc", only(measured(view, _standardised, SHARE))


def calibration_measures(view: CellView) -> Named:
    """Calibration in the large, its slope, observed over expected, and both Brier scores."""
    for name, (make, kind) in CALIBRATION.items():
        yield name, only(measured(view, make, kind))


def threshold_measures(view: CellView, thresholds: tuple[float, ...] = THRESHOLDS) -> Named:
    """Net benefit, predictive values and likelihood ratios at these probabilities."""
    if not thresholds:
        return
    points = np.array(thresholds)
    for name, make in (("net_benefit", benefit_at), ("net_benefit_of_all", benefit_of_all)):
        measures = measured(view, partial(make, points), BENEFIT, thresholds)
        yield from by_threshold(name, thresholds, measures)
    for name, (figure, kind) in AT_THRESHOLD.items():
        measures = measured(view, partial(_at_threshold, figure, points), kind, thresholds)
        yield from by_threshold(name, thresholds, measures)


def benefit_at(points: Floats, view: CellView) -> Functional:
    """Net benefit of treating from these probabilities on."""
    return net_benefit(view.counts, view.reaching(view.stating(points)), points)


def benefit_of_all(points: Floats, view: CellView) -> Functional:
    """Net benefit of treating everybody, at these probabilities."""
    return treat_all(view.counts, points)


def _at_threshold(figure: AtThreshold, points: Floats, view: CellView) -> Functional:
    return figure(view.counts, view.reaching(view.stating(points)))


def _partial_auc(view: CellView) -> Functional:
    return partial_auc(view.counts, PARTIAL)


def _standardised(view: CellView) -> Functional:
    return standardised(_partial_auc(view), PARTIAL)


def _of_line(
    figure: Callable[[Floats, Floats], Functional | None], view: CellView
) -> Functional | None:
    """A figure of the logistic line; None where noise hides the ends that its slope depends on."""
    return figure(view.counts, view.log_odds) if view.ends_known else None


CALIBRATION: dict[str, tuple[Callable[[CellView], Functional | None], Kind]] = {
    "calibration_intercept": (
        lambda view: recalibration.calibration_intercept(view.counts, view.stated_log_odds),
        SMOOTH,
    ),
    "calibration_slope": (
        lambda view: _of_line(recalibration.calibration_slope, view),
        SMOOTH,
    ),
    "intercept_beside_slope": (
        lambda view: _of_line(recalibration.intercept_beside_slope, view),
        SMOOTH,
    ),
    "observed_over_expected": (
        lambda view: recalibration.observed_over_expected(view.counts, view.predicted),
        POSITIVE_RATIO,
    ),
    "brier": (lambda view: brier(view.counts, view.predicted), SHARE),
    "scaled_brier": (
        lambda view: scaled_brier(view.counts, view.predicted),
        Kind((-np.inf, 1.0)),
    ),
}
"""Figures of how scores agree with labels, by name."""
