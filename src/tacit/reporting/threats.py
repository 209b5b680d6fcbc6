"""The threat model of a result's protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.protocol.declarations.threats import ThreatModel
from tacit.protocol.registry import written_kind

UNKNOWN = ThreatModel(
    "This report has no description of the protocol; see the protocol's documentation.",
    "See the protocol's documentation.",
    "See the protocol's documentation.",
    "See the protocol's documentation.",
)


def threats_of(protocol: Mapping[str, Any]) -> ThreatModel:
    """The threat model of a result's ``protocol`` entry.

    Examples
    --------
    >>> threats_of({"name": "hierarchical-auc", "epsilon": 1.0}).others
    'Nothing.'
    """
    kind = written_kind(protocol["name"])
    if kind is object:
        return UNKNOWN
    settings = {key: value for key, value in protocol.items() if key != "name"}
    threats: ThreatModel = kind.threats(settings)
    return threats
