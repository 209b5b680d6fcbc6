"""Finer cells where mass crowds, from noisy counts alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.metrics.score_scale import ScoreScale

HIDDEN_IN_CELL = 0.05
"""Error of the AUC by the product of both functions' interpolation in a cell, over the cube of the
product of both classes' shares in it. Measured on smooth densities of several widths: 0.026 normal,
0.05 to 0.2 with the peak of a Laplace density."""

HIDDEN_BESIDE = 0.02
"""The same over that product itself, in cells that stay whole beside split ones: densities over
positions jump there."""

HIDDEN_TO_NOISE = 0.1
"""Largest error by a cell, over the error by noise, at which the cell is not split."""

NOISE_ERRORS = 2.0
"""Standard errors of its noise that are taken off a count before its cell counts as crowded."""


def shares_of(counts: Floats, taken_off: float = 0.0) -> Floats:
    """Both classes' parts in every cell, at least 0, shape (..., 2, B)."""
    sizes = np.maximum(counts.sum(axis=-1, keepdims=True), 1.0)
    return np.clip((counts - taken_off) / sizes, 0.0, 1.0)


def hidden_in_cells(counts: Floats) -> Floats:
    """What the interpolation in every cell hides from the AUC, about, shape (..., B)."""
    return np.asarray(HIDDEN_IN_CELL * np.prod(shares_of(counts), axis=-2) ** 3)


def crowded_cells(counts: Floats, cell_error: float, auc_error: Floats) -> NDArray[np.bool_]:
    """Which cells are to be split, for each hides too much, or would beside such ones, (..., B).

    None where no cell hides more than a part of the AUC's error by noise.

    Parameters
    ----------
    counts : positives, then negatives, shape (..., 2, B).
    cell_error : the standard deviation of a count's noise.
    auc_error : the standard deviation of the AUC by noise, shape (...).
    """
    most = HIDDEN_TO_NOISE * auc_error[..., np.newaxis]
    products = np.prod(shares_of(counts, NOISE_ERRORS * cell_error), axis=-2)
    crowded = HIDDEN_IN_CELL * products**3 > most
    beside = crowded.any(axis=-1, keepdims=True) & (HIDDEN_BESIDE * products > most)
    return np.asarray(crowded | beside)


def zoomed(
    scale: ScoreScale, counts: Floats, crowded: NDArray[np.bool_], cells: int
) -> ScoreScale | None:
    """A scale with crowded cells split; None where no two scores are left to be told apart.

    Each crowded cell is split in as many as half of the new cells allow, a power of two. Of the
    others, neighbours that hold least are joined, or those beside crowded ones are halved, until
    the number is right.

    Parameters
    ----------
    scale : whose equal cells of positions were counted in.
    counts : positives, then negatives, shape (2, B).
    crowded : shape (B,).
    cells : of the new scale, at least B.
    """
    size = counts.shape[-1]
    pieces = 1 << ((cells // 2) // max(int(crowded.sum()), 1)).bit_length() - 1
    split = [_pieces(scale, int(cell), size, pieces) for cell in np.flatnonzero(crowded)]
    inner = np.concatenate([*split, np.zeros(0)])
    if not inner.size:
        return None
    shares = np.where(crowded, np.inf, np.max(shares_of(counts), axis=-2))
    missing = cells - 1 - inner.size
    edges = scale.scores(np.arange(1, size) / size)
    halves = _halves(scale, crowded, max(missing - edges.size, 0))
    knots = np.concatenate([inner, _joined(edges, shares, missing), halves])
    knots = np.sort(knots)
    if knots.size != cells - 1 or not np.all(np.isfinite(knots)) or np.any(np.diff(knots) <= 0):
        return None
    return ScoreScale(knots, scale.low, scale.high)


def _pieces(scale: ScoreScale, cell: int, size: int, pieces: int) -> Floats:
    """Edges inside a cell: even by score, or by the scale's positions in an open one.

    Fewer, down to none, where so many pieces are not apart as doubles.
    """
    low, high = scale.scores(np.array([cell, cell + 1]) / size)
    while pieces > 1:
        if np.isfinite(low) and np.isfinite(high):
            edges = np.linspace(low, high, pieces + 1)
        else:
            edges = scale.scores((cell + np.linspace(0, 1, pieces + 1)) / size)
        if np.all(np.diff(edges) > 0):
            return edges[1:-1]
        pieces //= 2
    return np.zeros(0)


def _joined(edges: Floats, shares: Floats, count: int) -> Floats:
    """At most ``count`` of the edges: between the neighbours that hold least they are left out."""
    kept, held = edges.tolist(), shares.tolist()
    while len(kept) > count:
        index = min(range(len(kept)), key=lambda edge: held[edge] + held[edge + 1])
        if not np.isfinite(held[index] + held[index + 1]):
            break
        held[index : index + 2] = [held[index] + held[index + 1]]
        del kept[index]
    return np.array(kept, dtype=np.float64)


def _halves(scale: ScoreScale, crowded: NDArray[np.bool_], count: int) -> Floats:
    """Edges that halve the cells next to crowded ones."""
    size, split = crowded.size, np.flatnonzero(crowded)
    away = np.abs(np.arange(size)[:, np.newaxis] - split).min(axis=-1)
    order = [int(cell) for cell in np.argsort(away, kind="stable") if away[cell]]
    middles = [_pieces(scale, cell, size, 2) for cell in order[: 2 * count]]
    return np.concatenate([np.zeros(0), *[each for each in middles if each.size][:count]])
