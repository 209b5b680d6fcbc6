"""Figures of counts in score cells, with their dependence on every count.

Counts have shape (2, B): positives, then negatives, in cells of ascending score. ``above`` is the
part of each cell that reaches each threshold, shape (T, B). There are rates of calling scores
positive from a threshold on, net benefit over thresholds as in decision curves, and losses of
stated probabilities: the Brier score, as it is and scaled by that of the prevalence, log loss and
normalised entropy, as scores are and after logistic recalibration. Two fields have two names for
some of the rates: ``rate_name`` knows both. Intervals are of quotients whose denominators have
errors of their own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches

import numpy as np
import scipy

from tacit.arrays import Floats
from tacit.metrics.curves import counts_from_thresholds


@dataclass(frozen=True, eq=False)
class Functional:
    """Figures of counts of shape (2, B): positives, then negatives, in cells of ascending score.

    Parameters
    ----------
    value : shape (T,); NaN where the figure is undefined.
    gradient : what one more record of a class in a cell would add, shape (T, 2, B). The counts
        weighted by it sum to 0, because no figure changes when all counts grow alike.
    base : the weights of the sum of counts that the figure divides by, the smallest of several,
        shape (T, 2, B), or (1, 2, B) where all values divide by one sum; None where it divides by
        the number of records alone. The linearisation needs this sum to be clear of its noise.
    above : the part of each cell that reaches the figure's threshold, shape (T, B); None where no
        threshold cuts a cell.
    rough : the standard deviation by what the records' figure departs from its slope, where noise
        moves the threshold, shape (T,); None where noise moves none.
    """

    value: Floats
    gradient: Floats
    base: Floats | None = None
    above: Floats | None = None
    rough: Floats | None = None

    def sampling_error(self, counts: Floats) -> Floats:
        """The standard error about the population's figure, ``sqrt(sum c g^2)``, shape (T,).

        Negative counts are used as they are: noise clipped at zero would look like records.
        """
        return np.sqrt(np.maximum(np.sum(counts * self.gradient**2, axis=(-2, -1)), 0.0))


def both(positives: Floats | float, negatives: Floats | float) -> Floats:
    """Weights of positives and of negatives, broadcast, shape (..., 2, B)."""
    return np.stack(np.broadcast_arrays(positives, negatives), axis=-2).astype(np.float64)


def ratio(counts: Floats, part: Floats, whole: Floats, above: Floats | None = None) -> Functional:
    """``sum part counts / sum whole counts``; NaN where the whole is not above 0.

    Parameters
    ----------
    counts : shape (2, B).
    part, whole : weights of shape (T, 2, B), or (1, 2, B) for all T.
    above : the part of each cell that reaches the threshold, shape (T, B).

    Examples
    --------
    >>> counts = np.array([[1.0, 3.0], [3.0, 1.0]])
    >>> share = ratio(counts, both(np.ones((1, 2)), 0.0), both(np.ones((1, 2)), 1.0))
    >>> share.value.tolist(), share.gradient[0, :, 0].tolist()
    ([0.5], [0.0625, -0.0625])
    """
    whole = np.broadcast_to(whole, (*whole.shape[:-1], counts.shape[-1]))
    base = np.sum(whole * counts, axis=(-2, -1))
    known = np.where(base > 0, base, np.nan)
    value = np.sum(part * counts, axis=(-2, -1)) / known
    gradient = (part - value[:, np.newaxis, np.newaxis] * whole) / known[:, np.newaxis, np.newaxis]
    return Functional(value, gradient, whole, above)


def prevalence(counts: Floats) -> Functional:
    """The share of positives among all records, ``P / M``."""
    ones = np.ones((1, counts.shape[-1]))
    return ratio(counts, both(ones, 0.0), both(ones, 1.0))


def above_middle(cells: Floats) -> Floats:
    """The records above the middle of every cell."""
    return counts_from_thresholds(cells) - cells / 2


def fieller_bounds(
    values: Floats, variances: Floats, crossed: Floats, bases: Floats, reach: float
) -> tuple[Floats, Floats]:
    """The quotients ``r`` that an estimate ``A / B`` does not reject (Fieller 1954), shape (T,).

    ``A - r B`` is linear in the counts and has the mean 0 where r is right, so it is normal where
    the quotient itself is skewed. With ``d = A / B - r`` it is rejected unless
    ``d^2 <= z^2 (V + 2 d C + d^2 K)``.

    Parameters
    ----------
    values : the estimates A / B.
    variances : V, those of ``(A - (A / B) B) / B``, the linearised quotient.
    crossed : C, its covariance with ``B / mean of B``.
    bases : K, the variance of the latter.
    reach : z, half the width of the interval in standard errors.

    Returns
    -------
    The least and the largest quotients; infinite where ``z^2 K`` is 1 or more, so that B is not
    told from 0.

    Examples
    --------
    >>> value, variance, crossed, base = np.array([[2.0], [0.04], [0.0], [0.01]])
    >>> low, high = fieller_bounds(value, variance, crossed, base, reach=2.0)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([1.592], [2.408])
    """
    square = reach**2
    rest = 1 - square * bases
    known = np.where(rest > 0, rest, np.nan)
    # the roots of rest d^2 - 2 z^2 C d - z^2 V = 0
    middle = square * crossed / known
    half = np.sqrt(middle**2 + square * np.maximum(variances, 0.0) / known)
    low, high = values - middle - half, values - middle + half
    return np.where(rest > 0, low, -np.inf), np.where(rest > 0, high, np.inf)


def reaching(edges: Floats, thresholds: Floats) -> Floats:
    """The fraction of each cell's width that reaches each threshold, shape (T, B).

    Examples
    --------
    >>> import numpy as np
    >>> reaching(np.array([0.0, 0.5, 1.0]), np.array([0.25])).tolist()
    [[0.5, 1.0]]
    """
    low, high = edges[:-1], edges[1:]
    return np.clip((high - thresholds[:, np.newaxis]) / (high - low), 0.0, 1.0)


def positive_predictive_value(counts: Floats, above: Floats) -> Functional:
    """The share of positives among records that reach the threshold, ``TP / (TP + FP)``."""
    return ratio(counts, both(above, 0.0), both(above, above), above)


def negative_predictive_value(counts: Floats, above: Floats) -> Functional:
    """The share of negatives among records below the threshold, ``TN / (TN + FN)``."""
    return ratio(counts, both(0.0, 1 - above), both(1 - above, 1 - above), above)


def sensitivity(counts: Floats, above: Floats) -> Functional:
    """The share of positives that reach the threshold, ``TP / P``."""
    return ratio(counts, both(above, 0.0), both(np.ones_like(above[:1]), 0.0), above)


def specificity(counts: Floats, above: Floats) -> Functional:
    """The share of negatives below the threshold, ``TN / N``."""
    return ratio(counts, both(0.0, 1 - above), both(0.0, np.ones_like(above[:1])), above)


def positive_likelihood_ratio(counts: Floats, above: Floats) -> Functional:
    """Sensitivity over the false-positive rate, ``(TP / P) / (FP / N)``.

    Examples
    --------
    >>> counts, above = np.array([[10.0, 30.0], [80.0, 20.0]]), np.array([[0.0, 1.0]])
    >>> positive_likelihood_ratio(counts, above).value.round(4).tolist()
    [3.75]
    """
    return _quotient_of_shares(counts, above, above)


def negative_likelihood_ratio(counts: Floats, above: Floats) -> Functional:
    """The missed share of positives over specificity, ``(FN / P) / (TN / N)``."""
    return _quotient_of_shares(counts, 1 - above, above)


def _quotient_of_shares(counts: Floats, chosen: Floats, above: Floats) -> Functional:
    """A share of positives over the same share of negatives."""
    ones = np.ones_like(chosen[:1])
    upper = ratio(counts, both(chosen, 0.0), both(ones, 0.0))
    lower = ratio(counts, both(0.0, chosen), both(0.0, ones))
    return replace(_quotient(upper, lower), base=both(0.0, chosen), above=above)


def _quotient(upper: Functional, lower: Functional) -> Functional:
    """One figure over another; NaN where that is not above 0."""
    known = np.where(lower.value > 0, lower.value, np.nan)
    value = upper.value / known
    # d(u / l) = (du - (u / l) dl) / l
    change = upper.gradient - value[:, np.newaxis, np.newaxis] * lower.gradient
    return Functional(value, change / known[:, np.newaxis, np.newaxis])


def accuracy(counts: Floats, above: Floats) -> Functional:
    """The share of records that the threshold classifies correctly, ``(TP + TN) / M``."""
    return ratio(counts, both(above, 1 - above), np.ones((1, 2, 1)), above)


def balanced_accuracy(counts: Floats, above: Floats) -> Functional:
    """The mean of sensitivity and specificity."""
    found, left = sensitivity(counts, above), specificity(counts, above)
    smaller = found if counts[0].sum() < counts[1].sum() else left
    half = (found.value + left.value) / 2, (found.gradient + left.gradient) / 2
    return Functional(*half, smaller.base, above)


def f1(counts: Floats, above: Floats) -> Functional:
    """The harmonic mean of precision and recall, ``2 TP / (TP + FP + P)``."""
    return ratio(counts, both(2 * above, 0.0), both(above + 1, above), above)


@dataclass(frozen=True)
class Rate:
    """A rate at a threshold.

    Parameters
    ----------
    name : in files.
    value : from counts and the part of each cell that reaches each threshold.
    aliases : its names in other fields.
    title : as texts name it; empty for the name with spaces.
    limits : the least and the largest value that it can have.
    quotient : whether the noise of its denominator counts.
    """

    name: str
    value: Callable[[Floats, Floats], Functional]
    aliases: tuple[str, ...] = ()
    title: str = ""
    limits: tuple[float, float] = (0.0, 1.0)
    quotient: bool = False

    def __call__(self, counts: Floats, above: Floats) -> Functional:
        """The rate at each threshold."""
        return self.value(counts, above)


POSITIVE = (0.0, math.inf)
"""The range of ratios."""

RATES = {
    rate.name: rate
    for rate in (
        Rate("sensitivity", sensitivity, ("recall", "true_positive_rate", "tpr")),
        Rate("specificity", specificity, ("true_negative_rate", "tnr")),
        Rate("positive_predictive_value", positive_predictive_value, ("precision", "ppv")),
        Rate("negative_predictive_value", negative_predictive_value, ("npv",)),
        Rate("positive_likelihood_ratio", positive_likelihood_ratio, (), "", POSITIVE, True),
        Rate("negative_likelihood_ratio", negative_likelihood_ratio, (), "", POSITIVE, True),
        Rate("accuracy", accuracy),
        Rate("balanced_accuracy", balanced_accuracy),
        Rate("f1", f1, ("f1_score",), "F1"),
    )
}
"""The rates at a threshold, by name."""

OTHER_NAMES = {alias: rate.name for rate in RATES.values() for alias in rate.aliases}
"""Further names of rates, each with that of ``RATES``."""


def normalised(text: str) -> str:
    """A figure's name as files write it: in lower case, its words joined by underscores.

    Examples
    --------
    >>> normalised(" Net-benefit at 0.2")
    'net_benefit_at_0.2'
    """
    return re.sub(r"[\s_-]+", "_", text.strip().lower())


def rate_name(text: str) -> str:
    """The name in ``RATES`` of a rate, whichever field's word and spelling it has.

    Raises
    ------
    KeyError : for an unknown rate; the message lists the known rates.

    Examples
    --------
    >>> rate_name("Recall"), rate_name("PPV")
    ('sensitivity', 'positive_predictive_value')
    """
    words = normalised(text)
    name = OTHER_NAMES.get(words, words)
    if name in RATES:
        return name
    known = (*RATES, *OTHER_NAMES)
    near = get_close_matches(words, known, 1)
    meant = f"; did you mean {near[0]!r}?" if near else "."
    raise KeyError(f"{text!r} is no rate at a threshold{meant} Known are {', '.join(known)}")


def average_precision(counts: Floats) -> Functional:
    """The precision at the score of every positive, averaged over the positives.

    Half of a cell's records are assumed to reach the score of a positive in it:
    ``sum_j p_j TP_j / (TP_j + FP_j) / P`` with TP and FP counted from the cell's middle. For scores
    without ties that is the step-wise area under the precision-recall curve, up to the square of
    the cells' width and to the half of a record by which a positive counts itself there. Negative
    counts are used as they are: noise clipped at zero would look like records.

    Examples
    --------
    >>> import numpy as np
    >>> average_precision(np.array([[0.0, 1.0], [1.0, 0.0]])).value.tolist()
    [1.0]
    """
    positives, negatives = counts
    won, lost = (above_middle(class_counts) for class_counts in (positives, negatives))
    called, total = won + lost, positives.sum()
    if total <= 0:
        return Functional(np.full(1, np.nan), np.full((1, *counts.shape), np.nan))
    known = np.where(called > 0, called, 1.0)
    precision_by_cell = np.where(called > 0, won / known, 0.0)
    value = np.sum(positives * precision_by_cell) / total
    pulls = (positives * reached / known**2 for reached in (lost, won))
    gain, loss = (np.cumsum(each) - each / 2 for each in pulls)
    gradient = np.stack([precision_by_cell - value + gain, -loss]) / total
    return Functional(np.array([value]), gradient[np.newaxis])


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

    Treating no one has the net benefit 0.
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
    share = prevalence(counts)
    rest = 1 - share.value
    of_all = Functional(share.value * rest, (rest - share.value) * share.gradient)
    part = _quotient(brier(counts, predicted), of_all)
    return Functional(1 - part.value, -part.gradient)


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
    share = prevalence(counts)
    inside = np.where((share.value > 0) & (share.value < 1), share.value, np.nan)
    entropy = scipy.special.entr(inside) + scipy.special.entr(1 - inside)
    # the entropy's slope in the prevalence is log((1 - o) / o)
    of_all = Functional(entropy, -scipy.special.logit(inside) * share.gradient)
    return _quotient(log_loss(counts, log_odds), of_all)
