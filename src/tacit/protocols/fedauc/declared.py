"""What FedAUC declares for audits, reports and laws, and its trust ``HiddenRanks``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tacit.protocol.declarations.threats import NOBODY, ThreatModel
from tacit.protocol.declarations.trust import Trust
from tacit.protocol.settings.choices import Choice

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

FLIPPED_LABELS = replace(
    NOISY_SUMS,
    server="Exactly: every client's scores and number of records. The count of positives and the "
    "sum of ranks are of labels that were flipped at random; of a client with one record the "
    "server sees the flipped label itself.",
    others="The ranks of its own records among all, and nothing else of the others.",
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


TWO_MODELS = replace(
    NOISY_SUMS,
    server="Exactly: both models' scores of every record, and every client's number of records. "
    "With noise: each client's count of positives, its sum of rank differences and its sum of "
    "ranks, of all records or, where some answer by flipped labels, of these and of the others.",
    others="The ranks of its own records among all, by both models.",
)


def threats_of(settings: Mapping[str, Any]) -> ThreatModel:
    """The threat model of these settings."""
    models = {Trust.SECURE_SUM.value: SUMS_OF_RANKS, Trust.LOCAL.value: FLIPPED_LABELS}
    return models.get(str(settings.get("trust")), NOISY_SUMS)


@dataclass(frozen=True)
class HiddenRanks(Choice):
    """The clients rank their scores together, and show them to nobody.

    The server knows no ranks, so that the noise of every client is that of the largest one.

    Parameters
    ----------
    alpha : the rank sum's fraction of epsilon, between 0 and 1.

    Raises
    ------
    ValueError : for a fraction outside this range.
    """

    alpha: float = 0.5

    word = Trust.MPC.value

    def __post_init__(self) -> None:
        check_fraction("alpha", self.alpha)


def check_fraction(name: str, value: float) -> None:
    """Refuse a fraction of a budget that leaves nothing for one of two numbers.

    Raises
    ------
    ValueError : naming it.
    """
    if not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1, both excluded, got {value}")


ADDITIVE_COPIES = 400
"""Copies of a small client's records with which it adds noise and flips no labels."""

ROUNDING = 1e-6
"""Largest error of an AUC of few records by rounding sums to units (``whole_units``)."""
