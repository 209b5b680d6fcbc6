"""Who sees what when an aggregator computes the AUC from ciphertexts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.protocol.threats import ThreatModel

PAGE = "threat-models/encrypted-auc.md"

AGGREGATOR = (
    "The aggregator sees ciphertexts only, and the AUC to seven places and its certain range "
    "to three digits because the parties tell it; with only hundreds of records the class "
    "totals may follow from that."
)

PARTIES = (
    "The AUC and its certain range, and the product of the two class totals within a factor of "
    "4; where fewer than 65,536 records were agreed on, parties may work that product out."
)

FIGURE_OPEN = (
    "The AUC is exact but for encoding: encryption hides who contributed what on the way, and "
    "nothing of what follows from the figure itself."
)

BY_ADVERSARY = {
    "semi-honest": ThreatModel(
        "The aggregator must not collude with any party: every party has the secret key. Parties "
        "follow the protocol.",
        AGGREGATOR,
        PARTIES,
        FIGURE_OPEN,
        PAGE,
    ),
    "malicious": ThreatModel(
        "The aggregator must not collude with any party: every party has the secret key. It may "
        "compute wrongly; the parties' checks are there to notice that. It can always refuse to "
        "answer.",
        AGGREGATOR,
        PARTIES,
        FIGURE_OPEN,
        PAGE,
    ),
}


def threats_of(settings: Mapping[str, Any]) -> ThreatModel:
    """The threat model of these settings."""
    return BY_ADVERSARY[settings.get("adversary", "semi-honest")]
