"""Noise on scores, against which Sun, Yang, Yao, Xie, Wu and Wang, 2022 compare FedAUC (Sun et al.
2022a, Table 9; docs, section 1f)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.data.errors import check_classes
from tacit.metrics.ranking import doubled_mid_ranks, plug_in_variance
from tacit.privacy.exact import power_of_two_grid
from tacit.privacy.mechanisms.laplace import Laplace
from tacit.protocol import audits
from tacit.protocol.fields import ragged_of
from tacit.protocols.shared.declared import guesses_from_noisy_scores

NOISY_SCORES = tp.ThreatModel(
    "The server, with the labels. Scores get noise before they leave a client.",
    "With noise: every score. Exactly: each client's count of positives, and its sum of ranks.",
    "The ranks of the noisy scores.",
    "Labels: counts and rank sums are exact. This is a baseline.",
)


@tp.step(cost=lambda clients, query, state: tp.UNPROTECTED)
def plain_rank_sums(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send the exact count of positives and twice the sum of their ranks. No privacy."""
    ranks = ragged_of(query.per_client["ranks"], "ranks")
    return {
        "positives": clients.ragged(clients.labels.astype(np.int64)).sum(),
        "rank_sums": tp.Ragged(ranks.values * clients.labels, ranks.offsets).sum(),
    }


@tp.step(cost=lambda clients, query, state: query.protocol.score_noise.cost(tp.Adjacency.SCORE))
def share_noisy_scores(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send every score with Laplace noise of scale ``1 / epsilon`` (Sun et al. 2022a, Table 9).

    A score in [0, 1] is rounded to the noise's grid first, which contains 0 and 1, so two values of
    one score differ by at most 1: epsilon for the score of one record, by the Laplace mechanism.
    Labels are not protected.

    Raises
    ------
    DataError : for a score outside [0, 1].
    """
    tp.check_scores_in_unit_interval(clients)
    mechanism: Laplace = query.protocol.score_noise
    grid = power_of_two_grid(mechanism.scale)
    scores = np.rint(clients.scores / grid) * grid
    return {"scores": clients.ragged(scores + noise.draw(mechanism, (clients.records,)))}


@dataclass(frozen=True)
class NoisyScores(tp.Protocol):
    """The AUC of scores with Laplace noise: a baseline that fails (Sun et al. 2022a, Table 9).

    The noise pulls the AUC towards one half by an unknown amount, so no error is given.

    Parameters
    ----------
    epsilon : the privacy budget of one score. Labels are not protected.
    """

    epsilon: float = tp.setting(help=tp.EPSILON)

    name = "published-noisy-scores"
    score_range = tp.UNIT_INTERVAL
    largest_epsilon = 1e6
    """A thousand times the papers' largest."""
    steps = (share_noisy_scores, plain_rank_sums)
    threats = staticmethod(lambda settings: NOISY_SCORES)
    law_settings: ClassVar[audits.Configurations] = {"noisy-scores": {}}
    audit_records = 2
    gives_errors = False
    """The bias is unknown."""
    guarantee = tp.UNPROTECTED
    """The first step costs epsilon for one score; the second, with exact labels, hides nothing."""

    @property
    def score_noise(self) -> Laplace:
        """The noise on a score, which moves by 1 at most."""
        return Laplace(1.0, self.epsilon)

    def replicate_size(self, clients: tp.Clients) -> int:
        """Scores, ranks and sums of every record."""
        return 6 * clients.records

    def conversation(self, clients: int) -> tp.Conversation:
        """Noisy scores up, ranks down, exact sums up."""
        reply = yield tp.Query(share_noisy_scores, self)
        sent = ragged_of(reply["scores"], "scores")
        records = sent.values.shape[-1]
        ranks = tp.Ragged(np.apply_along_axis(doubled_mid_ranks, -1, sent.values), sent.offsets)
        reply = yield tp.Query(plain_rank_sums, self, per_client={"ranks": ranks})
        positives = int(np.asarray(reply["positives"]).sum())
        negatives = records - positives
        check_classes(positives, negatives)
        doubled: NDArray[Any] = np.asarray(reply["rank_sums"]).sum(axis=-1)
        # (2 S - P (M - 1)) / (2 P N) + 1/2 with the doubled rank sum S, from exact integers
        value = (doubled - positives * (positives - 1)) / (2.0 * positives * negatives)
        like = np.zeros_like(value, dtype=np.float64)
        warning = (
            f"noise on the scores (epsilon {self.epsilon:g} each) biases the AUC towards 1/2 by an "
            "unknown amount, so no interval is given; labels are not protected"
        )
        return tp.ServerResult(
            value=np.asarray(value),
            privacy_error=like,
            sampling_error=np.sqrt(plug_in_variance(value, positives, negatives)),
            positives=like + positives,
            negatives=like + negatives,
            approximation_error=like + np.nan,
            warnings=(warning,),
        )

    def label_attacks(self) -> tuple[audits.LabelAttack, ...]:
        """Labels guessed from the noisy scores that the server receives."""
        return (guesses_from_noisy_scores,)
