"""Two models' AUCs and their difference, at one cost of label privacy.

Scores are known to the server, labels are private, as in FedAUC (Sun et al. 2022a). A record's
label enters the difference of two AUCs with the weight ``(difference of its ranks - c) / (P N)``,
where ``c = (difference of the AUCs) (N - P)`` is small; so the noise depends on how far the two
models disagree about a record, and not on its rank. Labels that answer by randomised response are
flipped once for both models.

Estimates from noisy rank sums of two models: AUCs, their difference, errors, warnings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.arrays import Flags, Floats, Integers, Labels
from tacit.data.ragged import doubled_ranks
from tacit.data.scales import clients_apart
from tacit.metrics.ranking import auc, paired_plug_in_variance, rank_correlation
from tacit.privacy.cost import worst_case
from tacit.privacy.mechanisms.response import flip_probability
from tacit.protocol.fields import ragged_of
from tacit.protocols.fedauc.allocation import influence_centre
from tacit.protocols.fedauc.comparing.noise import (
    CentredVariance,
    DifferenceRequest,
    PartNoise,
    RankPairs,
    largest_by_client,
    predicted_variances,
    records_that_respond,
)
from tacit.protocols.fedauc.estimate import area_of_sums, result_from_pairs
from tacit.protocols.fedauc.protocol import TWO_MODELS
from tacit.protocols.shared.reports.flipped_labels import Flipped, flipped_labels, flipping_cost
from tacit.results.server_result import ComparisonResult


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
    of ranks and ``c = difference (N - P)``; the second order adds ``2 difference^2 Var(count)^2``
    and ``Var(numerator) Var(count) ((N - P) / (P N))^2``, as for one AUC.

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
    first_order = of_difference.about(difference * (negatives - inside))
    second_order = 2 * (difference * count) ** 2
    second_order = (
        second_order + first_order * count * ((negatives - inside) / (inside * negatives)) ** 2
    )
    areas = [np.nan_to_num(model.value, nan=0.5) for model in (first, second)]
    sampling = np.sqrt(paired_plug_in_variance(areas[0], areas[1], correlation, inside, negatives))
    return ComparisonResult(
        value=value,
        privacy_error=np.sqrt(first_order + second_order) / (inside * negatives),
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
    centre = np.asarray(influence_centre(records, inside, known))
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
    return np.lexsort((_second(clients), clients.scores, clients.client_of_record))


@tp.step()
def share_score_pairs(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send both models' scores of every record, ascending within each client.

    Spends nothing at label adjacency, where scores are public. The server learns which scores of
    the two models belong to one record; the order says nothing about labels.
    """
    order = pair_order(clients)
    return {
        "first": clients.ragged(clients.scores[order]),
        "second": clients.ragged(_second(clients)[order]),
    }


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
class ComparedAUC(tp.Protocol):
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
    figure = "difference of two AUCs"
    steps = (share_score_pairs, noisy_difference_sums)
    needs_second_values = True

    @property
    def part_noise(self) -> PartNoise:
        """The noise of the three sums, where there is any."""
        sums = self.trust if isinstance(self.trust, NoisySumsOfEach) else NoisySumsOfEach()
        return PartNoise(self.epsilon, sums.emphasis)

    def comparison(self) -> tp.Protocol:
        """Itself."""
        return self

    def exact(self, clients: tp.Clients) -> float:
        """The exact difference of the AUCs, which is not private."""
        return auc(clients.scores, clients.labels) - auc(_second(clients), clients.labels)

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
        return records_that_respond(ranks.difference, self.part_noise)


def _noisy_sums(
    request: DifferenceRequest, labels: Labels, parts: PartNoise, noise: tp.NoiseSource
) -> dict[str, NDArray[Any]]:
    """The noisy sums of the records that do not respond, of every client, shape (..., K)."""
    ranks, shape = request.ranks, (request.any_summed.size,)
    exact = ranks.sums(labels * ~request.responding)
    counted = exact["positives"] + noise.draw(parts.count.drawn(1, 1.0), shape)
    noisy = {"positives": np.where(request.any_summed, counted, np.zeros_like(counted))}
    for name, part in (("differences", parts.difference), ("levels", parts.level)):
        largest = largest_by_client(ranks.weights[name], ~request.responding)
        noisy[name] = exact[name] + noise.draw(part.drawn(largest, 1.0), shape)
    return noisy


def _second(clients: tp.Clients) -> Floats:
    if clients.second is None:
        raise tp.DataError("a comparison needs a second model's scores, and these records have one")
    return clients.second
