"""How parties sum a step's reply securely: its numbers as one vector, and the terms."""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from tacit.arrays import Integers
from tacit.crypto.identities import Roster
from tacit.crypto.secure_sum.graph import Neighbourhood
from tacit.crypto.secure_sum.terms import SESSION_BYTES, SumTerms
from tacit.data.clients import Ragged
from tacit.protocol.conversation import Layout, Query, Reply
from tacit.running.session.messages import Agreement


def layout_of(query: Query) -> Layout:
    """The names and shapes of the numbers that a query sums.

    Raises
    ------
    TypeError : for a step that does not say what it sums.
    """
    if query.step.sums is None:
        raise TypeError(
            f"step {query.step.name} does not declare what it sums, so it cannot be summed"
        )
    return query.step.sums(query)


def length_of(layout: Layout) -> int:
    """How many numbers a layout holds."""
    return sum(int(np.prod(shape)) for shape in layout.values())


def flattened(reply: Reply, layout: Layout) -> Integers:
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
        if isinstance(value, Ragged) or value.dtype != np.int64 or value.shape != shape:
            raise TypeError(f"field {name!r} must hold 64-bit integers of shape {shape}")
        parts.append(value.ravel())
    return np.concatenate(parts)


def shaped(vector: Integers, layout: Layout) -> Reply:
    """The named numbers of a vector."""
    ends = np.cumsum([int(np.prod(shape)) for shape in layout.values()])
    parts = np.split(vector, ends[:-1])
    return {name: part.reshape(layout[name]) for name, part in zip(layout, parts, strict=True)}


def sum_terms(
    agreement: Agreement, session: bytes, query: bytes, length: int, attempt: int
) -> SumTerms:
    """The terms of an attempt at the sum that one query of a run is for.

    They name the run and the query, so that parties with another query are in another sum.
    All parties of the agreement are in the roster, present or not: none of them chooses it.

    Parameters
    ----------
    agreement : what was agreed.
    session : the run.
    query : the query as it was sent.
    length : how many numbers it sums.
    attempt : which attempt, from 0.

    Raises
    ------
    ValueError : for an agreement of one party, or numbers that no sum can have.
    """
    name = b"tacit sum of a run 2" + agreement.digest + session + sha256(query).digest()
    parties = len(agreement.parties)
    min_clients = max(agreement.min_clients, agreement.protocol.min_clients(parties))
    return SumTerms(
        sha256(name).digest()[:SESSION_BYTES],
        Roster(agreement.parties),
        length,
        agreement.largest,
        Neighbourhood.of(parties, agreement.bears, min_clients),
        attempt,
    )
