"""The least error of a curve by any weights of a record in sums with Laplace noise, numerically.

A class of n records spreads evenly over N cells. A strategy A has a row for each sum and a column
for each cell, whose absolute values add up to at most 1, so that noise of scale 1 / epsilon on each
sum costs epsilon. The best linear estimate of the cells, whose counts vary by n / N, has the
covariance ``(epsilon^2 A'A / 2 + N / n)^-1``; the parts below all edges follow from it. Gradient
steps (Adam) start from a tree of two levels and change every weight. The end is a local optimum,
not a bound.

    python -m benchmarks.curve_strategies 24 32
"""

from __future__ import annotations

import math
import sys

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RECORDS, EPSILON, STEPS, RATE = 229_000, 1.0, 300, 0.02


def error_and_slope(strategy: Floats, records: float) -> tuple[float, Floats]:
    """The mean variance of the records below a place, and its derivative by every weight.

    Parameters
    ----------
    strategy : at least 0, shape (sums, cells); columns are scaled to add up to 1.
    records : of the class.
    """
    cells = strategy.shape[1]
    sizes = strategy.sum(axis=0)
    scaled, spread = strategy / sizes, records / cells
    covariance = np.linalg.inv(EPSILON**2 / 2 * scaled.T @ scaled + np.eye(cells) / spread)
    # centred prefix sums: a curve is about parts of a class
    prefix = np.tril(np.ones((cells, cells))) - np.arange(1, cells + 1)[:, np.newaxis] / cells
    # inside a cell, the mean of both ends less a sixth of the cell's variance; a Brownian bridge
    wanted = prefix.T @ prefix / cells - np.eye(cells) / (6 * cells)
    value = float(np.sum(covariance * wanted)) + spread / 6
    slope = -(EPSILON**2) * scaled @ (covariance @ wanted @ covariance)
    return value, (slope - np.sum(slope * scaled, axis=0)) / sizes


def improved(strategy: Floats, records: float) -> Floats:
    """The strategy after ``STEPS`` steps."""
    mean, square = np.zeros_like(strategy), np.zeros_like(strategy)
    strategy = strategy + 0.003 * np.random.default_rng(0).random(strategy.shape)
    for step in range(1, STEPS + 1):
        _, slope = error_and_slope(strategy, records)
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        size = RATE * (1 - (step - 1) / STEPS) / (1 - 0.9**step)
        moved = size * mean / (np.sqrt(square / (1 - 0.999**step)) + 1e-12)
        strategy = np.maximum(strategy - moved, 0.0)
    return strategy


def tree(groups: int, cells: int) -> Floats:
    """Two levels with equal parts of epsilon: so many groups of so many cells."""
    alone = np.eye(groups * cells)
    return np.concatenate([alone.reshape(groups, cells, -1).sum(axis=1), alone]) / 2


def main() -> None:
    """Print the errors, in records, of a tree and of what the search makes of it."""
    groups, cells = int(sys.argv[1]), int(sys.argv[2])
    strategy = tree(groups, cells)
    for name, each in (("tree", strategy), ("search", improved(strategy, RECORDS))):
        value, _ = error_and_slope(each, RECORDS)
        print(f"{name}: {math.sqrt(value):.2f} records")


if __name__ == "__main__":
    main()
