"""Which symbol a record reports for a statistic of pairs.

A symbol is a cell of a public space: one axis for Gini's mean difference, two for Kendall's tau,
class and score for the AUC. An axis is a finite grid of values, or a range cut into equal bins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.metrics.cells.score_scale import EVEN, PROBABILITY, named_scale

Column = Literal["labels", "values", "second values"]


@dataclass(frozen=True)
class Axis:
    """One coordinate of a symbol: a finite grid of values, or a range cut into equal bins.

    Parameters
    ----------
    column : which of a record's values it is for.
    grid : ascending values, shape (cells,); empty for a range.
    low, high : the ends of a range, both included.
    bins : the number of equal bins of a range.
    scale : the map of values to positions that bins cut (``metrics.score_scale``); even bins cut
        the values themselves.

    Examples
    --------
    >>> Axis("values", low=0.0, high=1.0, bins=4).cells, Axis("values", grid=(1.0, 2.0)).cells
    (4, 2)
    """

    column: Column
    grid: tuple[float, ...] = ()
    low: float = 0.0
    high: float = 1.0
    bins: int = 0
    scale: str = EVEN

    @property
    def bounded(self) -> bool:
        """Whether values have a least and a largest one."""
        return self.scale in (EVEN, PROBABILITY)

    @property
    def cells(self) -> int:
        """The number of cells on the axis."""
        return len(self.grid) or self.bins

    @property
    def width(self) -> float:
        """The width of a bin; 0 on a grid."""
        return 0.0 if self.grid else (self.high - self.low) / self.bins

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest value."""
        return (self.grid[0], self.grid[-1]) if self.grid else (self.low, self.high)

    def nearest(self, values: Floats) -> Floats:
        """The values of the domain that are nearest to these, shape (M,)."""
        if not self.bounded:
            return values
        inside = np.clip(values, *self.ends)
        if not self.grid:
            return inside
        grid = np.array(self.grid, dtype=np.float64)
        return grid[np.searchsorted((grid[1:] + grid[:-1]) / 2, inside)]

    @property
    def middles(self) -> Floats:
        """The values of a grid, or the middles of bins, shape (cells,)."""
        if self.grid:
            return np.array(self.grid)
        return self.low + self.width * (np.arange(self.bins, dtype=np.float64) + 0.5)

    def cells_of(self, clients: Clients) -> Integers:
        """The cell of every record, shape (M,).

        Raises
        ------
        DataError : naming client, row and value, for a value outside the public domain; or where
            records have no second value.
        """
        values = self._data(clients)
        if self.grid:
            grid = np.array(self.grid)
            cells = np.minimum(np.searchsorted(grid, values), grid.size - 1)
            self._check(clients, values, grid[cells] == values)
            return cells.astype(np.int64)
        if self.bounded:
            self._check(clients, values, (values >= self.low) & (values <= self.high))
        if self.scale == EVEN:
            positions = (values - self.low) / (self.high - self.low)
        else:
            positions = named_scale(self.scale).positions(values)
        return np.minimum((positions * self.bins).astype(np.int64), self.bins - 1)

    def _data(self, clients: Clients) -> NDArray[Any]:
        if self.column == "labels":
            return clients.labels
        return clients.scores if self.column == "values" else second_values(clients)

    def _check(self, clients: Clients, values: NDArray[Any], inside: NDArray[np.bool_]) -> None:
        outside = np.flatnonzero(~inside)
        if outside.size:
            domain = f"in [{self.low:g}, {self.high:g}]"
            if self.grid:
                domain = f"one of the {len(self.grid)} public values {_listed(self.grid)}"
            raise DataError(
                f"{self.column} must be {domain}, got {values[outside[0]]} in "
                f"{clients.location(int(outside[0]))}; set the domain by public bounds, never by "
                "the data's own minimum and maximum"
            )


@dataclass(frozen=True)
class SymbolSpace:
    """All symbols, numbered along the axes; the last axis runs fastest.

    Examples
    --------
    >>> space = SymbolSpace((Axis("values", grid=(1.0, 2.0)), Axis("second values", bins=4)))
    >>> space.symbols
    8
    >>> clients = Clients.from_values([1, 2], second=[0.9, 0.1])
    >>> space.of_records(clients)
    array([3, 4])
    """

    axes: tuple[Axis, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of cells along each axis."""
        return tuple(axis.cells for axis in self.axes)

    @property
    def symbols(self) -> int:
        """k, the number of symbols."""
        return math.prod(self.sizes)

    @property
    def cut(self) -> tuple[bool, ...]:
        """Which axes are ranges cut into bins."""
        return tuple(not axis.grid for axis in self.axes)

    def of_records(self, clients: Clients) -> Integers:
        """The symbol of every record, shape (M,).

        Raises
        ------
        DataError : naming client, row and value, for a value outside the public domain.
        """
        cells = tuple(axis.cells_of(clients) for axis in self.axes)
        return np.ravel_multi_index(cells, self.sizes).astype(np.int64)


def second_values(clients: Clients) -> Floats:
    """The second value of every record, shape (M,).

    Raises
    ------
    DataError : where records have one value only.
    """
    if clients.second is None:
        raise DataError(
            "Kendall's tau needs a second value of each record, got records with one: give the "
            "clients second values"
        )
    return clients.second


def _listed(grid: tuple[float, ...]) -> str:
    texts = [f"{value:g}" for value in grid]
    return ", ".join(texts if len(texts) <= 8 else [*texts[:4], "...", texts[-1]])
