"""What a malicious aggregator may try on the real cipher; every answer is to be refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from tacit.crypto.homomorphic.engine import (
    HomomorphicError,
    context_of,
    rebadged,
    stored,
    tenseal_api,
)
from tacit.crypto.homomorphic.schemes import (
    DEGREE,
    PLAIN_MODULI,
    BfvEvaluator,
    BfvSecretKey,
    bfv_parameters,
    plaintext,
    random_residues,
)
from tacit.data.errors import DataError
from tacit.protocols.published.fhe.bfv import RUNS, CheatingError, ExactAggregator, ExactParty
from tacit.protocols.published.fhe.packing import cumulative_counts
from tests.protocols.encrypted.forging import (
    HONEST,
    PARTIES,
    SCHEME,
    THRESHOLDS,
    WRAPPING,
    exact_area,
    exact_half_range,
    federation,
    forging_multiplier,
)

ALLOWED = 3e-6
"""What the perturbation of so few records may move an AUC or a half-range by."""


@dataclass(frozen=True, eq=False)
class KeptParty(ExactParty):
    """A party that keeps its keys, so that it opens many answers quickly."""

    kept: dict[int, BfvSecretKey] = field(default_factory=dict)

    def _secret_key(self, run: int) -> BfvSecretKey:
        if run not in self.kept:
            self.kept[run] = super()._secret_key(run)
        return self.kept[run]


@dataclass(frozen=True, eq=False)
class Room:
    """One session as the aggregator sees it, the one before, and the party that opens answers."""

    party: KeptParty
    keys: list[bytes]
    uploads: list[list[bytes]]
    earlier: Room | None

    @classmethod
    def new(cls, earlier: Room | None = None) -> Room:
        party = KeptParty(SCHEME, os.urandom(32), os.urandom(16), PARTIES)
        counts = cumulative_counts(federation(), np.linspace(0.0, 1.0, THRESHOLDS))
        uploads = party.uploads(counts, range(PARTIES))
        last = None if earlier is None else replace(earlier, earlier=None)
        return cls(party, party.evaluation_keys(), uploads, last)

    @cached_property
    def evaluators(self) -> list[BfvEvaluator]:
        return [BfvEvaluator(bfv_parameters(run), self.keys) for run in range(RUNS)]

    @cached_property
    def honest(self) -> list[tuple[Any, Any]]:
        """Of each run the sum of all uploads, and its square: most strategies leave both alone."""
        totals = [self.evaluators[run].total(self.of(run)) for run in range(RUNS)]
        return [
            (total, squared(evaluator, total))
            for evaluator, total in zip(self.evaluators, totals, strict=True)
        ]

    def of(self, run: int) -> list[bytes]:
        return [upload[run] for upload in self.uploads]

    def mask(self, run: int) -> Any:
        return ExactAggregator(SCHEME, self.keys).mask(run)

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


Change = Callable[[BfvEvaluator, Any, int], Any]
PLACES = SCHEME.layout.positions


def answers(
    room: Room,
    uploads: Callable[[int], Sequence[bytes]] | None = None,
    before: Change | None = None,
    after: Change | None = None,
    multipliers: tuple[int, int] = (HONEST, HONEST),
    linear: bool = True,
    add: dict[int, int] | None = None,
) -> list[bytes]:
    """An aggregator that departs from the protocol in the places given, alike in both runs."""
    made = []
    for run in range(RUNS):
        evaluator = room.evaluators[run]
        if uploads is None and before is None:
            total, square = room.honest[run]
        else:
            total = evaluator.total(room.of(run) if uploads is None else uploads(run))
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
    value = zero(evaluator)
    return stored(plus(content)(evaluator, value, run) if content else value)


def weighted(room: Room, weights: Sequence[int]) -> Callable[[int], list[bytes]]:
    return lambda run: [
        upload for upload, weight in zip(room.of(run), weights, strict=True) for _ in range(weight)
    ]


def swap(room: Room, other: Callable[[int], bytes]) -> list[bytes]:
    """The first party's ciphertext replaced."""
    return answers(room, lambda run: [other(run), *room.of(run)[1:]])


def replay_of_a_run(room: Room) -> list[bytes]:
    """The first run's ciphertexts, made to pass for the second's."""
    contexts = [context_of(bfv_parameters(run)) for run in range(RUNS)]
    names = [list(context.first_parms_id()) for context in contexts]
    read = room.evaluators[0].read
    moved = [rebadged(stored(read(upload)), names[0], names[1]) for upload in room.of(0)]
    return answers(room, lambda run: room.of(0) if run == 0 else moved)


def short_vector(room: Room) -> list[bytes]:
    multiplier = forging_multiplier(PLAIN_MODULI[0])
    return answers(room, multipliers=(multiplier, multiplier))


def random_answer(room: Room) -> list[bytes]:
    made = []
    for run in range(RUNS):
        evaluator = room.evaluators[run]
        value = zero(evaluator)
        evaluator._evaluator.mod_switch_to_next_inplace(value)
        content = random_residues(DEGREE, PLAIN_MODULI[run])
        evaluator._evaluator.add_plain_inplace(value, plaintext(content, evaluator.context))
        made.append(stored(value))
    return made


def unrelinearised(room: Room) -> list[bytes]:
    made = []
    for run in range(RUNS):
        evaluator, squared = room.evaluators[run], tenseal_api().Ciphertext()
        evaluator._evaluator.square(evaluator.total(room.of(run)), squared)
        evaluator._evaluator.mod_switch_to_next_inplace(squared)
        made.append(stored(squared))
    return made


def in_one_run(room: Room, weights: Sequence[int]) -> list[bytes]:
    """Parties weighted in the second run alone."""
    of_run = weighted(room, weights)
    return answers(room, lambda run: of_run(run) if run else room.of(run))


NUMERATOR, DENOMINATOR, HIDDEN, TAGGED = PLACES
STRATEGIES: dict[str, Callable[[Room], list[bytes]]] = {
    "drop a party": lambda room: answers(room, weighted(room, (1, 0, 1))),
    "drop the last party": lambda room: answers(room, weighted(room, (1, 1, 0))),
    "count a party twice": lambda room: answers(room, weighted(room, (1, 2, 1))),
    "one party only": lambda room: answers(room, weighted(room, (1, 0, 0))),
    "one party in place of another": lambda room: swap(room, lambda run: room.of(run)[1]),
    "an encryption of zero for a party": lambda room: swap(
        room, lambda run: of_own_making(room, run, {})
    ),
    "counts of its own for a party": lambda room: swap(
        room, lambda run: of_own_making(room, run, dict.fromkeys(range(1, 80), 9))
    ),
    "add parties' results, not counts": lambda room: answers(
        room, before=times({0: 3}), linear=False
    ),
    "scale all counts by 1.1": lambda room: answers(room, before=times({0: 11})),
    "scale a run's answer": lambda room: answers(room, multipliers=(HONEST, HONEST + 1)),
    "negate": lambda room: answers(
        room, multipliers=(PLAIN_MODULI[0] - HONEST, PLAIN_MODULI[1] - HONEST)
    ),
    "a multiplier that wraps around": lambda room: answers(
        room, multipliers=(WRAPPING % PLAIN_MODULI[0], WRAPPING % PLAIN_MODULI[1])
    ),
    "a multiplier of 1, to magnify the perturbation": lambda room: answers(
        room, multipliers=(1, 1)
    ),
    "nothing but the perturbation": lambda room: answers(
        room, after=lambda evaluator, value, run: zero(evaluator)
    ),
    "a short vector of one run's lattice": short_vector,
    "add to the numerator": lambda room: answers(room, add={NUMERATOR: 10**9}),
    "subtract from the denominator": lambda room: answers(room, add={DENOMINATOR: -(10**9)}),
    "add to both": lambda room: answers(room, add={NUMERATOR: 10**9, DENOMINATOR: 10**9}),
    "denominator into numerator": lambda room: answers(
        room, after=times({0: 1, NUMERATOR - DENOMINATOR: 1})
    ),
    "numerator into denominator": lambda room: answers(
        room, after=times({0: 1, DENOMINATOR - NUMERATOR: 1})
    ),
    "subtract from the half-range": lambda room: answers(room, add={HIDDEN: -(10**9)}),
    "add to the half-range": lambda room: answers(room, add={HIDDEN: 10**9}),
    "denominator out of the half-range": lambda room: answers(
        room, after=times({0: 1, HIDDEN - DENOMINATOR: -1})
    ),
    "numerator into the half-range": lambda room: answers(
        room, after=times({0: 1, HIDDEN - NUMERATOR: 1})
    ),
    "half-range into the numerator": lambda room: answers(
        room, after=times({0: 1, NUMERATOR - HIDDEN: 1})
    ),
    "half-range less the products beside it": lambda room: answers(
        room, after=times({0: 1, 1: -1})
    ),
    "another session's half-range": lambda room: answers(
        room, lambda run: [room.of(run)[0], *room.before.of(run)[1:]]
    ),
    "shift all slots": lambda room: answers(room, before=times({1: 1})),
    "add one to a slot": lambda room: answers(room, before=plus({3: 1})),
    "add one to all slots": lambda room: answers(room, before=plus(dict.fromkeys(range(1, 89), 1))),
    "leave the perturbation out": lambda room: answers(room, linear=False),
    "swap the runs": lambda room: answers(room)[::-1],
    "one run twice": lambda room: [answers(room)[0]] * 2,
    "replay one run's counts": replay_of_a_run,
    "replay an earlier session's counts": lambda room: answers(room, room.before.of),
    "replay an earlier session's answer": lambda room: answers(room.before),
    "random content": random_answer,
    "an answer that is not relinearised": unrelinearised,
    "subtract from the numerator": lambda room: answers(room, add={NUMERATOR: -(10**9)}),
    "add to the denominator": lambda room: answers(room, add={DENOMINATOR: 10**9}),
    "add to all three numbers": lambda room: answers(
        room, add=dict.fromkeys((NUMERATOR, DENOMINATOR, HIDDEN), 10**9)
    ),
    "shift the tag": lambda room: answers(room, add={TAGGED: 1}),
    "leave a party out of one run": lambda room: in_one_run(room, (1, 0, 1)),
    "count a party twice in one run": lambda room: in_one_run(room, (2, 1, 1)),
    "a factor on one run's answer": lambda room: answers(room, multipliers=(HONEST, 3 * HONEST)),
    "shift the square by a slot": lambda room: answers(room, after=times({1: 1})),
    "one factor's slots moved to the other's": lambda room: answers(
        room, before=times({SCHEME.layout.products: 1})
    ),
    "every slot less the one before": lambda room: answers(room, before=times({0: 1, 1: -1})),
    "add one to both totals": lambda room: answers(
        room, before=plus(dict.fromkeys(SCHEME.layout.totals, 1))
    ),
    "runs of two sessions": lambda room: [answers(room)[0], answers(room.before)[1]],
    "an earlier session's counts beside this one's": lambda room: answers(
        room, lambda run: [*room.of(run), *room.before.of(run)]
    ),
}


FORGED, UNCHANGED = "forged", "AUC unchanged"


def outcome(room: Room, strategy: Callable[[Room], list[bytes]]) -> str:
    """What a party makes of a strategy's answer; ``FORGED`` where it believes a wrong AUC or range.

    A change that multiplies nothing but an empty cell leaves both as they are, and is accepted.
    """
    made = strategy(room)
    try:
        area = room.party.decrypted(made)
    except CheatingError as error:
        return "runs disagree" if "runs disagree" in str(error) else "check failed"
    except HomomorphicError:
        return "no answer"
    except DataError:
        return "no AUC"
    moved = abs(area.value / exact_area() - 1), abs(area.half_range / exact_half_range() - 1)
    return UNCHANGED if moved[0] < ALLOWED and moved[1] < 10 * ALLOWED else FORGED
