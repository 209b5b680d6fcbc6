"""What the private protocols are compared with: no privacy at all, and noise on the scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import Clients, DataError, Ragged
from tacit.data.scales import ScaleDifference, clients_apart
from tacit.metrics.ranking import doubled_mid_ranks, plug_in_variance
from tacit.privacy.cost import UNPROTECTED, Adjacency, Cost, check_budget
from tacit.privacy.noise import NoiseSource, power_of_two_grid
from tacit.protocols.conversation import Ask, Conversation, Memory, Protocol, Reply, step
from tacit.protocols.score_range import UNIT_INTERVAL
from tacit.results.findings import Findings


@step(spends=lambda clients, ask, memory: UNPROTECTED)
def share_plain_scores(clients: Clients, ask: Ask, noise: NoiseSource, memory: Memory) -> Reply:
    """Send the scores as they are. No privacy: the server learns every score."""
    return {"scores": clients.ragged(clients.scores)}


@step(spends=lambda clients, ask, memory: UNPROTECTED)
def plain_rank_sums(clients: Clients, ask: Ask, noise: NoiseSource, memory: Memory) -> Reply:
    """Send the exact count of positives and twice the sum of their ranks. No privacy."""
    ranks = ask.each["ranks"]
    if not isinstance(ranks, Ragged):
        raise TypeError("ranks must be ragged")
    return {
        "positives": clients.ragged(clients.labels.astype(np.int64)).sum(),
        "rank_sums": Ragged(ranks.values * clients.labels, ranks.offsets).sum(),
    }


@step(spends=lambda clients, ask, memory: Cost(ask.settings.epsilon, adjacency=Adjacency.SCORE))
def share_noisy_scores(clients: Clients, ask: Ask, noise: NoiseSource, memory: Memory) -> Reply:
    """Send every score with Laplace noise of scale ``1 / epsilon`` (paper 1, Table 9).

    A score in [0, 1] is put on the noise's own grid first, which contains 0 and 1, so two values of
    one score differ by at most 1: epsilon for the score of one record, by the Laplace mechanism.
    Labels are not protected.

    Raises
    ------
    DataError : for a score outside [0, 1].
    """
    wrong = np.flatnonzero((clients.scores < 0) | (clients.scores > 1))
    if wrong.size:
        raise DataError(
            f"scores must be in [0, 1] for noise of sensitivity 1, got {clients.scores[wrong[0]]}"
        )
    scale = 1 / ask.settings.epsilon
    grid = power_of_two_grid(scale)
    scores = np.rint(clients.scores / grid) * grid
    return {"scores": clients.ragged(scores + noise.laplace(scale, (clients.records,)))}


@dataclass(frozen=True)
class ExactAUC(Protocol):
    """The exact AUC in the same conversation, with no privacy: the baseline.

    Examples
    --------
    >>> ExactAUC().guarantee.epsilon
    inf
    """

    name = "exact"
    steps = (share_plain_scores, plain_rank_sums)

    @property
    def guarantee(self) -> Cost:
        """Nothing is protected."""
        return UNPROTECTED

    @property
    def settings(self) -> dict[str, Any]:
        """None."""
        return {}

    def draws(self, clients: Clients) -> int:
        """No noise is drawn."""
        return 1

    def conversation(self, clients: int) -> Conversation:
        """Scores up, ranks down, exact sums up."""
        scores = yield Ask(share_plain_scores, self)
        reply = yield from _ask_rank_sums(self, scores)
        found = _exact_findings(scores, reply, approximation=0.0, warnings=())
        return replace(found, scales=_scales_of(scores))


@dataclass(frozen=True)
class NoisyScores(Protocol):
    """The AUC of scores with Laplace noise: a baseline that fails (paper 1, Table 9).

    The noise pulls the AUC towards one half by an unknown amount, so no error is given.

    Parameters
    ----------
    epsilon : the privacy budget of one score. Labels are not protected.
    """

    epsilon: float

    name = "noisy-scores"
    score_range = UNIT_INTERVAL
    steps = (share_noisy_scores, plain_rank_sums)

    def __post_init__(self) -> None:
        check_budget(self.epsilon)

    @property
    def guarantee(self) -> Cost:
        """Epsilon for one score; the second step, with exact labels, protects nothing."""
        return UNPROTECTED

    @property
    def settings(self) -> dict[str, Any]:
        """Epsilon."""
        return {"epsilon": self.epsilon}

    def draws(self, clients: Clients) -> int:
        """Scores, ranks and sums of every record."""
        return 6 * clients.records

    def conversation(self, clients: int) -> Conversation:
        """Noisy scores up, ranks down, exact sums up."""
        scores = yield Ask(share_noisy_scores, self)
        reply = yield from _ask_rank_sums(self, scores)
        warning = (
            f"noise on the scores (epsilon {self.epsilon:g} each) biases the AUC towards 1/2 by an "
            "unknown amount, so no interval is given; labels are not protected",
        )
        return _exact_findings(scores, reply, approximation=np.nan, warnings=warning)


def _scales_of(scores: Reply) -> ScaleDifference | None:
    """Which clients' scores are evidently of another scale."""
    sent = scores["scores"]
    return clients_apart(sent) if isinstance(sent, Ragged) else None


def _ask_rank_sums(protocol: Protocol, scores: Reply) -> Any:
    sent = scores["scores"]
    if not isinstance(sent, Ragged):
        raise TypeError("scores must be ragged")
    if sent.values.shape[-1] < 2:
        raise ValueError(f"an AUC needs at least two records, got {sent.values.shape[-1]}")
    ranks = np.apply_along_axis(doubled_mid_ranks, -1, sent.values)
    return (yield Ask(plain_rank_sums, protocol, each={"ranks": Ragged(ranks, sent.offsets)}))


def _exact_findings(
    scores: Reply, reply: Reply, approximation: float, warnings: tuple[str, ...]
) -> Findings:
    """``(2 S - P (M - 1)) / (2 P N) + 1/2`` with the doubled rank sum S, from exact integers."""
    sent = scores["scores"]
    records = sent.values.shape[-1] if isinstance(sent, Ragged) else 0
    positives = int(np.asarray(reply["positives"]).sum())
    negatives = records - positives
    if positives == 0 or negatives == 0:
        raise DataError(
            "the AUC is undefined without both classes, "
            f"got {positives} positive and {negatives} negative records"
        )
    doubled: NDArray[Any] = np.asarray(reply["rank_sums"]).sum(axis=-1)
    value = (doubled - positives * (positives - 1)) / (2.0 * positives * negatives)
    sampling = np.sqrt(np.vectorize(plug_in_variance)(value, positives, negatives))
    like = np.zeros_like(value, dtype=np.float64)
    return Findings(
        value=np.asarray(value),
        privacy_error=like,
        sampling_error=sampling,
        positives=like + positives,
        negatives=like + negatives,
        approximation_error=like + approximation,
        warnings=warnings,
    )
