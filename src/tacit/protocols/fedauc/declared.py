"""What FedAUC declares for audits, reports and laws, and its trust ``HiddenRanks``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from tacit.privacy.sampling import doubles
from tacit.protocol.declarations import audits
from tacit.protocol.declarations.defaults import Declarations
from tacit.protocol.declarations.threats import ThreatModel
from tacit.protocol.declarations.trust import Local, SecureSum, Trust
from tacit.protocol.settings.choices import Choice
from tacit.protocols.shared.declared import (
    NOBODY,
    guesses_from_ascending_scores,
    guesses_from_plain_scores,
)

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


class RankedDeclarations(Declarations):
    """What protocols declare whose server receives every client's scores."""

    def label_attacks(self) -> tuple[audits.LabelAttack, ...]:
        """Labels guessed from the scores that the server receives."""
        return (guesses_from_ascending_scores,)


class FedAUCDeclarations(RankedDeclarations):
    """Cases, attacks, threats and laws of ``FedAUC``."""

    trust: Choice | str
    threats = staticmethod(threats_of)
    audit_settings = ({}, {"trust": "mpc"}, {"trust": "secure-sum"})
    law_settings: ClassVar[audits.Configurations] = {
        "fedauc": {},
        "fedauc-large-epsilon": {"epsilon": 6.0},
        "fedauc-response": {"trust": "local"},
        "fedauc-mpc": {"trust": "mpc"},
        "fedauc-secure-sum": {"trust": "secure-sum"},
    }
    noticed = ("fedauc-secure-sum", "fedauc")

    @classmethod
    def audit_cases(cls) -> tuple[audits.AuditCase, ...]:
        """Every trust; of flipped labels two, as all are flipped alike."""
        return (
            *super().audit_cases(),
            audits.AuditCase(cls.name, {"trust": "local"}, records=2),
            audits.AuditCase(cls.name, records=600),
        )

    @classmethod
    def self_test_cases(cls) -> audits.SelfTestCases:
        """Flipped labels, sound and with a mistake."""
        kind: Any = cls
        response, halved = kind(1.0, Local()), partial(doubles.ScaledNoise, 0.5)
        return audits.SelfTestCases(
            (
                audits.AuditTrial(audits.SUMS, "flipped labels", False, response, records=2),
                audits.AuditTrial(
                    audits.SUMS, "flipped half as often", True, response, halved, records=2
                ),
            )
        )

    def label_attacks(self) -> tuple[audits.LabelAttack, ...]:
        """Labels guessed from the scores that the server receives, if it receives any."""
        is_hidden = isinstance(self.trust, HiddenRanks)
        return (guesses_from_plain_scores,) if is_hidden else super().label_attacks()

    @property
    def law_traits(self) -> audits.LawTraits:
        """Flipped labels are debiased without noise too; clients that rank together keep notes.

        Sums are rounded to units before their shares of noise are added.
        """
        trust = self.trust
        together, summed = isinstance(trust, HiddenRanks), isinstance(trust, SecureSum)
        responds = isinstance(trust, Local)
        return audits.LawTraits(
            indivisible="a client alone cannot rank its records" if together else "",
            inexact="flipped labels are debiased all the same" if responds else "",
            keeps_state=together or summed,
            tolerance=ROUNDING if summed else 1e-9,
            copies=1 if together else ADDITIVE_COPIES,
        )
