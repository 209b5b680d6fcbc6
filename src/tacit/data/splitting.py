"""Synthetic records and federations, for simulations."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from tacit.data.checking import as_labels, as_scores
from tacit.data.clients import Clients
from tacit.data.errors import DataError


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


def federation(
    records: int, apart: bool, low: float = 0.0, high: float = 1.0, values: Any = None
) -> Clients:
    """Evenly spread records of alternating class, second values descending.

    Parameters
    ----------
    records : how many.
    apart : True for clients of one record each, else one client holds all.
    low, high : the range of the scores.
    values : the finite values that scores may take, instead of a range.

    Examples
    --------
    >>> federation(3, apart=True).scores, federation(3, apart=True).count
    (array([0. , 0.5, 1. ]), 3)
    """
    scores = np.linspace(low, high, records)
    if values is not None:
        scores = np.resize(np.asarray(values, dtype=np.float64), records)
    labels = np.arange(records, dtype=np.int8) % 2
    ids = np.arange(records) if apart else None
    return Clients.from_arrays(scores, labels, ids, second=scores[::-1])


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
    repeated scores are then distinguished by a uniform jitter of half-width ``jitter``, kept in
    [0,1].
    """
    flat_scores, flat_labels = as_scores(scores), as_labels(labels)
    rng = np.random.default_rng(seed)
    drawn = []
    for value, size in ((1, positives), (0, negatives)):
        source = flat_scores[flat_labels == value]
        if not source.size:
            raise DataError(f"no record with label {value} to draw from")
        again = size > source.size
        picked = rng.choice(source, size, replace=again)
        if again:
            picked = np.clip(picked + rng.uniform(-jitter, jitter, size), 0.0, 1.0)
        drawn.append(picked)
    made = np.repeat(np.array([1, 0], dtype=np.int8), [positives, negatives])
    return np.concatenate(drawn), made
