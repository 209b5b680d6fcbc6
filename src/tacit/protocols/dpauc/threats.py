"""Who sees what when a run measures the AUC from noisy counts in cells of scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.protocol.declarations.threats import ThreatModel
from tacit.protocols.shared.threats import NOBODY

PAGE = "threat-models/dpauc.md"

NOISY_COUNTS = (
    "With noise: each client's positives and negatives in every cell of scores, or above every "
    "threshold; with a second round one more number, the sum of its records' influences on the AUC."
)

PUBLISHED = "Both classes' noisy distributions and sizes with a second round; else nothing."

BY_ADJACENCY = {
    "record": ThreatModel(
        NOBODY,
        NOISY_COUNTS,
        PUBLISHED,
        "What is true of a large client as a whole: a noisy count of many records is a good "
        "estimate of that count.",
        PAGE,
    ),
    "replace": ThreatModel(
        NOBODY,
        NOISY_COUNTS,
        PUBLISHED,
        "A client's number of records, though it is noisy, and what is true of a large client as a "
        "whole.",
        PAGE,
    ),
    "label": ThreatModel(
        NOBODY,
        "Scores are treated as known: each client's number of records in a cell may be exact. "
        "Its positives are noisy, or counted among flipped labels.",
        "Nothing.",
        "Scores, up to the width of a cell, and numbers of records.",
        PAGE,
    ),
}


def threats_of(settings: Mapping[str, Any]) -> ThreatModel:
    """The threat model of these settings."""
    return BY_ADJACENCY[settings.get("adjacency", "record")]
