"""Public maps of scores against their vectors, also by a second program written from their rule.

Doubles are their eight bytes, most significant first, as hexadecimal digits; codes are decimal
texts, since they are larger than a double holds. Every operation between them is one of IEEE 754.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_right
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from tacit.data.clients import Clients
from tacit.metrics.cells import score_scale
from tests.cells import CountedCells
from tests.vectors import vectors

FILE = vectors("scales")


def double(digits: str) -> float:
    (number,) = struct.unpack(">d", bytes.fromhex(digits))
    return float(number)


def bits(number: float) -> int:
    return int.from_bytes(struct.pack(">d", number), "big")


def cleared(number: float) -> float:
    """A positive number with the first bits of its significand only."""
    kept = bits(number) >> (52 - FILE["knot_bits"]) << (52 - FILE["knot_bits"])
    return double(kept.to_bytes(8, "big").hex())


def spread(size: float, growth: float) -> list[float]:
    """The knots below 0."""
    cells = FILE["cells"]
    return [-cleared(-size * math.sinh(growth * (2 * k / cells - 1))) for k in range(1, cells // 2)]


def borders_by_rule(name: str) -> list[float]:
    content = FILE["scales"][name]
    if "listed" in content:
        return [double(digits) for digits in content["listed"]]
    lower = spread(**FILE["reach"]["log-odds" if name == "probability" else name])
    if name != "probability":
        return [*lower, 0.0, *(-border for border in reversed(lower))]
    below = [cleared(1 / (1 + math.exp(-border))) for border in lower]
    return [*below, 0.5, *(1 - border for border in reversed(below))]


class ByRule:
    """A map as the rule in the file has it, one number at a time."""

    def __init__(self, name: str) -> None:
        content = FILE["scales"][name]
        self.borders = borders_by_rule(name)
        self.is_open = content["low"] is None
        first, last = self.borders[0], self.borders[-1]
        low = first - (self.borders[1] - first) if self.is_open else double(content["low"])
        high = last + (last - self.borders[-2]) if self.is_open else double(content["high"])
        self.ends = [low, *self.borders, high]

    def position(self, score: float) -> float:
        last = len(self.borders)
        cell = bisect_right(self.borders, score)
        a, b = self.ends[cell], self.ends[cell + 1]
        if self.is_open and cell == 0:
            part = (b - a) / ((b - a) + (b - score))
        elif self.is_open and cell == last:
            part = 1 - (b - a) / ((b - a) + (score - a))
        else:
            part = (score - a) / (b - a)
        if cell < last:
            part = min(part, double(FILE["whole_part"]))
        return (cell + min(max(part, 0.0), 1.0)) / (last + 1)

    def score(self, position: float) -> float:
        last = len(self.borders)
        scaled = position * (last + 1)
        cell = min(math.floor(scaled), last)
        part, a, b = scaled - cell, self.ends[cell], self.ends[cell + 1]
        if self.is_open and cell == 0:
            return b - (b - a) * (1 / part - 1) if part else -math.inf
        if self.is_open and cell == last:
            return a + (b - a) * (1 / (1 - part) - 1) if part < 1 else math.inf
        return a + part * (b - a)

    def code(self, score: float) -> int:
        if self.is_open:
            return int(math.copysign(1, score)) * bits(abs(score))
        return bits(score + 0.0) if score < 0.5 else 2 * int(FILE["half_code"]) - bits(1 - score)


NAMES = list(FILE["scales"])


@pytest.mark.parametrize("name", NAMES)
def test_knots_by_the_rule_have_the_hash(name: str) -> None:
    borders = borders_by_rule(name)
    content = b"".join(struct.pack(">d", border) for border in borders)
    assert len(borders) == FILE["scales"][name]["knots"]
    assert scale_of(name).borders.tolist() == borders
    assert sha256(content).hexdigest() == FILE["scales"][name]["sha256 of the knots"]


@pytest.mark.parametrize("name", NAMES)
def test_the_rule_and_the_package_give_codes_and_positions_to_the_last_bit(name: str) -> None:
    by_rule, scale = ByRule(name), scale_of(name)
    entries = [entry for entry in FILE["valid"] if entry["scale"] == name]
    assert len(entries) > 25
    for entry in entries:
        score, position = double(entry["score"]), double(entry["position"])
        assert by_rule.code(score) == int(entry["code"]), entry
        assert not by_rule.is_open or int(score_scale.signed_codes(score)) == int(entry["code"])
        positions = by_rule.position(score), float(scale.positions(score))
        assert list(map(bits, positions)) == [bits(position)] * 2, entry
        back = double(entry["back"])
        assert by_rule.score(position) == float(scale.scores(position)) == back, entry


def scale_of(name: str) -> score_scale.ScoreScale:
    """A named map, or one as a server may publish it."""
    if name in score_scale.SCALES:
        return score_scale.named_scale(name)
    content = FILE["scales"][name]
    ends = (None if content[end] is None else double(content[end]) for end in ("low", "high"))
    return score_scale.ScoreScale(np.array(borders_by_rule(name)), *ends)


@pytest.mark.parametrize("entry", FILE["invalid"], ids=lambda entry: entry["about"])
def test_a_score_that_must_fail_does(entry: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as caught:
        protocol = CountedCells(scale=entry["scale"])
        protocol.on_scale(Clients.from_arrays([double(entry["score"])], [1]))
    assert entry["error"] in str(caught.value)
