"""How labels are inferred from scores, curves, counts and differences."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.metrics.curves import counts_from_thresholds

Labels = NDArray[np.int8]


def positives_from_curve(
    records: NDArray[Any], false_positive_rate: Floats, true_positive_rate: Floats
) -> Floats:
    """The fraction of positives in every cell, from a ROC curve and the known scores, shape (T,).

    An attacker who knows the scores knows the number of records ``n_j`` between two thresholds.
    This number is ``P t_j + N f_j``, where t and f are the steps of the rates. As ``P + N = M``,
    one class size remains unknown; least squares estimate it, and ``P t_j / n_j`` follows. An exact
    curve at every score gives every label (after Matthews and Harel 2013). Empty cells have the
    share 0.

    Parameters
    ----------
    records : how many records score from each threshold up to the next, shape (T,).
    false_positive_rate, true_positive_rate : at ascending thresholds, shape (T,).

    Examples
    --------
    >>> positives_from_curve(np.array([2, 1, 1]), np.array([1, 0.5, 0]), np.array([1, 0.5, 0.5]))
    array([0.5, 0. , 1. ])
    """
    false, true = (
        rates - np.append(rates[1:], 0.0) for rates in (false_positive_rate, true_positive_rate)
    )
    apart = true - false
    missing = records - records.sum() * false
    scale = float(apart @ apart)
    positives = float(apart @ missing) / scale if scale > 0 else 0.0
    share = positives * true / np.maximum(records, 1)
    return np.clip(np.where(records > 0, share, 0.0), 0.0, 1.0)


def candidate_curves(positives: Integers, negatives: Integers, cells: Integers) -> Floats:
    """The ROC curves under every labelling of a few records, shape (2**u, 2, T).

    In row ``c`` the labels are the bits of c; the first record has the highest bit. Rates of an
    empty class are 0.

    Parameters
    ----------
    positives, negatives : counts of the records whose labels are known, by cell, shape (T,).
    cells : the cells of the others, shape (u,).
    """
    labels = all_labellings(cells.size)
    one_hot = np.eye(positives.size, dtype=np.int64)[cells]
    classes = negatives + (1 - labels) @ one_hot, positives + labels @ one_hot
    reached = np.stack([counts_from_thresholds(counts) for counts in classes], axis=1)
    return np.asarray(reached / np.maximum(reached[..., :1], 1))


def all_labellings(records: int) -> Integers:
    """Every labelling of u records, shape (2**u, u).

    Examples
    --------
    >>> all_labellings(2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    return np.array(list(product((0, 1), repeat=records)), dtype=np.int64)


def nearest(released: Floats, candidates: Floats) -> int:
    """Which candidate is nearest to what was released (after Stoddard et al. 2014).

    For exact figures it is the candidate that equals them, for figures with normal noise the
    likeliest one. Of several equally near candidates it is the first.

    Parameters
    ----------
    released : figures of any shape.
    candidates : the same figures under every hypothesis, which is the first axis.
    """
    gaps = (candidates - released).reshape(candidates.shape[0], -1)
    return int(np.argmin(np.sum(gaps**2, axis=-1)))


def labels_from_change(before: Floats, after: Floats) -> Labels:
    """The label of a record that scores highest, from AUCs without it and with it, shape (R,).

    A positive record scores above every negative one, so the AUC rises. No positive record scores
    above a negative one that scores highest, so the AUC falls.

    Examples
    --------
    >>> labels_from_change(np.array([0.71, 0.71]), np.array([0.74, 0.69]))
    array([1, 0], dtype=int8)
    """
    return np.asarray(after > before, dtype=np.int8)


def advantage_bound(epsilon: float, delta: float = 0.0) -> float:
    """The most by which a guess of one bit beats a coin: ``(e^eps - 1 + 2 delta) / (e^eps + 1)``.

    The advantage is the fraction of right guesses minus that of wrong ones. Where the bit is
    (epsilon, delta)-private, right guesses of either value are at most ``exp(epsilon)`` times as
    frequent as wrong ones, plus delta; for delta 0 that is ``tanh(epsilon / 2)``.

    Examples
    --------
    >>> round(advantage_bound(1.0), 3)
    0.462
    """
    return min(1.0, math.tanh(epsilon / 2) + 2 * delta / (1 + math.exp(min(epsilon, 700.0))))
