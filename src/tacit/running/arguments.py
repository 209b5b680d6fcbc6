"""Refusals of what is likely given by mistake where clients and a protocol are meant."""

from __future__ import annotations

from typing import Any

from tacit.data.clients import Clients
from tacit.privacy.noise import NoiseSource
from tacit.protocol.conversation import Protocol
from tacit.protocol.settings import known_settings

EXPECTED = "protocol must be a protocol with its settings"


def check_given(
    clients: Any, protocol: Any, seed: int | None = None, noise: NoiseSource | None = None
) -> None:
    """Refuse anything but clients, with how they are made, and a protocol with its settings.

    Raises
    ------
    TypeError : naming the type that was given.
    ValueError : for a seed together with a noise source.
    """
    if not isinstance(clients, Clients):
        raise TypeError(
            f"clients must be tacit.Clients, got {type(clients).__name__}: make them by "
            "tacit.Clients.from_frame(frame, client=COLUMN), from_arrays(scores, labels, ids), or "
            "tacit.read(files)"
        )
    check_protocol(protocol)
    if seed is not None and noise is not None:
        raise ValueError("give a seed or a noise source, not both")


def check_protocol(protocol: Any) -> None:
    """Refuse anything but a protocol with its settings, with what was probably meant.

    Raises
    ------
    TypeError : naming what was given.

    Examples
    --------
    >>> check_protocol(1.0)
    Traceback (most recent call last):
    TypeError: protocol must be a protocol with its settings, got 1.0: write epsilon=1.0
    """
    if isinstance(protocol, Protocol):
        return
    if isinstance(protocol, type) and issubclass(protocol, Protocol):
        settings = "epsilon=1.0" if "epsilon" in known_settings(protocol) else ""
        name = protocol.__name__
        raise TypeError(f"{EXPECTED}, got the class {name}: write {name}({settings})")
    if isinstance(protocol, int | float):
        raise TypeError(f"{EXPECTED}, got {protocol!r}: write epsilon={protocol!r}")
    if hasattr(protocol, "__array__") or isinstance(protocol, list | tuple):
        raise TypeError(
            f"{EXPECTED}, got {type(protocol).__name__}: scores and labels are one argument, "
            "(scores, labels)"
        )
    if isinstance(protocol, str):
        raise TypeError(
            f"{EXPECTED}, got the name {protocol!r}: only tacit.evaluate takes names, with the "
            "settings"
        )
    raise TypeError(f"{EXPECTED}, got {type(protocol).__name__}")
