"""Quantiles of an error that is one draw of Laplace noise and a normal error besides."""

from __future__ import annotations

import numpy as np
import scipy

from tacit.arrays import Floats

STEPS = 4
"""Newton steps from the normal quantile. At any part and any level from 0.01 to ``1 - 1e-9`` the
third one leaves less than ``1e-12`` of the quantile."""

LEAST_PART = 1e-3
"""Part of the variance below which a Laplace error is taken as normal: it moves a 95 % quantile by
less than ``1e-6`` of itself."""


def laplace_normal_reach(laplace: Floats, normal: Floats, level: float) -> Floats:
    """The half-width t at which ``|L + Z|`` stays within t with probability ``level``.

    L has a Laplace distribution, Z a normal one, both around 0 and independent.

    Parameters
    ----------
    laplace, normal : their standard deviations, shape (...); NaN gives NaN.
    level : above 0 and below 1.

    Examples
    --------
    >>> import numpy as np
    >>> laplace_normal_reach(np.array([0.0, 0.6, 1.0]), np.array([1.0, 0.8, 0.0]), 0.95).round(4)
    array([1.96  , 1.9744, 2.1183])
    """
    whole = np.hypot(laplace, normal)
    part = np.square(laplace / np.where(whole > 0, whole, 1.0))
    return np.asarray(whole * _unit_reach(part, level))


def _unit_reach(part: Floats, level: float) -> Floats:
    """The same for the variance 1, of which Laplace noise has a part.

    Newton's method on the logarithm of the probability outside, which is concave, as both
    densities are log-concave (Prekopa 1973): no step leads away from the quantile.
    """
    gaussian = scipy.special.ndtri((1 + level) / 2)
    reach = np.full(part.shape, gaussian)
    for _ in range(STEPS):
        outside, density = _outside(reach, part)
        reach = reach + outside * np.log(outside / (1 - level)) / density
    reach = np.where(part < LEAST_PART, gaussian, reach)
    return np.where(np.isnan(part), np.nan, reach)


def _outside(reach: Floats, part: Floats) -> tuple[Floats, Floats]:
    """The probability of ``|L + Z| > t`` at the variance 1, and the density of ``|L + Z|`` at t.

    Of the variance a part is Laplace noise. With b the scale of L and g the deviation of Z the
    probability is ``2 Q(t/g) + exp(g^2/2b^2) [exp(-t/b) Q(g/b - t/g) - exp(t/b) Q(g/b + t/g)]``, Q
    the normal tail, and the density ``exp(g^2/2b^2) [exp(-t/b) Q(g/b - t/g) + exp(t/b) Q(g/b +
    t/g)] / b`` (Reed and Jorgensen 2004, equation 8, for equal scales of both sides).
    """
    scale = np.sqrt(np.clip(part, LEAST_PART, 1.0) / 2)
    normal = np.sqrt(np.maximum(1 - part, 1e-12))
    ratio, steps = normal / scale, reach / normal
    near, far = (
        np.exp(ratio**2 / 2 - sign * reach / scale + scipy.special.log_ndtr(sign * steps - ratio))
        for sign in (1, -1)
    )
    outside = 2 * scipy.special.ndtr(-steps) + near - far
    return np.asarray(outside), np.asarray((near + far) / scale)
