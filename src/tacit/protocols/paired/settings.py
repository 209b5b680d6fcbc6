"""How epsilon is divided over matchings, and between pairs and class sizes, before any record."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Integers
from tacit.protocols.paired.class_sizes import count_variance
from tacit.protocols.paired.kernels import BOUNDS
from tacit.protocols.paired.noise import PairNoise

MAX_MATCHINGS = 32
"""Largest number of pairs of a record by default."""

PLANNED_VARIANCES = {"auc": 0.2, "collision": 0.2, "kendall": 0.2, "gini": 0.045}
"""``zeta_2 - 2 zeta_1`` over the squared range: the variance of one random matching's values.

Kernels of two values have a variance of up to 1/4; Gini's on uniform values ``1/18 - 2/180``.
"""

PLANNED_POSITIVE_FRACTION, PLANNED_AREA = 0.25, 0.75
"""Fraction of positives, and AUC, for which epsilon is divided."""

CLASS_FRACTIONS = np.geomspace(2.0**-8, 0.75, 64)
"""Fractions of epsilon that are compared for class sizes."""


def kernel_width(kernel: str) -> int:
    """The largest change of a pair's kernel by one record, in the kernel's integers."""
    low, high = BOUNDS[kernel]
    return high - low


def best_matchings(kernel: str, epsilon: float, noise: str) -> int:
    """The number of matchings of least planned variance, at most ``MAX_MATCHINGS``.

    The mean over Q matchings of n records varies by ``2 / (Q n) (zeta_2 - 2 zeta_1 + v(epsilon /
    Q))``, v the variance of one value's noise (Theorem 5 of Bell et al. 2020 about this data's U).
    Noise of a divided epsilon grows faster than Q, so one matching is best until noise is the
    smaller part.

    Examples
    --------
    >>> [best_matchings("auc", epsilon, "randomised-response") for epsilon in (0.5, 2.0, 5.0, 10.0)]
    [1, 1, 2, 4]
    >>> [best_matchings("kendall", epsilon, "laplace") for epsilon in (2.0, 5.0, 10.0)]
    [1, 1, 2]
    """
    width = kernel_width(kernel)

    def planned(matchings: int) -> float:
        noisy = PairNoise(noise, epsilon / matchings, width).variance(1.0) / width**2
        return (PLANNED_VARIANCES[kernel] + noisy) / matchings

    return min(range(1, MAX_MATCHINGS + 1), key=planned)


def class_epsilon(epsilon: float, noise: str, matchings: int, sizes: Integers) -> float:
    """The part of epsilon for noisy class sizes: the one of least planned variance.

    The AUC's relative variance is that of the mean over pairs, with the rest of epsilon, plus
    ``((N - P) / (P N))^2`` times the noise of all clients' counts. Few clients with many records
    spend little.

    Parameters
    ----------
    sizes : every client's number of records, shape (K,).

    Examples
    --------
    >>> two, phones = np.array([5000, 5000]), np.ones(10_000, dtype=np.int64)
    >>> parts = [class_epsilon(2.0, "randomised-response", 1, sizes) for sizes in (two, phones)]
    >>> [round(part, 2) for part in parts]
    [0.1, 0.77]
    """
    records = int(sizes.sum())
    positives, negatives = (
        PLANNED_POSITIVE_FRACTION * records,
        (1 - PLANNED_POSITIVE_FRACTION) * records,
    )
    mixed = 2 * PLANNED_POSITIVE_FRACTION * (1 - PLANNED_POSITIVE_FRACTION)
    pairs = matchings * (records // 2) * (mixed * PLANNED_AREA) ** 2
    sensitivity = ((negatives - positives) / (positives * negatives)) ** 2

    def planned(fraction: float) -> float:
        pair_variance = PairNoise(noise, (1 - fraction) * epsilon / matchings, 1).variance(1.0)
        count_variance_sum = sensitivity * count_variance(sizes, fraction * epsilon)
        return (PLANNED_VARIANCES["auc"] + pair_variance) / pairs + count_variance_sum

    return float(epsilon * min(CLASS_FRACTIONS.tolist(), key=planned))
