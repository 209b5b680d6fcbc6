"""Scores of several classes, each class's records against the rest, and records of one class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.data.categories import Categories
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.metrics.cells.score_scale import ScoreScale


def scores_by_class(
    clients: Clients, classes: tuple[str, ...], bounded: bool
) -> tuple[Floats, Integers]:
    """The scores of all classes, shape (M, C), and the records' classes, shape (M,).

    Clients without classes are taken to have two, with the scores 1 - s and s, or -s and s.

    Parameters
    ----------
    clients : the records.
    classes : the agreed names.
    bounded : whether scores are from 0 to 1.

    Raises
    ------
    DataError : for clients of other classes than the agreed ones.
    """
    clients = clients if clients.at_hand else clients.part(0, clients.count)
    known = clients.categories
    if known is not None and known.scores is not None:
        if known.names != classes:
            raise DataError(f"classes must be {', '.join(classes)}, got {', '.join(known.names)}")
        return known.scores, known.of_record
    if len(classes) != 2:
        raise DataError(f"{len(classes)} classes need a column of scores each, got one")
    against = 1 - clients.scores if bounded else -clients.scores
    return np.stack([against, clients.scores], axis=1), clients.labels.astype(np.int64)


def in_classes(clients: Clients, classes: tuple[str, ...], scale: ScoreScale) -> Clients:
    """Synthetic records of all classes in turn, whose scores lie in cells of their own.

    Clients are unchanged where there are two classes, which they have without names.

    Parameters
    ----------
    clients : whose records they are.
    classes : the names.
    scale : of the scores.
    """
    records, count = clients.records, len(classes)
    if count == 2:
        return clients
    even = (np.arange(records * count).reshape(records, count) + 0.5) / (records * count)
    made = Categories(classes, np.arange(records) % count, scale.scores(even))
    return clients.with_categories(made)


def one_against_rest(clients: Clients, scores: Floats, classes: Integers) -> Iterator[Clients]:
    """For each class the clients with its scores, and the label 1 for its records.

    Parameters
    ----------
    clients : whose records they are.
    scores : of all classes, shape (M, C).
    classes : of the records, shape (M,).
    """
    clients = clients if clients.at_hand else clients.part(0, clients.count)
    plain = replace(clients, categories=None)
    for number in range(scores.shape[1]):
        column = np.ascontiguousarray(scores[:, number])
        yield replace(plain, scores=column, labels=(classes == number).astype(np.int8))
