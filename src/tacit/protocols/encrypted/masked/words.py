"""The words of an upload on masked values, and the three bilinear forms of counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.crypto.masking.field import Elements, Field, MaskedValueError
from tacit.protocols.encrypted.masked.scheme import FORMS, TAG_BYTES, Products


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


def forms(positives: Elements, negatives: Elements, field: Field) -> Products:
    """X, Y and Z of positives and negatives in every cell, from the highest down, shape (N,).

    Examples
    --------
    >>> field = Field(64)
    >>> forms(field.elements([1, 2]), field.elements([0, 3]), field)
    Products(numerator=12, denominator=9, tied=6)
    """
    rising = 2 * np.cumsum(positives) - positives
    return Products(
        int(rising.dot(negatives) % field.prime),
        int(positives.sum() * negatives.sum() % field.prime),
        int(positives[1:].dot(negatives[1:]) % field.prime),
    )


def untagged(message: bytes, session: bytes) -> bytes:
    """The masked values of a message of this session.

    Raises
    ------
    MaskedValueError : for a message of another one.
    """
    if message[:TAG_BYTES] != session[:TAG_BYTES]:
        raise MaskedValueError("masked values of another session, or none")
    return message[TAG_BYTES:]
