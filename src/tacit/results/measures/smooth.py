"""A smooth calibration curve and how far it lies from the stated probabilities."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.binning import equi_depth_starts, merge
from tacit.metrics.measures.functional import both
from tacit.metrics.measures.smooth_calibration import (
    Distances,
    SmoothCalibration,
    distances,
    smooth_calibration,
    spline,
)
from tacit.results.estimate import Interval
from tacit.results.measures.figures import NO_FIT
from tacit.results.measures.measure import REACH, Measure, absent
from tacit.results.measures.view import CellView

GROUPS = 200
"""Number of groups of records, of equal size, over which distances are taken, where counts are
noisy."""
DRAWS = 400
"""Number of simulated curves; the error of a standard deviation is then 4 %."""
NAMES = {"median": "e50", "ninetieth": "e90", "largest": "emax", "mean": "ici"}

MOST_CURVATURE_NOISE = 0.02
"""Largest relative noise of the fit's curvature at which stated errors are the measured ones."""
CURVED = "the noise of the smooth fit's curvature is too large for a linearised error"

Named = Iterator[tuple[str, Measure]]


def distance_measures(view: CellView) -> Named:
    """E50, E90, Emax and the integrated calibration index of the smooth curve.

    A distance is no smooth figure: where the curve meets the diagonal, noise can only add to it.
    Curves are therefore drawn again from the known law of the coefficients' errors. Simulated noise
    on published figures costs no privacy; its seed is fixed.
    """
    fitted = smooth_calibration(view.counts, view.log_odds)
    if fitted is None:
        yield from ((name, absent(NO_FIT)) for name in NAMES.values())
        return
    if curvature_noise(view, fitted) > MOST_CURVATURE_NOISE:
        yield from ((name, absent(CURVED)) for name in NAMES.values())
        return
    coarse = smooth_calibration(view.halved.counts, view.halved.log_odds)
    if coarse is None:
        yield from ((name, absent(NO_FIT)) for name in NAMES.values())
        return
    found, wider = _distances(view, fitted), _distances(view.halved, coarse)
    grouped = _distances(view, fitted, merged=True)
    noise, whole = (
        _distances(view, fitted, _drawn(fitted, covariance), merged=True)
        for covariance in _covariances(view, fitted)
    )
    for field in fields(Distances):
        value, again, halved = (
            float(getattr(each, field.name)[0]) for each in (found, grouped, wider)
        )
        excess = [getattr(drawn, field.name) - again for drawn in (noise, whole)]
        yield NAMES[field.name], _distance(value, excess[0], excess[1], abs(value - halved) / 3)


def curvature_noise(view: CellView, fitted: SmoothCalibration) -> float:
    """The noise of the fit's curvature relative to it, in the direction where it is largest.

    In coordinates in which the curvature is the identity, each coordinate's is a weighted sum of
    the counts of both classes, ``sum t (u' x)^2 q (1 - q) = 1``.
    """
    values, vectors = np.linalg.eigh(np.linalg.inv(fitted.fit.inverse))
    coordinates = (vectors / np.sqrt(values)).T @ fitted.design
    weights = coordinates**2 * fitted.fit.fitted * (1 - fitted.fit.fitted)
    return float(np.sqrt(view.noise_variance(both(weights, weights)).max()))


def _distance(value: float, noise: Floats, whole: Floats, cells: float) -> Measure:
    """A distance with what the excess of drawn ones says of its bias and its errors.

    The error of cells, a third of the change by merging them in pairs, adds to both intervals.
    """
    by_noise, by_both = float(noise.std()), float(whole.std())
    centre = value - float(noise.mean())
    shown = max(centre, 0.0)
    return Measure(
        shown,
        by_noise,
        cells,
        math.sqrt(max(by_both**2 - by_noise**2, 0.0)),
        shown - centre,
        _around(centre, math.hypot(by_noise, cells)),
        _around(value - float(whole.mean()), math.hypot(by_both, cells)),
    )


def _around(centre: float, error: float) -> Interval:
    low, high = centre - REACH * error, centre + REACH * error
    return Interval(min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0))


def _drawn(fitted: SmoothCalibration, covariance: Floats) -> Floats:
    """Coefficients with their error drawn again, shape (DRAWS, D)."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    normal = np.random.default_rng(0).standard_normal((DRAWS, covariance.shape[0]))
    return fitted.fit.coefficients + normal @ root.T


def _covariances(view: CellView, fitted: SmoothCalibration) -> tuple[Floats, Floats]:
    """The covariance of the coefficients by noise, and by noise and sampling."""
    gradient = fitted.fit.gradient
    noise = view.noise_covariance(gradient)
    sampling = np.einsum("aij,bij,ij->ab", gradient, gradient, view.counts)
    return noise, noise + sampling


def _distances(
    view: CellView,
    fitted: SmoothCalibration,
    coefficients: Floats | None = None,
    merged: bool = False,
) -> Distances:
    """The distances of curves with these coefficients, the fitted one by default, shape (R,).

    Over all cells of exact counts; over groups of records of equal size where counts are noisy, or
    ``merged`` asks for it.
    """
    totals = view.counts.sum(axis=0)
    every = view.noise.exact and not merged
    starts = np.arange(view.size) if every else equi_depth_starts(totals, GROUPS)
    records = np.maximum(merge(totals, starts), 0.0)
    middles = (starts + np.append(starts[1:], view.size) - 1) // 2
    several = fitted.fit.coefficients[np.newaxis] if coefficients is None else coefficients
    return distances(
        several,
        spline(view.log_odds[middles], fitted.knots),
        view.clipped[middles],
        records / records.sum(),
    )
