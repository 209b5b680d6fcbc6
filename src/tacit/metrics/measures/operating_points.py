"""Figures at a threshold that the counts themselves choose: a specificity, a share of traffic."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.measures.functional import Functional, both
from tacit.metrics.score_distribution import rising_fractions

LEAST_STEP = 0.01
"""Least part of the records on each side of a quantile from which its density is estimated."""


def quantiles(cells: Floats, shares: Floats) -> Floats:
    """Where so large a part of the records lies above, as numbers of cells from 0 to B.

    Noisy cumulative counts are made to rise; between cells' borders they rise linearly.

    Parameters
    ----------
    cells : records in each cell, shape (B,).
    shares : parts from 0 to 1, shape (T,).

    Examples
    --------
    >>> quantiles(np.array([2.0, 2.0]), np.array([0.25, 0.5])).tolist()
    [1.5, 1.0]
    """
    below = rising_fractions(cells)
    rises = np.concatenate(([True], np.diff(below) > 0))
    return np.interp(1 - shares, below[rises], np.flatnonzero(rises).astype(np.float64))


def reaching_places(places: Floats, cells: int) -> Floats:
    """The part of each cell that lies above each place, shape (T, B)."""
    return np.clip(np.arange(1, cells + 1) - places[:, np.newaxis], 0.0, 1.0)


def rate_at_rate(
    counts: Floats, fixed: Floats, read: Floats, shares: Floats, step: Floats
) -> Functional:
    """The part of some records above the threshold that a given part of others reaches.

    With ``fixed`` the negatives and ``read`` the positives, the sensitivity at a specificity. A
    record that raises the given part moves the threshold, and so the figure by the slope of one
    part over the other, taken between quantiles ``step`` away on both sides.

    Parameters
    ----------
    counts : shape (2, B).
    fixed, read : the weights of the classes in the given and in the resulting part, shape (2,).
    shares : the given parts, shape (T,).
    step : how far from them the slope is taken, shape (T,).
    """
    given, other = fixed @ counts, read @ counts
    places = quantiles(given, shares)
    above = reaching_places(places, counts.shape[-1])
    value = above @ other / other.sum()
    reach = np.maximum(step, LEAST_STEP)
    low, high = np.clip(shares - reach, 0.0, 1.0), np.clip(shares + reach, 0.0, 1.0)
    ends = [reaching_places(quantiles(given, end), counts.shape[-1]) for end in (low, high)]
    rise = [end @ other / other.sum() for end in ends]
    slope = np.maximum((rise[1] - rise[0]) / (high - low), 0.0)
    reached = (above - value[:, np.newaxis]) / other.sum()
    moved = (above - shares[:, np.newaxis]) / given.sum() * slope[:, np.newaxis]
    gradient = _by_class(read, reached) - _by_class(fixed, moved)
    return Functional(value, gradient, fewer_side(fixed, above, shares), above)


def fewer_side(weights: Floats, above: Floats, shares: Floats) -> Floats:
    """The weights of the records on the side of a quantile that has fewer, shape (T, 2, B).

    A quantile is known only where these stand out from their noise.
    """
    return _by_class(weights, np.where(shares[:, np.newaxis] <= 1 / 2, above, 1 - above))


def share_above(counts: Floats, weights: Floats, above: Floats) -> Functional:
    """The part of the records, of classes with these weights, that lies above; shape (T,)."""
    chosen = weights @ counts
    value = above @ chosen / chosen.sum()
    return Functional(
        value, _by_class(weights, (above - value[:, np.newaxis]) / chosen.sum()), None, above
    )


def separation(counts: Floats, places: Floats) -> Functional:
    """Sensitivity less the false-positive rate from each of these places on, shape (T,).

    Its largest value over all places is the Kolmogorov-Smirnov distance of the classes.

    Examples
    --------
    >>> separation(np.array([[1.0, 3.0], [3.0, 1.0]]), np.array([0.0, 1.0])).value.tolist()
    [0.0, 0.5]
    """
    above = reaching_places(places, counts.shape[-1])
    up = share_above(counts, np.array([1.0, 0.0]), above)
    across = share_above(counts, np.array([0.0, 1.0]), above)
    return Functional(up.value - across.value, up.gradient - across.gradient, None, above)


def _by_class(weights: Floats, cells: Floats) -> Floats:
    """Weights of both classes, shape (T, 2, B)."""
    return both(weights[0] * cells, weights[1] * cells)
