"""The covariance of the AUCs of two models on one sample."""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Floats

QUADRATURE_POINTS = 24
"""Number of quadrature points."""

MIN_AREA = 1e-4
"""Least distance from 0 and 1 at which an area is used."""


def rank_correlation(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Spearman's correlation of two models' ranks, 0 where the ranks of one are all equal.

    Parameters
    ----------
    first, second : (doubled) mid-ranks of the same records, shape (M,).

    Examples
    --------
    >>> import numpy as np
    >>> rank_correlation(np.array([0, 2, 4]), np.array([4, 2, 0]))
    -1.0
    """
    first_centred, second_centred = first - first.mean(), second - second.mean()
    scale = math.sqrt(float(first_centred @ first_centred) * float(second_centred @ second_centred))
    return float(first_centred @ second_centred) / scale if scale > 0 else 0.0


def paired_plug_in_variance(
    first: ArrayLike,
    second: ArrayLike,
    correlation: float,
    positives: ArrayLike,
    negatives: ArrayLike,
) -> Floats:
    """The sampling variance of the difference of two models' AUCs, from sums alone.

    DeLong's placements need every label; a model of the data replaces them: within a class the
    latent scores of both models are jointly normal, with unit variances. The covariance of two
    placements is then the excess of a bivariate normal probability over the product of its margins
    (Plackett 1954),

        I(g, h, t) = 1/(2 pi) int_0^arcsin(t) exp(-(g^2 + h^2 - 2 g h sin u) / (2 cos^2 u)) du

    at ``g = quantile(first)``, ``h = quantile(second)`` and half the latent correlation, and the
    variance ``(I(g,g,1/2) + I(h,h,1/2) - 2 I(g,h,r/2)) (1/P + 1/N)``. The correlation within the
    classes, r, follows from that of all records' ranks, after the part that the classes' distance
    adds to it is subtracted.

    Parameters
    ----------
    first, second : the AUCs, shape () or (R,).
    correlation : Spearman's, of all records' ranks.
    positives, negatives : the class sizes, each at least 1, shape () or (R,).

    Examples
    --------
    Models with equal ranks do not differ; without correlation within the classes, both vary
    independently, as on two samples:

    >>> round(float(paired_plug_in_variance(0.8, 0.8, 1.0, 100, 300)), 12)
    0.0
    >>> apart = float(paired_plug_in_variance(0.75, 0.75, 0.177, 100, 100))
    >>> round(apart**0.5, 3), round((2 * 0.0344**2) ** 0.5, 3)
    (0.048, 0.049)
    """
    areas = [np.clip(a, MIN_AREA, 1 - MIN_AREA) for a in (first, second)]
    first_quantile, second_quantile = (
        np.asarray(scipy.special.ndtri(area), dtype=np.float64) for area in areas
    )
    positive_count = np.asarray(positives, np.float64)
    negative_count = np.asarray(negatives, np.float64)
    positive_fraction = positive_count / (positive_count + negative_count)
    within = _within_classes(first_quantile, second_quantile, correlation, positive_fraction)
    half = np.full_like(within, 0.5)
    variance = (
        _excess(first_quantile, first_quantile, half)
        + _excess(second_quantile, second_quantile, half)
        - 2 * _excess(first_quantile, second_quantile, within / 2)
    )
    inverse_sizes = 1 / positive_count + 1 / negative_count
    return np.asarray(np.clip(variance, 0.0, None) * inverse_sizes, dtype=np.float64)


def _within_classes(first: Floats, second: Floats, correlation: float, rate: Floats) -> Floats:
    """The latent correlation within a class; the classes' means are ``sqrt(2) quantile`` apart."""
    overall = 2 * math.sin(math.pi * correlation / 6)
    between = 2 * rate * (1 - rate)
    deviations = np.sqrt((1 + between * first**2) * (1 + between * second**2))
    return np.asarray(np.clip(overall * deviations - between * first * second, -1.0, 1.0))


def _excess(first: Floats, second: Floats, correlation: Floats) -> Floats:
    """``P(X <= first, Y <= second)`` less the product of the two, by Gauss-Legendre quadrature."""
    nodes, weights = scipy.special.roots_legendre(QUADRATURE_POINTS)
    end = np.arcsin(correlation)[..., np.newaxis] / 2
    angles = end * (nodes + 1)
    first_limit, second_limit = first[..., np.newaxis], second[..., np.newaxis]
    crossed = 2 * first_limit * second_limit * np.sin(angles)
    exponent = (first_limit**2 + second_limit**2 - crossed) / (2 * np.cos(angles) ** 2)
    return np.asarray((end * weights * np.exp(-exponent)).sum(axis=-1) / (2 * math.pi))
