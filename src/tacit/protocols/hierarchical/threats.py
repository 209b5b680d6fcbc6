"""Who sees what when every record answers one question about its score."""

from __future__ import annotations

from tacit.protocol.declarations.threats import ThreatModel
from tacit.protocols.shared.threats import LOCAL, LOCAL_PAGE

ONE_ANSWER = ThreatModel(
    LOCAL,
    "Exactly: of every record its label, and which question it was asked. With noise: one "
    "answer, yes or no, or one on every level where a delta was given.",
    "Nothing.",
    "Labels: the server sees every one of them. Numbers of records.",
    LOCAL_PAGE,
)
