"""Variances and shapes of the integer and continuous noise distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Flags, Floats, Integers

MAX_SENSITIVITY = 2**44
"""Largest sensitivity: noise of a larger size could leave the range of 64-bit integers."""

MAX_SUMMED_SCALE = 2.0**16
"""Largest scale at which the probabilities of a share of noise are summed term by term."""


def whole_sensitivity(sensitivity: ArrayLike) -> Integers:
    """The sensitivity as integers; refuses fractions, negative values and values above 2**44."""
    values = np.asarray(sensitivity)
    whole = (values >= 0) & (values <= MAX_SENSITIVITY) & (values == np.floor(values))
    require(whole, values, "sensitivity must be a whole number from 0 to 2**44")
    return values.astype(np.int64)


def require(met: Flags, values: NDArray[Any], requirement: str) -> None:
    """Refuse values that do not all meet a requirement, with the first that does not."""
    if not np.all(met):
        raise ValueError(f"{requirement}, got {values[~met].flat[0]}")


def discrete_laplace_variance(scale: ArrayLike) -> Floats:
    """``2b / (1-b)**2`` with ``b = exp(-1/scale)``.

    Examples
    --------
    >>> round(float(discrete_laplace_variance(1.0)), 4)
    1.8413
    """
    with np.errstate(divide="ignore", over="ignore"):
        rate = 1 / np.asarray(scale, dtype=np.float64)
        return np.asarray(2 * np.exp(-rate) / np.expm1(-rate) ** 2)


def staircase_gamma(epsilon: ArrayLike) -> Floats:
    """The inner fraction of a step that minimises the variance (Geng and Viswanath 2014, Thm. 5).

    With ``b = exp(-epsilon)`` it is ``(cbrt(b (1+b) / 2) - b) / (1-b)``, here without the
    difference of nearly equal numbers: the numerator is expanded as a difference of cubes.

    Examples
    --------
    >>> [round(float(staircase_gamma(e)), 4) for e in (1e-6, 1, 8)]
    [0.5, 0.4167, 0.0548]
    """
    b = np.exp(-np.asarray(epsilon, dtype=np.float64))
    root, mean_root = np.cbrt(b), np.cbrt((1 + b) / 2)
    return np.asarray(
        root * (1 + 2 * b) / (2 * (mean_root**2 + root**2 * mean_root + root**4)), dtype=np.float64
    )


def staircase_variance(epsilon: ArrayLike) -> Floats:
    """The variance of optimal continuous staircase noise of sensitivity 1 (same paper, Eq. 30).

    Examples
    --------
    >>> [round(float((staircase_variance(e) / (2 / e**2)) ** 0.5), 2) for e in (1, 2, 4, 8)]
    [0.98, 0.92, 0.72, 0.33]
    """
    epsilons = np.asarray(epsilon, dtype=np.float64)
    b = np.exp(-epsilons)
    with np.errstate(divide="ignore"):
        return np.asarray((np.cbrt(b * (1 + b) / 2) ** 2 + b) / np.expm1(-epsilons) ** 2)


def staircase_inner_width(sensitivity: ArrayLike, epsilon: ArrayLike) -> Integers:
    """The inner width that minimises the integer staircase's variance, at least 1.

    The best integer is the continuous optimum rounded down, or one of the next two.
    """
    width = np.maximum(whole_sensitivity(sensitivity), 1)
    guess = np.floor(staircase_gamma(epsilon) * width)
    candidates = np.stack([np.clip(guess + step, 1, width) for step in (0, 1, 2)])
    best = _staircase_moment(width, epsilon, candidates).argmin(axis=0)
    return np.take_along_axis(candidates, best[np.newaxis], axis=0)[0].astype(np.int64)


def discrete_staircase_variance(sensitivity: ArrayLike, epsilon: ArrayLike) -> Floats:
    """The variance of integer staircase noise at its best inner width; zero at sensitivity 0.

    With sensitivity 1 the staircase is the discrete Laplace distribution.

    Examples
    --------
    >>> round(float(discrete_staircase_variance(1, 1.0)), 4)
    1.8413
    """
    width = whole_sensitivity(sensitivity)
    inner = staircase_inner_width(width, epsilon)
    moment = _staircase_moment(np.maximum(width, 1), epsilon, inner)
    with np.errstate(divide="ignore"):
        variance = moment / np.expm1(-np.asarray(epsilon, dtype=np.float64)) ** 2
    return np.where(width > 0, variance, 0.0)


def _staircase_moment(sensitivity: ArrayLike, epsilon: ArrayLike, inner: ArrayLike) -> Floats:
    """The variance at this inner width times ``(1-b)**2``, which stays finite as epsilon falls.

    Step ``k >= 0`` has ``sensitivity`` integers, of weight ``b**k`` up to the inner width and
    ``b**(k+1)`` above it. The sums of ``b**k``, ``k b**k`` and ``k**2 b**k`` are ``1``, ``b`` and
    ``b (1+b)`` over rising powers of ``1-b``.
    """
    width = np.asarray(sensitivity, dtype=np.float64)
    r = np.asarray(inner, dtype=np.float64)
    negative = -np.asarray(epsilon, dtype=np.float64)
    b, gap = np.exp(negative), -np.expm1(negative)
    count, total, squares = (
        low + b * (high - low) for low, high in zip(_power_sums(r), _power_sums(width), strict=True)
    )
    moment = b * (1 + b) * width**2 * count + 2 * b * gap * width * total + gap**2 * squares
    return np.asarray(2 * moment / (2 * count - gap), dtype=np.float64)


def _power_sums(count: Floats) -> tuple[Floats, Floats, Floats]:
    """The sums of 1, ``u`` and ``u**2`` over ``u = 0..count-1``."""
    return count, count * (count - 1) / 2, count * (count - 1) * (2 * count - 1) / 6


def shared_laplace_epsilon(scale: float, share: float, distance: int = 1) -> float:
    """The epsilon of a sum of this sensitivity under a share of its discrete Laplace noise.

    The difference of two Polya draws of shape ``share`` has, with ``b = exp(-1/scale)``,
    probabilities ``p(z) ~ b^z (r)_z / z! 2F1(r, r+z; z+1; b^2)``. With shares below 1 they fall
    fastest from 0, and the loss is ``log p(0)/p(distance)``; with shares of 1 or more fastest in
    the tail, where a step's factor is b, and the loss is ``distance / scale``.

    Parameters
    ----------
    scale : of the discrete Laplace noise that all shares add up to.
    share : the share of it that was drawn, above 0.
    distance : the largest change of the sum by a neighbour; beyond 1 the loss of a share below 1 is
        computed for scales up to 2**16, and is infinity above.

    Examples
    --------
    >>> round(shared_laplace_epsilon(1.0, 1.0), 6)
    1.0
    >>> round(shared_laplace_epsilon(1.0, 0.8), 3)
    1.212
    """
    if not share > 0:
        raise ValueError(f"share must be above 0, got {share}")
    if share >= 1:
        return distance / scale
    if distance > 1:
        return _shared_fall(scale, share, distance) if scale <= MAX_SUMMED_SCALE else math.inf
    square = np.exp(-2 / scale)
    near = scipy.special.hyp2f1(share, share, 1, square)
    far = scipy.special.hyp2f1(share, 1 + share, 2, square)
    return float(np.log(near / far / share) + 1 / scale)


TILTS = 1 - 2.0 ** -np.arange(0.5, 12, 0.25)
"""Rates of exponential bounds, as parts of the rate at which the noise falls."""


def shared_laplace_tail(scale: float, shares: float, bits: int) -> int:
    """An integer that shares of discrete Laplace noise exceed in magnitude rarely.

    Shares r of one scale s add up to the difference of two negative binomial draws. By Markov's
    inequality for ``exp(t |Z|)``, with ``b = exp(-1/s)`` and every t from 0 to 1/s,

        P(|Z| >= z) <= 2 exp(-t z) ((1-b)**2 / ((1 - b e**t) (1 - b e**-t)))**r,

    and z follows for the best of several t. Fewer shares have the lighter tail.

    Parameters
    ----------
    scale : the scale of the noise, from 0.
    shares : the shares that are added at most; 1 is discrete Laplace noise.
    bits : minus the base-2 logarithm of the probability.

    Examples
    --------
    >>> shared_laplace_tail(1.0, 1.0, 80)
    61
    """
    if scale == 0:
        return 0
    tilt = TILTS / scale
    whole = np.log(-np.expm1(-1 / scale))
    up, down = (np.log(-np.expm1(sign * tilt - 1 / scale)) for sign in (1, -1))
    exponents = shares * (2 * whole - up - down) + (bits + 1) * math.log(2)
    return math.ceil(float(np.min(exponents / tilt)))


def _shared_fall(scale: float, share: float, distance: int) -> float:
    """``log p(0)/p(distance)`` of the difference of two Polya draws, from their probabilities."""
    integers = np.arange(int(40 * scale) + 40 + distance, dtype=np.float64)
    ways = scipy.special.gammaln(integers + share) - scipy.special.gammaln(integers + 1)
    single = np.exp(ways - integers / scale)
    unshifted = single[: single.size - distance]
    return float(np.log(np.sum(single**2) / np.sum(unshifted * single[distance:])))
