"""Net benefit, the area under a part of the ROC curve, and losses of stated probabilities.

Net benefit over thresholds is that of decision curves. Losses are the Brier score, as it is and
scaled by that of the prevalence, and log loss and normalised entropy, as scores are and after
logistic recalibration. Rates at a threshold are in ``metrics.rates``.
"""

from __future__ import annotations

import numpy as np
import scipy

from tacit.arrays import Floats
from tacit.metrics.functional import Functional, above_middle, both, prevalence, ratio
from tacit.metrics.operating_points import quantiles, reaching_places


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
    up, across = (above_middle(cells) / cells.sum() for cells in counts)
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


def _within_cut(counts: Floats, cut: Floats) -> Floats:
    """The part of positives above the middle of the upper part of the cut cell."""
    above = np.flip(np.cumsum(np.flip(counts[0]))) - counts[0]
    return (above + cut * counts[0] / 2) / counts[0].sum()


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


def log_loss(counts: Floats, log_odds: Floats) -> Functional:
    """The mean of ``-log`` of the probability that a score states for the label, in nats.

    Parameters
    ----------
    counts : shape (2, B).
    log_odds : what each cell states, shape (B,). They are finite: the middle of a cell clips the
        scores in it.

    Examples
    --------
    >>> log_loss(np.array([[1.0], [1.0]]), np.zeros(1)).value.round(6).tolist()
    [0.693147]
    """
    # -log expit(x) and -log(1 - expit(x))
    losses = both(np.logaddexp(0.0, -log_odds), np.logaddexp(0.0, log_odds))[np.newaxis]
    return ratio(counts, losses, np.ones_like(losses))


def normalised_entropy(counts: Floats, log_odds: Floats) -> Functional:
    """The log loss over that of stating the prevalence for all (He et al. 2014, equation 1)."""
    loss, share = log_loss(counts, log_odds), prevalence(counts)
    entropy = scipy.special.entr(share.value) + scipy.special.entr(1 - share.value)
    known = np.where(entropy > 0, entropy, np.nan)
    value = loss.value / known
    # the entropy's slope in the prevalence is log((1 - o) / o)
    slope = -value * -scipy.special.logit(share.value)
    change = loss.gradient + slope[:, np.newaxis, np.newaxis] * share.gradient
    return Functional(value, change / known[:, np.newaxis, np.newaxis])
