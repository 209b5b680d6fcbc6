"""What straight lines inside cells miss of smooth densities, estimated from the counts themselves.

Where a cell spans several powers of ten of the odds, both classes' densities fall over it, and not
alike. The lines of both classes then miss parts that are not in proportion, and the AUC of exact
scores by these lines is off by the integral of ``e- d(e+)``, e the lines less the true functions
(docs, section 5c). Densities are taken as linear over the cell in log-odds, with the slopes that
the neighbouring counts show, and in an end cell as powers of the distance to the end. Where they
fall by powers inside a cell too, the estimate is 2 to 8 times the error of a cell of one power of
ten: it is a statement of the error's size, and nothing is corrected by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.cells.score_scale import ScoreScale

POINTS = 16
"""Number of points of a cell at which a line is compared with log-odds."""

LEAST_POWER, LARGEST_POWER = 0.05, 4.0
"""Bounds of the power of a distance that a class's share beyond it is taken to follow."""

LEAST_CELLS = 4
"""Least number of cells whose neighbours show slopes."""

LARGEST_LOG_ODDS = 700.0
"""Log-odds of the least positive probabilities that doubles tell apart."""


@dataclass(frozen=True, eq=False)
class LineGeometry:
    """Where lines between the edges of cells differ from functions that are linear in log-odds.

    Parameters
    ----------
    bends : of every cell the mean of ``(t - u) (u - 1/2)``, u the part of the cell below a point in
        log-odds and t in scores, shape (B,).
    widths : of the cells in log-odds, shape (B,).
    distances : the logarithms of the distances of the first two edges from the lower end, and of
        the last two from the upper one, the outer edge first, shape (2, 2).
    """

    bends: Floats
    widths: Floats
    distances: Floats


def line_errors(shares: Floats, scale: ScoreScale) -> Floats:
    """The AUC's error by straight lines in every cell, as estimated, with its sign, shape (..., B).

    0 where scores have no bounds: there lines are straight in log-odds or the like already.

    Parameters
    ----------
    shares : of positives, then of negatives, in equal cells of positions, at least 0, shape
        (..., 2, B).
    scale : whose knots bound the cells.
    """
    if scale.low is None or scale.high is None or scale.cells < LEAST_CELLS:
        return np.zeros((*shares.shape[:-2], shares.shape[-1]))
    geometry = _geometry(scale)
    lower = _powers(shares[..., :2], geometry.distances[0])
    upper = _powers(shares[..., :-3:-1], geometry.distances[1])
    ends = lower * shares[..., 0], upper * shares[..., -1]
    errors = _inner_errors(shares, ends, geometry)
    products = np.prod(shares, axis=-2)
    errors[..., 0] = -products[..., 0] * _of_powers(lower)
    errors[..., -1] = products[..., -1] * _of_powers(upper)
    return errors


def _inner_errors(shares: Floats, ends: tuple[Floats, Floats], geometry: LineGeometry) -> Floats:
    """``g (n s+ - p s-)``, g the bend and s what a class's density rises by over the cell.

    With ``e = t - u - s (u^2 - u) / 2`` times a share, the integral of ``e- d(e+)`` over the cell
    is ``p n (s- - s+)`` times that of ``(t - u) (u - 1/2)``, s relative to the share. The AUC by
    the lines is less by as much.

    Parameters
    ----------
    ends : the densities at the first and the last inner edge, shape (..., 2) each.
    """
    widths = geometry.widths[1:-1]
    inner = shares[..., 1:-1]
    density = inner / widths
    # at an edge, on the line through the middles of both cells beside it
    weights = widths[1:] / (widths[1:] + widths[:-1])
    between = weights * density[..., :-1] + (1 - weights) * density[..., 1:]
    low, high = (each[..., np.newaxis] for each in ends)
    rise = np.diff(np.concatenate([low, between, high], axis=-1), axis=-1) * widths
    # a density that is linear over the cell is nowhere below 0
    positives, negatives = np.moveaxis(np.clip(rise, -2 * inner, 2 * inner), -2, 0)
    errors = np.zeros((*shares.shape[:-2], shares.shape[-1]))
    inside = inner[..., 1, :] * positives - inner[..., 0, :] * negatives
    errors[..., 1:-1] = geometry.bends[1:-1] * inside
    return errors


def _powers(shares: Floats, distances: Floats) -> Floats:
    """The powers of the distance to an end that the classes' shares follow, shape (..., 2).

    Parameters
    ----------
    shares : of the end cell and its neighbour, shape (..., 2, 2).
    distances : the logarithms of their inner edges' distances from the end, shape (2,).
    """
    ratio = np.maximum(shares.sum(axis=-1), 1e-300) / np.maximum(shares[..., 0], 1e-300)
    powers = np.log(ratio) / (distances[1] - distances[0])
    return np.asarray(np.clip(powers, LEAST_POWER, LARGEST_POWER))


def _of_powers(powers: Floats) -> Floats:
    """``1/2 + b/(a + b) - b/(b + 1) - 1/(a + 1)``, a of negatives and b of positives, shape (...).

    It is the integral of ``e- d(e+)`` in a lower end cell where ``F- = n r^a`` and ``F+ = p r^b``,
    r the distance from the end over the cell's width, divided by ``p n``; in an upper one, where
    ``1 - F`` are such, its sign is changed.
    """
    rising, falling = powers[..., 0], powers[..., 1]
    share = rising / (rising + falling)
    return np.asarray(share - rising / (rising + 1) - 1 / (falling + 1) + 0.5)


@lru_cache(maxsize=64)
def _geometry(scale: ScoreScale) -> LineGeometry:
    """Of a scale with both ends; scales are compared by identity."""
    knots, low, high = scale.knots, float(scale.low or 0.0), float(scale.high or 0.0)
    ends = np.concatenate([[low], knots, [high]])
    below = np.log(np.maximum(ends - low, 1e-300))
    above = np.log(np.maximum(high - ends, 1e-300))
    log_odds = np.clip(below - above, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
    widths = np.diff(log_odds)
    parts = (np.arange(POINTS) + 0.5) / POINTS
    points = log_odds[:-1, np.newaxis] + widths[:, np.newaxis] * parts
    scores = low + (high - low) / (1 + np.exp(-points))
    lines = np.clip((scores - ends[:-1, np.newaxis]) / np.diff(ends)[:, np.newaxis], 0.0, 1.0)
    bends = np.mean((lines - parts) * (parts - 0.5), axis=-1)
    distances = np.array([below[1:3], above[-2:-4:-1]])
    return LineGeometry(bends, np.maximum(widths, 1e-12), distances)
