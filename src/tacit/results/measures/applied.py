"""Measures that applications ask for: clinics, ranking of traffic, and operating points.

Measures that a clinical evaluation is asked for. Measures that advertising and other ranking of
traffic is asked for. Operating points: a sensitivity at a specificity, and the threshold for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from tacit.arrays import Floats
from tacit.metrics import logistic
from tacit.metrics.logistic import calibration_ratio, line_fit
from tacit.metrics.measures import operating_points
from tacit.metrics.measures.decisions import (
    brier,
    log_loss,
    net_benefit,
    normalised_entropy,
    partial_auc,
    scaled_brier,
    standardised,
    treat_all,
)
from tacit.metrics.measures.functional import Functional, prevalence
from tacit.metrics.rates import LIKELIHOOD_RATIOS, RATES, Rate
from tacit.results.estimate import Interval
from tacit.results.measures.figures import (
    BENEFIT,
    LOST_IN_NOISE,
    POSITIVE_RATIO,
    RATE,
    RATIO_AT_THRESHOLD,
    SMOOTH,
    Kind,
    by_threshold,
    measured,
    only,
    stands_out,
)
from tacit.results.measures.measure import REACH, Measure, absent
from tacit.results.measures.view import CellView

THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.5)
"""Probabilities at which figures of a decision are given by default."""
PARTIAL = 0.1
"""The largest false-positive rate of the partial AUC: specificities from 0.9 to 1."""
SHARE = Kind((0.0, 1.0))

Named = Iterator[tuple[str, Measure]]


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
    for name, rate in RATES.items():
        kind = RATIO_AT_THRESHOLD if name in LIKELIHOOD_RATIOS else RATE
        measures = measured(view, partial(_at_threshold, rate, points), kind, thresholds)
        yield from by_threshold(name, thresholds, measures)


def benefit_at(points: Floats, view: CellView) -> Functional:
    """Net benefit of treating from these probabilities on."""
    return net_benefit(view.counts, view.reaching(view.stating(points)), points)


def benefit_of_all(points: Floats, view: CellView) -> Functional:
    """Net benefit of treating everybody, at these probabilities."""
    return treat_all(view.counts, points)


def _at_threshold(rate: Rate, points: Floats, view: CellView) -> Functional:
    return rate(view.counts, view.reaching(view.stating(points)))


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
        lambda view: logistic.calibration_intercept(view.counts, view.stated_log_odds),
        SMOOTH,
    ),
    "calibration_slope": (
        lambda view: _of_line(logistic.calibration_slope, view),
        SMOOTH,
    ),
    "intercept_beside_slope": (
        lambda view: _of_line(logistic.intercept_beside_slope, view),
        SMOOTH,
    ),
    "observed_over_expected": (
        lambda view: logistic.observed_over_expected(view.counts, view.predicted),
        POSITIVE_RATIO,
    ),
    "brier": (lambda view: brier(view.counts, view.predicted), SHARE),
    "scaled_brier": (
        lambda view: scaled_brier(view.counts, view.predicted),
        Kind((-np.inf, 1.0)),
    ),
}
"""Figures of how scores agree with labels, by name."""


SHARES = (0.01, 0.05, 0.1, 0.2)
"""Parts of the traffic, from the highest score down, at which lift and gain are given."""
DECILES = 10
ALL, POSITIVES = np.array([1.0, 1.0]), np.array([1.0, 0.0])

Loss = Callable[[Floats, Floats], Functional]


def loss_measures(view: CellView) -> Named:
    """Log loss and normalised entropy, as scores are and recalibrated; the calibration ratio."""
    for name, (make, kind) in LOSSES.items():
        yield name, only(measured(view, make, kind))
    measures = measured(view, _decile_ratios, RATIO_AT_THRESHOLD, (None,) * DECILES)
    for number, measure in enumerate(measures, 1):
        yield f"calibration_ratio_of_decile_{number}", measure


def traffic_measures(view: CellView) -> Named:
    """Kolmogorov-Smirnov, and the gain and lift of parts of the traffic."""
    shares = np.array(SHARES)
    gains = measured(view, partial(gain_at, shares), RATE, (None,) * shares.size)
    lifts = measured(view, partial(lift_at, shares), Kind(at_threshold=True), (None,) * shares.size)
    for share, gain, lift in zip(SHARES, gains, lifts, strict=True):
        yield f"gain_of_top_{share:g}", gain
        yield f"lift_of_top_{share:g}", lift


def gain_at(shares: Floats, view: CellView) -> Functional:
    """The part of all positives among these parts of the records, from the highest score down."""
    return operating_points.rate_at_rate(
        view.counts, ALL, POSITIVES, shares, share_errors(view, ALL, shares)
    )


def lift_at(shares: Floats, view: CellView) -> Functional:
    """The share of positives among these parts over that among all: the gain over the part."""
    gain = gain_at(shares, view)
    by_share = shares[:, np.newaxis, np.newaxis]
    rough = None if gain.rough is None else gain.rough / shares
    return replace(gain, value=gain.value / shares, gradient=gain.gradient / by_share, rough=rough)


def share_errors(view: CellView, weights: Floats, shares: Floats) -> Floats:
    """The standard deviation of the parts of some records above their quantiles, by noise."""
    places = operating_points.quantiles(weights @ view.counts, shares)
    return view.privacy_error(
        operating_points.share_above(
            view.counts, weights, operating_points.reaching_places(places, view.size)
        )
    )


def _decile_ratios(view: CellView) -> Functional:
    """Calibration ratios of ten groups of equally many records, the lowest scores first."""
    borders = operating_points.quantiles(
        view.counts.sum(axis=0), 1 - np.arange(DECILES + 1) / DECILES
    )
    reached = operating_points.reaching_places(borders, view.size)
    # the first and the last group hold every record below and above
    reached[0], reached[-1] = 1.0, 0.0
    low, high = np.append(0.0, borders[1:-1]), np.append(borders[1:-1], view.size)
    members = reached[:-1] - reached[1:]
    # the middle of the part of each cell that belongs to a group
    cells = np.arange(view.size)
    start, stop = (np.clip(ends[:, np.newaxis], cells, cells + 1) for ends in (low, high))
    middles = (start + stop) / 2 - 0.5
    stated = np.interp(middles, cells, view.predicted)
    return replace(calibration_ratio(view.counts, stated, members), above=members)


def _after_line(loss: Loss, view: CellView) -> Functional | None:
    """A loss after logistic recalibration on the same counts; None where no line exists.

    At the fitted line the loss is least, so its gradient is that at fixed coefficients. The line
    needs the part of the curvature that its slope divides by.
    """
    fit = line_fit(view.counts, view.log_odds) if view.ends_known else None
    if fit is None:
        return None
    stated = fit.coefficients[0] + fit.coefficients[1] * view.log_odds
    return replace(loss(view.counts, stated), base=fit.base[1:])


LOSSES: dict[str, tuple[Callable[[CellView], Functional | None], Kind]] = {
    "log_loss": (lambda view: log_loss(view.counts, view.log_odds), SMOOTH),
    "normalised_entropy": (lambda view: normalised_entropy(view.counts, view.log_odds), SMOOTH),
    "recalibrated_log_loss": (partial(_after_line, log_loss), SMOOTH),
    "recalibrated_normalised_entropy": (partial(_after_line, normalised_entropy), SMOOTH),
    "calibration_ratio": (
        lambda view: calibration_ratio(view.counts, view.predicted, np.ones((1, view.size))),
        POSITIVE_RATIO,
    ),
}
"""Losses and the calibration ratio of all records, by name."""


RATES_GIVEN = (0.9, 0.95)
"""Specificities and sensitivities at which the other one is given."""
NEGATIVES = np.array([0.0, 1.0])


def operating_measures(view: CellView) -> Named:
    """Sensitivities at specificities, specificities at sensitivities, and all their thresholds."""
    given = np.array(RATES_GIVEN)
    none = (None,) * given.size
    measures = measured(view, partial(_sensitivity_at, given), RATE, none)
    for rate, measure in zip(RATES_GIVEN, measures, strict=True):
        yield f"sensitivity_at_specificity_{rate:g}", measure
    measures = measured(view, partial(_specificity_at, given), RATE, none)
    for rate, measure in zip(RATES_GIVEN, measures, strict=True):
        yield f"specificity_at_sensitivity_{rate:g}", measure
    yield from _thresholds(view, "specificity", NEGATIVES, RATES_GIVEN, 1.0 - given)
    yield from _thresholds(view, "sensitivity", POSITIVES, RATES_GIVEN, given)
    yield from _thresholds(view, "share", ALL, SHARES, np.array(SHARES))


def threshold_of_share(view: CellView, weights: Floats, share: float) -> Measure:
    """The score that this part of some records reaches, with intervals by inversion.

    The part that reaches a fixed score is an ordinary share with a known error. The scores that
    parts within 1.96 of its errors reach are the interval, whatever the score's scale is.
    """
    place = operating_points.quantiles(weights @ view.counts, np.array([share]))
    above = operating_points.reaching_places(place, view.size)
    figure = operating_points.share_above(view.counts, weights, above)
    counted = replace(figure, base=operating_points.fewer_side(weights, above, np.array([share])))
    if not stands_out(view, counted)[0]:
        return absent(LOST_IN_NOISE)
    errors = [
        float(error[0])
        for error in (
            view.privacy_error(figure),
            view.cut_error(figure),
            figure.sampling_error(view.counts),
        )
    ]
    within = [
        _scores_within(view, weights, share, math.hypot(*errors[:last])) for last in (1, 2, 3)
    ]
    widths = np.array([bounds.high - bounds.low for bounds in within]) / (2 * REACH)
    parts = _added(widths)
    return Measure(
        float(view.scores_of(place)[0]),
        float(parts[0]),
        float(parts[1]),
        float(parts[2]),
        interval=within[1],
        population_interval=within[2],
    )


def _added(widths: Floats) -> Floats:
    """What each error adds: the squares of nested intervals' widths differ by it.

    From the first interval on that reaches an open end of the scale, it is infinite.
    """
    known = np.isfinite(widths)
    squares = np.where(known, widths, 0.0) ** 2
    return np.where(known, np.sqrt(np.maximum(np.diff(squares, prepend=0.0), 0.0)), math.inf)


def _scores_within(view: CellView, weights: Floats, share: float, error: float) -> Interval:
    """The scores of all parts within the interval of one."""
    reached = np.clip(share + REACH * error * np.array([1.0, -1.0]), 0.0, 1.0)
    low, high = view.scores_of(operating_points.quantiles(weights @ view.counts, reached))
    return Interval(float(low), float(high))


def _thresholds(
    view: CellView, name: str, weights: Floats, given: tuple[float, ...], shares: Floats
) -> Named:
    for rate, share in zip(given, shares.tolist(), strict=True):
        yield f"threshold_for_{name}_{rate:g}", threshold_of_share(view, weights, share)


def _sensitivity_at(specificities: Floats, view: CellView) -> Functional:
    shares = 1 - specificities
    errors = share_errors(view, NEGATIVES, shares)
    return operating_points.rate_at_rate(view.counts, NEGATIVES, POSITIVES, shares, errors)


def _specificity_at(sensitivities: Floats, view: CellView) -> Functional:
    errors = share_errors(view, POSITIVES, sensitivities)
    false = operating_points.rate_at_rate(view.counts, POSITIVES, NEGATIVES, sensitivities, errors)
    return replace(false, value=1 - false.value, gradient=-false.gradient)
