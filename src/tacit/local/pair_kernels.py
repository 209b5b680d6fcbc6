"""The kernels of statistics of pairs, and their values for every pair of symbols.

Which symbol a record reports for a statistic of pairs.

A symbol is a cell of a public space: one axis for Gini's mean difference, two for Kendall's tau,
class and score for the AUC. An axis is a finite grid of values, or a range cut into equal bins.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.metrics import pairwise
from tacit.metrics.cells.score_scale import EVEN, PROBABILITY, named_scale
from tacit.metrics.ranking import auc
from tacit.results.curves.curve import UNIT
from tacit.results.figure import AUC_FIGURE

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
    scale : the map of values to positions that bins cut (``metrics.cells.score_scale``); even
        bins cut the values themselves.

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

    def cells_of(self, clients: tp.Clients) -> Integers:
        """The cell of every record, shape (M,).

        Raises
        ------
        DataError : naming client, row and value, for a value outside the public domain; or where
            records have no second value.
        """
        values = column_of(clients, self.column)
        if self.grid:
            grid = np.array(self.grid)
            cells = np.minimum(np.searchsorted(grid, values), grid.size - 1)
            self.check(clients, values, grid[cells] == values)
            return cells.astype(np.int64)
        if self.bounded:
            self.check(clients, values, (values >= self.low) & (values <= self.high))
        if self.scale == EVEN:
            positions = (values - self.low) / (self.high - self.low)
        else:
            positions = named_scale(self.scale).positions(values)
        return np.minimum((positions * self.bins).astype(np.int64), self.bins - 1)

    def check(self, clients: tp.Clients, values: NDArray[Any], inside: NDArray[np.bool_]) -> None:
        """Refuse values of which not all are inside the public domain.

        Raises
        ------
        DataError : naming client, row and value, for the first that is not.
        """
        outside = np.flatnonzero(~inside)
        if outside.size:
            domain = f"in [{self.low:g}, {self.high:g}]"
            if self.grid:
                domain = f"one of the {len(self.grid)} public values {_listed(self.grid)}"
            raise tp.DataError(
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
    >>> clients = tp.Clients.from_values([1, 2], second=[0.9, 0.1])
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

    def of_records(self, clients: tp.Clients) -> Integers:
        """The symbol of every record, shape (M,).

        Raises
        ------
        DataError : naming client, row and value, for a value outside the public domain.
        """
        cells = tuple(axis.cells_of(clients) for axis in self.axes)
        return np.ravel_multi_index(cells, self.sizes).astype(np.int64)


def column_of(clients: tp.Clients, column: Column) -> NDArray[Any]:
    """A column's value of every record, shape (M,)."""
    if column == "labels":
        return clients.labels
    return clients.scores if column == "values" else second_values(clients)


def second_values(clients: tp.Clients) -> Floats:
    """The second value of every record, shape (M,).

    Raises
    ------
    DataError : where records have one value only.
    """
    if clients.second is None:
        raise tp.DataError(
            "Kendall's tau needs a second value of each record, got records with one: give the "
            "clients second values"
        )
    return clients.second


def _listed(grid: tuple[float, ...]) -> str:
    texts = [f"{value:g}" for value in grid]
    return ", ".join(texts if len(texts) <= 8 else [*texts[:4], "...", texts[-1]])


MAX_ASYMMETRY = 1e-9
"""Largest difference of f(a, b) and f(b, a), relative to the largest value of the kernel."""


@dataclass(frozen=True)
class PairKernel:
    """A symmetric function of two records.

    Parameters
    ----------
    figure : the name of its mean over all pairs.
    plain : its mean over pairs of two symbols, with values uniform inside bins, shape (k, k).
    exact : its exact mean over all pairs of records; for ``"auc"`` the AUC.
    columns : which of a record's values it uses.
    limits : the least and the largest value of that mean, for a number of records.
    variation : its range within a pair of cells, shape (k, k); None for a kernel that needs a
        finite domain.
    called : the name in a result of a kernel that has no word.
    """

    figure: str
    plain: Callable[[SymbolSpace], Floats]
    exact: Callable[[tp.Clients, SymbolSpace], float]
    columns: tuple[Column, ...] = ("values",)
    limits: Callable[[SymbolSpace, int], tuple[float, float]] = lambda space, records: UNIT
    variation: Callable[[SymbolSpace], Floats] | None = None
    called: str = ""


@dataclass(frozen=True, eq=False)
class PairTables:
    """A kernel's values for every pair of symbols.

    Parameters
    ----------
    means : shape (k, k): the kernel's mean over pairs of records of two symbols.
    change : shape (k, k): how the means change when bins are halved; None on a finite grid.
    variation : shape (k, k): the kernel's range within a pair of cells; None on a grid.
    """

    means: Floats
    change: Floats | None = None
    variation: Floats | None = None

    @classmethod
    def of(cls, kernel: PairKernel, space: SymbolSpace) -> PairTables:
        """The tables of a kernel over a space of symbols.

        On a finite grid the kernel is known. Inside a bin values are taken as uniform, with an
        error of about the square of the width where densities are smooth: halving the width removes
        three quarters of it. A third of the last halving's change is therefore added (Richardson
        extrapolation). This is the variant of the kernel for quantised values (Bell et al. 2020,
        section 3), with an error of the fourth order of the width.
        """
        plain = kernel.plain(space)
        if kernel.variation is None or not any(space.cut):
            return cls(plain)
        change = plain - pairwise.merged_table(plain, space.sizes, space.cut)
        return cls(plain + change / 3, change, kernel.variation(space))


def user_kernel(kernel: Any, grid: tuple[float, ...]) -> PairKernel:
    """A user's kernel on a finite domain: a vectorised function of two arrays, or a matrix.

    Raises
    ------
    ValueError : for a kernel that does not give shape (k, k), or one that is not finite or not
        symmetric, naming the values.

    Examples
    --------
    >>> user_kernel(lambda x, y: (x - y) ** 2, (0.0, 3.0)).figure
    'U-statistic'
    """
    called, values = "matrix", kernel
    if callable(kernel):
        points = np.array(grid)
        called = getattr(kernel, "__name__", "function")
        values = kernel(points[:, np.newaxis], points[np.newaxis, :])
    table = _symmetric(np.array(values, dtype=np.float64), grid)

    def exact(clients: tp.Clients, space: SymbolSpace) -> float:
        return pairwise.pair_mean(
            table, np.bincount(space.of_records(clients), minlength=space.symbols)
        )

    def limits(space: SymbolSpace, records: int) -> tuple[float, float]:
        return float(table.min()), float(table.max())

    return PairKernel("U-statistic", lambda space: table, exact, limits=limits, called=called)


def _symmetric(table: Floats, grid: tuple[float, ...]) -> Floats:
    shape = (len(grid), len(grid))
    if table.shape != shape:
        raise ValueError(
            f"the kernel must give shape {shape} for {len(grid)} values, got {table.shape}"
        )
    not_finite = np.argwhere(~np.isfinite(table))
    if not_finite.size:
        a, b = (int(index) for index in not_finite[0])
        raise ValueError(
            f"the kernel must be finite, got {table[a, b]:g} for ({grid[a]:g}, {grid[b]:g})"
        )
    asymmetry = np.abs(table - table.T)
    if np.any(asymmetry > MAX_ASYMMETRY * np.abs(table).max()):
        a, b = divmod(int(np.argmax(asymmetry)), len(grid))
        raise ValueError(
            f"the kernel must be symmetric, got {table[a, b]:g} for ({grid[a]:g}, {grid[b]:g}) "
            f"and {table[b, a]:g} for ({grid[b]:g}, {grid[a]:g})"
        )
    return (table + table.T) / 2


def opposite_classes(space: SymbolSpace) -> Floats:
    """1 for pairs of symbols of both classes, shape (k, k); the first axis is the class."""
    return pairwise.class_table(space.sizes[1])


def _kendall_variation(space: SymbolSpace) -> Floats:
    """A pair within one bin of an axis may be concordant or discordant; a tie on a grid counts 0.

    Left out are pairs that a tie on a grid decides, and those in different cells of both axes.
    """
    different = [1 - np.eye(cells) for cells in space.sizes]
    undecided = [
        np.ones_like(table) if cut else table
        for table, cut in zip(different, space.cut, strict=True)
    ]
    return np.asarray(2 * (np.kron(*undecided) - np.kron(*different)), dtype=np.float64)


KERNELS = {
    "gini": PairKernel(
        "Gini mean difference",
        lambda space: pairwise.gini_table(space.axes[0].middles, space.axes[0].width),
        lambda clients, space: pairwise.gini_mean_difference(clients.scores),
        limits=lambda space, records: (
            0.0,
            pairwise.max_gini_mean_difference(*space.axes[0].ends, records),
        ),
        # the distance of two values differs from that of their bins' middles by up to a width
        variation=lambda space: space.axes[0].width * (2 - np.eye(space.symbols)),
    ),
    "collision": PairKernel(
        "collision probability",
        lambda space: np.eye(space.symbols),
        lambda clients, space: pairwise.collision_probability(clients.scores),
    ),
    "kendall": PairKernel(
        "Kendall's tau",
        lambda space: pairwise.kendall_table(*space.sizes),
        lambda clients, space: pairwise.kendall_tau(clients.scores, second_values(clients)),
        ("values", "second values"),
        lambda space, records: (-1.0, 1.0),
        _kendall_variation,
    ),
    "auc": PairKernel(
        AUC_FIGURE,
        lambda space: pairwise.auc_table(space.sizes[1]),
        lambda clients, space: auc(clients.scores, clients.labels),
        ("labels", "values"),
        # within one bin either class may win
        variation=lambda space: (
            opposite_classes(space) * np.kron(np.ones((2, 2)), np.eye(space.sizes[1]))
        ),
    ),
}
"""The kernels that have names."""
