"""Who sees what when every record reports a randomised symbol."""

from __future__ import annotations

from tacit.protocol.declarations.threats import ThreatModel
from tacit.protocols.shared.threats import LOCAL, LOCAL_PAGE

ONE_SYMBOL = ThreatModel(
    LOCAL,
    "Exactly: each client's number of records. With noise: of every record in which bin it lies.",
    "Nothing.",
    "Numbers of records.",
    LOCAL_PAGE,
)
