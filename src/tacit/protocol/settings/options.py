"""A protocol's settings as options of the command ``tacit evaluate``."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from typing import Any

from tacit.protocol.conversation import Protocol
from tacit.protocol.registry import protocol_of
from tacit.protocol.settings.declaring import changed_settings, known_settings


def options_of(protocol: Protocol, without: Collection[str] = ()) -> str:
    """The options that give this protocol: its name, and settings that do not follow by default.

    Parameters
    ----------
    protocol : with its settings.
    without : the names of settings that are left out.

    Examples
    --------
    >>> options_of(protocol_of("dpauc", {"adjacency": "label", "thresholds": 100, "epsilon": 1.0}))
    '--protocol dpauc --epsilon 1 --adjacency label'
    """
    needed = needed_settings(protocol).items()
    shown = [_option(name, value) for name, value in needed if name not in without]
    return " ".join([f"--protocol {protocol.name}", *shown])


def needed_settings(protocol: Protocol) -> Mapping[str, Any]:
    """The settings, epsilon first, without those that the others and the defaults give.

    Examples
    --------
    >>> dict(needed_settings(protocol_of("fedauc", {"epsilon": 2.0, "trust": "each"})))
    {'epsilon': 2.0}
    """
    needed = _chosen(protocol)
    for name in [each for each in needed if not known_settings(type(protocol))[each].needed]:
        rest = {other: value for other, value in needed.items() if other != name}
        if _gives(rest, protocol):
            needed = rest
    return needed


def _chosen(protocol: Protocol) -> dict[str, Any]:
    """The values of the settings that the protocol uses, epsilon first."""
    names = sorted(known_settings(type(protocol)), key="epsilon".__ne__)
    values = {name: getattr(protocol, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _gives(settings: Mapping[str, Any], protocol: Protocol) -> bool:
    """Whether these settings alone give the protocol."""
    try:
        other = protocol_of(protocol.name, settings)
    except ValueError:
        return False
    return not changed_settings(protocol, other)


def _option(name: str, value: Any) -> str:
    """One option with its value, as a shell takes it."""
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    if isinstance(value, list | tuple):
        return f"--{flag} {shlex.quote(','.join(map(_text, value)))}"
    return f"--{flag} {shlex.quote(_text(value))}"


def _text(value: Any) -> str:
    """A number without digits that say nothing, and any other value as it is."""
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_whole else str(value)
