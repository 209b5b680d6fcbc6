"""Neighbouring data sets that an attack may be able to distinguish.

Guarantees are about the worst neighbours. For sums, counts, ranks and cells, the worst neighbours
move a record from one end of the scores to the other, or change a record at an end. So only such
neighbours are tried. Of a client with two records either one is changed: each may be the only one
of its label, or the largest.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tacit.data.categories import Categories
from tacit.data.clients import Clients
from tacit.privacy.cost import Adjacency


def neighbours(clients: Clients, adjacency: Adjacency, client: int = 0) -> Iterator[Clients]:
    """Data sets that differ in one record of a client.

    A changed score becomes the lowest, the middle or the highest of all scores; a replaced record
    gets the lowest or the highest, and any class or group.

    Parameters
    ----------
    clients : the data set to start from.
    adjacency : what may be changed.
    client : whose record it is.

    Examples
    --------
    >>> from tacit.data.batches.splitting import federation
    >>> [other.labels.tolist() for other in neighbours(federation(3, False), Adjacency.LABEL)]
    [[1, 1, 0], [0, 0, 0], [0, 1, 1]]
    """
    start, stop = (int(offset) for offset in clients.offsets[client : client + 2])
    scores, labels = clients.scores, clients.labels
    ends = sorted({start, (start + stop) // 2, stop - 1})
    replaced = ends if stop - start == 2 else [start]
    if adjacency is Adjacency.LABEL:
        yield from (_changed(clients, k, scores[k], 1 - labels[k]) for k in ends)
    elif adjacency is Adjacency.RECORD:
        yield from (_removed(clients, client, k) for k in ends)
    elif adjacency is Adjacency.SCORE:
        quantiles = {*np.quantile(scores, (0, 0.5, 1), method="nearest")}
        for k in replaced:
            for other in sorted(quantiles - {scores[k]}):
                yield _changed(clients, k, other, labels[k])
    else:
        for k in replaced:
            both = (1 - labels[k], labels[k])
            for changed in itertools.product((scores.max(), scores.min()), both):
                if changed != (scores[k], labels[k]):
                    yield _changed(clients, k, *changed)
                if clients.categories is not None:
                    other = _changed(clients, k, *changed)
                    yield from _recategorised(other, clients.categories, k)


def _changed(clients: Clients, record: int, score: float, label: int) -> Clients:
    scores, labels = clients.scores.copy(), clients.labels.copy()
    scores[record], labels[record] = score, label
    return replace(clients, scores=scores, labels=labels)


def _recategorised(clients: Clients, known: Categories, record: int) -> Iterator[Clients]:
    """The clients with another class or group of a record; scores by class at opposite ends.

    The new class has the largest score of all and the others the smallest, or the other way round.
    """
    for category in range(len(known.names)):
        of_record = known.of_record.copy()
        of_record[record] = category
        if known.scores is None:
            made = Categories(known.names, of_record)
            yield replace(clients, categories=made)
            continue
        for category_score, other_scores in itertools.permutations(
            (known.scores.max(), known.scores.min())
        ):
            scores = known.scores.copy()
            scores[record] = other_scores
            scores[record, category] = category_score
            yield replace(clients, categories=Categories(known.names, of_record, scores))


def _removed(clients: Clients, client: int, record: int) -> Clients:
    offsets = clients.offsets - (np.arange(clients.count + 1) > client)
    second = None if clients.second is None else np.delete(clients.second, record)
    left = np.arange(clients.records) != record
    return replace(
        clients,
        scores=np.delete(clients.scores, record),
        labels=np.delete(clients.labels, record),
        offsets=offsets,
        second=second,
        categories=None if clients.categories is None else clients.categories.taken(left),
    )
