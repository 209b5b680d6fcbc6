"""The looks of two rounds: counts of both classes, and the parts of epsilon that they cost.

A look is a release of both classes' counts in cells, and of the class totals, for a part of
epsilon. The first has equal cells of positions; a later one has the same, or cells between knots
that the server publishes (``choices``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.metrics import curves
from tacit.metrics.cells.score_scale import PROBABILITY, ScoreScale
from tacit.privacy.sampling.distributions import discrete_laplace_variance
from tacit.protocols.shared.cells import KNOTS
from tacit.protocols.shared.trees.levels import CellNoise, Levels
from tacit.protocols.shared.zoomed_cells import FINE_HEIGHT, lone_crowds

LOOK_CELLS = (48, 64)
"""Numbers of equal cells of positions for many clients and for few: more of them hide less and are
noisier."""

SPLIT_CELLS = (64, 128)
"""Numbers of cells of which some were split, for many clients and for few."""

SMALL_CELLS = 16
"""Number of equal cells of positions where classes are small: the product of both functions' errors
grows with their number."""

MANY_CELLS = tuple(sorted({SMALL_CELLS, *LOOK_CELLS, *SPLIT_CELLS, 1 << FINE_HEIGHT}))
"""All numbers of cells of a look."""

FEW_CLIENTS = 20
"""Largest number of clients over epsilon squared that counts as few. Their first look is at fine
cells that part rounded scores (``zoomed_cells``)."""

FIRST_LOOKS = (0.15, 0.12)
"""Part of epsilon for the first look, for many clients and for few."""

MORE_LOOKS = (0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4)
"""Parts of epsilon between which the server chooses for a further look, beside none at all."""

SIZING_LOOK = 0.15
"""Part of epsilon for a look at few cells where it is not yet clear whether both classes are large
enough for two rounds."""

MAX_LOOKS = 3
"""Largest number of looks of a run."""

HUNDREDTHS = 100
"""The number's part of epsilon is a multiple of one over this."""

TOTALS_PART = 0.2
"""Part of a look's epsilon for the class totals; with none their noise would bias the AUC."""

SMALL_TOTALS_PART = 0.35
"""The same where cells are ``SMALL_CELLS`` or fewer: small classes show in their totals only."""


def left_of(spent: float) -> float:
    """The part of epsilon that is left, one of ``NUMBER_PARTS``.

    Examples
    --------
    >>> left_of(0.12 + 0.05)
    0.83
    """
    return round((1 - spent) * HUNDREDTHS) / HUNDREDTHS


LOOK_PARTS = tuple(sorted({*FIRST_LOOKS, *MORE_LOOKS}))
"""What a look may cost. All parts of a run add up to at most epsilon, which a party checks beside
each of them."""

CLOSING_PARTS = tuple(
    sorted({left_of(first + more) for first in FIRST_LOOKS for more in (0.0, *MORE_LOOKS)})
)
"""What a histogram may cost that ends the run after one look or two."""

NUMBER_PARTS = tuple(part / HUNDREDTHS for part in range(1, HUNDREDTHS))
"""What the number may cost."""


def are_few(clients: int, epsilon: float) -> bool:
    """Whether clients count as few, from public figures only."""
    return clients <= FEW_CLIENTS * epsilon**2


def look_cells(clients: int, epsilon: float) -> int:
    """The number of equal cells.

    Examples
    --------
    >>> look_cells(10, 1.0), look_cells(1000, 1.0)
    (64, 48)
    """
    return LOOK_CELLS[are_few(clients, epsilon)]


def split_cells(clients: int, epsilon: float) -> int:
    """The number of cells of which some were split."""
    return SPLIT_CELLS[are_few(clients, epsilon)]


def look_levels(cells: int, epsilon: float) -> Levels:
    """A look's cells, and one group of all cells, which is the class total."""
    part = SMALL_TOTALS_PART if cells <= SMALL_CELLS else TOTALS_PART
    return Levels(cells, 1, (1 - part) * epsilon, part * epsilon)


@dataclass(frozen=True, eq=False)
class Cells:
    """Where the cells of a look lie.

    Parameters
    ----------
    count : B.
    scale : whose positions have B equal cells.
    published : whether the server published the scale's knots; functions of a score are then
        straight between them.
    parts_ties : whether the cells part rounded scores as far as is known.
    """

    count: int
    scale: ScoreScale
    published: bool = False
    parts_ties: bool = False

    @property
    def fields(self) -> dict[str, Any]:
        """What a query says of them."""
        return {KNOTS: self.scale.knots} if self.published else {}

    @property
    def edges(self) -> Floats:
        """The lower edges as scores, shape (B,)."""
        return self.scale.scores(np.arange(self.count) / self.count)

    @property
    def knotted(self) -> ScoreScale:
        """A scale with these cells as its only ones."""
        if self.published:
            return self.scale
        knots = self.scale.scores(np.arange(1, self.count) / self.count)
        return ScoreScale(knots, self.scale.low, self.scale.high)

    @property
    def single(self) -> NDArray[np.bool_]:
        """Which cells hold one double, shape (B,)."""
        return self.scale.single_doubles if self.published else np.zeros(self.count, dtype=bool)


def left_variance(counts: Floats, noise: CellNoise, place: Cells | None = None) -> float:
    """What the noise of looks leaves in the AUC by both rounds: products of two errors.

    One product is that of both functions' errors, ``integral of dF- d(dF+)``. The others are those
    of a class size's relative error with that of its function.

    Parameters
    ----------
    counts : consistent counts of positives and negatives, shape (2, B).
    noise : in each class's cells.
    place : of the cells; between published knots, noise moves crowds of one score too.
    """
    sizes = np.maximum(counts.sum(axis=-1), 1.0)
    by_class = curves.cell_influences(counts[0], counts[1])
    relative = sum(
        noise.total / size**2 * float(noise.variance_of(np.nan_to_num(each)))
        for size, each in zip(sizes, by_class, strict=True)
    )
    lone = 0.0 if place is None else float(lone_variances(counts, noise, place).sum())
    return relative + lone + _product_variance(counts, noise) / float(sizes.prod()) ** 2


def lone_variances(counts: Floats, noise: CellNoise, place: Cells) -> Floats:
    """The AUC's variance by what noise does to crowds of one score, by cell, shape (B,).

    In a cell whose p positives and n negatives all have one score, at the part u of the cell, noise
    moves the AUC by ``(1/2 - u) (p dn - n dp) / (P N)``, u taken as uniform, and in a cell at an
    end of the scale as that end. A cell of a single double has its records in the middle.
    """
    if not place.published:
        return np.zeros(place.count)
    variance = float(noise.cells[0])
    lone = np.where(place.single, 0.0, lone_crowds(counts, math.sqrt(variance)))
    pairs = float(np.maximum(counts.sum(axis=-1), 1.0).prod())
    off_middle = np.full(place.count, 1 / 12)  # the mean of (1/2 - u)^2
    off_middle[[0, -1]] = 1 / 4
    return np.asarray(variance * np.sum(lone**2, axis=-2) * off_middle / pairs**2)


def _product_variance(counts: Floats, noise: CellNoise) -> float:
    """The variance of ``integral of dF- d(dF+)``, times ``(P N)^2``.

    With S the sums over lower cells and half a cell, and f the classes' fractions in cells, noise z
    moves F- by ``(S - (S f-) 1') z- / N`` and the steps of F+ by ``(I - f+ 1') z+ / P``. Their
    product is a form ``z-' Q z+``, of variance ``trace(C Q C Q')``, C the covariance of a class's
    noise.
    """
    cells = counts.shape[-1]
    ones, even = np.ones(cells), np.full((cells, cells), 1 / cells)
    covariance = noise.cells[0] * (np.eye(cells) - even) + noise.total / cells * even
    filled = np.maximum(counts, 0.0)
    steps, below = filled / np.maximum(filled.sum(axis=-1, keepdims=True), 1.0), np.tri(cells, k=-1)
    sums = below + np.eye(cells) / 2
    by_negatives = sums - np.outer(sums @ steps[1], ones)
    form = by_negatives.T @ (np.eye(cells) - np.outer(steps[0], ones))
    return float(np.sum((covariance @ form @ covariance) * form))


def fine_place(scale: str, layout: ScoreScale) -> Cells:
    """Fixed fine cells; of probabilities they are centred on numbers with two digits."""
    return Cells(layout.cells, layout, published=True, parts_ties=scale == PROBABILITY)


@dataclass(frozen=True, eq=False)
class Counts:
    """The noisy counts of one look, or of several together.

    Parameters
    ----------
    cells : of positives and negatives, summed over clients, shape (..., 2, B).
    totals : of both classes, shape (..., 2, 1).
    noise : the noise in each class's cells and total.
    place : where the cells lie.
    """

    cells: Floats
    totals: Floats
    noise: CellNoise
    place: Cells

    @property
    def consistent(self) -> Floats:
        """The cells that agree best with both."""
        return self.noise.reconciled(self.cells, self.totals)

    @property
    def mean(self) -> Floats:
        """The consistent cells, the mean of several replicates, shape (2, B)."""
        cells = self.consistent
        return np.asarray(cells.reshape(-1, *cells.shape[-2:]).mean(axis=0))

    def with_look(self, other: Counts) -> Counts:
        """The inverse-variance means with another look, of totals alone where its cells differ."""
        first, second = self.noise, other.noise
        by_totals = second.group / (first.group + second.group)
        totals = by_totals * self.totals + (1 - by_totals) * other.totals
        noise = combined_noise(first, second, self.place is other.place)
        if self.place is not other.place:
            return Counts(other.cells, totals, noise, other.place)
        by_cells = float(second.cells[0] / (first.cells[0] + second.cells[0]))
        cells = by_cells * self.cells + (1 - by_cells) * other.cells
        return Counts(cells, totals, noise, self.place)


def combined_noise(first: CellNoise, second: CellNoise, same_cells: bool = True) -> CellNoise:
    """The noise of the inverse-variance means of two looks, of totals alone at other cells."""
    cells = 1 / (1 / first.cells + 1 / second.cells) if same_cells else second.cells
    return CellNoise(cells, 1 / (1 / first.group + 1 / second.group), second.starts)


def number_variance(clients: int, units: int, epsilon: float) -> float:
    """Of the noise in a sum over clients of numbers in units, with their rounding."""
    return clients * (float(discrete_laplace_variance(units / epsilon)) + 1 / 12)
