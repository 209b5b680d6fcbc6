"""Asks as bytes: which step is asked, and the values it needs. Settings are agreed, never sent."""

from __future__ import annotations

import numpy as np

from tacit.data.clients import Ragged
from tacit.protocols.conversation import Ask, Protocol, View
from tacit.protocols.messages import MessageError
from tacit.protocols.rank_noise import RankNoise
from tacit.protocols.values import Kind, decode_values, encode_values

SENDABLE = (Kind.of(RankNoise),)
"""Classes whose values an ask may hold: they check themselves when they are made."""


def encode_ask(ask: Ask) -> bytes:
    """An ask as one client receives it: its ``each`` holds that client's part only.

    Examples
    --------
    >>> from tacit import DPAUC
    >>> protocol = DPAUC(1.0)
    >>> ask = next(protocol.conversation(3))
    >>> decode_ask(encode_ask(ask), protocol).step.name
    'noisy_histograms'
    """
    content = {"shared": dict(ask.shared), "each": dict(ask.each)}
    return encode_values({"step": ask.step.name, "view": ask.view.value} | content, SENDABLE)


def decode_ask(message: bytes, protocol: Protocol) -> Ask:
    """The ask of a message, to be answered under the protocol that was agreed.

    Raises
    ------
    MessageError : for bytes that are not an ask, or a step that the protocol does not have.
    """
    content = decode_values(message, SENDABLE)
    if content.keys() != {"step", "view", "shared", "each"}:
        raise MessageError(f"an ask has a step, a view and values, got {sorted(content)}")
    known = {step.name: step for step in protocol.steps}
    step = known.get(content["step"]) if isinstance(content["step"], str) else None
    if step is None:
        raise MessageError(f"{protocol.name} has no step {content['step']!r:.60}")
    views = {view.value: view for view in View}
    if content["view"] not in list(views):
        raise MessageError(f"unknown view {content['view']!r:.60}")
    shared, each = content["shared"], content["each"]
    if not isinstance(shared, dict) or not isinstance(each, dict):
        raise MessageError("an ask's values must be named")
    if not all(isinstance(value, Ragged | np.ndarray) for value in each.values()):
        raise MessageError("a client's own part must be made of arrays")
    return Ask(step, protocol, shared, each, views[content["view"]])
