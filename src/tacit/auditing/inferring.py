"""Attacks that infer labels, each on an exact release and on the protocol's release.

Labels are inferred from scores, curves, counts and differences. What an attacker guesses better
than blind is compared with what a guarantee allows. An attack that just reaches the allowed
advantage exceeds it by chance in half of all audits. So a verdict asks how likely so many right
guesses are where the guarantee holds. It reports an excess only where this probability is below the
row's part of the audit's false-alarm probability.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, rel_entr

import tacit.protocol as tp
from tacit.arrays import Floats, Integers, Labels
from tacit.auditing.distinguishing import interval
from tacit.auditing.questions import neighbours, observe, questions_of
from tacit.auditing.steps import Target
from tacit.metrics import curves
from tacit.privacy import composition, doubles
from tacit.protocol import audits
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

FULL = tp.AttackSizes()
QUICK = tp.AttackSizes(records=10_000, trials=100)

AGAIN = 10
"""Times as many guesses where an advantage is above what is allowed, and chance may explain it."""


def advantage_bound(epsilon: float, delta: float = 0.0) -> float:
    """The most by which a guess of one bit beats a coin: ``(e^eps - 1 + 2 delta) / (e^eps + 1)``.

    The advantage is the fraction of right guesses minus that of wrong ones. Where the bit is
    (epsilon, delta)-private, right guesses of either value are at most ``exp(epsilon)`` times as
    frequent as wrong ones, plus delta; for delta 0 that is ``tanh(epsilon / 2)``.

    Examples
    --------
    >>> round(advantage_bound(1.0), 3)
    0.462
    """
    return min(1.0, math.tanh(epsilon / 2) + 2 * delta / (1 + math.exp(min(epsilon, 700.0))))


Rows = Iterator[tp.Guesses]
"""Rows of an attack."""

WRITTEN = (
    *("attack", "release", "protected", "right", "tries", "blind", "ceiling", "trials"),
    *("false_alarm", "share", "advantage", "advantage_low", "advantage_high", "chance"),
    *("holds", "verdict"),
)
"""Entries of a row, in their order."""

FALSE_ALARM = 1e-4
"""The chance that the verdict on a single sound row is a false alarm."""


@dataclass(frozen=True)
class Exposure(tp.Guesses):
    """How often an attacker guessed right, with a verdict.

    Parameters
    ----------
    false_alarm : the chance that the verdict on this row is a false alarm.
    """

    false_alarm: float = FALSE_ALARM

    @property
    def ceiling(self) -> float | None:
        """The largest advantage over a coin that the guarantee allows, for a label of a coin.

        None where the guarantee says nothing about it.
        """
        return None if self.guarantee is None else label_ceiling(self.guarantee)

    @property
    def share(self) -> float:
        """The fraction of right guesses."""
        return self.right / self.tries

    @property
    def advantage(self) -> float:
        """What the release adds: 0 for guesses as good as blind ones, 1 for knowing."""
        return self._over(self.share)

    @property
    def bounds(self) -> tuple[float, float]:
        """The 95 % interval of the advantage (Clopper-Pearson)."""
        low, high = interval(self.right, self.tries)
        return self._over(low), self._over(high)

    @property
    def chance(self) -> float | None:
        """An upper bound on the probability of this many right guesses where the guarantee holds.

        Let p be the largest share that the ceiling allows. The bound is the upper tail of the
        binomial distribution. If the probabilities of the guesses differ and are p on average, the
        tail is no heavier (Hoeffding 1956, Theorem 4). For n trials with several guesses each, the
        mean x of their shares exceeds p with probability at most ``exp(-n KL(x, p))`` (Hoeffding
        1963, Theorem 1).
        """
        if self.ceiling is None:
            return None
        allowed = self.blind + self.ceiling * (1 - self.blind)
        if self.share <= allowed:
            return 1.0
        if self.trials is None:
            return float(betainc(self.right, self.tries - self.right + 1, allowed))
        # the relative entropy of two coins, in nats
        divergence = float(rel_entr(self.share, allowed) + rel_entr(1 - self.share, 1 - allowed))
        return math.exp(-self.trials * divergence)

    @property
    def holds(self) -> bool:
        """Whether chance may explain the advantage, at this row's false-alarm probability."""
        return self.chance is None or self.chance >= self.false_alarm

    @property
    def above(self) -> bool:
        """Whether the advantage is larger than allowed, be it by chance."""
        return self.ceiling is not None and self.advantage > self.ceiling

    @property
    def verdict(self) -> str:
        """In a few words."""
        if self.chance is None:
            return "no bound"
        if not self.holds:
            return f"EXCEEDED (p {self.chance:.1g})"
        return f"holds; above by chance (p {self.chance:.1g})" if self.above else "holds"

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        bounds = dict(zip(("advantage_low", "advantage_high"), self.bounds, strict=True))
        return {name: bounds[name] if name in bounds else getattr(self, name) for name in WRITTEN}

    def _over(self, share: float) -> float:
        return (share - self.blind) / (1 - self.blind)


def judged_together(exposures: Sequence[Exposure], false_alarm: float) -> tuple[Exposure, ...]:
    """The same rows, with this probability of a false alarm over all of them (Bonferroni)."""
    bounded = sum(exposure.ceiling is not None for exposure in exposures)
    each = false_alarm / max(bounded, 1)
    return tuple(replace(exposure, false_alarm=each) for exposure in exposures)


def label_ceiling(cost: tp.Cost) -> float | None:
    """The largest advantage over a coin that a guarantee allows a guess of one record's label.

    To replace a label is to remove one record and to add another, so a guarantee about added and
    removed records counts twice. None where labels are not protected.

    Examples
    --------
    >>> round(label_ceiling(tp.Cost(1.0, adjacency=tp.Adjacency.LABEL)), 3)
    0.462
    """
    if cost.adjacency not in (tp.Adjacency.LABEL, tp.Adjacency.REPLACE, tp.Adjacency.RECORD):
        return None
    of_label = composition.restated(cost, tp.Adjacency.LABEL)
    return advantage_bound(of_label.epsilon, of_label.delta)


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
    false, true = -np.diff([false_positive_rate, true_positive_rate], append=0.0)
    apart = true - false
    missing = records - records.sum() * false
    scale = float(apart @ apart)
    positives = float(apart @ missing) / scale if scale > 0 else 0.0
    share = positives * true / np.maximum(records, 1)
    return np.clip(np.where(records > 0, share, 0.0), 0.0, 1.0)


def candidate_curves(clients: tp.Clients, edges: Floats, hidden: Integers) -> Floats:
    """The exact ROC curves under every labelling of the hidden records, shape (2**u, 2, T).

    In row ``c`` the labels are the bits of c; the first record has the highest bit. Rates of an
    empty class are 0.

    Parameters
    ----------
    clients : the records, of which the labels of the hidden ones are not used.
    edges : ascending thresholds, shape (T,).
    hidden : the indices of the hidden records, shape (u,).
    """
    cells = np.searchsorted(edges, clients.scores, side="right") - 1
    known = np.delete(np.arange(clients.records), hidden)
    negatives, positives = _counts(cells[known], clients.labels[known], edges.size)
    labels = all_labellings(hidden.size)
    one_hot = np.eye(edges.size, dtype=np.int64)[cells[hidden]]
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
    protocol: tp.Protocol, sizes: tp.AttackSizes = FULL, seed: int = 0
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
    attacks: list[audits.LabelAttack] = list(declared or ())
    if protocol.gives_curve:
        attacks += [whole_curve, few_labels]
    if tp.Figure.of(protocol.figure).is_auc and limited:
        attacks.append(one_more_record)
    if declared is None and limited:
        attacks.append(received_fields)
    root, count = np.random.SeedSequence(seed), max(len(attacks), 1)
    seeds = [each.generate_state(count, np.uint32) for each in (root, *root.spawn(1))]
    return [
        exposure
        for attack, *pair in zip(attacks, *seeds, strict=False)
        for exposure in _settled(attack, protocol, sizes, *map(int, pair))
    ]


def _settled(
    attack: audits.LabelAttack, protocol: tp.Protocol, sizes: tp.AttackSizes, *seeds: int
) -> list[Exposure]:
    """What an attack gives; with more guesses on other records where a few leave it open.

    An attack that just reaches what is allowed is above it in half of all audits.
    """
    more = replace(sizes, records=AGAIN * sizes.records, trials=AGAIN * sizes.trials)
    for effort, seed in zip((sizes, more), seeds, strict=True):
        made = [Exposure(**vars(guesses)) for guesses in attack(protocol, effort, seed)]
        if not any(each.above and each.holds for each in made):
            break
    return made


def received_fields(protocol: tp.Protocol, sizes: tp.AttackSizes, seed: int) -> Rows:
    """One record's label, from all that the server receives in a run, and all other records.

    The attacker draws replies with either label and weighs every number by how far its mean moves,
    as a linear discriminant of independent numbers does. It then guesses the label of other draws.
    """
    clients = protocol.audit_federation(RECORDS, protocol.lone_records)
    questions = questions_of(protocol, clients, doubles.simulated(seed, None))
    other = next(neighbours(clients, tp.Adjacency.LABEL, questions[0].client))
    target = Target("fields", tuple(questions), protocol.guarantee, tp.Adjacency.LABEL)
    seeds = np.random.SeedSequence(seed).generate_state(4, np.uint64)
    tries = LABEL_TRIES * sizes.trials
    first, second, *guessed = (
        target.observed(data, doubles.simulated, int(state), tries)
        for data, state in zip((clients, other) * 2, seeds, strict=True)
    )
    attack = "one label, from the replies that the server receives"
    bare, moved = (observe(questions, data, doubles.BareCoins()) for data in (clients, other))
    exact = tries * (1 if np.array_equal(bare, moved) else 2)
    right = np.array([exact, _separated(first, second, *guessed)])
    yield from _pair(attack, "replies without noise", protocol, right, 2 * tries)


def _separated(first: Floats, second: Floats, *guessed: Floats) -> int:
    """Number of draws that a discriminant assigns correctly, after it learnt from other draws."""
    middle, apart = (first.mean(axis=0) + second.mean(axis=0)) / 2, second.mean(0) - first.mean(0)
    variance = (first.var(axis=0) + second.var(axis=0)) / 2
    weights = np.divide(apart, variance, out=np.zeros_like(apart), where=variance > 0)
    weights = np.where((variance == 0) & (apart != 0), apart / MIN_VARIANCE, weights)
    first_scores, second_scores = ((rows - middle) @ weights for rows in guessed)
    return int(np.sum(first_scores < 0) + np.sum(second_scores > 0))


def whole_curve(protocol: tp.Protocol, sizes: tp.AttackSizes, seed: int) -> Rows:
    """All labels, from a ROC curve and all scores (after Matthews and Harel 2013)."""
    scores, labels = audits.synthetic_records(sizes.records // 10, seed, audits.POSITIVE_FRACTION)
    clients = tp.Clients.from_arrays(scores, labels)

    def exposure(release: str, protected: bool, edges: Floats, rates: Floats) -> tp.Guesses:
        cell = np.searchsorted(edges, scores, side="right") - 1
        shares = positives_from_curve(np.bincount(cell, minlength=edges.size), *rates)
        right = int(np.sum((shares[cell] > 0.5) == labels))
        blind = float(1 - labels.mean())
        attack = "all labels, from a ROC curve"
        return tp.Guesses(attack, release, protected, right, labels.size, blind)

    curve = _curve(protocol, clients, seed)
    if curve is None:
        return
    thresholds, rates = curve
    for edges, text in ((np.unique(scores), "every score"), (thresholds, "the same thresholds")):
        yield exposure(f"exact curve at {text}", False, edges, exact_rates(clients, edges))
    yield exposure(called(protocol), private(protocol), thresholds, rates)


def few_labels(protocol: tp.Protocol, sizes: tp.AttackSizes, seed: int) -> Rows:
    """Six labels, from a ROC curve, all scores and all other labels (Stoddard et al. 2014)."""
    rng, right = np.random.default_rng(seed), np.zeros(2, dtype=np.int64)
    for _ in range(sizes.trials):
        trial_seed = int(rng.integers(2**32))
        scores, labels = audits.synthetic_records(200, trial_seed, 0.5)
        hidden = rng.choice(scores.size, UNKNOWN, replace=False)
        labels[hidden] = rng.integers(2, size=UNKNOWN)
        clients = tp.Clients.from_arrays(scores, labels)
        curve = _curve(protocol, clients, trial_seed)
        if curve is None:
            return
        edges, noisy = curve
        candidates = candidate_curves(clients, edges, hidden)
        for index, seen in enumerate((exact_rates(clients, edges), noisy)):
            guess = all_labellings(UNKNOWN)[nearest(seen, candidates)]
            right[index] += int(np.sum(guess == labels[hidden]))
    attack = "six labels, from a ROC curve and all others"
    tries = sizes.trials * UNKNOWN
    yield from _pair(attack, "exact curve", protocol, right, tries, sizes.trials)


def one_more_record(protocol: tp.Protocol, sizes: tp.AttackSizes, seed: int) -> Rows:
    """The label of the highest-scored record, from the AUC without it and the AUC with it.

    The attack tries both labels on each of a few data sets, with many draws of the noise.
    """
    rng, right = np.random.default_rng(seed), np.zeros(2, dtype=np.int64)
    several = 1 if protocol.lone_records else 20
    times = sizes.trials // (2 * DATA_SETS)
    for _ in range(DATA_SETS):
        scores, labels = audits.synthetic_records(40, int(rng.integers(2**32)), 0.5)
        ids = np.arange(scores.size + 1) // several
        before = tp.Clients.from_arrays(scores, labels, ids[:-1])
        for label in (0, 1):
            after = tp.Clients.from_arrays(np.append(scores, 1.0), np.append(labels, label), ids)
            pair, seeds = (before, after), rng.integers(2**32, size=4)
            exact = [np.full(times, protocol.exact(clients)) for clients in pair]
            noisy = [
                replicate(clients, protocol, times, int(seed)).value
                for clients, seed in zip(pair, seeds[2:], strict=True)
            ]
            for index, figures in enumerate((exact, noisy)):
                right[index] += int(np.sum(labels_from_change(*figures) == label))
    attack = "one label, from AUCs without and with its record"
    yield from _pair(attack, "exact AUCs", protocol, right, 2 * DATA_SETS * times)


def exact_rates(clients: tp.Clients, edges: Floats) -> Floats:
    """False- and true-positive rates at ascending thresholds, shape (2, T)."""
    return candidate_curves(clients, edges, np.arange(0))[0]


def called(protocol: tp.Protocol) -> str:
    """A protocol's name with its epsilon."""
    epsilon = protocol.settings.get("epsilon")
    return protocol.name if epsilon is None else f"{protocol.name}, epsilon {epsilon:g}"


def private(protocol: tp.Protocol) -> bool:
    """Whether the protocol guarantees anything."""
    return bool(np.isfinite(protocol.guarantee.epsilon))


def _counts(cells: Integers, labels: Labels, size: int) -> Integers:
    """Negatives and positives by cell, shape (2, T)."""
    return np.stack([np.bincount(cells[labels == label], minlength=size) for label in (0, 1)])


def _pair(
    attack: str,
    plain: str,
    protocol: tp.Protocol,
    right: Integers,
    tries: int,
    trials: int | None = None,
) -> Rows:
    """The same attack on the exact release and on the protocol's."""
    yield tp.Guesses(attack, plain, False, int(right[0]), tries, 0.5)
    counts, limit = (int(right[1]), tries, 0.5), protocol.guarantee
    yield tp.Guesses(attack, called(protocol), private(protocol), *counts, limit, trials)


def _curve(protocol: tp.Protocol, clients: tp.Clients, seed: int) -> tuple[Floats, Floats] | None:
    """The thresholds and rates of the ROC curve that a run publishes, if it publishes one."""
    curve = simulate(clients, protocol, tp.SimulatedNoise(seed)).server_result.roc
    if curve is None:
        return None
    return curve.thresholds, np.stack([curve.false_positive_rate, curve.true_positive_rate])
