"""The content of ``scales.json``: public maps of scores to positions, for other languages.

Doubles are their eight bytes, most significant first, as hexadecimal digits; codes are decimal
texts, since they are larger than a double holds. Every operation between them is one of IEEE 754.
"""

from __future__ import annotations

import struct
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np

from tacit.metrics.cells.score_scale import (
    KNOT_BITS,
    KNOT_LEVELS,
    LOG_ODDS_REACH,
    REAL_REACH,
    ScoreScale,
    named_scale,
    probability_codes,
    signed_codes,
)
from tacit.protocol.scaled import UNIT_OF

Content = dict[str, Any]

RULE = [
    "knots of log-odds and real: size * sinh(growth * (2 k / cells - 1)) for k from 1 to below "
    "cells / 2, all but the first knot_bits bits of the significand cleared; then 0; then the "
    "mirror image",
    "knots of probability: 1 / (1 + exp(-x)) of every such knot x of log-odds below 0, cleared "
    "likewise; then 1/2; then 1 - q of every knot q below 1/2, in descending order of q",
    "cell: how many knots are at most the score; n knots, n + 1 cells",
    "ends: low, the knots, high; an open end lies as far from its knot as that from the next one",
    "part, in a cell from a to b: (score - a) / (b - a), at most whole_part but in the last cell",
    "part in an open first cell, w = b - a: w / (w + (b - score)); in an open last one, w = b - a: "
    "1 - w / (w + (score - a))",
    "position: (cell + part, cut to [0, 1]) / (n + 1)",
    "score of a position p, cell = floor(p (n + 1)), at most n, part = p (n + 1) - cell: "
    "a + part * (b - a); in an open first cell b - w * (1 / part - 1); in an open last one "
    "a + w * (1 / (1 - part) - 1)",
    "code of a probability: its bits; from 1/2 on 2 * half_code - the bits of 1 - p",
    "code of another number: the bits of its size, with its sign",
]
"""How other programs compute the same; all in doubles, in the order written."""

TINY = (0.0, -0.0, 5e-324, 2.2250738585072014e-308, 1e-300, 1e-12, 1e-6, 0.001, 0.1, 0.25)
PROBABILITIES = (
    *TINY,
    0.3,
    0.49999999999999994,
    0.5,
    0.7,
    0.9,
    0.999,
    1 - 1e-12,
    1 - 2.0**-53,
    1.0,
)
SMALL = (0.0, -0.0, 5e-324, 1e-9, 0.5, 1.0, 3.7, 12.0, 29.0, 36.7, 100.0, 750.0)
NUMBERS = (*SMALL, 1e6, 1e18, 1e19, 1e300, 1.7976931348623157e308)


def hexadecimal(number: float) -> str:
    """The eight bytes of a double, most significant first."""
    return struct.pack(">d", number).hex()


def scales() -> dict[str, ScoreScale]:
    """The named maps, and two as a server may publish them."""
    return {
        **{name: named_scale(name) for name in ("probability", "log-odds", "real")},
        "published, open": ScoreScale(np.array([-1.0, 0.5, 8.0])),
        "published, from 0 to 1": ScoreScale(np.array([0.001, 0.25, 0.5]), 0.0, 1.0),
    }


def scale_vectors() -> Content:
    """Maps, scores with their codes and positions, and what must fail."""
    made = scales()
    return {
        "rule": RULE,
        "cells": 2**KNOT_LEVELS,
        "knot_bits": KNOT_BITS,
        "half_code": str(int(probability_codes(0.5))),
        "whole_part": hexadecimal(1 - 2.0**-40),
        "reach": {
            "log-odds": {"size": LOG_ODDS_REACH[0], "growth": LOG_ODDS_REACH[1]},
            "real": {"size": REAL_REACH[0], "growth": REAL_REACH[1]},
        },
        "scales": {name: described_scale(name, scale) for name, scale in made.items()},
        "valid": [
            described_score(name, made[name], score)
            for name in made
            for score in samples(made[name])
        ],
        "invalid": invalid_scores(),
    }


def described_scale(name: str, scale: ScoreScale) -> Content:
    """A map: its ends, its knots where they are not those of a rule, and their hash."""
    knots = scale.knots.astype(">f8")
    content: Content = {
        "low": None if scale.low is None else hexadecimal(scale.low),
        "high": None if scale.high is None else hexadecimal(scale.high),
        "knots": knots.size,
        "sha256 of the knots": sha256(knots.tobytes()).hexdigest(),
    }
    if name not in UNIT_OF:
        content["listed"] = [hexadecimal(knot) for knot in scale.knots]
    return content


def samples(scale: ScoreScale) -> list[float]:
    """Scores of all sizes, and those beside knots."""
    fixed = PROBABILITIES if scale.low is not None else (*NUMBERS, *(-n for n in NUMBERS))
    chosen = {0, 1, scale.knots.size // 3, scale.knots.size // 2, scale.knots.size - 1}
    knots = [float(scale.knots[index]) for index in sorted(chosen)]
    beside = [float(np.nextafter(knot, way)) for knot in knots for way in (-np.inf, np.inf)]
    middles = [(a + b) / 2 for a, b in pairwise(scale.knots[:4].tolist())]
    return [*fixed, *knots, *beside, *middles]


def described_score(name: str, scale: ScoreScale, score: float) -> Content:
    """A score with its code, its position, and the score of that position."""
    position = float(scale.positions(score))
    code = probability_codes(score) if scale.low is not None else signed_codes(score)
    return {
        "scale": name,
        "about": repr(score),
        "score": hexadecimal(score),
        "code": str(int(code)),
        "position": hexadecimal(position),
        "back": hexadecimal(float(scale.scores(position))),
    }


def invalid_scores() -> list[Content]:
    """Scores that a client refuses before it places them."""
    cases = [
        ("probability", 1.0000000000000002, "scores must be in [0, 1]"),
        ("probability", -5e-324, "scores must be in [0, 1]"),
        *((name, float("nan"), "scores must be finite") for name in ("probability", "real")),
        *(("log-odds", end, "scores must be finite") for end in (-np.inf, np.inf)),
        ("octaves", 0.5, "scale must be one of"),
    ]
    return [
        {"scale": name, "about": repr(score), "score": hexadecimal(score), "error": error}
        for name, score, error in cases
    ]
