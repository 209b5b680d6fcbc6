"""Both sides of an evaluation on masked values: what parties send and open, and the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit.arrays import Integers
from tacit.crypto import masking
from tacit.crypto.masking import Elements
from tacit.crypto.secure_sum.masking import derive
from tacit.protocols.encrypted.counts import Certain, Products
from tacit.protocols.encrypted.masked import verified
from tacit.protocols.encrypted.masked.scheme import (
    FORMS,
    SEED_BYTES,
    TAG_BYTES,
    WIDTHS,
    MaskedScheme,
    Words,
    certain,
    forms,
    untagged,
)

TOTALS = b"tacit masked evaluation 1 totals"
VERIFIER = b"tacit masked evaluation 1 verifier"
LATER = b"tacit masked evaluation 1 later masks"


@dataclass(frozen=True, eq=False)
class MaskedParty:
    """What all parties of a session know, and the aggregator does not.

    Parameters
    ----------
    scheme : the agreed settings.
    secret, session : the session's secret and name.
    parties : K.
    pairing : the keys that parties share two by two, of the batch's parties, and of each its own.
    """

    scheme: MaskedScheme
    secret: bytes
    session: bytes
    parties: int
    pairing: masking.Pairing

    def uploads(
        self, positives: Integers, negatives: Integers, parties: Sequence[int]
    ) -> list[bytes]:
        """The masked values of every party of a batch.

        Parameters
        ----------
        positives, negatives : of every party in every cell, from the highest down, shape (N, K).
        parties : their indices.
        """
        cells = positives.astype(object).T, negatives.astype(object).T
        return [self._upload(*each) for each in zip(*cells, parties, strict=True)]

    def decrypted(self, answer: bytes) -> Certain:
        """The AUC, and how far the exact one may be from it.

        Raises
        ------
        MaskedValueError : for bytes that no honest aggregator answers.
        DataError : where a class is absent, or there are too few records for the agreed bound.
        """
        return certain(self.opened(answer), self.scheme)

    def opened(self, answer: bytes) -> Products:
        """The numbers ``c X + u``, ``c Y + v`` and ``c Z + w``.

        Raises
        ------
        MaskedValueError : as for ``decrypted``.
        """
        received = untagged(answer, self.session)
        words = self._field.from_bytes(received, self.scheme.answer_words)
        shift, values, proof = words[0], words[1 : 1 + FORMS], words[1 + FORMS :]
        if self.scheme.checked:
            verified.check(
                self._verifier, self.scheme.thresholds, shift, values, proof, self._field
            )
        # (c (B + pad) + u - R - h) - (c - r) pad + h = c B + u
        return Products(*self._field.elements(values - shift * self._pads + self._masks.blinded))

    def _upload(self, positives: Elements, negatives: Elements, party: int) -> bytes:
        scheme, field = self.scheme, self._field
        # a restored party sends the same numbers: two r_i with their R_i would betray the pads
        alone = self.pairing(party, party)
        drawn = masking.total_mask(alone, 1 + FORMS, field)
        pairs = masking.pair_masks(party, self.parties, scheme.sent_words, field, self.pairing)
        words = self._words(positives, negatives, drawn).joined
        words = words + pairs[: scheme.words]
        if party == 0:
            words = words + self._masks.joined
        sent, seed = [field.elements(words)], b""
        if scheme.checked:
            seed = derive(alone, self.session, LATER, SEED_BYTES)
            later = verified.later_masks([seed], field)
            codes = verified.authentication(sent[0], later, self._verifier) + pairs[scheme.words :]
            sent.append(codes + self._verifier.joined if party == 0 else codes)
        message = field.to_bytes(field.elements(np.concatenate(sent)))
        return self.session[:TAG_BYTES] + message + seed

    def _words(self, positives: Elements, negatives: Elements, drawn: Elements) -> Words:
        """One party's words, without masks; it subtracts its perturbations from the R_i."""
        field, masks = self._field, self._masks
        # z_i = B(p_i, b) + B(a, n_i)
        crossed = forms(positives, masks.negatives, field)
        crossed = crossed + forms(masks.positives, negatives, field)
        blinding, perturbations = drawn[:1], self._perturbations(drawn[1:])
        return Words(positives, negatives, crossed, blinding * self._pads - perturbations, blinding)

    def _perturbations(self, drawn: Elements) -> Elements:
        """One party's parts of the three perturbations, where parties perturb the answer.

        Of uniform elements the rest by the part's width is taken, whose bias is below 2^-20.
        """
        part = self.scheme.widest // self.parties if self.scheme.checked else 0
        return drawn % (part * np.array(WIDTHS, dtype=object) + 1)

    @property
    def _field(self) -> masking.Field:
        return self.scheme.field

    @cached_property
    def _masks(self) -> Words:
        """The masks of all sums: a and b, g and h; the sum of the r_i has none."""
        key, count = derive(self.secret, self.session, TOTALS), self.scheme.thresholds
        drawn = masking.total_mask(key, 2 * count + 2 * FORMS, self._field)
        return Words.of(np.append(drawn, 0), count)

    @cached_property
    def _verifier(self) -> verified.VerifierKeys:
        key, count = derive(self.secret, self.session, VERIFIER), self.scheme.words
        return verified.VerifierKeys.of(masking.total_mask(key, 1 + count + FORMS, self._field))

    @cached_property
    def _pads(self) -> Elements:
        masks = self._masks
        return forms(masks.positives, masks.negatives, self._field) - masks.crossed


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

    def answer(self, uploads: Sequence[bytes]) -> bytes:
        """The answer, of ``MaskedScheme.answer_words`` words.

        Parameters
        ----------
        uploads : every party's message, of all parties: masks cancel in no other sum.

        Raises
        ------
        MaskedValueError : for bytes that are no masked values of this session.
        """
        messages = [untagged(upload, self.session) for upload in uploads]
        count, field = self.scheme.thresholds, self.scheme.field
        later = field.elements(())
        if self.scheme.checked:
            seeds = [message[-SEED_BYTES:] for message in messages]
            later = verified.later_masks(seeds, field)
            messages = [message[:-SEED_BYTES] for message in messages]
        summed = field.summed(messages, self.scheme.sent_words)
        words = Words.of(summed[: self.scheme.words], count)
        multiplier = masking.log_uniform(self.scheme.least_bits, self.scheme.octaves)
        products = forms(words.positives, words.negatives, field) - words.crossed
        values = multiplier * products + self.scheme.perturbations(multiplier) - words.blinded
        answer = field.elements((multiplier - words.blinding[0], *values))
        if self.scheme.checked:
            codes, first = np.split(summed[self.scheme.words :], [self.scheme.words])
            masks = np.concatenate([first, later])
            proof = verified.coefficients(words, Words.of(codes, count), multiplier, masks, field)
            answer = np.concatenate([answer, proof])
        return self.session[:TAG_BYTES] + field.to_bytes(answer)
