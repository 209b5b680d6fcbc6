"""Operating points: a sensitivity at a specificity, and the threshold for it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.measures.functional import Functional
from tacit.metrics.measures.operating_points import (
    fewer_side,
    quantiles,
    rate_at_rate,
    reaching_places,
    share_above,
)
from tacit.results.estimate import Interval
from tacit.results.measures.figures import LOST_IN_NOISE, RATE, measured, stands_out
from tacit.results.measures.measure import REACH, Measure, absent
from tacit.results.measures.traffic import ALL, POSITIVES, SHARES, share_errors
from tacit.results.measures.view import CellView

RATES_GIVEN = (0.9, 0.95)
"""Specificities and sensitivities at which the other one is given."""
NEGATIVES = np.array([0.0, 1.0])

Named = Iterator[tuple[str, Measure]]


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
    place = quantiles(weights @ view.counts, np.array([share]))
    above = reaching_places(place, view.size)
    figure = share_above(view.counts, weights, above)
    counted = replace(figure, base=fewer_side(weights, above, np.array([share])))
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
    low, high = view.scores_of(quantiles(weights @ view.counts, reached))
    return Interval(float(low), float(high))


def _thresholds(
    view: CellView, name: str, weights: Floats, given: tuple[float, ...], shares: Floats
) -> Named:
    for rate, share in zip(given, shares.tolist(), strict=True):
        yield f"threshold_for_{name}_{rate:g}", threshold_of_share(view, weights, share)


def _sensitivity_at(specificities: Floats, view: CellView) -> Functional:
    shares = 1 - specificities
    errors = share_errors(view, NEGATIVES, shares)
    return rate_at_rate(view.counts, NEGATIVES, POSITIVES, shares, errors)


def _specificity_at(sensitivities: Floats, view: CellView) -> Functional:
    errors = share_errors(view, POSITIVES, sensitivities)
    false = rate_at_rate(view.counts, POSITIVES, NEGATIVES, sensitivities, errors)
    return replace(false, value=1 - false.value, gradient=-false.gradient)
