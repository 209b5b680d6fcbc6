"""All protocols by name, and a protocol from its name and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from importlib import import_module
from typing import Any

from tacit.protocols.conversation import Protocol
from tacit.protocols.setting_types import problem_with

PROTOCOLS = {
    "fedauc": "fedauc.FedAUC",
    "dpauc": "dpauc.DPAUC",
    "score-histogram": "score_histogram.ScoreHistogram",
    "two-round-auc": "two_round_auc.TwoRoundAUC",
    "hierarchical-auc": "hierarchical_auc.HierarchicalAUC",
    "ustatistic": "ustatistic.UStatistic",
    "paired-ustatistic": "paired_ustatistic.PairedUStatistic",
    "encrypted-auc": "encrypted_auc.EncryptedAUC",
    "exact": "baselines.ExactAUC",
    "noisy-scores": "baselines.NoisyScores",
}
"""Every protocol's name, and its class in ``tacit.protocols``, imported when it is asked for."""


CHOICES = ("trust", "mechanism", "allocation", "kernel", "noise", "budget", "labels")
"""Settings that decide which others a protocol uses; a refusal names them."""


class SettingError(ValueError):
    """A setting that a protocol does not have, does not use, or needs.

    Parameters
    ----------
    name : the setting.
    reason : what is wrong with it.
    missing : whether it was needed and not given.
    choices : what decided that it is not used.
    """

    def __init__(
        self, name: str, reason: str, missing: bool = False, choices: tuple[str, ...] = ()
    ) -> None:
        super().__init__(reason)
        self.name, self.missing, self.choices = name, missing, choices


def kind_of(name: str) -> Any:
    """The class of a protocol's name.

    Raises
    ------
    SettingError : for an unknown name.

    Examples
    --------
    >>> kind_of("dpauc").__name__
    'DPAUC'
    """
    if name not in PROTOCOLS:
        raise SettingError("name", f"protocol must be one of {', '.join(PROTOCOLS)}, got {name!r}")
    module, _, kind = PROTOCOLS[name].partition(".")
    return getattr(import_module(f"tacit.protocols.{module}"), kind)


def protocol_of(name: str, settings: Mapping[str, Any]) -> Protocol:
    """A protocol from its name and those of its settings that are not left to their defaults.

    Raises
    ------
    SettingError : for an unknown protocol, a setting that it does not have or use, that it needs
        and was not given, or of another type.
    ValueError : for a setting outside its range.

    Examples
    --------
    >>> protocol_of("dpauc", {"epsilon": 1.0}).thresholds
    100
    >>> protocol_of("dpauc", {"epsilon": 1.0, "height": 3})
    Traceback (most recent call last):
    tacit.protocols.registry.SettingError: dpauc has no setting 'height'
    """
    kind = kind_of(name)
    known = {field.name: field for field in fields(kind)}
    for key in settings:
        if key not in known:
            raise SettingError(key, f"{name} has no setting {key!r}")
    for key, field in known.items():
        if field.default is MISSING and key not in settings:
            raise SettingError(key, f"{name} needs the setting {key!r}", missing=True)
    given = {
        key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()
    }
    for key, value in given.items():
        problem = problem_with(kind, key, value)
        if problem is not None:
            raise SettingError(key, problem)
    protocol: Protocol = kind(**given)
    used = protocol.settings
    for key in settings:
        if key not in used:
            choices = tuple(f"{choice} {used[choice]}" for choice in CHOICES if choice in used)
            told = ", ".join(choices) or "the others given"
            raise SettingError(
                key, f"{name} does not use the setting {key!r} with {told}", choices=choices
            )
    return protocol
