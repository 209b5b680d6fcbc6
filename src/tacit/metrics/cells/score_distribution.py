"""Distribution functions of positions between edges of cells, by monotone cubic interpolation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike

from tacit.arrays import Floats, Integers
from tacit.metrics.cells.score_scale import cells_of

DEGREE = 3
GAUSS_POINTS, GAUSS_WEIGHTS = leggauss(DEGREE)  # type: ignore[no-untyped-call]
"""Nodes and weights on [-1, 1] that integrate polynomials of degree 5 exactly."""


@dataclass(frozen=True, eq=False)
class ScoreDistribution:
    """The share of a class's records below x, for every position x from 0 to 1 (``ScoreScale``).

    Between edges it is the monotone cubic of Fritsch and Butland (1984), which neither overshoots
    nor falls.

    Parameters
    ----------
    edges : the inner edges of the cells, ascending, shape (B-1,), B at least 2.
    values : the share of records below each inner edge, nondecreasing from 0 to 1 (of linear
        lines, anywhere from 0 to 1), shape (..., B-1).

    Raises
    ------
    ValueError : for shapes that do not agree, edges that do not ascend, and values that fall or lie
        outside [0, 1].

    Examples
    --------
    >>> uniform = ScoreDistribution(np.array([0.25, 0.5, 0.75]), np.array([0.25, 0.5, 0.75]))
    >>> uniform.at([0.0, 0.1, 0.5, 1.0]).tolist()
    [0.0, 0.1, 0.5, 1.0]
    """

    edges: Floats
    values: Floats

    def __post_init__(self) -> None:
        if self.edges.ndim != 1 or not self.edges.size:
            raise ValueError(f"there must be an inner edge or more, got shape {self.edges.shape}")
        if self.values.shape[-1:] != self.edges.shape:
            raise ValueError(
                f"values must have shape (..., {self.edges.size}), got {self.values.shape}"
            )
        if not np.all(np.diff(self.borders) > 0):
            raise ValueError("edges must ascend between 0 and 1")
        self._check_values()

    def _check_values(self) -> None:
        if not np.all(self._reached[..., 1:] >= self._reached[..., :-1]):
            raise ValueError("values must be nondecreasing from 0 to 1")

    def at(self, positions: ArrayLike) -> Floats:
        """The distribution function at these positions of shape (M,), shape (..., M)."""
        cells, part = self.places(positions)
        third, second, first, start = self.coefficients[..., cells]
        # Horner's rule: start + t (first + t (second + t third))
        value = start + part * (first + part * (second + part * third))
        return np.clip(value, 0.0, 1.0)

    def places(self, positions: ArrayLike) -> tuple[Integers, Floats]:
        """The cell of every position, and which part of it lies below, shape (M,) each."""
        numbers = np.asarray(positions, dtype=np.float64)
        cells = cells_of(numbers, self.edges)
        part = (numbers - self.borders[cells]) / np.diff(self.borders)[cells]
        return cells, np.clip(part, 0.0, 1.0)

    def area_above(self, other: ScoreDistribution) -> Floats:
        """The probability that a draw of this one is above a draw of ``other``, shape (...).

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

    @cached_property
    def borders(self) -> Floats:
        """All edges, with 0 and 1, shape (B+1,)."""
        return np.concatenate([[0.0], self.edges, [1.0]])

    @cached_property
    def _reached(self) -> Floats:
        """The values at all cell edges, shape (..., B+1)."""
        return with_ends(self.values)

    @cached_property
    def coefficients(self) -> Floats:
        """Of powers 3 to 0 of the part of a cell, shape (4, ..., B)."""
        from scipy.interpolate import PchipInterpolator  # noqa: PLC0415 (0.2 seconds to import)

        # scipy inverts slopes: that of a subnormal step is infinite, which gives the limit
        with np.errstate(over="ignore"):
            curve = PchipInterpolator(self.borders, self._reached, axis=-1)
        by_width = np.diff(self.borders) ** np.arange(DEGREE, -1, -1)[:, np.newaxis]
        # scipy puts the powers first and the cells second
        powers = np.moveaxis(np.asarray(curve.c), 1, -1)
        lead = (1,) * (powers.ndim - 2)
        return powers * by_width.reshape(DEGREE + 1, *lead, -1)


class LinearDistribution(ScoreDistribution):
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


def with_ends(values: Floats) -> Floats:
    """A distribution function at all edges, shape (..., B+1), from its values at inner ones."""
    end = np.zeros((*values.shape[:-1], 1))
    return np.concatenate([end, values, end + 1.0], axis=-1)


def below_edges(counts: Floats) -> Floats:
    """The parts of noisy counts below the cells' borders, shape (..., B+1), each in [0, 1]."""
    cumulative = np.cumsum(counts, axis=-1)
    total = np.where(cumulative[..., -1:] > 0, cumulative[..., -1:], 1.0)
    return with_ends(np.clip(cumulative / total, 0.0, 1.0)[..., :-1])


def rising_fractions(counts: Floats) -> Floats:
    """A distribution function at the cells' borders, shape (..., B+1), from noisy counts.

    The mean of the smallest rising sequence above the cumulative counts and the largest below.
    """
    cumulative = np.cumsum(counts, axis=-1)
    total = np.where(cumulative[..., -1:] > 0, cumulative[..., -1:], 1.0)
    fractions = np.clip(cumulative / total, 0.0, 1.0)
    over = np.maximum.accumulate(fractions, axis=-1)
    under = np.flip(np.minimum.accumulate(np.flip(fractions, axis=-1), axis=-1), axis=-1)
    return with_ends((over + under)[..., :-1] / 2)
