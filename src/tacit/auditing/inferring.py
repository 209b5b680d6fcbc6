"""Attacks that infer labels, each on an exact release and on the protocol's release.

Labels are inferred from scores, curves, counts and differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers, Labels
from tacit.auditing.exposure import Exposure, label_ceiling
from tacit.auditing.questions import neighbours, observe, questions_of
from tacit.auditing.steps import Target
from tacit.data.clients import Clients
from tacit.metrics import curves
from tacit.privacy import doubles
from tacit.privacy.cost import Adjacency
from tacit.privacy.noise import SimulatedNoise
from tacit.protocol import audits
from tacit.protocol.conversation import Protocol
from tacit.results.figure import Figure
from tacit.running.simulation import replicate, simulate

UNKNOWN = 6
"""Number of labels that an attacker does not know; it knows all others."""

DATA_SETS = 5
"""Number of data sets on which the attack compares two AUCs."""

RECORDS = 8
"""Number of records in the attack on fields."""

MIN_VARIANCE = 1e-12
"""Variance that the attack assumes for numbers without noise."""

LABEL_TRIES = 10
"""Number of replies with each label in a trial of the attack on fields."""

FULL = audits.AttackSizes()
QUICK = audits.AttackSizes(records=10_000, trials=100)

AGAIN = 10
"""Times as many guesses where an advantage is above what is allowed, and chance may explain it."""

Attack = Callable[[Protocol, audits.AttackSizes, int], Iterator[Exposure]]


def positives_from_curve(
    records: NDArray[Any], false_positive_rate: Floats, true_positive_rate: Floats
) -> Floats:
    """The fraction of positives in every cell, from a ROC curve and the known scores, shape (T,).

    An attacker who knows the scores knows the number of records ``n_j`` between two thresholds.
    This number is ``P t_j + N f_j``, where t and f are the steps of the rates. As ``P + N = M``,
    one class size remains unknown; least squares estimate it, and ``P t_j / n_j`` follows. An exact
    curve at every score gives every label (after Matthews and Harel 2013). Empty cells have the
    share 0.

    Parameters
    ----------
    records : how many records score from each threshold up to the next, shape (T,).
    false_positive_rate, true_positive_rate : at ascending thresholds, shape (T,).

    Examples
    --------
    >>> positives_from_curve(np.array([2, 1, 1]), np.array([1, 0.5, 0]), np.array([1, 0.5, 0.5]))
    array([0.5, 0. , 1. ])
    """
    false, true = (
        rates - np.append(rates[1:], 0.0) for rates in (false_positive_rate, true_positive_rate)
    )
    apart = true - false
    missing = records - records.sum() * false
    scale = float(apart @ apart)
    positives = float(apart @ missing) / scale if scale > 0 else 0.0
    share = positives * true / np.maximum(records, 1)
    return np.clip(np.where(records > 0, share, 0.0), 0.0, 1.0)


def candidate_curves(positives: Integers, negatives: Integers, cells: Integers) -> Floats:
    """The ROC curves under every labelling of a few records, shape (2**u, 2, T).

    In row ``c`` the labels are the bits of c; the first record has the highest bit. Rates of an
    empty class are 0.

    Parameters
    ----------
    positives, negatives : counts of the records whose labels are known, by cell, shape (T,).
    cells : the cells of the others, shape (u,).
    """
    labels = all_labellings(cells.size)
    one_hot = np.eye(positives.size, dtype=np.int64)[cells]
    classes = negatives + (1 - labels) @ one_hot, positives + labels @ one_hot
    reached = np.stack([curves.counts_from_thresholds(counts) for counts in classes], axis=1)
    return np.asarray(reached / np.maximum(reached[..., :1], 1))


def all_labellings(records: int) -> Integers:
    """Every labelling of u records, shape (2**u, u).

    Examples
    --------
    >>> all_labellings(2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    return np.array(list(product((0, 1), repeat=records)), dtype=np.int64)


def nearest(released: Floats, candidates: Floats) -> int:
    """Which candidate is nearest to what was released (after Stoddard et al. 2014).

    For exact figures it is the candidate that equals them, for figures with normal noise the
    likeliest one. Of several equally near candidates it is the first.

    Parameters
    ----------
    released : figures of any shape.
    candidates : the same figures under every hypothesis, which is the first axis.
    """
    gaps = (candidates - released).reshape(candidates.shape[0], -1)
    return int(np.argmin(np.sum(gaps**2, axis=-1)))


def labels_from_change(before: Floats, after: Floats) -> Labels:
    """The label of a record that scores highest, from AUCs without it and with it, shape (R,).

    A positive record scores above every negative one, so the AUC rises. No positive record scores
    above a negative one that scores highest, so the AUC falls.

    Examples
    --------
    >>> labels_from_change(np.array([0.71, 0.71]), np.array([0.74, 0.69]))
    array([1, 0], dtype=int8)
    """
    return np.asarray(after > before, dtype=np.int8)


def exposures_of(
    protocol: Protocol, sizes: audits.AttackSizes = FULL, seed: int = 0
) -> list[Exposure]:
    """The attacks on a protocol, each on an exact release and on the protocol's release.

    These are the attacks on messages that the protocol declares, or, where it declares none, the
    attack on the fields that the server receives. Two attacks on a ROC curve are added where a
    result has a curve, and one on the AUC where the AUC is the result and labels are protected.

    Parameters
    ----------
    protocol : with its settings.
    sizes : how much is attacked.
    seed : makes data and noise repeatable.
    """
    limited = label_ceiling(protocol.guarantee) is not None
    declared = protocol.label_attacks()
    attacks: list[Attack] = [_judged(attack) for attack in declared or ()]
    if protocol.gives_curve:
        attacks += [whole_curve, few_labels]
    if Figure.of(protocol.figure).is_auc and limited:
        attacks.append(one_more_record)
    if declared is None and limited:
        attacks.append(received_fields)
    root, count = np.random.SeedSequence(seed), max(len(attacks), 1)
    seeds = [each.generate_state(count, np.uint32) for each in (root, *root.spawn(1))]
    return [
        exposure
        for attack, first, second in zip(attacks, *seeds, strict=False)
        for exposure in _settled(attack, protocol, sizes, int(first), int(second))
    ]


def _settled(
    attack: Attack, protocol: Protocol, sizes: audits.AttackSizes, first: int, second: int
) -> list[Exposure]:
    """What an attack gives; with more guesses on other records where a few leave it open.

    An attack that just reaches what is allowed is above it in half of all audits.
    """
    made = list(attack(protocol, sizes, first))
    if not any(each.above and each.holds for each in made):
        return made
    more = replace(sizes, records=AGAIN * sizes.records, trials=AGAIN * sizes.trials)
    return list(attack(protocol, more, second))


def _judged(attack: audits.LabelAttack) -> Attack:
    """A declared attack, with the largest advantage that its guarantee allows."""

    def exposures(protocol: Protocol, sizes: audits.AttackSizes, seed: int) -> Iterator[Exposure]:
        for outcome in attack(protocol, sizes, seed):
            ceiling = None if outcome.guarantee is None else label_ceiling(outcome.guarantee)
            counts = outcome.right, outcome.tries, outcome.blind
            yield Exposure(
                outcome.attack, outcome.release, outcome.protected, *counts, ceiling, outcome.trials
            )

    return exposures


def received_fields(protocol: Protocol, sizes: audits.AttackSizes, seed: int) -> Iterator[Exposure]:
    """One record's label, from all that the server receives in a run, and all other records.

    The attacker draws replies with either label and weighs every number by how far its mean moves,
    as a linear discriminant of independent numbers does. It then guesses the label of other draws.
    """
    clients = protocol.audit_federation(RECORDS, protocol.lone_records)
    questions = questions_of(protocol, clients, doubles.simulated(seed, None))
    other = next(neighbours(clients, Adjacency.LABEL, questions[0].client))
    target = Target("fields", tuple(questions), protocol.guarantee, Adjacency.LABEL)
    seeds = np.random.SeedSequence(seed).generate_state(4, np.uint64)
    tries = LABEL_TRIES * sizes.trials
    first, second, *guessed = (
        target.observed(data, doubles.simulated, int(state), tries)
        for data, state in zip((clients, other) * 2, seeds, strict=True)
    )
    attack = "one label, from the replies that the server receives"
    exact = tries * (2 if _differ(target, clients, other) else 1)
    right = np.array([exact, _separated(first, second, *guessed)])
    yield from _pair(attack, "replies without noise", protocol, right, 2 * tries)


def _differ(target: Target, clients: Clients, other: Clients) -> bool:
    """Whether replies without noise distinguish two data sets."""
    bare = [observe(target.questions, data, doubles.BareCoins()) for data in (clients, other)]
    return bare[0].shape != bare[1].shape or bool(np.any(bare[0] != bare[1]))


def _separated(first: Floats, second: Floats, *guessed: Floats) -> int:
    """Number of draws that a discriminant assigns correctly, after it learnt from other draws."""
    middle, apart = (first.mean(axis=0) + second.mean(axis=0)) / 2, second.mean(0) - first.mean(0)
    variance = (first.var(axis=0) + second.var(axis=0)) / 2
    weights = np.divide(apart, variance, out=np.zeros_like(apart), where=variance > 0)
    weights = np.where((variance == 0) & (apart != 0), apart / MIN_VARIANCE, weights)
    first_scores, second_scores = ((rows - middle) @ weights for rows in guessed)
    return int(np.sum(first_scores < 0) + np.sum(second_scores > 0))


def whole_curve(protocol: Protocol, sizes: audits.AttackSizes, seed: int) -> Iterator[Exposure]:
    """All labels, from a ROC curve and all scores (after Matthews and Harel 2013)."""
    scores, labels = audits.synthetic_records(sizes.records // 10, seed, audits.POSITIVE_FRACTION)
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


def few_labels(protocol: Protocol, sizes: audits.AttackSizes, seed: int) -> Iterator[Exposure]:
    """Six labels, from a ROC curve, all scores and all other labels (Stoddard et al. 2014)."""
    rng, right = np.random.default_rng(seed), np.zeros(2, dtype=np.int64)
    for _ in range(sizes.trials):
        trial_seed = int(rng.integers(2**32))
        scores, labels = audits.synthetic_records(200, trial_seed, 0.5)
        hidden = rng.choice(scores.size, UNKNOWN, replace=False)
        labels[hidden] = rng.integers(2, size=UNKNOWN)
        clients = Clients.from_arrays(scores, labels)
        curve = _curve(protocol, clients, trial_seed)
        if curve is None:
            return
        edges, noisy = curve
        candidates = _candidates(clients, edges, hidden)
        for index, seen in enumerate((exact_rates(clients, edges), noisy)):
            guess = all_labellings(UNKNOWN)[nearest(seen, candidates)]
            right[index] += int(np.sum(guess == labels[hidden]))
    attack = "six labels, from a ROC curve and all others"
    tries = sizes.trials * UNKNOWN
    yield from _pair(attack, "exact curve", protocol, right, tries, sizes.trials)


def one_more_record(protocol: Protocol, sizes: audits.AttackSizes, seed: int) -> Iterator[Exposure]:
    """The label of the highest-scored record, from the AUC without it and the AUC with it.

    The attack tries both labels on each of a few data sets, with many draws of the noise.
    """
    rng, right = np.random.default_rng(seed), np.zeros(2, dtype=np.int64)
    several = 1 if protocol.lone_records else 20
    times = sizes.trials // (2 * DATA_SETS)
    for _ in range(DATA_SETS):
        scores, labels = audits.synthetic_records(40, int(rng.integers(2**32)), 0.5)
        ids = np.arange(scores.size + 1) // several
        before = Clients.from_arrays(scores, labels, ids[:-1])
        for label in (0, 1):
            after = Clients.from_arrays(np.append(scores, 1.0), np.append(labels, label), ids)
            for index, released in enumerate((_exact_figures, _released_figures)):
                first, second = (
                    released(protocol, clients, times, int(rng.integers(2**32)))
                    for clients in (before, after)
                )
                right[index] += int(np.sum(labels_from_change(first, second) == label))
    attack = "one label, from AUCs without and with its record"
    yield from _pair(attack, "exact AUCs", protocol, right, 2 * DATA_SETS * times)


def _exact_figures(protocol: Protocol, clients: Clients, times: int, seed: int) -> Floats:
    """The exact result, repeated ``times`` times; the seed is not used."""
    return np.full(times, protocol.exact(clients))


def _released_figures(protocol: Protocol, clients: Clients, times: int, seed: int) -> Floats:
    """The protocol's result of each of ``times`` runs."""
    return replicate(clients, protocol, times, seed).value


def exact_rates(clients: Clients, edges: Floats) -> Floats:
    """False- and true-positive rates at ascending thresholds, shape (2, T)."""
    cells = np.searchsorted(edges, clients.scores, side="right") - 1
    both = _counts(cells, clients.labels, edges.size)
    reached = curves.counts_from_thresholds(both)
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
    negatives, positives = _counts(cells[known], clients.labels[known], edges.size)
    return candidate_curves(positives, negatives, cells[hidden])


def _counts(cells: Integers, labels: Labels, size: int) -> Integers:
    """Negatives and positives by cell, shape (2, T)."""
    return np.stack([np.bincount(cells[labels == label], minlength=size) for label in (0, 1)])


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
    ceiling = label_ceiling(protocol.guarantee)
    yield Exposure(
        attack, called(protocol), private(protocol), int(right[1]), tries, 0.5, ceiling, trials
    )


def _curve(protocol: Protocol, clients: Clients, seed: int) -> tuple[Floats, Floats] | None:
    """The thresholds and rates of the ROC curve that a run publishes, if it publishes one."""
    curve = simulate(clients, protocol, SimulatedNoise(seed)).server_result.roc
    if curve is None:
        return None
    return curve.thresholds, np.stack([curve.false_positive_rate, curve.true_positive_rate])
