"""Randomised response to several questions about one value: what it costs together."""

from __future__ import annotations

import math
from functools import lru_cache

from tacit.privacy.cost import check_epsilon
from tacit.privacy.local.response import flip_probability

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
    flip = flip_probability(answer_epsilon)
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
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be at least 0 and below 1, got {delta}")
    if answers < 1:
        raise ValueError(f"answers must be at least 1, got {answers}")
    low = epsilon / answers
    if delta == 0:
        return low
    high = 2 * low
    while composed_delta(high, answers, epsilon) <= delta:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if composed_delta(middle, answers, epsilon) <= delta:
            low = middle
        else:
            high = middle
    return low
