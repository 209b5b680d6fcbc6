"""How parties sum a step's reply securely: its numbers as one vector, and the terms."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Integers
from tacit.crypto.identities import Roster
from tacit.crypto.secure_sum import graph, terms
from tacit.protocol import fields
from tacit.running.session.messages import Agreement

LARGEST_WORD = 2**63 - 1
"""Largest number of a party whose step bounds its sums: a refusal would show that it is larger."""


def flattened(reply: tp.Reply, layout: tp.Layout) -> Integers:
    """A reply's numbers as one vector, in the order of the layout.

    Raises
    ------
    TypeError : for a reply with other fields, shapes or types than the layout's.

    Examples
    --------
    >>> layout = {"counts": (2,), "clients": ()}
    >>> flattened({"clients": np.array(1), "counts": np.array([5, 7])}, layout)
    array([5, 7, 1])
    """
    if reply.keys() != layout.keys():
        raise TypeError(f"a sum of {sorted(layout)} was agreed, got {sorted(reply)}")
    parts = []
    for name, shape in layout.items():
        value = reply[name]
        if isinstance(value, tp.Ragged) or value.dtype != np.int64 or value.shape != shape:
            raise TypeError(f"field {name!r} must hold 64-bit integers of shape {shape}")
        parts.append(value.ravel())
    return np.concatenate(parts)


def shaped(vector: Integers, layout: tp.Layout) -> tp.Reply:
    """The named numbers of a vector."""
    ends = np.cumsum([int(np.prod(shape)) for shape in layout.values()])
    parts = np.split(vector, ends[:-1])
    return {name: part.reshape(layout[name]) for name, part in zip(layout, parts, strict=True)}


def with_room(query: tp.Query, agreement: Agreement) -> tp.Query:
    """The query with the records of a party for which its sum has room."""
    return replace(query, most_records=agreement.most_records)


def sum_terms(
    agreement: Agreement, session: bytes, encoded: bytes, query: tp.Query, attempt: int
) -> terms.SumTerms:
    """The terms of an attempt at the sum that one query of a run is for.

    They name the run and the query, so that parties with another query are in another sum.
    All parties of the agreement are in the roster, present or not: none of them chooses it.

    Parameters
    ----------
    agreement : what was agreed.
    session : the run.
    encoded : the query as it was sent.
    query : the query with room for the agreed records.
    attempt : which attempt, from 0.

    Raises
    ------
    ValueError : for an agreement of one party, or numbers that no sum can have.
    """
    name = b"tacit sum of a run 2" + agreement.digest + session + sha256(encoded).digest()
    parties = len(agreement.parties)
    min_clients = max(agreement.min_clients, agreement.protocol.min_clients(parties))
    runs = fields.runs_of(query)
    return terms.SumTerms(
        sha256(name).digest()[: terms.SESSION_BYTES],
        Roster(agreement.parties),
        sum(int(np.prod(shape)) for shape in fields.layout_of(query).values()),
        LARGEST_WORD if runs else agreement.largest,
        graph.Neighbourhood.of(parties, agreement.bears, min_clients),
        attempt,
        runs,
    )
