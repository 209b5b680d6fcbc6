"""How counts are laid out in one polynomial so that its square holds the AUC in three coefficients.

``p = sum_i U_i x^i + V_i x^(2J+1-i) + W_i x^(2J+2+i) + a x^-1 + b x^B``: in ``p^2`` the coefficient
of ``x^(2J+1)`` is ``2 sum U_i V_i``, that of ``x^(4J+3)`` is ``2 sum W_i V_i``, and that of
``x^(B-1)`` is ``2 a b`` (paper 3 has the first and the last). As ``x^n = -1``, ``a x^-1`` is
``-a x^(n-1)``. Four coefficients, these and one more, are left alone by every other product: there
``p`` itself may carry numbers that the aggregator adds to its answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from math import inf, isqrt, nextafter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.homomorphic_bfv import DEGREE, random_words
from tacit.data.clients import Clients, DataError
from tacit.protocols.dpauc import cell_counts

Integers = NDArray[np.int64]

LARGEST = 2**57
"""The most that either number of an answer may be for each plain modulus, well below it."""
MOST_MULTIPLIER = 2**17
LEAST_MULTIPLIER = 2**10
SPREAD = 4
"""The multiplier is drawn between a SPREADth of its bound and its bound."""
PERTURBATION = 2.0**-32
"""The width of what is added to both numbers, as a share of the most they can be."""
PRECISION = 2.0**-20
"""The most that a perturbation may be of the denominator."""
TAG = 3
"""The place of the tag among ``Layout.places``."""
MOST_PRODUCTS = 909
"""Polynomials with more products have no room for the places that nothing else reaches."""


class Numbers(NamedTuple):
    """What an answer holds, each multiplied by the aggregator's secret and perturbed.

    Parameters
    ----------
    numerator : of ``2 sum T F``.
    denominator : of ``2 P N``.
    hidden : of ``2 sum p n``, the pairs that share a cell.
    """

    numerator: int
    denominator: int
    hidden: int


@dataclass(frozen=True)
class Layout:
    """The places of J products, J further ones and the totals in a polynomial.

    Parameters
    ----------
    products : J.

    Raises
    ------
    ValueError : when they do not fit into the polynomial.

    Examples
    --------
    >>> layout = Layout(100)
    >>> layout.places
    (201, 807, 403, 605)
    """

    products: int

    def __post_init__(self) -> None:
        if not 5 <= self.products <= MOST_PRODUCTS:
            raise ValueError(
                f"a polynomial holds from 5 to {MOST_PRODUCTS} products, got {self.products}"
            )

    @property
    def totals(self) -> tuple[int, int]:
        """Where the two factors of the denominator stand, the first with the opposite sign."""
        return DEGREE - 1, 8 * self.products + 8

    @property
    def places(self) -> tuple[int, int, int, int]:
        """Where the square holds the ``Numbers`` in their order, and where it holds nothing."""
        numerator, hidden = 2 * self.products + 1, 4 * self.products + 3
        return numerator, 8 * self.products + 7, hidden, 6 * self.products + 5

    @cached_property
    def used(self) -> Integers:
        """Every place that a polynomial may use: factors, totals, and ``places``."""
        blocks = [self.rising(), self.falling(), self.inside()]
        return np.concatenate([*blocks, self.totals, self.places]).astype(np.int64)

    def rising(self) -> Integers:
        """The places of the first factors of the numerator, shape (J,)."""
        return np.arange(1, self.products + 1, dtype=np.int64)

    def falling(self) -> Integers:
        """The places of the second factors of both sums, shape (J,)."""
        return 2 * self.products + 1 - self.rising()

    def inside(self) -> Integers:
        """The places of the first factors of the pairs that share a cell, shape (J,)."""
        return 2 * self.products + 2 + self.rising()


@dataclass(frozen=True, eq=False)
class Counts:
    """What is encrypted of every client's records.

    Parameters
    ----------
    rising : T, ``TP^n + TP^(n-1)``, shape (N, K).
    falling : F, ``FP^n - FP^(n-1)``, shape (N, K): the negatives in every cell.
    inside : the positives in every cell, shape (N, K); 0 in a cell that is a single score.
    positives, negatives : the totals, shape (K,).
    """

    rising: Integers
    falling: Integers
    inside: Integers
    positives: Integers
    negatives: Integers

    def of(self, client: int) -> Counts:
        """One client's own."""
        return Counts(
            self.rising[:, client],
            self.falling[:, client],
            self.inside[:, client],
            self.positives[client : client + 1],
            self.negatives[client : client + 1],
        )


def cumulative_counts(clients: Clients, thresholds: int | NDArray[np.float64]) -> Counts:
    """The cumulative counts of every client, from the highest threshold down.

    Parameters
    ----------
    clients : the clients.
    thresholds : ascending from 0 to 1, shape (N,); a number spreads as many evenly, as paper 3 does
        in section IV-C.

    The curve starts at (0, 0), so that scores of exactly 1 count too. They have a cell to
    themselves, in which all pairs are ties: it hides nothing.

    Raises
    ------
    DataError : for a score outside [0, 1].
    """
    places = np.linspace(0.0, 1.0, thresholds) if isinstance(thresholds, int) else thresholds
    positives, records = cell_counts(clients, places, clients.labels)
    negatives = (records - positives)[::-1]
    reached = np.cumsum(positives[::-1], axis=0)
    inside = positives[::-1].copy()
    rising = 2 * reached - inside
    inside[0] = 0
    return Counts(rising, negatives, inside, positives.sum(axis=0), negatives.sum(axis=0))


@dataclass(frozen=True)
class Scale:
    """How an answer's numbers are scaled and perturbed, from the agreed bound of records.

    An answer is ``c X + u``, ``c Y + v`` and ``c Z + w`` with ``X = 2 sum T F``, ``Y = 2 P N`` and
    ``Z = 2 sum p n``; all are at most ``most_records^2``. The multiplier c is the aggregator's
    secret. The perturbations u, v and w are uniform up to ``width``, about 1e-7 of the answer. From
    2^17 agreed records on they are at least twice as wide as c, so that every c gives even numbers,
    as X, Y and Z are; at 2^16 every c up to half its bound does, a third of them. So the three
    betray c by no gcd, and X, Y and Z stay hidden within a factor of ``SPREAD``. Below, parties
    that try every c may find it: an AUC to a millionth and secret totals of so few records cannot
    both be had.

    Parameters
    ----------
    most_records : the agreed bound of all parties' records together.
    moduli : how many plain moduli, 1 or 2, hold the numbers: everything is computed modulo each,
        and two residues give a number below the product (Chinese remainder theorem).

    Raises
    ------
    ValueError : where the numbers would overflow the plain moduli.

    Examples
    --------
    >>> Scale(2**20).bound, Scale(2**20).width
    (131072, 33554432)
    >>> Scale.fitting(2**25)
    Scale(most_records=33554432, moduli=2)
    """

    most_records: int
    moduli: int = 1

    def __post_init__(self) -> None:
        if self.most_records < 2:
            raise ValueError(f"most_records must be at least 2, got {self.most_records}")
        if self.most_records > self.most:
            raise ValueError(
                f"most_records must be at most {self.most}, or 2 P N c overflows the plain modulus "
                f"(2 P N c < t), got {self.most_records}; evaluate a random part of the records, "
                "agreed by a hash of their names, or use adversary='semi-honest', which takes "
                "more records with twice the bytes"
            )

    @classmethod
    def fitting(cls, most_records: int) -> Scale:
        """The scale with as few moduli as the records need."""
        return cls(most_records, 1 if most_records <= cls(2).most else 2)

    @property
    def largest(self) -> int:
        """The most that either number of an answer may be."""
        return LARGEST**self.moduli

    @property
    def most(self) -> int:
        """The most records that so many moduli allow."""
        return isqrt(self.largest // LEAST_MULTIPLIER)

    @property
    def bound(self) -> int:
        """The largest multiplier."""
        return min(MOST_MULTIPLIER, self.largest // self.most_records**2)

    @property
    def width(self) -> int:
        """What a perturbation is below."""
        return max(1, int(self.bound * self.most_records**2 * PERTURBATION))

    def multiplier(self) -> int:
        """A secret multiplier, from the operating system's entropy."""
        least = self.bound // SPREAD
        return least + below(self.bound - least + 1)

    def area(self, numbers: Numbers, perturbed: bool) -> Certain:
        """The AUC of an answer's numbers, and how far the exact one may be from it.

        A record's cell is known, not its place there, so the pairs that share a cell count half and
        may all count or none: the exact AUC is within ``sum p n / (2 P N)`` of the trapezoid's.
        Perturbations are never negative, so the bounds below hold whatever they were.

        Raises
        ------
        DataError : where a class is absent, or the perturbation is above ``PRECISION``: 2 P N is
            below ``most_records^2 / 1024``, or the multiplier is smaller than agreed.
        OverflowError : for numbers that no honest answer holds.
        """
        width = self.width
        if not self._plausible(numbers):
            raise OverflowError(
                "the answer holds numbers that no honest computation gives: the aggregator did not "
                f"compute as agreed, or there are more than {self.most_records} records"
            )
        if numbers.denominator <= width:
            raise DataError("the AUC is undefined without both classes, or without enough records")
        if width > 1 and width > PRECISION * numbers.denominator:
            raise DataError(
                f"the perturbation, made for most_records={self.most_records}, exceeds "
                f"{PRECISION:.0e} of the answer: agree on a bound nearer to the records there are "
                "(or the aggregator chose too small a multiplier)"
            )
        return _certain(numbers, width if perturbed else 0)

    def _plausible(self, numbers: Numbers) -> bool:
        """Whether an honest answer may hold them: no number of pairs is above all pairs'."""
        numerator, denominator, hidden = numbers
        largest = self.bound * self.most_records**2 + self.width
        return (
            max(numbers) <= largest
            and numerator <= 2 * denominator + self.width
            and hidden <= denominator + self.width
        )


@dataclass(frozen=True)
class Certain:
    """An AUC, and a bound of its distance to the exact one.

    Parameters
    ----------
    value : the AUC.
    half_range : the exact AUC of the records is at most so far from it.
    """

    value: float
    half_range: float

    def told(self, places: int, digits: int) -> Certain:
        """Rounded to so many decimal places, and the half-range up, to so many digits."""
        value = round(self.value, places)
        reach = nextafter(self.half_range + abs(value - self.value), inf)
        return Certain(value, rounded_up(reach, digits, places))


def rounded_up(value: float, digits: int, places: int) -> float:
    """A positive number rounded up to significant digits, no finer than so many decimal places.

    Examples
    --------
    >>> rounded_up(0.0123456, digits=3, places=7), rounded_up(0.00000012, digits=3, places=7)
    (0.0124, 2e-07)
    """
    exact = Decimal(value)
    finest = max(exact.adjusted() - digits + 1, -places) if exact else -places
    return float(exact.quantize(Decimal((0, (1,), finest)), ROUND_CEILING))


def _certain(numbers: Numbers, width: int) -> Certain:
    """Bounds over all perturbations from 0 to ``width``, in exact arithmetic.

    With ``A = c X + u``, ``B = c Y + v``, ``G = c Z + w``: the exact AUC is ``(X +- Z') / (2 Y)``
    with ``0 <= Z' <= Z``, so at most ``(A + G) / (2 (B - width))`` and at least ``(A - G - width) /
    (2 B)``.
    """
    numerator, denominator, hidden = numbers
    value = numerator / (2 * denominator)
    high = Fraction(numerator + hidden, 2 * (denominator - width))
    low = Fraction(numerator - hidden - width, 2 * denominator)
    reach = max(high - Fraction(value), Fraction(value) - low)
    return Certain(value, nextafter(float(reach), inf))


def below(bound: int) -> int:
    """A uniform number below a bound of at most 2^60; the bias is below 2^-60."""
    high, low = (int(word) for word in random_words(2))
    return ((high << 64) | low) % bound


@lru_cache(maxsize=8)
def collisions(layout: Layout) -> Integers:
    """Places of ``layout.places`` that another product of two used places reaches.

    Empty for every layout that is accepted; the tests check all of them.
    """
    used = layout.used
    first, second = np.triu_indices(used.size)
    low, high = used[first], used[second]
    numerator, _, hidden, _ = layout.places
    meant = _crossing(low, high, (layout.rising(), layout.falling()), numerator)
    meant |= _crossing(low, high, (layout.falling(), layout.inside()), hidden)
    meant |= (low == layout.totals[0]) & (high == layout.totals[1])
    reached = (low + high)[~meant] % DEGREE
    return np.intersect1d(reached, np.array(layout.places))


def _crossing(
    low: Integers, high: Integers, blocks: tuple[Integers, Integers], place: int
) -> NDArray[np.bool_]:
    """Which pairs of places are one of each block, and meet in a place."""
    first, second = blocks
    return np.isin(low, first) & np.isin(high, second) & (low + high == place)
