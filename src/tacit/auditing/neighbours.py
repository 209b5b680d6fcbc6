"""Neighbouring data sets that an attack may be able to distinguish.

Guarantees are about the worst neighbours. For sums, counts, ranks and cells, the worst neighbours
move a record from one end of the scores to the other, or change a record at an end. So only such
neighbours are tried.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tacit.data.clients import Clients
from tacit.privacy.cost import Adjacency


def neighbours(clients: Clients, adjacency: Adjacency, client: int = 0) -> Iterator[Clients]:
    """Data sets that differ in one record of a client.

    A changed score becomes the lowest, the middle or the highest of all scores; a replaced record
    gets the lowest or the highest.

    Parameters
    ----------
    clients : the data set to start from.
    adjacency : what may be changed.
    client : whose record it is.

    Examples
    --------
    >>> from tacit.data.splitting import federation
    >>> [other.labels.tolist() for other in neighbours(federation(3, False), Adjacency.LABEL)]
    [[1, 1, 0], [0, 0, 0], [0, 1, 1]]
    """
    start, stop = (int(offset) for offset in clients.offsets[client : client + 2])
    scores, labels = clients.scores, clients.labels
    score, label = scores[start], labels[start]
    ends = sorted({start, (start + stop) // 2, stop - 1})
    if adjacency is Adjacency.LABEL:
        yield from (_changed(clients, k, scores[k], 1 - labels[k]) for k in ends)
    elif adjacency is Adjacency.RECORD:
        yield from (_removed(clients, client, k) for k in ends)
    elif adjacency is Adjacency.SCORE:
        for other in sorted({*np.quantile(scores, (0, 0.5, 1), method="nearest")} - {score}):
            yield _changed(clients, start, other, label)
    else:
        for changed in itertools.product((scores.max(), scores.min()), (1 - label, label)):
            if changed != (score, label):
                yield _changed(clients, start, *changed)


def _changed(clients: Clients, record: int, score: float, label: int) -> Clients:
    scores, labels = clients.scores.copy(), clients.labels.copy()
    scores[record], labels[record] = score, label
    return replace(clients, scores=scores, labels=labels)


def _removed(clients: Clients, client: int, record: int) -> Clients:
    offsets = clients.offsets - (np.arange(clients.count + 1) > client)
    second = None if clients.second is None else np.delete(clients.second, record)
    return replace(
        clients,
        scores=np.delete(clients.scores, record),
        labels=np.delete(clients.labels, record),
        offsets=offsets,
        second=second,
    )
