"""Who sees what when an aggregator computes the AUC from masked counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tacit.protocol.declarations.threats import ThreatModel

PAGE = "threat-models/encrypted-auc.md"

AGGREGATOR_WITHOUT_AUC = "The aggregator sees {seen} only, and is told nothing of the AUC."

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


def threats_of(settings: Mapping[str, Any]) -> ThreatModel:
    """The threat model of these settings."""
    if settings.get("epsilon") is not None:
        return NOISY
    made = VERIFIED if settings.get("adversary") == "malicious" else MASKED
    return told_to_parties(made, settings, "uniform words")


def by_class_threats_of(settings: Mapping[str, Any]) -> ThreatModel:
    """The threat model of an evaluation by class with these settings."""
    return told_to_parties(BY_CLASS, settings, "uniform words")


def told_to_parties(made: ThreatModel, settings: Mapping[str, Any], seen: str) -> ThreatModel:
    """The model where the parties may tell the aggregator nothing, which sees these messages."""
    if settings.get("reveal") == "parties":
        return replace(made, server=AGGREGATOR_WITHOUT_AUC.format(seen=seen))
    return made
