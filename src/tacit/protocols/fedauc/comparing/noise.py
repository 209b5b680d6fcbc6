"""Public figures of two models' ranks of the same records, and how each record answers.

Everything is in doubled ranks, which are integers. A record has a *difference*, its rank by the
first model less its rank by the second, and a *level*, the sum of both. Labels enter the
difference of the AUCs through the sum of the differences of positive records.

A client's checks of a comparison query: the server's numbers must not weaken the noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.batches.ragged import Ragged
from tacit.data.clients import Clients
from tacit.privacy.mechanisms.response import response_variance
from tacit.protocol.conversation import Query
from tacit.protocols.fedauc.steps import MAX_RECORDS, check_sums
from tacit.protocols.shared.rank_noise import STAIRCASE, RankNoise

PLAUSIBLE_RATE = 0.25
PLAUSIBLE_DIFFERENCE = 0.02
"""Base rate and difference of AUCs for which the division of records is optimal. For others it is
less good; every reported error is computed from the estimates."""


@dataclass(frozen=True)
class PartNoise:
    """Staircase noise of a client's three sums, each at its own part of epsilon.

    Parameters
    ----------
    epsilon : the budget of all three.
    emphasis : the difference's fraction of epsilon; the count has three tenths of the rest and the
        level seven, which is near the best division for the two AUCs.
    """

    epsilon: float
    emphasis: float

    @property
    def count(self) -> RankNoise:
        """The noise of the number of positives."""
        return RankNoise(STAIRCASE, 0.3 * (1 - self.emphasis) * self.epsilon)

    @property
    def difference(self) -> RankNoise:
        """The noise of the sum of differences."""
        return RankNoise(STAIRCASE, self.emphasis * self.epsilon)

    @property
    def level(self) -> RankNoise:
        """The noise of the sum of levels."""
        return RankNoise(STAIRCASE, 0.7 * (1 - self.emphasis) * self.epsilon)


@dataclass(frozen=True, eq=False)
class RankPairs:
    """Two models' doubled ranks of the same records, in one order.

    Parameters
    ----------
    first, second : shape (M,), cut by client.
    """

    first: Ragged[np.int64]
    second: Ragged[np.int64]

    @property
    def records(self) -> int:
        """M, the number of records."""
        return self.first.values.size

    @property
    def difference(self) -> Ragged[np.int64]:
        """First less second."""
        return Ragged(self.first.values - self.second.values, self.first.offsets)

    @property
    def level(self) -> Ragged[np.int64]:
        """The sum of both."""
        return Ragged(self.first.values + self.second.values, self.first.offsets)

    def middle_levels(self) -> Integers:
        """Each client's mean level, rounded, shape (K,): the pivot of its sum of levels."""
        return np.rint(self.level.sum() / self.level.sizes).astype(np.int64)


def largest_by_client(values: Ragged[np.int64], among: NDArray[np.bool_]) -> Integers:
    """The largest magnitude of each client's values among some of them, 0 where there are none.

    Parameters
    ----------
    values : shape (M,), cut by client.
    among : which of them count, shape (M,).

    Examples
    --------
    >>> values = Ragged(np.array([3, -5, 2]), np.array([0, 2, 3]))
    >>> largest_by_client(values, np.array([True, False, False]))
    array([3, 0])
    """
    return np.maximum.reduceat(np.abs(values.values) * among, values.offsets[:-1])


def records_that_respond(
    difference: Ragged[np.int64], noise: PartNoise, rounds: int = 3
) -> NDArray[np.bool_]:
    """Which records answer by randomised response, and which by their client's noisy sums.

    The noise of a sum of differences depends on the largest of them, so a few records on which the
    models disagree most make it large; under randomised response each record adds a variance by its
    difference alone. A client's records are divided at one size of the difference, where the
    predicted variance is least:

        U m^2 + e C + kappa * (sum of d^2 + e above m),   or   kappa * (sum of d^2 + e over all)

    with ``U`` the noise's variance for a unit, ``C`` the count's, ``kappa`` that of a debiased
    label, and ``m`` the largest difference d below the cut. The weight ``e`` of the count's errors
    is what they add to the difference of the AUCs, at a plausible base rate and difference: to
    first order by ``c^2``, to second by their product with the numerator's error. Where the counts'
    noise would exceed a class, all records respond. Every record takes one of the two ways, so it
    spends epsilon once; ranks are public, so the choice spends nothing.

    Parameters
    ----------
    difference : doubled differences of ranks, shape (M,), cut by client.
    noise : the noise of the sums.
    rounds : number of times that the choice is computed from the count's weight and the weight from
        the choice.

    Examples
    --------
    One record in a thousand moves from the lowest rank to the highest; only that record responds:

    >>> moved = Ragged(np.append(np.zeros(999, np.int64), 1998), np.array([0, 1000]))
    >>> records_that_respond(moved, PartNoise(1.0, 0.8)).nonzero()[0]
    array([999])
    """
    records, sizes = difference.values.size, difference.sizes
    client = np.repeat(np.arange(sizes.size), sizes)
    squares = difference.values.astype(np.float64) ** 2
    order = np.lexsort((squares, client))
    cuts = _Cuts(squares[order], difference.offsets, noise)
    first = 4 * (PLAUSIBLE_DIFFERENCE * (1 - 2 * PLAUSIBLE_RATE) * records) ** 2
    slope = (1 - 2 * PLAUSIBLE_RATE) / (PLAUSIBLE_RATE * (1 - PLAUSIBLE_RATE) * records)
    weight = first
    for _ in range(rounds):
        summed, variance = cuts.best(weight)
        weight = first + slope**2 * variance
    if cuts.noise_exceeds_class(summed):
        return np.ones(records, dtype=np.bool_)
    responding = np.empty(records, dtype=np.bool_)
    responding[order] = ~summed
    return responding


@dataclass(frozen=True, eq=False)
class _Cuts:
    """Divisions of every client's records, ascending by the square of their difference.

    Parameters
    ----------
    squares : shape (M,), ascending within each client.
    offsets : of the clients, shape (K+1,).
    noise : the noise of the sums.
    """

    squares: Floats
    offsets: Integers
    noise: PartNoise

    def best(self, weight: float) -> tuple[NDArray[np.bool_], float]:
        """Which records are summed, shape (M,), and the predicted variance, in doubled ranks."""
        starts, sizes = self.offsets[:-1], np.diff(self.offsets)
        unit = float(self.noise.difference.unit_variance(0.0))
        count = float(self.noise.count.count_variance(1.0))
        flipped_variance = response_variance(self.noise.epsilon) * (self.squares + weight)
        below = np.cumsum(flipped_variance)
        below -= np.repeat(below[starts] - flipped_variance[starts], sizes)
        all_flipped = below[self.offsets[1:] - 1]
        variance = unit * self.squares + weight * count + (np.repeat(all_flipped, sizes) - below)
        least = np.minimum.reduceat(variance, starts)
        index = np.arange(variance.size) - np.repeat(starts, sizes)
        cut = np.maximum.reduceat(np.where(variance == np.repeat(least, sizes), index, -1), starts)
        cut = np.where(all_flipped < least, -1, cut)
        return index <= np.repeat(cut, sizes), float(np.minimum(all_flipped, least).sum())

    def noise_exceeds_class(self, summed: NDArray[np.bool_]) -> bool:
        """Whether noisy counts reach a third of a plausible class where flipped labels do better.

        The predicted variances assume small noise, and would not show it.
        """
        kappa = response_variance(self.noise.epsilon)
        clients = np.count_nonzero(np.logical_or.reduceat(summed, self.offsets[:-1]))
        counted = clients * float(self.noise.count.count_variance(1.0)) + kappa * (~summed).sum()
        reach = PLAUSIBLE_RATE * summed.size / 3
        return bool(counted > max(reach**2, kappa * summed.size))


@dataclass(frozen=True)
class CentredVariance:
    """The variance of a noisy sum of ``(value - centre) * label``, for any centre.

    Parameters
    ----------
    constant, linear, quadratic : it is ``constant - 2 linear centre + quadratic centre^2``.
    """

    constant: float
    linear: float
    quadratic: float

    def about(self, centre: Floats) -> Floats:
        """The variance about a centre, of the centre's shape."""
        variance = self.constant - 2 * self.linear * centre + self.quadratic * centre**2
        return np.maximum(variance, 0.0)


def predicted_variances(asked: DifferenceRequest, noise: PartNoise) -> tuple[CentredVariance, ...]:
    """The variances that noise and flips cause, from public figures alone.

    Of the sums of the two models' ranks and of the sum of their differences; their quadratic part
    is the count's.

    Parameters
    ----------
    asked : what every client is asked.
    noise : the noise of the sums.
    """
    ranks, pivot, responding = asked.ranks, asked.pivot, asked.responding
    counts = asked.any_summed * noise.count.count_variance(1.0)
    differences, levels = (
        part.residual_variance(largest_by_client(values, ~responding), 0.0).sum()
        for part, values in ((noise.difference, ranks.difference), (noise.level, asked.centred))
    )
    kappa = response_variance(noise.epsilon)

    def combined(values: Integers, sums: float, pivots: Floats) -> CentredVariance:
        weights = values[responding] / 2
        return CentredVariance(
            float(sums + (counts * pivots**2).sum() + kappa * (weights**2).sum()),
            float((counts * pivots).sum() + kappa * weights.sum()),
            float(counts.sum() + kappa * weights.size),
        )

    both = (levels + differences) / 16
    return (
        combined(ranks.first.values, both, pivot / 4),
        combined(ranks.second.values, both, pivot / 4),
        combined(ranks.difference.values, differences / 4, np.zeros(pivot.size)),
    )


@dataclass(frozen=True, eq=False)
class DifferenceRequest:
    """What a query for sums of ranks of two models asks.

    Parameters
    ----------
    ranks : doubled ranks of the clients' records by both models.
    pivot : of every client's levels, shape (K,).
    responding : which records answer by randomised response, shape (M,).
    """

    ranks: RankPairs
    pivot: Integers
    responding: NDArray[np.bool_]

    @classmethod
    def of(cls, clients: Clients, query: Query) -> DifferenceRequest:
        """The checked query.

        Raises
        ------
        ValueError : for a value of another type, shape or range, or ranks whose sum would not be
            exact; the message names it.
        """
        first, second = (_record_values(clients, query, name, np.int64) for name in RANKS)
        for name, ranks in zip(RANKS, (first, second), strict=True):
            if ranks.values.min() < 0 or ranks.values.max() > 2 * MAX_RECORDS:
                raise ValueError(f"{name} ranks must be from 0 to {2 * MAX_RECORDS}, doubled")
        pivot = np.asarray(query.per_client["pivot"])
        if pivot.dtype != np.int64 or pivot.shape != (clients.count,):
            raise ValueError(
                f"pivot must hold one int64 a client, got {pivot.dtype} of shape {pivot.shape}"
            )
        if pivot.min() < 0 or pivot.max() > 4 * MAX_RECORDS:
            raise ValueError(f"pivots must be from 0 to {4 * MAX_RECORDS}")
        responding = _record_values(clients, query, "responding", np.bool_)
        request = cls(RankPairs(first, second), pivot, responding.values)
        every_record = np.ones(clients.records, dtype=np.bool_)
        for weights in (request.ranks.difference, request.centred):
            largest = largest_by_client(weights, every_record)
            check_sums(clients.sizes, largest, query.protocol.part_noise.level.largest_sum)
        return request

    @property
    def centred(self) -> Ragged[np.int64]:
        """Every record's level less its client's pivot, shape (M,)."""
        level = self.ranks.level
        return Ragged(level.values - np.repeat(self.pivot, level.sizes), level.offsets)

    @property
    def any_summed(self) -> NDArray[np.bool_]:
        """The clients with a record that enters noisy sums, shape (K,)."""
        return np.logical_or.reduceat(~self.responding, self.ranks.first.offsets[:-1])


RANKS = ("first", "second")


def _record_values(clients: Clients, query: Query, name: str, dtype: Any) -> Ragged[Any]:
    column = query.per_client[name]
    if not isinstance(column, Ragged) or column.values.dtype != dtype or column.values.ndim != 1:
        raise ValueError(f"{name} must be ragged values of type {np.dtype(dtype)}")
    if not np.array_equal(column.offsets, clients.offsets):
        raise ValueError(f"{name} must hold one value for every record")
    return column
