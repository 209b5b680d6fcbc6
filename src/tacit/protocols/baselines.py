"""Baselines for the private protocols: no privacy at all, and noise on the scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.batches.ragged import Ragged
from tacit.data.batches.ranked import StoredLabels
from tacit.data.batches.sorting import sorted_scores
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.data.scaling.scales import ScaleDifference, clients_apart
from tacit.metrics.ranking import auc_with_variance, doubled_mid_ranks, plug_in_variance
from tacit.privacy.cost import UNPROTECTED, Adjacency, Cost, check_budget
from tacit.privacy.mechanisms.laplace import Laplace
from tacit.privacy.sampling.grids import power_of_two_grid
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Conversation, Protocol, Query, Reply, step
from tacit.protocol.settings.declaring import EPSILON, setting
from tacit.protocol.settings.score_range import UNIT_INTERVAL
from tacit.protocols.baselines_declared import ExactDeclarations, NoisyScoresDeclarations
from tacit.results.server_result import ServerResult

MAX_SCORE_BUDGET = 1e6
"""The largest epsilon of noise on scores, a thousand times the papers' largest."""

APART = (
    "the scores tell the classes of these records apart without a mistake, for which DeLong's "
    "sampling error is 0: the interval about the population is too narrow"
)


@step(cost=lambda clients, query, state: UNPROTECTED)
def share_plain_records(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    """Send the records as they are. No privacy: the server learns every score with its label.

    Labels are sent as bits, eight in a byte; the labels of each client start with a new byte.
    """
    if clients.ranking is not None:
        packed = np.concatenate(([0], np.cumsum(-(-clients.sizes // 8))))
        return {
            "scores": sorted_scores(clients),
            "labels": StoredLabels(packed, clients.ranking.ranked),
        }
    used, offsets = _bits_in_bytes(clients.sizes)
    bits = np.zeros(used.size, dtype=np.uint8)
    bits[used] = clients.labels
    return {
        "scores": clients.ragged(clients.scores),
        "labels": Ragged(np.packbits(bits), offsets),
    }


@step(cost=lambda clients, query, state: UNPROTECTED)
def plain_rank_sums(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    """Send the exact count of positives and twice the sum of their ranks. No privacy."""
    ranks = query.per_client["ranks"]
    if not isinstance(ranks, Ragged):
        raise TypeError("ranks must be ragged")
    return {
        "positives": clients.ragged(clients.labels.astype(np.int64)).sum(),
        "rank_sums": Ragged(ranks.values * clients.labels, ranks.offsets).sum(),
    }


@step(cost=lambda clients, query, state: query.protocol.score_noise.cost(Adjacency.SCORE))
def share_noisy_scores(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    """Send every score with Laplace noise of scale ``1 / epsilon`` (Sun et al. 2022a, Table 9).

    A score in [0, 1] is rounded to the noise's grid first, which contains 0 and 1, so two values of
    one score differ by at most 1: epsilon for the score of one record, by the Laplace mechanism.
    Labels are not protected.

    Raises
    ------
    DataError : for a score outside [0, 1].
    """
    outside = np.flatnonzero((clients.scores < 0) | (clients.scores > 1))
    if outside.size:
        raise DataError(
            f"scores must be in [0, 1] for noise of sensitivity 1, got {clients.scores[outside[0]]}"
        )
    mechanism: Laplace = query.protocol.score_noise
    grid = power_of_two_grid(mechanism.scale)
    scores = np.rint(clients.scores / grid) * grid
    return {"scores": clients.ragged(scores + noise.draw(mechanism, (clients.records,)))}


@dataclass(frozen=True)
class ExactAUC(ExactDeclarations, Protocol):
    """The exact AUC, with no privacy: the baseline.

    The server receives all records, so its sampling error is that of DeLong et al. 1988.

    Examples
    --------
    >>> ExactAUC().guarantee.epsilon
    inf
    """

    name = "exact"
    steps = (share_plain_records,)
    draws_noise = False

    @property
    def guarantee(self) -> Cost:
        """Nothing is protected."""
        return UNPROTECTED

    def replicate_size(self, clients: Clients) -> int:
        """No noise is drawn."""
        return 1

    def conversation(self, clients: int) -> Conversation:
        """One round: records up."""
        reply = yield Query(share_plain_records, self)
        return replace(_result_of_records(reply), scales=_scales_of(reply))


@dataclass(frozen=True)
class NoisyScores(NoisyScoresDeclarations, Protocol):
    """The AUC of scores with Laplace noise: a baseline that fails (Sun et al. 2022a, Table 9).

    The noise pulls the AUC towards one half by an unknown amount, so no error is given.

    Parameters
    ----------
    epsilon : the privacy budget of one score. Labels are not protected.
    """

    epsilon: float = setting(help=EPSILON)

    name = "noisy-scores"
    score_range = UNIT_INTERVAL
    steps = (share_noisy_scores, plain_rank_sums)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_budget(self.epsilon, MAX_SCORE_BUDGET)

    @property
    def score_noise(self) -> Laplace:
        """The noise on a score, which moves by 1 at most."""
        return Laplace(1.0, self.epsilon)

    @property
    def guarantee(self) -> Cost:
        """Epsilon for one score; the second step, with exact labels, protects nothing."""
        return UNPROTECTED

    def replicate_size(self, clients: Clients) -> int:
        """Scores, ranks and sums of every record."""
        return 6 * clients.records

    def conversation(self, clients: int) -> Conversation:
        """Noisy scores up, ranks down, exact sums up."""
        scores = yield Query(share_noisy_scores, self)
        reply = yield from _query_rank_sums(self, scores)
        warning = (
            f"noise on the scores (epsilon {self.epsilon:g} each) biases the AUC towards 1/2 by an "
            "unknown amount, so no interval is given; labels are not protected",
        )
        return _noisy_result(scores, reply, warning)


def _scales_of(scores: Reply) -> ScaleDifference | None:
    """Which clients' scores are evidently of another scale."""
    sent = scores["scores"]
    return clients_apart(sent) if isinstance(sent, Ragged) else None


def _query_rank_sums(protocol: Protocol, scores: Reply) -> Any:
    sent = scores["scores"]
    if not isinstance(sent, Ragged):
        raise TypeError("scores must be ragged")
    if sent.values.shape[-1] < 2:
        raise ValueError(f"an AUC needs at least two records, got {sent.values.shape[-1]}")
    ranks = np.apply_along_axis(doubled_mid_ranks, -1, sent.values)
    return (
        yield Query(plain_rank_sums, protocol, per_client={"ranks": Ragged(ranks, sent.offsets)})
    )


def _noisy_result(scores: Reply, reply: Reply, warnings: tuple[str, ...]) -> ServerResult:
    """``(2 S - P (M - 1)) / (2 P N) + 1/2`` with the doubled rank sum S, from exact integers."""
    sent = scores["scores"]
    records = sent.values.shape[-1] if isinstance(sent, Ragged) else 0
    positives = int(np.asarray(reply["positives"]).sum())
    negatives = records - positives
    _check_classes(positives, negatives)
    doubled: NDArray[Any] = np.asarray(reply["rank_sums"]).sum(axis=-1)
    value = (doubled - positives * (positives - 1)) / (2.0 * positives * negatives)
    like = np.zeros_like(value, dtype=np.float64)
    return ServerResult(
        value=np.asarray(value),
        privacy_error=like,
        sampling_error=np.sqrt(np.vectorize(plug_in_variance)(value, positives, negatives)),
        positives=like + positives,
        negatives=like + negatives,
        approximation_error=like + np.nan,
        warnings=warnings,
    )


def _result_of_records(reply: Reply) -> ServerResult:
    """The exact AUC of all records, with DeLong's sampling error where both classes have two."""
    scores, packed = reply["scores"], reply["labels"]
    if not (isinstance(scores, Ragged) and isinstance(packed, Ragged)):
        raise TypeError("scores and labels must be ragged")
    if isinstance(packed, StoredLabels):
        placed = packed.placements
        positives, negatives = placed.positives, placed.negatives
        _check_classes(positives, negatives)
        value, sampling = placed.doubled_wins / (2 * positives * negatives), placed.variance
    else:
        labels = _unpacked(packed, scores.sizes)
        positives = int(np.count_nonzero(labels))
        negatives = labels.size - positives
        _check_classes(positives, negatives)
        value, sampling = auc_with_variance(scores.values, labels)
    known = min(positives, negatives) >= 2
    exact = np.zeros(())
    return ServerResult(
        value=exact + value,
        privacy_error=exact,
        sampling_error=exact + np.sqrt(sampling),
        positives=exact + positives,
        negatives=exact + negatives,
        warnings=(APART,) if value in (0, 1) and known else (),
    )


def _check_classes(positives: int, negatives: int) -> None:
    if positives == 0 or negatives == 0:
        raise DataError(
            "the AUC is undefined without both classes, "
            f"got {positives} positive and {negatives} negative records"
        )


def _bits_in_bytes(sizes: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which bits of all bytes are a record's, and each client's first byte, shape (K+1,)."""
    offsets = np.concatenate(([0], np.cumsum(-(-sizes // 8)))).astype(np.int64)
    used = np.ones(8 * int(offsets[-1]), dtype=np.bool_)
    # at most seven bits a client, at the end of its last byte, are nobody's
    spare = 8 * offsets[1:, np.newaxis] - np.arange(1, 8)
    used[spare[np.arange(1, 8) <= (-sizes % 8)[:, np.newaxis]]] = False
    return used, offsets


def _unpacked(packed: Ragged[np.uint8], sizes: NDArray[np.int64]) -> NDArray[np.int8]:
    """The labels of clients with so many records each.

    Raises
    ------
    ValueError : for another number of bytes.
    """
    used, offsets = _bits_in_bytes(sizes)
    if not np.array_equal(packed.offsets, offsets):
        raise ValueError("clients must send one label for each score")
    return np.unpackbits(packed.values)[used].astype(np.int8)
