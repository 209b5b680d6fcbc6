"""Finer cells where mass concentrates, from noisy counts alone.

Fixed fine cells for a round of many records, each centred on a round number where there is one.

Where scores have two digits, or one leading digit more near an end, a cell of these holds one of
them, and linear pieces between its edges hide nothing (docs, section 5c). There is one layout for
scores spread over the middle, one for low ones and its mirror image, and one for scores of any
kind; all are public and fixed, and noisy counts choose among them only.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.metrics import curves
from tacit.metrics.cells.score_distribution import ScoreDistribution
from tacit.metrics.cells.score_scale import PROBABILITY, ScoreScale, named_scale

HIDDEN_IN_CELL = 0.05
"""Error of the AUC by the product of both functions' interpolation in a cell, over the cube of the
product of both classes' shares in it. Measured on smooth densities of several widths: 0.026 normal,
0.05 to 0.2 with the peak of a Laplace density."""

HIDDEN_BESIDE = 0.02
"""The same over that product itself, in cells that stay whole next to split ones: densities over
positions jump there."""

HIDDEN_BY_TIE = 0.1
"""Error of the AUC by a score that both classes share in a cell, over the product of both classes'
shares that have it: functions jump there, and slopes at the cell's edges follow from its
neighbours. Measured next to cells with many records: up to 0.1."""

HIDDEN_BY_LINES = 0.01
"""Error of the AUC by linear functions in a cell, over the square of the product of both classes'
shares in it. Measured on smooth densities in fine cells: 0.003 to 0.02."""

SHOWN_ERRORS = 5.0
"""Standard errors of its noise that a count exceeds where a cell counts as not empty."""

HIDDEN_TO_NOISE = 0.1
"""Largest error by a cell, over the error by noise, at which the cell is not split."""

PIECES_A_NUMBER = 4
"""Number of pieces of a cell for which one number gets a cell with no other double."""

LARGEST_POWER = 15
"""Largest power of ten that is tried."""

NOISE_ERRORS = 2.0
"""Standard errors of its noise that are taken off a count before its cell counts as
concentrated."""

WON_ERROR = 0.1
"""How far from one half the fraction of pairs is that positives win between neighbouring scores,
about: that of a classifier with an AUC of 0.8 between two of its five to seven scores."""

ALONE_PART = 0.5
"""Least part of a cell's records that its neighbours lack where it stands alone."""

LONE_ERRORS = 4.0
"""Standard errors of its noise by which a concentration must differ from its neighbours' mean."""


def shares_of(counts: Floats, taken_off: float = 0.0) -> Floats:
    """Both classes' parts in every cell, at least 0, shape (..., 2, B)."""
    sizes = np.maximum(counts.sum(axis=-1, keepdims=True), 1.0)
    return np.clip((counts - taken_off) / sizes, 0.0, 1.0)


def hidden_in_cells(counts: Floats, linear: bool = False, taken_off: float = 0.0) -> Floats:
    """What the interpolation in every cell hides from the AUC, about, shape (..., B).

    Parameters
    ----------
    counts : positives, then negatives, shape (..., 2, B).
    linear : whether the functions are linear between edges.
    taken_off : what is first taken off a count.
    """
    products = np.prod(shares_of(counts, taken_off), axis=-2)
    hidden = HIDDEN_BY_LINES * products**2 if linear else HIDDEN_IN_CELL * products**3
    return np.asarray(hidden)


def concentrated_cells(
    counts: Floats, cell_error: float, auc_error: Floats, linear: bool = False
) -> NDArray[np.bool_]:
    """Which cells are to be split, for each hides too much, or would next to such ones, (..., B).

    None where no cell hides more than a part of the AUC's error by noise.

    Parameters
    ----------
    counts : positives, then negatives, shape (..., 2, B).
    cell_error : the standard deviation of a count's noise.
    auc_error : the standard deviation of the AUC by noise, shape (...).
    linear : whether functions are linear between edges.
    """
    most = HIDDEN_TO_NOISE * auc_error[..., np.newaxis]
    taken_off = NOISE_ERRORS * cell_error
    products = np.prod(shares_of(counts, taken_off), axis=-2)
    concentrated = hidden_in_cells(counts, linear, taken_off) > most
    if linear:  # linear functions of both classes cancel at a tie
        return np.asarray(concentrated)
    by_ties = HIDDEN_BY_TIE * tied_shares(counts, cell_error)
    concentrated |= by_ties > np.maximum(most, curves.HIDDEN_TIES)  # less is stated of any cells
    near = concentrated.any(axis=-1, keepdims=True) & (HIDDEN_BESIDE * products > most)
    return np.asarray(concentrated | near)


def lone_concentrations(counts: Floats, cell_error: float) -> Floats:
    """How much of every cell may be a concentration of one score, shape (..., 2, B).

    It shows in how far a count differs from its neighbours' mean.

    Parameters
    ----------
    counts : positives, then negatives, shape (..., 2, B), B at least 2.
    cell_error : the standard deviation of a count's noise.
    """
    beside = np.concatenate([counts[..., 1:2], counts, counts[..., -2:-1]], axis=-1)
    differing = np.abs(counts - (beside[..., :-2] + beside[..., 2:]) / 2)
    clear = np.maximum(differing - LONE_ERRORS * cell_error, 0.0)
    return np.asarray(np.minimum(clear, np.maximum(counts, 0.0)))


def tied_shares(counts: Floats, cell_error: float) -> Floats:
    """The product of both classes' shares of a cell that stands alone, else 0, shape (..., B).

    Parameters
    ----------
    counts, cell_error : as ``lone_concentrations`` takes them.
    """
    lone = lone_concentrations(counts, cell_error)
    alone = np.any(lone > ALONE_PART * np.maximum(counts, 0.0), axis=-2, keepdims=True)
    shares = lone / np.maximum(counts.sum(axis=-1, keepdims=True), 1.0)
    return np.prod(np.where(alone, shares, 0.0), axis=-2)


def several_variance(counts: Floats, cell_error: float, left_out: NDArray[np.bool_]) -> Floats:
    """What cells that stand alone hide by holding several scores, not one, shape (...).

    One that stands alone holds several with ``chance_of_several``; then positives win a fraction of
    its pairs that is ``WON_ERROR`` from one half.

    Parameters
    ----------
    counts, cell_error : as ``lone_concentrations`` takes them.
    left_out : cells that hold one double, or whose pairs are counted already, shape (..., B).
    """
    shares = np.where(left_out, 0.0, tied_shares(counts, cell_error))
    chance = curves.chance_of_several(np.mean(shares > 0, axis=-1))
    return np.asarray(chance * np.sum(shares**2, axis=-1) * WON_ERROR**2)


def zoomed(
    scale: ScoreScale,
    counts: Floats,
    concentrated: NDArray[np.bool_],
    cells: int,
    cell_error: float = 0.0,
) -> ScoreScale | None:
    """A scale with concentrated cells split; None where no two scores are left to be distinguished.

    Each concentrated cell is split in as many as half of the new cells allow, a power of two. Of
    the others, neighbours that hold least are joined, or those next to concentrated ones are
    halved, until the number is right.

    Parameters
    ----------
    scale : whose equal cells of positions were counted in.
    counts : positives, then negatives, shape (2, B).
    concentrated : shape (B,).
    cells : of the new scale, at least B.
    cell_error : the standard deviation of a count's noise.
    """
    size = counts.shape[-1]
    most = (cells // 2) // max(int(concentrated.sum()), 1)
    if not most:  # noisy counts far beyond their own sum: nothing is concentrated among all cells
        return None
    pieces = 1 << most.bit_length() - 1
    split = [_pieces(scale, int(cell), size, pieces) for cell in np.flatnonzero(concentrated)]
    inner = np.concatenate([*split, np.zeros(0)])
    if not inner.size:
        return None
    shares = np.where(concentrated, np.inf, _rough_shares(counts, cell_error))
    missing = cells - 1 - inner.size
    edges = scale.scores(np.arange(1, size) / size)
    halves = _halves(scale, concentrated, max(missing - edges.size, 0))
    borders = np.concatenate([inner, _joined(edges, shares, missing), halves])
    borders = np.sort(borders)
    if (
        borders.size != cells - 1
        or not np.all(np.isfinite(borders))
        or np.any(np.diff(borders) <= 0)
    ):
        return None
    return ScoreScale(borders, scale.low, scale.high)


def _rough_shares(counts: Floats, cell_error: float) -> Floats:
    """The larger share of every cell to the next power of two, 0 where noise hides it.

    Runs that see much the same counts then join the same cells.
    """
    shown = counts > SHOWN_ERRORS * cell_error
    shares = np.max(np.where(shown, shares_of(counts), 0.0), axis=-2)
    rough = 2.0 ** np.ceil(np.log2(np.maximum(shares, 1e-300)))
    return np.asarray(np.where(shares > 0, rough, 0.0))


def _pieces(scale: ScoreScale, cell: int, size: int, pieces: int) -> Floats:
    """Edges inside a cell: even by score, or by the scale's positions in an open one.

    The roundest numbers get cells with no other double. There are fewer edges, down to none, where
    so many pieces are not apart as doubles.
    """
    low, high = scale.scores(np.array([cell, cell + 1]) / size)
    alone = around_round_numbers(scale, cell, size, max(pieces // PIECES_A_NUMBER, 1))
    even = _even_pieces(scale, cell, size, max(pieces - alone.size, 1))
    return _filled(np.union1d(even, alone), low, high, pieces - 1)


def _filled(edges: Floats, low: float, high: float, count: int) -> Floats:
    """Further edges that halve the widest pieces, until there are so many or no doubles between."""
    while edges.size < count and np.isfinite(high - low):
        ends = np.concatenate([[low], edges, [high]])
        widest = int(np.argmax(np.diff(ends)))
        middle = ends[widest] + (ends[widest + 1] - ends[widest]) / 2
        if not ends[widest] < middle < ends[widest + 1]:
            break
        edges = np.insert(edges, widest, middle)
    return edges


def _even_pieces(scale: ScoreScale, cell: int, size: int, pieces: int) -> Floats:
    """Edges that are even by score, or by the scale's positions in an open cell."""
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


def round_numbers(low: float, high: float, most: int) -> Floats:
    """The multiples in [low, high) of the least power of ten that has at most so many, but some.

    Examples
    --------
    >>> round_numbers(0.295, 0.306, 5).tolist()
    [0.3]
    """
    if not -np.inf < low < high < np.inf:
        return np.zeros(0)
    # of a power wider than the cell there is at most one multiple, also one of the lesser powers
    width = min(max(float(high) - float(low), 10.0**-LARGEST_POWER), 10.0**LARGEST_POWER)
    fewest_digits = max(-math.ceil(math.log10(width)) - 1, -LARGEST_POWER)
    best = np.zeros(0)
    for digits in range(fewest_digits, LARGEST_POWER + 1):
        # an exact power of ten, and a division that is rounded once: the double that is written
        first, last = low * 10.0**digits, high * 10.0**digits
        if last - first > most + 1 or abs(last) > 2.0**53 or abs(first) > 2.0**53:
            break
        multiples = np.arange(np.floor(first), np.ceil(last) + 1)
        numbers = multiples / 10.0**digits if digits > 0 else multiples * 10.0**-digits
        inside = numbers[(numbers >= low) & (numbers < high)]
        if inside.size > most:
            break
        best = inside if inside.size else best
    return best


def around_round_numbers(scale: ScoreScale, cell: int, size: int, most: int) -> Floats:
    """Edges inside a cell that part at most so many round numbers from all other doubles.

    Parameters
    ----------
    scale : of whose equal cells, ``size`` of them, it is one.
    """
    low, high = scale.scores(np.array([cell, cell + 1]) / size)
    numbers = round_numbers(low, high, most)
    edges = np.union1d(numbers, np.nextafter(numbers, np.inf))
    return np.asarray(edges[(edges > low) & (edges < high)])


def _joined(edges: Floats, shares: Floats, count: int) -> Floats:
    """At most ``count`` of the edges: between the neighbours that hold least they are left out."""
    remaining, masses = edges.tolist(), shares.tolist()
    while len(remaining) > count:
        index = min(range(len(remaining)), key=lambda edge: masses[edge] + masses[edge + 1])
        if not np.isfinite(masses[index] + masses[index + 1]):
            break
        masses[index : index + 2] = [masses[index] + masses[index + 1]]
        del remaining[index]
    return np.array(remaining, dtype=np.float64)


def _halves(scale: ScoreScale, concentrated: NDArray[np.bool_], count: int) -> Floats:
    """Edges that halve the cells next to concentrated ones."""
    size, split = concentrated.size, np.flatnonzero(concentrated)
    away = np.abs(np.arange(size)[:, np.newaxis] - split).min(axis=-1)
    order = [int(cell) for cell in np.argsort(away, kind="stable") if away[cell]]
    middles = [_even_pieces(scale, cell, size, 2) for cell in order[: 2 * count]]
    return np.concatenate([np.zeros(0), *[each for each in middles if each.size][:count]])


FINE_HEIGHT = 7
"""A fine round has ``2**FINE_HEIGHT`` cells."""

HUNDREDTHS = tuple((2 * k + 1) / 200 for k in range(100))
"""Edges of cells that are centred on numbers with two digits."""

MIDDLE_TAIL = (
    *(1e-10, 1e-7, 5e-6, 5e-5, 2e-4, 5e-4, 9e-4),
    *(0.0014, 0.002, 0.0027, 0.0036, 0.0075, 0.0125, 0.03),
)
"""Further edges of the middle layout towards 0; those towards 1 mirror all but the first."""

LOW = (
    *(1e-9, 1e-7, 1e-6, 1e-5, 5e-5, 0.00015, 0.00025, 0.00035, 0.00045, 0.00055, 0.00065),
    *(0.00075, 0.00085, 0.00095, 0.00105, 0.00125, 0.00175, 0.00225, 0.00275, 0.00325),
    *(0.00375, 0.00425, 0.00475, 0.0059, *((2 * k + 1) / 2000 for k in range(1, 20))),
    *(0.0225, 0.025, 0.0275, 0.0325, 0.035, 0.0375, 0.0425, 0.045, 0.0475),
    *(*HUNDREDTHS[5:60], 0.61, 0.62, 0.64, 0.66, 0.7, 0.74, 0.78, 0.82, 0.86, 0.9, 0.94),
    *(0.965, 0.975, 0.985, 0.995, 0.998, 0.9995, 0.9999),
    *(0.68, 0.72),
)
"""Edges for scores most of which lie below a tenth: three digits below 0.02, two above."""


@lru_cache(maxsize=8)
def fine_scales(name: str) -> tuple[ScoreScale, ...]:
    """The layouts for scores of a scale of this name."""
    base = named_scale(name)
    cells = 1 << FINE_HEIGHT
    spread = base.scores(np.arange(1, cells) / cells)
    edges = [spread]
    if name == PROBABILITY:
        mirrored = tuple(1 - edge for edge in MIDDLE_TAIL[1:])
        middle = np.sort(np.array([*MIDDLE_TAIL, *HUNDREDTHS, *mirrored]))
        low = np.sort(np.array(LOW))
        edges = [middle, low, np.sort(1 - low), spread]
    return tuple(ScoreScale(borders, base.low, base.high) for borders in edges)


def recounted(counts: Floats, scale: ScoreScale, finer: ScoreScale) -> Floats:
    """The counts in equal cells of one scale spread over those of another, shape (..., 2, B').

    Parameters
    ----------
    counts : in equal cells of positions on ``scale``, at least 0, shape (..., 2, B).
    """
    cells, sizes = counts.shape[-1], counts.sum(axis=-1, keepdims=True)
    fractions = np.cumsum(counts, axis=-1) / np.where(sizes > 0, sizes, 1.0)
    below = np.clip(fractions[..., :-1], 0.0, 1.0)
    function = ScoreDistribution(np.arange(1, cells) / cells, below)
    reached = function.at(scale.positions(finer.borders))
    made = np.diff(np.maximum.accumulate(reached, axis=-1), axis=-1, prepend=0.0, append=1.0)
    return np.asarray(made * sizes)


def best_scales(name: str, counts: Floats, scale: ScoreScale) -> list[ScoreScale]:
    """The layout with the least sum of squared shares of pairs in its cells, for each replicate.

    Parameters
    ----------
    counts : positives, then negatives, in equal cells of ``scale``, shape (R, 2, B).
    """
    scales = fine_scales(name)
    shares = shares_of(np.maximum(counts, 0.0))
    concentrations = [
        np.sum(np.prod(recounted(shares, scale, each), axis=-2) ** 2, axis=-1) for each in scales
    ]
    return [scales[index] for index in np.argmin(concentrations, axis=0)]
