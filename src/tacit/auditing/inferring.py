"""Attacks that infer labels, each on an exact release and on what a protocol releases instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.auditing.exposure import Exposure, label_ceiling
from tacit.auditing.inference import (
    all_labellings,
    candidate_curves,
    cells_from_reached,
    labels_from_change,
    nearest,
    positives_from_curve,
    top_hits,
)
from tacit.data.clients import Clients, Ragged
from tacit.data.splitting import binormal_scores
from tacit.metrics.curves import counts_from_thresholds
from tacit.privacy.cost import Adjacency
from tacit.privacy.noise import NoiseSource, NoNoise, SimulatedNoise
from tacit.protocols.baselines import ExactAUC
from tacit.protocols.conversation import Memory, Protocol, Reply
from tacit.protocols.dpauc import DPAUC, cell_counts
from tacit.protocols.rank_noise import RESPONSE
from tacit.running.simulation import replicate, simulate

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Labels = NDArray[np.int8]

AUC = 0.7455
"""Of the synthetic scores, as of the papers' real ones."""

POSITIVE_SHARE = 0.256
"""Of the records, as of the papers'."""

DATA = 1
"""Sets the seeds of records apart from those of noise."""

THRESHOLDS = 100
UNKNOWN = 6
"""Labels that are missing to an attacker who has all others."""

SLOWER = 8
"""By how much fewer trials a protocol of lone records gets, whose replicates run one at a time."""

DATA_SETS = 5
"""Data sets on which two AUCs are compared."""

LOCAL = ("two-round-auc", "ustatistic", "paired-ustatistic")
"""Protocols whose clients are taken to hold one record each."""


@dataclass(frozen=True)
class Sizes:
    """How much is attacked.

    Parameters
    ----------
    records : of attacks on one large data set.
    trials : small data sets, each with records and noise of its own.
    """

    records: int = 20_000
    trials: int = 200


FULL = Sizes()
QUICK = Sizes(trials=100)
Attack = Callable[[Protocol, Sizes, int], Iterator[Exposure]]


def exposures_of(protocol: Protocol, sizes: Sizes = FULL, seed: int = 0) -> list[Exposure]:
    """The attacks that concern a protocol, each against an exact release and against its own.

    Parameters
    ----------
    protocol : with its settings.
    sizes : how much is attacked.
    seed : makes data and noise repeatable.
    """
    attacks: list[Attack] = []
    if protocol.name in ("fedauc", "noisy-scores"):
        attacks.append(top_scores)
    if protocol.name == "dpauc":
        attacks.append(single_records)
    if protocol.name in ("dpauc", "score-histogram"):
        attacks += [whole_curve, few_labels]
    if protocol.figure == "AUC" and label_ceiling(protocol.guarantee) is not None:
        attacks.append(one_more_record)
    seeds = np.random.SeedSequence(seed).generate_state(len(attacks), np.uint32)
    tried = zip(attacks, seeds, strict=True)
    return [found for attack, own in tried for found in attack(protocol, sizes, int(own))]


def top_scores(protocol: Protocol, sizes: Sizes, seed: int) -> Iterator[Exposure]:
    """Call the highest-scored hundredth of the records positive (paper 1, Table 8; 2, Table 2).

    The server of ``FedAUC`` receives each client's scores in ascending order, so that it does not
    know which record has which, unless a client has one record only.
    """
    scores, labels = binormal(sizes.records, seed, POSITIVE_SHARE)
    size = sizes.records // 100

    def exposure(release: str, protected: bool, seen: Floats) -> Exposure:
        hits = int(top_hits(seen, labels, np.array([size]))[0])
        blind = float(labels.mean())
        return Exposure("labels, from scores", release, protected, hits, size, blind)

    yield exposure("scores beside their records", False, scores)
    if protocol.name == "noisy-scores":
        clients = Clients.from_arrays(scores, labels)
        yield exposure("scores with noise", True, _scores(protocol, clients, SimulatedNoise(seed)))
    elif protocol.settings.get("ranks") != "mpc":
        for held, text in ((1, "one record"), (100, "100 records")):
            clients = Clients.from_arrays(scores, labels, np.arange(scores.size) // held)
            seen = _scores(protocol, clients, NoNoise())
            yield exposure(f"ascending scores of clients of {text}", held > 1, seen)


def single_records(protocol: Protocol, sizes: Sizes, seed: int) -> Iterator[Exposure]:
    """The cell of a client's only record, and its label, from the client's counts.

    Exact counts per threshold say both. Where labels are flipped the counts still say where the
    record lies, which is the weakness that paper 2 names.
    """
    scores, labels = binormal(sizes.records // 10, seed, 0.5)
    clients = Clients.from_arrays(scores, labels, np.arange(scores.size))
    epsilon = protocol.guarantee.epsilon
    exact = DPAUC(epsilon, THRESHOLDS, "laplace")
    four = np.asarray(_first_reply(exact, clients, NoNoise())["counts"])
    found = cells_from_reached(four[0] + four[1])
    yield from _lone("exact counts per threshold", exact, clients, (found, four[0, 0] > 0), False)
    flipping = DPAUC(epsilon, THRESHOLDS, RESPONSE, adjacency="label")
    reply = _first_reply(flipping, clients, SimulatedNoise(seed))
    found = cells_from_reached(counts_from_thresholds(np.asarray(reply["records"]).T).T)
    guesses = np.asarray(reply["positives"]).sum(axis=0) > 0
    yield from _lone("counts of flipped labels", flipping, clients, (found, guesses), True)
    histogram = DPAUC(epsilon, THRESHOLDS)
    noisy = np.asarray(_first_reply(histogram, clients, SimulatedNoise(seed + 1))["cells"])
    place = np.argmax(noisy.reshape(-1, clients.count), axis=0)
    guess = place % THRESHOLDS, place < THRESHOLDS
    yield from _lone("noisy histograms", histogram, clients, guess, True)


def whole_curve(protocol: Protocol, sizes: Sizes, seed: int) -> Iterator[Exposure]:
    """All labels, from a ROC curve and all scores (after Matthews and Harel 2013)."""
    scores, labels = binormal(sizes.records // 10, seed, POSITIVE_SHARE)
    clients = Clients.from_arrays(scores, labels)

    def exposure(release: str, protected: bool, edges: Floats, rates: Floats) -> Exposure:
        cell = np.searchsorted(edges, scores, side="right") - 1
        shares = positives_from_curve(np.bincount(cell, minlength=edges.size), *rates)
        right = int(np.sum((shares[cell] > 0.5) == labels))
        blind = float(1 - labels.mean())
        attack = "all labels, from a ROC curve"
        return Exposure(attack, release, protected, right, labels.size, blind)

    curve = _curve(protocol, clients, seed)
    if curve is None:
        return
    thresholds, rates = curve
    for edges, text in ((np.unique(scores), "every score"), (thresholds, "the same thresholds")):
        yield exposure(f"exact curve at {text}", False, edges, exact_rates(clients, edges))
    yield exposure(called(protocol), private(protocol), thresholds, rates)


def few_labels(protocol: Protocol, sizes: Sizes, seed: int) -> Iterator[Exposure]:
    """Six labels, from a ROC curve, all scores and all other labels (Stoddard et al. 2014)."""
    rng, right = np.random.default_rng(seed), np.zeros(2, dtype=np.int64)
    for _ in range(sizes.trials):
        own = int(rng.integers(2**32))
        scores, labels = binormal(200, own, 0.5)
        hidden = rng.choice(scores.size, UNKNOWN, replace=False)
        labels[hidden] = rng.integers(2, size=UNKNOWN)
        clients = Clients.from_arrays(scores, labels)
        curve = _curve(protocol, clients, own)
        if curve is None:
            return
        edges, noisy = curve
        candidates = _candidates(clients, edges, hidden)
        for place, seen in enumerate((exact_rates(clients, edges), noisy)):
            guess = all_labellings(UNKNOWN)[nearest(seen, candidates)]
            right[place] += int(np.sum(guess == labels[hidden]))
    attack = "six labels, from a ROC curve and all others"
    tries = sizes.trials * UNKNOWN
    yield from _pair(attack, "exact curve", protocol, right, tries, sizes.trials)


def one_more_record(protocol: Protocol, sizes: Sizes, seed: int) -> Iterator[Exposure]:
    """The label of the highest-scored record, from the AUC without it and the AUC with it.

    On each of a few data sets both labels are tried, with many draws of the noise.
    """
    rng, right = np.random.default_rng(seed), np.zeros(2, dtype=np.int64)
    several = 1 if protocol.name in LOCAL or protocol.settings.get("trust") == "local-dp" else 20
    times = sizes.trials // (2 * DATA_SETS)
    for _ in range(DATA_SETS):
        scores, labels = binormal(40, int(rng.integers(2**32)), 0.5)
        ids = np.arange(scores.size + 1) // several
        before = Clients.from_arrays(scores, labels, ids[:-1])
        for label in (0, 1):
            after = Clients.from_arrays(np.append(scores, 1.0), np.append(labels, label), ids)
            for place, each in enumerate((ExactAUC(), protocol)):
                first, second = (
                    replicate(clients, each, times, int(rng.integers(2**32))).value
                    for clients in (before, after)
                )
                right[place] += int(np.sum(labels_from_change(first, second) == label))
    attack = "one label, from AUCs without and with its record"
    yield from _pair(attack, "exact AUCs", protocol, right, 2 * DATA_SETS * times)


def binormal(records: int, seed: int, positive_share: float) -> tuple[Floats, Labels]:
    """Synthetic scores and labels in random order."""
    positives = round(records * positive_share)
    rng = np.random.default_rng([seed, DATA])
    scores, labels = binormal_scores(
        positives, records - positives, AUC, seed=int(rng.integers(2**32))
    )
    order = rng.permutation(records)
    return scores[order], labels[order]


def exact_rates(clients: Clients, edges: Floats) -> Floats:
    """False- and true-positive rates at ascending thresholds, shape (2, T)."""
    positives, records = cell_counts(clients, edges, clients.labels)
    both = np.stack([(records - positives).sum(axis=-1), positives.sum(axis=-1)])
    reached = counts_from_thresholds(both)
    return np.asarray(reached / np.maximum(reached[:, :1], 1))


def called(protocol: Protocol) -> str:
    """A protocol's name with its epsilon."""
    epsilon = protocol.settings.get("epsilon")
    return protocol.name if epsilon is None else f"{protocol.name}, epsilon {epsilon:g}"


def private(protocol: Protocol) -> bool:
    """Whether the protocol guarantees anything."""
    return bool(np.isfinite(protocol.guarantee.epsilon))


def _candidates(clients: Clients, edges: Floats, hidden: Integers) -> Floats:
    """The exact curves under every labelling of the hidden records."""
    cells = np.searchsorted(edges, clients.scores, side="right") - 1
    known = np.delete(np.arange(clients.records), hidden)
    negatives, positives = (
        np.bincount(cells[known][clients.labels[known] == label], minlength=edges.size)
        for label in (0, 1)
    )
    return candidate_curves(positives, negatives, cells[hidden])


def _pair(
    attack: str,
    plain: str,
    protocol: Protocol,
    right: Integers,
    tries: int,
    trials: int | None = None,
) -> Iterator[Exposure]:
    """The same attack on the exact release and on the protocol's."""
    yield Exposure(attack, plain, False, int(right[0]), tries, 0.5)
    own = label_ceiling(protocol.guarantee)
    yield Exposure(
        attack, called(protocol), private(protocol), int(right[1]), tries, 0.5, own, trials
    )


def _lone(
    release: str,
    protocol: DPAUC,
    clients: Clients,
    guess: tuple[NDArray[Any], NDArray[Any]],
    protected: bool,
) -> Iterator[Exposure]:
    """How often the cells and labels of lone records were guessed."""
    true = np.searchsorted(protocol.edges, clients.scores, side="right") - 1
    blind = float(np.bincount(true).max() / true.size)
    right = [
        int(np.sum(own == real)) for own, real in zip(guess, (true, clients.labels), strict=True)
    ]
    hides = protected and protocol.adjacency != Adjacency.LABEL.value
    yield Exposure(
        "a lone record's cell, from its counts", release, hides, right[0], true.size, blind
    )
    own = label_ceiling(protocol.guarantee) if protected else None
    attack = "a lone record's label, from its counts"
    yield Exposure(attack, release, protected, right[1], true.size, 0.5, own)


def _first_reply(protocol: Protocol, clients: Clients, noise: NoiseSource) -> Reply:
    ask = next(protocol.conversation(clients.count))
    return ask.step.answer(clients, ask, noise, Memory())


def _scores(protocol: Protocol, clients: Clients, noise: NoiseSource) -> Floats:
    """The scores that the server receives, in the order in which it receives them."""
    sent = _first_reply(protocol, clients, noise)["scores"]
    if not isinstance(sent, Ragged):
        raise TypeError("scores must be ragged")
    return sent.values


def _curve(protocol: Protocol, clients: Clients, seed: int) -> tuple[Floats, Floats] | None:
    """The thresholds and rates of the ROC curve that a run publishes, if it publishes one."""
    curve = simulate(clients, protocol, SimulatedNoise(seed)).findings.roc
    if curve is None:
        return None
    return curve.thresholds, np.stack([curve.false_positive_rate, curve.true_positive_rate])
