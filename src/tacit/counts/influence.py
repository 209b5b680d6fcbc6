"""The influences of records on an AUC by published functions, and their sums in whole units.

A first round gives the distribution functions F- and F+ of both classes, the class sizes P and N,
and the AUC A1 of these functions. With m = min(P, N) the second round measures

    S = sum over positives of (F-(s) - A1) m/P + sum over negatives of (1 - F+(s) - A1) m/N

and A1 + S/m has no error of the first round in first order: what remains of it is the product of
both functions' errors. All of P, N, m, A1, F- and F+ are published, so a record moves S by at most
max(A1, 1 - A1), and its replacement by any other by at most 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.clients import Clients
from tacit.data.engines.pieces import ClassFunctions
from tacit.data.errors import DataError
from tacit.metrics.cells.score_distribution import DEGREE, LinearDistribution, ScoreDistribution
from tacit.privacy.cost import Adjacency

PUBLISHED = POSITIVES, NEGATIVES, SIZES = ("positives_below", "negatives_below", "class_sizes")
"""Fields of the query: the part of each class below every inner edge, and (P, N)."""


FIXED_POINT = 2**32
"""Influences are whole multiples of one over this. So their sum over up to ``MOST_RECORDS`` is
exact, and does not depend on the order in which it is taken."""


MOST_RECORDS = 2**30
"""Most records of a client whose influences are summed: a sum is at most 2**62, and cannot wrap."""


MOMENTS_FROM = 2**12
"""Least number of records of which replicates take the sums from moments."""


RECORDS_AT_ONCE = 2**22
"""Influences are evaluated for about this many records, times replicates, at a time."""


@dataclass(frozen=True, eq=False)
class Influences:
    """What the server publishes for the second round; every part follows from the first.

    Parameters
    ----------
    positives, negatives : the distribution functions F+ and F- of the classes.
    area : the AUC of these functions, from 0 to 1, shape (...).
    weights : m/P and m/N, above 0 and at most 1, shape (..., 2).

    Raises
    ------
    ValueError : for an area or a weight outside its range.
    """

    positives: ScoreDistribution
    negatives: ScoreDistribution
    area: Floats
    weights: Floats

    def __post_init__(self) -> None:
        if not np.all((self.area >= 0) & (self.area <= 1)):
            raise ValueError(f"area must be from 0 to 1, got {self.area}")
        if not np.all((self.weights > 0) & (self.weights <= 1)):
            raise ValueError(f"weights must be above 0 and at most 1, got {self.weights}")

    @classmethod
    def on_cells(
        cls, positives: Floats, negatives: Floats, sizes: Floats, linear: bool
    ) -> Influences:
        """The influences that follow from functions on equal cells of [0, 1].

        Parameters
        ----------
        positives, negatives : each class's part below every inner edge, shape (..., cells - 1).
        sizes : of the classes, shape (..., 2).
        linear : whether functions are linear between edges, as on published cell edges.
        """
        cells = positives.shape[-1] + 1
        edges = np.arange(1, cells) / cells
        kind = LinearDistribution if linear else ScoreDistribution
        above, below = (kind(edges, values) for values in (positives, negatives))
        return cls.of(above, below, sizes)

    @classmethod
    def of(
        cls, positives: ScoreDistribution, negatives: ScoreDistribution, sizes: Floats
    ) -> Influences:
        """The influences for class sizes (P, N), shape (..., 2), all above 0."""
        area = np.clip(positives.area_above(negatives), 0.0, 1.0)
        # m/P and m/N with m = min(P, N)
        return cls(positives, negatives, area, sizes.min(axis=-1, keepdims=True) / sizes)

    @cached_property
    def ends(self) -> tuple[Integers, Integers]:
        """The least and the largest influence of any record, in fixed point, shape (...)."""
        # F- - A1 and 1 - F+ - A1 both run from -A1 to 1 - A1
        return (
            _fixed(-self.area[..., np.newaxis] * self.weights).min(axis=-1),
            _fixed((1 - self.area[..., np.newaxis]) * self.weights).max(axis=-1),
        )

    def sensitivity(self, adjacency: Adjacency) -> Integers:
        """How far a neighbour moves the fixed-point sum, shape (...).

        Adding or removing a record: the largest size of an influence; replacing one: their width.
        """
        least, largest = self.ends
        if adjacency is Adjacency.REPLACE:
            return largest - least
        return np.maximum(-least, largest)

    def totals(self, clients: Clients) -> Integers:
        """The fixed-point sum over each client's records, shape (..., K).

        Exact in fixed point; of replicates, which are simulated, it may be a few units off where
        records are many (``_totals_by_moments``). Where an engine evaluates the influences, one of
        them may be rounded to the next unit: its cubics are of scores, not of positions. It is a
        whole number within the same ends, so the sensitivity is the same.

        Raises
        ------
        DataError : for a client with more than ``MOST_RECORDS``.
        """
        check_sizes(clients)
        lead = self.area.shape
        same_cells = np.array_equal(self.positives.edges, self.negatives.edges)
        if not clients.at_hand:
            stated = None if lead or not same_cells else clients.summed(self._functions())
            if stated is not None:
                return stated
            return clients.added(self.totals)
        if lead and same_cells and clients.records >= MOMENTS_FROM:
            return self._totals_by_moments(clients)
        rows = max(1, RECORDS_AT_ONCE // max(int(np.prod(lead)), 1))
        totals = np.zeros((*lead, clients.count), dtype=np.int64)
        for start in range(0, clients.records, rows):
            part = slice(start, start + rows)
            influences = self.of_records(clients.scores[part], clients.labels[part])
            below = np.zeros((*lead, influences.shape[-1] + 1), dtype=np.int64)
            np.cumsum(influences, axis=-1, out=below[..., 1:])
            ends = np.clip(clients.offsets - start, 0, influences.shape[-1])
            totals += np.diff(below[..., ends], axis=-1)
        return totals

    def _functions(self) -> ClassFunctions:
        """The same for an engine: ``a F + b`` in fixed point, of negatives and of positives."""
        least, largest = self.ends
        # (F-(s) - A1) m/P for positives, (1 - F+(s) - A1) m/N for negatives
        factors = np.array([-self.weights[1], self.weights[0]]) * float(FIXED_POINT)
        offsets = np.array([(1 - self.area) * self.weights[1], -self.area * self.weights[0]])
        return ClassFunctions(
            (self.negatives, self.positives),
            factors,
            offsets * float(FIXED_POINT),
            int(least),
            int(largest),
        )

    def _totals_by_moments(self, clients: Clients) -> Integers:
        """The same in floating point, rounded once a client, shape (R, K).

        In a cell a function is a polynomial of the part of the cell below a score, so its sum over
        records is that of its coefficients times the records' moments: these are summed once for
        all replicates.
        """
        moments = _moments(clients, self.positives)
        sizes = moments[-1].sum(axis=-1)  # of negatives and positives, shape (2, K)
        below, above = (
            np.einsum("prb,pkb->rk", function.coefficients, moments[:, label], optimize=True)
            for label, function in ((1, self.negatives), (0, self.positives))
        )
        area, weights = self.area[:, np.newaxis], self.weights
        # F- - A1 of the positives, and 1 - F+ - A1 of the negatives
        beaten = (below - area * sizes[1]) * weights[:, :1]
        beating = ((1 - area) * sizes[0] - above) * weights[:, 1:]
        return _fixed(beaten + beating)

    def of_records(self, scores: Floats, labels: NDArray[np.int8]) -> Integers:
        """The fixed-point influence of every record, shape (..., M)."""
        positive = labels == 1
        area, weights = self.area[..., np.newaxis], self.weights[..., np.newaxis, :]
        made = np.empty((*self.area.shape, scores.size), dtype=np.int64)
        # (F-(s) - A1) m/P for positives, (1 - F+(s) - A1) m/N for negatives
        beaten = self.negatives.at(scores[positive]) - area
        beating = 1 - self.positives.at(scores[~positive]) - area
        made[..., positive] = _fixed(beaten * weights[..., 0])
        made[..., ~positive] = _fixed(beating * weights[..., 1])
        least, largest = self.ends
        return np.clip(made, least[..., np.newaxis], largest[..., np.newaxis])


def check_sizes(clients: Clients) -> None:
    """Refuse a client whose sum could wrap.

    Raises
    ------
    DataError : for a client with more than ``MOST_RECORDS``.
    """
    if clients.sizes.max() > MOST_RECORDS:
        raise DataError(
            f"influences are summed over at most {MOST_RECORDS:,} records of a client, got "
            f"{clients.sizes.max():,}: split it into several"
        )


def _moments(clients: Clients, function: ScoreDistribution) -> Floats:
    """Sums of the powers 3 to 0 of the part of a cell below a score, by label, client and cell.

    Shape (4, 2, K, B).
    """
    cells, part = function.places(clients.scores)
    shape = (2, clients.count, function.edges.size + 1)
    owner = np.repeat(np.arange(clients.count), np.diff(clients.offsets))
    index = np.ravel_multi_index(((clients.labels == 1).astype(np.int64), owner, cells), shape)
    sums = [
        np.bincount(index, weights=part**power, minlength=int(np.prod(shape)))
        for power in range(DEGREE, -1, -1)
    ]
    return np.stack(sums).astype(np.float64).reshape(DEGREE + 1, *shape)


def _fixed(influences: Floats) -> Integers:
    return np.rint(influences * FIXED_POINT).astype(np.int64)


def check_published(fields: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse published fields that are no functions or class sizes.

    Parameters
    ----------
    fields : of a query.
    shapes : of the functions and the sizes, by name; in another, two sets would share one noise.

    Raises
    ------
    ValueError : for fields that are not 64-bit floats of these shapes, and for sizes that are not
        above 0 and finite.
    """
    for name, shape in shapes.items():
        received = (getattr(fields[name], "dtype", type(fields[name])), np.shape(fields[name]))
        if received != (np.dtype(np.float64), shape):
            raise ValueError(f"{name} must be 64-bit floats of shape {shape}, got {received}")
    sizes = fields[SIZES]
    if not np.all((sizes > 0) & np.isfinite(sizes)):
        raise ValueError(f"class sizes must be above 0 and finite, got {sizes.tolist()}")


def inner_edges(function: Any, deepest: int) -> int:
    """The number of inner edges of a published function.

    Raises
    ------
    ValueError : for a number that no tree of at most this height has.
    """
    inner = np.shape(function)[-1] if np.ndim(function) else 0
    agreed = [(1 << depth) - 1 for depth in range(1, deepest + 1)]
    if inner not in agreed:
        raise ValueError(f"functions must have a number of inner edges in {agreed}, got {inner}")
    return int(inner)


UNITS_PER_EPSILON = 2**16
"""Units of a released sum in its sensitivity, for each unit of epsilon. The noise then has this
scale in units, which is the largest of which exact shares are drawn."""


def units_for(epsilon: float) -> int:
    """Units in the sensitivity of a sum that is released at epsilon, at least 1.

    Examples
    --------
    >>> units_for(0.5)
    32768
    """
    return max(1, int(UNITS_PER_EPSILON * epsilon))


def whole_units(total: Integers, sensitivity: Integers | int, units: int) -> Integers:
    """A sum in units of ``sensitivity / units``, rounded once to the nearest: half rounds up.

    ``floor(total units / sensitivity + 1/2)`` moves by exactly ``units`` when the total moves by
    the sensitivity, and never by more when it moves by less: rounding adds nothing to the
    sensitivity.

    Parameters
    ----------
    total : int64, shape (...).
    sensitivity : int64, from 1, shape (...).
    units : from 1, and such that ``sensitivity * units`` stays below 2**61 and
        ``total / sensitivity * units`` below 2**62. A budget of at most ``MAX_BUDGET`` has fewer
        than 2**26 units, so that every sensitivity below 2**35 will do.

    Examples
    --------
    >>> whole_units(np.array([-10, -4, 0, 4, 10]), 10, 4).tolist()
    [-4, -2, 0, 2, 4]
    """
    whole, rest = np.divmod(total, sensitivity)
    # floor(x + 1/2) of x = rest units / sensitivity, in whole numbers
    return np.asarray(whole * units + (2 * rest * units + sensitivity) // (2 * sensitivity))


def influences_of(fields: Mapping[str, Any], linear: bool = False) -> Influences:
    """The influences that follow from the published fields, at the server and at every client.

    Parameters
    ----------
    fields : what was published.
    linear : whether functions are linear between edges, as on published cell edges.
    """
    positives, negatives, sizes = (fields[name] for name in PUBLISHED)
    return Influences.on_cells(positives, negatives, sizes, linear)
