"""Simulated federations: one holder's records dealt out to clients, and synthetic records."""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from tacit.data.clients import Clients, DataError, as_labels, as_scores


def split_records(
    scores: NDArray[np.float64],
    labels: NDArray[np.int8],
    clients: int,
    by: Literal["uniform", "score"] = "uniform",
    seed: int | None = None,
    second: NDArray[np.float64] | None = None,
) -> Clients:
    """Deal records out to ``clients`` simulated clients whose sizes differ by at most one.

    Raises
    ------
    DataError : when there are fewer records than clients, or ``by`` is unknown.
    """
    records = scores.size
    if labels.size != records:
        raise DataError(f"{records} scores but {labels.size} labels")
    if second is not None and second.size != records:
        raise DataError(f"{records} scores but {second.size} second values")
    if not 1 <= clients <= records:
        raise DataError(f"the number of clients must be between 1 and {records}, got {clients}")
    if by == "uniform":
        order = np.random.default_rng(seed).permutation(records)
    elif by == "score":
        order = np.argsort(scores, kind="stable")
    else:
        raise DataError(f"records are split by 'uniform' or 'score', got {by!r}")
    offsets = (np.arange(clients + 1, dtype=np.int64) * records) // clients
    dealt = None if second is None else second[order]
    return Clients(scores[order], labels[order], offsets, simulated=True, second=dealt)


def binormal_scores(
    positives: int, negatives: int, auc: float, seed: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Scores in (0, 1) of a binormal model whose population AUC is ``auc``.

    Latent values are normal with unit variance, the positives' mean ``sqrt(2) * quantile(auc)``
    higher; the normal distribution function maps them into (0, 1), which keeps every rank.

    Examples
    --------
    >>> scores, labels = binormal_scores(30, 70, 0.8, seed=1)
    >>> scores.size, int(labels.sum())
    (100, 30)
    """
    if min(positives, negatives) < 1:
        raise DataError(f"both classes need a record, got {positives} and {negatives}")
    if not 0 < auc < 1:
        raise DataError(f"auc must be between 0 and 1, both excluded, got {auc}")
    rng = np.random.default_rng(seed)
    separation = np.sqrt(2.0) * float(scipy.special.ndtri(auc))
    labels = np.repeat(np.array([1, 0], dtype=np.int8), [positives, negatives])
    latent = rng.standard_normal(labels.size) + separation * labels - separation / 2
    return scipy.special.ndtr(latent), labels


def resample_scores(
    scores: ArrayLike,
    labels: ArrayLike,
    positives: int,
    negatives: int,
    seed: int | None = None,
    jitter: float = 1e-6,
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Draw given numbers of positives and negatives from real scores.

    A class is drawn without replacement when it holds enough records, else with replacement;
    repeated scores are then told apart by a uniform jitter of half-width ``jitter``, kept in [0,1].
    """
    flat_scores, flat_labels = as_scores(scores), as_labels(labels)
    rng = np.random.default_rng(seed)
    drawn = []
    for value, wanted in ((1, positives), (0, negatives)):
        source = flat_scores[flat_labels == value]
        if not source.size:
            raise DataError(f"no record with label {value} to draw from")
        again = wanted > source.size
        picked = rng.choice(source, wanted, replace=again)
        if again:
            picked = np.clip(picked + rng.uniform(-jitter, jitter, wanted), 0.0, 1.0)
        drawn.append(picked)
    made = np.repeat(np.array([1, 0], dtype=np.int8), [positives, negatives])
    return np.concatenate(drawn), made
