"""The encrypted AUC on masked counts: what parties count, settings, words, and what answers say.

With p and n the positives and negatives of all parties in every cell, from the highest down, and
``T_j = 2 (p_0 + ... + p_j) - p_j``, three bilinear forms of p and n give the AUC ``X / (2 Y)`` and
its certain half-range ``Z / (2 Y)``:

    X = sum_j T_j n_j,    Y = (sum p) (sum n),    Z = sum_{j > 0} p_j n_j

Labelled masks (Catalano and Fiore 2015; Barbosa, Catalano and Fiore 2017), in a prime field. The
parties know a, b and g, which the aggregator does not. Party i sends ``p_i``, ``n_i``, and for each
form B the number ``z_i = B(p_i, b) + B(a, n_i)``, all masked so that their sums are ``p + a``,
``n + b`` and ``z + g``. So the aggregator has the product and a pad, which the parties know:

    B(p + a, n + b) - (z + g) = B(p, n) + pad,    pad = B(a, b) - g

It is blinded without another round: each party has its own ``r_i`` and sends it, and ``R_i = r_i
pad``, masked so that they sum to ``R + h``. The aggregator, with r the sum of the r_i, picks c and
u and answers ``D = c - r`` and ``c (B + pad) + u - (R + h)``. The parties add ``h - D pad``: what
is left is ``c B(p, n) + u``.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from functools import cached_property
from math import floor, inf, log2, nextafter
from typing import NamedTuple

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.crypto.masking import Elements, Field, MaskedValueError
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.protocols.shared import counting

FORMS = 3
TAG_BYTES = 8
"""Bytes of the session's name before masked values."""
SEED_BYTES = 16
"""With checks, bytes of the seed of a party's later masks, after its words."""

MOST_RECORDS = 2**32
"""The largest bound of all records."""
LEAST_BITS = 12
"""The multiplier is at least 2^12, so that perturbations below it are fine steps."""
LEAST_OCTAVES, MOST_OCTAVES = 4, 24
SPARE_BITS, CHECKED_SPARE_BITS = 8, 4
"""By how many bits perturbations are wider than every product of totals; where parties perturb."""
SPREAD_BITS = 4
"""By how many bits the parties' perturbation is wider than the largest multiplier: it is a sum of
parts, which lies near its middle."""
MARGIN = 2**16
"""No number of an honest answer is above this part of the field: others are refused."""
PRECISION = 2.0**-20
"""Largest accepted perturbation, as a fraction of the denominator's number."""
SLACK = 2 * PRECISION
"""What perturbations add to a certain half-range, whatever they were."""
SMALLEST = 2.0**-10
"""Least ``P N``, as a fraction of ``most_records^2``, that is sure to be accepted."""
REACH_BITS = 30
"""``1 / (PRECISION SMALLEST)``, as a power of 2."""
TIMES_RECORDS = 2
"""Checks hold for so many times the records that were agreed."""
WIDTHS = (2, 1, 1)
"""Widths of the three perturbations: where numerator and tied pairs are both even or both odd, each
multiplier fits them in one way, as each fits the denominator."""


def class_cells(clients: Clients, thresholds: Floats) -> tuple[Integers, Integers]:
    """Every client's positives and negatives in every cell, from the highest down, shape (N, K).

    Parameters
    ----------
    clients : the clients.
    thresholds : ascending from 0 to 1, or from minus to plus infinity, shape (N,).

    Raises
    ------
    DataError : for a score outside [0, 1], where thresholds end there.
    """
    positives, records = counting.cell_counts(clients, thresholds)
    return positives[::-1], (records - positives)[::-1]


@dataclass(frozen=True)
class Certain:
    """An AUC, and a bound of its distance to the exact one.

    Parameters
    ----------
    value : the AUC.
    half_range : the largest distance of the exact AUC of the records from ``value``.
    """

    value: float
    half_range: float

    def rounded(self, decimals: int, digits: int) -> Certain:
        """The AUC rounded to ``decimals``; the half-range rounded up to ``digits`` digits."""
        value = round(self.value, decimals)
        reach = nextafter(self.half_range + abs(value - self.value), inf)
        return Certain(value, rounded_up(reach, digits, decimals))


def rounded_up(value: float, digits: int, decimals: int) -> float:
    """A positive number rounded up to ``digits`` digits, and at most ``decimals`` decimal places.

    Examples
    --------
    >>> rounded_up(0.0123456, digits=3, decimals=7), rounded_up(0.00000012, digits=3, decimals=7)
    (0.0124, 2e-07)
    """
    exact = Decimal(value)
    finest = max(exact.adjusted() - digits + 1, -decimals) if exact else -decimals
    return float(exact.quantize(Decimal((0, (1,), finest)), ROUND_CEILING))


class Products(NamedTuple):
    """The three forms of all parties' counts, or the numbers of an answer about them.

    An answer's numbers are multiplied by the aggregator's secret and perturbed. In
    ``published.fhe`` all are twice these.

    Parameters
    ----------
    numerator : of ``X = 2 A P N``.
    denominator : of ``Y = P N``.
    tied : of ``Z``, the pairs of one cell.
    """

    numerator: int
    denominator: int
    tied: int


@dataclass(frozen=True)
class MaskedScheme:
    """The settings on which parties and aggregator agree.

    Parameters
    ----------
    thresholds : N.
    most_records : the bound of all records.
    perturbed : whether answers are perturbed.
    checked : whether the aggregator may be malicious: every word has an authentication code, and
        an answer a proof; the parties perturb it (``masked_sides``).

    Raises
    ------
    ValueError : for a bound outside its range.

    Notes
    -----
    **What an opened answer says of the totals.** With ``t = 2^least_bits`` the multiplier c is
    log-uniform from t to ``2^k t``; with ``V = 2^k t`` and ``m = floor(V / c)`` the perturbations v
    and w are uniform below ``c m``, u below ``2 c m - 1``. A party that knows ``M = P + N`` tries
    every P' by the numbers ``A = c X + u``, ``B = c Y + v``, ``G = c Z + w``. For a multiplier c'
    there are m' whole Z', of X' of their parity m' as well, that fit, each pair with the
    probability ``1 / (2 c' m' c' m')``: together ``1 / (2 c'^2)``, whatever A and G are. So where
    nothing is known of X' and Z' but their parity, all densities ``1 / Y'^2`` being alike, the
    likelihood of ``Y' = P' (M - P')`` is

        sum over c' with 0 <= B - c' Y' < c' m' of 1 / (c'^4 m' Y'^2)

    Those are all whole c' of an interval of length ``c' m' / (Y' + m')``, about ``V / (2 Y')`` or
    more, and a part of 2^-18 of c' or less. With ``V >= 2^(SPARE_BITS + 1) Y'`` their number is
    that length within a part of ``2^-SPARE_BITS``, and the sum, with ``c' = B / Y'``, is ``B^-3``
    within that part: the same for every P', but for one in a thousand whose interval holds an end
    of the range of c or of an m'. Hence a posterior of the class sizes is the prior, cut to the k
    octaves around an answer, within ``2^(1 - SPARE_BITS)`` in total variation; and two sizes whose
    products differ by j octaves are distinguished with advantage ``j / k + 2^(1 - SPARE_BITS)``. It
    holds from 2^17 agreed records on; with fewer V is cut (``reach``).

    With checks e_j is a sum of the parties' parts, which no one else chooses: each multiple of c'
    then fits nearly alike where ``2^SPREAD_BITS c'`` is many times the width of a part, or several
    parts are unknown (docs/decisions/0008).

    Examples
    --------
    >>> scheme = MaskedScheme(100, 2**20)
    >>> scheme.octaves, scheme.least_bits, scheme.field.bits
    (10, 38, 104)
    >>> scheme.reach == 2**48 >= 2**9 * 2**38
    True
    """

    thresholds: int
    most_records: int
    perturbed: bool = True
    checked: bool = False

    def __post_init__(self) -> None:
        if not 2 <= self.most_records <= MOST_RECORDS:
            raise ValueError(
                f"most_records must be from 2 to {MOST_RECORDS} with masked values, "
                f"got {self.most_records}"
            )

    @property
    def field(self) -> Field:
        """The least field that holds ``MARGIN`` times every number of an honest answer.

        With checks it holds every product of such a number and one of the true ones: so no answer
        of another ratio is accepted (``masked_sides``).
        """
        if not self.checked:
            return Field.above(MARGIN * self.honest_most)
        # w_0 Y and w_1 X are at most honest_most (T M)^2 / 4, T = TIMES_RECORDS, and not below
        # -2 reach (T M)^2 / 4: w_0 Y - w_1 X is between them
        most_pairs = (TIMES_RECORDS * self.most_records) ** 2 // 4
        return Field.above((self.honest_most + 2 * self.reach) * most_pairs)

    @property
    def honest_most(self) -> int:
        """No number of an answer of an honest aggregator is above this one, and none but the
        numerator above half of it."""
        # c X + u <= c M^2 / 2 + 2 reach, c Y + v <= c M^2 / 4 + reach
        largest = self.most_records**2 << (self.least_bits + self.octaves)
        return largest // 2 + 2 * self.reach

    @property
    def accepted_most(self) -> int:
        """The largest numerator of an answer that a party accepts; twice the other numbers'."""
        return self.honest_most if self.checked else self.field.prime // MARGIN

    @property
    def words(self) -> int:
        """Masked values that a party sends: p, n, the z_i, the R_i and r_i."""
        return 2 * self.thresholds + 2 * FORMS + 1

    @cached_property
    def least_bits(self) -> int:
        """The multiplier is at least ``2**least_bits``: perturbations exceed every ``P N``."""
        pairs_bits = (self.most_records**2 // 4).bit_length()
        spare = CHECKED_SPARE_BITS if self.checked else SPARE_BITS
        return max(pairs_bits + spare + 1 - self.octaves - self._spread, LEAST_BITS)

    @cached_property
    def octaves(self) -> int:
        """k: totals a factor 2 apart are distinguished from an answer with advantage 1/k at most.

        The more, the less surely a party can bound the perturbation: it does not know c. So k is
        the most with which every accepted ``P N`` keeps the perturbation below ``PRECISION``.
        """
        # 2^k 2^spread <= PRECISION * SMALLEST * M^2
        most = floor(2 * log2(self.most_records)) - REACH_BITS - self._spread
        return min(max(most, LEAST_OCTAVES), MOST_OCTAVES)

    @cached_property
    def reach(self) -> int:
        """V, which no perturbation reaches, that of the numerator not twice.

        It is cut where a bound below about 131,000 records would not keep perturbations below
        ``PRECISION``, with checks 524,000; then an answer may betray the totals.
        """
        wanted = 1 << (self.least_bits + self.octaves + self._spread)
        return max(1, min(wanted, (self.most_records**2 << self.least_bits) >> REACH_BITS))

    @property
    def widest(self) -> int:
        """The largest perturbation; 0 for bounds of at most a few hundred records."""
        return self.reach - 1 if self.perturbed else 0

    @property
    def _spread(self) -> int:
        return SPREAD_BITS if self.checked else 0

    def accepts(self, pairs: int) -> bool:
        """Whether parties accept an answer about so many pairs, whatever its multiplier is."""
        return self.widest <= PRECISION * pairs * 2**self.least_bits

    @property
    def sent_words(self) -> int:
        """Words of an upload: with checks also a code for each, and a mask for each form."""
        return 2 * self.words + FORMS if self.checked else self.words

    @property
    def answer_words(self) -> int:
        """Words of an answer; with checks also three coefficients for each form."""
        return 1 + FORMS + (3 * FORMS if self.checked else 0)

    @property
    def upload_bytes(self) -> int:
        """Bytes of a party's masked values."""
        seed = SEED_BYTES if self.checked else 0
        return TAG_BYTES + self.sent_words * self.field.word_bytes + seed

    def width(self, multiplier: int) -> int:
        """Perturbations are uniform below this: the largest multiple of c up to ``reach``."""
        return multiplier * (self.reach // multiplier) or self.reach

    def perturbations(self, multiplier: int) -> Elements:
        """The aggregator's u, v and w, from the operating system's entropy.

        They are 0 with checks, where each party adds a part of ``widest``.
        """
        last = 0 if self.checked or not self.perturbed else self.width(multiplier) - 1
        return np.array([secrets.randbelow(times * last + 1) for times in WIDTHS], dtype=object)

    def is_honest(self, numbers: Products) -> bool:
        """Whether an honest aggregator may have answered these, about the agreed records."""
        numerator, denominator, tied = numbers
        return (
            numerator <= self.accepted_most
            and 2 * max(denominator, tied) <= self.accepted_most
            and numerator <= 2 * (denominator + self.widest)
            and tied <= denominator + self.widest
        )


def certain(numbers: Products, scheme: MaskedScheme) -> Certain:
    """The AUC of an answer's numbers, and the largest distance of the exact AUC from it.

    Pairs of one cell count half, and their true values may all be 1 or all be 0. With ``A = c X +
    u``, ``B = c Y + v`` and ``G = c Z + w``, v and w from 0 to ``widest <= PRECISION B``, u to
    twice as much:

        (X + Z) / (2 Y) <= (A + G) / (2 (B - widest)) <= (A + G) / (2 B) + 1.6 PRECISION

    as ``A <= 2 B`` and ``G <= B`` but for perturbations; and ``(X - Z) / (2 Y) >= (A - 2 widest -
    G) / (2 B)``. What is added is ``SLACK`` always: a sharper bound would betray the size of B, and
    with c the class totals, to an aggregator that is told.

    Raises
    ------
    MaskedValueError : for numbers that no honest answer has.
    DataError : where a class is absent, or too few records for the bound.
    """
    numerator, denominator, tied = numbers
    check_numbers(denominator, scheme.is_honest(numbers), scheme.widest, scheme.most_records)
    slack = SLACK if scheme.perturbed else 0.0
    value, reach = numerator / (2 * denominator), tied / (2 * denominator)
    return Certain(value, nextafter(nextafter(reach, inf) + slack, inf))


def check_numbers(
    denominator: int,
    is_honest: bool,
    widest: int,
    most_records: int,
    error: type[ValueError] = MaskedValueError,
) -> None:
    """Refuse an answer whose numbers say nothing of an AUC.

    Parameters
    ----------
    denominator : the number that a perturbation of up to ``widest`` may have moved.
    is_honest : whether an honest aggregator may have answered these numbers.
    widest : the largest perturbation.
    most_records : the agreed bound.
    error : what is raised for numbers of no honest aggregator.

    Raises
    ------
    ValueError : ``error``, for numbers that no honest answer has.
    DataError : where a class is absent, or too few records for the bound.
    """
    if not is_honest:
        raise error(
            "the answer holds numbers that no honest computation gives: the aggregator did not "
            f"compute as agreed, or there are more than {most_records} records"
        )
    if denominator <= widest:
        raise DataError("the AUC is undefined without both classes, or without enough records")
    if widest > PRECISION * denominator:
        raise DataError(
            f"the perturbation, made for most_records={most_records}, exceeds "
            f"{PRECISION:.0e} of the answer: agree on a bound nearer to the number of records "
            "(or the aggregator chose too small a multiplier)"
        )


class Words(NamedTuple):
    """The words of one party, of their sum, or what belongs to each of them.

    Parameters
    ----------
    positives, negatives : of every cell, from the highest down, shape (N,) each.
    crossed : of each form, what a party's counts make with the masks of all, shape (FORMS,).
    blinded : of each form, the pad times a party's own number, shape (FORMS,).
    blinding : a party's own number, shape (1,).
    """

    positives: Elements
    negatives: Elements
    crossed: Elements
    blinded: Elements
    blinding: Elements

    @classmethod
    def of(cls, words: Elements, thresholds: int) -> Words:
        """The parts of an upload's words, shape (2 N + 2 FORMS + 1,)."""
        ends = np.cumsum([thresholds, thresholds, FORMS, FORMS])
        return cls(*np.split(words, ends))

    @property
    def joined(self) -> Elements:
        """The words in the order of an upload."""
        return np.concatenate(self)


def forms(positives: Elements, negatives: Elements, field: Field) -> Elements:
    """X, Y and Z of positives and negatives in every cell, from the highest down, shape (FORMS,).

    Examples
    --------
    >>> field = Field(64)
    >>> forms(field.elements([1, 2]), field.elements([0, 3]), field).tolist()
    [12, 9, 6]
    """
    rising = 2 * np.cumsum(positives) - positives
    tied = positives[1:].dot(negatives[1:])
    return field.elements((rising.dot(negatives), positives.sum() * negatives.sum(), tied))


def untagged(message: bytes, session: bytes) -> bytes:
    """The masked values of a message of this session.

    Raises
    ------
    MaskedValueError : for a message of another one.
    """
    if message[:TAG_BYTES] != session[:TAG_BYTES]:
        raise MaskedValueError("masked values of another session, or none")
    return message[TAG_BYTES:]
