"""The two rounds of FedAUC by secure sums: the division of epsilon, and the AUC of the sums."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.data.batches.ragged import Ragged
from tacit.data.errors import DataError
from tacit.privacy.sampling.distributions import discrete_laplace_variance
from tacit.privacy.sampling.exact import MAX_SHARED_SCALE
from tacit.protocol.conversation import Conversation, Query, Reply, View
from tacit.protocols.fedauc.allocation import PLAUSIBLE, influence_centre
from tacit.protocols.fedauc.estimate import result_from_pairs
from tacit.protocols.fedauc.secure_sums.protocol import (
    keep_ranks,
    residual_of,
    residual_variance,
    sensitivity,
    summed_rank_pairs,
    summed_residuals,
)
from tacit.results.class_sizes import MIN_CLASS_SIZE_IN_ERRORS

FIRST_ROUND_PARTS = (0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.2, 0.3)
"""Parts of epsilon that the first round may get."""

COUNT_PARTS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""Parts of the first round that the count of positives may get."""

LEAST_SHARED_EPSILON = (1 + 1e-9) / MAX_SHARED_SCALE
"""Least epsilon of a number of sensitivity 1 of whose noise shares are drawn; rounding may not
bring it below."""


@dataclass(frozen=True)
class Parts:
    """The first round's part of epsilon, and the count's part of that round."""

    first: float
    count: float

    @property
    def least(self) -> float:
        """The part of the number that gets the least."""
        return min(self.first * min(self.count, 1 - self.count), 1 - self.first)


@dataclass(frozen=True, eq=False)
class FirstRound:
    """What the first round says, each of shape () or (R,) in replicates.

    Parameters
    ----------
    positives : the noisy count of positives.
    count_variance : its variance.
    area : the AUC by the first round alone.
    centre_variance : the variance of the rank where a label's influence changes sign.
    """

    positives: Floats
    count_variance: float
    area: Floats
    centre_variance: Floats

    @classmethod
    def of_sums(
        cls, records: int, positives: Floats, residual: Floats, epsilon: float, count_part: float
    ) -> FirstRound:
        """From the count and the sum of ranks about the middle rank."""
        count_variance = float(discrete_laplace_variance(1 / (epsilon * count_part)))
        inside = np.clip(positives, 1.0, records - 1.0)
        area = np.clip(0.5 + residual / (inside * (records - inside)), 0.0, 1.0)
        return cls(
            positives,
            count_variance,
            area,
            _centre_variance(records, inside, area, count_variance, epsilon * (1 - count_part)),
        )

    def pivot(self, records: int) -> Integers:
        """The doubled rank nearest to the influence centre, from 0 to 2 (M-1)."""
        inside = np.clip(self.positives, 1.0, records - 1.0)
        centre = np.asarray(influence_centre(records, inside, self.area))
        return np.clip(np.rint(2 * centre), 0, 2 * (records - 1)).astype(np.int64)

    def shows_both_classes(self, records: int) -> Floats:
        """Whether both class sizes exceed ``MIN_CLASS_SIZE_IN_ERRORS`` of the count's errors."""
        smaller = np.minimum(self.positives, records - self.positives)
        return np.asarray(smaller > MIN_CLASS_SIZE_IN_ERRORS * np.sqrt(self.count_variance))

    def area_with(self, records: int, pivot: Integers, residual: Floats) -> Floats:
        """The AUC, from the sum of ``rank - pivot`` over the positives; NaN without both classes.

        ``AUC = 1/2 + (residual + (pivot - (M-1)/2) P) / (P (M - P))``.
        """
        shown = self.shows_both_classes(records)
        positives = np.where(shown, self.positives, records / 2)
        numerator = residual + (pivot / 2 - (records - 1) / 2) * positives
        return np.where(shown, 0.5 + numerator / (positives * (records - positives)), np.nan)


def numerator_variance(first: FirstRound, epsilon: float, sensitivity: Integers | Floats) -> Floats:
    """The variance of the AUC's numerator after the second round.

    The second round's noise, and what is left of the count's error at a centre that is itself
    uncertain: ``Var(residual) + Var(centre) Var(count)``.
    """
    return residual_variance(epsilon, sensitivity) + first.centre_variance * first.count_variance


@lru_cache(maxsize=256)
def divided(records: int, epsilon: float) -> Parts:
    """The division of epsilon with the least error over plausible base rates and AUCs.

    The mean logarithm of ``numerator_variance`` is compared, for numbers that are public. Only
    parts count of whose noise a client can draw a share.

    Examples
    --------
    >>> divided(458_407, 1.0).first
    0.03
    """
    tried = [Parts(first, count) for first in FIRST_ROUND_PARTS for count in COUNT_PARTS]
    drawn = [parts for parts in tried if epsilon * parts.least >= LEAST_SHARED_EPSILON]
    return min(drawn, key=lambda parts: _loss(records, epsilon, parts))


def _loss(records: int, epsilon: float, parts: Parts) -> float:
    """The mean logarithm of the AUC's variance; that of a class that does not show is 1/4."""
    rates, areas = np.array(PLAUSIBLE, dtype=np.float64).T
    positives = rates * records
    pairs = positives * (records - positives)
    spent = parts.first * epsilon
    first = FirstRound.of_sums(records, positives, (areas - 0.5) * pairs, spent, parts.count)
    variance = numerator_variance(
        first, epsilon - spent, sensitivity(records, first.pivot(records))
    )
    relative = np.where(first.shows_both_classes(records), variance / pairs**2, 0.25)
    return float(np.mean(np.log(relative)))


def _centre_variance(
    records: int, positives: Floats, area: Floats, count_variance: float, rest: float
) -> Floats:
    """The variance of ``c = P - 1/2 + A (M - 2P)`` by the first round's noise.

    With A = 1/2 + T / (P N), T the sum of ranks about the middle: ``dc/dP = 1 - 2A - T (N-P)^2 /
    (P N)^2`` and ``dc/dT = (N - P) / (P N)``, T and P with independent noise.
    """
    negatives = records - positives
    pairs, difference = positives * negatives, negatives - positives
    by_count = 1 - 2 * area - (area - 0.5) * difference**2 / pairs
    by_sum = difference / pairs
    noise = residual_variance(rest, sensitivity(records, np.array(records - 1)))
    return by_count**2 * count_variance + by_sum**2 * noise


def rounds_by_sum(protocol: Any, clients: int, ranks: Ragged[np.int64]) -> Conversation:
    """The rounds after the scores were ranked: ranks down, and two sums up."""
    records = int(ranks.offsets[-1])
    shared: dict[str, Any] = {"clients": clients, "records": records}
    yield Query(keep_ranks, protocol, {"records": records}, {"ranks": ranks})
    parts = divided(records, protocol.epsilon)
    spent = parts.first * protocol.epsilon
    asked = {**shared, "epsilon": spent, "count_part": parts.count}
    reply = yield Query(summed_rank_pairs, protocol, asked, view=View.SUM)
    _check_clients(reply, clients)
    reach = sensitivity(records, np.array(records - 1))
    residual = residual_of(reply, spent * (1 - parts.count), reach)
    positives = np.asarray(reply["positives"], dtype=np.float64)
    first = FirstRound.of_sums(records, positives, residual, spent, parts.count)
    pivot, epsilon = first.pivot(records), protocol.epsilon - spent
    asked = {**shared, "epsilon": epsilon, "pivot": pivot}
    reply = yield Query(summed_residuals, protocol, asked, view=View.SUM)
    _check_clients(reply, clients)
    reach = sensitivity(records, pivot)
    value = first.area_with(records, pivot, residual_of(reply, epsilon, reach))
    return result_from_pairs(
        records,
        first.positives,
        value,
        numerator_variance(first, epsilon, reach),
        np.broadcast_to(first.count_variance, np.shape(value)),
        residual_variance(epsilon, reach),
    )


def _check_clients(reply: Reply, clients: int) -> None:
    """Refuse a sum without some of the clients that were ranked: their records have ranks."""
    answered = int(np.asarray(reply["clients"]))
    if answered != clients:
        raise DataError(
            f"all {clients} clients that were ranked must be in the sum, got {answered}: evaluate "
            "those that are left anew"
        )
