"""Who sees what when an aggregator computes the AUC from ciphertexts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tacit.protocol.declarations.threats import ThreatModel

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

MASKED_AGGREGATOR = (
    "The aggregator sees uniform words only, and the AUC to seven places and its certain range to "
    "three digits because the parties tell it; with only hundreds of records the class totals may "
    "follow from that."
)

AGGREGATOR_WITHOUT_AUC = "The aggregator sees {seen} only, and is told nothing of the AUC."

MASKED = ThreatModel(
    "The aggregator follows the protocol and must not collude with any party: every party has the "
    "session's secret, and with one the aggregator reads the others' total counts. Parties follow "
    "the protocol.",
    MASKED_AGGREGATOR,
    "The AUC and its certain range, and the product of the two class totals within a factor of 2 "
    "to the 4 or more; where fewer than 131,000 records were agreed on, parties may work that "
    "product out.",
    "The AUC is exact on its thresholds: masks hide who contributed what on the way, and nothing "
    "of what follows from the figure itself.",
    PAGE,
)

LYING = (
    "It can always refuse to answer, and one that lies learns whether the parties refused the "
    "answer, which they confirm to be one for all: one bit, for example whether a total is above a "
    "number. After one refusal, in any of its sessions, there is no other under these settings."
)

VERIFIED = replace(
    MASKED,
    trust="Experimental: the proof that the parties' check notices every wrong answer is not "
    "reviewed yet. The aggregator may compute wrongly, and must not collude with any party: every "
    f"party has the session's secret. {LYING}",
)

BY_CLASS = replace(
    MASKED,
    trust="The aggregator follows the protocol and must not collude with any party: every party "
    "has the session's secret, and with one the aggregator reads the others' total counts of every "
    "class. Parties follow the protocol.",
    server="The aggregator sees uniform words only, and of every class the AUC against the rest to "
    "seven places and its certain range to three digits because the parties tell it; with only "
    "hundreds of records the class totals may follow from that.",
    others="The AUCs and their certain ranges, and of every class the product of its records and "
    "all others within a factor of 2 to the 4 or more, each under a multiplier of its own: of C "
    "products together the range narrows to 1 in C + 1 or so. Where fewer than 131,000 records "
    "were agreed on, parties may work the products out.",
    left_open="Every class's AUC is exact on its thresholds: masks hide who contributed what on "
    "the way, and nothing of what follows from the figures themselves.",
)

NOISY = ThreatModel(
    "The aggregator sees sums over all parties only, and may collude with the part of them that "
    "was agreed: the noise of the others suffices for epsilon. Parties follow the protocol.",
    "The noisy counts of both classes in every cell, their noisy totals, and one noisy sum of "
    "influences, each over all parties; the AUC follows from them.",
    "What the aggregator publishes of the first round, and the AUC.",
    "What is true of many records; and which parties take part.",
    PAGE,
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
        f"compute wrongly; the parties' checks are there to notice that. {LYING}",
        AGGREGATOR,
        PARTIES,
        FIGURE_OPEN,
        PAGE,
    ),
}


def threats_of(settings: Mapping[str, Any]) -> ThreatModel:
    """The threat model of these settings."""
    if settings.get("epsilon") is not None:
        return NOISY
    masked = settings.get("scheme") == "masked"
    adversary = settings.get("adversary", "semi-honest")
    by_masks = VERIFIED if adversary == "malicious" else MASKED
    made = by_masks if masked else BY_ADVERSARY[adversary]
    if settings.get("reveal") == "parties":
        seen = "uniform words" if masked else "ciphertexts"
        return replace(made, server=AGGREGATOR_WITHOUT_AUC.format(seen=seen))
    return made


def by_class_threats_of(settings: Mapping[str, Any]) -> ThreatModel:
    """The threat model of an evaluation by class with these settings."""
    if settings.get("reveal") == "parties":
        return replace(BY_CLASS, server=AGGREGATOR_WITHOUT_AUC.format(seen="uniform words"))
    return BY_CLASS
