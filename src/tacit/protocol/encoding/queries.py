"""Queries as bytes: a step's name and the values it needs. Settings are agreed, never sent."""

from __future__ import annotations

import numpy as np

from tacit.data.batches.ragged import Ragged
from tacit.protocol.conversation import Protocol, Query, View
from tacit.protocol.encoding.fields import MessageError
from tacit.protocol.encoding.values import Kind, decode_values, encode_values


def query_kinds(protocol: Protocol) -> tuple[Kind, ...]:
    """The classes whose values a query of this protocol may hold: they check themselves."""
    return tuple(map(Kind.of, protocol.query_types))


def encode_query(query: Query) -> bytes:
    """A query as one client receives it: its ``per_client`` holds that client's part only.

    Examples
    --------
    >>> from tacit import DPAUC
    >>> protocol = DPAUC(1.0)
    >>> query = next(protocol.conversation(3))
    >>> decode_query(encode_query(query), protocol).step.name
    'noisy_looks'
    """
    content = {"shared": dict(query.broadcast), "each": dict(query.per_client)}
    return encode_values(
        {"step": query.step.name, "view": query.view.value} | content, query_kinds(query.protocol)
    )


def decode_query(message: bytes, protocol: Protocol) -> Query:
    """The query of a message, to be answered under the protocol that was agreed.

    Raises
    ------
    MessageError : for bytes that are not a query, or a step that the protocol does not have.
    """
    content = decode_values(message, query_kinds(protocol))
    if content.keys() != {"step", "view", "shared", "each"}:
        raise MessageError(f"a query has a step, a view and values, got {sorted(content)}")
    known = {step.name: step for step in protocol.steps}
    step = known.get(content["step"]) if isinstance(content["step"], str) else None
    if step is None:
        raise MessageError(f"{protocol.name} has no step {content['step']!r:.60}")
    views = {view.value: view for view in View}
    if content["view"] not in list(views):
        raise MessageError(f"unknown view {content['view']!r:.60}")
    shared, each = content["shared"], content["each"]
    if not isinstance(shared, dict) or not isinstance(each, dict):
        raise MessageError("a query's values must be named")
    if not all(isinstance(value, Ragged | np.ndarray) for value in each.values()):
        raise MessageError("a client's own part must be made of arrays")
    return Query(step, protocol, shared, each, views[content["view"]])
