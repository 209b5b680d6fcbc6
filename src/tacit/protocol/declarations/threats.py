"""The threat model of a protocol: who sees what, in sentences that a report shows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.data.batches.splitting import federation
from tacit.privacy.cost import Adjacency, Cost
from tacit.privacy.sampling.noise import NoNoise

RECORDS = 4
"""Records, of a client each, in the dry run that reads a protocol's views."""

NONE_WRITTEN = "The author of this protocol wrote no threat model; this follows from its code."

SEEN = {
    "each": "of every client, its reply to {steps}",
    "sum": "only the sum over all clients, of their replies to {steps}",
    "joint": "only the outcome of what the clients compute together, in {steps}",
}
"""What the server sees, by the value of a query's view."""

NOBODY = (
    "No party: every client adds its own noise before anything leaves it. The server is expected "
    "to follow the protocol, and may analyse all that it receives."
)
LOCAL = (
    "No party: every record randomises its own report before it leaves the client. The server is "
    "expected to follow the protocol, and may analyse all that it receives."
)
LOCAL_PAGE = "threat-models/local.md"

HIDDEN = {
    Adjacency.LABEL: "the label of one record; scores and numbers of records are not protected",
    Adjacency.RECORD: "whether one record is there; what is true of many records is not protected",
    Adjacency.REPLACE: "the score and label of one record; numbers of records are not protected",
    Adjacency.SCORE: "the score of one record; labels and numbers of records are not protected",
}


@dataclass(frozen=True)
class ThreatModel:
    """A protocol's threat model, a paragraph each.

    Parameters
    ----------
    trust : whom a client has to trust, and with what.
    server : what the server sees.
    others : what the other clients see.
    left_open : what stays unprotected.
    page : where the whole model is written: a page below ``docs/``, or an address; empty for none.
    """

    trust: str
    server: str
    others: str
    left_open: str
    page: str = ""


def derived_model(kind: Any, settings: Mapping[str, Any]) -> ThreatModel:
    """The threat model that follows from a protocol's declared views and guarantee.

    It says that the author wrote none. Views are read from a dry run on a few synthetic records.

    Parameters
    ----------
    kind : the protocol's class.
    settings : its settings, as a result holds them.
    """
    try:
        protocol = kind(**settings)
    except (TypeError, ValueError):
        return ThreatModel(NONE_WRITTEN, *["Not known: the settings cannot be read."] * 3)
    seen: dict[str, list[str]] = {}
    for step, view in dict.fromkeys(asked_views(protocol)):
        seen.setdefault(view, []).append(step)
    parts = [SEEN[view].format(steps=_listed(steps)) for view, steps in seen.items()]
    return ThreatModel(
        NONE_WRITTEN,
        f"The server sees {'; '.join(parts)}." if parts else "The server sees nothing.",
        "What the server sends to every client, which is not described.",
        _protection(protocol.guarantee),
    )


def asked_views(protocol: Any) -> Iterator[tuple[str, str]]:
    """The name of each step that one conversation asks for, with the value of its view.

    The conversation runs without noise over a few records; it may end early where these do not
    suffice.
    """
    # The module of Protocol imports this one.
    from tacit.protocol.conversation import ClientState

    clients, state = protocol.fitted(federation(RECORDS, apart=True)), ClientState()
    conversation = protocol.conversation(clients.count)
    reply = None
    while True:
        try:
            query = next(conversation) if reply is None else conversation.send(reply)
        except (StopIteration, ValueError, FloatingPointError):
            return
        yield query.step.name, query.view.value
        with np.errstate(all="ignore"):
            reply = query.step.answer(clients, query, NoNoise(), state)


def _listed(steps: list[str]) -> str:
    return ", ".join(f"`{step}`" for step in steps)


def _protection(guarantee: Cost) -> str:
    """What a guarantee leaves open, in a sentence."""
    if math.isinf(guarantee.epsilon) or guarantee.adjacency is None:
        return "Everything: no differential privacy is guaranteed."
    delta = f" and delta {guarantee.delta:g}" if guarantee.delta else ""
    return (
        f"All but what epsilon {guarantee.epsilon:g}{delta} hides: {HIDDEN[guarantee.adjacency]}."
    )
