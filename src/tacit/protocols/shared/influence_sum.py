"""A second round of one number: the summed influences of all records on the AUC.

A first round gives the distribution functions F- and F+ of both classes, the class sizes P and N,
and the AUC A1 of these functions. With m = min(P, N) the second round measures

    S = sum over positives of (F-(s) - A1) m/P + sum over negatives of (1 - F+(s) - A1) m/N

and A1 + S/m has no error of the first round in first order: what remains of it is the product of
both functions' errors. All of P, N, m, A1, F- and F+ are published, so a record moves S by at most
max(A1, 1 - A1), and its replacement by any other by at most 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.clients import Clients
from tacit.metrics.score_distribution import ScoreDistribution
from tacit.privacy.cost import Adjacency

FIXED_POINT = 2**32
"""Influences are whole multiples of one over this. So their sum over up to 2**30 records is exact,
and does not depend on the order in which it is taken."""

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
        """The fixed-point sum over each client's records, shape (..., K)."""
        lead = self.area.shape
        rows = max(1, RECORDS_AT_ONCE // max(int(np.prod(lead)), 1))
        totals = np.zeros((*lead, clients.count), dtype=np.int64)
        for start in range(0, clients.records, rows):
            part = slice(start, start + rows)
            influences = self._influences(clients.scores[part], clients.labels[part])
            below = np.zeros((*lead, influences.shape[-1] + 1), dtype=np.int64)
            np.cumsum(influences, axis=-1, out=below[..., 1:])
            ends = np.clip(clients.offsets - start, 0, influences.shape[-1])
            totals += np.diff(below[..., ends], axis=-1)
        return totals

    def _influences(self, scores: Floats, labels: NDArray[np.int8]) -> Integers:
        """Of every record, in fixed point, shape (..., M)."""
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


def _fixed(influences: Floats) -> Integers:
    return np.rint(influences * FIXED_POINT).astype(np.int64)
