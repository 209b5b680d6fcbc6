"""The paper's estimate from noisy confusion counts, and its errors (docs, section 2a).

``counts`` has rows TP, FP, TN, FN and a last axis of T ascending thresholds; an optional leading
axis holds replicates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats
from tacit.counts import cell_areas
from tacit.metrics import curves
from tacit.metrics.ranking import plug_in_variance
from tacit.privacy.mechanisms.gaussian import Gaussian
from tacit.privacy.mechanisms.laplace import Laplace
from tacit.results.curves.curve import Curve
from tacit.results.server_result import ServerResult

BIAS_CAUSES = ("clamping and ordering of noisy counts", "linear interpolation between thresholds")

IMITATIONS = 200
"""Number of simulated noise draws that estimate the bias of a clamped and ordered curve."""

REPEATED_ESTIMATES = 60
"""Number of simulated releases whose corrected areas estimate the error of such a curve."""

REPEATED_IMITATIONS = 50
"""Number of simulated noise draws that estimate the bias of each simulated release."""


IN_CACHE = 10_000
"""How many simulated counts of a kind are computed with at once; far more would leave the cache."""


@dataclass(frozen=True)
class CountNoise:
    """The noise in each sum over clients of a count.

    Parameters
    ----------
    clients : K, how many independent draws a sum holds.
    drawn : the mechanism of one draw.
    """

    clients: int
    drawn: Laplace | Gaussian

    @property
    def variance(self) -> float:
        """The variance of the noise in a sum."""
        return self.clients * float(self.drawn.variance)

    def imitate(self, shape: tuple[int, ...]) -> Floats:
        """Noise with this distribution, from a fixed seed: for measuring errors, not for privacy.

        A sum of K Laplace draws is the difference of two Gamma(K) draws.
        """
        rng = np.random.default_rng(0)
        if isinstance(self.drawn, Gaussian):
            return rng.normal(0.0, math.sqrt(self.variance), shape)
        first, second = (rng.gamma(self.clients, size=shape) for _ in range(2))
        return self.drawn.scale * (first - second)


def class_totals(counts: Floats) -> tuple[Floats, Floats]:
    """P and N, averaged over thresholds."""
    positives = (counts[..., 0, :] + counts[..., 3, :]).mean(axis=-1)
    negatives = (counts[..., 1, :] + counts[..., 2, :]).mean(axis=-1)
    return positives, negatives


def clamped_points(counts: Floats) -> tuple[Floats, Floats]:
    """ROC points of counts clamped at 0, ordered by falling false-positive rate."""
    clamped = np.maximum(counts, 0.0)
    across, up = curves.rates(*(clamped[..., row, :] for row in range(4)))
    order = np.argsort(-across, axis=-1, kind="stable")
    return np.take_along_axis(across, order, axis=-1), np.take_along_axis(up, order, axis=-1)


def pooled_points(counts: Floats) -> tuple[Floats, Floats]:
    """ROC points of counts as they are, over class totals pooled over thresholds."""
    positives, negatives = (total[..., np.newaxis] for total in class_totals(counts))
    across = counts[..., 1, :] / np.where(negatives != 0, negatives, 1.0)
    return across, counts[..., 0, :] / np.where(positives != 0, positives, 1.0)


def _pooled_variance(counts: Floats, noise: CountNoise) -> Floats:
    """Delta method over every count; each also enters the pooled total of its class.

    With ``reach`` the area's derivative by a point's rate, a count has the derivative
    ``reach - mean(rate * reach)`` if it is in the numerator and ``-mean(rate * reach)`` if not,
    over the class total. Products of two errors add half their variances' product a step. Steps
    between noisy points overstate ``reach**2`` by half a rate's variance, which is taken out.
    """
    rate = pooled_points(counts)
    totals = class_totals(counts)
    steps = counts.shape[-1]
    scaled = [noise.variance / np.maximum(total, 1.0) ** 2 for total in reversed(totals)]
    variance = steps * scaled[0] * scaled[1] / 2
    for side in (0, 1):
        others = curves.closed(rate[1 - side])
        reach = (others[..., :-2] - others[..., 2:]) / 2
        pooled = np.sum(rate[side] * reach, axis=-1) / steps
        squares = np.sum((reach - pooled[..., np.newaxis]) ** 2, axis=-1) + steps * pooled**2
        variance = variance + scaled[side] * np.maximum(squares - steps * scaled[1 - side] / 2, 0.0)
    return variance


def _imitated_errors(counts: Floats, noise: CountNoise) -> tuple[Floats, Floats]:
    """The mean squared error of the clamped area less its estimated bias, and that bias."""
    draws = noise.imitate((IMITATIONS, 4, counts.shape[-1]))
    flat = counts.reshape(-1, 4, counts.shape[-1])
    errors = np.array([_imitate(smoothed_counts(table), draws) for table in flat])
    shaped = errors.reshape((*counts.shape[:-2], 2))
    return shaped[..., 0], shaped[..., 1]


def _imitate(smooth: Floats, draws: Floats) -> tuple[float, float]:
    """Releases are simulated from smooth counts, and the bias of each is estimated as here."""
    first, second = draws[:REPEATED_ESTIMATES], draws[REPEATED_ESTIMATES:][:REPEATED_IMITATIONS]
    releases = smoothed_counts(smooth + first)
    at_once = max(1, IN_CACHE // second[:, 0].size)
    groups = range(0, REPEATED_ESTIMATES, at_once)
    clamped = [_clamped_areas(releases[start : start + at_once], second) for start in groups]
    biases = np.concatenate(clamped).mean(axis=-1) - curves.trapezoid_area(*pooled_points(releases))
    areas = _clamped_areas(smooth[np.newaxis], draws)[0]
    true = curves.trapezoid_area(*pooled_points(smooth))
    errors = areas[:REPEATED_ESTIMATES] - biases - true
    return float(np.mean(errors**2)), float(areas.mean() - true)


def _clamped_areas(smooth: Floats, draws: Floats) -> Floats:
    """The areas of all sums of counts (S, 4, T) and draws (D, 4, T), shape (S, D)."""
    return curves.trapezoid_area(*clamped_points(smooth[:, np.newaxis] + draws))


def smoothed_counts(counts: Floats) -> Floats:
    """Counts that are possible without noise: monotone over thresholds, one total a class.

    Both counts of a class are used: ``(TP + P - FN) / 2`` estimates TP with half the noise.
    """
    levels = []
    for above, below in ((0, 3), (1, 2)):
        reached, missed = counts[..., above, :], counts[..., below, :]
        total = np.maximum((reached + missed).mean(axis=-1, keepdims=True), 1.0)
        level = cell_areas.falling((reached + total - missed) / 2)
        levels.append((np.clip(level, 0.0, total), total))
    (true_positive, positives), (false_positive, negatives) = levels
    rows = [true_positive, false_positive, negatives - false_positive, positives - true_positive]
    return np.stack(rows, axis=-2)


def _shrunk_correction(cells: Floats, noise: CountNoise) -> tuple[Floats, Floats]:
    """The density correction, shrunk towards 0 by its noise, and its variance.

    With w the fraction of its square that noise does not explain, ``w * correction`` is the
    posterior mean under a normal prior whose variance is the excess of the square, and ``w (1 - w)
    correction**2`` the posterior variance; the error of the correction, less four times its noise
    variance, is added.
    """
    positives, negatives = cells[..., 0, :], cells[..., 1, :]
    two = 2 * noise.variance
    correction_variance = curves.density_correction_variance(positives, negatives, two, two)
    correction = np.nan_to_num(curves.density_correction(positives, negatives))
    square = correction**2
    clear = square > correction_variance
    weight = np.where(clear, 1 - correction_variance / np.where(clear, square, 1.0), 0.0)
    curved = np.nan_to_num(curves.curvature_error(positives, negatives)) ** 2
    variance = weight * (1 - weight) * square + np.maximum(curved - 4 * correction_variance, 0.0)
    return weight * correction, variance


def result_from_confusion(
    edges: Floats, counts: Floats, noise: CountNoise, clamp: bool
) -> ServerResult:
    """The trapezoid area of noisy confusion counts, summed over clients, shape (..., 4, T).

    With ``clamp`` as in the paper (Sun et al. 2022b): counts below 0 become 0, each threshold is
    divided by the totals at that threshold, and points are ordered by false-positive rate. Variance
    and bias are estimated by simulated noise on a monotone smoothing of the counts; the variance is
    that of the area less its estimated bias, which is noisy itself. Without ``clamp`` the
    class totals are pooled over thresholds; apart from these ratios the area is unbiased, with a
    closed-form variance. The bias from linear interpolation between thresholds is shrunk by its
    noise.
    """
    positives, negatives = classes = class_totals(counts)
    defined = (positives > 0) & (negatives > 0)
    area = curves.trapezoid_area(*(clamped_points(counts) if clamp else pooled_points(counts)))
    value = np.where(defined, area, np.nan)
    if clamp:
        variance, bias = _imitated_errors(counts, noise)
    else:
        variance, bias = _pooled_variance(counts, noise), np.zeros_like(value)
    cells = -np.diff(counts[..., :2, :-1], axis=-1, append=0.0)
    correction, correction_variance = _shrunk_correction(cells, noise)
    placement = curves.placement_variance(cells[..., 0, :], cells[..., 1, :])
    error = np.where(defined, np.sqrt(variance), np.nan)
    single = np.ndim(value) == 0
    total_error = math.sqrt(2 * noise.variance / edges.size)
    warnings = cell_areas.signal_warnings(value, classes, total_error) if single else ()
    if single and defined:
        warnings += _bias_warnings((bias, -correction), float(value), float(error))
    sizes = (np.maximum(total, 1.0) for total in classes)
    hidden = np.sqrt(placement + correction_variance)
    return ServerResult(
        value=value,
        privacy_error=error,
        sampling_error=np.sqrt(plug_in_variance(value, *sizes)),
        positives=positives,
        negatives=negatives,
        positives_error=total_error,
        approximation_error=np.where(defined, hidden, np.nan),
        bias=np.where(defined, bias - correction, np.nan),
        roc=_curve_of_points(edges, counts, noise) if single and defined else None,
        warnings=warnings,
    )


def _curve_of_points(edges: Floats, counts: Floats, noise: CountNoise) -> Curve:
    """Unclamped rates at their own thresholds, over pooled totals, made monotone.

    A count's noise has its own variance, and the pooled total's ``2 / T`` of it.
    """
    rates = []
    for rate, total in zip(pooled_points(counts), reversed(class_totals(counts)), strict=True):
        variance = noise.variance * (1 + 2 * rate**2 / edges.size)
        rates.append((cell_areas.falling_rate(rate), np.sqrt(variance) / max(float(total), 1.0)))
    return Curve(edges, rates[0][0], rates[1][0], rates[0][1], rates[1][1])


def _bias_warnings(biases: tuple[Floats, Floats], value: float, error: float) -> tuple[str, ...]:
    return tuple(
        f"{cause} bias the area, which came out as {value:.4f}, by about {float(bias):+.2g}; the "
        "estimate and its interval are without that bias"
        for cause, bias in zip(BIAS_CAUSES, biases, strict=True)
        if abs(float(bias)) > 0.25 * error
    )
