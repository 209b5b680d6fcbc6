"""FedAUC: labels are private, scores are known to the server (docs, sections 1a to 1e).

The server ranks all clients' scores; each client returns a noisy count of its positives and a noisy
rank sum, after Sun et al. 2022a. Each client divides its budget so that the variance of the AUC is
least. Adjacency: one record's label flips. The server sees every client's scores in ascending order
within the client (so that positions reveal nothing), and every client's noisy pair.

What a server asks for and concludes: ranked scores, a first round, noisy rank sums.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from tacit.arrays import Floats
from tacit.data.batches import ranked
from tacit.data.batches.ragged import Ragged
from tacit.data.clients import Clients
from tacit.data.scales import ScaleDifference, clients_apart
from tacit.metrics import errors
from tacit.privacy.cost import Adjacency
from tacit.privacy.sampling import doubles
from tacit.protocol.conversation import Conversation, Protocol, Query, Reply, Step, View
from tacit.protocol.declarations import audits
from tacit.protocol.declarations.trust import Each, Local, SecureSum, trust_setting
from tacit.protocol.fields import ragged_of
from tacit.protocol.settings.declaring import EPSILON, setting
from tacit.protocol.settings.scaled import UNIT_INTERVAL
from tacit.protocols.fedauc import hidden_ranks
from tacit.protocols.fedauc.allocation import (
    Allocation,
    RankGeometry,
    adaptive_allocation,
    first_round_fraction,
    influence_allocation,
    influence_centre,
    numerator_law,
    predicted_variance,
    prior_from,
    vague_prior,
)
from tacit.protocols.fedauc.declared import ADDITIVE_COPIES, ROUNDING, HiddenRanks, threats_of
from tacit.protocols.fedauc.estimate import area_of_sums, result_from_pairs, totals_of_pairs
from tacit.protocols.fedauc.secure_sums import (
    keep_ranks,
    rounds_by_sum,
    summed_rank_pairs,
    summed_residuals,
)
from tacit.protocols.fedauc.steps import noisy_rank_sums, share_scores
from tacit.protocols.shared.declared import (
    guesses_from_ascending_scores,
    guesses_from_plain_scores,
)
from tacit.protocols.shared.rank_noise import RESPONSE, STAIRCASE, RankNoise
from tacit.protocols.shared.reports.flipped_labels import Flipped
from tacit.results.server_result import ServerResult

FEW_CLIENTS = 32
"""Largest number of clients whose noise is not taken as normal."""


def ranked_scores(
    protocol: Any,
) -> Generator[Query, Reply, tuple[Ragged[np.int64], ScaleDifference | None]]:
    """Scores up: their doubled ranks, and which clients' scores are of another scale.

    Raises
    ------
    ValueError : for fewer than two records.
    """
    sent = ragged_of((yield Query(share_scores, protocol))["scores"], "scores")
    ranks, records = ranked.doubled_ranks(sent), int(sent.offsets[-1])
    if records < 2:
        raise ValueError(f"an AUC needs at least two records, got {records}")
    return ranks, clients_apart(sent)


def result_with_hidden_ranks(protocol: Any, alpha: float) -> Conversation:
    """Sizes up, ranks among the clients, noisy pairs up: the server sees no score and no rank."""
    offer = yield Query(hidden_ranks.offer_sizes, protocol)
    geometry = hidden_ranks.hidden_geometry(np.asarray(offer["records"]))
    if geometry.records < 2:
        raise ValueError(f"an AUC needs at least two records, got {geometry.records}")
    yield Query(hidden_ranks.rank_together, protocol, view=View.MPC)
    middle, noise = geometry.records - 1, protocol.rank_noise
    allocation = Allocation.alike(geometry, middle, 1.0 - alpha)
    shared = {"noise": noise, "records": geometry.records, "share": 1.0 - alpha}
    reply = yield Query(hidden_ranks.noisy_hidden_rank_sums, protocol, shared)
    sums = totals_of_pairs(geometry, noise, allocation, reply)
    return result_of_sums(geometry, noise, allocation, sums)


def divided_by_influence(
    protocol: Any, ranks: Ragged[np.int64], geometry: RankGeometry
) -> Generator[Query, Reply, tuple[RankNoise, Allocation]]:
    """Noise and allocation of the main round, after a first round if one is worth its price."""
    whole: RankNoise = protocol.rank_noise
    fraction = first_round_fraction(geometry, whole)
    prior = vague_prior(geometry.records)
    if fraction:
        first = whole.part(fraction)
        sums = yield from asked_sums(
            protocol, ranks, geometry, first, adaptive_allocation(geometry, first)
        )
        area = np.nan_to_num(area_of_sums(geometry.records, *sums), nan=0.5)
        prior = prior_from(geometry, first, sums[0], area)
    noise = whole.rest(fraction)
    return noise, influence_allocation(geometry, noise, prior)


def asked_sums(
    protocol: Any,
    ranks: Ragged[np.int64],
    geometry: RankGeometry,
    noise: RankNoise,
    allocation: Allocation,
) -> Generator[Query, Reply, tuple[Floats, Floats]]:
    """Noisy totals of the positives and of their ranks, measured from the middle rank."""
    reply = yield Query(
        noisy_rank_sums,
        protocol,
        broadcast={"noise": noise, "sensitivity": allocation.sensitivity},
        per_client={
            "ranks": ranks,
            "pivot": allocation.doubled_pivot,
            "share": allocation.fraction,
            "respond": allocation.respond,
        },
    )
    return totals_of_pairs(geometry, noise, allocation, reply)


def result_of_sums(
    geometry: RankGeometry, noise: RankNoise, allocation: Allocation, sums: tuple[Floats, Floats]
) -> ServerResult:
    """The AUC of the totals; the ends of the geometry bound the ranks that the noise hides."""
    positives, value = sums[0], area_of_sums(geometry.records, *sums)
    inside = np.clip(positives, 1.0, geometry.records - 1.0)
    area = np.clip(np.nan_to_num(value, nan=0.5), 0.0, 1.0)
    pairs = np.asarray(inside * (geometry.records - inside))[..., np.newaxis]
    # where a label's influence changes sign
    centre = np.asarray(influence_centre(geometry.records, inside, area))[..., np.newaxis]
    numerator, count, _ = predicted_variance(geometry, noise, allocation, centre)
    law: errors.ErrorLaw | None = None
    if geometry.sizes.size <= FEW_CLIENTS:
        law = numerator_law(geometry, noise, allocation, centre, pairs)
    variances = numerator.sum(axis=-1), count.sum(axis=-1)
    return result_from_pairs(geometry.records, positives, value, *variances, law=law)


class RankSums(Protocol):
    """What protocols have in common whose server ranks all scores and receives noisy pairs."""

    query_types = (RankNoise,)
    state_types = (Flipped,)
    adjacency = Adjacency.LABEL

    @property
    def steps(self) -> tuple[Step, ...]:
        """Scores up, noisy pairs up."""
        return (share_scores, noisy_rank_sums)

    @property
    def rank_noise(self) -> RankNoise:
        """The noise of a client's pair, at the whole budget: by default randomised response."""
        return RankNoise(RESPONSE, self.guarantee.epsilon)

    def divided(self, geometry: RankGeometry) -> Allocation | None:
        """How clients divide their budgets, by default not at all: they flip their labels.

        None for the allocation by influence, whose first round depends on the data.
        """
        return Allocation.alike(geometry, respond=True)

    def conversation(self, clients: int) -> Conversation:
        """Scores up, ranks down, noisy pairs up; with a first round where it pays."""
        ranks, scales = yield from ranked_scores(self)
        geometry, noise = RankGeometry.of(ranks), self.rank_noise
        allocation = self.divided(geometry)
        if allocation is None:
            noise, allocation = yield from divided_by_influence(self, ranks, geometry)
        sums = yield from asked_sums(self, ranks, geometry, noise, allocation)
        return replace(result_of_sums(geometry, noise, allocation, sums), scales=scales)

    def label_attacks(self) -> tuple[audits.LabelAttack, ...]:
        """Labels guessed from the scores that the server receives."""
        return (guesses_from_ascending_scores,)

    def replicate_size(self, clients: Clients) -> int:
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
        flipped at random by itself, once for all evaluations of the same labels (Sun et al. 2022a,
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

    epsilon: float = setting(help=EPSILON)
    trust: Each | Local | SecureSum | HiddenRanks | str = trust_setting(Each())

    name = "fedauc"
    title_settings = ("trust",)
    planning_module = f"{__package__}.forecast"
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
        if isinstance(self.trust, SecureSum) and self.trust.dropouts:
            raise ValueError(
                "a sum of ranks needs every client that was ranked: dropouts must be 0, "
                f"got {self.trust.dropouts}"
            )

    @property
    def rank_noise(self) -> RankNoise:
        """The noise of a client's pair, at the whole budget."""
        local = isinstance(self.trust, Local)
        return super().rank_noise if local else RankNoise(STAIRCASE, self.epsilon)

    @property
    def steps(self) -> tuple[Step, ...]:
        """Scores are asked for only where the server may know them."""
        if isinstance(self.trust, HiddenRanks):
            return (
                hidden_ranks.offer_sizes,
                hidden_ranks.rank_together,
                hidden_ranks.noisy_hidden_rank_sums,
            )
        if isinstance(self.trust, SecureSum):
            return (share_scores, keep_ranks, summed_rank_pairs, summed_residuals)
        return super().steps

    def min_clients(self, clients: int) -> int:
        """In a secure sum all: they were ranked together, and each draws a share of the noise."""
        return clients if isinstance(self.trust, SecureSum) else super().min_clients(clients)

    @property
    def score_range(self) -> tuple[float, float] | None:
        """Where clients rank together, they compare scores from 0 to 1."""
        return UNIT_INTERVAL if isinstance(self.trust, HiddenRanks) else None

    def comparison(self) -> Protocol:
        """Two models' AUCs at this epsilon, under this trust."""
        from tacit.protocols.fedauc.comparing.protocol import ComparedAUC

        return ComparedAUC(self.epsilon, str(self.trust))

    def replicate_size(self, clients: Clients) -> int:
        """Numbers a replicate holds: a bit and an integer a record when labels are flipped."""
        is_hidden = isinstance(self.trust, HiddenRanks)
        return 8 * clients.count if is_hidden else super().replicate_size(clients)

    def divided(self, geometry: RankGeometry) -> Allocation | None:
        """By influence, or not at all where every label is flipped."""
        return super().divided(geometry) if isinstance(self.trust, Local) else None

    def conversation(self, clients: int) -> Conversation:
        """Scores up, ranks down, noisy pairs up; sums up; or with hidden ranks sizes and pairs."""
        if isinstance(self.trust, HiddenRanks):
            return (yield from result_with_hidden_ranks(self, self.trust.alpha))
        if isinstance(self.trust, SecureSum):
            ranks, scales = yield from ranked_scores(self)
            return replace((yield from rounds_by_sum(self, clients, ranks)), scales=scales)
        return (yield from super().conversation(clients))

    @classmethod
    def audit_cases(cls) -> tuple[audits.AuditCase, ...]:
        """Every trust; of flipped labels two, as all are flipped alike."""
        return (
            *super().audit_cases(),
            audits.AuditCase(cls.name, {"trust": "local"}, records=2),
            audits.AuditCase(cls.name, records=600),
        )

    @classmethod
    def self_test_cases(cls) -> audits.SelfTestCases:
        """Flipped labels, sound and with a mistake."""
        response, halved = cls(1.0, Local()), partial(doubles.ScaledNoise, 0.5)
        return audits.SelfTestCases(
            (
                audits.AuditTrial(audits.SUMS, "flipped labels", False, response, records=2),
                audits.AuditTrial(
                    audits.SUMS, "flipped half as often", True, response, halved, records=2
                ),
            )
        )

    def label_attacks(self) -> tuple[audits.LabelAttack, ...]:
        """Labels guessed from the scores that the server receives, if it receives any."""
        is_hidden = isinstance(self.trust, HiddenRanks)
        return (guesses_from_plain_scores,) if is_hidden else super().label_attacks()

    @property
    def law_traits(self) -> audits.LawTraits:
        """Flipped labels are debiased without noise too; clients that rank together keep notes.

        Sums are rounded to units before their shares of noise are added.
        """
        trust = self.trust
        together, summed = isinstance(trust, HiddenRanks), isinstance(trust, SecureSum)
        responds = isinstance(trust, Local)
        return audits.LawTraits(
            indivisible="a client alone cannot rank its records" if together else "",
            inexact="flipped labels are debiased all the same" if responds else "",
            keeps_state=together or summed,
            tolerance=ROUNDING if summed else 1e-9,
            copies=1 if together else ADDITIVE_COPIES,
        )
