"""FedAUC by secure sums: the server sees every score, and sums of ranks over all clients only.

A small first round of two numbers, the count of positives and their rank sum about the middle
rank, locates the rank c where a label's influence on the AUC changes sign. The second round is one
number, ``sum over positives of (rank - c)``. At c an error of the count changes the AUC in second
order only, so the AUC's error is nearly that of the one number. Every client draws a share of the
noise.

The two rounds of FedAUC by secure sums: the division of epsilon, and the AUC of the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.counts import allocating, influence
from tacit.privacy.distributions import discrete_laplace_variance
from tacit.privacy.exact import MAX_SHARED_SCALE
from tacit.protocol import releases
from tacit.protocols.fedauc import steps
from tacit.protocols.fedauc.estimate import result_from_pairs
from tacit.protocols.shared import counting
from tacit.results.figure import MIN_CLASS_SIZE_IN_ERRORS

RANKS = ("fedauc", "ranks for sums")
"""Key under which a client state keeps the ranks."""


@tp.step()
def keep_ranks(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Keep the ranks of the client's scores among all, for the sums that follow.

    It costs nothing: no label takes part. A query for a secure sum is the same for every client, so
    what differs between clients comes before it. The server learns nothing.

    Raises
    ------
    ValueError : for ranks that are not one whole number a record, or reach beyond the announced
        number of records, and for so many records that a sum could wrap (``summed_records``).
    """
    records, ranks = summed_records(clients, query), steps.checked_ranks(clients, query)
    if int(ranks.maximum().max()) > 2 * (records - 1):
        raise ValueError(f"doubled ranks of {records} records must be at most {2 * (records - 1)}")
    state.keep(RANKS, ranks)
    return {"records": clients.sizes}


def summed_records(clients: tp.Clients, query: tp.Query) -> int:
    """The announced number of records, for which every sum of their ranks is exact.

    No pivot is further from a rank than the announced number allows. So this check, which every
    query of a sum repeats, covers whatever pivot it names: a sum that wraps would move by far more
    than its sensitivity when one label flips. The numbers are public.

    Raises
    ------
    ValueError : for no number of records, or so many that a sum of their ranks could wrap.
    """
    records = steps.public_records(query)
    # all records are in one sum, so it must be exact for them all
    steps.check_sums(np.array([max(records, clients.records)]), np.array([2 * records]))
    return records


def agreed_epsilon(query: tp.Query) -> float:
    """Epsilon of a reply.

    Raises
    ------
    ValueError : for an epsilon above the agreed one.
    """
    epsilon, agreed = query.broadcast["epsilon"], query.protocol.epsilon
    if not (isinstance(epsilon, float | int) and 0 < epsilon <= agreed * steps.SLACK):
        raise ValueError(f"epsilon must be above 0 and at most {agreed}, got {epsilon!r:.40}")
    return float(epsilon)


def sensitivity(records: int, pivot: Integers) -> Integers:
    """How far one label moves the doubled rank sum about a doubled pivot, at least 1.

    The larger of the pivot's distances to the ends of the doubled ranks, 0 and ``2 (M - 1)``.
    """
    return np.maximum(np.maximum(pivot, 2 * (records - 1) - pivot), 1)


def _pair_fields(query: tp.Query) -> releases.Fields:
    epsilon, part = agreed_epsilon(query), steps.count_fraction(query, "count_part")
    counted = releases.Released((), 1, epsilon * part)
    return {"positives": counted, "residual": counting.number_field(epsilon * (1 - part))}


def _residual_fields(query: tp.Query) -> releases.Fields:
    return {"residual": counting.number_field(agreed_epsilon(query))}


def _bounds(fields: releases.Fields, query: tp.Query) -> dict[str, int]:
    """The clients' records are public, and all are ranked: no client has more.

    Every rank is within the sensitivity of the pivot: a record adds no more than a label moves.
    """
    records, planned = steps.public_records(query), releases.planned_clients(query)
    share = Fraction(1, planned)
    bounds = {
        name: releases.sum_bound(query, records * each.sensitivity, each.share(share))
        for name, each in fields.items()
    }
    return {**bounds, releases.CLIENTS: planned}


def _summed(fields: releases.Declared) -> Callable[[Any], tp.Step]:
    """Declare a step that sums these fields over all clients that were ranked."""
    return tp.step(
        cost=lambda clients, query, state: tp.Cost(
            agreed_epsilon(query), adjacency=tp.Adjacency.LABEL
        ),
        sums=lambda query: releases.layout_of(fields(query)),
        shares=releases.planned_clients,
        bounds=lambda query: _bounds(fields(query), query),
    )


@_summed(_pair_fields)
def summed_rank_pairs(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send the count of positives and their rank sum about the middle rank, with shares of noise.

    Spends ``query.broadcast["epsilon"]`` at label adjacency, of which the count costs
    ``query.broadcast["count_part"]``: flipping a label moves the count by 1, and the doubled rank
    sum by at most M - 1, the distance of the middle to either end (``summed_residuals``). The
    shares of all clients that were asked add up to discrete Laplace noise on both numbers; both
    parts add up to epsilon.

    The server learns the two noisy sums over all clients, and how many clients answered.
    """
    middle = np.array(summed_records(clients, query) - 1)
    return _noisy_sums(_pair_fields(query), clients, query, noise, state, middle)


@_summed(_residual_fields)
def summed_residuals(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send the sum of ``rank - pivot`` over the positives, with a share of noise.

    Spends ``query.broadcast["epsilon"]`` at label adjacency: flipping one label moves the doubled
    sum by at most ``D = max(2 pivot, 2 (M-1) - 2 pivot)``, since no doubled rank exceeds 2 (M-1),
    which the client verifies of the ranks that it keeps. It rounds its exact sum once to units of
    ``D / R``, R whole, after which a label moves it by at most R units (``whole_units``). The
    shares of all clients that were asked add up to discrete Laplace noise of scale ``R / epsilon``.
    The guarantee is about the sum over all clients, and holds against a server that sees it only
    and colludes with no one.

    The server learns the noisy sum over all clients, and how many clients answered.

    Raises
    ------
    DataError : before the client has received its ranks, or for fewer records than they are of.
    ValueError : for an epsilon above the agreed one, a pivot that is no rank, or so many records
        that a sum of ranks could wrap (``summed_records``).
    """
    pivot, records = np.asarray(query.broadcast["pivot"]), summed_records(clients, query)
    shapes = ((), noise.full_shape(()))
    if pivot.dtype != np.int64 or pivot.shape not in shapes:
        raise ValueError(
            f"pivot must be a 64-bit integer of shape {shapes[-1]}, got {pivot.dtype} of "
            f"{pivot.shape}"
        )
    if pivot.min() < 0 or pivot.max() > 2 * (records - 1):
        raise ValueError(f"a doubled pivot must be from 0 to {2 * (records - 1)}")
    return _noisy_sums(_residual_fields(query), clients, query, noise, state, pivot)


def _noisy_sums(
    fields: releases.Fields,
    clients: tp.Clients,
    query: tp.Query,
    noise: tp.NoiseSource,
    state: tp.ClientState,
    pivot: Integers,
) -> tp.Reply:
    """A batch's positives, and its residual rank sum in units, those that are fields."""
    ranks, records = state.recall_field(RANKS), steps.public_records(query)
    if not isinstance(ranks, tp.Ragged) or int(ranks.offsets[-1]) != clients.records:
        raise tp.DataError("the client has not received the ranks of these scores")
    if int(ranks.maximum().max()) > 2 * (records - 1):
        raise tp.DataError(f"ranks reach beyond the {records} records that were announced")
    pivots = np.broadcast_to(pivot[..., np.newaxis], (*pivot.shape, clients.count))
    counts, residuals = steps.pair_of_clients(clients, ranks, pivots)
    reach = sensitivity(records, pivot)[..., np.newaxis]
    units = influence.whole_units(residuals, reach, fields["residual"].sensitivity)
    exact = {"positives": counts.sum(axis=-1), "residual": units.sum(axis=-1)}
    # every record that was ranked is in the sums, whatever room other sums have
    every = replace(query, most_records=None)
    return releases.noisy_sums(
        fields, {name: exact[name] for name in fields}, every, clients.count, noise
    )


FIRST_ROUND_PARTS = (0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.2, 0.3)
"""Fractions of epsilon that the first round may get."""

COUNT_PARTS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""Parts of the first round that the count of positives may get."""

LEAST_SHARED_EPSILON = (1 + 1e-9) / MAX_SHARED_SCALE
"""Least epsilon of a number of sensitivity 1 of whose noise shares are drawn; rounding may not
bring it below."""


@dataclass(frozen=True)
class Parts:
    """The first round's fraction of epsilon, and the count's part of that round."""

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
        """From the count and the sum of ranks about the middle rank.

        The influence centre is ``c = P - 1/2 + A (M - 2P)``. With A = 1/2 + T / (P N), T the sum of
        ranks about the middle: ``dc/dP = 1 - 2A - T (N-P)^2 / (P N)^2`` and ``dc/dT = (N - P) / (P
        N)``, T and P with independent noise.
        """
        count_variance = float(discrete_laplace_variance(1 / (epsilon * count_part)))
        inside = np.clip(positives, 1.0, records - 1.0)
        pairs, difference = inside * (records - inside), records - inside - inside
        area = np.clip(0.5 + residual / pairs, 0.0, 1.0)
        by_count = 1 - 2 * area - (area - 0.5) * difference**2 / pairs
        reach = sensitivity(records, np.array(records - 1)) / 2
        _, noise = counting.on_scale(0, counting.number_field(epsilon * (1 - count_part)), reach)
        centre_variance = by_count**2 * count_variance + (difference / pairs) ** 2 * noise
        return cls(positives, count_variance, area, centre_variance)

    def pivot(self, records: int) -> Integers:
        """The doubled rank nearest to the influence centre, from 0 to 2 (M-1)."""
        inside = np.clip(self.positives, 1.0, records - 1.0)
        centre = np.asarray(allocating.influence_centre(records, inside, self.area))
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


def numerator_variance(first: FirstRound, epsilon: float, reach: Floats) -> Floats:
    """The variance of the AUC's numerator after the second round.

    The second round's noise, and what is left of the count's error at a centre that is itself
    uncertain: ``Var(residual) + Var(centre) Var(count)``.

    Parameters
    ----------
    epsilon, reach : of the second round's number, and how far a label moves it.
    """
    _, by_number = counting.on_scale(0, counting.number_field(epsilon), reach)
    return by_number + first.centre_variance * first.count_variance


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


def expected_rounds(
    records: int, positives: Floats, area: Floats, epsilon: float, parts: Parts
) -> tuple[FirstRound, Floats]:
    """A first round that finds these positives and AUC, and the numerator's variance after it."""
    spent, pairs = parts.first * epsilon, positives * (records - positives)
    first = FirstRound.of_sums(records, positives, (area - 0.5) * pairs, spent, parts.count)
    reach = sensitivity(records, first.pivot(records)) / 2
    return first, numerator_variance(first, epsilon - spent, reach)


def _loss(records: int, epsilon: float, parts: Parts) -> float:
    """The mean logarithm of the AUC's variance; that of a class that does not show is 1/4."""
    positives = allocating.PLAUSIBLE_RATES * records
    first, variance = expected_rounds(records, positives, allocating.PLAUSIBLE_AUCS, epsilon, parts)
    pairs = positives * (records - positives)
    relative = np.where(first.shows_both_classes(records), variance / pairs**2, 0.25)
    return float(np.mean(np.log(relative)))


def rounds_by_sum(protocol: Any, clients: int, ranks: tp.Ragged[np.int64]) -> tp.Conversation:
    """The rounds after the scores were ranked: ranks down, and two sums up."""
    records = int(ranks.offsets[-1])
    yield tp.Query(keep_ranks, protocol, {"records": records}, {"ranks": ranks})
    parts = divided(records, protocol.epsilon)
    spent = parts.first * protocol.epsilon
    asked = {"records": records, "epsilon": spent, "count_part": parts.count}
    reply = yield from _sum_of_all(summed_rank_pairs, protocol, clients, asked)
    reach = sensitivity(records, np.array(records - 1)) / 2  # of ranks, which were doubled
    residual, _ = counting.on_scale(
        reply["residual"], counting.number_field(spent * (1 - parts.count)), reach
    )
    positives = np.asarray(reply["positives"], dtype=np.float64)
    first = FirstRound.of_sums(records, positives, residual, spent, parts.count)
    pivot, epsilon = first.pivot(records), protocol.epsilon - spent
    asked = {"records": records, "epsilon": epsilon, "pivot": pivot}
    reply = yield from _sum_of_all(summed_residuals, protocol, clients, asked)
    reach = sensitivity(records, pivot) / 2
    residual, by_number = counting.on_scale(
        reply["residual"], counting.number_field(epsilon), reach
    )
    value = first.area_with(records, pivot, residual)
    return result_from_pairs(
        records,
        first.positives,
        value,
        numerator_variance(first, epsilon, reach),
        np.broadcast_to(first.count_variance, np.shape(value)),
        by_number,
    )


def _sum_of_all(
    step: tp.Step, protocol: Any, clients: int, asked: Mapping[str, Any]
) -> Generator[tp.Query, tp.Reply, tp.Reply]:
    """A sum over all clients that were ranked; one without some is refused, as records had ranks.

    Raises
    ------
    DataError : where not all clients are in it.
    """
    reply = yield tp.Query(step, protocol, {"clients": clients, **asked}, view=tp.View.SUM)
    answered = int(np.asarray(reply["clients"]))
    if answered != clients:
        raise tp.DataError(
            f"all {clients} clients that were ranked must be in the sum, got {answered}: evaluate "
            "the others again"
        )
    return reply
