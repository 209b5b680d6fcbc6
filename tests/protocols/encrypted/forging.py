"""A small checked evaluation: its data, its numbers, and multipliers that would forge them."""

from __future__ import annotations

import numpy as np

import tacit
from tacit.data.clients import Clients
from tacit.protocols.published.fhe.bfv import ExactScheme
from tacit.protocols.published.fhe.packing import Scale, cumulative_counts

THRESHOLDS, PARTIES, RECORDS = 10, 3, 3000
HONEST = 100_003
WRAPPING = 2**100 + 12345
SCHEME = ExactScheme(THRESHOLDS, Scale(RECORDS), checked=True, shares=4, perturbed=True)


def federation() -> Clients:
    scores, labels = tacit.binormal_scores(RECORDS // 3, 2 * RECORDS // 3, 0.75, seed=0)
    return Clients.split(scores, labels, PARTIES, seed=0)


def true_numbers() -> tuple[int, int]:
    """X and Y, of which honest answers are multiples."""
    counts = cumulative_counts(federation(), np.linspace(0.0, 1.0, THRESHOLDS))
    whole = 2 * int((counts.rising.sum(axis=1) * counts.falling.sum(axis=1)).sum())
    return whole, 2 * int(counts.positives.sum()) * int(counts.negatives.sum())


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
    numbers = true_numbers()
    parallel, other = reduced(numbers, modulus)
    sign = 1 if parallel[1] > 0 else -1
    steps = 2 + max(-value // abs(short) for value, short in zip(other, parallel, strict=True))
    denominator = other[1] + max(steps, 1) * sign * parallel[1]
    return denominator * pow(numbers[1], -1, modulus) % modulus


def exact_area() -> float:
    whole, pairs = true_numbers()
    return whole / (2 * pairs)


def exact_half_range() -> float:
    """The pairs that share a cell, half of them, over all."""
    counts = cumulative_counts(federation(), np.linspace(0.0, 1.0, THRESHOLDS))
    tied = int((counts.inside.sum(axis=1) * counts.falling.sum(axis=1)).sum())
    return tied / (2 * int(counts.positives.sum()) * int(counts.negatives.sum()))
