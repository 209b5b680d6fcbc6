"""Distribution functions of scores between the edges of cells, by monotone cubic interpolation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike

from tacit.arrays import Floats, Integers
from tacit.metrics.cells.score_scale import cells_of, with_ends

DEGREE = 3
GAUSS_POINTS, GAUSS_WEIGHTS = leggauss(DEGREE)  # type: ignore[no-untyped-call]
"""Nodes and weights on [-1, 1] that integrate polynomials of degree 5 exactly."""


@dataclass(frozen=True, eq=False)
class ScoreDistribution:
    """The share of a class's records that score below s, for every score s.

    Between edges it is the monotone cubic of Fritsch and Butland (1984), which neither overshoots
    nor falls. In the open cells at both ends the score enters as ``w / (w + distance)``, with w the
    width of the neighbouring cell, so that every finite score has a value.

    Parameters
    ----------
    edges : the inner edges of the cells, ascending, shape (B-1,), B at least 2; with an open end at
        least 3.
    values : the share of records below each inner edge, nondecreasing from 0 to 1 (of linear
        lines, anywhere from 0 to 1), shape (..., B-1).
    low, high : the least and the largest possible score; None for an open end.

    Raises
    ------
    ValueError : for shapes that do not agree, edges that do not ascend, and values that fall or lie
        outside [0, 1].

    Examples
    --------
    >>> uniform = ScoreDistribution(np.array([0.25, 0.5, 0.75]), np.array([0.25, 0.5, 0.75]), 0, 1)
    >>> uniform.at([0.0, 0.1, 0.5, 1.0]).tolist()
    [0.0, 0.1, 0.5, 1.0]
    """

    edges: Floats
    values: Floats
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        least = 2 if self.low is None or self.high is None else 1
        if self.edges.ndim != 1 or self.edges.size < least:
            raise ValueError(
                f"there must be at least {least} inner edges, got shape {self.edges.shape}"
            )
        if self.values.shape[-1:] != self.edges.shape:
            raise ValueError(
                f"values must have shape (..., {self.edges.size}), got {self.values.shape}"
            )
        if not np.all(np.diff(self._knots) > 0):
            raise ValueError("edges must ascend between the least and the largest score")
        self._check_values()

    def _check_values(self) -> None:
        if not np.all(self._reached[..., 1:] >= self._reached[..., :-1]):
            raise ValueError("values must be nondecreasing from 0 to 1")

    def at(self, scores: ArrayLike) -> Floats:
        """The distribution function at these scores of shape (M,), shape (..., M)."""
        cells, part = self.places(scores)
        third, second, first, start = self.coefficients[..., cells]
        # Horner's rule: start + t (first + t (second + t third))
        value = start + part * (first + part * (second + part * third))
        return np.clip(value, 0.0, 1.0)

    def places(self, scores: ArrayLike) -> tuple[Integers, Floats]:
        """The cell of every score, and which part of it lies below, shape (M,) each."""
        numbers = np.asarray(scores, dtype=np.float64)
        cells = cells_of(numbers, self.edges)
        return cells, self._part(numbers, cells)

    def area_above(self, other: ScoreDistribution) -> Floats:
        """The probability that a draw of this one scores above a draw of ``other``, shape (...).

        The integral of ``other`` over this distribution, ``sum over cells of the integral of
        G(t) dF(t)``, exactly: a cubic times a square has degree 5.
        """
        area = np.zeros(np.broadcast_shapes(self.values.shape[:-1], other.values.shape[:-1]))
        for point, weight in zip(GAUSS_POINTS, GAUSS_WEIGHTS, strict=True):
            part = (point + 1) / 2
            third, second, first, start = other.coefficients
            below = start + part * (first + part * (second + part * third))
            third, second, first, _ = self.coefficients
            density = first + part * (2 * second + part * 3 * third)
            area = area + weight / 2 * np.sum(below * density, axis=-1)
        return area

    def _part(self, scores: Floats, cells: Integers) -> Floats:
        """Which part of its cell lies below a score, from 0 to 1."""
        knots = self._knots
        start, width = knots[cells], np.diff(knots)[cells]
        part = (scores - start) / width
        if self.low is None:
            tail = cells == 0
            below = self.edges[0] - scores[tail]
            part[tail] = width[tail] / (width[tail] + below)
        if self.high is None:
            tail = cells == self.edges.size
            above = scores[tail] - self.edges[-1]
            part[tail] = above / (width[tail] + above)
        return np.clip(part, 0.0, 1.0)

    @cached_property
    def _knots(self) -> Floats:
        """All edges, with the ends, shape (B+1,)."""
        return with_ends(self.edges, self.low, self.high)

    @cached_property
    def _reached(self) -> Floats:
        """The values at all cell edges, shape (..., B+1)."""
        end = np.zeros((*self.values.shape[:-1], 1))
        return np.concatenate([end, self.values, end + 1.0], axis=-1)

    @cached_property
    def coefficients(self) -> Floats:
        """Of powers 3 to 0 of the part of a cell, shape (4, ..., B)."""
        from scipy.interpolate import PchipInterpolator  # noqa: PLC0415 (0.2 seconds to import)

        # scipy inverts slopes: that of a subnormal step is infinite, which gives the limit
        with np.errstate(over="ignore"):
            curve = PchipInterpolator(self._knots, self._reached, axis=-1)
        by_width = np.diff(self._knots) ** np.arange(DEGREE, -1, -1)[:, np.newaxis]
        # scipy puts the powers first and the cells second
        powers = np.moveaxis(np.asarray(curve.c), 1, -1)
        lead = (1,) * (powers.ndim - 2)
        return powers * by_width.reshape(DEGREE + 1, *lead, -1)


class StraightDistribution(ScoreDistribution):
    """The same with linear pieces between the edges.

    Where both classes are linear, a cell whose records all have one score hides nothing: pairs
    of two linear functions and steps inside it cancel. Values of noisy counts may fall: to make
    them rise moves them, and the product of both classes' moves has a mean.
    """

    def _check_values(self) -> None:
        if not np.all((self.values >= 0) & (self.values <= 1)):
            raise ValueError("values must be from 0 to 1")

    @cached_property
    def coefficients(self) -> Floats:
        """Of powers 3 to 0 of the part of a cell, shape (4, ..., B)."""
        rise = np.diff(self._reached, axis=-1)
        bent = np.zeros_like(rise)
        return np.stack([bent, bent, rise, self._reached[..., :-1]])


def below_edges(counts: Floats) -> Floats:
    """The parts of noisy counts below the cells' borders, shape (..., B+1), each in [0, 1]."""
    cumulative = np.cumsum(counts, axis=-1)
    total = np.where(cumulative[..., -1:] > 0, cumulative[..., -1:], 1.0)
    inner = np.clip(cumulative / total, 0.0, 1.0)[..., :-1]
    edge = np.zeros_like(cumulative[..., :1])
    return np.concatenate([edge, inner, edge + 1], axis=-1)


def rising_fractions(counts: Floats) -> Floats:
    """A distribution function at the cells' borders, shape (..., B+1), from noisy counts.

    The mean of the smallest rising sequence above the cumulative counts and the largest below.
    """
    cumulative = np.cumsum(counts, axis=-1)
    total = np.where(cumulative[..., -1:] > 0, cumulative[..., -1:], 1.0)
    fractions = np.clip(cumulative / total, 0.0, 1.0)
    over = np.maximum.accumulate(fractions, axis=-1)
    under = np.flip(np.minimum.accumulate(np.flip(fractions, axis=-1), axis=-1), axis=-1)
    inner = (over + under)[..., :-1] / 2
    edge = np.zeros_like(fractions[..., :1])
    return np.concatenate([edge, inner, edge + 1], axis=-1)
