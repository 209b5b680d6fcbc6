"""All protocols by name, and a protocol from its name and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from tacit.protocols.baselines import ExactAUC, NoisyScores
from tacit.protocols.conversation import Protocol
from tacit.protocols.dpauc import DPAUC
from tacit.protocols.encrypted_auc import EncryptedAUC
from tacit.protocols.fedauc import FedAUC
from tacit.protocols.hierarchical_auc import HierarchicalAUC
from tacit.protocols.paired_ustatistic import PairedUStatistic
from tacit.protocols.score_histogram import ScoreHistogram
from tacit.protocols.two_round_auc import TwoRoundAUC
from tacit.protocols.ustatistic import UStatistic

PROTOCOLS: dict[str, Any] = {
    kind.name: kind
    for kind in (
        FedAUC,
        DPAUC,
        ScoreHistogram,
        TwoRoundAUC,
        HierarchicalAUC,
        UStatistic,
        PairedUStatistic,
        EncryptedAUC,
        ExactAUC,
        NoisyScores,
    )
}


class SettingError(ValueError):
    """A setting that a protocol does not have, does not use, or needs.

    Parameters
    ----------
    name : the setting.
    reason : what is wrong with it.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name


def protocol_of(name: str, settings: Mapping[str, Any]) -> Protocol:
    """A protocol from its name and those of its settings that are not left to their defaults.

    Raises
    ------
    SettingError : for an unknown protocol, a setting that it does not have or use, or that it needs
        and was not given.
    ValueError : for a setting outside its range.

    Examples
    --------
    >>> protocol_of("dpauc", {"epsilon": 1.0}).thresholds
    100
    >>> protocol_of("dpauc", {"epsilon": 1.0, "height": 3})
    Traceback (most recent call last):
    tacit.protocols.registry.SettingError: dpauc has no setting 'height'
    """
    if name not in PROTOCOLS:
        raise SettingError("name", f"protocol must be one of {', '.join(PROTOCOLS)}, got {name!r}")
    kind = PROTOCOLS[name]
    known = {field.name: field for field in fields(kind)}
    for key in settings:
        if key not in known:
            raise SettingError(key, f"{name} has no setting {key!r}")
    for key, field in known.items():
        if field.default is MISSING and key not in settings:
            raise SettingError(key, f"{name} needs the setting {key!r}")
    given = {
        key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()
    }
    protocol: Protocol = kind(**given)
    for key in settings:
        if key not in protocol.settings:
            raise SettingError(
                key, f"{name} does not use the setting {key!r} with the others given"
            )
    return protocol
