"""A smooth calibration curve: a logistic regression on a spline of the stated log-odds.

Intervals of figures that noise mostly adds to, by inverting tests along a path of truths.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from tacit.arrays import Floats
from tacit.metrics.logistic import LogisticFit, logistic_fit
from tacit.metrics.measures.functional import Functional
from tacit.metrics.measures.operating_points import quantiles

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

    fit: LogisticFit
    knots: Floats
    design: Floats

    def observed_log_odds(self, log_odds: Floats) -> Functional:
        """The log-odds of the observed probability at these stated log-odds, shape (T,)."""
        terms = spline(log_odds, self.knots)
        return Functional(
            self.fit.coefficients @ terms, np.tensordot(terms.T, self.fit.gradient, axes=1)
        )


def smooth_calibration(counts: Floats, log_odds: Floats) -> SmoothCalibration | None:
    """Fit a restricted cubic spline of the stated log-odds; None where no fit exists.

    Knots lie at the quantiles ``KNOTS`` of all records' scores and are held fixed. Where fewer than
    three of them differ, the curve is the logistic line.
    """
    places = quantiles(counts.sum(axis=0), 1.0 - np.array(KNOTS))
    knots = np.unique(np.interp(places - 0.5, np.arange(log_odds.size), log_odds))
    design = spline(log_odds, knots)
    fit = logistic_fit(counts, design)
    return None if fit is None else SmoothCalibration(fit, knots, design)


def spline(log_odds: Floats, knots: Floats) -> Floats:
    """One, the log-odds, and the restricted cubic terms (Harrell 2015, equation 2.25).

    Shape (2 + max(k - 2, 0), T). The curve is straight beyond the outer knots.

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


class Distances(NamedTuple):
    """How far a smooth curve lies from the stated probabilities, over the records.

    Parameters
    ----------
    median, ninetieth : E50 and E90, quantiles of the distance.
    largest : Emax.
    mean : the integrated calibration index (Austin and Steyerberg 2019).
    """

    median: Floats
    ninetieth: Floats
    largest: Floats
    mean: Floats


def distances(
    coefficients: Floats, design: Floats, predicted: Floats, weights: Floats
) -> Distances:
    """The distances of curves with these coefficients, shape (R, D), each figure of shape (R,).

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
    return Distances(
        np.take_along_axis(ranked, half, axis=-1)[:, 0],
        np.take_along_axis(ranked, most, axis=-1)[:, 0],
        np.max(np.where(weights > 0, gaps, 0.0), axis=-1),
        gaps @ weights,
    )


def even_distances(coefficients: Floats, design: Floats, predicted: Floats) -> Distances:
    """As ``distances``, over records that are evenly spread by rank, all of one weight.

    Quantiles lie between ranks as the records' own do: record i of n is at ``(i + 1/2) / n``.

    Examples
    --------
    >>> design, line = spline(np.linspace(-2, 2, 9), np.zeros(1)), np.array([[0.0, 1.0]])
    >>> even_distances(line, design, np.full(9, 0.5)).median.round(3).tolist()
    [0.231]
    """
    gaps = np.abs(scipy.special.expit(coefficients @ design) - predicted)
    median, ninetieth = np.quantile(gaps, (0.5, 0.9), axis=-1, method="hazen")
    return Distances(median, ninetieth, gaps.max(axis=-1), gaps.mean(axis=-1))


def _cube(values: Floats) -> Floats:
    return np.asarray(np.maximum(values, 0.0) ** 3, dtype=np.float64)


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
