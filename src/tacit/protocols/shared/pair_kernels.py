"""The kernels of statistics of pairs, and their values for every pair of symbols."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.data.clients import Clients
from tacit.metrics.pairwise import (
    auc_table,
    class_table,
    collision_probability,
    gini_mean_difference,
    gini_table,
    kendall_table,
    kendall_tau,
    merged_table,
    pair_mean,
)
from tacit.metrics.ranking import auc
from tacit.protocols.shared.symbols import Column, SymbolSpace, second_values

SYMMETRY = 1e-9
"""How far f(a, b) and f(b, a) may lie apart, relative to the largest value of the kernel."""


@dataclass(frozen=True)
class PairKernel:
    """A symmetric function of two records.

    Parameters
    ----------
    called : its name in a result.
    figure : what its mean over all pairs is called.
    columns : which of a record's values it is about.
    plain : its mean over pairs of two symbols, with values spread evenly inside bins, shape (k, k).
    exact : its exact mean over all pairs of records; for ``"auc"`` the AUC.
    hidden : how far it may vary within a pair of cells, shape (k, k); None for a kernel that needs
        a finite domain.
    """

    called: str
    figure: str
    columns: tuple[Column, ...]
    plain: Callable[[SymbolSpace], Floats]
    exact: Callable[[Clients, SymbolSpace], float]
    hidden: Callable[[SymbolSpace], Floats] | None = None


@dataclass(frozen=True, eq=False)
class PairTables:
    """A kernel's values for every pair of symbols.

    Parameters
    ----------
    means : shape (k, k): the kernel's mean over pairs of records of two symbols.
    change : shape (k, k): how the means change when bins are halved; None on a finite grid.
    hidden : shape (k, k): how far the kernel may vary within a pair of cells; None on a grid.
    """

    means: Floats
    change: Floats | None = None
    hidden: Floats | None = None

    @classmethod
    def of(cls, kernel: PairKernel, space: SymbolSpace) -> PairTables:
        """The tables of a kernel over a space of symbols.

        On a finite grid the kernel is known. Inside a bin values are taken as spread evenly, which
        errs by about the square of the width where densities are smooth, so that halving the width
        removes three quarters of the error. A third of what the last halving changed is therefore
        added: this is the variant of the kernel for quantised values (Bell et al. 2020, section 3),
        with an error of the fourth order of the width.
        """
        plain = kernel.plain(space)
        if kernel.hidden is None or not any(space.cut):
            return cls(plain)
        change = plain - merged_table(plain, space.sizes, space.cut)
        return cls(plain + change / 3, change, kernel.hidden(space))


def own_kernel(kernel: Any, grid: tuple[float, ...]) -> PairKernel:
    """A user's kernel on a finite domain: a vectorised function of two arrays, or a matrix.

    Raises
    ------
    ValueError : for a kernel that does not give shape (k, k), or one that is not finite or not
        symmetric, naming the values.

    Examples
    --------
    >>> own_kernel(lambda x, y: (x - y) ** 2, (0.0, 3.0)).figure
    'U-statistic'
    """
    called, values = "matrix", kernel
    if callable(kernel):
        points = np.array(grid)
        called = getattr(kernel, "__name__", "function")
        values = kernel(points[:, np.newaxis], points[np.newaxis, :])
    table = _symmetric(np.array(values, dtype=np.float64), grid)

    def exact(clients: Clients, space: SymbolSpace) -> float:
        return pair_mean(table, np.bincount(space.of_records(clients), minlength=space.symbols))

    return PairKernel(called, "U-statistic", ("values",), lambda space: table, exact)


def _symmetric(table: Floats, grid: tuple[float, ...]) -> Floats:
    shape = (len(grid), len(grid))
    if table.shape != shape:
        raise ValueError(
            f"the kernel must give shape {shape} for {len(grid)} values, got {table.shape}"
        )
    wrong = np.argwhere(~np.isfinite(table))
    if wrong.size:
        a, b = (int(place) for place in wrong[0])
        raise ValueError(
            f"the kernel must be finite, got {table[a, b]:g} for ({grid[a]:g}, {grid[b]:g})"
        )
    apart = np.abs(table - table.T)
    if np.any(apart > SYMMETRY * np.abs(table).max()):
        a, b = divmod(int(np.argmax(apart)), len(grid))
        raise ValueError(
            f"the kernel must be symmetric, got {table[a, b]:g} for ({grid[a]:g}, {grid[b]:g}) "
            f"and {table[b, a]:g} for ({grid[b]:g}, {grid[a]:g})"
        )
    return (table + table.T) / 2


def opposite_classes(space: SymbolSpace) -> Floats:
    """1 for pairs of symbols of both classes, shape (k, k); the first axis is the class."""
    return class_table(space.sizes[1])


def _gini(space: SymbolSpace) -> Floats:
    (axis,) = space.axes
    return gini_table(axis.middles, axis.width)


def _gini_hidden(space: SymbolSpace) -> Floats:
    """Values of two bins are apart by the distance of the middles, give or take a width."""
    (axis,) = space.axes
    return axis.width * (2 - np.eye(axis.cells))


def _kendall_hidden(space: SymbolSpace) -> Floats:
    """A pair within one bin of an axis may be concordant or discordant; a tie on a grid counts 0.

    Left out are pairs that a tie on a grid decides, and those in different cells of both axes.
    """
    apart = [1 - np.eye(cells) for cells in space.sizes]
    undecided = [
        np.ones_like(table) if cut else table for table, cut in zip(apart, space.cut, strict=True)
    ]
    return np.asarray(2 * (np.kron(*undecided) - np.kron(*apart)), dtype=np.float64)


def _auc_hidden(space: SymbolSpace) -> Floats:
    """Within one bin either class may win."""
    same_bin = np.kron(np.ones((2, 2)), np.eye(space.sizes[1]))
    return np.asarray(opposite_classes(space) * same_bin, dtype=np.float64)


KERNELS = {
    "gini": PairKernel(
        "gini",
        "Gini mean difference",
        ("values",),
        _gini,
        lambda clients, space: gini_mean_difference(clients.scores),
        _gini_hidden,
    ),
    "collision": PairKernel(
        "collision",
        "collision probability",
        ("values",),
        lambda space: np.eye(space.symbols),
        lambda clients, space: collision_probability(clients.scores),
    ),
    "kendall": PairKernel(
        "kendall",
        "Kendall's tau",
        ("values", "second values"),
        lambda space: kendall_table(*space.sizes),
        lambda clients, space: kendall_tau(clients.scores, second_values(clients)),
        _kendall_hidden,
    ),
    "auc": PairKernel(
        "auc",
        "AUC",
        ("labels", "values"),
        lambda space: auc_table(space.sizes[1]),
        lambda clients, space: auc(clients.scores, clients.labels),
        _auc_hidden,
    ),
}
"""The kernels that have names."""
