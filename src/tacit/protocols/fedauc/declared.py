"""What FedAUC declares for audits, reports and laws."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from tacit.privacy.sampling.doubles import ScaledNoise
from tacit.protocol.declarations.audits import (
    SUMS,
    AuditCase,
    AuditTrial,
    LabelAttack,
    SelfTestCases,
    cases_of,
)
from tacit.protocol.declarations.defaults import Declarations
from tacit.protocol.declarations.laws import ErrorCase, LawTraits
from tacit.protocol.settings.choices import Choice
from tacit.protocol.settings.trusts import Local, SecureSum
from tacit.protocols.fedauc.threats import threats_of
from tacit.protocols.fedauc.trusts import HiddenRanks

ADDITIVE_COPIES = 400
"""Copies of a small client's records with which it adds noise and flips no labels."""

ROUNDING = 1e-6
"""Largest error of an AUC of few records by rounding sums to units (``whole_units``)."""

NOTICED = ("fedauc-secure-sum", "fedauc")
"""Law cases in which wrong noise must be noticed."""


class FedAUCDeclarations(Declarations):
    """Cases, attacks, threats and laws of ``FedAUC``."""

    trust: Choice | str
    threats = staticmethod(threats_of)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """Every trust; of flipped labels two, as all are flipped alike."""
        return (
            *cases_of(cls.name, {}, {"trust": "mpc"}, {"trust": "secure-sum"}),
            AuditCase(cls.name, {"trust": "local"}, records=2),
            AuditCase(cls.name, records=600),
        )

    @classmethod
    def self_test_cases(cls) -> SelfTestCases:
        """Flipped labels, sound and with a mistake."""
        kind: Any = cls
        response, halved = kind(1.0, Local()), partial(ScaledNoise, 0.5)
        return SelfTestCases(
            (
                AuditTrial(SUMS, "flipped labels", False, response, records=2),
                AuditTrial(SUMS, "flipped half as often", True, response, halved, records=2),
            )
        )

    def label_attacks(self) -> tuple[LabelAttack, ...]:
        """Labels guessed from the scores that the server receives, if it receives any."""
        from tacit.protocols.shared import score_attacks

        if isinstance(self.trust, HiddenRanks):
            return (score_attacks.guesses_from_plain_scores,)
        return (score_attacks.guesses_from_ascending_scores,)

    @classmethod
    def law_cases(cls) -> Mapping[str, Any]:
        """Every trust, and a large budget."""
        kind: Any = cls
        return {
            "fedauc": kind(1.0),
            "fedauc-large-epsilon": kind(6.0),
            "fedauc-response": kind(1.0, Local()),
            "fedauc-mpc": kind(1.0, HiddenRanks()),
            "fedauc-secure-sum": kind(1.0, SecureSum()),
        }

    @classmethod
    def error_cases(cls) -> Mapping[str, ErrorCase]:
        """All of them give errors."""
        return {
            name: ErrorCase(each, noticed=name in NOTICED) for name, each in cls.law_cases().items()
        }

    @property
    def law_traits(self) -> LawTraits:
        """Flipped labels are debiased without noise too; clients that rank together keep notes.

        Sums are rounded to units before their shares of noise are added.
        """
        trust = self.trust
        together, summed = isinstance(trust, HiddenRanks), isinstance(trust, SecureSum)
        responds = isinstance(trust, Local)
        return LawTraits(
            indivisible="a client alone cannot rank its records" if together else "",
            inexact="flipped labels are debiased all the same" if responds else "",
            keeps_state=together or summed,
            tolerance=ROUNDING if summed else 1e-9,
            copies=1 if together else ADDITIVE_COPIES,
        )
