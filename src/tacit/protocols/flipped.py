"""Labels flipped by randomised response, once, and kept by the client for later evaluations."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import Clients
from tacit.privacy.cost import NOTHING, Adjacency, Cost
from tacit.privacy.noise import NoiseSource
from tacit.privacy.response import flip_labels
from tacit.protocols.conversation import Memory


def flipped_labels(
    clients: Clients, epsilon: float, noise: NoiseSource, memory: Memory
) -> NDArray[np.int8]:
    """The labels as they were flipped at this epsilon, in the order of the records, shape (..., M).

    The first call flips and keeps them; later calls return the same flips, whatever the scores, so
    that everything computed from them is post-processing of one release. Labels that differ in any
    record are flipped afresh, which costs again. Replicates are independent and keep nothing.
    """
    if noise.replicates is not None:
        return flip_labels(clients.labels, epsilon, noise)
    key = _note(clients, epsilon)
    kept: NDArray[np.int8] | None = memory.recall(key)
    if kept is None:
        kept = flip_labels(clients.labels, epsilon, noise)
        memory.keep(key, kept)
    return kept


def flipping_cost(clients: Clients, epsilon: float, memory: Memory) -> Cost:
    """Epsilon at label adjacency, or nothing when these labels are already flipped."""
    if memory.recall(_note(clients, epsilon)) is not None:
        return NOTHING
    return Cost(epsilon, adjacency=Adjacency.LABEL)


def _note(clients: Clients, epsilon: float) -> tuple[str, float, str]:
    digest = hashlib.sha256(clients.labels.tobytes() + clients.offsets.tobytes())
    return ("flipped labels", epsilon, digest.hexdigest())
