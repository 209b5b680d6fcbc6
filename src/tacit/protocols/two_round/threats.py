"""Who sees what when every record reports once, in one of two rounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.protocol.declarations.threats import ThreatModel
from tacit.protocols.shared.threats import LOCAL, LOCAL_PAGE

DISTRIBUTIONS = "Both classes' distributions, as far as the first round's noisy reports tell them."

BY_LABELS = {
    "private": ThreatModel(
        LOCAL,
        "Exactly: each client's number of records, and in which round each spoke. With noise: one "
        "report of every record.",
        DISTRIBUTIONS,
        "Numbers of records, and the order in which they were sent.",
        LOCAL_PAGE,
    ),
    "public": ThreatModel(
        LOCAL,
        "Exactly: every label, each client's number of records, and in which round each spoke. "
        "With noise: one report about every record's score.",
        DISTRIBUTIONS,
        "Labels: the server sees every one of them.",
        LOCAL_PAGE,
    ),
}


def threats_of(settings: Mapping[str, Any]) -> ThreatModel:
    """The threat model of these settings."""
    return BY_LABELS[settings.get("labels", "private")]
