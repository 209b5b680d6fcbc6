"""Net benefit over thresholds, as in decision curves."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.measures.functional import Functional, both, ratio


def net_benefit(counts: Floats, above: Floats, thresholds: Floats) -> Functional:
    """``TP / M - FP / M * t / (1 - t)`` (Vickers and Elkin 2006) of treating scores from t on.

    Parameters
    ----------
    counts : shape (2, B).
    above : the part of each cell that reaches each threshold, shape (T, B).
    thresholds : probabilities below 1, shape (T,).

    Examples
    --------
    >>> counts, above = np.array([[10.0, 30.0], [50.0, 10.0]]), np.array([[0.0, 1.0]])
    >>> net_benefit(counts, above, np.array([0.5])).value.tolist()
    [0.2]
    """
    weight = odds(thresholds)
    return ratio(counts, both(above, -weight * above), np.ones((1, 2, 1)), above)


def treat_all(counts: Floats, thresholds: Floats) -> Functional:
    """The net benefit of treating everybody, ``P / M - N / M * t / (1 - t)``.

    Treating nobody has the net benefit 0.
    """
    ones = np.ones((thresholds.size, counts.shape[-1]))
    return ratio(counts, both(ones, -odds(thresholds) * ones), np.ones((1, 2, 1)))


def odds(thresholds: Floats) -> Floats:
    """``t / (1 - t)``, shape (T, 1).

    Raises
    ------
    ValueError : for a threshold outside [0, 1).
    """
    outside = ~((thresholds >= 0) & (thresholds < 1))
    if outside.any():
        raise ValueError(
            f"a net benefit's threshold must be in [0, 1), got {thresholds[outside][0]}"
        )
    return (thresholds / (1 - thresholds))[:, np.newaxis]
