"""Laws of errors that are weighted sums of a few independent draws of noise.

Few draws are not normal: at a large epsilon most draws of whole numbers are 0, and most staircase
draws stay in the innermost step. The quantile then follows from the characteristic function.

Quantiles of an error that is one draw of Laplace noise and a normal error besides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers

FREQUENCIES = 2**10
"""Number of frequencies at which a characteristic function is evaluated."""

BLOCK = 2**5
"""Number of frequencies whose sines and cosines are computed; those of others are products."""

SPAN = 10.0
"""Standard errors within which the law is computed; what lies beyond is at least ``2 SPAN - t`` off
and so outside an interval of half-width t all the same."""

LEAST_NORMAL = 0.01
"""Least normal error that is added to the draws, in standard errors of the whole. It makes the law
smooth, and the interval wider by less than this part of the standard error."""

AT_ONCE = 16
"""Replicates whose laws are computed at a time."""

STAIRS = ("widths", "inner", "epsilon")
"""Fields of staircase draws in a result's file."""

FINE_SCALE = 1e4
"""Scale in whole numbers from which discrete Laplace noise is the continuous one: their variances
differ by ``1 / (12 scale^2)`` of them."""


@dataclass(frozen=True, eq=False)
class WholeLaplaceDraws:
    """Draws of discrete Laplace noise, ``P(z)`` proportional to ``exp(-|z| / scale)``.

    Parameters
    ----------
    weights : of the draws, shape (..., J).
    scale : above 0.
    times : how many draws have each weight.
    """

    weights: Floats
    scale: float
    times: int = 1

    @property
    def variance(self) -> Floats:
        """``2 a / (1 - a)^2`` with ``a = exp(-1 / scale)``, times the squared weights."""
        a = np.exp(-1 / self.scale)
        squares = np.sum(self.weights**2, axis=-1)
        return np.asarray(self.times * squares * 2 * a / np.square(np.expm1(-1 / self.scale)))

    @property
    def fourth_cumulant(self) -> Floats:
        """``2 a (1 + 4 a + a^2) / (1 - a)^4``: a draw is the difference of two geometric ones."""
        a = np.exp(-1 / self.scale)
        of_a_draw = 2 * a * (1 + 4 * a + a**2) / np.expm1(-1 / self.scale) ** 4
        return np.asarray(self.times * np.sum(self.weights**4, axis=-1) * of_a_draw)

    def to_dict(self) -> dict[str, Any]:
        """What a result's file says of draws of one result."""
        return {"weights": self.weights.tolist(), "scale": self.scale, "times": self.times}

    def factor(self, step: Floats, chosen: slice) -> Floats:
        """The characteristic function of some replicates' sums, shape (R, FREQUENCIES).

        It is the product over draws of ``(1 - a)^2 / ((1 - a)^2 + 4 a sin(w t / 2)^2)``.

        Parameters
        ----------
        step : the distance of the frequencies ``(j + 1/2) step``, shape (R,).
        chosen : which replicates.
        """
        a, gap = np.exp(-1 / self.scale), np.square(np.expm1(-1 / self.scale))
        weights = self.weights.reshape(-1, self.weights.shape[-1])[chosen]
        logarithm = np.zeros((step.size, FREQUENCIES))
        for weight in weights.T:
            logarithm -= np.log1p(4 * a / gap * rotations(weight * step / 2).imag ** 2)
        return np.asarray(np.exp(self.times * logarithm))


@dataclass(frozen=True, eq=False)
class StaircaseDraws:
    """Draws of staircase noise on the integers.

    ``P(z)`` is constant up to ``inner - 1`` and falls ``exp(-epsilon)``-fold there and after every
    ``width`` integers (Geng and Viswanath 2014).

    Parameters
    ----------
    weights : of the draws, shape (..., J).
    widths, inner : whole numbers from 1, shape (..., J).
    epsilon : of each draw, shape (..., J).
    """

    weights: Floats
    widths: Integers
    inner: Integers
    epsilon: Floats

    @property
    def variance(self) -> Floats:
        """The squared weights times each draw's variance."""
        inner, width, fall = (np.asarray(each, dtype=np.float64) for each in self._shape)
        step = fall / (1 - fall)
        # sums of z^2 over |z| < r, and over the steps of width w behind it, with n of weight b^n
        within = (inner - 1) * inner * (2 * inner - 1) / 3
        start = inner**2 * width + inner * width * (width - 1)
        start += width * (width - 1) * (2 * width - 1) / 6
        slope = 2 * inner * width**2 + width**2 * (width - 1)
        # sums over n from 0 of b^(n + 1) times 1, n and n^2
        beyond = step * start + step**2 * slope + step**2 * (1 + fall) / (1 - fall) * width**3
        whole = 2 * inner - 1 + 2 * width * step
        return np.asarray(np.sum(self.weights**2 * (within + 2 * beyond) / whole, axis=-1))

    @property
    def _shape(self) -> tuple[Integers, Integers, Floats]:
        return self.inner, self.widths, np.exp(-self.epsilon)

    @property
    def _rows(self) -> list[Floats]:
        """The same of each replicate, shape (R, J) each."""
        columns = self.weights.shape[-1]
        return [
            np.broadcast_to(each, self.weights.shape).astype(np.float64).reshape(-1, columns)
            for each in self._shape
        ]

    def to_dict(self) -> dict[str, Any]:
        """What a result's file says of draws of one result."""
        shape = (np.broadcast_to(getattr(self, name), self.weights.shape) for name in STAIRS)
        fields = {name: each.tolist() for name, each in zip(STAIRS, shape, strict=True)}
        return {"weights": self.weights.tolist(), **fields}

    def factor(self, step: Floats, chosen: slice) -> Floats:
        """The product over draws of the sums of ``cos(z t) P(z)``, which are geometric series.

        With inner width r, width w and fall b the sum over ``|z| < r`` is ``sin(A) / h``, with
        ``A = (r - 1/2) t`` and ``h = sin(t / 2)``. That over z from r on is the real part of
        ``b e^(irt) (e^(iwt) - 1) / ((e^(it) - 1) (1 - b e^(iwt)))``, which is with ``B = w t / 2``
        ``b sin(B) / h [(1 - b) cos(A) cos(B) - (1 + b) sin(A) sin(B)] / [(1 - b)^2 + 4 b
        sin(B)^2]``.
        """
        weights = self.weights.reshape(-1, self.weights.shape[-1])[chosen]
        product = np.ones((step.size, FREQUENCIES))
        for weight, *shape in zip(weights.T, *(each[chosen].T for each in self._rows), strict=True):
            turn = weight * step
            turn = np.where(np.abs(turn) < SMALL_TURN, SMALL_TURN, turn)
            inner, width, fall = shape
            at_inner = rotations((inner - 0.5) * turn)  # A
            at_width = rotations(width / 2 * turn)  # B
            half = rotations(turn / 2).imag  # h
            whole, fall = 2 * inner - 1 + 2 * width * fall / (1 - fall), fall[:, np.newaxis]
            beyond = (1 - fall) * at_inner.real * at_width.real
            beyond -= (1 + fall) * at_inner.imag * at_width.imag
            beyond *= fall * at_width.imag
            beyond /= np.square(1 - fall) + 4 * fall * np.square(at_width.imag)
            product *= (at_inner.imag + 2 * beyond) / (half * whole[:, np.newaxis])
        return product


SMALL_TURN = 1e-9
"""Least angle between frequencies of a draw of one; below it the series above are 0 / 0."""


def rotations(angle: Floats) -> NDArray[np.complex128]:
    """``exp(i (j + 1/2) x)`` for j below ``FREQUENCIES``, shape (R, FREQUENCIES).

    As ``j = B m + n`` each is the product of ``exp(i B m x)`` and ``exp(i (n + 1/2) x)``, so that a
    few sines and cosines give all.

    Parameters
    ----------
    angle : x, shape (R,).
    """
    blocks = BLOCK * np.arange(FREQUENCIES // BLOCK)
    between = np.exp(1j * angle[:, np.newaxis] * blocks)
    within = np.exp(1j * angle[:, np.newaxis] * (np.arange(BLOCK) + 0.5))
    products = between[:, :, np.newaxis] * within[:, np.newaxis, :]
    return products.reshape(angle.size, FREQUENCIES)


Draws = WholeLaplaceDraws | StaircaseDraws
"""Independent draws of one kind of noise around 0, each with a weight in the error."""


@dataclass(frozen=True, eq=False)
class ErrorLaw:
    """The law of a sum of draws, for one result or for one a replicate.

    Parameters
    ----------
    draws : independent of each other, of the same lead shape.

    Examples
    --------
    >>> alone = ErrorLaw((WholeLaplaceDraws(np.array([1e-5]), 1e5),))
    >>> round(float(alone.reach(np.array(0.0), 0.95) / np.sqrt(alone.variance)), 2)
    2.12
    """

    draws: tuple[Draws, ...]

    @property
    def variance(self) -> Floats:
        """Of all draws together, shape (...)."""
        return np.asarray(sum(each.variance for each in self.draws))

    def to_dict(self) -> list[dict[str, Any]]:
        """What a result's file says of the law of one result."""
        return [each.to_dict() for each in self.draws]

    def reach(self, normal: Floats, level: float) -> Floats:
        """The half-width within which the draws and a normal error stay with this probability.

        The inversion of the characteristic function at half frequencies (Gil-Pelaez 1951).

        Parameters
        ----------
        normal : the standard deviation of an error besides, shape (...); NaN gives NaN.
        level : above 0 and below 1.
        """
        if self.draws[0].weights.ndim == 1:
            return np.asarray(_single_reach(self, float(normal), level))
        return self._all_reaches(normal, level)

    def _all_reaches(self, normal: Floats | float, level: float) -> Floats:
        """Of all replicates, some at a time."""
        variances = self.variance
        deviations = np.broadcast_to(normal, variances.shape).reshape(-1)
        parts = [
            self._reach(deviations[start : start + AT_ONCE], variances.reshape(-1), start, level)
            for start in range(0, deviations.size, AT_ONCE)
        ]
        return np.asarray(np.concatenate(parts).reshape(variances.shape))

    def _reach(self, normal: Floats, variances: Floats, start: int, level: float) -> Floats:
        """Of some replicates, shape (R,)."""
        chosen = slice(start, start + normal.size)
        whole = np.sqrt(variances[chosen] + normal**2)
        known = np.isfinite(whole) & (whole > 0)
        unit = np.where(known, whole, 1.0)[:, np.newaxis]
        halves = np.arange(FREQUENCIES) + 0.5
        step = np.pi / (SPAN * unit)
        frequencies = halves * step
        smooth = np.maximum(np.where(known, normal, 0.0)[:, np.newaxis], LEAST_NORMAL * unit)
        function = np.exp(-np.square(smooth * frequencies) / 2)
        for each in self.draws:
            function = function * each.factor(step[:, 0], chosen)
        # P(|X| <= t) = 2 / pi times the sum of f(s) sin(s t) / (j + 1/2), at t = i SPAN / T
        inside = scipy.fft.dst(function / halves, type=2, axis=-1) / np.pi
        reached = np.concatenate([np.zeros_like(unit), inside], axis=-1)
        return np.where(known, _crossing(reached, level) * SPAN / FREQUENCIES * unit[:, 0], whole)


@dataclass(frozen=True, eq=False)
class JoinedLaw(ErrorLaw):
    """The laws of groups of replicates, one after another.

    Parameters
    ----------
    laws : each with the number of its replicates; None where errors are normal.
    """

    laws: tuple[tuple[int, ErrorLaw | None], ...] = ()

    @property
    def variance(self) -> Floats:
        """Of the draws, 0 where errors are normal, shape (R,)."""
        parts = [
            np.broadcast_to(0.0 if law is None else law.variance, (size,))
            for size, law in self.laws
        ]
        return np.concatenate(parts)

    def reach(self, normal: Floats, level: float) -> Floats:
        """As for one law, shape (R,)."""
        parts = np.split(normal, np.cumsum([size for size, _ in self.laws])[:-1])
        gaussian = scipy.special.ndtri((1 + level) / 2)
        made = [
            part * gaussian if law is None else np.broadcast_to(law.reach(part, level), part.shape)
            for part, (_, law) in zip(parts, self.laws, strict=True)
        ]
        return np.concatenate(made)


def law_of(entries: Sequence[Mapping[str, Any]]) -> ErrorLaw:
    """The law that a result's file states.

    Raises
    ------
    ValueError : for draws without all their fields, and for fields of several lengths.
    """
    return ErrorLaw(tuple(_draws_of(entry) for entry in entries))


def _draws_of(entry: Mapping[str, Any]) -> Draws:
    weights = np.array(entry["weights"], dtype=np.float64)
    if "scale" in entry:
        return WholeLaplaceDraws(weights, float(entry["scale"]), int(entry.get("times", 1)))
    widths, inner, epsilon = (np.array(entry.get(name, ())) for name in STAIRS)
    if not widths.shape == inner.shape == epsilon.shape == weights.shape:
        shapes = [each.shape for each in (weights, widths, inner, epsilon)]
        raise ValueError(f"weights, widths, inner and epsilon must have one shape, got {shapes}")
    # of integers above 64 bits NumPy makes objects
    return StaircaseDraws(weights, widths, inner, epsilon.astype(np.float64))


def laplace_law(errors: Floats) -> ErrorLaw:
    """The law of the sum of one Laplace draw each of these standard deviations, shape (..., J).

    Examples
    --------
    >>> two = laplace_law(np.array([1.0, 1.0]))
    >>> round(float(two.reach(np.array(0.0), 0.95) / np.sqrt(two.variance)), 3)
    2.057
    """
    unit = WholeLaplaceDraws(np.ones(1), FINE_SCALE)
    return ErrorLaw((WholeLaplaceDraws(errors / np.sqrt(unit.variance), FINE_SCALE),))


@lru_cache(maxsize=64)
def _single_reach(law: ErrorLaw, normal: float, level: float) -> float:
    """Of a single result, whose interval is asked for again and again."""
    return float(law._all_reaches(normal, level))


def joined_laws(laws: Sequence[tuple[int, ErrorLaw | None]]) -> ErrorLaw | None:
    """The laws of groups of replicates together; None where there are none."""
    if all(law is None for _, law in laws):
        return None
    return JoinedLaw((), tuple(laws))


def _crossing(inside: Floats, level: float) -> Floats:
    """Where rising probabilities reach the level first, in steps from 0, shape (R,)."""
    index = np.maximum(np.argmax(inside >= level, axis=-1), 1)
    rows = np.arange(inside.shape[0])
    before, after = inside[rows, index - 1], inside[rows, index]
    return np.asarray(index - 1 + (level - before) / np.maximum(after - before, 1e-300))


def reach(
    privacy: Floats | float,
    others: Floats | float,
    laplace: Floats | float,
    law: ErrorLaw | None,
    level: float,
) -> Floats:
    """Half the width of an interval, by noise of which a part is not normal, and all else, (...).

    Parameters
    ----------
    privacy, others : the errors by noise, and by all else, standard deviations.
    laplace : the part of ``privacy`` that is one draw of Laplace noise, where there is no law.
    law : of the part of ``privacy`` that is a sum of few draws.
    level : the probability that the interval covers.

    Examples
    --------
    >>> [round(float(reach(3.0, *each, None, 0.95)), 2) for each in ((4.0, 0.0), (0.0, 3.0))]
    [9.8, 6.35]
    """
    drawn = np.square(laplace) if law is None else law.variance
    normal = np.hypot(np.sqrt(np.maximum(np.square(privacy) - drawn, 0.0)), others)
    if law is None:
        return laplace_normal_reach(np.asarray(laplace), normal, level)
    return law.reach(normal, level)


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
    reach = np.full(part.shape, scipy.special.ndtri((1 + level) / 2))
    reach[np.isnan(part)] = np.nan
    apart = np.flatnonzero(part >= LEAST_PART)  # no others need a step
    some, parts = reach.flat[apart], part.flat[apart]
    for _ in range(STEPS if apart.size else 0):
        outside, density = _outside(some, parts)
        some = some + outside * np.log(outside / (1 - level)) / density
    reach.flat[apart] = some
    return reach


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
