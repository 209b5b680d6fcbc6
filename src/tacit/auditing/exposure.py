"""How much better than blind an attacker guesses, beside what a guarantee allows, with a verdict.

An attack that just reaches the allowed advantage exceeds it by chance in half of all audits. So a
verdict asks how likely so many right guesses are where the guarantee holds. It reports an excess
only where this probability is below the row's part of the audit's false-alarm probability.

How labels are inferred from scores, curves, counts and differences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, rel_entr

from tacit.arrays import Floats, Integers
from tacit.auditing.distinguishing import interval
from tacit.metrics import curves
from tacit.privacy.composition import restated
from tacit.privacy.cost import Adjacency, Cost
from tacit.protocol import audits

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
    reached = np.stack([curves.counts_from_thresholds(counts) for counts in classes], axis=1)
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


LEVEL = 0.95

FALSE_ALARM = 1e-4
"""The chance that the verdict on a single sound row is a false alarm."""


@dataclass(frozen=True)
class Exposure(audits.GuessCounts):
    """How often an attacker guessed right, with a verdict.

    Parameters
    ----------
    ceiling : the largest advantage over a coin that the guarantee allows, for a label that a coin
        drew; None where the guarantee says nothing about it.
    trials : number of independent trials; None where every guess is a trial. Guesses from one
        release are not independent.
    false_alarm : the chance that the verdict on this row is a false alarm.
    """

    ceiling: float | None = None
    trials: int | None = None
    false_alarm: float = FALSE_ALARM

    @property
    def share(self) -> float:
        """The fraction of right guesses."""
        return self.right / self.tries

    @property
    def advantage(self) -> float:
        """What the release adds: 0 for guesses as good as blind ones, 1 for knowing."""
        return self._over(self.share)

    @property
    def bounds(self) -> tuple[float, float]:
        """The 95 % interval of the advantage (Clopper-Pearson)."""
        low, high = interval(self.right, self.tries, LEVEL)
        return self._over(low), self._over(high)

    @property
    def chance(self) -> float | None:
        """An upper bound on the probability of this many right guesses where the guarantee holds.

        Let p be the largest share that the ceiling allows. The bound is the upper tail of the
        binomial distribution. If the probabilities of the guesses differ and are p on average, the
        tail is no heavier (Hoeffding 1956, Theorem 4). For n trials with several guesses each, the
        mean x of their shares exceeds p with probability at most ``exp(-n KL(x, p))`` (Hoeffding
        1963, Theorem 1).
        """
        if self.ceiling is None:
            return None
        allowed = self.blind + self.ceiling * (1 - self.blind)
        if self.share <= allowed:
            return 1.0
        if self.trials is None:
            return float(betainc(self.right, self.tries - self.right + 1, allowed))
        # the relative entropy of two coins, in nats
        divergence = float(rel_entr(self.share, allowed) + rel_entr(1 - self.share, 1 - allowed))
        return math.exp(-self.trials * divergence)

    @property
    def holds(self) -> bool:
        """Whether chance may explain the advantage, at this row's false-alarm probability."""
        return self.chance is None or self.chance >= self.false_alarm

    @property
    def above(self) -> bool:
        """Whether the advantage is larger than allowed, be it by chance."""
        return self.ceiling is not None and self.advantage > self.ceiling

    @property
    def verdict(self) -> str:
        """In a few words."""
        if self.chance is None:
            return "no bound"
        if not self.holds:
            return f"EXCEEDED (p {self.chance:.1g})"
        return f"holds; above by chance (p {self.chance:.1g})" if self.above else "holds"

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        low, high = self.bounds
        return asdict(self) | {
            "share": self.share,
            "advantage": self.advantage,
            "advantage_low": low,
            "advantage_high": high,
            "chance": self.chance,
            "holds": self.holds,
            "verdict": self.verdict,
        }

    def _over(self, share: float) -> float:
        return (share - self.blind) / (1 - self.blind)


def judged_together(exposures: Sequence[Exposure], false_alarm: float) -> tuple[Exposure, ...]:
    """The same rows, with this probability of a false alarm over all of them (Bonferroni)."""
    bounded = sum(exposure.ceiling is not None for exposure in exposures)
    each = false_alarm / max(bounded, 1)
    return tuple(replace(exposure, false_alarm=each) for exposure in exposures)


def label_ceiling(cost: Cost) -> float | None:
    """The largest advantage over a coin that a guarantee allows a guess of one record's label.

    To replace a label is to remove one record and to add another, so a guarantee about added and
    removed records counts twice. None where labels are not protected.

    Examples
    --------
    >>> round(label_ceiling(Cost(1.0, adjacency=Adjacency.LABEL)), 3)
    0.462
    """
    if cost.adjacency not in (Adjacency.LABEL, Adjacency.REPLACE, Adjacency.RECORD):
        return None
    of_label = restated(cost, Adjacency.LABEL)
    return advantage_bound(of_label.epsilon, of_label.delta)
