"""Labels flipped by randomised response, once, and stored by the client for later evaluations."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.privacy.cost import NOTHING, Adjacency, Cost
from tacit.privacy.local.response import flip_labels
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Lasting


@dataclass(frozen=True, eq=False)
class Flipped(Lasting):
    """A batch's flipped labels, as the client state stores them.

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
    state: ClientState,
    answering: NDArray[np.bool_],
) -> NDArray[np.int8]:
    """The labels as they were flipped at this epsilon, in the order of the records, shape (..., M).

    The first call flips and stores them; later calls return the same flips, for all scores, so that
    everything a client computes from them is post-processing of one release. ``answering`` says
    which clients release something now. The number and order of records must not change: a flip
    belongs to a record by its position. Replicates are independent, and nothing is stored.

    Raises
    ------
    DataError : when the labels are not those that were flipped.
    """
    if noise.replicates is not None:
        return flip_labels(clients.labels, epsilon, noise)
    flips = _recall(clients, epsilon, state)
    if flips is None:
        labels = flip_labels(clients.labels, epsilon, noise)
        flips = Flipped(labels, np.zeros(clients.count, dtype=np.bool_), _digest(clients))
    note = Flipped(flips.labels, flips.released | answering, flips.digest)
    state.keep(_key(clients, epsilon), note)
    return flips.labels


def flipping_cost(
    clients: Clients, epsilon: float, state: ClientState, answering: NDArray[np.bool_]
) -> Cost:
    """Epsilon at label adjacency, or nothing when every answering client released its flips."""
    if not answering.any():
        return NOTHING
    flips = _recall(clients, epsilon, state)
    if flips is not None and flips.released[answering].all():
        return NOTHING
    return Cost(epsilon, adjacency=Adjacency.LABEL)


def every_client(clients: Clients) -> NDArray[np.bool_]:
    """All clients answer."""
    return np.ones(clients.count, dtype=np.bool_)


def _recall(clients: Clients, epsilon: float, state: ClientState) -> Flipped | None:
    flips: Flipped | None = state.recall(_key(clients, epsilon))
    if flips is not None and flips.digest != _digest(clients):
        raise DataError(
            "the labels differ from those that were flipped for this memory; changed labels need "
            "a new memory, and cost their epsilon again"
        )
    return flips


def _key(clients: Clients, epsilon: float) -> tuple[str, float, bytes]:
    """By what is public: epsilon and the numbers of records."""
    return ("flipped labels", epsilon, clients.offsets.tobytes())


def _digest(clients: Clients) -> bytes:
    return hashlib.sha256(clients.labels.tobytes()).digest()
