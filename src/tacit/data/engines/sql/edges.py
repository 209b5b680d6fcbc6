"""The least scores at which a rising map of scores reaches given values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.cells.score_code import signed_codes, signed_scores

LARGEST = float(np.finfo(np.float64).max)


def least_scores(
    rising: Callable[[Floats], Floats],
    levels: Floats,
    low: float = -LARGEST,
    high: float = LARGEST,
) -> Floats:
    """The least double whose image reaches each level, shape (B,): plus infinity where none does.

    So ``score >= least`` says the same of a score as ``rising(score) >= level``, to the last bit,
    for any map that does not fall, and an engine needs neither the map nor a logarithm.

    Parameters
    ----------
    rising : a map that does not fall, of arrays of shape (B,).
    levels : shape (B,).
    low, high : the least and the largest score there can be; no score is below the first.

    Examples
    --------
    >>> least_scores(lambda score: score / 100, np.array([0.5, 2.0]), 0.0, 100.0).tolist()
    [50.0, inf]
    """
    ends = signed_codes([low, high])
    below = np.full(levels.shape, ends[0] - 1, dtype=np.int64)
    reached = np.full(levels.shape, ends[1] + 1, dtype=np.int64)
    # differences of codes of different signs would overflow, and halves do not
    while np.any(open_still := below + 1 < reached):
        middle = (below >> 1) + (reached >> 1) + (below & reached & 1)
        middle = np.where(open_still, middle, np.clip(reached, *ends))
        enough = rising(signed_scores(middle)) >= levels
        reached = np.where(open_still & enough, middle, reached)
        below = np.where(open_still & ~enough, middle, below)
    return np.where(reached > ends[1], np.inf, signed_scores(np.minimum(reached, ends[1])))
