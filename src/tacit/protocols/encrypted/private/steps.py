"""The AUC of masked sums with noise: how epsilon is divided, and the parties' two steps.

The first round sums the counts of both classes in B cells, and their totals, the second one number:
the influences of all records on the AUC of the first (``shared.influence_sum``). Each sum has noise
of which every party drew a share, and masks that cancel over all parties. No product of counts is
formed, so nothing exact is released.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from tacit.data.clients import Clients
from tacit.metrics.cells.score_distribution import ScoreDistribution
from tacit.privacy.cost import Adjacency, Cost, check_budget
from tacit.privacy.mechanisms.laplace import PolyaShare
from tacit.privacy.sampling.exact import MAX_SHARED_SCALE
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Layout, Query, Reply, step
from tacit.protocol.sum_bounds import clipped, clipped_sum_bound, planned_clients
from tacit.protocols.shared.cells import even_cell_counts
from tacit.protocols.shared.influence_sum import Influences, noise_fraction, units_for, whole_units
from tacit.protocols.shared.trees.tree_budget import CELL_BIAS

POSITIVES, NEGATIVES, SIZES = "positives_below", "negatives_below", "class_sizes"
"""Fields of the second query: the part of each class below every inner edge, and (P, N)."""
CELLS = (8, 16, 32, 64, 128, 256)
"""Numbers of cells of the first round that are compared."""
INFLUENCE_PARTS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
"""Parts of epsilon for the second round that are compared."""
CLASSES_PART = 0.2
"""The part of the first round that the class totals get."""
CROWDED = 4.0
"""How much narrower than the whole scale the cells are taken to be in which records lie."""
TIED_BIAS = 0.05
"""What cells hide of scores with two digits, in units of ``1 / B**2``; on 458,407 such scores of
advertisements 0.052 at 64 cells, and on 20,000 of them 0.073 at 32."""


@dataclass(frozen=True)
class PrivateSums:
    """How noisy sums are divided and shared; all of it is public.

    Parameters
    ----------
    epsilon : the privacy budget of one record, by whose presence data sets differ.
    most_records : the agreed bound of all records, from which cells and parts are chosen.
    colluding : the part of the parties whose noise the aggregator may know.

    Raises
    ------
    ValueError : for a budget outside its range, and a part that is not from 0 to below 1.

    Examples
    --------
    >>> sums = PrivateSums(1.0, 2**20, 0.2)
    >>> sums.cells, sums.share(1, 10)
    (256, Fraction(1, 8))
    >>> round(sums.count_epsilon + sums.class_epsilon + sums.influence_epsilon, 12)
    1.0
    """

    epsilon: float
    most_records: int
    colluding: float

    def __post_init__(self) -> None:
        check_budget(self.epsilon)
        if not 0 <= self.colluding < 1:
            raise ValueError(f"colluding must be from 0 to below 1, got {self.colluding}")

    @cached_property
    def _division(self) -> tuple[int, float]:
        """The cells and the second round's part with the least predicted error."""
        # of smaller parts no shares of the noise are drawn
        least = 1 / (MAX_SHARED_SCALE * CLASSES_PART * self.epsilon)
        parts = [part for part in INFLUENCE_PARTS if 1 - part > least]
        choices = [(cells, part) for cells in CELLS for part in parts]
        half = self.most_records / 2
        return min(choices, key=lambda each: self._variance(each[0], each[1], 0.75, (half, half)))

    def predicted_error(self, area: float, sizes: tuple[float, float]) -> float:
        """The standard error of an AUC of these class sizes, about."""
        cells, part = self._division
        return math.sqrt(self._variance(cells, part, area, sizes))

    def _variance(self, cells: int, part: float, area: float, sizes: tuple[float, float]) -> float:
        inflation = 1 / (1 - self.colluding)
        # Laplace's variance of S over m^2, D = max(A, 1 - A)
        reach = max(area, 1 - area) / (part * self.epsilon * min(sizes))
        cell_variance = inflation * 2 / ((1 - CLASSES_PART) * (1 - part) * self.epsilon) ** 2
        products = 2 * product_variance(cell_variance, cells, math.prod(sizes))
        smooth = CELL_BIAS * (CROWDED / cells) ** 2
        return inflation * 2 * reach**2 + products + tied_variance(cells) + smooth**4

    @property
    def cells(self) -> int:
        """B, a power of two."""
        return self._division[0]

    @property
    def influence_epsilon(self) -> float:
        """What the second round costs."""
        return self.epsilon * self._division[1]

    @property
    def class_epsilon(self) -> float:
        """What the class totals of the first round cost."""
        return (self.epsilon - self.influence_epsilon) * CLASSES_PART

    @property
    def count_epsilon(self) -> float:
        """What the cells of the first round cost."""
        return (self.epsilon - self.influence_epsilon) * (1 - CLASSES_PART)

    @property
    def first_cost(self) -> Cost:
        """What the first round costs a record, that is there or is not."""
        return Cost(self.epsilon - self.influence_epsilon, adjacency=Adjacency.RECORD)

    @property
    def second_cost(self) -> Cost:
        """What the second round costs."""
        return Cost(self.influence_epsilon, adjacency=Adjacency.RECORD)

    def share(self, batch: int, planned: int) -> Fraction:
        """The part of the noise that a batch of parties draws.

        The shares of those that do not collude add up to the whole noise, so that the aggregator
        may take away what its accomplices drew.
        """
        return noise_fraction(batch, planned, self.colluding)

    def count_noise(self, share: Fraction) -> dict[str, PolyaShare]:
        """A share of the noise of each field of the first round."""
        return {
            "cells": PolyaShare(1, self.count_epsilon, share),
            "classes": PolyaShare(1, self.class_epsilon, share),
        }

    def influence_noise(self, share: Fraction) -> PolyaShare:
        """A share of the noise of the second round, in units of a part of its reach."""
        return PolyaShare(units_for(self.influence_epsilon), self.influence_epsilon, share)


def product_variance(cell_variance: float, cells: int, pairs: Any) -> Any:
    """The variance that the product of both functions' noises adds to the AUC.

    ``s^4 B^2 / (12 (P N)^2)`` with s^2 the noise variance of a cell: both functions are the noise's
    partial sums less what their class's total accounts for.
    """
    return (cell_variance * cells) ** 2 / (12 * np.square(pairs))


def tied_variance(cells: int) -> float:
    """What cells may hide where scores have two digits, as a variance."""
    return (TIED_BIAS / cells**2) ** 2


def influences_of(fields: Mapping[str, Any]) -> Influences:
    """The influences that follow from the published fields, at the aggregator and at parties."""
    cells = fields[POSITIVES].shape[-1] + 1
    edges = np.arange(1, cells) / cells
    positives, negatives = (
        ScoreDistribution(edges, fields[name], 0.0, 1.0) for name in (POSITIVES, NEGATIVES)
    )
    return Influences.of(positives, negatives, fields[SIZES])


def accepted_influences(query: Query, noise: NoiseSource) -> Influences:
    """The influences of a query, as a party accepts them.

    Raises
    ------
    ValueError : for fields of another type or shape, functions that fall or leave [0, 1], and sizes
        that are not above 0 and finite.
    """
    fields, inner = query.broadcast, query.protocol.private_sums.cells - 1
    for name, shape in ((POSITIVES, (inner,)), (NEGATIVES, (inner,)), (SIZES, (2,))):
        received = getattr(fields[name], "dtype", type(fields[name])), np.shape(fields[name])
        expected = np.dtype(np.float64), noise.full_shape(shape)
        if received != expected:
            raise ValueError(f"{name} must be 64-bit floats of shape {expected[1]}, got {received}")
    if not np.all((fields[SIZES] > 0) & np.isfinite(fields[SIZES])):
        raise ValueError(f"class sizes must be above 0 and finite, got {fields[SIZES].tolist()}")
    return influences_of(fields)


def _count_layout(query: Query) -> Layout:
    return {"cells": (2 * query.protocol.private_sums.cells,), "classes": (2,), "clients": ()}


def _count_bounds(query: Query) -> dict[str, int]:
    sums, planned = query.protocol.private_sums, planned_clients(query)
    noise = sums.count_noise(sums.share(1, planned))
    bounds = {name: clipped_sum_bound(query, noise[name]) for name in noise}
    return bounds | {"clients": planned}


@step(
    cost=lambda clients, query, state: query.protocol.private_sums.first_cost,
    sums=_count_layout,
    shares=planned_clients,
    bounds=_count_bounds,
)
def noisy_counts(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send both classes' counts in equal cells of the scale, and their totals, with noise shares.

    A record is in one cell and in one class, so adding or removing one changes one count and one
    total by 1. The shares of the parties that do not collude with the aggregator add up to discrete
    Laplace noise of scale ``1 / epsilon_cells`` on every count and ``1 / epsilon_classes`` on every
    total, which costs ``epsilon_cells + epsilon_classes`` by the Laplace mechanism on the integers;
    those of the others add to it. The guarantee is about the sum over all parties, and holds
    against an aggregator that sees it only and colludes with the agreed part of them at most.

    The aggregator learns the noisy sums, and how many parties answered.

    Raises
    ------
    DataError : for a score outside [0, 1] where scores are probabilities.
    """
    settings = query.protocol
    sums, on_scale = settings.private_sums, settings.on_scale(clients)
    cells = even_cell_counts(on_scale, sums.cells)
    exact = {"cells": cells, "classes": cells.reshape(2, -1).sum(axis=-1)}
    drawn = sums.count_noise(sums.share(clients.count, planned_clients(query)))
    reply: dict[str, Any] = {
        name: clipped(counts, query) + noise.draw(drawn[name], counts.shape)
        for name, counts in exact.items()
    }
    return reply | {"clients": np.asarray(clients.count, dtype=np.int64)}


def _influence_layout(query: Query) -> Layout:
    return {"sum": (), "clients": ()}


def _influence_bounds(query: Query) -> dict[str, int]:
    sums, planned = query.protocol.private_sums, planned_clients(query)
    noise, units = sums.influence_noise(sums.share(1, planned)), units_for(sums.influence_epsilon)
    return {"sum": clipped_sum_bound(query, noise, units), "clients": planned}


@step(
    cost=lambda clients, query, state: query.protocol.private_sums.second_cost,
    sums=_influence_layout,
    shares=planned_clients,
    bounds=_influence_bounds,
)
def noisy_influences(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    """Send the sum of the records' influences on the AUC, with a share of the noise.

    The query publishes both classes' distribution functions and sizes, from which alone every
    influence follows, a whole multiple of ``1 / FIXED_POINT``. With D the largest size of one,
    adding or removing a record moves the exact sum by at most D; the party rounds its sum once to
    units of ``D / R``, so that it moves by at most R. The shares of the parties that do not collude
    with the aggregator add up to discrete Laplace noise of scale ``R / epsilon_2``, which costs
    epsilon_2. The guarantee is that of ``noisy_counts``.

    The aggregator learns the noisy sum, and how many parties answered.

    Raises
    ------
    DataError : for a score outside [0, 1] where scores are probabilities.
    ValueError : for published functions or sizes that could not come from a first round.
    """
    settings, influences = query.protocol, accepted_influences(query, noise)
    sums, on_scale = settings.private_sums, settings.on_scale(clients)
    units = units_for(sums.influence_epsilon)
    reach = influences.sensitivity(Adjacency.RECORD)[..., np.newaxis]
    rounded = whole_units(influences.totals(on_scale), reach, units).sum(axis=-1)
    share = sums.influence_noise(sums.share(clients.count, planned_clients(query)))
    total = clipped(rounded, query, units) + noise.draw(share, ())
    return {"sum": total, "clients": np.asarray(clients.count, dtype=np.int64)}


STEPS = (noisy_counts, noisy_influences)
