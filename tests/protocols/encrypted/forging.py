"""A small checked evaluation: its data, its numbers, and what would forge them or be believed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

import tacit
from tacit.crypto.homomorphic.engine import HomomorphicError
from tacit.crypto.masking import MaskedValueError
from tacit.data import clients, errors
from tacit.protocols.encrypted.masked_scheme import Products
from tacit.protocols.published.fhe import bfv, packing

THRESHOLDS, PARTIES, RECORDS = 10, 3, 3000
HONEST = 100_003
WRAPPING = 2**100 + 12345
SCHEME = bfv.ExactScheme(THRESHOLDS, packing.Scale(RECORDS), checked=True, perturbed=True)


def federation() -> clients.Clients:
    scores, labels = tacit.binormal_scores(RECORDS // 3, 2 * RECORDS // 3, 0.75, seed=0)
    return clients.Clients.split(scores, labels, PARTIES, seed=0)


def counts() -> packing.Counts:
    return packing.cumulative_counts(federation(), np.linspace(0.0, 1.0, THRESHOLDS))


def true_numbers(made: packing.Counts | None = None) -> Products:
    """X, Y and Z in plain integers, of which honest answers are multiples."""
    made = made or counts()
    rising, falling, inside = (
        each.sum(axis=1) for each in (made.rising, made.falling, made.inside)
    )
    pairs = int(made.positives.sum()) * int(made.negatives.sum())
    return Products(int(rising @ falling), pairs, int(inside @ falling))


def reduced(numbers: tuple[int, int], modulus: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The two shortest pairs that some multiplier takes the numbers to (Gauss's reduction)."""
    first, second = (modulus, 0), (numbers[0] * pow(numbers[1], -1, modulus) % modulus, 1)
    while True:
        if first[0] ** 2 + first[1] ** 2 < second[0] ** 2 + second[1] ** 2:
            first, second = second, first
        dot = first[0] * second[0] + first[1] * second[1]
        square = second[0] ** 2 + second[1] ** 2
        steps = (2 * dot + square) // (2 * square)
        if steps == 0:
            return second, first
        first = (first[0] - steps * second[0], first[1] - steps * second[1])


def forging_multiplier(modulus: int) -> int:
    """Takes the numbers, which it knows, to a small positive pair of another ratio."""
    numbers = 2 * true_numbers().numerator, 2 * true_numbers().denominator
    parallel, other = reduced(numbers, modulus)
    sign = 1 if parallel[1] > 0 else -1
    steps = 2 + max(-value // abs(short) for value, short in zip(other, parallel, strict=True))
    denominator = other[1] + max(steps, 1) * sign * parallel[1]
    return denominator * pow(numbers[1], -1, modulus) % modulus


def exact_area() -> float:
    return true_numbers().numerator / (2 * true_numbers().denominator)


def exact_half_range() -> float:
    """The pairs that share a cell, half of them, over all."""
    return true_numbers().tied / (2 * true_numbers().denominator)


FORGED, UNCHANGED = "forged", "AUC unchanged"
ALLOWED = 3e-6
"""What the perturbation of so few records may move an AUC by."""


@dataclass(frozen=True, eq=False)
class Room(ABC):
    """One session as the aggregator sees it, the one before, and the party that opens answers."""

    party: Any
    uploads: Any
    earlier: Self | None = None

    allowed: ClassVar[float]
    """What perturbations may move a half-range by."""

    @classmethod
    @abstractmethod
    def new(cls, earlier: Self | None = None) -> Self:
        """A session under fresh keys."""

    @classmethod
    def rooms(cls, count: int) -> Iterator[Self]:
        """Independent sessions, each of which remembers the one before."""
        room = cls.new()
        for _ in range(count):
            room = cls.new(replace(room, earlier=None))
            yield room

    @property
    def before(self) -> Self:
        assert self.earlier is not None
        return self.earlier


def outcome(room: Any, strategy: Callable[[Any], Any]) -> str:
    """What a party makes of a strategy's answer; ``FORGED`` where it believes a wrong AUC or range.

    A change that multiplies nothing but an empty cell leaves both as they are, and is accepted.
    """
    made = strategy(room)
    try:
        area = room.party.decrypted(made)
    except (HomomorphicError, MaskedValueError, errors.DataError) as error:
        return str(error).partition(",")[0]
    moved = abs(area.value / exact_area() - 1), abs(area.half_range / exact_half_range() - 1)
    return UNCHANGED if moved[0] < ALLOWED and moved[1] < room.allowed else FORGED
