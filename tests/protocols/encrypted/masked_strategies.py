"""What a malicious aggregator may try on masked values with a proof; every answer is to be refused.

The strategies are those on ciphertexts (``strategies``), on words and their codes, and more. Where
a change of words can be carried into codes and proof, it is: the strongest aggregator is tried. It
knows the true numbers, too.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from typing import Any

import numpy as np

from tacit.crypto.masking import Elements
from tacit.protocols.encrypted import masked_scheme, masked_sides
from tacit.protocols.encrypted.masked_scheme import FORMS, SEED_BYTES, TAG_BYTES, Words, untagged
from tests.protocols.encrypted import forging
from tests.protocols.encrypted.forging import PARTIES, RECORDS, THRESHOLDS

SCHEME = masked_scheme.MaskedScheme(THRESHOLDS, RECORDS, checked=True)
FIELD, PRIME, WORDS = SCHEME.field, SCHEME.field.prime, SCHEME.words
SENT = 2 * WORDS + 3 * FORMS
HONEST = 3 << (SCHEME.least_bits + 1)
"""A multiplier that an honest aggregator may draw."""


def paired_by(keys: bytes) -> Callable[[int, int], bytes]:
    """The keys of parties two by two, and of each alone."""
    return lambda party, other: sha256(keys + bytes(sorted((party, other)))).digest()


@dataclass(frozen=True, eq=False)
class Room(forging.Room):
    """A session on masked values; ``uploads`` holds a message of each party."""

    allowed = 30 * forging.ALLOWED

    @classmethod
    def new(cls, earlier: Room | None = None) -> Room:
        pairing = paired_by(os.urandom(32))
        party = masked_sides.MaskedParty(SCHEME, os.urandom(16), os.urandom(16), PARTIES, pairing)
        thresholds = np.linspace(0.0, 1.0, THRESHOLDS)
        cells = masked_scheme.class_cells(forging.federation(), thresholds)
        return cls(party, party.uploads(*cells, range(PARTIES)), earlier)

    @cached_property
    def sent(self) -> list[Elements]:
        """Every party's words, codes and masks, those of its seed among them."""
        return [
            np.concatenate(
                [
                    FIELD.from_bytes(
                        untagged(message[:-SEED_BYTES], self.party.session), SCHEME.sent_words
                    ),
                    masked_sides.later_masks([message[-SEED_BYTES:]], FIELD),
                ]
            )
            for message in self.uploads
        ]


Change = Callable[[Elements], Elements]
Total = Callable[[Room], Elements]


def weighted(*weights: int) -> Total:
    """The sum of all that parties sent, each so many times."""
    return lambda room: sum(s * times for s, times in zip(room.sent, weights, strict=True)) % PRIME


summed = weighted(*[1] * PARTIES)


def answers(
    room: Room,
    total: Total = summed,
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
    parts = np.split(total(room), [WORDS, 2 * WORDS])
    for change, places in ((alike, (0, 1)), (words, (0,)), (codes, (1,))):
        for place in places if change is not None else ():
            parts[place] = change(parts[place]) % PRIME  # type: ignore[misc]
    own, code = (Words.of(part, THRESHOLDS) for part in parts[:2])
    products = masked_scheme.forms(own.positives, own.negatives, FIELD)
    numbers = multiplier * (products - own.crossed) - own.blinded
    shown = masked_sides.coefficients(own, code, multiplier, parts[2], FIELD)
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


def halves(first: Total, second: Total) -> Total:
    """The words of one sum, the codes and masks of another."""
    return lambda room: np.concatenate([first(room)[:WORDS], second(room)[WORDS:]])


def earlier(room: Room) -> Elements:
    """The sum of the session before."""
    return summed(room.before)


def in_place(content: Callable[[], Elements]) -> Total:
    """The last party's words, codes and masks replaced."""
    return lambda room: (sum(room.sent[:-1]) + content()) % PRIME


def uniform(count: int) -> Elements:
    return FIELD.elements(secrets.randbelow(PRIME) for _ in range(count))


def with_codes_of_its_own() -> Elements:
    """Known words, with codes that would fit a guessed point."""
    words = FIELD.elements([9] * WORDS)
    guess = secrets.randbelow(PRIME)
    return np.concatenate([words, words * guess % PRIME, FIELD.elements([0] * (3 * FORMS))])


def results_added(room: Room) -> bytes:
    """Each party's products with its own counts only, added up."""
    alone = [weighted(3, 0, 0), weighted(0, 3, 0), weighted(0, 0, 3)]
    each = [read(room, answers(room, total)) for total in alone]
    return written(room, np.sum(each, axis=0))


def read(room: Room, made: bytes) -> Elements:
    return FIELD.from_bytes(untagged(made, room.party.session), SCHEME.answer_words)


def short_vector(room: Room) -> bytes:
    """The multiplier that takes the true numbers to the shortest pair of another ratio."""
    numerator, denominator, _ = forging.true_numbers()
    pair = forging.reduced((numerator, denominator), PRIME)[1]
    return answers(room, multiplier=pair[1] * pow(denominator, -1, PRIME) % PRIME)


def at_a_guess(room: Room) -> bytes:
    """A numerator that is 10^9 more, with a proof that holds at a guessed point."""
    guess = secrets.randbelow(PRIME)
    return answers(room, values=plus({0: MUCH}), proof=plus({0: MUCH * guess**3}))


def later_answer(place: slice) -> Callable[[Room], bytes]:
    """A part of the earlier session's honest answer in that of this one."""

    def strategy(room: Room) -> bytes:
        made, old = read(room, answers(room)), read(room.before, answers(room.before))
        made[place] = old[place]
        return written(room, made)

    return strategy


def two_multipliers(room: Room) -> bytes:
    """The numerator under one multiplier, all else under another."""
    made, other = read(room, answers(room)), read(room, answers(room, multiplier=HONEST + 1))
    places = [1, 1 + FORMS, 1 + 2 * FORMS, 1 + 3 * FORMS]
    made[places] = other[places]
    return written(room, made)


def lie(**departures: Any) -> Callable[[Room], bytes]:
    """A strategy of ``answers`` that departs in these places."""
    return partial(answers, **departures)


def mixing(*rows: tuple[int, int, int]) -> Callable[[Room], bytes]:
    """The three numbers and their proofs from all of them."""
    return lie(pairs=mixed(rows))


def unblinded(vector: Elements) -> Elements:
    zeros = FIELD.elements([0] * FORMS)
    return Words.of(vector, THRESHOLDS)._replace(blinded=zeros).joined


MUCH = 10**9
FIRST_N = THRESHOLDS
X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
STRATEGIES: dict[str, Callable[[Room], bytes]] = {
    "drop a party": lie(total=weighted(1, 0, 1)),
    "drop the last party": lie(total=weighted(1, 1, 0)),
    "count a party twice": lie(total=weighted(1, 2, 1)),
    "one party only": lie(total=weighted(1, 0, 0)),
    "one party in place of another": lie(total=weighted(2, 0, 1)),
    "zeros for a party": lie(total=in_place(lambda: FIELD.elements([0] * SENT))),
    "counts of its own for a party": lie(total=in_place(with_codes_of_its_own)),
    "add parties' results, not counts": results_added,
    "scale all counts by 11": lie(alike=scaled(11)),
    "scale a number of the answer": lie(values=mixed(np.diag([3, 1, 1]))),
    "negate": lie(multiplier=PRIME - HONEST),
    "a multiplier that wraps around": lie(multiplier=PRIME // 3),
    "a multiplier of 1, to magnify the perturbation": lie(multiplier=1),
    "nothing but the perturbation": lie(multiplier=0),
    "the shortest vector of another ratio": short_vector,
    "add to the numerator": lie(values=plus({0: MUCH})),
    "subtract from the denominator": lie(values=plus({1: -MUCH})),
    "add to both": lie(values=plus({0: MUCH, 1: MUCH})),
    "denominator into numerator": mixing((1, 1, 0), Y, Z),
    "numerator into denominator": mixing(X, (1, 1, 0), Z),
    "subtract from the half-range": lie(values=plus({2: -MUCH})),
    "add to the half-range": lie(values=plus({2: MUCH})),
    "denominator out of the half-range": mixing(X, Y, (0, -1, 1)),
    "numerator into the half-range": mixing(X, Y, (1, 0, 1)),
    "half-range into the numerator": mixing((1, 0, 1), Y, Z),
    "no half-range": mixing(X, Y, (0, 0, 0)),
    "another session's half-range": later_answer(slice(FORMS, None, FORMS)),
    "shift all cells": lie(alike=of_cells(lambda v: np.roll(v, 1))),
    "add one to a cell": lie(words=plus({3: 1})),
    "add one to all cells": lie(words=of_cells(lambda v: v + 1)),
    "leave the perturbation out": lie(words=unblinded),
    "swap numerator and denominator": mixing(Y, X, Z),
    "one number thrice": mixing(Y, Y, Y),
    "codes in place of words": lie(
        total=halves(lambda room: summed(room)[WORDS : 2 * WORDS], summed)
    ),
    "replay an earlier session's counts": lie(total=earlier),
    "replay an earlier session's answer": later_answer(slice(None)),
    "random content": lambda room: written(room, uniform(SCHEME.answer_words)),
    "an answer without a proof": lambda room: answers(room)[: -3 * FORMS * FIELD.word_bytes],
    "a proof of zeros": lie(proof=lambda v: v * 0),
    "subtract from the numerator": lie(values=plus({0: -MUCH})),
    "add to the denominator": lie(values=plus({1: MUCH})),
    "add to all three numbers": lie(values=lambda v: v + MUCH),
    "change the session's name": lambda room: bytes(TAG_BYTES) + answers(room)[TAG_BYTES:],
    "leave a party's words out": lie(total=halves(weighted(1, 0, 1), summed)),
    "count a party's words twice": lie(total=halves(weighted(2, 1, 1), summed)),
    "a factor on the numerator and its proof": mixing((3, 0, 0), Y, Z),
    "one class's cells moved by one": lie(alike=moved),
    "one class's cells for the other's": lie(
        alike=lambda v: np.concatenate([v[:FIRST_N], v[:FIRST_N], v[2 * FIRST_N :]])
    ),
    "every cell less the one before": lie(alike=of_cells(lambda v: np.diff(v, prepend=0))),
    "add one to both highest cells": lie(words=plus({0: 1, FIRST_N: 1})),
    "numbers of two sessions": later_answer(slice(1, 2)),
    "an earlier session's counts beside this one's": lie(
        total=lambda room: (summed(room) + earlier(room)) % PRIME
    ),
    # linear shifts, factors
    "shift the numbers and the constants of their proofs": lie(
        values=lambda v: v + MUCH, proof=plus(dict.fromkeys(range(FORMS), MUCH))
    ),
    "a numerator with a proof at a guessed point": at_a_guess,
    "a factor on all numbers and proofs": mixing((3, 0, 0), (0, 3, 0), (0, 0, 3)),
    "the numerator under another multiplier": two_multipliers,
    # leave out, count twice
    "leave a party's codes out": lie(total=halves(summed, weighted(1, 1, 0))),
    "leave a party's proof masks out": lie(
        total=lambda room: np.concatenate(
            [summed(room)[: 2 * WORDS], weighted(1, 1, 0)(room)[2 * WORDS :]]
        )
    ),
    # re-asked uploads, stale sessions
    "an upload that was asked for again, in place of another": lie(total=weighted(1, 2, 0)),
    "words of an earlier session": lie(total=halves(earlier, summed)),
    "codes of an earlier session": lie(total=halves(summed, earlier)),
    # swapped classes, truncated thresholds
    "swap the classes": lie(alike=swapped),
    "leave out the lower half of all thresholds": lie(alike=truncated(THRESHOLDS // 2)),
    "leave out the last threshold": lie(alike=truncated(THRESHOLDS - 1)),
    # mixed runs
    "another session's proof": later_answer(slice(1 + FORMS, None)),
}
