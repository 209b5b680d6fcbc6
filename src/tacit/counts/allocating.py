"""How a client divides its budget between the count and the rank sum of its positives.

Every allocation gives each client a pivot (in ranks) and the fraction of its budget that protects
the count. The client releases the noisy count and the noisy residual ``sum((rank - pivot) *
label)``, from which the server rebuilds the rank sum. All figures that an allocation uses are
public: ranks, numbers of records, epsilon, and earlier releases. So the choice costs nothing, and
the sensitivity that the client computes keeps the guarantee for every choice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tacit.arrays import Flags, Floats, Integers
from tacit.counts.rank_noise import RankNoise
from tacit.data.ragged import Ragged, rank_scatter
from tacit.metrics import errors
from tacit.privacy.mechanisms.response import response_variance

FRACTION_GRID = 1 / (1 + np.exp(-np.linspace(np.log(1e-3 / 0.999), np.log(0.98 / 0.02), 48)))
"""Fractions of the budget for the count that the influence allocation compares."""

USUAL_FRACTION = 0.05
"""Fraction of the budget for the count with which the search for the second-order terms starts."""

FIRST_ROUND_FRACTIONS = (0.0, 0.01, 0.015, 0.02, 0.03, 0.045, 0.065, 0.1)
"""Fractions of epsilon that the influence allocation compares for a first round."""

NEGLIGIBLE = 1e-12
"""Least variance of the numerator, in squared ranks, whose logarithm is taken."""

PLANNING_CLIENTS = 1024
"""Largest number of clients, evenly spaced, from which the first round is chosen."""

PLAUSIBLE_RATES: Floats = np.repeat((0.05, 0.25, 0.5), 3)
PLAUSIBLE_AUCS: Floats = np.tile((0.6, 0.75, 0.9), 3)
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
        return cls(
            int(doubled_ranks.offsets[-1]),
            doubled_ranks.minimum() / 2,
            doubled_ranks.maximum() / 2,
            doubled_ranks.sum() / (2 * sizes),
            rank_scatter(doubled_ranks),
            sizes,
        )

    @property
    def columns(self) -> tuple[Floats, ...]:
        """All that is one number a client, in the order of the fields."""
        return self.low, self.high, self.mean, self.scatter, self.sizes

    def thinned(self, most: int) -> tuple[RankGeometry, float]:
        """At most ``most`` clients, evenly spaced, and how many clients each represents."""
        count = self.sizes.size
        if count <= most:
            return self, 1.0
        indices = np.linspace(0, count - 1, most).astype(np.int64)
        return RankGeometry(self.records, *(each[indices] for each in self.columns)), count / most


@dataclass(frozen=True)
class Allocation:
    """The numbers that the server sends to each client: arrays of shape (K,) or (R, K).

    Parameters
    ----------
    doubled_pivot : int64, twice the pivot.
    fraction : the fraction of the budget that protects the count, in (0, 1].
    respond : whether the client answers with randomised response.
    sensitivity : the least that the noise of a doubled rank sum assumes.
    """

    doubled_pivot: Integers
    fraction: Floats
    respond: Flags
    sensitivity: int = 0

    @classmethod
    def alike(
        cls,
        geometry: RankGeometry,
        doubled_pivot: int = 0,
        fraction: float = 1.0,
        respond: bool = False,
        sensitivity: int = 0,
    ) -> Allocation:
        """The same pivot and fraction for every client, or that all of them flip their labels."""
        pivot, fractions, responds = (
            np.full(geometry.sizes.size, value) for value in (doubled_pivot, fraction, respond)
        )
        return cls(pivot.astype(np.int64), fractions, responds, sensitivity)


@dataclass(frozen=True)
class PriorEstimate:
    """An estimate of the class sizes and the AUC, from which influences follow.

    Parameters
    ----------
    positives, auc : the estimates, shape () or (R,).
    centre_error : the standard deviation of the rank where a label's influence changes sign.
    """

    positives: Floats | float
    auc: Floats | float
    centre_error: Floats | float


def influence_centre(
    records: int, positives: Floats | float, auc: Floats | float
) -> Floats | float:
    """The rank ``c = P - 1/2 + AUC (N - P)`` where a label's influence on the AUC changes sign.

    The derivative of the AUC by label i is ``(rank_i - c) / (P N)``.
    """
    return positives - 0.5 + auc * (records - 2 * positives)


def orthogonal_allocation(geometry: RankGeometry, count_fraction: float) -> Allocation:
    """Pivot at the mean rank and one fraction for every client (Sun et al. 2022a, section 5.3)."""
    pivot, residual = _mean_pivot(geometry)
    fraction = np.where(residual > 0, count_fraction, 1.0)
    return Allocation(pivot, fraction, np.zeros(fraction.size, dtype=np.bool_))


def adaptive_allocation(geometry: RankGeometry, noise: RankNoise) -> Allocation:
    """Pivot at the mean rank, and the fraction that minimises the rank sum's variance.

    For Laplace noise ``u^(2/3) / (u^(2/3) + v^(2/3))`` with u the mean rank and v the largest
    distance to it (Sun et al. 2022a, section 5.3); for Gaussian noise ``u / (u + v)``.
    """
    pivot, residual = _mean_pivot(geometry)
    power = 2.0 / (1 + noise.kind.variance_order)
    count, rest = np.maximum(geometry.mean, 0.5) ** power, residual**power
    return Allocation(pivot, count / (count + rest), np.zeros(residual.size, dtype=np.bool_))


def influence_allocation(
    geometry: RankGeometry, noise: RankNoise, prior: PriorEstimate, rounds: int = 2
) -> Allocation:
    """The pivot and fraction that minimise the variance of the AUC itself.

    The count's noise enters the AUC multiplied by ``pivot - c``, so each client's pivot lies
    between the middle of its rank range and c, and its fraction minimises
    ``((pivot - c)^2 + e^2) Var(count) + max|rank - pivot|^2 Var(unit residual)``. Here ``e^2``
    holds the uncertainty of c and the second-order terms that a large count noise brings: the error
    of its square, and its product with the residual's noise. Those terms and the fractions depend
    on each other. Each round takes the geometric mean of the assumed terms and the implied ones.
    That is close to the fixed point, as doubling the assumed terms changes the implied ones by
    about ``2**(-2/3)``. A client answers with randomised response where its variance is smaller.
    """
    records = geometry.records
    positives = np.clip(prior.positives, 1.0, records - 1.0)[..., np.newaxis]
    area = np.clip(prior.auc, 0.0, 1.0)[..., np.newaxis]
    centre = np.asarray(influence_centre(records, positives, area))
    extra = np.asarray(prior.centre_error, dtype=np.float64)[..., np.newaxis] ** 2
    negatives = records - positives
    imbalance = ((negatives - positives) / (positives * negatives)) ** 2
    response = response_variance(noise.epsilon)
    coefficient = 6 * (area - 0.5) ** 2
    half = (geometry.high - geometry.low) / 2
    count_noise, rest = noise.drawn(1, USUAL_FRACTION), noise.drawn(1, 1 - USUAL_FRACTION)
    second_order = coefficient * geometry.sizes.size * float(count_noise.variance)
    second_order = second_order + imbalance * (half**2).sum() * rest.unit_variance
    for _ in range(rounds):
        uncertainty = extra + second_order
        pivot, fraction, noisy_variance = _best_pivot_and_fraction(
            geometry, noise, centre, uncertainty
        )
        scatter = geometry.scatter + geometry.sizes * (geometry.mean - centre) ** 2
        flipped_variance = response * (scatter + geometry.sizes * uncertainty)
        respond = flipped_variance < noisy_variance
        count = np.where(respond, response * geometry.sizes, noise.drawn(1, fraction).variance)
        total_variance = np.minimum(flipped_variance, noisy_variance).sum(axis=-1, keepdims=True)
        implied = coefficient * count.sum(axis=-1, keepdims=True) + imbalance * total_variance
        second_order = np.sqrt(second_order * implied)
    return Allocation(np.rint(2 * pivot).astype(np.int64), fraction, respond)


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
        sensitivity = doubled_sensitivity(
            geometry, allocation.doubled_pivot, allocation.sensitivity
        )
        noisy_residual = noise.drawn(sensitivity, 1 - allocation.fraction).variance / 4
        offset = np.where(allocation.respond, offset, allocation.doubled_pivot / 2 - centre)
        count = np.where(allocation.respond, count, noise.drawn(1, allocation.fraction).variance)
        residual = np.where(allocation.respond, residual, noisy_residual)
    return offset**2 * count + residual, count, offset * count


def numerator_law(
    geometry: RankGeometry, noise: RankNoise, allocation: Allocation, centre: Floats, pairs: Floats
) -> errors.ErrorLaw | None:
    """The law of the numerators' summed noise over ``P N``; None unless all of it is staircases.

    A client's residual counts half, in doubled ranks, and its count ``pivot - centre``, as in
    ``predicted_variance``. Clients that flip labels are no part of the law: their many flips are
    normal.

    Parameters
    ----------
    centre, pairs : where influences change sign, and ``P N``, shape (..., 1).
    """
    sensitivity = doubled_sensitivity(geometry, allocation.doubled_pivot, allocation.sensitivity)
    fraction = np.asarray(allocation.fraction, dtype=np.float64)
    noisy = ~allocation.respond
    residual = np.where(noisy & (sensitivity > 0), 0.5, 0.0) / pairs
    count = np.where(noisy, allocation.doubled_pivot / 2 - centre, 0.0) / pairs
    residuals = noise.stairs(residual, sensitivity, 1 - fraction)
    counts = noise.stairs(count, 1, fraction)
    if residuals is None or counts is None:
        return None
    return errors.ErrorLaw((residuals, counts))


def doubled_sensitivity(
    geometry: RankGeometry, doubled_pivot: Integers, least: int = 0
) -> Integers:
    """The largest ``|2 rank - 2 pivot|`` of each client, or the least that is assumed."""
    above = np.rint(2 * geometry.high).astype(np.int64) - doubled_pivot
    below = doubled_pivot - np.rint(2 * geometry.low).astype(np.int64)
    return np.maximum(np.maximum(above, below), least)


def prior_from(
    geometry: RankGeometry, noise: RankNoise, positives: Floats, auc: Floats
) -> PriorEstimate:
    """The prior estimate from a first round with this noise, and its influence centre's error.

    ``c - c_true = (N-P)/(P N) * numerator error - 2 (AUC - 1/2) * count error`` to first order. A
    round whose count noise reaches a third of a class gives no information about c: its error is
    then half the range of ranks.
    """
    records = geometry.records
    inside = np.clip(positives, 1.0, records - 1.0)
    area = np.clip(auc, 0.0, 1.0)
    centre = np.asarray(influence_centre(records, inside, area))[..., np.newaxis]
    variances = predicted_variance(geometry, noise, adaptive_allocation(geometry, noise), centre)
    numerator, count, both = (part.sum(axis=-1) for part in variances)
    slope = (records - 2 * inside) / (inside * (records - inside))
    count_slope = -2 * (area - 0.5)
    variance = slope**2 * numerator + 2 * slope * count_slope * both + count_slope**2 * count
    no_signal = np.minimum(inside, records - inside) < 3 * np.sqrt(count)
    middle = (records - 1) / 2
    return PriorEstimate(
        np.where(no_signal, records / 2, inside),
        np.where(no_signal, 0.5, area),
        np.where(no_signal, middle, np.minimum(np.sqrt(np.maximum(variance, 0)), middle)),
    )


def first_round_fraction(geometry: RankGeometry, noise: RankNoise) -> float:
    """The fraction of the budget for a first round, which estimates the influence centre.

    For each plausible base rate and AUC, the variance after a first round of each size is predicted
    from public figures; the size with the smallest mean logarithm is chosen. It is zero where the
    allocation is the same for every plausible centre, for example where randomised response is the
    better choice for every client.
    """
    sample, weight = geometry.thinned(PLANNING_CLIENTS)
    columns = tuple(np.asarray(each, dtype=np.float64).tobytes() for each in sample.columns)
    return _sampled_fraction(sample.records, columns, weight, noise)


@lru_cache(maxsize=64)
def _sampled_fraction(
    records: int, columns: tuple[bytes, ...], weight: float, noise: RankNoise
) -> float:
    """The same for the fields of a geometry as bytes: repeated runs have one geometry."""
    sample = RankGeometry(records, *map(np.frombuffer, columns))
    return min(
        FIRST_ROUND_FRACTIONS,
        key=lambda fraction: _first_round_loss(sample, weight, noise, fraction),
    )


def vague_prior(records: int) -> PriorEstimate:
    """The estimate before any release: the mean over plausible classifiers, and their deviation."""
    centres = influence_centre(records, PLAUSIBLE_RATES * records, PLAUSIBLE_AUCS)
    return PriorEstimate(
        float(PLAUSIBLE_RATES.mean()) * records,
        float(PLAUSIBLE_AUCS.mean()),
        float(np.std(centres)),
    )


def _first_round_loss(
    geometry: RankGeometry, weight: float, noise: RankNoise, fraction: float
) -> float:
    """The mean logarithm of the variance that a first round of this size leaves."""
    records = geometry.records
    positives = PLAUSIBLE_RATES * records
    centres = np.asarray(influence_centre(records, positives, PLAUSIBLE_AUCS))[:, np.newaxis]
    prior, error = vague_prior(records), np.zeros(())
    if fraction:
        prior = prior_from(geometry, noise.part(fraction), positives, PLAUSIBLE_AUCS)
        # the sample's error, as that of all clients
        error = np.minimum(prior.centre_error * np.sqrt(weight), (records - 1) / 2)
        prior = replace(prior, centre_error=error)
    rest = noise.rest(fraction)
    allocation = influence_allocation(geometry, rest, prior)
    numerator, count, _ = predicted_variance(geometry, rest, allocation, centres)
    noisy_variance = numerator.sum(-1) + error**2 * count.sum(-1)
    return float(np.mean(np.log(np.maximum(noisy_variance, NEGLIGIBLE))))


def _best_pivot_and_fraction(
    geometry: RankGeometry, noise: RankNoise, centre: Floats, extra: Floats
) -> tuple[Floats, Floats, Floats]:
    """The best pivot, fraction and resulting variance of every client, if it adds noise.

    A client whose records have one rank needs no residual: its count takes the whole budget.
    """
    middle = (geometry.low + geometry.high) / 2
    distance = np.abs(middle - centre)
    noisy_variance = (distance**2 + extra) * float(noise.drawn(1, 1.0).variance)
    reach, fraction = np.zeros_like(noisy_variance), np.ones_like(noisy_variance)
    wide = np.flatnonzero(geometry.high > geometry.low)
    if wide.size:
        half = (geometry.high - geometry.low)[wide] / 2
        best = _search_fractions(noise, distance[..., wide], half, extra)
        reach[..., wide], fraction[..., wide], noisy_variance[..., wide] = best
    return middle + reach * np.sign(centre - middle), fraction, noisy_variance


def _search_fractions(
    noise: RankNoise, distance: Floats, half: Floats, extra: Floats
) -> tuple[Floats, Floats, Floats]:
    """Minimise over the grid of fractions; for each the best move of the pivot has a closed form.

    With the count's variance C and the residual's unit variance U, moving the pivot by t towards
    the centre gives ``(d - t)^2 C + (h + t)^2 U``, least at ``t = (d C - h U) / (C + U)``.
    """
    best = np.full(distance.shape, np.inf)
    reach, fraction = np.zeros_like(best), np.zeros_like(best)
    for candidate, count, unit in zip(FRACTION_GRID, *_grid_variances(noise), strict=True):
        move = np.clip((distance * count - half * unit) / (count + unit), 0.0, distance)
        noisy_variance = ((distance - move) ** 2 + extra) * count + (half + move) ** 2 * unit
        better = noisy_variance < best
        np.copyto(best, noisy_variance, where=better)
        np.copyto(reach, move, where=better)
        np.copyto(fraction, candidate, where=better)
    return reach, fraction, best


@lru_cache(maxsize=256)
def _grid_variances(noise: RankNoise) -> tuple[Floats, Floats]:
    """The variances C and U at every fraction of the grid."""
    count, rest = noise.drawn(1, FRACTION_GRID), noise.drawn(1, 1 - FRACTION_GRID)
    return count.variance, rest.unit_variance


def _mean_pivot(geometry: RankGeometry) -> tuple[Integers, Floats]:
    pivot = np.rint(2 * geometry.mean).astype(np.int64)
    return pivot, doubled_sensitivity(geometry, pivot) / 2
