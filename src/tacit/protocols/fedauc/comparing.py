"""Two models' AUCs and their difference, at one cost of label privacy.

Scores are known to the server, labels are private, as in FedAUC (Sun et al. 2022a). Everything is
in doubled ranks, which are integers. A record has a *difference*, its rank by the first model less
its rank by the second, and a *level*, the sum of both. A record's label enters the difference of
two AUCs with the weight ``(difference of its ranks - c) / (P N)``, where ``c = (difference of the
AUCs) (N - P)`` is small; so the noise depends on how far the two models disagree about a record,
and not on its rank. Labels that answer by randomised response are flipped once for both models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.arrays import Flags, Floats, Integers, Labels
from tacit.counts import allocating, rank_noise
from tacit.data.ragged import Ragged, doubled_ranks
from tacit.data.scales import clients_apart
from tacit.metrics.ranking import paired_plug_in_variance, rank_correlation
from tacit.privacy.cost import worst_case
from tacit.privacy.mechanisms.response import flip_probability, response_variance
from tacit.protocol.fields import ragged_of
from tacit.protocols.fedauc.estimate import area_of_sums, error_of_ratio, result_from_pairs
from tacit.protocols.fedauc.protocol import TWO_MODELS
from tacit.protocols.fedauc.steps import check_sums, checked_ranks, values_of_records
from tacit.protocols.shared.declared import ComparesModels, both_models
from tacit.protocols.shared.flipped_labels import Flipped, flipped_labels, flipping_cost
from tacit.results.server_result import ComparisonResult

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
    def by_sum(self) -> Mapping[str, rank_noise.RankNoise]:
        """The noise of each of the sums of ``RankPairs.weights``."""
        rest = 1 - self.emphasis
        fractions = {"positives": 0.3 * rest, "differences": self.emphasis, "levels": 0.7 * rest}
        return {
            name: rank_noise.RankNoise(rank_noise.STAIRCASE, fraction * self.epsilon)
            for name, fraction in fractions.items()
        }


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

    @cached_property
    def _level(self) -> Ragged[np.int64]:
        """The sum of both."""
        return Ragged(self.first.values + self.second.values, self.first.offsets)

    @cached_property
    def pivot(self) -> Integers:
        """Each client's mean level, rounded, shape (K,): its sum of levels is measured from it."""
        return np.rint(self._level.sum() / self._level.sizes).astype(np.int64)

    @cached_property
    def weights(self) -> Mapping[str, Ragged[np.int64]]:
        """What a record's label counts in each of the three sums, in doubled ranks.

        Levels are measured from their client's pivot.
        """
        by_sum = {
            "positives": np.ones(self.records, dtype=np.int64),
            "differences": self.first.values - self.second.values,
            "levels": self._level.values - np.repeat(self.pivot, self._level.sizes),
        }
        return {name: Ragged(values, self.first.offsets) for name, values in by_sum.items()}

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
    unit = float(noise.by_sum["differences"].drawn(1, 1.0).unit_variance)
    count = float(noise.by_sum["positives"].drawn(1, 1.0).variance)
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
    drawn = noise.by_sum["positives"].drawn(1, 1.0)
    counted = clients * float(drawn.variance) + kappa * (~summed.values).sum()
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
    counts = asked.any_summed * noise.by_sum["positives"].drawn(1, 1.0).variance
    differences, levels = (
        noise.by_sum[name]
        .drawn(largest_by_client(ranks.weights[name], ~responding), 1.0)
        .variance.sum()
        for name in ("differences", "levels")
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
        combined(ranks.weights["differences"].values, differences / 4, np.zeros(pivot.size)),
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
    def of(cls, clients: tp.Clients, query: tp.Query) -> DifferenceRequest:
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
            check_sums(
                clients.sizes, largest, query.protocol.part_noise.by_sum["levels"].largest_sum
            )
        return request

    @property
    def any_summed(self) -> Flags:
        """The clients with a record that enters noisy sums, shape (K,)."""
        return np.logical_or.reduceat(~self.responding, self.ranks.first.offsets[:-1])


def totals_of_sums(asked: DifferenceRequest, epsilon: float, reply: tp.Reply) -> tuple[Floats, ...]:
    """Totals from the clients' six numbers, in ranks: labels debiased, pivots taken off.

    The number of positive records, and of each model the sum of ``(rank - (M-1)/2) * label``, shape
    () or (R,).

    Parameters
    ----------
    asked : what every client was asked.
    epsilon : of the randomised response.
    reply : the clients' sums.
    """
    flip, ranks = flip_probability(epsilon), asked.ranks
    totals = []
    for name, expected in ranks.sums(asked.responding).items():
        answered = np.asarray(reply[f"answered_{name}"])
        totals.append(np.asarray(reply[name]) + (answered - flip * expected) / (1 - 2 * flip))
    count, difference, level = totals
    centred = level + (ranks.pivot - 2 * (ranks.records - 1)) * count
    doubled = (centred + difference, centred - difference)
    first, second = (each.sum(axis=-1, dtype=np.float64) / 4 for each in doubled)
    return count.sum(axis=-1, dtype=np.float64), first, second


def result_from_sums(
    records: int,
    sums: tuple[Floats, ...],
    variances: tuple[CentredVariance, ...],
    correlation: float,
) -> ComparisonResult:
    """Both AUCs and their difference, with their errors.

    The variance of the difference is ``Var(sum (d - c) y) / (P N)^2`` with d a record's difference
    of ranks and ``c = difference (N - P)``; the second order is that of one AUC.

    Parameters
    ----------
    records : M.
    sums : the noisy totals (``totals_of_sums``).
    variances : the variances that the noise causes (``predicted_variances``).
    correlation : Spearman's correlation of the two models' ranks.
    """
    positives, *rank_sums = sums
    *of_models, of_difference = variances
    count = np.full_like(positives, of_difference.quadratic)
    first, second = (
        _one_auc(records, positives, rank_sum, variance, count)
        for rank_sum, variance in zip(rank_sums, of_models, strict=True)
    )
    inside = np.clip(positives, 1.0, records - 1.0)
    negatives = records - inside
    value = first.value - second.value
    difference = np.clip(np.nan_to_num(value, nan=0.0), -1.0, 1.0)
    variance = of_difference.about(difference * (negatives - inside))
    areas = [np.nan_to_num(model.value, nan=0.5) for model in (first, second)]
    sampling = np.sqrt(paired_plug_in_variance(areas[0], areas[1], correlation, inside, negatives))
    return ComparisonResult(
        value=value,
        privacy_error=error_of_ratio(variance, count, difference, inside, negatives),
        sampling_error=np.where(np.isnan(value), np.nan, sampling),
        positives=positives,
        negatives=records - positives,
        positives_error=np.sqrt(count),
        warnings=first.warnings,
        limits=(-1.0, 1.0),
        first=first,
        second=second,
    )


def _one_auc(
    records: int, positives: Floats, centred: Floats, variance: CentredVariance, count: Floats
) -> tp.ServerResult:
    """One model's AUC from its centred rank sum."""
    value = area_of_sums(records, positives, centred)
    inside = np.clip(positives, 1.0, records - 1.0)
    known = np.clip(np.nan_to_num(value, nan=0.5), 0.0, 1.0)
    centre = np.asarray(allocating.influence_centre(records, inside, known))
    return result_from_pairs(records, positives, value, variance.about(centre), count)


@dataclass(frozen=True)
class NoisySumsOfEach(tp.Each):
    """Noisy sums, and flipped labels of records on which the models disagree most, where better.

    Parameters
    ----------
    emphasis : the fraction of the noisy sums' budget that protects the sum of differences, from 0.1
        to 0.99. The rest protects what only the two AUCs need.

    Raises
    ------
    ValueError : for a fraction outside this range.
    """

    emphasis: float = 0.8

    def __post_init__(self) -> None:
        if not 0.1 <= self.emphasis <= 0.99:
            raise ValueError(f"emphasis must be from 0.1 to 0.99, got {self.emphasis}")


def pair_order(clients: tp.Clients) -> Integers:
    """Records in ascending order of both scores within each client, shape (M,)."""
    first, second = both_models(clients)
    return np.lexsort((second.scores, first.scores, clients.client_of_record))


@tp.step()
def share_score_pairs(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send both models' scores of every record, ascending within each client.

    Spends nothing at label adjacency, where scores are public. The server learns which scores of
    the two models belong to one record; the order says nothing about labels.
    """
    order = pair_order(clients)
    models = zip(("first", "second"), both_models(clients), strict=True)
    return {name: clients.ragged(each.scores[order]) for name, each in models}


def _sums_cost(clients: tp.Clients, query: tp.Query, state: tp.ClientState) -> tp.Cost:
    settings: ComparedAUC = query.protocol
    summed = DifferenceRequest.of(clients, query).any_summed
    costs = [settings.guarantee] if summed.any() else []
    return worst_case([*costs, flipping_cost(clients, settings.epsilon, state, ~summed)])


@tp.step(cost=_sums_cost)
def noisy_difference_sums(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send noisy sums over some records' labels, and sums over flipped labels of the others.

    Spends epsilon at label adjacency. A record is in one of the two groups. Flipping a label of the
    first moves the count by 1 and the sums of ``difference * label`` and ``(level - pivot) *
    label`` by at most their largest weight in the group, which the client computes from the ranks
    and pivot it uses; the three have noise at fractions of epsilon that add up to it. A label of
    the second group is flipped by randomised response at epsilon, and sums of flipped labels are
    post-processing. A client all of whose records' labels were released flipped before, at this
    epsilon, spends nothing where all of them respond again.

    The server learns six numbers of each client. Source: Sun et al. 2022a, Algorithms 1 and 4, on
    differences of ranks.
    """
    settings: ComparedAUC = query.protocol
    request = DifferenceRequest.of(clients, query)
    order = pair_order(clients)
    noisy = _noisy_sums(request, clients.labels[order], settings.part_noise, noise)
    answers = np.zeros(clients.records, dtype=np.int8)
    if request.responding.any():
        whole = ~request.any_summed
        flipped = flipped_labels(clients, settings.epsilon, noise, state, whole)
        answers = flipped[..., order] * request.responding
    answered = request.ranks.sums(answers)
    return {**noisy, **{f"answered_{name}": sums for name, sums in answered.items()}}


@dataclass(frozen=True)
class ComparedAUC(ComparesModels):
    """The difference of two models' AUCs, and both AUCs, at one epsilon.

    Clients hold the first model's scores as their scores and the second's as their second values.

    Parameters
    ----------
    epsilon : the privacy budget of the comparison, for every label.
    trust : ``NoisySumsOfEach()``: every client adds noise to sums, or ``Local()``: every label is
        flipped separately; or their words, ``"each"`` and ``"local"``.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> ComparedAUC(1.0).guarantee.epsilon
    1.0
    """

    epsilon: float = tp.setting(help="the privacy budget of the comparison")
    trust: NoisySumsOfEach | tp.Local | str = tp.trust_setting(NoisySumsOfEach())

    name = "compared-auc"
    threats = staticmethod(lambda settings: TWO_MODELS)
    adjacency = tp.Adjacency.LABEL
    state_types = (Flipped,)
    steps = (share_score_pairs, noisy_difference_sums)

    @property
    def part_noise(self) -> PartNoise:
        """The noise of the three sums, where there is any."""
        sums = self.trust if isinstance(self.trust, NoisySumsOfEach) else NoisySumsOfEach()
        return PartNoise(self.epsilon, sums.emphasis)

    def replicate_size(self, clients: tp.Clients) -> int:
        """Numbers a replicate holds: a bit and products with both ranks a record."""
        return 4 * clients.records + 16 * clients.count

    def conversation(self, clients: int) -> tp.Conversation:
        """Pairs of scores up, ranks down, noisy sums up."""
        pairs = yield tp.Query(share_score_pairs, self)
        sent = [ragged_of(pairs[name], "values of records") for name in ("first", "second")]
        records = sent[0].values.size
        if records < 2:
            raise tp.DataError(f"a comparison needs at least two records, got {records}")
        first, second = map(doubled_ranks, sent)
        ranks = RankPairs(first, second)
        asked = DifferenceRequest(ranks, self._responding(ranks))
        responding = tp.Ragged(asked.responding, first.offsets)
        columns: dict[str, tp.Field] = {"first": first, "second": second, "responding": responding}
        reply = yield tp.Query(noisy_difference_sums, self, per_client=columns)
        sums = totals_of_sums(asked, self.epsilon, reply)
        variances = predicted_variances(asked, self.part_noise)
        correlation = rank_correlation(first.values, second.values)
        result = result_from_sums(records, sums, variances, correlation)
        return replace(result, scales=clients_apart(sent[0]) or clients_apart(sent[1]))

    def _responding(self, ranks: RankPairs) -> Flags:
        if isinstance(self.trust, tp.Local):
            return np.ones(ranks.records, dtype=np.bool_)
        return records_that_respond(ranks.weights["differences"], self.part_noise)


def _noisy_sums(
    request: DifferenceRequest, labels: Labels, parts: PartNoise, noise: tp.NoiseSource
) -> dict[str, NDArray[Any]]:
    """The noisy sums of the records that do not respond, of every client, shape (..., K)."""
    ranks, shape = request.ranks, (request.any_summed.size,)
    exact = ranks.sums(labels * ~request.responding)
    counted = exact["positives"] + noise.draw(parts.by_sum["positives"].drawn(1, 1.0), shape)
    noisy = {"positives": np.where(request.any_summed, counted, np.zeros_like(counted))}
    for name in ("differences", "levels"):
        largest = largest_by_client(ranks.weights[name], ~request.responding)
        noisy[name] = exact[name] + noise.draw(parts.by_sum[name].drawn(largest, 1.0), shape)
    return noisy
