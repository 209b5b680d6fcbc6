"""The tables of Sun et al. 2022a: FedAUC's standard deviations, and what it is compared with.

Values that the paper computes with TensorFlow are left out; its exact AUCs are scikit-learn's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import Clients
from tacit.metrics.ranking import doubled_mid_ranks
from tacit.privacy.mechanisms.laplace import Laplace
from tacit.privacy.noise import SimulatedNoise
from tacit.privacy.symbols import flip_labels
from tacit.protocols.fedauc.protocol import FedAUC
from tacit.protocols.published.fedauc import Fixed, PublishedFedAUC
from tacit.protocols.published.noisy_scores import NoisyScores
from tacit_studies.measuring import (
    IID,
    NON_IID,
    Bench,
    Job,
    Setting,
    Split,
    centre,
    standard_deviation,
)
from tacit_studies.references import fedauc as paper
from tacit_studies.rows import Row

FEW_REPEATS = 10
"""Maximum number of repetitions for Table 9, which prints means and no deviation."""

GROUP_NUMBERS = 2**22
"""Approximate number of random numbers in one group of repetitions."""


@dataclass(frozen=True)
class Method:
    """A row of tables 1, 2 and 7: how records are dealt out, and what the clients do."""

    by: Setting
    protocol: Callable[[float], PublishedFedAUC]


GLOBAL_SHARES = Fixed(0.5, "global")
GLOBAL = partial(PublishedFedAUC, allocation=GLOBAL_SHARES)
LOCAL = partial(PublishedFedAUC, allocation=Fixed(0.5, "local"))
ADAPTIVE = partial(PublishedFedAUC, allocation="adaptive")

METHODS = {
    "GlobalLaplace": Method(IID, GLOBAL),
    "LocalLaplace (IID)": Method(IID, LOCAL),
    "LocalLaplace (Non-IID)": Method(NON_IID, LOCAL),
    "adaptive (IID)": Method(IID, ADAPTIVE),
    "adaptive (Non-IID)": Method(NON_IID, ADAPTIVE),
}


def deviations(table: str, printed: dict[float, paper.Stds], clients: Sequence[int]) -> list[Job]:
    """Tables 1 and 7: the standard deviation of every method, by epsilon and number of clients."""
    jobs = []
    for epsilon, methods in printed.items():
        jobs.append(Job(partial(_response_deviation, table, epsilon, methods["RR"][0])))
        for name in METHODS:
            for count, value in zip(clients, methods[name], strict=True):
                if value is not None:
                    work = partial(_deviation, table, epsilon, name, count, value)
                    jobs.append(Job(work, records=count))
    return jobs


def _response_deviation(
    table: str, epsilon: float, printed: float | None, bench: Bench
) -> list[Row]:
    """Randomised response, which does not depend on the clients."""
    estimates = bench.estimates(FedAUC(epsilon, trust="local"), Split())
    return [Row(table, f"eps={epsilon:g} RR", "any K", printed, standard_deviation(estimates))]


def _deviation(
    table: str, epsilon: float, name: str, clients: int, printed: float, bench: Bench
) -> list[Row]:
    method = METHODS[name]
    estimates = bench.estimates(method.protocol(epsilon), Split(clients, method.by))
    return [
        Row(
            table, f"eps={epsilon:g} {name}", f"K={clients}", printed, standard_deviation(estimates)
        )
    ]


def deviations_with_class_sizes(table: str) -> list[Job]:
    """Table 2: the same with exact P and N, where only the rank sum is noisy.

    The paper's Equations 8 and 9 spend all of epsilon on the rank sum: for one record a client,
    ``sqrt(2 K) (M - 1) / (P N epsilon)`` is 1.10e-2 at epsilon 1, which is what the table prints.
    """
    return [
        Job(partial(_rank_sum_deviation, table, epsilon, name, count, printed), records=count)
        for epsilon, methods in paper.TABLE_2.items()
        for name, values in methods.items()
        for count, printed in zip(paper.TABLE_2_CLIENTS, values, strict=True)
    ]


def _rank_sum_deviation(
    table: str, epsilon: float, name: str, clients: int, printed: float | None, bench: Bench
) -> list[Row]:
    method = METHODS[name]
    split = Split(clients, method.by)
    dealt = bench.clients(split)
    sensitivity = rank_sensitivity(dealt, method.protocol(epsilon).allocation == GLOBAL_SHARES)
    seed = bench.seed(table, epsilon, name, split)
    noise = np.concatenate(list(_noise_totals(sensitivity / epsilon, bench.repeats, seed)))
    error = noise / (dealt.positives * (dealt.records - dealt.positives))
    return [
        Row(table, f"eps={epsilon:g} {name}", f"K={clients}", printed, standard_deviation(error))
    ]


def rank_sensitivity(clients: Clients, of_all: bool) -> NDArray[np.float64]:
    """Every client's largest rank, or M - 1 for all of them."""
    if of_all:
        return np.full(clients.count, clients.records - 1.0)
    return clients.ragged(doubled_mid_ranks(clients.scores)).maximum() / 2


def _noise_totals(
    scale: NDArray[np.float64], times: int, seed: int
) -> Iterator[NDArray[np.float64]]:
    """The sum over clients of Laplace noise, for every repetition, group by group."""
    for group, group_seed in _groups(times, scale.size, seed):
        drawn = SimulatedNoise(group_seed, replicates=group).draw(Laplace(scale, 1.0), scale.shape)
        yield drawn.sum(axis=-1)


def _groups(times: int, numbers: int, seed: int) -> Iterator[tuple[int, int]]:
    """Sizes of groups of repetitions that hold ``numbers`` each, and a seed for every group."""
    most = max(GROUP_NUMBERS // numbers, 1)
    seeds = np.random.SeedSequence(seed).generate_state(-(-times // most), np.uint64)
    for index, group_seed in enumerate(seeds):
        yield min(most, times - index * most), int(group_seed)


def without_debiasing(table: str) -> list[Job]:
    """Table 3: the AUC of flipped labels, not debiased."""
    noisy = [
        Job(partial(_without_debiasing, table, epsilon, epoch, printed))
        for epsilon, epochs in paper.TABLE_3.items()
        for epoch, printed in enumerate(epochs)
    ]
    return noisy + _exact_jobs(table, paper.SMALL_AUC, first_epoch=1)


def _without_debiasing(
    table: str, epsilon: float, epoch: int, printed: float, bench: Bench
) -> list[Row]:
    scores, labels = bench.scored(epoch)
    seed = bench.seed(table, epsilon, epoch)
    areas = flipped_aucs(doubled_mid_ranks(scores), labels, epsilon, bench.repeats, seed)
    return [Row(table, f"eps={epsilon:g}", f"epoch {epoch + 1}", printed, centre(areas))]


def flipped_aucs(
    doubled_ranks: NDArray[np.int64],
    labels: NDArray[np.int8],
    epsilon: float,
    times: int,
    seed: int,
) -> NDArray[np.float64]:
    """The AUC of labels flipped by randomised response, not debiased, shape (times,)."""
    parts = []
    for group, group_seed in _groups(times, labels.size, seed):
        flipped = flip_labels(labels, epsilon, SimulatedNoise(group_seed, replicates=group))
        positives = flipped.sum(axis=-1, dtype=np.int64)
        sums = np.array([int(doubled_ranks[row == 1].sum()) for row in flipped])
        pairs = positives * (labels.size - positives)
        parts.append((sums - positives * (positives - 1)) / (2.0 * pairs))
    return np.concatenate(parts)


def response_estimates(
    table: str, printed: dict[float, tuple[paper.Pair, ...]], large: bool
) -> list[Job]:
    """Tables 5 and 6: mean and deviation of randomised response, by epsilon and epoch."""
    exact = paper.LARGE_AUC if large else paper.SMALL_AUC
    private = [
        Job(partial(_response_estimate, table, epsilon, Split(epoch=epoch, large=large), pair))
        for epsilon, epochs in printed.items()
        for epoch, pair in enumerate(epochs)
    ]
    return private + _exact_jobs(table, exact, first_epoch=1, large=large)


def _response_estimate(
    table: str, epsilon: float, split: Split, printed: paper.Pair, bench: Bench
) -> list[Row]:
    estimates = bench.estimates(FedAUC(epsilon, trust="local"), split)
    column = f"epoch {split.epoch + 1}"
    return [
        Row(table, f"eps={epsilon:g} mean", column, printed[0], centre(estimates)),
        Row(table, f"eps={epsilon:g} std", column, printed[1], standard_deviation(estimates)),
    ]


def _exact_jobs(
    table: str, printed: tuple[float, ...], first_epoch: int, large: bool = False
) -> list[Job]:
    """The exact AUC beside scikit-learn's, which agree because the scores were shifted so."""
    return [
        Job(partial(_exact, table, Split(epoch=epoch, large=large), first_epoch, area))
        for epoch, area in enumerate(printed)
    ]


def _exact(table: str, split: Split, first_epoch: int, printed: float, bench: Bench) -> list[Row]:
    column = f"epoch {split.epoch + first_epoch}"
    return [Row(table, "exact", column, printed, bench.exact(split))]


def label_guessing(table: str) -> list[Job]:
    """Table 8: calling the records of the highest scores positive."""
    return [
        Job(partial(_label_guessing, table, top, printed), records=top)
        for top, printed in paper.TABLE_8.items()
    ]


def _label_guessing(
    table: str, top: int, printed: tuple[int, float, float], bench: Bench
) -> list[Row]:
    scores, labels = bench.scored()
    highest = np.argpartition(scores, scores.size - top)[scores.size - top :]
    hits = int(labels[highest].sum())
    measured = (hits, hits / top, hits / int(labels.sum()))
    columns = ("positives", "precision", "recall")
    return [
        Row(table, f"top {top}", column, value, float(number))
        for column, value, number in zip(columns, printed, measured, strict=True)
    ]


def noise_on_scores(table: str) -> list[Job]:
    """Table 9: the AUC of scores with Laplace noise, by epsilon and epoch."""
    noisy = [
        Job(partial(_noise_on_scores, table, epsilon, epoch, printed))
        for epsilon, epochs in paper.TABLE_9.items()
        for epoch, printed in enumerate(epochs)
    ]
    return _exact_jobs(table, paper.TABLE_9_EXACT, first_epoch=0) + noisy


def _noise_on_scores(
    table: str, epsilon: float, epoch: int, printed: float, bench: Bench
) -> list[Row]:
    repeats = min(bench.repeats, FEW_REPEATS)
    estimates = bench.estimates(NoisyScores(epsilon), Split(epoch=epoch), repeats)
    return [Row(table, f"eps={epsilon:g}", f"epoch {epoch}", printed, centre(estimates))]
