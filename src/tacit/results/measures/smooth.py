"""A smooth calibration curve and how far it lies from the stated probabilities."""

from __future__ import annotations

import math

import numpy as np
import scipy

from tacit.arrays import Floats
from tacit.metrics.measures import functional, operating_points
from tacit.metrics.measures.smooth_calibration import (
    Accepted,
    Distances,
    SmoothCalibration,
    accepted,
    distances,
    even_distances,
    even_normals,
    smooth_calibration,
    spline,
)
from tacit.results.estimate import LEVEL, REACH, Estimate, Interval
from tacit.results.measures.figures import NO_FIT
from tacit.results.measures.view import CellView

PLACES = 100
"""Number of records, evenly spread by rank, over which distances are taken, where counts are
noisy."""
DRAWS = 256
"""Number of errors of the coefficients at each step of the path; they are spread evenly."""
STEPS = 15
"""Number of curves on the path."""
FARTHEST = 5.0
"""How many errors of the distances the path reaches to both sides of the fitted curve."""
LEAST_DISTANCE = 1e-9
"""Distance that an error is at least relative to."""
NAMES = ("ici", "e50", "e90", "emax")
"""The distances, as ``FIELDS`` has them."""

FIELDS = ("mean", "median", "ninetieth", "largest")

MOST_CURVATURE_NOISE = 0.02
"""Largest relative noise of the fit's curvature at which stated errors are the measured ones."""
CURVED = "the noise of the smooth fit's curvature is too large for a linearised error"


def distance_measures(view: CellView) -> list[Estimate]:
    """The integrated calibration index, E50, E90 and Emax of the smooth curve, as ``NAMES`` lists.

    A distance is no smooth figure: where the curve meets the diagonal, noise can only add to it.
    So intervals hold the distances of curves whose noisy estimates are as far away as the fitted
    one (``smooth_calibration``); they reach 0 where noise alone would. Noise is that of the
    published law, and costs no privacy.
    """
    fitted = smooth_calibration(view.counts, view.log_odds)
    if fitted is None:
        return [Estimate.absent(NO_FIT)] * len(FIELDS)
    if curvature_noise(view, fitted) > MOST_CURVATURE_NOISE:
        return [Estimate.absent(CURVED)] * len(FIELDS)
    coarse = smooth_calibration(view.halved.counts, view.halved.log_odds)
    if coarse is None:
        return [Estimate.absent(NO_FIT)] * len(FIELDS)
    found, wider = _distances(view, fitted), _distances(view.halved, coarse)
    records, population = (
        _about(view, fitted, covariance) for covariance in _covariances(view, fitted)
    )
    return [
        _distance(
            records[name],
            population[name],
            abs(float(getattr(found, name)[0]) - float(getattr(wider, name)[0])) / 3,
        )
        for name in FIELDS
    ]


def curvature_noise(view: CellView, fitted: SmoothCalibration) -> float:
    """The noise of the fit's curvature relative to it, in the direction where it is largest.

    In coordinates in which the curvature is the identity, each coordinate's is a weighted sum of
    the counts of both classes, ``sum t (u' x)^2 q (1 - q) = 1``.
    """
    values, vectors = np.linalg.eigh(np.linalg.inv(fitted.fit.inverse))
    coordinates = (vectors / np.sqrt(values)).T @ fitted.design
    weights = coordinates**2 * fitted.fit.fitted * (1 - fitted.fit.fitted)
    return float(np.sqrt(view.noise_variance(functional.both(weights, weights)).max()))


def _distance(records: Accepted, population: Accepted, cells: float) -> Estimate:
    """A distance with the intervals that inverted tests give.

    The error of cells, a third of the change by merging them in pairs, adds to both intervals.
    """
    by_noise, by_both = ((each.high - each.low) / (2 * REACH) for each in (records, population))
    return Estimate(
        records.middle,
        by_noise,
        math.sqrt(max(by_both**2 - by_noise**2, 0.0)),
        cells,
        intervals=(_widened(records, cells), _widened(population, cells)),
    )


def _widened(accepted: Accepted, cells: float) -> Interval:
    """An interval with an independent error on both of its sides, from 0 to 1."""
    low, middle, high = accepted
    return Interval(
        max(middle - math.hypot(middle - low, REACH * cells), 0.0),
        min(middle + math.hypot(high - middle, REACH * cells), 1.0),
    )


def _about(view: CellView, fitted: SmoothCalibration, covariance: Floats) -> dict[str, Accepted]:
    """What tests accept of every distance, where coefficients have errors of this covariance.

    The largest is that of the curves whose coefficients are within ``REACH`` errors of the fitted
    ones in any direction (a profile interval): which direction a distance depends on most changes
    with the curve. The least inverts a test, because noise adds to a distance. Its truths lie on
    the line from perfect calibration through the fitted curve, along which all distances grow,
    within ``FARTHEST`` errors of them.
    """
    fit = fitted.fit.coefficients
    distances = _distances(view, fitted, even=True)._asdict()
    values, vectors = np.linalg.eigh(covariance)
    if values[-1] <= 0:
        return {name: Accepted(*[float(value[0])] * 3) for name, value in distances.items()}
    normals = even_normals(DRAWS, fit.size)
    # the symmetric root: unique, whatever signs and order eigenvectors come in
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    around = REACH * normals / np.linalg.norm(normals, axis=-1, keepdims=True)
    farthest = _distances(view, fitted, fit + around @ root, even=True)._asdict()
    path = _path(distances, farthest, fit)
    truths = _distances(view, fitted, path, even=True)._asdict()
    several = (path[:, np.newaxis] + normals @ root).reshape(-1, fit.size)
    drawn = _distances(view, fitted, several, even=True)._asdict()
    made = {}
    for name, value in distances.items():
        again = drawn[name].reshape(-1, DRAWS)
        tested = accepted(float(value[0]), truths[name], again, LEVEL)
        made[name] = tested._replace(high=max(float(farthest[name].max()), tested.middle))
    return made


def _path(distances: dict[str, Floats], farthest: dict[str, Floats], fit: Floats) -> Floats:
    """Coefficients from perfect calibration through the fitted ones, shape (L, D)."""
    relative = max(
        float(farthest[name].max() - value[0]) / REACH / max(float(value[0]), LEAST_DISTANCE)
        for name, value in distances.items()
    )
    steps = np.unique(np.maximum(1 + relative * np.linspace(-FARTHEST, FARTHEST, STEPS), 0.0))
    perfect = np.zeros_like(fit)
    perfect[1] = 1.0
    return np.asarray(perfect + steps[:, np.newaxis] * (fit - perfect))


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
    even: bool = False,
) -> Distances:
    """The distances of curves with these coefficients, the fitted one by default, shape (R,).

    Over all cells of exact counts; over ``PLACES`` records that are evenly spread by rank where
    counts are noisy, or ``even`` asks for it.
    """
    totals = view.counts.sum(axis=0)
    several = fitted.fit.coefficients[np.newaxis] if coefficients is None else coefficients
    if view.noise.exact and not even:
        return distances(several, fitted.design, view.clipped, totals / totals.sum())
    ranks = (np.arange(PLACES) + 0.5) / PLACES
    log_odds = np.interp(
        operating_points.quantiles(totals, ranks) - 0.5, np.arange(view.size), view.log_odds
    )
    return even_distances(several, spline(log_odds, fitted.knots), scipy.special.expit(log_odds))
