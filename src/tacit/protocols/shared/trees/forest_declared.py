"""What every protocol of forests declares alike: its laws, its errors and who sees what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tacit.protocol.declarations.defaults import Declarations
from tacit.protocol.declarations.laws import ErrorCase
from tacit.protocol.declarations.threats import ThreatModel
from tacit.protocol.declarations.trust import Trust
from tacit.protocols.shared.threats import forest_model


class ForestDeclarations(Declarations):
    """Laws and threats of a ``ForestProtocol``; a subclass names its cases, and what is summed."""

    case_name: ClassVar[str]
    summed: ClassVar[str]

    @classmethod
    def law_cases(cls) -> Mapping[str, Any]:
        """Every trust model."""
        kind: Any = cls
        return {
            f"{cls.case_name}-exact": kind(Trust.EXACT_SUM.value),
            cls.case_name: kind(Trust.SECURE_SUM.value, 1.0),
            f"{cls.case_name}-replace": kind(Trust.SECURE_SUM.value, 1.0, adjacency="replace"),
            f"{cls.case_name}-each": kind(Trust.EACH.value, 1.0),
        }

    @classmethod
    def error_cases(cls) -> Mapping[str, ErrorCase]:
        """The forms with noise."""
        kind: Any = cls
        return {
            cls.case_name: ErrorCase(kind(Trust.SECURE_SUM.value, 1.0), noticed=True),
            f"{cls.case_name}-each": ErrorCase(kind(Trust.EACH.value, 4.0), repeats=1200),
        }

    @classmethod
    def threats(cls, settings: Mapping[str, Any]) -> ThreatModel:
        """Who sees what."""
        return forest_model(settings, cls.summed)
