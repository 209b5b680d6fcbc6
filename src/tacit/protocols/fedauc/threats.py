"""Who sees what when a run measures the AUC from noisy rank sums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.protocol.declarations.threats import ThreatModel
from tacit.protocol.declarations.trust import Trust
from tacit.protocols.shared.threats import NOBODY

PAGE = "threat-models/fedauc.md"

SCORES_OPEN = (
    "Scores: the server has them all, and whatever follows from a score about its label stays "
    "open. Numbers of records are not hidden either."
)

NOISY_SUMS = ThreatModel(
    NOBODY,
    "Exactly: every client's scores and number of records. With noise: each client's count of "
    "positives and its sum of ranks, twice where there was a first round.",
    "The ranks of its own records among all, and pivots made of noisy totals.",
    SCORES_OPEN,
    PAGE,
)

FLIPPED_LABELS = ThreatModel(
    NOBODY,
    "Exactly: every client's scores and number of records. The count of positives and the sum "
    "of ranks are of labels that were flipped at random; of a client with one record the "
    "server sees the flipped label itself.",
    "The ranks of its own records among all, and nothing else of the others.",
    SCORES_OPEN,
    PAGE,
)

SUMS_OF_RANKS = ThreatModel(
    "The server is trusted to see sums only. Between real parties that takes secure aggregation; "
    "the command `tacit evaluate` adds up all replies in one process. The other clients are "
    "trusted to draw their shares of the noise and to keep them secret.",
    "Exactly: every client's scores and number of records. With noise: the number of positives of "
    "all clients together, and two sums of their ranks.",
    "The ranks of its own records among all, and a pivot made of noisy totals.",
    f"{SCORES_OPEN} Clients that tell the server their shares take their part of the noise away.",
    PAGE,
)


TWO_MODELS = ThreatModel(
    NOBODY,
    "Exactly: both models' scores of every record, and every client's number of records. With "
    "noise: each client's count of positives, its sum of rank differences and its sum of ranks, of "
    "all records or, where some answer by flipped labels, of these and of the others.",
    "The ranks of its own records among all, by both models.",
    SCORES_OPEN,
    PAGE,
)


def threats_of(settings: Mapping[str, Any]) -> ThreatModel:
    """The threat model of these settings."""
    models = {Trust.SECURE_SUM.value: SUMS_OF_RANKS, Trust.LOCAL.value: FLIPPED_LABELS}
    return models.get(str(settings.get("trust")), NOISY_SUMS)
