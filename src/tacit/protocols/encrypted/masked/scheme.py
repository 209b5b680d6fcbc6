"""The settings of an evaluation on masked values, and what parties make of an answer's numbers."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from math import floor, inf, log2, nextafter
from typing import NamedTuple

from tacit.crypto.masking.field import SIZES, Field, MaskedValueError
from tacit.data.errors import DataError
from tacit.protocols.encrypted.counts import Certain

FORMS = 3
TAG_BYTES = 8
"""Bytes of the session's name before masked values."""

MOST_RECORDS, MOST_CHECKED = 2**32, 2**26
"""The largest bound of all records; the second one where answers are checked."""
LEAST_BITS = 12
"""The multiplier is at least 2^12, so that perturbations below it are fine steps."""
LEAST_OCTAVES, MOST_OCTAVES = 4, 24
MARGIN = 2**16
"""No number of an honest answer is above this part of the field: others are refused."""
PRECISION = 2.0**-20
"""Largest accepted perturbation, as a fraction of the denominator's number."""
SLACK = 2 * PRECISION
"""What perturbations add to a certain half-range, whatever they were."""
SMALLEST = 2.0**-10
"""Least ``P N``, as a fraction of ``most_records^2``, that is sure to be accepted."""
CHECKED_MARGIN = 4
"""Room in the field for checks: they hold for twice as many records as were agreed."""
WIDEST_FIELD = SIZES[-1]


class Products(NamedTuple):
    """The three forms' values, or those numbers of an answer.

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
        an answer a proof; the parties perturb it (``verified``).
    least_bits : the multiplier is at least ``2**least_bits``.

    Raises
    ------
    ValueError : for a bound that the field has no room for.

    Examples
    --------
    >>> scheme = MaskedScheme(100, 2**20)
    >>> scheme.octaves, scheme.width(2**25) == 2**25
    (10, True)
    """

    thresholds: int
    most_records: int
    perturbed: bool = True
    checked: bool = False
    least_bits: int = LEAST_BITS

    def __post_init__(self) -> None:
        most = MOST_CHECKED if self.checked else MOST_RECORDS
        if not 2 <= self.most_records <= most:
            raise ValueError(
                f"most_records must be from 2 to {most} with masked values"
                f"{' and a malicious aggregator' * self.checked}, got {self.most_records}"
            )

    @property
    def field(self) -> Field:
        """The least field that holds ``MARGIN`` times every number of an honest answer.

        With checks it holds every product of such a number and one of the true ones: so no answer
        of another ratio is accepted (``verified``).
        """
        if self.checked:
            # (c M^2 / 2 + c) (X + Y), X + Y <= 3 M^2 / 4
            return Field.above(CHECKED_MARGIN * self.honest_most * self.most_records**2)
        return Field.above(MARGIN * self.honest_most)

    @property
    def honest_most(self) -> int:
        """No number of an answer of an honest aggregator is above this one."""
        # c (2 P N + 1) <= c (M^2 / 2 + 1)
        return (self.most_records**2 // 2 + 1) << (self.least_bits + self.octaves)

    @property
    def accepted_most(self) -> int:
        """The largest number of an answer that a party accepts."""
        return self.honest_most if self.checked else self.field.prime // MARGIN

    @property
    def words(self) -> int:
        """Masked values that a party sends: p, n, the z_i, the R_i and r_i."""
        return 2 * self.thresholds + 2 * FORMS + 1

    @property
    def octaves(self) -> int:
        """k: totals a factor 2 apart are told apart from an answer with advantage 1/k at most.

        The more, the less surely a party can bound the perturbation: it does not know c. So k is
        the most with which every accepted ``P N`` keeps the perturbation below ``PRECISION``.
        It holds for who does not know ``P + N``: with it, few class sizes fit an answer.
        """
        # 2^k <= PRECISION * SMALLEST * M^2
        most = floor(log2(PRECISION * SMALLEST) + 2 * log2(self.most_records))
        if self.checked:
            # 4 (2^(12 + k) M^2 / 2) M^2 must fit the widest field
            room = CHECKED_MARGIN * (self.most_records**2 // 2 + 1) * self.most_records**2
            most = min(most, WIDEST_FIELD - 1 - self.least_bits - room.bit_length())
        return min(max(most, LEAST_OCTAVES), MOST_OCTAVES)

    @property
    def widest(self) -> int:
        """The largest perturbation; 0 for bounds of at most a few hundred records."""
        return self.width(1 << (self.least_bits + self.octaves)) - 1 if self.perturbed else 0

    def accepts(self, pairs: int) -> bool:
        """Whether parties accept an answer about so many pairs, whatever its multiplier is."""
        return self.widest <= PRECISION * pairs * 2**self.least_bits

    @property
    def sent_words(self) -> int:
        """Words of an upload: with checks also a code for each, and three masks for each form."""
        return 2 * self.words + 3 * FORMS if self.checked else self.words

    @property
    def answer_words(self) -> int:
        """Words of an answer; with checks also three coefficients for each form."""
        return 1 + FORMS + (3 * FORMS if self.checked else 0)

    @property
    def upload_bytes(self) -> int:
        """Bytes of a party's masked values."""
        return TAG_BYTES + self.sent_words * self.field.word_bytes

    def width(self, multiplier: int) -> int:
        """Perturbations are uniform below this: c, so that every total fits an answer equally.

        It is less where a bound below about 131,000 records would not keep it below ``PRECISION``;
        then an answer may betray the totals.
        """
        fraction = min(1.0, PRECISION * SMALLEST * self.most_records**2 / 2**self.octaves)
        # int() of a float above 2^53 may exceed the multiplier itself
        return max(1, min(multiplier, int(multiplier * fraction)))

    def perturbation(self, multiplier: int) -> int:
        """The aggregator's perturbation, from the operating system's entropy.

        It is 0 with checks, where each party adds a part of ``widest``.
        """
        alone = self.perturbed and not self.checked
        return secrets.randbelow(self.width(multiplier)) if alone else 0


def certain(numbers: Products, scheme: MaskedScheme) -> Certain:
    """The AUC of an answer's numbers, and the largest distance of the exact AUC from it.

    Pairs of one cell count half, and their true values may all be 1 or all be 0. With ``A = c X +
    u``, ``B = c Y + v`` and ``G = c Z + w``, perturbations from 0 to ``widest <= PRECISION B``:

        (X + Z) / (2 Y) <= (A + G) / (2 (B - widest)) <= (A + G) / (2 B) + 1.6 PRECISION

    as ``A <= 2 B`` and ``G <= B`` but for perturbations; and ``(X - Z) / (2 Y) >= (A - widest - G)
    / (2 B)``. What is added is ``SLACK`` always: a sharper bound would betray the size of B, and
    with c the class totals, to an aggregator that is told.

    Raises
    ------
    MaskedValueError : for numbers that no honest answer has.
    DataError : where a class is absent, or too few records for the bound.
    """
    numerator, denominator, tied = numbers
    widest = scheme.widest
    if max(numbers) > scheme.accepted_most or not (
        numerator <= 2 * denominator + widest and tied <= denominator + widest
    ):
        raise MaskedValueError(
            "the answer holds numbers that no honest computation gives: the aggregator did not "
            f"compute as agreed, or there are more than {scheme.most_records} records"
        )
    if denominator <= widest:
        raise DataError("the AUC is undefined without both classes, or without enough records")
    if widest > PRECISION * denominator:
        raise DataError(
            f"the perturbation, made for most_records={scheme.most_records}, exceeds "
            f"{PRECISION:.0e} of the answer: agree on a bound nearer to the number of records"
        )
    slack = SLACK if scheme.perturbed else 0.0
    value, reach = numerator / (2 * denominator), tied / (2 * denominator)
    return Certain(value, nextafter(nextafter(reach, inf) + slack, inf))
