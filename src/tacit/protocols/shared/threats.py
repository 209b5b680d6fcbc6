"""Sentences that the threat models of several protocols share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.protocol.declarations.threats import ThreatModel
from tacit.protocol.declarations.trust import Trust

NOBODY = (
    "Nobody: every client adds its own noise before anything leaves it. The server is expected to "
    "follow the protocol, and may look at all that it receives."
)
LOCAL = (
    "Nobody: every record randomises its own report before it leaves the client. The server is "
    "expected to follow the protocol, and may look at all that it receives."
)
SUM_TRUST = (
    "The server is trusted to see sums only. Between real parties that takes secure aggregation; "
    "the command `tacit evaluate` adds up all replies in one process."
)
LOCAL_PAGE = "threat-models/local.md"


def forest_model(
    settings: Mapping[str, Any], summed: str, published: str = "Nothing."
) -> ThreatModel:
    """The threat model of a protocol whose records count in a forest.

    Parameters
    ----------
    settings : those of a result.
    summed : what the counts are, after "how many".
    published : what a client of a noisy sum sees of the others.
    """
    trust = Trust.of(settings.get("trust", Trust.SECURE_SUM.value))
    if trust is Trust.EACH:
        return ThreatModel(
            NOBODY,
            f"With noise, of every client: {summed}.",
            "Nothing.",
            "What is true of many records of one client.",
        )
    if trust is Trust.LOCAL:
        return ThreatModel(
            LOCAL,
            "Exactly, of every record: which of the counts it was dealt to. With noise: one report "
            f"about these counts. From all reports: {summed}.",
            "Nothing.",
            "What is true of many records of one client.",
            LOCAL_PAGE,
        )
    if trust is Trust.EXACT_SUM:
        return ThreatModel(
            f"{SUM_TRUST} No noise is added, so everybody who sees the result is trusted with what "
            "follows from exact sums.",
            f"Exactly, of all clients together: {summed}. Of each client: that it answered.",
            "Nothing.",
            "Everything that exact sums tell: a cell with one record is that record.",
        )
    return ThreatModel(
        f"{SUM_TRUST} The other clients are trusted to draw their shares of the noise and to keep "
        "them secret.",
        f"With noise, of all clients together: {summed}. Exactly: how many clients answered.",
        published,
        "Clients that vanish, or that tell the server their shares, take their part of the noise "
        "away. Colluders cannot be seen.",
    )
