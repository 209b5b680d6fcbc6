"""Who sees what when a run counts both classes in a tree of cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.protocol.declarations.threats import ThreatModel
from tacit.protocol.declarations.trust import Trust
from tacit.protocols.shared.threats import LOCAL, LOCAL_PAGE, SUM_TRUST

PAGE = "threat-models/score-histogram.md"

BY_TRUST = {
    Trust.EXACT_SUM: ThreatModel(
        f"{SUM_TRUST} No noise is added, so everybody who sees the result is trusted with what "
        "follows from exact sums.",
        "Exactly: how many positives and negatives of all clients together lie in every cell. Of "
        "each client: that it answered.",
        "Nothing.",
        "Everything that exact sums tell: a cell with one record is that record, and two sums over "
        "nearly the same clients differ by those that came or went.",
        PAGE,
    ),
    Trust.SECURE_SUM: ThreatModel(
        f"{SUM_TRUST} The other clients are trusted to draw their shares of the noise and to keep "
        "them secret.",
        "With noise: how many positives and negatives of all clients together lie in every cell, "
        "and, with a second round, the sum of all records' influences on the AUC. Exactly: how "
        "many clients answered.",
        "Both classes' published distributions and sizes where there was a second round, cells "
        "where a first count placed them; else nothing.",
        "Clients that vanish, or that tell the server their shares, take their part of the noise "
        "away. Colluders cannot be seen.",
        PAGE,
    ),
    Trust.LOCAL: ThreatModel(
        LOCAL,
        "Exactly: each client's number of records, in which round each spoke, and about which "
        "level. With noise: of a few records where their scores lie, of every other some bits "
        "about its class and cell.",
        "Cells that hold about equally many records, as far as noisy reports tell.",
        "Numbers of records, and the order in which they were sent.",
        LOCAL_PAGE,
    ),
}


def threats_of(settings: Mapping[str, Any]) -> ThreatModel:
    """The threat model of these settings."""
    return BY_TRUST[Trust.of(str(settings.get("trust", Trust.SECURE_SUM.value)))]
