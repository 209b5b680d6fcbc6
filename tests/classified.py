"""Small federations of several classes, and of private groups, for tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from scipy.special import expit, softmax

import tacit.protocol as tp
from tacit import Estimate, Evaluation
from tacit.arrays import Floats, Integers
from tacit.data.categories import Categories
from tacit.results.parts import Breakdown
from tacit.running.simulation import simulate
from tacit.testing.checks import conversation_of
from tacit.testing.recording import Loss, Recorder, Rescaled, loss_between
from tests import known

CLASSES = ("a", "b", "c", "d")
GROUPS = ("x", "y", "z")

Figures = Callable[[tp.ServerResult], Mapping[str, list[tuple[Estimate, float]]]]
"""The estimates of a result, by figure, each with its exact value."""


def class_clients(
    records: int, clients: int = 10, classes: tuple[str, ...] = CLASSES, seed: int = 0
) -> tp.Clients:
    """Records of several classes with probabilities as scores, classes in falling numbers."""
    rng, count = np.random.default_rng(seed), len(classes)
    parts = np.arange(count, 0, -1) / (count * (count + 1) / 2)
    labels = rng.choice(count, records, p=parts)
    odds = rng.normal(size=(records, count))
    odds[np.arange(records), labels] += 1.2
    ids = np.arange(records) % clients
    return tp.Clients.from_classes(softmax(odds, axis=1), np.array(classes)[labels], classes, ids)


def group_clients(records: int, clients: int = 10, seed: int = 0) -> tp.Clients:
    """Records of three groups, in which a classifier is worth differently much."""
    rng = np.random.default_rng(seed)
    groups, labels = rng.choice(3, records, p=(0.5, 0.3, 0.2)), rng.random(records) < 0.3
    scores = expit(rng.normal(size=records) + labels * (1.0 + 0.3 * groups) - 1)
    ids = np.arange(records) % clients
    made = tp.Clients.from_arrays(scores, labels.astype(np.int8), ids)
    return made.with_categories(Categories(GROUPS, groups), ids)


def known_classes(clients: tp.Clients) -> tuple[Floats, Integers]:
    """The scores of all classes, and the class of each record."""
    categories = known(clients.categories)
    return known(categories.scores), categories.of_record


def breakdown_of(result: Evaluation | tp.ServerResult) -> Breakdown:
    """The figures of classes or groups, of which there are some."""
    return known(result.breakdown)


def changed(clients: tp.Clients, record: int, category: int, label: int) -> tp.Clients:
    """The clients with another category, label and scores of one record."""
    categories = known(clients.categories)
    of_record = categories.of_record.copy()
    labels, scores = clients.labels.copy(), clients.scores.copy()
    of_record[record], labels[record], scores[record] = category, label, 0.97
    matrix = None
    if categories.scores is not None:
        matrix = categories.scores.copy()
        matrix[record] = np.linspace(0.99, 0.01, matrix.shape[1])
    made = Categories(categories.names, of_record, matrix)
    return replace(clients, labels=labels, scores=scores, categories=made)


def without(clients: tp.Clients, record: int) -> tp.Clients:
    """One client's records without one of them."""
    left = np.arange(clients.records) != record
    categories = known(clients.categories)
    made = tp.Clients.from_arrays(clients.scores[left], clients.labels[left])
    return made.with_categories(categories[left])


def category_neighbours(clients: tp.Clients, adjacency: tp.Adjacency) -> Iterator[tp.Clients]:
    """Data sets that differ in one record, its category among others."""
    categories = known(clients.categories)
    for record in range(clients.records):
        if adjacency is tp.Adjacency.RECORD:
            yield without(clients, record)
            continue
        for category in range(len(categories.names)):
            labels = (0,) if categories.scores is not None else (0, 1)
            yield from (changed(clients, record, category, label) for label in labels)


def worst_loss(protocol: tp.Protocol, clients: tp.Clients) -> float:
    """The largest privacy losses of one client's replies to any of its neighbours, over a run."""
    adjacency, total = protocol.guarantee.adjacency, 0.0
    assert adjacency is not None
    for query, _ in conversation_of(clients, protocol, tp.NoNoise()):
        noise = Recorder()
        reply = query.step.answer(clients, query, noise, tp.ClientState())
        losses: list[Loss] = []
        for other in category_neighbours(clients, adjacency):
            moved = query.step.answer(other, query, tp.NoNoise(), tp.ClientState())
            losses.append(loss_between(reply, moved, noise))
        total += max(loss.epsilon for loss in losses)
    return total


def coverages(
    clients: tp.Clients, protocol: tp.Protocol, figures: Figures, runs: int, factor: float = 1.0
) -> dict[str, float]:
    """How often 95 % intervals about the records hold the exact figures, by figure.

    Parameters
    ----------
    factor : of the noise's scale, which is 1 where it is right.
    """
    hits: dict[str, list[bool]] = defaultdict(list)
    for seed in range(runs):
        noise = Rescaled(factor, seed, None)  # one run
        found = figures(simulate(clients, protocol, noise).server_result)
        for name, pairs in found.items():
            for estimate, exact in pairs:
                low, high = estimate.interval(0.95)
                hits[name].append(low <= exact <= high)
    return {name: float(np.mean(each)) for name, each in hits.items()}
