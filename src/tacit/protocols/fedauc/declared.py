"""What FedAUC declares for audits, reports and laws."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from tacit.privacy.sampling.doubles import GridNoise, ScaledNoise
from tacit.protocol.declarations.audits import (
    DELTA,
    LOW_BITS,
    SUMS,
    AuditCase,
    AuditTrial,
    LabelAttack,
    SelfTestCases,
    cases_of,
)
from tacit.protocol.declarations.defaults import Declarations
from tacit.protocol.declarations.laws import ErrorCase, LawTraits
from tacit.protocol.declarations.trust import Trust
from tacit.protocols.fedauc.threats import threats_of
from tacit.protocols.shared.sums.rank_noise import RESPONSE

SECURE_SUM = Trust.SECURE_SUM.value

ADDITIVE_COPIES = 400
"""Copies of a small client's records with which it adds noise and flips no labels."""

ROUNDING = 1e-6
"""Largest error of an AUC of few records by rounding sums to units (``whole_units``)."""

NOTICED = ("fedauc-secure-sum", "fedauc", "fedauc-adaptive", "fedauc-gaussian")
"""Law cases in which wrong noise must be noticed."""


class FedAUCDeclarations(Declarations):
    """Cases, attacks, threats and laws of ``FedAUC``."""

    mechanism: str
    allocation: str
    ranks: str
    trust: str
    threats = staticmethod(threats_of)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """Every way to divide the budget, and every mechanism."""
        return (
            *cases_of(
                cls.name,
                {},
                {"allocation": "adaptive"},
                {"mechanism": "laplace", "allocation": "fixed"},
                {"mechanism": "gaussian", "delta": DELTA, "allocation": "adaptive"},
                {"ranks": "mpc"},
                {"trust": "secure-sum"},
            ),
            AuditCase(cls.name, {"mechanism": RESPONSE}, records=2),
            AuditCase(cls.name, {"mechanism": "staircase"}, records=600),
        )

    @classmethod
    def self_test_cases(cls) -> SelfTestCases:
        """Rank sums, flipped labels and low bits, sound and with a mistake each."""
        kind: Any = cls
        sums, response = kind(1.0, "staircase", "adaptive"), kind(1.0, RESPONSE)
        laplace, halved = kind(1.0, "laplace", "fixed"), partial(ScaledNoise, 0.5)
        grid, bare = "Laplace noise on a grid, low bits", "floating-point noise, low bits"
        return SelfTestCases(
            (
                AuditTrial(SUMS, "noisy rank sums", False, sums),
                AuditTrial(SUMS, "their noise halved", True, sums, halved),
                AuditTrial(SUMS, "flipped labels", False, response, records=2),
                AuditTrial(SUMS, "flipped half as often", True, response, halved, records=2),
                AuditTrial(LOW_BITS, grid, False, laplace, GridNoise, low_bits=True, system=True),
                AuditTrial(LOW_BITS, bare, True, laplace, low_bits=True),
            ),
            (kind(1.0, "discrete-laplace", "adaptive"),),
        )

    def label_attacks(self) -> tuple[LabelAttack, ...]:
        """Labels guessed from the scores that the server receives, if it receives any."""
        from tacit.protocols.shared import score_attacks

        if self.ranks == "mpc":
            return (score_attacks.guesses_from_plain_scores,)
        return (score_attacks.guesses_from_ascending_scores,)

    @classmethod
    def law_cases(cls) -> Mapping[str, Any]:
        """Every mechanism and every way to divide the budget."""
        kind: Any = cls
        return {
            "fedauc": kind(1.0),
            "fedauc-large-epsilon": kind(6.0),
            "fedauc-laplace": kind(1.0, "laplace"),
            "fedauc-discrete-laplace": kind(1.0, "discrete-laplace"),
            "fedauc-gaussian": kind(1.0, "gaussian", delta=1e-6),
            "fedauc-adaptive": kind(1.0, "laplace", "adaptive"),
            "fedauc-adaptive-staircase": kind(1.0, "staircase", "adaptive"),
            "fedauc-adaptive-gaussian": kind(1.0, "gaussian", "adaptive", delta=1e-6),
            "fedauc-orthogonal": kind(1.0, "laplace", "orthogonal", beta=0.3),
            "fedauc-local": kind(1.0, "laplace", "fixed", alpha=0.6),
            "fedauc-global": kind(1.0, "laplace", "fixed", sensitivity="global"),
            "fedauc-response": kind(1.0, RESPONSE),
            "fedauc-mpc": kind(1.0, ranks="mpc"),
            "fedauc-secure-sum": kind(1.0, trust="secure-sum"),
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
        together, summed = self.ranks == "mpc", self.trust == SECURE_SUM
        return LawTraits(
            indivisible="a client alone cannot rank its records" if together else "",
            inexact="flipped labels are debiased all the same"
            if self.mechanism == RESPONSE
            else "",
            keeps_state=together or summed,
            tolerance=ROUNDING if summed else 1e-9,
            copies=ADDITIVE_COPIES if self.allocation == "influence" else 1,
        )
