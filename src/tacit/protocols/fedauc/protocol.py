"""FedAUC: labels are private, scores are known to the server (docs, sections 1a to 1e).

The server ranks all clients' scores; each client returns a noisy count of its positives and a noisy
rank sum, after Sun et al. 2022a. Each client divides its budget so that the variance of the AUC is
least. Adjacency: one record's label flips. The server sees every client's scores in ascending order
within the client (so that positions reveal nothing), and every client's noisy pair.

What a server asks for and concludes: ranked scores, a first round, noisy rank sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats
from tacit.counts import allocating, rank_noise
from tacit.counts.rank_noise import RankNoise
from tacit.privacy import doubles
from tacit.privacy.cost import check_fraction
from tacit.protocol import audits, forecast
from tacit.protocol.declared import NO_ONE
from tacit.protocol.scenario import DRY_CLIENTS, GUESSES, measured_rounds
from tacit.protocols.fedauc import estimate, hidden_ranks, secure_sums, steps
from tacit.protocols.shared import declared
from tacit.protocols.shared.flipped_labels import Flipped

PAGE = "threat-models/fedauc.md"

SCORES_OPEN = (
    "Scores: the server has them all, and whatever follows from a score about its label stays "
    "open. Numbers of records are not hidden either."
)

NOISY_SUMS = tp.ThreatModel(
    NO_ONE,
    "Exactly: every client's scores and number of records. With noise: each client's count of "
    "positives and its sum of ranks, twice where there was a first round.",
    "The ranks of its own records among all, and pivots made of noisy totals.",
    SCORES_OPEN,
    PAGE,
)

FLIPPED_LABELS = replace(
    NOISY_SUMS,
    server="Exactly: every client's scores and number of records. The count of positives and the "
    "sum of ranks are of labels that were flipped at random; of a client with one record the "
    "server sees the flipped label itself.",
    others="The ranks of its own records among all, and nothing else of the others.",
)

SUMS_OF_RANKS = tp.ThreatModel(
    declared.COUNTED[tp.Trust.SECURE_SUM].trust,
    "Exactly: every client's scores and number of records. With noise: the number of positives of "
    "all clients together, and two sums of their ranks.",
    "The ranks of its own records among all, and a pivot made of noisy totals.",
    f"{SCORES_OPEN} Clients that tell the server their shares take their part of the noise away.",
    PAGE,
)


TWO_MODELS = replace(
    NOISY_SUMS,
    server="Exactly: both models' scores of every record, and every client's number of records. "
    "With noise: each client's count of positives, its sum of rank differences and its sum of "
    "ranks, of all records or, where some answer by flipped labels, of these and of the others.",
    others="The ranks of its own records among all, by both models.",
)


def threats_of(settings: Mapping[str, Any]) -> tp.ThreatModel:
    """The threat model of these settings."""
    models = {tp.Trust.SECURE_SUM.value: SUMS_OF_RANKS, tp.Trust.LOCAL.value: FLIPPED_LABELS}
    return models.get(str(settings.get("trust")), NOISY_SUMS)


@dataclass(frozen=True)
class HiddenRanks(tp.Choice):
    """The clients rank their scores together, and show them to no one.

    The server knows no ranks, so that the noise of every client is that of the largest one.

    Parameters
    ----------
    alpha : the rank sum's fraction of epsilon, between 0 and 1.

    Raises
    ------
    ValueError : for a fraction outside this range.
    """

    alpha: float = 0.5

    word = tp.Trust.MPC.value

    def __post_init__(self) -> None:
        check_fraction("alpha", self.alpha)


ADDITIVE_COPIES = 400
"""Copies of a small client's records with which it adds noise and flips no labels."""

ROUNDING = 1e-6
"""Largest error of an AUC of few records by rounding sums to units (``whole_units``)."""


class RankSums(tp.Protocol):
    """What protocols have in common whose server ranks all scores and receives noisy pairs."""

    query_types = (RankNoise,)
    state_types = (Flipped,)
    adjacency = tp.Adjacency.LABEL

    @property
    def steps(self) -> tuple[tp.Step, ...]:
        """Scores up, noisy pairs up."""
        return (steps.share_scores, steps.noisy_rank_sums)

    @property
    def rank_noise(self) -> RankNoise:
        """The noise of a client's pair, at the whole budget: by default randomised response."""
        return RankNoise(rank_noise.RESPONSE, self.guarantee.epsilon)

    def divided(self, geometry: allocating.RankGeometry) -> allocating.Allocation | None:
        """How clients divide their budgets, by default not at all: they flip their labels.

        None for the allocation by influence, whose first round depends on the data.
        """
        return allocating.Allocation.alike(geometry, respond=True)

    def conversation(self, clients: int) -> tp.Conversation:
        """Scores up, ranks down, noisy pairs up; with a first round where it pays."""
        ranks, scales = yield from estimate.ranked_scores(self)
        geometry, noise = allocating.RankGeometry.of(ranks), self.rank_noise
        allocation = self.divided(geometry)
        if allocation is None:
            noise, allocation = yield from estimate.divided_by_influence(self, ranks, geometry)
        sums = yield from estimate.asked_sums(self, ranks, geometry, noise, allocation)
        return replace(estimate.result_of_sums(geometry, noise, allocation, sums), scales=scales)

    def label_attacks(self) -> tuple[audits.LabelAttack, ...]:
        """Labels guessed from the scores that the server receives."""
        return (declared.guesses_from_ascending_scores,)

    def replicate_size(self, clients: tp.Clients) -> int:
        """Numbers a replicate holds: a bit and an integer a record when labels are flipped."""
        return 2 * clients.records + 16 * clients.count


@dataclass(frozen=True)
class FedAUC(RankSums):
    """The AUC with private labels and scores that the server knows.

    Parameters
    ----------
    epsilon : the privacy budget of one evaluation, for every label.
    trust : ``Each()``: every client adds staircase noise to its sums or, where that is better,
        flips its labels, and a first round is paid for out of epsilon. ``Local()``: every label is
        flipped at random separately, once for all evaluations of the same labels (Sun et al. 2022a,
        Algorithms 1 to 3). ``SecureSum()``: the server sees sums over all clients only, whose noise
        every client draws a share of; the error does not grow with the number of clients, all of
        which have to stay. ``HiddenRanks()``: the clients rank their scores, from 0 to 1, together
        without showing them (``rank_together``). Or their words.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> FedAUC(epsilon=1.0).guarantee
    Cost(epsilon=1.0, delta=0.0, adjacency=<Adjacency.LABEL: 'label'>, rho=None)
    """

    epsilon: float = tp.setting(help=tp.EPSILON)
    trust: tp.Each | tp.Local | tp.SecureSum | HiddenRanks | str = tp.trust_setting(tp.Each())

    name = "fedauc"
    title_settings = ("trust",)
    planning_module = __name__
    demonstrated: ClassVar[Mapping[str, Any]] = {
        "advertisers": {
            "fedauc": {"epsilon": 1.0},
            "fedauc, labels flipped once": {"epsilon": 1.0, "trust": tp.Local.word},
        }
    }
    threats = staticmethod(threats_of)
    audit_settings = ({}, {"trust": "mpc"}, {"trust": "secure-sum"})
    law_settings: ClassVar[audits.Configurations] = {
        "fedauc": {},
        "fedauc-large-epsilon": {"epsilon": 6.0},
        "fedauc-response": {"trust": "local"},
        "fedauc-mpc": {"trust": "mpc"},
        "fedauc-secure-sum": {"trust": "secure-sum"},
    }
    noticed = ("fedauc-secure-sum", "fedauc")

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.trust, tp.SecureSum) and self.trust.dropouts:
            raise ValueError(
                "a sum of ranks needs every client that was ranked: dropouts must be 0, "
                f"got {self.trust.dropouts}"
            )

    @property
    def rank_noise(self) -> RankNoise:
        """The noise of a client's pair, at the whole budget."""
        local = isinstance(self.trust, tp.Local)
        return super().rank_noise if local else RankNoise(rank_noise.STAIRCASE, self.epsilon)

    @property
    def steps(self) -> tuple[tp.Step, ...]:
        """Scores are asked for only where the server may know them."""
        if isinstance(self.trust, HiddenRanks):
            return (
                hidden_ranks.offer_sizes,
                hidden_ranks.rank_together,
                hidden_ranks.noisy_hidden_rank_sums,
            )
        if isinstance(self.trust, tp.SecureSum):
            return (
                steps.share_scores,
                secure_sums.keep_ranks,
                secure_sums.summed_rank_pairs,
                secure_sums.summed_residuals,
            )
        return super().steps

    def min_clients(self, clients: int) -> int:
        """In a secure sum all: they were ranked together, and each draws a share of the noise."""
        return clients if isinstance(self.trust, tp.SecureSum) else super().min_clients(clients)

    @property
    def score_range(self) -> tuple[float, float] | None:
        """Where clients rank together, they compare scores from 0 to 1."""
        return tp.UNIT_INTERVAL if isinstance(self.trust, HiddenRanks) else None

    def comparison(self) -> tp.Protocol:
        """Two models' AUCs at this epsilon, under this trust."""
        from tacit.protocols.fedauc.comparing import ComparedAUC

        return ComparedAUC(self.epsilon, str(self.trust))

    def replicate_size(self, clients: tp.Clients) -> int:
        """Numbers a replicate holds: a bit and an integer a record when labels are flipped."""
        is_hidden = isinstance(self.trust, HiddenRanks)
        return 8 * clients.count if is_hidden else super().replicate_size(clients)

    def divided(self, geometry: allocating.RankGeometry) -> allocating.Allocation | None:
        """By influence, or not at all where every label is flipped."""
        return super().divided(geometry) if isinstance(self.trust, tp.Local) else None

    def conversation(self, clients: int) -> tp.Conversation:
        """Scores up, ranks down, noisy pairs up; sums up; or with hidden ranks sizes and pairs."""
        if isinstance(self.trust, HiddenRanks):
            return (yield from hidden_ranks.result_with_hidden_ranks(self, self.trust.alpha))
        if isinstance(self.trust, tp.SecureSum):
            ranks, scales = yield from estimate.ranked_scores(self)
            return replace(
                (yield from secure_sums.rounds_by_sum(self, clients, ranks)), scales=scales
            )
        return (yield from super().conversation(clients))

    @classmethod
    def audit_cases(cls) -> tuple[tp.AuditCase, ...]:
        """Every trust; of flipped labels two, as all are flipped alike."""
        return (
            *super().audit_cases(),
            tp.AuditCase(cls.name, {"trust": "local"}, records=2),
            tp.AuditCase(cls.name, records=600),
        )

    @classmethod
    def self_test_cases(cls) -> tp.SelfTestCases:
        """Flipped labels, sound and with a mistake."""
        response, halved = cls(1.0, tp.Local()), partial(doubles.ScaledNoise, 0.5)
        return tp.SelfTestCases(
            (
                tp.AuditTrial(audits.SUMS, "flipped labels", False, response, records=2),
                tp.AuditTrial(
                    audits.SUMS, "flipped half as often", True, response, halved, records=2
                ),
            )
        )

    def label_attacks(self) -> tuple[audits.LabelAttack, ...]:
        """Labels guessed from the scores that the server receives, if it receives any."""
        is_hidden = isinstance(self.trust, HiddenRanks)
        return (declared.guesses_from_plain_scores,) if is_hidden else super().label_attacks()

    @property
    def law_traits(self) -> tp.LawTraits:
        """Flipped labels are debiased without noise too; clients that rank together keep notes.

        Sums are rounded to units before their shares of noise are added.
        """
        trust = self.trust
        together, summed = isinstance(trust, HiddenRanks), isinstance(trust, tp.SecureSum)
        responds = isinstance(trust, tp.Local)
        return tp.LawTraits(
            indivisible="a client alone cannot rank its records" if together else "",
            inexact="flipped labels are debiased all the same" if responds else "",
            keeps_state=together or summed,
            tolerance=ROUNDING if summed else 1e-9,
            copies=1 if together else ADDITIVE_COPIES,
        )


MAX_DRAWN = 2**19
"""Largest number of ranks drawn for a plan."""

MAX_SUMMED_CLIENTS = 100
"""Largest number of clients for which a plan tries a secure sum of ranks. All of them have to stay
to the end: where each leaves in one run of a hundred, 0.99**100 = 37 % of runs are completed."""

MAX_CLIENTS = 2**9
"""Largest number of clients in a prediction; they represent the others."""


def fedauc_forecast(protocol: FedAUC, scenario: tp.Scenario, shape: tp.Shape) -> forecast.Forecast:
    """The protocol's allocation and variance formulas at the ranks' expected geometry.

    Source: docs, sections 1a to 1e. The first round, if one pays, is taken to estimate the true AUC
    and class size; its error of the influence centre c is added to the variance as ``error(c)^2
    Var(count)``.

    Raises
    ------
    ValueError : for hidden ranks, which are not planned.

    Examples
    --------
    >>> forecast = fedauc_forecast(FedAUC(1.0), tp.Scenario(40_000, 4_000, 10, 1.0), tp.Shape(0.8))
    >>> round(forecast.standard_error, 4)
    0.0011
    """
    if isinstance(protocol.trust, HiddenRanks):
        raise ValueError(f"plans are for ranks that the server knows, got trust {protocol.trust}")
    records, positives = scenario.records, np.array(float(scenario.positives))
    area, epsilon = np.array(shape.auc), protocol.epsilon
    if isinstance(protocol.trust, tp.SecureSum):
        # after a first round that finds the true sizes and AUC
        parts = secure_sums.divided(records, epsilon)
        first, summed = secure_sums.expected_rounds(records, positives, area, epsilon, parts)
        counted = np.asarray(first.count_variance)
    else:
        summed, counted = _variances_of_pairs(protocol, scenario, positives, area)
    result = estimate.result_from_pairs(records, positives, area, summed, counted)
    smaller = min(scenario.positives, scenario.negatives)
    return forecast.Forecast(float(result.privacy_error), 0.0, smaller, float(np.sqrt(counted)))


def _variances_of_pairs(
    protocol: FedAUC, scenario: tp.Scenario, positives: Floats, area: Floats
) -> tuple[Floats, Floats]:
    """The variances of the AUC's numerator and of the count, summed over the clients."""
    geometry = expected_geometry(scenario.records, scenario.clients)
    records, noise, centre_variance = scenario.records, protocol.rank_noise, 0.0
    sample, weight = geometry.thinned(MAX_CLIENTS)
    if isinstance(protocol.trust, tp.Local):
        allocation = allocating.Allocation.alike(sample, respond=True)
    else:
        fraction = planned_first_round(protocol, scenario)
        prior = allocating.vague_prior(records)
        if isinstance(protocol, _KnownCentre):
            prior = allocating.PriorEstimate(float(scenario.positives), GUESSES[1], 0.0)
        if fraction:
            prior = allocating.prior_from(geometry, noise.part(fraction), positives, area)
            centre_variance = float(prior.centre_error) ** 2
        noise = noise.rest(fraction)
        allocation = allocating.influence_allocation(sample, noise, prior)
    weight *= scenario.clients / geometry.sizes.size
    centre = allocating.influence_centre(records, positives, area)
    numerator, count, _ = allocating.predicted_variance(sample, noise, allocation, centre)
    counted = weight * count.sum(axis=-1)
    return weight * numerator.sum(axis=-1) + centre_variance * counted, counted


def fedauc_families(scenario: tp.Scenario) -> list[forecast.Family]:
    """Staircase noise, randomised response, and sums over all clients where they are few."""
    summed = forecast.Family(
        (FedAUC(scenario.epsilon, tp.SecureSum()),),
        (tp.Trust.SERVER_SEES_SCORES,),
        "every score is shown to the server, every client must stay to the end, and every "
        "further evaluation costs epsilon again",
    )
    return [
        forecast.Family(
            (FedAUC(scenario.epsilon),),
            (tp.Trust.SERVER_SEES_SCORES,),
            "every score is shown to the server, and every further evaluation costs epsilon again",
            rough=lambda protocol, scenario: _KnownCentre(protocol.epsilon),
        ),
        forecast.Family(
            (FedAUC(scenario.epsilon, tp.Local()),),
            (tp.Trust.SERVER_SEES_SCORES,),
            "every score is shown to the server, while the flipped labels serve later evaluations "
            "at no further cost",
        ),
        *([summed] if scenario.clients <= MAX_SUMMED_CLIENTS else []),
    ]


class _KnownCentre(FedAUC):
    """The protocol with its influence centre known, so that no first round is chosen."""


def fedauc_traffic(protocol: FedAUC, scenario: tp.Scenario) -> tp.Traffic:
    """A dry run, in which a first round's query and reply are those of the main round again.

    Examples
    --------
    >>> fedauc_traffic(FedAUC(1.0), tp.Scenario(40_000, 4_000, 10, 1.0)).rounds
    3
    """
    if isinstance(protocol.trust, tp.SecureSum):
        # all clients that are ranked have to answer, so that few are asked
        few = min(scenario.clients, DRY_CLIENTS)
        drawn = replace(scenario.scaled(few / scenario.clients), clients=few)
        return tp.measured_traffic(protocol, drawn)
    rounds = measured_rounds(protocol, scenario)
    if isinstance(protocol.trust, tp.Each):
        first = rounds[-1:] if planned_first_round(protocol, scenario) > 0 else []
        rounds = [rounds[0], rounds[-1], *first]
    return tp.traffic_of_rounds(rounds, scenario)


@lru_cache(maxsize=16)
def expected_geometry(records: int, clients: int) -> allocating.RankGeometry:
    """The geometry of ranks in random order; where there are many, of a sample of them.

    Some hundreds of a client's ranks have the same distribution as all of them.

    Examples
    --------
    >>> expected_geometry(100, 4).sizes.tolist()
    [25.0, 25.0, 25.0, 25.0]
    """
    rng = np.random.default_rng(0)
    if records <= MAX_DRAWN:
        ranks = rng.permutation(records)
        offsets = (np.arange(clients + 1, dtype=np.int64) * records) // clients
        return allocating.RankGeometry.of(tp.Ragged(2 * ranks.astype(np.int64), offsets))
    sampled_clients = min(clients, MAX_CLIENTS)
    per_client = max(1, round(records / clients))
    drawn = min(per_client, MAX_DRAWN // sampled_clients)
    ranks = rng.integers(records, size=sampled_clients * drawn, dtype=np.int64)
    sampled = allocating.RankGeometry.of(
        tp.Ragged(2 * ranks, np.arange(sampled_clients + 1, dtype=np.int64) * drawn)
    )
    scale = per_client / drawn
    scatter, sizes = scale * sampled.scatter, scale * sampled.sizes
    return replace(sampled, records=records, scatter=scatter, sizes=sizes)


def planned_first_round(protocol: FedAUC, scenario: tp.Scenario) -> float:
    """The fraction of epsilon that the influence allocation spends on a first round; 0 for none."""
    if isinstance(protocol, _KnownCentre):
        return 0.0
    geometry = expected_geometry(scenario.records, scenario.clients)
    return allocating.first_round_fraction(geometry, protocol.rank_noise)


PLANNING = forecast.Planning.of_figure(fedauc_families, fedauc_forecast, fedauc_traffic)
