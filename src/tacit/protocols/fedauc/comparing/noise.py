"""Public figures of two models' ranks of the same records, and how each record answers.

Everything is in doubled ranks, which are integers. A record has a *difference*, its rank by the
first model less its rank by the second, and a *level*, the sum of both. Labels enter the
difference of the AUCs through the sum of the differences of positive records.

A client's checks of a comparison query: the server's numbers must not weaken the noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Flags, Floats, Integers
from tacit.counts import rank_noise
from tacit.counts.rank_noise import RankNoise
from tacit.data.clients import Clients
from tacit.data.ragged import Ragged
from tacit.privacy.mechanisms.response import response_variance
from tacit.protocol.conversation import Query
from tacit.protocols.fedauc.steps import check_sums, checked_ranks, values_of_records

PLAUSIBLE_RATE = 0.25
PLAUSIBLE_DIFFERENCE = 0.02
"""Base rate and difference of AUCs for which the division of records is optimal. For others it is
less good; every reported error is computed from the estimates."""


@dataclass(frozen=True)
class PartNoise:
    """Staircase noise of a client's three sums, each at its own fraction of epsilon.

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
        return RankNoise(rank_noise.STAIRCASE, 0.3 * (1 - self.emphasis) * self.epsilon)

    @property
    def difference(self) -> RankNoise:
        """The noise of the sum of differences."""
        return RankNoise(rank_noise.STAIRCASE, self.emphasis * self.epsilon)

    @property
    def level(self) -> RankNoise:
        """The noise of the sum of levels."""
        return RankNoise(rank_noise.STAIRCASE, 0.7 * (1 - self.emphasis) * self.epsilon)


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

    @property
    def pivot(self) -> Integers:
        """Each client's mean level, rounded, shape (K,): its sum of levels is measured from it."""
        return np.rint(self.level.sum() / self.level.sizes).astype(np.int64)

    @property
    def centred(self) -> Ragged[np.int64]:
        """Every record's level less its client's pivot, shape (M,)."""
        level = self.level
        return Ragged(level.values - np.repeat(self.pivot, level.sizes), level.offsets)

    @cached_property
    def weights(self) -> Mapping[str, Ragged[np.int64]]:
        """What a record's label counts in each of the three sums, in doubled ranks."""
        ones = Ragged(np.ones(self.records, dtype=np.int64), self.first.offsets)
        return {"positives": ones, "differences": self.difference, "levels": self.centred}

    def sums(self, labels: NDArray[Any]) -> dict[str, Integers]:
        """The three sums of every client's labels, shape (..., K).

        Parameters
        ----------
        labels : in the order of the ranks, shape (..., M).
        """
        return {
            name: np.add.reduceat(weight.values * labels, weight.offsets[:-1], axis=-1)
            for name, weight in self.weights.items()
        }


def largest_by_client(values: Ragged[np.int64], among: Flags) -> Integers:
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


def records_that_respond(difference: Ragged[np.int64], noise: PartNoise, rounds: int = 3) -> Flags:
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
    ascending = Ragged(squares[order], difference.offsets)
    first = 4 * (PLAUSIBLE_DIFFERENCE * (1 - 2 * PLAUSIBLE_RATE) * records) ** 2
    slope = (1 - 2 * PLAUSIBLE_RATE) / (PLAUSIBLE_RATE * (1 - PLAUSIBLE_RATE) * records)
    weight = first
    for _ in range(rounds):
        summed, variance = _best_cuts(ascending, noise, weight)
        weight = first + slope**2 * variance
    if _noise_exceeds_class(Ragged(summed, difference.offsets), noise):
        return np.ones(records, dtype=np.bool_)
    responding = np.empty(records, dtype=np.bool_)
    responding[order] = ~summed
    return responding


def _best_cuts(squares: Ragged[np.float64], noise: PartNoise, weight: float) -> tuple[Flags, float]:
    """Which records are summed, shape (M,), and the predicted variance, in doubled ranks.

    Parameters
    ----------
    squares : of the differences, ascending within each client.
    noise : the noise of the sums.
    weight : of the count's errors.
    """
    starts, sizes = squares.offsets[:-1], squares.sizes
    unit = float(noise.difference.drawn(1, 1.0).unit_variance)
    count = float(noise.count.drawn(1, 1.0).variance)
    flipped_variance = response_variance(noise.epsilon) * (squares.values + weight)
    below = np.cumsum(flipped_variance)
    below -= np.repeat(below[starts] - flipped_variance[starts], sizes)
    all_flipped = below[squares.offsets[1:] - 1]
    variance = unit * squares.values + weight * count + (np.repeat(all_flipped, sizes) - below)
    least = np.minimum.reduceat(variance, starts)
    index = np.arange(variance.size) - np.repeat(starts, sizes)
    cut = np.maximum.reduceat(np.where(variance == np.repeat(least, sizes), index, -1), starts)
    cut = np.where(all_flipped < least, -1, cut)
    return index <= np.repeat(cut, sizes), float(np.minimum(all_flipped, least).sum())


def _noise_exceeds_class(summed: Ragged[np.bool_], noise: PartNoise) -> bool:
    """Whether noisy counts reach a third of a plausible class where flipped labels do better.

    The predicted variances assume small noise, and would not show it.
    """
    kappa, records = response_variance(noise.epsilon), summed.values.size
    clients = np.count_nonzero(np.logical_or.reduceat(summed.values, summed.offsets[:-1]))
    counted = clients * float(noise.count.drawn(1, 1.0).variance) + kappa * (~summed.values).sum()
    return bool(counted > max((PLAUSIBLE_RATE * records / 3) ** 2, kappa * records))


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
    ranks, pivot, responding = asked.ranks, asked.ranks.pivot, asked.responding
    counts = asked.any_summed * noise.count.drawn(1, 1.0).variance
    differences, levels = (
        part.drawn(largest_by_client(values, ~responding), 1.0).variance.sum()
        for part, values in ((noise.difference, ranks.difference), (noise.level, ranks.centred))
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
    responding : which records answer by randomised response, shape (M,).
    """

    ranks: RankPairs
    responding: Flags

    @classmethod
    def of(cls, clients: Clients, query: Query) -> DifferenceRequest:
        """The checked query.

        Raises
        ------
        ValueError : for a value of another type, shape or range, or ranks whose sum would not be
            exact; the message names it.
        """
        first, second = (checked_ranks(clients, query, name) for name in ("first", "second"))
        responding = values_of_records(clients, query, "responding", np.bool_)
        request = cls(RankPairs(first, second), responding.values)
        every_record = np.ones(clients.records, dtype=np.bool_)
        for weights in request.ranks.weights.values():
            largest = largest_by_client(weights, every_record)
            check_sums(clients.sizes, largest, query.protocol.part_noise.level.largest_sum)
        return request

    @property
    def any_summed(self) -> Flags:
        """The clients with a record that enters noisy sums, shape (K,)."""
        return np.logical_or.reduceat(~self.responding, self.ranks.first.offsets[:-1])
