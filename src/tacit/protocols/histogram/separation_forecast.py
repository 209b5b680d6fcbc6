"""The predicted error of the classes' Kolmogorov-Smirnov distance, a largest value, by simulation.

Let ``D`` be the difference of sensitivity and false-positive rate from a threshold on, of the
population. That of P positives and N negatives is ``D + W`` with ``W = B1 / sqrt(P) - B0 /
sqrt(N)``, two independent Brownian bridges in the distribution functions of both classes (Donsker
1952). At the largest ``D`` both densities are equal, so close to it W is a random walk of the
variance ``1/P + 1/N`` a unit of all records. The records' own distance is the largest ``D + W``
over all thresholds. A result sees it at borders of cells only, with noise, and looks at some
quantiles. Both largest values are elsewhere than that of D: no expansion at one place has their
difference, and so they are drawn.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.cells.score_scale import PROBABILITY, named_scale
from tacit.metrics.measures.operating_points import quantiles, separation
from tacit.protocol.declarations.scenario import Shape
from tacit.results.measures.separation import BORDERS, WINDOW, class_separation
from tacit.results.measures.view import CellView

DRAWS = 500
"""Simulated results: they tell a standard deviation to 3 %."""
FINER = 5
"""Number of places between two of the quantiles that a result compares first."""
FINE_CELLS = 2**14
"""Number of cells in which the population's distribution functions are tabulated."""


class Difference(NamedTuple):
    """How a result differs from the records' own distance.

    Parameters
    ----------
    bias : the mean.
    error : the standard deviation.
    """

    bias: float
    error: float


def separation_error(view: CellView, shape: Shape) -> Difference:
    """The error of the distance that a result states, about the records' own.

    Parameters
    ----------
    view : the expected counts, with the noise of a result.
    shape : of the scores.
    """
    source = np.random.default_rng(0)
    borders = np.arange(view.size + 1, dtype=np.float64)
    totals = view.counts.sum(axis=0)
    shares = np.linspace(0, 1, BORDERS * FINER + 1)[1:-1]
    between = quantiles(totals, shares)
    places = borders if view.noise.exact else between
    # the population's difference bends between borders of wide cells
    points, at = np.unique(np.concatenate([borders, between]), return_inverse=True)
    differences, steps = _drawn(view, shape, points, source)
    own = _largest(differences, steps, source)
    # between borders a result knows straight lines
    seen = differences[:, at[: borders.size]]
    noisy = _interpolated(seen, places) + _noise(view, places, source)
    stated = noisy.max(axis=-1) if view.noise.exact else _largest_looked_at(noisy)
    errors = stated - _taken_off(view, places) - own
    return Difference(float(np.mean(errors)), float(np.std(errors)))


def _drawn(
    view: CellView, shape: Shape, points: Floats, source: np.random.Generator
) -> tuple[Floats, Floats]:
    """``D + W`` of simulated records, shape (R, T), and the variances of W's steps, shape (T - 1).

    Parameters
    ----------
    points : ascending places among the cells, from 0 to B, shape (T,).
    """
    sizes = view.counts.sum(axis=-1)
    fraction = float(sizes[0] / sizes.sum())
    edges = named_scale(PROBABILITY).scores(np.linspace(0.0, 1.0, FINE_CELLS + 1))
    scores = view.scores_of(points)
    made, variances = np.zeros((DRAWS, points.size)), np.zeros(points.size - 1)
    fractions = shape.cell_fractions(FINE_CELLS, fraction, PROBABILITY)
    for sign, size, fine in zip((1.0, -1.0), sizes, fractions, strict=True):
        cumulative = np.append(0.0, np.cumsum(fine))
        below = np.interp(scores, edges, cumulative / cumulative[-1])
        steps = np.maximum(np.diff(below), 0.0) / size
        walk = np.cumsum(np.sqrt(steps) * source.standard_normal((DRAWS, steps.size)), axis=-1)
        walk = np.concatenate([np.zeros((DRAWS, 1)), walk], axis=-1)
        # above: 1 - F, and a bridge, which ends at 0
        made += sign * (1 - below - (walk - walk[:, -1:] * below))
        variances += steps
    return made, variances


def _largest(differences: Floats, steps: Floats, source: np.random.Generator) -> Floats:
    """The largest values over all thresholds, shape (R,).

    Between the ends a and b a Brownian bridge of variance v exceeds m with the probability ``exp(-2
    (m - a) (m - b) / v)`` (Borodin and Salminen 2002, part II, 1.1.8).
    """
    low, high = differences[:, :-1], differences[:, 1:]
    logs = np.log1p(-source.random(low.shape))
    # the m of which that probability is a uniform number
    largest = (low + high + np.sqrt((low - high) ** 2 - 2 * steps * logs)) / 2
    return np.asarray(largest.max(axis=-1))


def _interpolated(seen: Floats, places: Floats) -> Floats:
    """What straight lines between the borders of cells make of places, shape (R, T)."""
    below = np.minimum(places.astype(np.int64), seen.shape[-1] - 2)
    part = places - below
    return seen[:, below] * (1 - part) + seen[:, below + 1] * part


def _noise(view: CellView, places: Floats, source: np.random.Generator) -> Floats:
    """Noise of the differences at these places, shape (R, T)."""
    if view.noise.exact:
        return np.zeros((DRAWS, places.size))
    covariance = view.noise_covariance(separation(view.counts, places).gradient)
    eigenvalues, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    return np.asarray(source.standard_normal((DRAWS, places.size)) @ root.T)


def _largest_looked_at(noisy: Floats) -> Floats:
    """The largest value close to the largest of the quantiles that are compared first."""
    first = np.arange(FINER - 1, noisy.shape[-1], FINER)
    top = first[np.argmax(noisy[:, first], axis=-1)]
    apart = np.abs(np.arange(noisy.shape[-1]) - top[:, np.newaxis])
    return np.asarray(np.where(apart <= WINDOW * FINER, noisy, -math.inf).max(axis=-1))


def _taken_off(view: CellView, places: Floats) -> float:
    """By how much a result takes its largest value to be too large, at the expected counts."""
    largest = float(separation(view.counts, places).value.max())
    return largest - class_separation(view).value
