"""The Brier score, as it is and scaled by that of the prevalence."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.measures.functional import Functional, both, prevalence, ratio


def brier(counts: Floats, predicted: Floats) -> Functional:
    """The mean squared difference of score and label, each score at its cell's middle.

    Parameters
    ----------
    counts : shape (2, B).
    predicted : the probability that each cell states, shape (B,).

    Examples
    --------
    >>> brier(np.array([[1.0, 3.0], [3.0, 1.0]]), np.array([0.25, 0.75])).value.tolist()
    [0.1875]
    """
    squares = both((1 - predicted) ** 2, predicted**2)[np.newaxis]
    return ratio(counts, squares, np.ones_like(squares))


def scaled_brier(counts: Floats, predicted: Floats) -> Functional:
    """``1 - B / (o (1 - o))``, B the Brier score, o the prevalence: 0 where all are given o."""
    score, share = brier(counts, predicted), prevalence(counts)
    spread = share.value * (1 - share.value)
    known = np.where(spread > 0, spread, np.nan)
    # d(1 - b / q) = -db / q + b / q^2 dq, with dq = (1 - 2 o) do
    by_score = -score.gradient / known[:, np.newaxis, np.newaxis]
    slope = score.value * (1 - 2 * share.value) / known**2
    return Functional(
        1 - score.value / known, by_score + slope[:, np.newaxis, np.newaxis] * share.gradient
    )
