"""A smooth calibration curve, and how far it lies from the stated probabilities.

The curve is a logistic regression on a spline of the stated log-odds. Noise mostly adds to its
distance from the diagonal, so intervals come of inverted tests along a path of truths.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from tacit.arrays import Floats
from tacit.metrics import functional, logistic, operating_points
from tacit.results.estimate import LEVEL, REACH, Estimate, Interval
from tacit.results.measures.figures import NO_FIT, CellView

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
"""How far a smooth curve lies from the stated probabilities, over the records: the mean distance,
the integrated calibration index (Austin and Steyerberg 2019), its median, its 90 % quantile and the
largest one. Arrays of distances have an axis of them, in this order."""

MOST_CURVATURE_NOISE = 0.04
"""Largest relative noise of the fit's curvature at which stated errors are the measured ones."""
CURVED = "too noisy at this epsilon"

KNOTS = (0.1, 0.5, 0.9)
"""The quantiles of the scores at which the spline bends, after Harrell (2015, table 2.3)."""


@dataclass(frozen=True, eq=False)
class SmoothCalibration:
    """A fitted curve.

    Parameters
    ----------
    fit : of the labels on the spline.
    knots : log-odds at which it bends, shape (k,).
    design : the spline's terms in every cell, shape (D, B).
    """

    fit: logistic.LogisticFit
    knots: Floats
    design: Floats

    def observed_log_odds(self, log_odds: Floats) -> functional.Functional:
        """The log-odds of the observed probability at these stated log-odds, shape (T,)."""
        terms = spline(log_odds, self.knots)
        return functional.Functional(
            self.fit.coefficients @ terms, np.tensordot(terms.T, self.fit.gradient, axes=1)
        )


def smooth_calibration(counts: Floats, log_odds: Floats) -> SmoothCalibration | None:
    """Fit a restricted cubic spline of the stated log-odds; None where no fit exists.

    Breakpoints lie at the quantiles ``KNOTS`` of all records' scores and are held fixed. Where
    fewer than three of them differ, the curve is the logistic line.
    """
    places = operating_points.quantiles(counts.sum(axis=0), 1.0 - np.array(KNOTS))
    knots = np.unique(np.interp(places - 0.5, np.arange(log_odds.size), log_odds))
    design = spline(log_odds, knots)
    fit = logistic.logistic_fit(counts, design)
    return None if fit is None else SmoothCalibration(fit, knots, design)


def spline(log_odds: Floats, knots: Floats) -> Floats:
    """One, the log-odds, and the restricted cubic terms (Harrell 2015, equation 2.25).

    Shape (2 + max(k - 2, 0), T). The curve is linear beyond the outer breakpoints.

    Examples
    --------
    >>> spline(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0]))[2].tolist()
    [0.0, 0.25, 1.5]
    """
    rows = [np.ones_like(log_odds), log_odds]
    if knots.size < 3:
        return np.stack(rows)
    last, before, span = knots[-1], knots[-2], (knots[-1] - knots[0]) ** 2
    for knot in knots[:-2]:
        bend = (
            _cube(log_odds - knot)
            - _cube(log_odds - before) * (last - knot) / (last - before)
            + _cube(log_odds - last) * (before - knot) / (last - before)
        )
        rows.append(bend / span)
    return np.stack(rows)


def distances(coefficients: Floats, design: Floats, predicted: Floats, weights: Floats) -> Floats:
    """The distances of curves with these coefficients, shape (R, D), as ``NAMES``, shape (4, R).

    Parameters
    ----------
    coefficients : of several curves.
    design : the spline's terms in groups of records, shape (D, G).
    predicted : the stated probability of each group, shape (G,).
    weights : the part of the records in each group, shape (G,), at least 0, of sum 1.
    """
    gaps = np.abs(scipy.special.expit(coefficients @ design) - predicted)
    order = np.argsort(gaps, axis=-1)
    ranked = np.take_along_axis(gaps, order, axis=-1)
    reached = np.cumsum(weights[order], axis=-1)
    last = gaps.shape[-1] - 1
    half, most = (
        np.minimum(np.sum(reached < part, axis=-1), last)[:, np.newaxis] for part in (0.5, 0.9)
    )
    quantiles = [np.take_along_axis(ranked, each, axis=-1)[:, 0] for each in (half, most)]
    largest = np.max(np.where(weights > 0, gaps, 0.0), axis=-1)
    return np.stack([gaps @ weights, *quantiles, largest])


def even_distances(coefficients: Floats, design: Floats, predicted: Floats) -> Floats:
    """As ``distances``, over records that are evenly spread by rank, all of one weight.

    Quantiles lie between ranks as the records' own do: record i of n is at ``(i + 1/2) / n``.

    Examples
    --------
    >>> design, line = spline(np.linspace(-2, 2, 9), np.zeros(1)), np.array([[0.0, 1.0]])
    >>> even_distances(line, design, np.full(9, 0.5))[:, 0].round(3).tolist()
    [0.234, 0.231, 0.381, 0.381]
    """
    gaps = np.abs(scipy.special.expit(coefficients @ design) - predicted)
    median, ninetieth = np.quantile(gaps, (0.5, 0.9), axis=-1, method="hazen")
    return np.stack([gaps.mean(axis=-1), median, ninetieth, gaps.max(axis=-1)])


def _cube(values: Floats) -> Floats:
    return np.asarray(np.maximum(values, 0.0) ** 3, dtype=np.float64)


def distance_measures(view: CellView) -> list[Estimate]:
    """The integrated calibration index, E50, E90 and Emax of the smooth curve, as ``NAMES`` lists.

    A distance is no smooth figure: where the curve meets the diagonal, noise can only add to it.
    So intervals hold the distances of curves whose noisy estimates are as far away as the fitted
    one (``smooth_calibration``); they reach 0 where noise alone would. Noise is that of the
    published law, and costs no privacy.
    """
    fitted = smooth_calibration(view.counts, view.log_odds)
    if fitted is None:
        return [Estimate.absent(NO_FIT)] * len(NAMES)
    if curvature_noise(view, fitted) > MOST_CURVATURE_NOISE:
        return [Estimate.absent(CURVED)] * len(NAMES)
    coarse = smooth_calibration(view.halved.counts, view.halved.log_odds)
    if coarse is None:
        return [Estimate.absent(NO_FIT)] * len(NAMES)
    change = np.abs(_distances(view, fitted) - _distances(view.halved, coarse))[:, 0]
    records, population = (
        _about(view, fitted, covariance) for covariance in _covariances(view, fitted)
    )
    return list(map(_distance, records, population, (change / 3).tolist()))


def distance_value(view: CellView, name: str) -> float:
    """One of ``NAMES`` without its intervals, in a third of the time; NaN where it is absent."""
    fitted = smooth_calibration(view.counts, view.log_odds)
    if fitted is None or curvature_noise(view, fitted) > MOST_CURVATURE_NOISE:
        return math.nan
    by_noise, _ = _covariances(view, fitted)
    return _about(view, fitted, by_noise)[NAMES.index(name)].middle


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
    sampling = math.sqrt(max(by_both**2 - by_noise**2, 0.0))
    around = _widened(records, cells), _widened(population, cells)
    return Estimate(records.middle, by_noise, sampling, cells, intervals=around)


def _widened(accepted: Accepted, cells: float) -> Interval:
    """An interval with an independent error on both of its sides, from 0 to 1."""
    low, middle, high = accepted
    return Interval(
        max(middle - math.hypot(middle - low, REACH * cells), 0.0),
        min(middle + math.hypot(high - middle, REACH * cells), 1.0),
    )


def _about(view: CellView, fitted: SmoothCalibration, covariance: Floats) -> list[Accepted]:
    """What tests accept of every distance, where coefficients have errors of this covariance.

    The largest is that of the curves whose coefficients are within ``REACH`` errors of the fitted
    ones in any direction (a profile interval): which direction a distance depends on most changes
    with the curve. The least inverts a test, because noise adds to a distance. Its truths lie on
    the line from perfect calibration through the fitted curve, along which all distances grow,
    within ``FARTHEST`` errors of them.
    """
    fit = fitted.fit.coefficients
    distances = _distances(view, fitted, even=True)[:, 0]
    values, vectors = np.linalg.eigh(covariance)
    if values[-1] <= 0:
        return [Accepted(value, value, value) for value in distances.tolist()]
    normals = even_normals(DRAWS, fit.size)
    # the symmetric root: unique, whatever signs and order eigenvectors come in
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    around = REACH * normals / np.linalg.norm(normals, axis=-1, keepdims=True)
    farthest = _distances(view, fitted, fit + around @ root, even=True).max(axis=-1)
    path = _path(distances, farthest, fit)
    truths = _distances(view, fitted, path, even=True)
    several = (path[:, np.newaxis] + normals @ root).reshape(-1, fit.size)
    drawn = _distances(view, fitted, several, even=True).reshape(len(NAMES), -1, DRAWS)
    tested = [
        accepted(value, truth, again, LEVEL)
        for value, truth, again in zip(distances.tolist(), truths, drawn, strict=True)
    ]
    return [
        each._replace(high=max(largest, each.middle))
        for each, largest in zip(tested, farthest.tolist(), strict=True)
    ]


def _path(distances: Floats, farthest: Floats, fit: Floats) -> Floats:
    """Coefficients from perfect calibration through the fitted ones, shape (L, D)."""
    relative = np.max((farthest - distances) / REACH / np.maximum(distances, LEAST_DISTANCE))
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
) -> Floats:
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


BISECTIONS = 60
"""Number of times that the bracket of g is halved."""


class Accepted(NamedTuple):
    """What an estimate is compatible with.

    Parameters
    ----------
    low, high : the least and the largest figure whose test accepts the estimate.
    middle : the figure whose estimates lie above and below this one equally often.
    """

    low: float
    middle: float
    high: float


def accepted(estimate: float, figures: Floats, estimates: Floats, level: float) -> Accepted:
    """The figures along a path that an estimate does not reject.

    A figure on the path is rejected where fewer than ``(1 - level) / 2`` of the estimates that it
    gives lie beyond the estimate on either side. So the interval holds the path's figure with the
    probability ``level`` wherever it lies, at a bound of its values too (Neyman 1937).

    Parameters
    ----------
    figures : along the path, shape (L,), not falling.
    estimates : what noise makes of each, shape (L, R).
    level : above 0 and below 1.

    Examples
    --------
    >>> drawn = np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [3.0, 4.0, 5.0]])
    >>> accepted(3.0, np.array([0.0, 1.0, 2.0]), drawn, level=0.5)
    Accepted(low=0.5, middle=1.0, high=1.5)
    """
    tail = (1 - level) / 2
    quantiles = np.quantile(estimates, (1 - tail, 0.5, tail), axis=-1)
    rising = np.maximum.accumulate(quantiles, axis=-1)
    return Accepted(*(float(np.interp(estimate, each, figures)) for each in rising))


def even_normals(draws: int, dimensions: int) -> Floats:
    """Normal numbers that fill the space evenly, shape (draws, dimensions): no chance is in them.

    The additive sequence ``1/2 + i a``, cut to its fractional part, with ``a_d = g^-d`` and g the
    root of ``g^(D + 1) = g + 1`` (Roberts 2018), as normal quantiles; each with its opposite, and
    scaled, so that means are 0 and the covariance is the identity.

    Parameters
    ----------
    draws : an even number.

    Examples
    --------
    >>> bool(np.abs(np.cov(even_normals(256, 3).T, bias=True) - np.eye(3)).max() < 1e-12)
    True
    """
    low, high = 1.0, 2.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if middle ** (dimensions + 1) < middle + 1 else (low, middle)
    steps = high ** -np.arange(1.0, dimensions + 1)
    places = (0.5 + np.arange(1, draws // 2 + 1)[:, np.newaxis] * steps) % 1.0
    half = scipy.special.ndtri(places)
    both = np.concatenate([half, -half])
    root = np.linalg.cholesky(both.T @ both / draws)
    return np.asarray(np.linalg.solve(root, both.T).T)
