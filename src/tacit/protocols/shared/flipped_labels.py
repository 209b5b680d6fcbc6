"""Labels flipped by randomised response, once, and stored by the client for later evaluations."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.data.ragged import Listed, Ranking
from tacit.privacy import symbols


@dataclass(frozen=True, eq=False)
class Flipped(tp.Lasting):
    """A batch's flipped labels, as the client state stores them.

    Parameters
    ----------
    labels : the flipped labels, shape (M,), in the order of the records; of records that stay where
        they are stored packed, in ascending order of the scores, those with one score by client
        and label, shape (M / 8, rounded up).
    released : which clients have answered with theirs, shape (K,).
    digest : of the records whose labels were flipped, in their order.
    """

    labels: NDArray[Any]
    released: NDArray[np.bool_]
    digest: bytes


OTHER_RECORDS = (
    "the records differ from those whose labels were flipped for this memory; changed records need "
    "a new memory, and cost their epsilon again"
)


def flipped_labels(
    clients: tp.Clients,
    epsilon: float,
    noise: tp.NoiseSource,
    state: tp.ClientState,
    answering: NDArray[np.bool_],
) -> NDArray[np.int8]:
    """The labels as they were flipped at this epsilon, in the order of the records, shape (..., M).

    The first call flips and stores them; later calls return the same flips, so that everything a
    client computes from them is post-processing of one release. A flip belongs to a record by its
    place: records that differ, or stand in another order, are flipped again. Where the caller
    vouches for places (``ClientState.same_places``), only labels are compared. ``answering`` says
    which clients release something now. Replicates are independent, and nothing is stored.
    """
    if noise.replicates is not None:
        return symbols.flip_labels(clients.labels, epsilon, noise)
    flips = _recall(clients, epsilon, state)
    if flips is None:
        labels = symbols.flip_labels(clients.labels, epsilon, noise)
        flips = Flipped(labels, np.zeros(clients.count, dtype=np.bool_), _digest(clients, state))
    note = Flipped(flips.labels, flips.released | answering, flips.digest)
    state.keep(_key(clients, epsilon), note)
    return flips.labels


def flipped_in_order(
    ranking: Ranking,
    clients: tp.Clients,
    epsilon: float,
    noise: tp.NoiseSource,
    state: tp.ClientState,
    answering: NDArray[np.bool_],
) -> Iterator[tuple[Listed, NDArray[np.int8]]]:
    """Records that stay where they are stored, with their flipped labels, shape (..., m).

    As ``flipped_labels``, by a pass in order of the scores. It keeps a bit of each record, in that
    order, when all records were read: a flip belongs to a record by its place there, where records
    with one score, client and label are alike. In which order they are stored does not matter.

    Raises
    ------
    DataError : at the end, when the records are not those whose labels were flipped.
    """
    if noise.replicates is not None:
        for listed in ranking.listed():
            yield listed, symbols.flip_labels(listed.labels, epsilon, noise)
        return
    flips: Flipped | None = state.recall(_stored_key(clients, epsilon))
    bits = np.zeros(-(-clients.records // 8), dtype=np.uint8) if flips is None else flips.labels
    digest = hashlib.sha256()
    for listed in ranking.listed():
        labels = listed.labels
        # by record, so that the parts of a pass do not matter
        digest.update(np.column_stack((listed.scores, listed.whose, labels)).tobytes())
        first, stop = listed.place // 8, -(-(listed.place + labels.size) // 8)
        around = np.unpackbits(bits[first:stop])
        flipped = around[listed.place - 8 * first :][: labels.size].view(np.int8)
        if flips is None:
            flipped[:] = symbols.flip_labels(labels, epsilon, noise)
            bits[first:stop] = np.packbits(around)
        yield listed, flipped
    if flips is not None and flips.digest != digest.digest():
        raise tp.DataError(OTHER_RECORDS)
    released = answering if flips is None else flips.released | answering
    state.keep(_stored_key(clients, epsilon), Flipped(bits, released, digest.digest()))


def flipping_cost(
    clients: tp.Clients, epsilon: float, state: tp.ClientState, answering: NDArray[np.bool_]
) -> tp.Cost:
    """Epsilon at label adjacency, or nothing when every answering client released its flips."""
    if not answering.any():
        return tp.NOTHING
    flips: Flipped | None
    if clients.ranking is None:
        flips = _recall(clients, epsilon, state)
    else:
        # the pass that answers looks at the records, and declines others
        flips = state.recall(_stored_key(clients, epsilon))
    if flips is not None and flips.released[answering].all():
        return tp.NOTHING
    return tp.Cost(epsilon, adjacency=tp.Adjacency.LABEL)


def every_client(clients: tp.Clients) -> NDArray[np.bool_]:
    """All clients answer."""
    return np.ones(clients.count, dtype=np.bool_)


def _recall(clients: tp.Clients, epsilon: float, state: tp.ClientState) -> Flipped | None:
    """The flips of these records in this order; None where there are none."""
    flips: Flipped | None = state.recall(_key(clients, epsilon))
    return flips if flips is not None and flips.digest == _digest(clients, state) else None


def _key(clients: tp.Clients, epsilon: float) -> tuple[str, float, bytes]:
    """By what is public: epsilon and the numbers of records."""
    return ("flipped labels", epsilon, clients.offsets.tobytes())


def _stored_key(clients: tp.Clients, epsilon: float) -> tuple[str, float, bytes]:
    return ("flipped labels by score", epsilon, clients.offsets.tobytes())


def _digest(clients: tp.Clients, state: tp.ClientState) -> bytes:
    """It needs no key: who reads it reads the flipped labels next to it."""
    return clients.digest(b"", with_scores=not state.same_places)
