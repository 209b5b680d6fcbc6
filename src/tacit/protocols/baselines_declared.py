"""What the baselines declare for audits, reports and laws."""

from __future__ import annotations

from collections.abc import Mapping

from tacit.protocol.declarations.audits import AuditCase, LabelAttack
from tacit.protocol.declarations.defaults import Declarations
from tacit.protocol.declarations.laws import ErrorCase
from tacit.protocol.declarations.threats import ThreatModel

ALL_RECORDS = ThreatModel(
    "The server, with everything. This is the baseline without privacy.",
    "Exactly: every record, its score and its label.",
    "Nothing.",
    "Everything.",
)

NOISY_SCORES = ThreatModel(
    "The server, with the labels. Scores get noise before they leave a client.",
    "With noise: every score. Exactly: each client's count of positives, and its sum of ranks.",
    "The ranks of the noisy scores.",
    "Labels: counts and rank sums are exact. This is a baseline.",
)


class ExactDeclarations(Declarations):
    """Threats and laws of ``ExactAUC``."""

    threats = staticmethod(lambda settings: ALL_RECORDS)

    @classmethod
    def error_cases(cls) -> Mapping[str, ErrorCase]:
        """None: there is no noise."""
        return {}


class NoisyScoresDeclarations(Declarations):
    """Cases, attacks, threats and laws of ``NoisyScores``."""

    threats = staticmethod(lambda settings: NOISY_SCORES)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """Two records."""
        return (AuditCase(cls.name, records=2),)

    def label_attacks(self) -> tuple[LabelAttack, ...]:
        """Labels guessed from the noisy scores that the server receives."""
        from tacit.protocols.shared.score_attacks import guesses_from_noisy_scores

        return (guesses_from_noisy_scores,)

    @classmethod
    def error_cases(cls) -> Mapping[str, ErrorCase]:
        """None: the bias is unknown, so that no error is given."""
        return {}
