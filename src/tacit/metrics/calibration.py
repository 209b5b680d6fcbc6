"""How well scores are calibrated, and maps that recalibrate them, from counts in score cells.

Everything here is post-processing of the counts in ``ScoreCells``, which may be noisy. Figures are
NaN, and fits refuse, where the counts' total is not reliable (``MIN_SIGNAL``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy

from tacit.arrays import Floats
from tacit.metrics.cells import binning

PSEUDO_RECORDS = 2.0
"""Number of records to which a bucket's Beta prior is equivalent."""


@dataclass(frozen=True)
class CalibrationFigures:
    """How far scores are from the fractions of positives that they predict.

    Parameters
    ----------
    ece : expected calibration error, over buckets of equal width.
    adaptive_ece : the same over buckets of equal depth.
    mce : the largest error of a bucket of equal width.
    brier : the mean squared difference between score and label.
    reliability, resolution, uncertainty : the three parts of it,
        ``brier == reliability - resolution + uncertainty``.
    """

    ece: float
    adaptive_ece: float
    mce: float
    brier: float
    reliability: float
    resolution: float
    uncertainty: float


NO_FIGURES = CalibrationFigures(*[math.nan] * 7)
"""The figures where none can be given."""


class DebiasedError(NamedTuple):
    """A calibration error without what noise adds to it, and its standard deviation."""

    value: float
    standard_error: float


def calibration_figures(cells: binning.ScoreCells, buckets: int = 15) -> CalibrationFigures:
    """The usual calibration figures, with every record's score at its cell's centre.

    The errors are ``sum_k t_k / T |o_k - e_k|`` and ``max_k |o_k - e_k|`` (Naeini et al. 2015),
    with t the records of a bucket, o its fraction of positives and e its mean score. Buckets are
    made of whole cells. The equal-width figures leave out buckets that do not stand out from their
    noise; there are fewer equal-depth buckets where one would not stand out. Noise still inflates
    ECE, adaptive ECE and MCE: see ``debiased_ece``.

    The Brier score is linear in the counts, so noise leaves it unbiased. Its parts are Murphy's
    (1973) over the equal-depth buckets. Scores differ inside a bucket, so the resolution is the
    generalised one of Stephenson et al. 2008, with which the three parts add up exactly. Known
    noise variance is taken out of the reliability.

    A centre is off a record's score by up to half the cell's width: ``width_error`` bounds what
    that does to ECE and adaptive ECE, and twice that bounds what it does to the Brier score.

    Parameters
    ----------
    cells : counts of both classes.
    buckets : the number of buckets, at most, in the figures that need them.

    Returns
    -------
    CalibrationFigures, all NaN where ``cells.has_signal`` is False; ``ece`` and ``mce`` alone NaN
    where no bucket of equal width is reliable.

    Examples
    --------
    >>> import numpy as np
    >>> cells = binning.ScoreCells(np.array([0, 0.5, 1]), np.array([1, 2]), np.array([3, 2]))
    >>> figures = calibration_figures(cells)
    >>> figures.ece, figures.mce, figures.brier
    (0.125, 0.25, 0.25)
    >>> figures.reliability, figures.resolution, figures.uncertainty
    (0.03125, 0.015625, 0.234375)
    """
    if buckets < 1:
        raise ValueError(f"buckets must be at least 1, got {buckets}")
    if not cells.has_signal:
        return NO_FIGURES
    wide = binning.Buckets.of(cells, equal_width_starts(cells, buckets))
    deep = binning.Buckets.of(cells, binning.reliable_starts(cells, buckets))
    total = float(cells.totals.sum())
    fraction = min(max(float(cells.positives.sum()) / total, 0.0), 1.0)
    missed = cells.positives * (1 - cells.predicted) ** 2
    brier = float(np.sum(missed + cells.negatives * cells.predicted**2)) / total
    reliability = _reliability(deep) / total
    ece, mce = _gaps(wide)
    return CalibrationFigures(
        ece=ece,
        adaptive_ece=_gaps(deep)[0],
        mce=mce,
        brier=brier,
        reliability=reliability,
        resolution=reliability + fraction * (1 - fraction) - brier,
        uncertainty=fraction * (1 - fraction),
    )


def debiased_ece(buckets: binning.Buckets) -> DebiasedError:
    """The expected calibration error without what known noise adds to it.

    With ``d_k = p_k - e_k t_k`` the error is ``sum_k |d_k| / T``. Noise gives d_k the variance
    ``s^2 = (1 - e)^2 v_p + e^2 v_n``, ``v_n = v_t - v_p`` that of the negatives, all of it reckoned
    at the bucket's mean score, and |d_k| the folded normal mean
    ``f(m, s) = s sqrt(2/pi) exp(-m^2 / 2 s^2) + m (1 - 2 Phi(-m / s))``
    (Leone et al. 1961) of the true m, which exceeds m by up to 0.80 s. The bias ``f(m, s) - m`` is
    subtracted at the moment estimate of m, which solves ``f(m, s) = |d_k|`` and is 0 where |d_k|
    lies below ``f(0, s)``. No estimate of an absolute value is unbiased: between 0.27 s too much
    and 0.22 s too little remain in each bucket, on average over the noise, whatever m is.

    For the error of the population, add ``p_k`` to the positives' variance and ``t_k`` to that of
    the totals: where fraction and score agree, Poisson counts give d_k its binomial variance.

    Parameters
    ----------
    buckets : counts with the variances of their noise; buckets without positive total are left out.

    Returns
    -------
    DebiasedError ; its value is at least 0. The standard error takes 1.2 s for each bucket, the
    most that the estimate of |m| varies by. Both are NaN without any positive total.

    Examples
    --------
    >>> import numpy as np
    >>> exact, noise = np.zeros(2), np.full(2, 100.0)
    >>> fractions, records = np.array([0.25, 0.75]), np.array([400.0, 400.0])
    >>> debiased_ece(binning.Buckets(fractions, np.array([90.0, 310.0]), records, exact, exact))
    DebiasedError(value=0.025, standard_error=0.0)
    >>> positives = np.array([90.0, 310.0])
    >>> ece = debiased_ece(binning.Buckets(fractions, positives, records, noise, 2 * noise))
    >>> round(ece.value, 4), round(ece.standard_error, 4)
    (0.0225, 0.0168)
    """
    known = buckets.totals > 0
    if not known.any():
        return DebiasedError(math.nan, math.nan)
    total = float(buckets.totals[known].sum())
    distance = np.abs(buckets.positives - buckets.predicted * buckets.totals)[known]
    deviation = np.sqrt(_difference_variance(buckets))[known]
    noisy = deviation > 0
    ratio = distance[noisy] / deviation[noisy]
    means, folded = _table_of_folded()
    mean = np.interp(ratio, folded, means)
    distance[noisy] -= deviation[noisy] * np.where(ratio < folded[-1], _folded(mean) - mean, 0.0)
    error = 1.2 * float(np.sqrt(np.sum(deviation**2))) / total
    return DebiasedError(max(float(distance.sum()), 0.0) / total, error)


def width_error(cells: binning.ScoreCells) -> float:
    """The most by which scores off their cell's centre change an ECE over the same buckets.

    The mean distance to the far edge of a record's cell; half the width where centres are middles.
    It is attained only when all records sit at one side; where densities are smooth inside cells
    the error falls with the square of the width.
    """
    if not cells.has_signal:
        return math.nan
    reach = np.maximum(cells.predicted - cells.edges[:-1], cells.edges[1:] - cells.predicted)
    weights = np.maximum(cells.totals, 0.0)
    return float(np.sum(weights * reach) / np.sum(weights))


def equal_width_starts(cells: binning.ScoreCells, buckets: int) -> binning.Starts:
    """The first cell of each bucket that spans 1/``buckets`` of the scores, without empty ones.

    A cell belongs to the bucket that holds its centre.
    """
    bucket = np.minimum(np.floor(cells.predicted * buckets), buckets - 1)
    return np.unique(bucket, return_index=True)[1].astype(np.int64)


def histogram_binning(
    cells: binning.ScoreCells, buckets: int | None = None
) -> tuple[Floats, Floats]:
    """Histogram binning (Zadrozny and Elkan 2001) in equi-depth buckets.

    A bucket's value is ``(p + 2 o) / (t + 2)``: its fraction of positives, with two more records of
    the overall fraction o, so that it lies inside 0 and 1 however few records there are.

    Parameters
    ----------
    cells : counts of both classes.
    buckets : how many buckets there are at most; None for the cube root of
        ``cells.effective_records``, which balances the error of a bucket's width against the error
        of its fraction (Cormode and Markov 2023, Theorems 7 and 8). There are fewer where a bucket
        would not be reliable.

    Returns
    -------
    edges of shape (K + 1,) and values of shape (K,), a step function of the score.

    Raises
    ------
    ValueError : when ``buckets`` is below 1, or the counts' total does not exceed ``MIN_SIGNAL``
        standard deviations of its noise.

    Examples
    --------
    >>> import numpy as np
    >>> cells = binning.ScoreCells(np.array([0, 0.5, 1]), np.array([10, 30]), np.array([30, 10]))
    >>> edges, values = histogram_binning(cells)
    >>> edges, values.round(3)
    (array([0. , 0.5, 1. ]), array([0.262, 0.738]))
    """
    require_signal(cells)
    if buckets is None:
        buckets = max(1, round(cells.effective_records ** (1 / 3)))
    starts = binning.reliable_starts(cells, buckets)
    buckets_of = binning.Buckets.of(cells, starts)
    positives = buckets_of.positive_fractions * buckets_of.totals
    smoothed = positives + PSEUDO_RECORDS * cells.positive_fraction
    return np.append(cells.edges[starts], 1.0), smoothed / (buckets_of.totals + PSEUDO_RECORDS)


def bayesian_binning(cells: binning.ScoreCells) -> tuple[Floats, Floats]:
    """Bayesian binning into quantiles, BBQ (Naeini, Cooper and Hauskrecht 2015).

    Equi-depth binnings M are averaged with weights ``P(M) P(D | M)``, where ``P(M)`` is uniform and
    the Beta-binomial evidence of bucket counts p and n is ``prod_b B(a + p, b + n) / B(a, b)``. The
    prior of a bucket is Beta with ``a = N' m``, ``b = N' (1 - m)``, m the middle of the bucket
    within 0.005 and 0.995, and N' = 2 records a bucket, as in the authors' code. A binning's value
    is its posterior mean, ``(a + p) / (N' + p + n)``.

    The numbers of buckets run, as there, from a tenth of the cube root of the number of records to
    ten times the cube root, but never so many that a bucket has less than five. Beyond that code,
    there are no more buckets than cells, equal binnings count once, binnings with a bucket that
    is not reliable are left out, and noisy counts weigh less (``_posterior``).

    Returns
    -------
    edges of shape (K + 1,) and values of shape (K,), a step function of the score.

    Raises
    ------
    ValueError : when the counts' total is below ``MIN_SIGNAL`` standard deviations of its noise.

    Examples
    --------
    >>> import numpy as np
    >>> cells = binning.ScoreCells(np.array([0, 0.5, 1]), np.array([10, 30]), np.array([30, 10]))
    >>> edges, values = bayesian_binning(cells)
    >>> edges, values.round(3)
    (array([0. , 0.5, 1. ]), array([0.25, 0.75]))
    """
    require_signal(cells)
    records = float(cells.totals.sum())
    most = min(math.ceil(records / 5), math.ceil(10 * records ** (1 / 3)), cells.totals.size)
    least = min(max(1, math.floor(records ** (1 / 3) / 10)), most)
    candidates = binning.equi_depth_binnings(cells.totals, range(least, most + 1))
    binnings = [starts for starts in candidates if binning.Buckets.of(cells, starts).reliable.all()]
    binnings = binnings or [binning.reliable_starts(cells, least)]
    scores = [_posterior(cells, starts) for starts in binnings]
    weights = scipy.special.softmax(np.array([evidence for evidence, _ in scores]))
    value = np.zeros_like(cells.totals)
    for weight, starts, (_, means) in zip(weights, binnings, scores, strict=True):
        value += weight * np.repeat(means, np.diff(np.append(starts, value.size)))
    return _steps(cells.edges, value)


def isotonic(cells: binning.ScoreCells) -> tuple[Floats, Floats]:
    """Isotonic regression of buckets' fractions of positives (Zadrozny and Elkan 2002).

    Buckets are the finest that say something (``finest_starts``): single cells of exact counts.
    Between two buckets' mean scores the map is linear, beyond the first and last constant;
    breakpoints inside a stretch of equal values are left out.

    Returns
    -------
    breakpoints and values, shape (K,): ascending scores, and non-decreasing values within 0 and 1.

    Raises
    ------
    ValueError : when the counts' total is below ``MIN_SIGNAL`` standard deviations of its noise.

    Examples
    --------
    >>> import numpy as np
    >>> edges = np.array([0, 0.25, 0.5, 1])
    >>> cells = binning.ScoreCells(edges, np.array([4, 2, 7]), np.array([6, 8, 3]))
    >>> knots, values = isotonic(cells)
    >>> knots, values
    (array([0.125, 0.375, 0.75 ]), array([0.3, 0.3, 0.7]))
    """
    require_signal(cells)
    buckets = binning.Buckets.of(cells, binning.finest_starts(cells))
    rising = scipy.optimize.isotonic_regression(buckets.positive_fractions, weights=buckets.totals)
    values = np.clip(rising.x, 0.0, 1.0)
    rises = np.concatenate(([True], np.diff(values) > 0, [True]))
    is_knot = rises[:-1] | rises[1:]
    return buckets.predicted[is_knot], values[is_knot]


def require_signal(cells: binning.ScoreCells) -> None:
    """Refuse counts from which nothing can be fitted.

    Raises
    ------
    ValueError : when the counts' total is below ``MIN_SIGNAL`` standard deviations of its noise.
    """
    if not cells.has_signal:
        bound = binning.MIN_SIGNAL * math.sqrt(2 * float(cells.variance.sum()))
        raise ValueError(
            "the counts' total must be positive and exceed "
            f"{binning.MIN_SIGNAL:g} standard deviations of its noise, {bound:g}; "
            f"got {cells.totals.sum():g}"
        )


def _folded(mean: Floats) -> Floats:
    """The mean of |x| for x normal with this mean, at least 0, and variance 1."""
    within = 1 - 2 * scipy.special.ndtr(-mean)
    return math.sqrt(2 / math.pi) * np.exp(-(mean**2) / 2) + mean * within


@lru_cache(maxsize=1)
def _table_of_folded() -> tuple[Floats, Floats]:
    means = np.linspace(0.0, 8.0, 4001)
    return means, _folded(means)


def _gaps(buckets: binning.Buckets) -> tuple[float, float]:
    """The mean gap over reliable buckets, weighted by records, and the largest; NaN for none."""
    reliable = buckets.reliable
    if not reliable.any():
        return math.nan, math.nan
    gaps = np.abs(buckets.positive_fractions - buckets.predicted)[reliable]
    return float(np.average(gaps, weights=buckets.totals[reliable])), float(gaps.max())


def _difference_variance(buckets: binning.Buckets) -> Floats:
    """The noise variance of positives less those predicted, ``p - e t = (1 - e) p - e n``."""
    negative = buckets.total_variance - buckets.positive_variance
    by_positive = (1 - buckets.predicted) ** 2 * buckets.positive_variance
    return by_positive + buckets.predicted**2 * negative


def _reliability(buckets: binning.Buckets) -> float:
    """The sum of ``d_k^2 / t_k`` without what noise adds to it, not below 0."""
    squares = (buckets.positives - buckets.predicted * buckets.totals) ** 2
    return max(float(np.sum((squares - _difference_variance(buckets)) / buckets.totals)), 0.0)


def _posterior(cells: binning.ScoreCells, starts: binning.Starts) -> tuple[float, Floats]:
    """A binning's log evidence and its buckets' posterior means.

    A bucket of t noisy records counts as the number whose sampling disturbs its fraction s as much
    as sampling and noise do together: noise of variance v on both counts adds ``v ((1 - s)^2 + s^2)
    / t^2`` to ``s (1 - s) / t``. Otherwise noise would count as signal, and the buckets would be
    too fine.
    """
    buckets = binning.Buckets.of(cells, starts)
    fraction = np.clip(buckets.positive_fractions, 0.005, 0.995)
    odds = (fraction**2 + (1 - fraction) ** 2) / (fraction * (1 - fraction))
    totals = buckets.totals / (1 + buckets.positive_variance * odds / buckets.totals)
    borders = np.append(cells.edges[starts], 1.0)
    middle = np.clip((borders[:-1] + borders[1:]) / 2, 0.005, 0.995)
    prior_positives, prior_negatives = PSEUDO_RECORDS * middle, PSEUDO_RECORDS * (1 - middle)
    positives = buckets.positive_fractions * totals
    betaln = scipy.special.betaln
    evidence = betaln(prior_positives + positives, prior_negatives + totals - positives)
    evidence -= betaln(prior_positives, prior_negatives)
    return float(evidence.sum()), (prior_positives + positives) / (PSEUDO_RECORDS + totals)


def _steps(edges: Floats, values: Floats) -> tuple[Floats, Floats]:
    """A step function without the edges at which it does not step."""
    is_step = np.concatenate(([True], values[1:] != values[:-1]))
    return np.append(edges[:-1][is_step], edges[-1]), values[is_step]
