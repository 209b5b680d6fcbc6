"""Both sides of an evaluation on masked values: what parties send and open, and the answer.

Where the aggregator may be malicious, with a proof that it computed as agreed, which only the
parties can check (experimental).

The parties share a secret D and, for every word w of the sums, a secret K_w. With its words they
send codes whose sums are ``M_w = K_w + D w``. A line ``g_w(x) = M_w - x w`` is K_w at x = D, so the
parties know its value there and the aggregator knows the line; of the constant 1 the line is ``-x``
(line-point zero knowledge: Dittmer, Ishai and Ostrovsky 2021; QuickSilver: Yang et al. 2021). For
each form B, with a, b, z, R and r the words' sums and ``c = r + D_c``, the answer Y is right where

    (r + D_c) (B(a, b) - z) - R - Y = 0

Made homogeneous of degree 3 in the lines, the left side is a polynomial of x whose coefficient of
x^3 is this number, but for its sign. Where it is 0, three coefficients are left, which the
aggregator knows; it sends them. The parties evaluate them at D, and compare with the same
polynomial of the K_w.

**Soundness.** Codes and masks hide D, so the aggregator chooses all it sends without it. Where an
answer is not the one of these words, or a coefficient is changed, both sides differ by a polynomial
in D of degree at most 3 that is not zero: they agree for at most 3 of the q values of D. A party
that was left out, counted twice or replaced changes the sums of words and codes by numbers that are
uniform for the aggregator, and so does a word of another session. So an accepted answer holds, but
for a probability of ``9 / q``, the numbers ``W_j = c B_j + e_j`` modulo q, with one c for all three
and the parties' own e_j from 0 to ``widest``.

**One ratio.** A c may wrap around. With ``w_j = W_j - e_j`` as integers, ``w_0 Y - w_1 X`` is a
multiple of q, and between -q and q for accepted numbers, by the choice of the field. So it is 0,
the ratio of accepted numbers is X / Y but for the e_j, and likewise Z / Y. Parties refuse an answer
that the e_j may have moved by more than 2^-20 of the denominator, which a small c would.

**Secrecy.** Each party alone draws two of three masks ``A_0, A_1, A_2`` of every form, from a
seed that it sends, with ``A_0 + A_1 D + A_2 D^2`` a number that only all parties' sum of is known.
Added to the coefficients, their sums leave the parties with what they can compute themselves. The
aggregator may refuse to answer, or choose a c with which the parties refuse for some totals: one
bit, since all parties open one answer (``confirming``). docs/protocols/encrypted.md has the steps
one by one, and what they leave open.

This has no reviewed proof yet, and is marked experimental for that reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tacit.arrays import Integers
from tacit.crypto import masking
from tacit.crypto.masking import Elements, Field, MaskedValueError, total_mask
from tacit.crypto.secure_sum.masking import derive
from tacit.protocols.encrypted import masked_scheme
from tacit.protocols.encrypted.masked_scheme import FORMS, MaskedScheme, Products, Words, forms

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
    secret: bytes = field(repr=False)
    session: bytes
    parties: int
    pairing: masking.Pairing = field(repr=False)

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

    def decrypted(self, answer: bytes) -> masked_scheme.Certain:
        """The AUC, and how far the exact one may be from it.

        Raises
        ------
        MaskedValueError : for bytes that no honest aggregator answers.
        DataError : where a class is absent, or there are too few records for the agreed bound.
        """
        return masked_scheme.certain(self.opened(answer), self.scheme)

    def opened(self, answer: bytes) -> Products:
        """The numbers ``c X + u``, ``c Y + v`` and ``c Z + w``.

        Raises
        ------
        MaskedValueError : as for ``decrypted``.
        """
        received = masked_scheme.untagged(answer, self.session)
        words = self._field.from_bytes(received, self.scheme.answer_words)
        shift, values, proof = words[0], words[1 : 1 + FORMS], words[1 + FORMS :]
        if self.scheme.checked:
            check(self._verifier, self.scheme.thresholds, shift, values, proof, self._field)
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
            seed = derive(alone, self.session, LATER, masked_scheme.SEED_BYTES)
            later = later_masks([seed], field)
            codes = authentication(sent[0], later, self._verifier) + pairs[scheme.words :]
            sent.append(codes + self._verifier.joined if party == 0 else codes)
        message = field.to_bytes(field.elements(np.concatenate(sent)))
        return self.session[: masked_scheme.TAG_BYTES] + message + seed

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
        return drawn % (part * np.array(masked_scheme.WIDTHS, dtype=object) + 1)

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
    def _verifier(self) -> VerifierKeys:
        key, count = derive(self.secret, self.session, VERIFIER), self.scheme.words
        return VerifierKeys.of(masking.total_mask(key, 1 + count + FORMS, self._field))

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
        messages = [masked_scheme.untagged(upload, self.session) for upload in uploads]
        count, field = self.scheme.thresholds, self.scheme.field
        later = field.elements(())
        if self.scheme.checked:
            seeds = [message[-masked_scheme.SEED_BYTES :] for message in messages]
            later = later_masks(seeds, field)
            messages = [message[: -masked_scheme.SEED_BYTES] for message in messages]
        summed = field.summed(messages, self.scheme.sent_words)
        words = Words.of(summed[: self.scheme.words], count)
        multiplier = masking.log_uniform(self.scheme.least_bits, self.scheme.octaves)
        products = forms(words.positives, words.negatives, field) - words.crossed
        values = multiplier * products + self.scheme.perturbations(multiplier) - words.blinded
        answer = field.elements((multiplier - words.blinding[0], *values))
        if self.scheme.checked:
            codes, first = np.split(summed[self.scheme.words :], [self.scheme.words])
            masks = np.concatenate([first, later])
            proof = coefficients(words, Words.of(codes, count), multiplier, masks, field)
            answer = np.concatenate([answer, proof])
        return self.session[: masked_scheme.TAG_BYTES] + field.to_bytes(answer)


REFUSED = (
    "the answer is refused: its proof fails, so it is not computed as agreed from every party's "
    "counts of this session, once"
)


@dataclass(frozen=True, eq=False, repr=False)
class VerifierKeys:
    """What the parties check an answer with; all of them know it, and the aggregator does not.

    Parameters
    ----------
    point : D.
    words : K_w, of every word of the sums, shape (W,).
    masks : the sum over parties of ``A_0 + A_1 D + A_2 D^2`` for each form, shape (FORMS,).
    """

    point: int
    words: Elements
    masks: Elements

    @classmethod
    def of(cls, stream: Elements) -> VerifierKeys:
        """From ``1 + W + FORMS`` elements that all parties derive."""
        return cls(int(stream[0]), stream[1:-FORMS], stream[-FORMS:])

    @property
    def joined(self) -> Elements:
        """What the first party adds to its codes and first masks, shape (W + FORMS,)."""
        return np.concatenate([self.words, self.masks])


def later_masks(seeds: Sequence[bytes], field: Field) -> Elements:
    """The sums of parties' own ``A_1`` of each form, then ``A_2``, from the seeds that they send.

    Parameters
    ----------
    seeds : of each party ``SEED_BYTES`` bytes that it alone derives; the aggregator learns them,
        and no other party.
    field : the session's field.

    Raises
    ------
    MaskedValueError : for another number of bytes.
    """
    for seed in seeds:
        if len(seed) != masked_scheme.SEED_BYTES:
            raise MaskedValueError(
                f"a seed of masks has {masked_scheme.SEED_BYTES} bytes, got {len(seed)}"
            )
    each = [total_mask(seed.ljust(32, b"\0"), 2 * FORMS, field) for seed in seeds]
    return np.asarray(np.sum(each, axis=0), dtype=object)


def authentication(words: Elements, later_masks: Elements, keys: VerifierKeys) -> Elements:
    """What a party adds to masks that cancel: codes of the words it sends, and first masks.

    Parameters
    ----------
    words : as they are sent, shape (W,).
    later_masks : its own ``A_1`` of each form, then ``A_2``, shape (2 FORMS,).
    keys : the parties' keys.
    """
    first, second = later_masks[:FORMS], later_masks[FORMS:]
    # A_0 = kappa - A_1 D - A_2 D^2, kappa among the masks that cancel
    return np.concatenate(
        [keys.point * words, -keys.point * first - keys.point * keys.point * second]
    )


def coefficients(
    words: Words, codes: Words, multiplier: int, masks: Elements, field: Field
) -> Elements:
    """The aggregator's proof: for each form the coefficients of 1, x and x^2, masked.

    Parameters
    ----------
    words, codes : the sums of all parties' words and codes.
    multiplier : c.
    masks : the sums of all parties' masks, ``A_0`` of each form, ``A_1``, ``A_2``, shape
        (3 FORMS,).
    field : their field.
    """
    code = codes.blinding
    # B(M_a, M_b) - x (B(M_a, b) + B(a, M_b) - M_z) + x^2 (B(a, b) - z)
    constant = forms(codes.positives, codes.negatives, field)
    linear = codes.crossed - forms(codes.positives, words.negatives, field)
    linear = linear - forms(words.positives, codes.negatives, field)
    square = forms(words.positives, words.negatives, field) - words.crossed
    # (M_r - c x) (q_0 + q_1 x + q_2 x^2) - M_R x^2, without its x^3
    first, second = code * linear - multiplier * constant, code * square - multiplier * linear
    made = np.concatenate([code * constant, first, second - codes.blinded])
    return field.elements(made + masks)


def check(
    keys: VerifierKeys, thresholds: int, shift: int, values: Elements, proof: Elements, field: Field
) -> None:
    """Compare an answer's proof with what the parties compute at D.

    Parameters
    ----------
    keys : the parties' keys.
    thresholds : N.
    shift : D_c.
    values : Y of each form.
    proof : as ``coefficients`` gives it.
    field : their field.

    Raises
    ------
    MaskedValueError : where they differ: the answer is not that of these words.
    """
    point, known = keys.point, Words.of(keys.words, thresholds)
    products = forms(known.positives, known.negatives, field) + point * known.crossed
    # (K_r - D_c D) (B(K_a, K_b) + D K_z) - D^2 K_R + D^3 Y
    expected = (
        (known.blinding - shift * point) * products - point**2 * known.blinded + point**3 * values
    )
    zero, one, two = np.split(proof, 3)
    received = zero + one * point + two * point**2 - keys.masks
    if field.elements(expected - received).any():
        raise MaskedValueError(REFUSED)
