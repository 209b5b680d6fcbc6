"""Labels flipped by randomised response, once, and kept by the client for later evaluations."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import Clients, DataError
from tacit.privacy.cost import NOTHING, Adjacency, Cost
from tacit.privacy.noise import NoiseSource
from tacit.privacy.response import flip_labels
from tacit.protocols.conversation import Memory


@dataclass(frozen=True, eq=False)
class Flipped:
    """A batch's flipped labels, as its notebook keeps them.

    Parameters
    ----------
    labels : the flipped labels, shape (M,), in the order of the records.
    released : which clients have answered with theirs, shape (K,).
    digest : of the labels that were flipped.
    """

    labels: NDArray[np.int8]
    released: NDArray[np.bool_]
    digest: bytes


def flipped_labels(
    clients: Clients,
    epsilon: float,
    noise: NoiseSource,
    memory: Memory,
    answering: NDArray[np.bool_],
) -> NDArray[np.int8]:
    """The labels as they were flipped at this epsilon, in the order of the records, shape (..., M).

    The first call flips and keeps them; later calls return the same flips, whatever the scores, so
    that everything a client computes from them is post-processing of one release. ``answering``
    says which clients release something now. Records must keep their number and order: a flip
    belongs to a record by its place. Replicates are independent and keep nothing.

    Raises
    ------
    DataError : when the labels are not those that were flipped.
    """
    if noise.replicates is not None:
        return flip_labels(clients.labels, epsilon, noise)
    kept = _recall(clients, epsilon, memory)
    if kept is None:
        labels = flip_labels(clients.labels, epsilon, noise)
        kept = Flipped(labels, np.zeros(clients.count, dtype=np.bool_), _digest(clients))
    note = Flipped(kept.labels, kept.released | answering, kept.digest)
    memory.keep(_key(clients, epsilon), note)
    return kept.labels


def flipping_cost(
    clients: Clients, epsilon: float, memory: Memory, answering: NDArray[np.bool_]
) -> Cost:
    """Epsilon at label adjacency, or nothing when every answering client released its flips."""
    if not answering.any():
        return NOTHING
    kept = _recall(clients, epsilon, memory)
    if kept is not None and kept.released[answering].all():
        return NOTHING
    return Cost(epsilon, adjacency=Adjacency.LABEL)


def everybody(clients: Clients) -> NDArray[np.bool_]:
    """All clients answer."""
    return np.ones(clients.count, dtype=np.bool_)


def _recall(clients: Clients, epsilon: float, memory: Memory) -> Flipped | None:
    kept: Flipped | None = memory.recall(_key(clients, epsilon))
    if kept is not None and kept.digest != _digest(clients):
        raise DataError(
            "the labels differ from those that were flipped for this memory; changed labels need "
            "a new memory, and cost their epsilon again"
        )
    return kept


def _key(clients: Clients, epsilon: float) -> tuple[str, float, bytes]:
    """By what is public: epsilon and the numbers of records."""
    return ("flipped labels", epsilon, clients.offsets.tobytes())


def _digest(clients: Clients) -> bytes:
    return hashlib.sha256(clients.labels.tobytes()).digest()
