"""How counts are laid out in one polynomial so that its square holds the AUC in three coefficients.

``p = sum_i U_i x^i + V_i x^(2J+1-i) + W_i x^(2J+2+i) + a x^-1 + b x^B``: in ``p^2`` the coefficient
of ``x^(2J+1)`` is ``2 sum U_i V_i``, that of ``x^(4J+3)`` is ``2 sum W_i V_i``, and that of
``x^(B-1)`` is ``2 a b`` (Baykara et al. 2024 has the first and the last). As ``x^n = -1``, ``a
x^-1`` is ``-a x^(n-1)``. No other product reaches four coefficients, these and one more: there
``p`` itself may have numbers that the aggregator adds to its answer.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from math import inf, isqrt, nextafter

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.crypto.homomorphic import engine, schemes
from tacit.data.clients import Clients
from tacit.protocols.encrypted.masked_scheme import Certain, Products, check_numbers, class_cells

MAX_NUMBER = 2**57
"""Upper bound of each number of an answer, for each plain modulus; well below that modulus."""
MAX_MULTIPLIER = 2**17
"""Upper bound of the aggregator's multiplier."""
MIN_MULTIPLIER = 2**10
"""Least upper bound of the multiplier that is accepted."""
MULTIPLIER_RANGE = 4
"""Ratio of the largest multiplier to the least."""
PERTURBATION = 2.0**-32
"""Width of the perturbations, as a fraction of the largest possible number."""
TAG = 3
"""Index of the tag's position in ``Layout.positions``."""
MAX_PRODUCTS = 909
"""Largest number of products: with more, other products reach ``Layout.positions``."""


class CheatingError(engine.HomomorphicError):
    """The answer fails the parties' checks; there is no AUC."""


@dataclass(frozen=True)
class Layout:
    """The positions of J products, J further ones and the totals in a polynomial.

    Parameters
    ----------
    products : J.

    Raises
    ------
    ValueError : when they do not fit into the polynomial.

    Examples
    --------
    >>> layout = Layout(100)
    >>> layout.positions
    (201, 807, 403, 605)
    """

    products: int

    def __post_init__(self) -> None:
        if not 5 <= self.products <= MAX_PRODUCTS:
            raise ValueError(
                f"a polynomial holds from 5 to {MAX_PRODUCTS} products, got {self.products}"
            )

    @property
    def totals(self) -> tuple[int, int]:
        """The positions of the denominator's two factors; the first has the opposite sign."""
        return schemes.DEGREE - 1, 8 * self.products + 8

    @property
    def positions(self) -> tuple[int, int, int, int]:
        """The positions of the numbers in the square, in their order, and of a zero."""
        numerator, tied = 2 * self.products + 1, 4 * self.products + 3
        return numerator, 8 * self.products + 7, tied, 6 * self.products + 5

    @cached_property
    def used(self) -> Integers:
        """Every position that a polynomial may use: factors, totals, and ``positions``."""
        blocks = [self.rising(), self.falling(), self.inside()]
        return np.concatenate([*blocks, self.totals, self.positions]).astype(np.int64)

    def rising(self) -> Integers:
        """The positions of the first factors of the numerator, shape (J,)."""
        return np.arange(1, self.products + 1, dtype=np.int64)

    def falling(self) -> Integers:
        """The positions of the second factors of both sums, shape (J,)."""
        return 2 * self.products + 1 - self.rising()

    def inside(self) -> Integers:
        """The positions of the first factors of the pairs of one cell, shape (J,)."""
        return 2 * self.products + 2 + self.rising()


@dataclass(frozen=True)
class Scale:
    """How an answer's numbers are scaled and perturbed, from the agreed bound of records.

    An answer is ``c X + u``, ``c Y + v`` and ``c Z + w`` with ``X = 2 sum T F``, ``Y = 2 P N`` and
    ``Z = 2 sum p n``; all are at most ``most_records^2``. The multiplier c is the aggregator's
    secret. The perturbations u, v and w are uniform up to ``width``, about 1e-7 of the answer. From
    2^17 agreed records on they are at least twice as wide as c, so that every c gives even numbers,
    as X, Y and Z are; at 2^16 every c up to half its bound does, a third of them. So no gcd of the
    three reveals c, and X, Y and Z stay hidden within a factor of ``MULTIPLIER_RANGE``. With fewer
    agreed records, parties that try every c may find it: so few records cannot have both an AUC to
    a millionth and secret totals.

    Parameters
    ----------
    most_records : the agreed bound of all parties' records together.
    moduli : the number of plain moduli, 1 or 2. Everything is computed modulo each of them, and two
        residues give a number below their product (Chinese remainder theorem).

    Raises
    ------
    ValueError : if the numbers would overflow the plain moduli.

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
                "agreed by a hash of their names, or use scheme='bfv', which takes "
                "more records with twice the bytes"
            )

    @classmethod
    def fitting(cls, most_records: int) -> Scale:
        """The scale with as few moduli as the records need."""
        return cls(most_records, 1 if most_records <= cls(2).most else 2)

    @property
    def largest(self) -> int:
        """The upper bound of each number of an answer."""
        return MAX_NUMBER**self.moduli

    @property
    def most(self) -> int:
        """The largest number of records that the moduli allow."""
        return isqrt(self.largest // MIN_MULTIPLIER)

    @property
    def bound(self) -> int:
        """The largest multiplier."""
        return min(MAX_MULTIPLIER, self.largest // self.most_records**2)

    @property
    def width(self) -> int:
        """The upper bound of every perturbation."""
        return max(1, int(self.bound * self.most_records**2 * PERTURBATION))

    def multiplier(self) -> int:
        """A secret multiplier, from the operating system's entropy."""
        least = self.bound // MULTIPLIER_RANGE
        return least + uniform_below(self.bound - least + 1)

    def area(self, numbers: Products, perturbed: bool) -> Certain:
        """The AUC of an answer's numbers, and the largest distance of the exact AUC from it.

        A record's cell is known, but not its position in the cell. Pairs of one cell count half,
        and their true values may all be 1 or all be 0: the exact AUC is within ``sum p n / (2 P
        N)`` of the trapezoid's. Perturbations are at least 0, so the bounds hold for all of them.

        Raises
        ------
        DataError : where a class is absent, or the perturbation is above ``PRECISION``: 2 P N is
            below ``most_records^2 / 1024``, or the multiplier is smaller than agreed.
        CheatingError : for numbers that an honest answer cannot have.
        """
        width = self.width if self.width > 1 else 0
        is_honest = self._plausible(numbers)
        check_numbers(numbers.denominator, is_honest, width, self.most_records, CheatingError)
        return _certain(numbers, width if perturbed else 0)

    def _plausible(self, numbers: Products) -> bool:
        """Whether an honest answer may have these numbers: no count of pairs exceeds all pairs."""
        numerator, denominator, tied = numbers
        largest = self.bound * self.most_records**2 + self.width
        return (
            max(numbers) <= largest
            and numerator <= 2 * denominator + self.width
            and tied <= denominator + self.width
        )


def _certain(numbers: Products, width: int) -> Certain:
    """Bounds over all perturbations from 0 to ``width``, in exact arithmetic.

    With ``A = c X + u``, ``B = c Y + v``, ``G = c Z + w``: the exact AUC is ``(X +- Z') / (2 Y)``
    with ``0 <= Z' <= Z``, so at most ``(A + G) / (2 (B - width))`` and at least ``(A - G - width) /
    (2 B)``.
    """
    numerator, denominator, tied = numbers
    value = numerator / (2 * denominator)
    high = Fraction(numerator + tied, 2 * (denominator - width))
    low = Fraction(numerator - tied - width, 2 * denominator)
    reach = max(high - Fraction(value), Fraction(value) - low)
    return Certain(value, nextafter(float(reach), inf))


def uniform_below(bound: int) -> int:
    """A uniform number below a bound of at most 2^60; the bias is below 2^-60."""
    high, low = (int(word) for word in schemes.random_words(2))
    return ((high << 64) | low) % bound


@dataclass(frozen=True, eq=False)
class Counts:
    """The counts that every client encrypts.

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
        """The counts of one client, without the last axis."""
        return Counts(*(getattr(self, each.name)[..., client] for each in fields(self)))


def cumulative_counts(clients: Clients, thresholds: Floats) -> Counts:
    """The cumulative counts of every client, from the highest threshold down.

    Parameters
    ----------
    clients : the clients.
    thresholds : as in ``class_cells``; evenly spaced in Baykara et al. 2024, section IV-C.

    The curve starts at (0, 0), so that scores of exactly 1 count too. They have a separate cell, in
    which all pairs are ties: its count is exact. Above plus infinity there is no score.

    Raises
    ------
    DataError : for a score outside [0, 1], where thresholds end there.
    """
    positives, negatives = class_cells(clients, thresholds)
    rising = 2 * np.cumsum(positives, axis=0) - positives
    inside = positives.copy()
    inside[0] = 0
    return Counts(rising, negatives, inside, positives.sum(axis=0), negatives.sum(axis=0))
