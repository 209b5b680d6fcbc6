"""The Kolmogorov-Smirnov distance of the classes, less what noise adds to a largest value."""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import Floats
from tacit.metrics import functional, operating_points
from tacit.results.estimate import Estimate
from tacit.results.measures.view import CellView

BORDERS = 40
"""Number of quantiles of the scores at which noisy classes are compared, twice."""
WINDOW = 4
"""Number of quantiles on both sides of the first largest difference that are looked at closely."""
DRAWS = 400
DEGREE = 3
"""Degree of the polynomial around which noise is drawn again."""
DISCRETE = 0.5826
"""How many steps the largest value of a walk is lower than that of a Brownian motion."""


def class_separation(view: CellView) -> Estimate:
    """The largest difference of sensitivity and false-positive rate over all thresholds.

    Exact counts are compared at every border of cells. Noisy ones are compared at ``BORDERS``
    quantiles, then at as many close to the largest difference. A largest value over many noisy ones
    is too large, and the records' own distance has its largest value between the quantiles. So
    noise of the known covariance, and the records' places around a smooth curve through the
    differences, are drawn again; by how much the largest value found exceeds that of all thresholds
    is the bias. The simulation costs no privacy; its seed is fixed.
    """
    if view.noise.exact:
        widest = operating_points.separation(view.counts, np.array([_widest_border(view.counts)]))
        return _measure(view, widest, 0, 0.0, 0.0)
    totals, shares = view.counts.sum(axis=0), np.linspace(0, 1, BORDERS + 1)[1:-1]
    coarse = operating_points.separation(
        view.counts, operating_points.quantiles(totals, shares)
    ).value
    top = int(np.argmax(coarse))
    around = shares[max(top - WINDOW, 0)], shares[min(top + WINDOW, shares.size - 1)]
    places = np.unique(operating_points.quantiles(totals, np.linspace(*around, BORDERS)))
    figure = operating_points.separation(view.counts, places)
    between = totals.sum() * (around[1] - around[0]) / (places.size - 1 or 1)
    bias, error = _excess(figure.value, view, figure.gradient, between)
    return _measure(view, figure, int(np.argmax(figure.value)), bias, error)


def _measure(
    view: CellView, figure: functional.Functional, top: int, bias: float, error: float
) -> Estimate:
    """The largest difference, less its bias.

    A threshold inside a cell may tell the classes further apart, by at most what the largest cell
    around holds of either.
    """
    gradient = figure.gradient[top]
    parts = np.max(np.abs(view.counts / view.counts.sum(axis=-1, keepdims=True)))
    hidden = float(parts) / math.sqrt(12) if view.noise.exact else 0.0
    sampling = math.sqrt(max(float(np.sum(view.counts * gradient**2)), 0.0))
    return Estimate(float(figure.value[top]) - bias, error, sampling, hidden).within((0.0, 1.0))


def _widest_border(counts: Floats) -> float:
    """The border of cells from which on the classes differ most."""
    shares = counts / counts.sum(axis=-1, keepdims=True)
    above = np.flip(np.cumsum(np.flip(shares[0] - shares[1])))
    return float(np.argmax(above))


def _excess(
    values: Floats, view: CellView, gradient: Floats, between: float
) -> tuple[float, float]:
    """The mean excess of the largest noisy value over the records' own distance, and its deviation.

    Passing a record changes the difference by 1/P or by 1/N. So around a smooth curve the records'
    own difference is a random walk, with the variance ``p (1 - p) (1/P + 1/N)**2`` a record where p
    is the part of positives (the variance of a two-valued step). Its largest value is over all
    steps, the noisy one over the quantiles.

    Parameters
    ----------
    values : differences at quantiles, shape (T,).
    view : the counts.
    gradient : of the differences, shape (T, 2, B).
    between : records between two neighbouring quantiles.
    """
    covariance = view.noise_covariance(gradient)
    eigenvalues, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    degree = min(DEGREE, values.size - 1)
    steps = np.linspace(-1, 1, values.size)
    powers = np.vander(steps, degree + 1)
    base = powers @ np.linalg.lstsq(powers, values, rcond=None)[0]
    source = np.random.default_rng(0)
    whole, tops = _walks(base, _step(view.counts), between, source)
    noise = source.standard_normal((DRAWS, values.size)) @ root.T
    # noise of both signs: what is linear in it cancels in the mean
    maxima = np.stack([(whole + sign * noise).max(axis=-1) for sign in (1, -1)])
    return float(np.mean(maxima - tops)), float(np.std(maxima - tops))


def _step(counts: Floats) -> float:
    """The standard deviation of what passing one record adds, ``sqrt(p (1 - p)) (1/P + 1/N)``."""
    sizes = np.maximum(counts.sum(axis=-1), 1.0)
    part = float(sizes[0] / sizes.sum())
    return math.sqrt(part * (1 - part)) * float(np.sum(1 / sizes))


def _walks(
    base: Floats, step: float, between: float, source: np.random.Generator
) -> tuple[Floats, Floats]:
    """Walks of so many records between neighbouring quantiles, and their largest values.

    Between two of its values a and b, a Brownian motion of variance v exceeds m with the
    probability ``exp(-2 (m - a) (m - b) / v)``, so its largest value there is
    ``(a + b + sqrt((a - b)**2 - 2 v log u)) / 2`` with u uniform (Borodin and Salminen 2002,
    part II, 1.1.8). A walk in steps has a largest value lower by 0.5826 of a step on average
    (Siegmund 1979).
    """
    spread = step * math.sqrt(max(between, 0.0))
    walk = spread * source.standard_normal((DRAWS, base.size - 1)).cumsum(axis=-1)
    at = base + np.concatenate([np.zeros((DRAWS, 1)), walk], axis=-1)
    ends = at[:, :-1], at[:, 1:]
    uniform = source.random(ends[0].shape)
    reach = np.sqrt((ends[0] - ends[1]) ** 2 - 2 * spread**2 * np.log1p(-uniform))
    tops = ((ends[0] + ends[1] + reach) / 2).max(axis=-1) - DISCRETE * step
    return at, np.maximum(tops, at.max(axis=-1))
