"""What a malicious aggregator may try on masked values with a proof; every answer is to be refused.

The strategies are those on ciphertexts (``strategies``), on words and their codes, and more. Where
a change of words can be carried into codes and proof, it is: the strongest aggregator is tried. It
knows the true numbers, too.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from tacit.crypto.masking import Elements, MaskedValueError
from tacit.data.errors import DataError
from tacit.protocols.encrypted.masked_scheme import (
    FORMS,
    SEED_BYTES,
    TAG_BYTES,
    MaskedScheme,
    Words,
    class_cells,
    forms,
    untagged,
)
from tacit.protocols.encrypted.masked_sides import REFUSED, MaskedParty, coefficients, later_masks
from tests.protocols.encrypted.forging import (
    PARTIES,
    RECORDS,
    THRESHOLDS,
    exact_area,
    exact_half_range,
    federation,
    reduced,
    true_numbers,
)

SCHEME = MaskedScheme(THRESHOLDS, RECORDS, checked=True)
FIELD, PRIME, WORDS = SCHEME.field, SCHEME.field.prime, SCHEME.words
SENT = 2 * WORDS + 3 * FORMS
HONEST = 3 << (SCHEME.least_bits + 1)
"""A multiplier that an honest aggregator may draw."""
ALLOWED = 3e-6
"""What the perturbation of so few records may move an AUC or a half-range by."""


@dataclass(frozen=True, eq=False)
class Room:
    """One session as the aggregator sees it, the one before, and the party that opens answers."""

    party: MaskedParty
    uploads: list[bytes]
    earlier: Room | None = None

    @classmethod
    def new(cls, earlier: Room | None = None) -> Room:
        keys = os.urandom(32)

        def pairing(party: int, other: int) -> bytes:
            return sha256(keys + bytes(sorted((party, other)))).digest()

        party = MaskedParty(SCHEME, os.urandom(16), os.urandom(16), PARTIES, pairing)
        cells = class_cells(federation(), np.linspace(0.0, 1.0, THRESHOLDS))
        uploads = party.uploads(*cells, range(PARTIES))
        last = None if earlier is None else replace(earlier, earlier=None)
        return cls(party, uploads, last)

    @cached_property
    def sent(self) -> list[Elements]:
        """Every party's words, codes and masks, those of its seed among them."""
        return [
            np.concatenate(
                [
                    FIELD.from_bytes(
                        untagged(message[:-SEED_BYTES], self.party.session), SCHEME.sent_words
                    ),
                    later_masks([message[-SEED_BYTES:]], FIELD),
                ]
            )
            for message in self.uploads
        ]

    @property
    def before(self) -> Room:
        assert self.earlier is not None
        return self.earlier


def rooms(count: int) -> Iterator[Room]:
    """Independent sessions, each of which remembers the one before."""
    room = Room.new()
    for _ in range(count):
        room = Room.new(room)
        yield room


Change = Callable[[Elements], Elements]
Weights = Sequence[int]
EVERY: Weights = (1,) * PARTIES


def summed(room: Room, weights: Weights = EVERY) -> Elements:
    return sum(each * weight for each, weight in zip(room.sent, weights, strict=True)) % PRIME


def answers(
    room: Room,
    total: Elements | None = None,
    alike: Change | None = None,
    words: Change | None = None,
    codes: Change | None = None,
    multiplier: int = HONEST,
    values: Change | None = None,
    proof: Change | None = None,
    pairs: Change | None = None,
) -> bytes:
    """An aggregator that departs from the protocol in the places given.

    ``alike`` changes words and codes, ``pairs`` the three numbers and each coefficient of their
    proofs: so both stay consistent with each other.
    """
    parts = np.split(summed(room) if total is None else total, [WORDS, 2 * WORDS])
    for change, places in ((alike, (0, 1)), (words, (0,)), (codes, (1,))):
        for place in places if change is not None else ():
            parts[place] = change(parts[place]) % PRIME  # type: ignore[misc]
    own, code = (Words.of(part, THRESHOLDS) for part in parts[:2])
    products = forms(own.positives, own.negatives, FIELD)
    numbers = multiplier * (products - own.crossed) - own.blinded
    shown = coefficients(own, code, multiplier, parts[2], FIELD)
    numbers = numbers if values is None else values(numbers)
    shown = shown if proof is None else proof(shown)
    if pairs is not None:
        numbers, shown = pairs(numbers), np.concatenate([pairs(p) for p in np.split(shown, 3)])
    return written(room, [multiplier - own.blinding[0], *numbers, *shown])


def written(room: Room, numbers: Iterable[int]) -> bytes:
    return room.party.session[:TAG_BYTES] + FIELD.to_bytes(FIELD.elements(numbers))


def of_cells(change: Change) -> Change:
    """On the words of the cells of both classes, and of no other."""

    def changed(vector: Elements) -> Elements:
        made = Words.of(vector, THRESHOLDS)
        return made._replace(
            positives=change(made.positives), negatives=change(made.negatives)
        ).joined

    return changed


def plus(places: dict[int, int]) -> Change:
    def changed(vector: Elements) -> Elements:
        made = vector.copy()
        for place, number in places.items():
            made[place] += number
        return made

    return changed


def mixed(matrix: Any) -> Change:
    """Numbers of the three forms from those of all."""
    return lambda vector: np.array(matrix, dtype=object).dot(vector)


def swapped(vector: Elements) -> Elements:
    made = Words.of(vector, THRESHOLDS)
    return made._replace(positives=made.negatives, negatives=made.positives).joined


def moved(vector: Elements) -> Elements:
    """One class's cells one further than the other's."""
    made = Words.of(vector, THRESHOLDS)
    return made._replace(positives=np.roll(made.positives, 1)).joined


def truncated(cells: int) -> Change:
    kept = np.arange(THRESHOLDS) < cells
    return of_cells(lambda vector: vector * kept)


def scaled(factor: int) -> Change:
    """Counts by a factor, what is bilinear by its square."""

    def changed(vector: Elements) -> Elements:
        made = Words.of(vector, THRESHOLDS)
        return made._replace(
            positives=made.positives * factor,
            negatives=made.negatives * factor,
            crossed=made.crossed * factor**2,
        ).joined

    return changed


def halves(room: Room, first: Elements, second: Elements) -> bytes:
    """The words of one sum, the codes and masks of another."""
    return answers(room, np.concatenate([first[:WORDS], second[WORDS:]]))


def in_place(room: Room, content: Elements) -> bytes:
    """The last party's words, codes and masks replaced."""
    return answers(room, (sum(room.sent[:-1]) + content) % PRIME)


def uniform(count: int) -> Elements:
    return FIELD.elements(secrets.randbelow(PRIME) for _ in range(count))


def with_codes_of_its_own(room: Room) -> Elements:
    """Known words, with codes that would fit a guessed point."""
    words = FIELD.elements([9] * WORDS)
    guess = secrets.randbelow(PRIME)
    return np.concatenate([words, words * guess % PRIME, FIELD.elements([0] * (3 * FORMS))])


def results_added(room: Room) -> bytes:
    """Each party's products with its own counts only, added up."""
    each = [read(room, answers(room, total % PRIME)) for total in (3 * sent for sent in room.sent)]
    return written(room, np.sum(each, axis=0))


def read(room: Room, made: bytes) -> Elements:
    return FIELD.from_bytes(untagged(made, room.party.session), SCHEME.answer_words)


def short_vector(room: Room) -> bytes:
    """The multiplier that takes the true numbers to the shortest pair of another ratio."""
    numerator, denominator = (number // 2 for number in true_numbers())
    pair = reduced((numerator, denominator), PRIME)[1]
    return answers(room, multiplier=pair[1] * pow(denominator, -1, PRIME) % PRIME)


def at_a_guess(room: Room) -> bytes:
    """A numerator that is 10^9 more, with a proof that holds at a guessed point."""
    guess = secrets.randbelow(PRIME)
    return answers(room, values=plus({0: 10**9}), proof=plus({0: 10**9 * guess**3}))


def later_answer(room: Room, place: slice) -> bytes:
    """A part of the earlier session's honest answer in that of this one."""
    made, old = read(room, answers(room)), read(room.before, answers(room.before))
    made[place] = old[place]
    return written(room, made)


def two_multipliers(room: Room) -> bytes:
    """The numerator under one multiplier, all else under another."""
    made, other = read(room, answers(room)), read(room, answers(room, multiplier=HONEST + 1))
    places = [1, 1 + FORMS, 1 + 2 * FORMS, 1 + 3 * FORMS]
    made[places] = other[places]
    return written(room, made)


TIMES, NEXT = 10**9, np.eye(FORMS, dtype=object)
FIRST_N = THRESHOLDS
STRATEGIES: dict[str, Callable[[Room], bytes]] = {
    "drop a party": lambda room: answers(room, summed(room, (1, 0, 1))),
    "drop the last party": lambda room: answers(room, summed(room, (1, 1, 0))),
    "count a party twice": lambda room: answers(room, summed(room, (1, 2, 1))),
    "one party only": lambda room: answers(room, summed(room, (1, 0, 0))),
    "one party in place of another": lambda room: answers(room, summed(room, (2, 0, 1))),
    "zeros for a party": lambda room: in_place(room, FIELD.elements([0] * SENT)),
    "counts of its own for a party": lambda room: in_place(room, with_codes_of_its_own(room)),
    "add parties' results, not counts": results_added,
    "scale all counts by 11": lambda room: answers(room, alike=scaled(11)),
    "scale a number of the answer": lambda room: answers(room, values=mixed(np.diag([3, 1, 1]))),
    "negate": lambda room: answers(room, multiplier=PRIME - HONEST),
    "a multiplier that wraps around": lambda room: answers(room, multiplier=PRIME // 3),
    "a multiplier of 1, to magnify the perturbation": lambda room: answers(room, multiplier=1),
    "nothing but the perturbation": lambda room: answers(room, multiplier=0),
    "the shortest vector of another ratio": short_vector,
    "add to the numerator": lambda room: answers(room, values=plus({0: TIMES})),
    "subtract from the denominator": lambda room: answers(room, values=plus({1: -TIMES})),
    "add to both": lambda room: answers(room, values=plus({0: TIMES, 1: TIMES})),
    "denominator into numerator": lambda room: answers(
        room, pairs=mixed([[1, 1, 0], [0, 1, 0], [0, 0, 1]])
    ),
    "numerator into denominator": lambda room: answers(
        room, pairs=mixed([[1, 0, 0], [1, 1, 0], [0, 0, 1]])
    ),
    "subtract from the half-range": lambda room: answers(room, values=plus({2: -TIMES})),
    "add to the half-range": lambda room: answers(room, values=plus({2: TIMES})),
    "denominator out of the half-range": lambda room: answers(
        room, pairs=mixed([[1, 0, 0], [0, 1, 0], [0, -1, 1]])
    ),
    "numerator into the half-range": lambda room: answers(
        room, pairs=mixed([[1, 0, 0], [0, 1, 0], [1, 0, 1]])
    ),
    "half-range into the numerator": lambda room: answers(
        room, pairs=mixed([[1, 0, 1], [0, 1, 0], [0, 0, 1]])
    ),
    "no half-range": lambda room: answers(room, pairs=mixed(np.diag([1, 1, 0]))),
    "another session's half-range": lambda room: later_answer(room, slice(FORMS, None, FORMS)),
    "shift all cells": lambda room: answers(room, alike=of_cells(lambda v: np.roll(v, 1))),
    "add one to a cell": lambda room: answers(room, words=plus({3: 1})),
    "add one to all cells": lambda room: answers(room, words=of_cells(lambda v: v + 1)),
    "leave the perturbation out": lambda room: answers(
        room,
        words=lambda v: (
            Words.of(v, THRESHOLDS)._replace(blinded=FIELD.elements([0] * FORMS)).joined
        ),
    ),
    "swap numerator and denominator": lambda room: answers(
        room, pairs=mixed([[0, 1, 0], [1, 0, 0], [0, 0, 1]])
    ),
    "one number thrice": lambda room: answers(room, pairs=mixed([[0, 1, 0]] * 3)),
    "codes in place of words": lambda room: answers(
        room, np.concatenate([summed(room)[WORDS : 2 * WORDS], summed(room)[WORDS:]])
    ),
    "replay an earlier session's counts": lambda room: answers(room, summed(room.before)),
    "replay an earlier session's answer": lambda room: later_answer(room, slice(None)),
    "random content": lambda room: written(room, uniform(SCHEME.answer_words)),
    "an answer without a proof": lambda room: answers(room)[: -3 * FORMS * FIELD.word_bytes],
    "a proof of zeros": lambda room: answers(room, proof=lambda v: v * 0),
    "subtract from the numerator": lambda room: answers(room, values=plus({0: -TIMES})),
    "add to the denominator": lambda room: answers(room, values=plus({1: TIMES})),
    "add to all three numbers": lambda room: answers(room, values=lambda v: v + TIMES),
    "change the session's name": lambda room: bytes(TAG_BYTES) + answers(room)[TAG_BYTES:],
    "leave a party's words out": lambda room: halves(room, summed(room, (1, 0, 1)), summed(room)),
    "count a party's words twice": lambda room: halves(room, summed(room, (2, 1, 1)), summed(room)),
    "a factor on the numerator and its proof": lambda room: answers(
        room, pairs=mixed(np.diag([3, 1, 1]))
    ),
    "one class's cells moved by one": lambda room: answers(room, alike=moved),
    "one class's cells for the other's": lambda room: answers(
        room, alike=lambda v: np.concatenate([v[:FIRST_N], v[:FIRST_N], v[2 * FIRST_N :]])
    ),
    "every cell less the one before": lambda room: answers(
        room, alike=of_cells(lambda v: np.diff(v, prepend=0))
    ),
    "add one to both highest cells": lambda room: answers(room, words=plus({0: 1, FIRST_N: 1})),
    "numbers of two sessions": lambda room: later_answer(room, slice(1, 2)),
    "an earlier session's counts beside this one's": lambda room: answers(
        room, (summed(room) + summed(room.before)) % PRIME
    ),
    # linear shifts, factors
    "shift the numbers and the constants of their proofs": lambda room: answers(
        room, values=lambda v: v + TIMES, proof=plus(dict.fromkeys(range(FORMS), TIMES))
    ),
    "a numerator with a proof at a guessed point": at_a_guess,
    "a factor on all numbers and proofs": lambda room: answers(room, pairs=mixed(3 * NEXT)),
    "the numerator under another multiplier": two_multipliers,
    # leave out, count twice
    "leave a party's codes out": lambda room: halves(room, summed(room), summed(room, (1, 1, 0))),
    "leave a party's proof masks out": lambda room: answers(
        room, np.concatenate([summed(room)[: 2 * WORDS], summed(room, (1, 1, 0))[2 * WORDS :]])
    ),
    # re-asked uploads, stale sessions
    "an upload that was asked for again, in place of another": lambda room: answers(
        room, summed(room, (1, 2, 0))
    ),
    "words of an earlier session": lambda room: halves(room, summed(room.before), summed(room)),
    "codes of an earlier session": lambda room: halves(room, summed(room), summed(room.before)),
    # swapped classes, truncated thresholds
    "swap the classes": lambda room: answers(room, alike=swapped),
    "leave out the lower half of all thresholds": lambda room: answers(
        room, alike=truncated(THRESHOLDS // 2)
    ),
    "leave out the last threshold": lambda room: answers(room, alike=truncated(THRESHOLDS - 1)),
    # mixed runs
    "another session's proof": lambda room: later_answer(room, slice(1 + FORMS, None)),
}


FORGED, UNCHANGED = "forged", "AUC unchanged"


def outcome(room: Room, strategy: Callable[[Room], bytes]) -> str:
    """What a party makes of a strategy's answer; ``FORGED`` where it believes a wrong AUC."""
    made: Any = strategy(room)
    try:
        area = room.party.decrypted(made)
    except MaskedValueError as error:
        return "proof fails" if str(error) == REFUSED else "no honest numbers"
    except DataError:
        return "no AUC"
    apart = abs(area.value / exact_area() - 1), abs(area.half_range / exact_half_range() - 1)
    return UNCHANGED if apart[0] < ALLOWED and apart[1] < 30 * ALLOWED else FORGED
