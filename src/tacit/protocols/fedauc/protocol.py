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
from functools import partial
from typing import Any, ClassVar

import tacit.protocol as tp
from tacit.privacy import doubles
from tacit.protocol import audits
from tacit.protocol.declared import NOBODY
from tacit.protocols.fedauc import estimate, hidden_ranks, secure_sums, steps
from tacit.protocols.fedauc.allocation import Allocation, RankGeometry
from tacit.protocols.shared.declared import guesses_from_ascending_scores, guesses_from_plain_scores
from tacit.protocols.shared.rank_noise import RESPONSE, STAIRCASE, RankNoise
from tacit.protocols.shared.reports.flipped_labels import Flipped

PAGE = "threat-models/fedauc.md"

SCORES_OPEN = (
    "Scores: the server has them all, and whatever follows from a score about its label stays "
    "open. Numbers of records are not hidden either."
)

NOISY_SUMS = tp.ThreatModel(
    NOBODY,
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
    "The server is trusted to see sums only. Between real parties that takes secure aggregation; "
    "the command `tacit evaluate` adds up all replies in one process. The other clients are "
    "trusted to draw their shares of the noise and to keep them secret.",
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
    """The clients rank their scores together, and show them to nobody.

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


def check_fraction(name: str, value: float) -> None:
    """Refuse a fraction of a budget that leaves nothing for one of two numbers.

    Raises
    ------
    ValueError : naming it.
    """
    if not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1, both excluded, got {value}")


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
        return RankNoise(RESPONSE, self.guarantee.epsilon)

    def divided(self, geometry: RankGeometry) -> Allocation | None:
        """How clients divide their budgets, by default not at all: they flip their labels.

        None for the allocation by influence, whose first round depends on the data.
        """
        return Allocation.alike(geometry, respond=True)

    def conversation(self, clients: int) -> tp.Conversation:
        """Scores up, ranks down, noisy pairs up; with a first round where it pays."""
        ranks, scales = yield from estimate.ranked_scores(self)
        geometry, noise = RankGeometry.of(ranks), self.rank_noise
        allocation = self.divided(geometry)
        if allocation is None:
            noise, allocation = yield from estimate.divided_by_influence(self, ranks, geometry)
        sums = yield from estimate.asked_sums(self, ranks, geometry, noise, allocation)
        return replace(estimate.result_of_sums(geometry, noise, allocation, sums), scales=scales)

    def label_attacks(self) -> tuple[audits.LabelAttack, ...]:
        """Labels guessed from the scores that the server receives."""
        return (guesses_from_ascending_scores,)

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

    epsilon: float = tp.setting(help=tp.EPSILON)
    trust: tp.Each | tp.Local | tp.SecureSum | HiddenRanks | str = tp.trust_setting(tp.Each())

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
        if isinstance(self.trust, tp.SecureSum) and self.trust.dropouts:
            raise ValueError(
                "a sum of ranks needs every client that was ranked: dropouts must be 0, "
                f"got {self.trust.dropouts}"
            )

    @property
    def rank_noise(self) -> RankNoise:
        """The noise of a client's pair, at the whole budget."""
        local = isinstance(self.trust, tp.Local)
        return super().rank_noise if local else RankNoise(STAIRCASE, self.epsilon)

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
        from tacit.protocols.fedauc.comparing.protocol import ComparedAUC

        return ComparedAUC(self.epsilon, str(self.trust))

    def replicate_size(self, clients: tp.Clients) -> int:
        """Numbers a replicate holds: a bit and an integer a record when labels are flipped."""
        is_hidden = isinstance(self.trust, HiddenRanks)
        return 8 * clients.count if is_hidden else super().replicate_size(clients)

    def divided(self, geometry: RankGeometry) -> Allocation | None:
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
        return (guesses_from_plain_scores,) if is_hidden else super().label_attacks()

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
