"""Intervals of figures that noise mostly adds to, by inverting tests along a path of truths."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from tacit.arrays import Floats

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
