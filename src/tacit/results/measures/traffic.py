"""Measures that advertising and other ranking of traffic is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.measures.functional import Functional
from tacit.metrics.measures.log_loss import log_loss, normalised_entropy
from tacit.metrics.measures.operating_points import (
    quantiles,
    rate_at_rate,
    reaching_places,
    share_above,
)
from tacit.metrics.measures.recalibration import calibration_ratio, line_fit
from tacit.results.measures.figures import (
    POSITIVE_RATIO,
    RATE,
    RATIO_AT_THRESHOLD,
    SMOOTH,
    Kind,
    measured,
    only,
)
from tacit.results.measures.measure import Measure
from tacit.results.measures.view import CellView

SHARES = (0.01, 0.05, 0.1, 0.2)
"""Parts of the traffic, from the highest score down, at which lift and gain are given."""
DECILES = 10
ALL, POSITIVES = np.array([1.0, 1.0]), np.array([1.0, 0.0])

Named = Iterator[tuple[str, Measure]]
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
    return rate_at_rate(view.counts, ALL, POSITIVES, shares, share_errors(view, ALL, shares))


def lift_at(shares: Floats, view: CellView) -> Functional:
    """The share of positives among these parts over that among all: the gain over the part."""
    gain = gain_at(shares, view)
    by_share = shares[:, np.newaxis, np.newaxis]
    rough = None if gain.rough is None else gain.rough / shares
    return replace(gain, value=gain.value / shares, gradient=gain.gradient / by_share, rough=rough)


def share_errors(view: CellView, weights: Floats, shares: Floats) -> Floats:
    """The standard deviation of the parts of some records above their quantiles, by noise."""
    places = quantiles(weights @ view.counts, shares)
    return view.privacy_error(share_above(view.counts, weights, reaching_places(places, view.size)))


def _decile_ratios(view: CellView) -> Functional:
    """Calibration ratios of ten groups of equally many records, the lowest scores first."""
    borders = quantiles(view.counts.sum(axis=0), 1 - np.arange(DECILES + 1) / DECILES)
    reached = reaching_places(borders, view.size)
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
