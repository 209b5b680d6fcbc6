"""The area under a part of the ROC curve."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.measures.functional import Functional, both
from tacit.metrics.measures.operating_points import quantiles, reaching_places


def partial_auc(counts: Floats, largest: float) -> Functional:
    """The area under the ROC curve from false-positive rate 0 to ``largest``.

    Records lie evenly in their cells, so the curve is straight between borders. The influences
    are those of ``mean over negatives of max(f - FPR, 0)``: a positive at the false-positive rate
    u adds ``max(f - u, 0)``, a negative above the cut the positives above it less those above the
    cut.

    Examples
    --------
    >>> counts = np.array([[0.0, 1.0], [1.0, 1.0]])
    >>> partial_auc(counts, 0.5).value.tolist(), partial_auc(counts, 1.0).value.tolist()
    ([0.25], [0.75])
    """
    up, across = (_above_middle(cells) for cells in counts)
    cut = reaching_places(quantiles(counts[1], np.array([largest])), counts.shape[-1])[0]
    reached = float(cut @ counts[0] / counts[0].sum())
    share = counts[1] / counts[1].sum()
    inside = (cut > 0) & (cut < 1)
    # negatives of the cut cell above the cut see half of the positives there above the cut
    seen = np.where(inside, _within_cut(counts, cut), up)
    left = largest - float(np.sum(cut * share))
    value = float(np.sum(cut * share * seen)) + left * reached
    won = np.where(inside, cut**2 * share / 2, np.maximum(largest - across, 0.0))
    by_positive = won - value
    by_negative = cut * (seen - reached) + largest * reached - value
    gradient = both(by_positive / counts[0].sum(), by_negative / counts[1].sum())
    return Functional(np.array([value]), gradient[np.newaxis], None, None)


def standardised(area: Functional, largest: float) -> Functional:
    """McClish's (1989) scale: 1/2 for guessing and 1 for the largest possible area."""
    least, most = largest**2 / 2, largest
    value = (1 + (area.value - least) / (most - least)) / 2
    return Functional(value, area.gradient / (most - least) / 2)


def _above_middle(cells: Floats) -> Floats:
    """The part of the records above the middle of every cell."""
    return (np.flip(np.cumsum(np.flip(cells))) - cells / 2) / cells.sum()


def _within_cut(counts: Floats, cut: Floats) -> Floats:
    """The part of positives above the middle of the upper part of the cut cell."""
    above = np.flip(np.cumsum(np.flip(counts[0]))) - counts[0]
    return (above + cut * counts[0] / 2) / counts[0].sum()
