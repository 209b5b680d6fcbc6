"""Intervals of quotients whose denominators have errors of their own."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats


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
