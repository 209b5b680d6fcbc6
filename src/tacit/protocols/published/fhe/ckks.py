"""The encrypted AUC in CKKS (Baykara et al. 2024): the paper's layout for a semi-honest
aggregator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tacit.arrays import Floats
from tacit.crypto.homomorphic import engine, schemes
from tacit.crypto.homomorphic.keys import key_seed
from tacit.crypto.homomorphic.schemes import SLOTS, CkksEvaluator, CkksSecretKey
from tacit.data.errors import DataError
from tacit.protocols.encrypted.masked_scheme import Certain
from tacit.protocols.published.fhe.packing import Counts

CIPHERTEXTS = 4
"""Ciphertexts of a party: T, F, and each class's total followed by its counts in the cells."""
ANSWERS = 3
RANGE = 32.0
"""Scaled value of the agreed bound of records."""
MAX_MULTIPLIER = 8.0
RELATIVE_PERTURBATION = 1e-7
"""Largest relative perturbation of each number of an answer."""
EVALUATION_ERROR = 2.0**-16
"""Largest error that key switching and rescaling add to a number of an answer. The largest of 160
measured errors, at 100 and 4,095 thresholds, was 1.7e-6; they grow with neither counts nor
parties."""
UPLOAD_ERROR = 2.0**-25
"""Six standard deviations of the error that the uploads add to it, for one party and threshold:
``6 * 2 RANGE * MAX_MULTIPLIER`` times a slot's, ``3.2 sqrt(n / 2) / 2^45``, rounded up."""
MIN_DENOMINATOR = 2.0**-6
"""Least denominator that is accepted: it exceeds the scheme's error."""
DIGITS = 8


@dataclass(frozen=True)
class ApproximateScheme:
    """The settings on which parties and aggregator agree.

    Parameters
    ----------
    thresholds : N.
    most_records : the bound that counts are scaled by.
    perturbed : whether answers are perturbed.
    """

    thresholds: int
    most_records: int
    perturbed: bool

    def __post_init__(self) -> None:
        if not self.thresholds < SLOTS:
            raise ValueError(f"thresholds must be at most {SLOTS - 1}, got {self.thresholds}")

    @property
    def length(self) -> int:
        """The number of used slots of a ciphertext: a total, and one for each cell."""
        return self.thresholds + 1

    def error(self, parties: int) -> float:
        """The largest error that the scheme itself adds to a number of an answer."""
        return EVALUATION_ERROR + UPLOAD_ERROR * math.sqrt(self.thresholds * parties)


@dataclass(frozen=True, eq=False)
class ApproximateParty:
    """What all parties of a session know, and the aggregator does not.

    Parameters
    ----------
    scheme : the agreed settings.
    secret, session : the session's secret and name.
    parties : K.
    """

    scheme: ApproximateScheme
    secret: bytes = field(repr=False)
    session: bytes
    parties: int

    def evaluation_keys(self) -> list[bytes]:
        """The evaluation keys for the aggregator."""
        return self._secret_key.evaluation_keys(self.scheme.length)

    def uploads(self, counts: Counts, parties: Sequence[int]) -> list[list[bytes]]:
        """The four ciphertexts of every party of a batch."""
        secret_key, unit = self._secret_key, RANGE / self.scheme.most_records
        client_counts = [counts.of(place) for place in range(len(parties))]
        return [
            [
                secret_key.encrypted(unit * values.astype(np.float64))
                for values in (
                    each.rising,
                    each.falling,
                    np.append(each.positives, each.inside),
                    np.append(each.negatives, each.falling),
                )
            ]
            for each in client_counts
        ]

    def decrypted(self, answers: Sequence[bytes]) -> Certain:
        """The AUC, and how far the exact one may be from it, rounded.

        Raises
        ------
        HomomorphicError : for bytes that are not answers, and numbers that no honest answer has.
        DataError : where a class is absent.
        """
        if len(answers) != ANSWERS:
            raise engine.HomomorphicError(f"there are {ANSWERS} answers, got {len(answers)}")
        numerator, denominator, paired = (self._secret_key.decrypted(answer) for answer in answers)
        if denominator < MIN_DENOMINATOR:
            raise DataError(
                "the AUC is undefined without both classes, or they are too small for "
                f"most_records={self.scheme.most_records}"
            )
        return self._certain(numerator, denominator, paired).rounded(DIGITS, DIGITS)

    def _certain(self, numerator: float, denominator: float, paired: float) -> Certain:
        """Bounds over all possible perturbations and errors of the scheme.

        ``paired`` is ``2 (P N + sum p n)``: ``(paired - denominator) / (2 denominator)`` is
        the half-range ``sum p n / (2 P N)``.
        """
        error = self.scheme.error(self.parties)
        relative = 1 + (RELATIVE_PERTURBATION if self.scheme.perturbed else 0.0)
        least, most = (denominator - error) / relative, (denominator + error) * relative
        # an AUC is from 0 to 1, and none to all of the pairs share a cell; NaN is in no range
        possible = -error <= numerator <= most + error < math.inf
        if not (possible and least <= paired + error <= 2 * (most + error)):
            raise engine.HomomorphicError(
                "the answer holds numbers that no honest computation gives: the aggregator did not "
                "compute as agreed"
            )
        value = numerator / denominator
        error_bound = max((numerator + error) / least - value, value - (numerator - error) / most)
        half_range = max((paired + error) / least - 1, 0.0) / 2
        return Certain(value, half_range + error_bound)

    @property
    def _secret_key(self) -> CkksSecretKey:
        return CkksSecretKey(key_seed(self.secret, self.session))


@dataclass(frozen=True, eq=False)
class ApproximateAggregator:
    """The aggregator: evaluation keys, ciphertexts, and its secrets.

    Parameters
    ----------
    scheme : the agreed settings.
    keys : the evaluation keys.
    """

    scheme: ApproximateScheme
    keys: Sequence[bytes]

    def answers(self, uploads: Sequence[Sequence[bytes]]) -> list[bytes]:
        """Numerator ``c sum T F``, denominator ``2 c P N``, and ``2 c (P N + sum p n)``; c secret.

        Raises
        ------
        HomomorphicError : for bytes that are not ciphertexts.
        """
        if any(len(upload) != CIPHERTEXTS for upload in uploads):
            raise engine.HomomorphicError(f"every party sends {CIPHERTEXTS} ciphertexts")
        evaluator = CkksEvaluator(self.keys, self.scheme.length)
        rising, falling, positives, negatives = (
            evaluator.total([each[index] for each in uploads]) for index in range(CIPHERTEXTS)
        )
        numerator = evaluator.summed(evaluator.product(rising, falling))
        denominator = evaluator.product(positives, negatives)
        paired = evaluator.summed(evaluator.product(positives, negatives))
        multiplier = 1 + (MAX_MULTIPLIER - 1) * float(_fractions(1)[0])
        wide = RELATIVE_PERTURBATION if self.scheme.perturbed else 0.0
        factors = multiplier * (1 + wide * _fractions(ANSWERS)) * np.array([1.0, 2.0, 2.0])
        products = (numerator, denominator, paired)
        return [
            evaluator.answer(product, float(factor), _mask())
            for product, factor in zip(products, factors, strict=True)
        ]


def _mask() -> Floats:
    """Noise for all slots but the first, as large as any answer."""
    mask = MAX_MULTIPLIER * RANGE**2 * (2 * _fractions(SLOTS) - 1)
    mask[0] = 0.0
    return mask


def _fractions(count: int) -> Floats:
    """Uniform numbers in [0, 1) from the operating system's entropy."""
    return (schemes.random_words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
