"""k-ary randomised response: one of k symbols, reported or replaced by a uniform one (Bell et al.
2020, Alg. 1).

A report is the record's symbol with probability ``1 - beta``, and else uniform over all k
symbols, ``beta = k / (k + exp(epsilon) - 1)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.privacy.cost import check_epsilon
from tacit.privacy.mechanisms.choices import Bits, UniformIntegers
from tacit.privacy.sampling.noise import NoiseSource

REPLACEMENT_SLACK = 1.0 + 2.0**-40
"""Factor on the probability of a replacement: the increase exceeds every rounding error."""


@dataclass(frozen=True)
class SymbolResponse:
    """Randomised response on the symbols ``0 .. symbols - 1``.

    Parameters
    ----------
    symbols : k, at least 2.
    epsilon : the budget of one report.

    Raises
    ------
    ValueError : for fewer than two symbols, or an epsilon that is not positive and finite.

    Examples
    --------
    >>> response = SymbolResponse(symbols=4, epsilon=1.0)
    >>> round(response.replace_probability, 4), round(response.keep_probability, 4)
    (0.6995, 0.3005)
    """

    symbols: int
    epsilon: float

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if self.symbols < 2:
            raise ValueError(f"symbols must be at least 2, got {self.symbols}")

    @property
    def replace_probability(self) -> float:
        """beta, the probability that a report is a uniform symbol; never rounded to zero."""
        ratio = math.exp(-self.epsilon)
        return max(self.symbols * ratio / (1 + (self.symbols - 1) * ratio), math.ulp(0.0))

    @property
    def keep_probability(self) -> float:
        """``1 - beta``, to full precision."""
        return -math.expm1(-self.epsilon) / (1 + (self.symbols - 1) * math.exp(-self.epsilon))

    @property
    def replaced_chance(self) -> float:
        """The probability with which a symbol is replaced as it is drawn, slightly above beta."""
        return min(self.replace_probability * REPLACEMENT_SLACK, 1.0)

    def answers(self, symbols: NDArray[Any], noise: NoiseSource) -> Integers:
        """A report for each symbol, shape (M,), after the replicate axis of ``noise`` if any.

        Epsilon-private for one symbol: a report equals the true symbol with probability
        ``1 - beta + beta / k`` and any other with ``beta / k``, and the ratio of the two is
        ``1 + k (1 - beta) / beta = exp(epsilon)`` (Bell et al. 2020, Eq. 9, where the first
        probability lacks ``beta / k``). The source rounds a probability to its grid, upwards below
        one half and downwards above; the slack outweighs that, so that a replacement is never less
        likely than beta, and the ratio never larger.
        """
        replaced = noise.draw(Bits(self.replaced_chance), (symbols.size,))
        uniform = noise.draw(UniformIntegers(self.symbols), symbols.shape)
        return np.where(replaced, uniform, symbols)

    def simulated_counts(self, held: Integers, rng: np.random.Generator) -> Integers:
        """How often each symbol comes from so many records, shape (k,), in one draw.

        Each symbol is replaced with the same chance, so as many as are binomial are, and these are
        uniform. For simulation.

        Parameters
        ----------
        held : how many records hold each symbol, shape (k,).
        rng : draws.
        """
        replaced = rng.binomial(held, self.replaced_chance)
        uniform = np.full(self.symbols, 1 / self.symbols)
        return np.asarray(held - replaced + rng.multinomial(replaced.sum(), uniform))

    def debiased(self, counts: NDArray[Any]) -> Floats:
        """Unbiased numbers of records with every symbol, from counts of reports, shape (..., k).

        The sum of ``(e_report - (beta / k) 1) / (1 - beta)`` over reports (Bell et al. 2020,
        section 3).
        """
        records = counts.sum(axis=-1, keepdims=True, dtype=np.float64)
        return np.asarray(
            (counts - records * self.replace_probability / self.symbols) / self.keep_probability
        )

    def covariance(self, counts: NDArray[Any]) -> tuple[Floats, Floats]:
        """The covariance of the debiased counts, as two vectors s and u of shape (..., k).

        It is ``diag(s) - u 1' - 1 u'``. With ``c`` records of each symbol and ``q = 1 - beta`` the
        reports of a record with symbol v have probabilities ``p_v = q e_v + (beta / k) 1`` and
        covariance ``diag(p_v) - p_v p_v'``; the sum over records, over ``q^2``, has
        ``s = E[counts] / q^2 - c`` and ``u = beta c / (k q) + M beta^2 / (2 k^2 q^2)``. The counts
        estimate their expectation and their debiased values c, so both are unbiased.
        """
        estimates = self.debiased(counts)
        records = counts.sum(axis=-1, keepdims=True, dtype=np.float64)
        ratio = self.replace_probability / (self.symbols * self.keep_probability)
        return (
            counts / self.keep_probability**2 - estimates,
            ratio * estimates + records * ratio**2 / 2,
        )

    def variance(self, counts: NDArray[Any], weights: Floats) -> Floats:
        """The variance of a weighted sum of the debiased counts, shape (...).

        Parameters
        ----------
        counts : of reports, shape (..., k).
        weights : shape (..., k) or (k,).

        Examples
        --------
        >>> import numpy as np
        >>> response = SymbolResponse(2, 1.0)
        >>> round(float(response.variance(np.array([60, 40]), np.array([1.0, 0.0]))), 2)
        92.07
        """
        diagonal, shared = self.covariance(counts)
        variance = np.sum(diagonal * weights**2, axis=-1)
        crossed = np.sum(shared * weights, axis=-1) * np.sum(weights, axis=-1)
        return np.maximum(variance - 2 * crossed, 0.0)
