"""How parties sum a step's reply securely: its numbers as one vector, and the terms."""

from __future__ import annotations

import struct
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.identities import Roster
from tacit.crypto.neighbours import Neighbourhood
from tacit.crypto.secure_sum import SESSION_BYTES, SumTerms
from tacit.data.clients import Ragged
from tacit.protocols.conversation import Ask, Layout, Reply
from tacit.running.letters import Agreement

Integers = NDArray[np.int64]


def layout_of(ask: Ask) -> Layout:
    """The names and shapes of the numbers that an ask sums.

    Raises
    ------
    TypeError : for a step that does not say what it sums.
    """
    if ask.step.sums is None:
        raise TypeError(f"step {ask.step.name} does not say what it sums, so nobody can sum it")
    return ask.step.sums(ask)


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
    return {name: own.reshape(layout[name]) for name, own in zip(layout, parts, strict=True)}


def sum_terms(
    agreement: Agreement, session: bytes, turn: int, active: tuple[int, ...], length: int
) -> SumTerms:
    """The terms of the sum that begins at a turn, over the parties that are still there."""
    name = b"tacit sum of a run 1" + agreement.digest + session + struct.pack("<I", turn)
    around = Neighbourhood.of(len(active))
    needed = agreement.protocol.fewest(len(agreement.parties))
    fewest = min(max(around.fewest, agreement.fewest, needed), len(active))
    return SumTerms(
        sha256(name).digest()[:SESSION_BYTES],
        Roster(tuple(agreement.parties[place] for place in active)),
        length,
        agreement.largest,
        Neighbourhood(around.degree, around.threshold, fewest),
    )
