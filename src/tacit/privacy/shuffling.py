"""What a batch of locally private reports costs anyone who sees it only in a fresh order.

Let n records each report through one randomiser R that is epsilon0-private for the replacement of
its record. For any two records x and y, and for every other record z, R(z) is a mixture: with
probability ``exp(-epsilon0)`` it is a *clone*, drawn from R(x) or R(y) with equal chances. So the
multiset of reports is a random function of two counts (Feldman, McMillan and Talwar 2021, Hiding
among the clones, Theorem 3.2). Let ``C ~ Bin(n - 1, exp(-epsilon0))``, ``A ~ Bin(C, 1/2)`` and
``D ~ Bernoulli(exp(epsilon0) / (exp(epsilon0) + 1))``: whether the one record is x or y is at most
as visible as which of ``(A + D, C - A + 1 - D)`` and ``(A + 1 - D, C - A + D)`` was seen. The
hockey-stick divergence of that pair is summed for the n at hand; it is the same in both directions.

The bound holds where every report is epsilon0-private on its own, all are made by one randomiser
and say nothing else about their records or senders (tokens are kept apart), and the order is
uniform and independent. Only honest reports count as n: the sender of another may know it, or make
it without noise. Anyone who shuffles saw the reports before: towards it the local guarantee holds,
and no more. The divergence does not grow with n, so a smaller n than the true one is valid.

A result states the central guarantee of sealed batches in addition to the local one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from functools import lru_cache

import numpy as np
import scipy

from tacit.arrays import Floats
from tacit.privacy.cost import check_budget, check_fraction

MOST = 10_000_000
"""Largest number of reports that is counted; a larger batch has the bound of this one."""

TAIL = 4e-22
"""Largest probability of the numbers of clones that are left out, added to delta. They are further
than ``t = 10 s + 35`` from their mean, s their standard deviation. By Bernstein's inequality that
has at most the probability ``2 exp(-t^2 / (2 s^2 + 2 t / 3))``, and so at most ``2 exp(-50)``."""

ROUNDING = 1e-9
"""Relative error of a probability that is allowed for, always to the side of a larger delta."""

HALVINGS = 24
"""Halvings of the interval in which epsilon is looked for; the upper end is given."""


def shuffled_delta(local_epsilon: float, reports: int, epsilon: float) -> float:
    """A delta with which a shuffled batch is (epsilon, delta)-private for a record's replacement.

    It is the mean over the number of clones c of the pair's divergence given c. The first count is
    a with the probability ``p b(a-1) + (1-p) b(a)`` under x and ``(1-p) b(a-1) + p b(a)`` under y,
    b that of Bin(c, 1/2). Their ratio rises with a, as ``b(a-1)/b(a) = a/(c+1-a)``: it exceeds
    exp(epsilon) from some a on, and the divergence is a difference of two tails of Bin(c, 1/2).

    Parameters
    ----------
    local_epsilon : of one report alone.
    reports : how many honest reports are in the batch, at least 1.
    epsilon : at least 0 and finite.

    Raises
    ------
    ValueError : for a parameter outside its range.

    Examples
    --------
    >>> shuffled_delta(1.0, 1, 1.0)
    0.0
    >>> 1e-6 < shuffled_delta(1.0, 10_000, 0.05) < 1e-5
    True
    """
    check_budget(local_epsilon)
    if reports < 1:
        raise ValueError(f"reports must be at least 1, got {reports}")
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise ValueError(f"epsilon must be at least 0 and finite, got {epsilon}")
    if epsilon >= local_epsilon:
        return 0.0
    p = 1 / (1 + math.exp(-local_epsilon))
    gain = -p * math.expm1(epsilon - local_epsilon)  # p - exp(epsilon) (1-p)
    loss = p * (math.exp(epsilon) - math.exp(-local_epsilon))  # exp(epsilon) p - (1-p)
    clones, chances = _clones(reports, local_epsilon)
    # a gain > (c + 1 - a) loss; an a at the border itself contributes 0
    first = np.ceil((clones + 1) * (loss / (gain + loss)))
    above = gain * (1 + ROUNDING) * _tail(first - 1, clones)
    divergences = np.maximum(above - loss * (1 - ROUNDING) * _tail(first, clones), 0.0)
    return float(min(chances @ divergences * (1 + ROUNDING) + TAIL, 1.0))


def shuffled_epsilon(
    local_epsilon: float, reports: int, delta: float, distance: float = 0.0
) -> float:
    """An epsilon with which a shuffled batch is (epsilon, delta)-private: the least, rounded up.

    Never above ``local_epsilon``, which holds without any shuffling.

    Parameters
    ----------
    local_epsilon : of one report alone.
    reports : how many honest reports are in the batch, at least 1.
    delta : above 0 and below 1.
    distance : a bound of the total variation between the batch as it is made and one in a uniform
        order. It adds ``(1 + exp(epsilon)) distance`` to delta: once for either record.

    Raises
    ------
    ValueError : for a parameter outside its range.

    Examples
    --------
    >>> 0.1 < shuffled_epsilon(2.0, 10_000, 1e-6) < 0.3
    True
    >>> round(shuffled_epsilon(2.0, 1, 1e-6), 4)
    2.0
    """
    check_fraction("delta", delta)
    low, high = 0.0, float(local_epsilon)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        apart = (1 + math.exp(middle)) * distance
        within = shuffled_delta(local_epsilon, reports, middle) + apart <= delta
        low, high = (low, middle) if within else (middle, high)
    return high


@lru_cache(maxsize=1)
def _clones(reports: int, local_epsilon: float) -> tuple[Floats, Floats]:
    """The numbers of clones that matter, and their chances, scaled to a sum of 1.

    Kept, because an epsilon is found by many deltas of one batch.
    """
    others, chance = min(reports, MOST) - 1, math.exp(-local_epsilon)
    mean = others * chance
    reach = 10 * math.sqrt(mean * (1 - chance)) + 35
    least, most = max(0, math.floor(mean - reach)), min(others, math.ceil(mean + reach))
    numbers = np.arange(least, most + 1, dtype=np.float64)
    odds = math.log(chance) - math.log(-math.expm1(-local_epsilon))
    # log P(C = c+1) - log P(C = c) = log((n-1-c)/(c+1)) + log(chance/(1-chance))
    steps = np.log((others - numbers[:-1]) / numbers[1:]) + odds
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    chances = np.exp(logs - logs.max())
    return numbers, chances / chances.sum()


def _tail(number: Floats, clones: Floats) -> Floats:
    """The probability that Bin(clones, 1/2) is at least a number, each of shape (L,)."""
    inside = (number > 0) & (number <= clones)
    least = np.where(inside, number, 1.0)
    # P(Bin(c, 1/2) >= k) = I_{1/2}(k, c - k + 1)
    tails = scipy.special.betainc(least, np.where(inside, clones - least + 1, 1.0), 0.5)
    return np.where(inside, tails, (number <= 0).astype(np.float64))


@dataclass(frozen=True)
class Shuffled:
    """What sealed batches cost anyone who sees them and nothing else: an entry of a result.

    Parameters
    ----------
    epsilon, delta : of the smallest batch, for the replacement of one record.
    batches : how many there are.
    reports : how many all batches hold.
    least : how many the smallest batch holds.
    honest : the part of every batch's reports that is taken to be honest, above 0 and at most 1.
    local_epsilon : of one report alone, towards everybody.
    """

    epsilon: float
    delta: float
    batches: int
    reports: int
    least: int
    honest: float
    local_epsilon: float

    @property
    def line(self) -> str:
        """The guarantee with its conditions, in one line.

        Examples
        --------
        >>> Shuffled(0.15, 1e-6, 3, 30_000, 10_000, 0.9, 2.0).line[:63]
        '3 with 30,000 reports: epsilon 0.15, delta 1e-06 towards a read'
        """
        rounded_up = Context(prec=3, rounding=ROUND_CEILING).create_decimal(self.epsilon)
        shown = min(float(rounded_up), self.local_epsilon)
        return (
            f"{self.batches} with {self.reports:,} reports: epsilon {shown:g}, delta "
            f"{self.delta:g} towards a reader of these alone, if at least {100 * self.honest:g} % "
            f"of the reports of each batch are honest; towards the collector, who sees reports "
            f"arrive or estimates in between, and always, epsilon {self.local_epsilon:g}"
        )
