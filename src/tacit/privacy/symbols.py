"""Randomised response: on labels, on one of k symbols, and on a row's questions about one value.

k-ary randomised response (Bell et al. 2020, Alg. 1): a report is the record's symbol with
probability ``1 - beta``, and else uniform over all k symbols. Here
``beta = k / (k + exp(epsilon) - 1)``.

Questions about a value v are rows j of the Walsh-Hadamard matrix
``H[j, v] = (-1)**popcount(j & v)``; this module has its entries and its transform.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.privacy.composition import largest_within
from tacit.privacy.cost import check_delta, check_epsilon
from tacit.privacy.mechanisms import response
from tacit.privacy.noise import NoiseSource


def flip_labels(labels: NDArray[np.int8], epsilon: float, noise: NoiseSource) -> NDArray[np.int8]:
    """Each label flipped independently with ``flip_probability(epsilon)``.

    Epsilon-private for one label: each output value is at most ``exp(epsilon)`` times as likely
    under one label as under the other (Sun et al. 2022a, Eq. 2). The result has the shape of
    ``labels``, after the replicate axis of ``noise`` if there is one.
    """
    flips = noise.draw(response.RandomisedResponse(epsilon), labels.shape)
    return labels ^ flips.view(np.int8)


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
        replaced = noise.draw(response.Bits(self.replaced_chance), (symbols.size,))
        uniform = noise.draw(response.UniformIntegers(self.symbols), symbols.shape)
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


DELTA_SLACK = 1.0 + 2.0**-40
"""Factor on a composed delta: the increase exceeds the rounding error of its sum."""


def composed_delta(answer_epsilon: float, answers: int, epsilon: float) -> float:
    """The delta at ``epsilon`` of so many independent bits, each flipped at ``answer_epsilon``.

    Two values differ at most in all bits. With k bits and f the flip probability, l of the bits are
    flipped with probability ``C(k, l) f**l (1-f)**(k-l)``, and what is then sent is
    ``exp((k-2l) answer_epsilon)`` times less likely under the other value. The hockey-stick
    divergence is ``sum_l C(k, l) f**l (1-f)**(k-l) max(0, 1 - exp(epsilon - (k-2l)
    answer_epsilon))``, the exact delta. It is also that of any k guarantees of ``answer_epsilon``
    composed (Kairouz, Oh and Viswanath 2015, Theorem 3.3), so never above the basic, advanced or
    zero-concentrated bound.

    Examples
    --------
    >>> composed_delta(0.5, 2, 1.0)
    0.0
    >>> 0.2 < composed_delta(1.0, 2, 1.0) < 0.5
    True
    """
    flip = response.flip_probability(answer_epsilon)
    total = math.fsum(
        math.comb(answers, flipped)
        * flip**flipped
        * (1 - flip) ** (answers - flipped)
        * max(0.0, -math.expm1(min(epsilon - (answers - 2 * flipped) * answer_epsilon, 0.0)))
        for flipped in range(answers + 1)
    )
    return total * DELTA_SLACK


@lru_cache(maxsize=256)
def answer_epsilon(epsilon: float, delta: float, answers: int) -> float:
    """The largest epsilon of each of so many answers that costs (epsilon, delta) together.

    With delta 0 that is ``epsilon / answers``. It is computed by bisection from below, so that
    ``composed_delta`` of what is returned never exceeds ``delta``.

    Raises
    ------
    ValueError : for an epsilon that is not positive and finite, a delta outside [0, 1), or fewer
        than one answer.

    Examples
    --------
    >>> answer_epsilon(1.0, 0.0, 8)
    0.125
    >>> round(answer_epsilon(1.0, 1e-2, 8), 3)
    0.189
    """
    check_epsilon(epsilon)
    check_delta(delta)
    if answers < 1:
        raise ValueError(f"answers must be at least 1, got {answers}")
    low = epsilon / answers
    if delta == 0:
        return low
    return largest_within(low, lambda each: composed_delta(each, answers, epsilon) <= delta)


RowNumbers = NDArray[np.integer[Any]]
SignBits = NDArray[np.bool_]


def hadamard_bits(rows: RowNumbers, columns: RowNumbers) -> SignBits:
    """Where the entries ``H[row, column]`` are -1: the parity of the bits that both have.

    Parameters
    ----------
    rows, columns : integers from 0 to 2**32 - 1, of shapes that broadcast.

    Examples
    --------
    >>> import numpy as np
    >>> hadamard_bits(np.array([0, 1, 2, 3]), np.array([3])).tolist()
    [False, True, True, False]
    """
    folded = rows & columns
    for shift in (16, 8, 4, 2, 1):
        folded = folded ^ (folded >> shift)
    return np.asarray(folded & 1, dtype=np.bool_)


def walsh_hadamard(values: Floats) -> Floats:
    """The product with the Walsh-Hadamard matrix along the last axis, in ``O(d log d)``.

    Each of ``log2(d)`` passes adds and subtracts the two halves and interleaves the results, which
    rotates the bits of the index by one; after all passes they are in natural order again.

    Parameters
    ----------
    values : float64, shape (..., d), d a power of two.

    Returns
    -------
    float64, shape (..., d): entry v is the sum over j of ``H[j, v] values[j]``.

    Raises
    ------
    ValueError : when d is not a power of two.

    Examples
    --------
    >>> import numpy as np
    >>> walsh_hadamard(np.array([1.0, 2.0, 3.0, 4.0])).tolist()
    [10.0, -2.0, -4.0, 0.0]
    """
    size = values.shape[-1]
    if size < 1 or size & (size - 1):
        raise ValueError(f"the last axis must have a power of two of entries, got {size}")
    half, passes = size // 2, size.bit_length() - 1
    source = np.array(values, dtype=np.float64, order="C")
    target = np.empty_like(source)
    for _ in range(passes):
        np.add(source[..., :half], source[..., half:], out=target[..., 0::2])
        np.subtract(source[..., :half], source[..., half:], out=target[..., 1::2])
        source, target = target, source
    return source
