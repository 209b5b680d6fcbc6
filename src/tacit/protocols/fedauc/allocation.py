"""How a client divides its budget between the count and the rank sum of its positives.

Every allocation gives each client a pivot (in ranks) and the share of its budget that protects the
count. The client releases the noisy count and the noisy residual ``sum((rank - pivot) * label)``,
from which the server rebuilds the rank sum. All figures that an allocation uses are public: ranks,
numbers of records, epsilon, and earlier releases. So the choice costs nothing, and the sensitivity
that the client computes keeps the guarantee for every choice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.data.clients import Ragged
from tacit.privacy.local.response import response_variance
from tacit.protocols.shared.rank_noise import RankNoise

SHARE_GRID = 1 / (1 + np.exp(-np.linspace(np.log(1e-3 / 0.999), np.log(0.98 / 0.02), 48)))
"""Shares of the budget that the influence allocation tries."""

USUAL_SHARE = 0.05
"""The share of the count from which the search for the second-order terms starts."""

FIRST_ROUND_FRACTIONS = (0.0, 0.01, 0.015, 0.02, 0.03, 0.045, 0.065, 0.1)
"""Parts of epsilon that the influence allocation may spend on a first round."""

NEGLIGIBLE = 1e-12
"""Least variance of the numerator, in squared ranks, whose logarithm is taken."""

PLANNING_CLIENTS = 1024
"""Largest number of clients, evenly spaced, from which the first round is chosen."""

PLAUSIBLE = tuple((rate, auc) for rate in (0.05, 0.25, 0.5) for auc in (0.6, 0.75, 0.9))
"""Base rates and AUCs over which the first round's size is chosen."""


@dataclass(frozen=True)
class RankGeometry:
    """What is public about each client's ranks; every array has shape (K,).

    Parameters
    ----------
    records : M, the number of records of all clients.
    low, high : the smallest and largest rank.
    mean : the mean rank.
    scatter : the sum of squared distances to the mean rank.
    sizes : the number of records.
    """

    records: int
    low: Floats
    high: Floats
    mean: Floats
    scatter: Floats
    sizes: Floats

    @classmethod
    def of(cls, doubled_ranks: Ragged[np.int64]) -> RankGeometry:
        """The geometry of ranks given as doubled integers."""
        sizes = doubled_ranks.sizes.astype(np.float64)
        mean = doubled_ranks.sum() / (2 * sizes)
        centred = doubled_ranks.values / 2 - np.repeat(mean, doubled_ranks.sizes)
        return cls(
            int(doubled_ranks.values.size),
            doubled_ranks.minimum() / 2,
            doubled_ranks.maximum() / 2,
            mean,
            np.add.reduceat(centred**2, doubled_ranks.offsets[:-1]),
            sizes,
        )

    def thinned(self, most: int) -> tuple[RankGeometry, float]:
        """At most ``most`` clients, evenly spaced, and how many clients each stands for."""
        count = self.sizes.size
        if count <= most:
            return self, 1.0
        chosen = np.linspace(0, count - 1, most).astype(np.int64)
        fields = (self.low, self.high, self.mean, self.scatter, self.sizes)
        return RankGeometry(self.records, *(values[chosen] for values in fields)), count / most

    def response_spread(self, centre: Floats | float) -> Floats:
        """Each client's sum of squared distances of its ranks to ``centre``."""
        return self.scatter + self.sizes * (self.mean - centre) ** 2


@dataclass(frozen=True)
class Allocation:
    """What the server sends to each client: arrays of shape (K,) or (R, K).

    Parameters
    ----------
    doubled_pivot : int64, twice the pivot.
    share : the part of the budget that protects the count, in (0, 1].
    respond : the client answers with randomised response instead.
    """

    doubled_pivot: NDArray[np.int64]
    share: Floats
    respond: NDArray[np.bool_]


@dataclass(frozen=True)
class PriorEstimate:
    """An estimate of the class sizes and the AUC, from which influences follow.

    Parameters
    ----------
    positives, auc : the estimates, shape () or (R,).
    positives_error : the standard deviation of ``positives``.
    centre_error : the standard deviation of the rank where a label's influence changes sign.
    """

    positives: Floats | float
    auc: Floats | float
    positives_error: Floats | float
    centre_error: Floats | float


def influence_centre(
    records: int, positives: Floats | float, auc: Floats | float
) -> Floats | float:
    """The rank ``c = P - 1/2 + AUC (N - P)`` where a label's influence on the AUC changes sign.

    The derivative of the AUC by label i is ``(rank_i - c) / (P N)``.
    """
    return positives - 0.5 + auc * (records - 2 * positives)


def fixed_allocation(geometry: RankGeometry, count_share: float) -> Allocation:
    """Pivot 0 and one share for every client (Sun et al. 2022a, section 5.2)."""
    clients = geometry.sizes.size
    return Allocation(
        np.zeros(clients, dtype=np.int64), np.full(clients, count_share), _nobody(clients)
    )


def orthogonal_allocation(geometry: RankGeometry, count_share: float) -> Allocation:
    """Pivot at the mean rank and one share for every client (Sun et al. 2022a, section 5.3)."""
    pivot, residual = _mean_pivot(geometry)
    share = np.where(residual > 0, count_share, 1.0)
    return Allocation(pivot, share, _nobody(share.size))


def adaptive_allocation(geometry: RankGeometry, noise: RankNoise) -> Allocation:
    """Pivot at the mean rank, and the share that minimises the rank sum's variance.

    For Laplace noise ``u^(2/3) / (u^(2/3) + v^(2/3))`` with u the mean rank and v the largest
    distance to it (Sun et al. 2022a, section 5.3); for Gaussian noise ``u / (u + v)``.
    """
    pivot, residual = _mean_pivot(geometry)
    power = 2.0 / (1 + noise.kind.variance_order)
    count, rest = np.maximum(geometry.mean, 0.5) ** power, residual**power
    return Allocation(pivot, count / (count + rest), _nobody(residual.size))


def influence_allocation(
    geometry: RankGeometry, noise: RankNoise, release: PriorEstimate, rounds: int = 2
) -> Allocation:
    """The pivot and share that minimise the variance of the AUC itself.

    The count's noise enters the AUC multiplied by ``pivot - c``, so each client's pivot lies
    between the middle of its rank range and c, and its share minimises
    ``((pivot - c)^2 + e^2) Var(count) + max|rank - pivot|^2 Var(unit residual)``. Here ``e^2``
    holds the uncertainty of c and the second-order terms that a large count noise brings: the error
    of its square, and its product with the residual's noise. Those terms and the shares depend on
    each other. Each round takes the geometric mean of the assumed terms and those that follow from
    them. That is close to the fixed point, as doubling the assumed terms changes those that follow
    by about ``2**(-2/3)``. A client whose randomised response has the smaller variance answers that
    way.
    """
    records = geometry.records
    positives = np.clip(release.positives, 1.0, records - 1.0)[..., np.newaxis]
    area = np.clip(release.auc, 0.0, 1.0)[..., np.newaxis]
    centre = np.asarray(influence_centre(records, positives, area))
    extra = np.asarray(release.centre_error, dtype=np.float64)[..., np.newaxis] ** 2
    negatives = records - positives
    imbalance = ((negatives - positives) / (positives * negatives)) ** 2
    response = response_variance(noise.epsilon)
    coefficient = 6 * (area - 0.5) ** 2
    half = (geometry.high - geometry.low) / 2
    second_order = coefficient * geometry.sizes.size * float(noise.count_variance(USUAL_SHARE))
    second_order = second_order + imbalance * (half**2).sum() * noise.unit_variance(USUAL_SHARE)
    for _ in range(rounds):
        uncertainty = extra + second_order
        pivot, share, spread = _best_pivot_and_share(geometry, noise, centre, uncertainty)
        answered = response * (geometry.response_spread(centre) + geometry.sizes * uncertainty)
        respond = answered < spread
        count = np.where(respond, response * geometry.sizes, noise.count_variance(share))
        spread_total = np.minimum(answered, spread).sum(axis=-1, keepdims=True)
        implied = coefficient * count.sum(axis=-1, keepdims=True) + imbalance * spread_total
        second_order = np.sqrt(second_order * implied)
    return Allocation(np.rint(2 * pivot).astype(np.int64), share, respond)


def predicted_variance(
    geometry: RankGeometry, noise: RankNoise, allocation: Allocation, centre: Floats | float
) -> tuple[Floats, Floats, Floats]:
    """Each client's variances of the weighted numerator, of the count, and their covariance.

    The numerator is the client's part of ``sum((rank - centre) * label)``; the AUC's error is the
    numerators' sum divided by ``P N``. Shapes (..., K).
    """
    response = response_variance(noise.epsilon)
    offset = geometry.mean - centre
    count, residual = response * geometry.sizes, response * geometry.scatter
    if not allocation.respond.all():
        sensitivity = doubled_sensitivity(geometry, allocation.doubled_pivot)
        noisy_residual = noise.residual_variance(sensitivity, allocation.share) / 4
        offset = np.where(allocation.respond, offset, allocation.doubled_pivot / 2 - centre)
        count = np.where(allocation.respond, count, noise.count_variance(allocation.share))
        residual = np.where(allocation.respond, residual, noisy_residual)
    return offset**2 * count + residual, count, offset * count


def doubled_sensitivity(
    geometry: RankGeometry, doubled_pivot: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The largest ``|2 rank - 2 pivot|`` of each client."""
    above = np.rint(2 * geometry.high).astype(np.int64) - doubled_pivot
    below = doubled_pivot - np.rint(2 * geometry.low).astype(np.int64)
    return np.maximum(np.maximum(above, below), 0)


def release_from(
    geometry: RankGeometry, noise: RankNoise, allocation: Allocation, positives: Floats, auc: Floats
) -> PriorEstimate:
    """The release that a noisy first round makes, with the error of its influence centre.

    ``c - c_true = (N-P)/(P N) * numerator error - 2 (AUC - 1/2) * count error`` to first order. A
    round whose count noise reaches a third of a class tells nothing about c: its error is then half
    the range of ranks.
    """
    records = geometry.records
    inside = np.clip(positives, 1.0, records - 1.0)
    area = np.clip(auc, 0.0, 1.0)
    centre = np.asarray(influence_centre(records, inside, area))[..., np.newaxis]
    numerator, count, both = (
        part.sum(axis=-1) for part in predicted_variance(geometry, noise, allocation, centre)
    )
    slope = (records - 2 * inside) / (inside * (records - inside))
    count_slope = -2 * (area - 0.5)
    variance = slope**2 * numerator + 2 * slope * count_slope * both + count_slope**2 * count
    hopeless = np.minimum(inside, records - inside) < 3 * np.sqrt(count)
    middle = (records - 1) / 2
    return PriorEstimate(
        np.where(hopeless, records / 2, inside),
        np.where(hopeless, 0.5, area),
        np.sqrt(count),
        np.where(hopeless, middle, np.minimum(np.sqrt(np.maximum(variance, 0)), middle)),
    )


def first_round_fraction(
    geometry: RankGeometry, mechanism: str, epsilon: float, delta: float
) -> float:
    """The part of epsilon worth spending on a first round that locates the influence centre.

    For each plausible base rate and AUC, the variance after a first round of each size is predicted
    from public figures; the size with the smallest mean logarithm is chosen. It is zero where the
    allocation is the same for every plausible centre, as when every client is better off with
    randomised response.
    """
    few, weight = geometry.thinned(PLANNING_CLIENTS)
    spend = _first_round_losses(few, weight, mechanism, epsilon, delta)
    return FIRST_ROUND_FRACTIONS[int(np.argmin(spend))]


def vague_prior(records: int) -> PriorEstimate:
    """What is known of the influence centre before anything was released."""
    rates, areas = np.array(PLAUSIBLE, dtype=np.float64).T
    centres = influence_centre(records, rates * records, areas)
    return PriorEstimate(
        float(rates.mean()) * records,
        float(areas.mean()),
        float(rates.std()) * records,
        float(np.std(centres)),
    )


def _first_round_losses(
    geometry: RankGeometry, weight: float, mechanism: str, epsilon: float, delta: float
) -> list[float]:
    losses = []
    rates, areas = np.array(PLAUSIBLE, dtype=np.float64).T
    positives = rates * geometry.records
    centres = np.asarray(influence_centre(geometry.records, positives, areas))[:, np.newaxis]
    for fraction in FIRST_ROUND_FRACTIONS:
        rest = RankNoise(mechanism, (1 - fraction) * epsilon, (1 - fraction) * delta)
        if fraction:
            first = RankNoise(mechanism, fraction * epsilon, fraction * delta)
            opening = adaptive_allocation(geometry, first)
            known = release_from(geometry, first, opening, positives, areas)
            known = _scaled(known, weight, geometry.records)
        else:
            known = vague_prior(geometry.records)
        chosen = influence_allocation(geometry, rest, known)
        numerator, count, _ = predicted_variance(geometry, rest, chosen, centres)
        wrong = np.asarray(known.centre_error) ** 2 if fraction else 0.0
        spread = numerator.sum(-1) + wrong * count.sum(-1)
        losses.append(float(np.mean(np.log(np.maximum(spread, NEGLIGIBLE)))))
    return losses


def _scaled(release: PriorEstimate, weight: float, records: int) -> PriorEstimate:
    """A thinned federation's release with the errors of the whole."""
    error = np.minimum(np.asarray(release.centre_error) * np.sqrt(weight), (records - 1) / 2)
    return PriorEstimate(release.positives, release.auc, release.positives_error, error)


def _best_pivot_and_share(
    geometry: RankGeometry, noise: RankNoise, centre: Floats, extra: Floats
) -> tuple[Floats, Floats, Floats]:
    """The best pivot, share and resulting variance of every client, if it adds noise.

    A client whose records share one rank needs no residual: its count takes the whole budget.
    """
    middle = (geometry.low + geometry.high) / 2
    distance = np.abs(middle - centre)
    spread = (distance**2 + extra) * float(noise.count_variance(1.0))
    reach, share = np.zeros_like(spread), np.ones_like(spread)
    wide = np.flatnonzero(geometry.high > geometry.low)
    if wide.size:
        half = (geometry.high - geometry.low)[wide] / 2
        best = _search_shares(noise, distance[..., wide], half, extra)
        reach[..., wide], share[..., wide], spread[..., wide] = best
    return middle + reach * np.sign(centre - middle), share, spread


def _search_shares(
    noise: RankNoise, distance: Floats, half: Floats, extra: Floats
) -> tuple[Floats, Floats, Floats]:
    """Minimise over the grid of shares; for each, the best way to move the pivot is in closed form.

    With the count's variance C and the residual's unit variance U, moving the pivot by t towards
    the centre gives ``(d - t)^2 C + (h + t)^2 U``, least at ``t = (d C - h U) / (C + U)``.
    """
    best = np.full(distance.shape, np.inf)
    reach, share = np.zeros_like(best), np.zeros_like(best)
    counts, units = noise.count_variance(SHARE_GRID), noise.unit_variance(SHARE_GRID)
    for tried, count, unit in zip(SHARE_GRID, counts, units, strict=True):
        moved = np.clip((distance * count - half * unit) / (count + unit), 0.0, distance)
        spread = ((distance - moved) ** 2 + extra) * count + (half + moved) ** 2 * unit
        better = spread < best
        np.copyto(best, spread, where=better)
        np.copyto(reach, moved, where=better)
        np.copyto(share, tried, where=better)
    return reach, share, best


def _mean_pivot(geometry: RankGeometry) -> tuple[NDArray[np.int64], Floats]:
    pivot = np.rint(2 * geometry.mean).astype(np.int64)
    return pivot, doubled_sensitivity(geometry, pivot) / 2


def _nobody(clients: int) -> NDArray[np.bool_]:
    return np.zeros(clients, dtype=np.bool_)
