"""The aggregator of an evaluation on masked values, which has no key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.crypto.masking.field import MaskedValueError, log_uniform
from tacit.protocols.encrypted.masked.scheme import SEED_BYTES, TAG_BYTES, MaskedScheme
from tacit.protocols.encrypted.masked.verified import coefficients, later_masks
from tacit.protocols.encrypted.masked.words import Words, forms, untagged


@dataclass(frozen=True, eq=False)
class MaskedAggregator:
    """The aggregator: it has no key, adds up, multiplies sums, and picks c.

    Parameters
    ----------
    scheme : the agreed settings.
    session : the session's name.
    """

    scheme: MaskedScheme
    session: bytes

    def answers(self, uploads: Sequence[Sequence[bytes]]) -> list[bytes]:
        """The answer: one message, of ``ANSWER_WORDS`` words.

        Parameters
        ----------
        uploads : every party's message, of all parties: masks cancel in no other sum.

        Raises
        ------
        MaskedValueError : for bytes that are no masked values of this session.
        """
        if any(len(upload) != 1 for upload in uploads):
            raise MaskedValueError("every party sends one message of masked values")
        messages = [untagged(upload[0], self.session) for upload in uploads]
        count, field = self.scheme.thresholds, self.scheme.field
        later = field.elements(())
        if self.scheme.checked:
            seeds = [message[-SEED_BYTES:] for message in messages]
            later = later_masks(seeds, field)
            messages = [message[:-SEED_BYTES] for message in messages]
        summed = field.summed(messages, self.scheme.sent_words)
        words = Words.of(summed[: self.scheme.words], count)
        multiplier = log_uniform(self.scheme.least_bits, self.scheme.octaves)
        values = (
            multiplier * (product - cross) + perturbation - blind
            for product, cross, perturbation, blind in zip(
                forms(words.positives, words.negatives, field),
                words.crossed,
                self.scheme.perturbations(multiplier),
                words.blinded,
                strict=True,
            )
        )
        answer = field.elements((multiplier - words.blinding[0], *values))
        if self.scheme.checked:
            codes, first = np.split(summed[self.scheme.words :], [self.scheme.words])
            masks = np.concatenate([first, later])
            proof = coefficients(words, Words.of(codes, count), multiplier, masks, field)
            answer = np.concatenate([answer, proof])
        return [self.session[:TAG_BYTES] + field.to_bytes(answer)]
