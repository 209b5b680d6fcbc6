"""Who sees what when the two clients of a pair compute its value together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.protocol.declarations.threats import ThreatModel
from tacit.protocols.paired.noise import SHARED

PAGE = "threat-models/paired-ustatistic.md"

PAIRED = (
    "The two clients of a pair are trusted not to work together with the server beyond what is "
    "said below. Between real parties they compute by cryptography; where a trusted party took its "
    "place, a warning says so."
)

PAIRED_SERVER = (
    "Exactly: each client's number of records. With noise: the value of every pair, and for an AUC "
    "each client's count of positives."
)

WHOLE_NOISE = ThreatModel(
    PAIRED,
    PAIRED_SERVER,
    "Nothing.",
    "Numbers of records, and which pairs were drawn. Against a client that tells the server "
    "all it knows, the same epsilon is left.",
    PAGE,
)

SHARED_NOISE = ThreatModel(
    PAIRED,
    PAIRED_SERVER,
    "Nothing.",
    "Numbers of records, and which pairs were drawn. A client that tells the server its half "
    "of the noise leaves its partner with less than the stated epsilon promises.",
    PAGE,
)


def threats_of(settings: Mapping[str, Any]) -> ThreatModel:
    """The threat model of these settings."""
    return SHARED_NOISE if settings.get("noise") == SHARED else WHOLE_NOISE
