"""A figure of counts in score cells, with its dependence on every count.

Intervals of quotients whose denominators have errors of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats


@dataclass(frozen=True, eq=False)
class Functional:
    """Figures of counts of shape (2, B): positives, then negatives, in cells of ascending score.

    Parameters
    ----------
    value : shape (T,); NaN where the figure is undefined.
    gradient : what one more record of a class in a cell would add, shape (T, 2, B). The counts
        weighted by it sum to 0, because no figure changes when all counts grow alike.
    base : the weights of the sum of counts that the figure divides by, shape (T, 2, B), or
        (1, 2, B) where all values divide by one sum; None where it divides by the number of records
        alone. The linearisation needs this sum to be clear of its noise.
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
    return np.flip(np.cumsum(np.flip(cells))) - cells / 2


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
