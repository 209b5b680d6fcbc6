"""The encrypted AUC in CKKS (paper 3): the paper's layout for a semi-honest aggregator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.crypto.homomorphic import HomomorphicError
from tacit.crypto.homomorphic_bfv import random_words
from tacit.crypto.homomorphic_ckks import SLOTS, CkksEvaluator, CkksKeyHolder, Floats
from tacit.crypto.homomorphic_keys import key_seed
from tacit.data.clients import DataError
from tacit.protocols.encrypted_packing import Counts

CIPHERTEXTS = 4
"""T, F and the totals of both classes."""
RANGE = 32.0
"""Counts are scaled so that the agreed bound of records becomes this."""
MOST_MULTIPLIER = 8.0
RELATIVE = 1e-7
"""Numerator and denominator are each perturbed by up to this."""
LEAST = 2.0**-16
"""Denominators below are lost in the scheme's own error."""
DIGITS = 8


@dataclass(frozen=True)
class ApproximateScheme:
    """What parties and aggregator agree on.

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
        if not self.thresholds <= SLOTS:
            raise ValueError(f"thresholds must be at most {SLOTS}, got {self.thresholds}")


@dataclass(frozen=True, eq=False)
class ApproximateParty:
    """What all parties of a session share, and the aggregator does not have.

    Parameters
    ----------
    scheme : what was agreed.
    secret, session : the session's secret and name.
    """

    scheme: ApproximateScheme
    secret: bytes
    session: bytes

    def evaluation_keys(self) -> list[bytes]:
        """What the aggregator is given."""
        return self._holder.evaluation_keys(self.scheme.thresholds)

    def uploads(self, counts: Counts, parties: Sequence[int]) -> list[list[bytes]]:
        """The four ciphertexts of every party of a batch."""
        holder, unit = self._holder, RANGE / self.scheme.most_records
        own = [counts.of(place) for place in range(len(parties))]
        return [
            [
                holder.encrypted(unit * values.astype(np.float64))
                for values in (each.rising, each.falling, each.positives, each.negatives)
            ]
            for each in own
        ]

    def opened(self, answers: Sequence[bytes]) -> float:
        """The AUC, rounded.

        Raises
        ------
        HomomorphicError : for bytes that are no answers.
        DataError : where a class is absent.
        """
        if len(answers) != 2:
            raise HomomorphicError(f"there are 2 answers, got {len(answers)}")
        numerator, denominator = (self._holder.decrypted(answer) for answer in answers)
        if denominator < LEAST:
            raise DataError(
                "the AUC is undefined without both classes, or they are too small beside "
                f"most_records={self.scheme.most_records}"
            )
        return round(numerator / denominator, DIGITS)

    @property
    def _holder(self) -> CkksKeyHolder:
        return CkksKeyHolder(key_seed(self.secret, self.session))


@dataclass(frozen=True, eq=False)
class ApproximateAggregator:
    """The aggregator: evaluation keys, ciphertexts, and secrets of its own.

    Parameters
    ----------
    scheme : what was agreed.
    keys : the evaluation keys.
    """

    scheme: ApproximateScheme
    keys: Sequence[bytes]

    def answers(self, uploads: Sequence[Sequence[bytes]]) -> list[bytes]:
        """Numerator ``c sum T F`` and denominator ``2 c P N``, c secret.

        Raises
        ------
        HomomorphicError : for bytes that are no ciphertexts.
        """
        if any(len(upload) != CIPHERTEXTS for upload in uploads):
            raise HomomorphicError(f"every party sends {CIPHERTEXTS} ciphertexts")
        evaluator = CkksEvaluator(self.keys, self.scheme.thresholds)
        rising, falling, positives, negatives = (
            evaluator.total([each[place] for each in uploads]) for place in range(CIPHERTEXTS)
        )
        numerator = evaluator.summed(evaluator.product(rising, falling))
        denominator = evaluator.product(positives, negatives)
        multiplier = 1 + (MOST_MULTIPLIER - 1) * float(_fractions(1)[0])
        wide = RELATIVE if self.scheme.perturbed else 0.0
        first, second = multiplier * (1 + wide * _fractions(2))
        return [
            evaluator.answer(numerator, float(first), _mask()),
            evaluator.answer(denominator, 2 * float(second), _mask()),
        ]


def _mask() -> Floats:
    """Noise for all slots but the first, as wide as any answer."""
    mask = MOST_MULTIPLIER * RANGE**2 * (2 * _fractions(SLOTS) - 1)
    mask[0] = 0.0
    return mask


def _fractions(count: int) -> Floats:
    """Uniform numbers in [0, 1) from the operating system's entropy."""
    return (random_words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
