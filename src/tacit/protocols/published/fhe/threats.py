"""Who sees what when an aggregator computes the AUC from ciphertexts."""

from __future__ import annotations

from dataclasses import replace

from tacit.protocol.declarations.threats import ThreatModel
from tacit.protocols.encrypted.threats import LYING, PAGE

SEMI_HONEST = ThreatModel(
    "The aggregator must not collude with any party: every party has the secret key. Parties "
    "follow the protocol.",
    "The aggregator sees ciphertexts only, and the AUC to seven places and its certain range "
    "to three digits because the parties tell it; with only hundreds of records the class "
    "totals may follow from that.",
    "The AUC and its certain range, and the product of the two class totals within a factor of "
    "4; where fewer than 65,536 records were agreed on, parties may work that product out.",
    "The AUC is exact but for encoding: encryption hides who contributed what on the way, and "
    "nothing of what follows from the figure itself.",
    PAGE,
)

MALICIOUS = replace(
    SEMI_HONEST,
    trust="The aggregator must not collude with any party: every party has the secret key. It may "
    f"compute wrongly; the parties' checks are there to notice that. {LYING}",
)
