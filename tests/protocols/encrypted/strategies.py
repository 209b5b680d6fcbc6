"""What a malicious aggregator may try on the real cipher; every answer is to be refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from tacit.crypto.homomorphic import schemes
from tacit.crypto.homomorphic.engine import context_of, rebadged, stored, tenseal_api
from tacit.crypto.homomorphic.schemes import (
    DEGREE,
    PLAIN_MODULI,
    BfvEvaluator,
    bfv_parameters,
    plaintext,
)
from tacit.protocols.published.fhe import bfv
from tests.protocols.encrypted import forging
from tests.protocols.encrypted.forging import HONEST, PARTIES, SCHEME, WRAPPING


@dataclass(frozen=True, eq=False)
class KeptParty(bfv.ExactParty):
    """A party that keeps its keys, so that it opens many answers quickly."""

    kept: dict[int, schemes.BfvSecretKey] = field(default_factory=dict)

    def _secret_key(self, run: int) -> schemes.BfvSecretKey:
        if run not in self.kept:
            self.kept[run] = super()._secret_key(run)
        return self.kept[run]


@dataclass(frozen=True, eq=False)
class Room(forging.Room):
    """A session on ciphertexts; ``uploads`` holds each party's ciphertexts, one for each run."""

    keys: Sequence[bytes] = ()

    allowed = 10 * forging.ALLOWED

    @classmethod
    def new(cls, earlier: Room | None = None) -> Room:
        party = KeptParty(SCHEME, os.urandom(32), os.urandom(16), PARTIES)
        uploads = party.uploads(forging.counts(), range(PARTIES))
        return cls(party, uploads, earlier, party.evaluation_keys())

    @cached_property
    def evaluators(self) -> list[BfvEvaluator]:
        return [BfvEvaluator(bfv_parameters(run), self.keys) for run in range(bfv.RUNS)]

    @cached_property
    def honest(self) -> list[tuple[Any, Any]]:
        """Of each run the sum of all uploads, and its square: most strategies leave both alone."""
        totals = [self.evaluators[run].total(self.of(run)) for run in range(bfv.RUNS)]
        return [
            (total, squared(evaluator, total))
            for evaluator, total in zip(self.evaluators, totals, strict=True)
        ]

    def of(self, run: int) -> list[bytes]:
        return [upload[run] for upload in self.uploads]

    def mask(self, run: int) -> Any:
        return bfv.ExactAggregator(SCHEME, self.keys).mask(run)


Change = Callable[[BfvEvaluator, Any, int], Any]
Uploads = Callable[[Room, int], Sequence[bytes]]
PLACES = SCHEME.layout.positions


def answers(
    room: Room,
    uploads: Uploads = Room.of,
    before: Change | None = None,
    after: Change | None = None,
    multipliers: tuple[int, int] = (HONEST, HONEST),
    linear: bool = True,
    add: dict[int, int] | None = None,
) -> list[bytes]:
    """An aggregator that departs from the protocol in the places given, alike in both runs."""
    made = []
    for run in range(bfv.RUNS):
        evaluator = room.evaluators[run]
        if uploads is Room.of and before is None:
            total, square = room.honest[run]
        else:
            total = evaluator.total(uploads(room, run))
            total = total if before is None else before(evaluator, total, run)
            square = squared(evaluator, total)
        mask = room.mask(run)
        for place, value in (add or {}).items():
            mask[place] = value % PLAIN_MODULI[run]
        changed = copied(evaluator, square)
        changed = changed if after is None else after(evaluator, changed, run)
        made.append(finished(evaluator, changed, multipliers[run], total if linear else None, mask))
    return made


def squared(evaluator: BfvEvaluator, total: Any) -> Any:
    """The relinearised square of a sum."""
    work, square = evaluator._evaluator, tenseal_api().Ciphertext()
    work.square(total, square)
    work.relinearize_inplace(square, evaluator._relinearisation)
    return square


def copied(evaluator: BfvEvaluator, value: Any) -> Any:
    """The same ciphertext once more; the library copies none by itself."""
    made = tenseal_api().Ciphertext()
    evaluator._evaluator.negate(value, made)
    evaluator._evaluator.negate_inplace(made)
    return made


def finished(evaluator: BfvEvaluator, square: Any, multiplier: int, total: Any, mask: Any) -> bytes:
    """The answer of a square, changed in place; no fresh noise, of which only parties would gain.

    Without a ``total`` the parties' perturbation is left out.
    """
    work = evaluator._evaluator
    work.multiply_plain_inplace(square, tenseal_api().Plaintext(f"{multiplier:X}"))
    if total is not None:
        work.add_inplace(square, total)
    work.add_plain_inplace(square, plaintext(mask, evaluator.context))
    work.mod_switch_to_next_inplace(square)
    return stored(square)


def zero(evaluator: BfvEvaluator) -> Any:
    """An encryption of zero, to be changed in place."""
    made = tenseal_api().Ciphertext()
    evaluator._evaluator.add(*evaluator._zeros, made)
    return made


def times(polynomial: dict[int, int]) -> Change:
    """Multiply by a plaintext polynomial; a negative power of x is minus its complement."""

    def change(evaluator: BfvEvaluator, value: Any, run: int) -> Any:
        coefficients = np.zeros(DEGREE, dtype=object)
        for place, number in polynomial.items():
            coefficients[place % DEGREE] = number * (1 if place >= 0 else -1) % PLAIN_MODULI[run]
        factor = plaintext(coefficients.astype(np.uint64), evaluator.context)
        evaluator._evaluator.multiply_plain_inplace(value, factor)
        return value

    return change


def plus(terms: dict[int, int]) -> Change:
    def change(evaluator: BfvEvaluator, value: Any, run: int) -> Any:
        held = np.zeros(DEGREE, dtype=np.uint64)
        held[list(terms)] = list(terms.values())
        evaluator._evaluator.add_plain_inplace(value, plaintext(held, evaluator.context))
        return value

    return change


def of_own_making(room: Room, run: int, content: dict[int, int]) -> bytes:
    """A ciphertext that the aggregator can make without a key, from an encryption of zero."""
    evaluator = room.evaluators[run]
    return stored(plus(content)(evaluator, zero(evaluator), run))


def weighted(*weights: int, first_run: bool = True) -> Uploads:
    """Parties' ciphertexts so many times, in both runs or in the second alone."""

    def uploads(room: Room, run: int) -> list[bytes]:
        times = weights if run or first_run else (1,) * PARTIES
        pairs = zip(room.of(run), times, strict=True)
        return [upload for upload, weight in pairs for _ in range(weight)]

    return uploads


def first_replaced(other: Callable[[Room, int], bytes]) -> Uploads:
    """The first party's ciphertext replaced."""
    return lambda room, run: [other(room, run), *room.of(run)[1:]]


def replay_of_a_run(room: Room, run: int) -> list[bytes]:
    """The first run's ciphertexts, made to pass for the second's."""
    if run == 0:
        return room.of(0)
    contexts = [context_of(bfv_parameters(each)) for each in range(bfv.RUNS)]
    names = [list(context.first_parms_id()) for context in contexts]
    read = room.evaluators[0].read
    return [rebadged(stored(read(upload)), names[0], names[1]) for upload in room.of(0)]


def random_answer(room: Room) -> list[bytes]:
    made = []
    for run in range(bfv.RUNS):
        evaluator = room.evaluators[run]
        value = zero(evaluator)
        evaluator._evaluator.mod_switch_to_next_inplace(value)
        content = schemes.random_residues(DEGREE, PLAIN_MODULI[run])
        evaluator._evaluator.add_plain_inplace(value, plaintext(content, evaluator.context))
        made.append(stored(value))
    return made


def unrelinearised(room: Room) -> list[bytes]:
    made = []
    for run in range(bfv.RUNS):
        evaluator, squared = room.evaluators[run], tenseal_api().Ciphertext()
        evaluator._evaluator.square(evaluator.total(room.of(run)), squared)
        evaluator._evaluator.mod_switch_to_next_inplace(squared)
        made.append(stored(squared))
    return made


def lie(**departures: Any) -> Callable[[Room], list[bytes]]:
    """A strategy of ``answers`` that departs in these places."""
    return partial(answers, **departures)


def mixing(place: int, other: int, factor: int = 1) -> Callable[[Room], list[bytes]]:
    """Add one number of the answer to another."""
    return lie(after=times({0: 1, place - other: factor}))


NUMERATOR, DENOMINATOR, HIDDEN, TAGGED = PLACES
MUCH = 10**9
STRATEGIES: dict[str, Callable[[Room], list[bytes]]] = {
    "drop a party": lie(uploads=weighted(1, 0, 1)),
    "drop the last party": lie(uploads=weighted(1, 1, 0)),
    "count a party twice": lie(uploads=weighted(1, 2, 1)),
    "one party only": lie(uploads=weighted(1, 0, 0)),
    "one party in place of another": lie(uploads=first_replaced(lambda room, run: room.of(run)[1])),
    "an encryption of zero for a party": lie(
        uploads=first_replaced(partial(of_own_making, content={}))
    ),
    "counts of its own for a party": lie(
        uploads=first_replaced(partial(of_own_making, content=dict.fromkeys(range(1, 80), 9)))
    ),
    "add parties' results, not counts": lie(before=times({0: 3}), linear=False),
    "scale all counts by 1.1": lie(before=times({0: 11})),
    "scale a run's answer": lie(multipliers=(HONEST, HONEST + 1)),
    "negate": lie(multipliers=tuple(modulus - HONEST for modulus in PLAIN_MODULI)),
    "a multiplier that wraps around": lie(multipliers=tuple(WRAPPING % m for m in PLAIN_MODULI)),
    "a multiplier of 1, to magnify the perturbation": lie(multipliers=(1, 1)),
    "nothing but the perturbation": lie(after=lambda evaluator, value, run: zero(evaluator)),
    "a short vector of one run's lattice": lie(
        multipliers=(forging.forging_multiplier(PLAIN_MODULI[0]),) * 2
    ),
    "add to the numerator": lie(add={NUMERATOR: MUCH}),
    "subtract from the denominator": lie(add={DENOMINATOR: -MUCH}),
    "add to both": lie(add={NUMERATOR: MUCH, DENOMINATOR: MUCH}),
    "denominator into numerator": mixing(NUMERATOR, DENOMINATOR),
    "numerator into denominator": mixing(DENOMINATOR, NUMERATOR),
    "subtract from the half-range": lie(add={HIDDEN: -MUCH}),
    "add to the half-range": lie(add={HIDDEN: MUCH}),
    "denominator out of the half-range": mixing(HIDDEN, DENOMINATOR, -1),
    "numerator into the half-range": mixing(HIDDEN, NUMERATOR),
    "half-range into the numerator": mixing(NUMERATOR, HIDDEN),
    "half-range less the products beside it": lie(after=times({0: 1, 1: -1})),
    "another session's half-range": lie(
        uploads=lambda room, run: [room.of(run)[0], *room.before.of(run)[1:]]
    ),
    "shift all slots": lie(before=times({1: 1})),
    "add one to a slot": lie(before=plus({3: 1})),
    "add one to all slots": lie(before=plus(dict.fromkeys(range(1, 89), 1))),
    "leave the perturbation out": lie(linear=False),
    "swap the runs": lambda room: answers(room)[::-1],
    "one run twice": lambda room: [answers(room)[0]] * 2,
    "replay one run's counts": lie(uploads=replay_of_a_run),
    "replay an earlier session's counts": lie(uploads=lambda room, run: room.before.of(run)),
    "replay an earlier session's answer": lambda room: answers(room.before),
    "random content": random_answer,
    "an answer that is not relinearised": unrelinearised,
    "subtract from the numerator": lie(add={NUMERATOR: -MUCH}),
    "add to the denominator": lie(add={DENOMINATOR: MUCH}),
    "add to all three numbers": lie(add=dict.fromkeys((NUMERATOR, DENOMINATOR, HIDDEN), MUCH)),
    "shift the tag": lie(add={TAGGED: 1}),
    "leave a party out of one run": lie(uploads=weighted(1, 0, 1, first_run=False)),
    "count a party twice in one run": lie(uploads=weighted(2, 1, 1, first_run=False)),
    "a factor on one run's answer": lie(multipliers=(HONEST, 3 * HONEST)),
    "shift the square by a slot": lie(after=times({1: 1})),
    "one factor's slots moved to the other's": lie(before=times({SCHEME.layout.products: 1})),
    "every slot less the one before": lie(before=times({0: 1, 1: -1})),
    "add one to both totals": lie(before=plus(dict.fromkeys(SCHEME.layout.totals, 1))),
    "runs of two sessions": lambda room: [answers(room)[0], answers(room.before)[1]],
    "an earlier session's counts beside this one's": lie(
        uploads=lambda room, run: [*room.of(run), *room.before.of(run)]
    ),
}
