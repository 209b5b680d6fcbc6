"""Runs of protocols whose records each report, simulated from how many records hold what.

Reports of records with one input are independent and have one distribution, so the numbers of their
outputs are multinomial: a run draws these numbers, not single reports. A test compares the
distribution of the estimates with that of runs that draw every report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.clients import Clients
from tacit.data.ragged import Ragged
from tacit.local.hierarchical.estimate import LevelCounts
from tacit.local.hierarchical.protocol import HierarchicalAUC
from tacit.local.paired.estimate import MatchedSample, matched_area_result
from tacit.local.paired.kernels import BOUNDS, Area
from tacit.local.paired.noise import counted_positives, noisy_counts
from tacit.local.paired.protocol import PairedUStatistic
from tacit.local.turns import SLOTS
from tacit.local.two_round.protocol import TwoRoundAUC
from tacit.local.two_round.second_round import reported_numbers
from tacit.local.ustatistic.protocol import UStatistic
from tacit.privacy.bounded import GridReport, SlidingWindow
from tacit.privacy.mechanisms.response import flip_probability
from tacit.privacy.noise import SimulatedNoise
from tacit.privacy.symbols import SymbolResponse, hadamard_bits
from tacit.protocol.conversation import Protocol
from tacit.results.figure import Figure
from tacit.results.server_result import ServerResult
from tacit.running.evaluating import repeat_results
from tacit.running.units import taken_by

Generator = np.random.Generator


def simulated_results(
    clients: Clients, protocol: Protocol, times: int, seed: int | None = None
) -> ServerResult:
    """As ``repeat_results``, in less time where reports are counted.

    The estimates have the same distribution; a seed gives other draws.

    Examples
    --------
    >>> import tacit
    >>> scores, labels = tacit.binormal_scores(500, 1500, 0.8, seed=0)
    >>> clients = tacit.Clients.split(scores, labels, clients=10, seed=0)
    >>> simulated_results(clients, UStatistic("auc", 5.0), times=100, seed=1).value.shape
    (100,)
    """
    taken, scaled = taken_by(protocol, clients)
    simulate = _simulation_of(taken)
    if simulate is None:
        return repeat_results(clients, protocol, times, seed)
    results = simulate(scaled, taken, times, np.random.default_rng(seed))
    return results.within(Figure.of(taken.figure).limits)


def _simulation_of(
    protocol: Protocol,
) -> Callable[[Clients, Any, int, Generator], ServerResult] | None:
    """How runs of a protocol are drawn from numbers of records; None for record by record."""
    if isinstance(protocol, UStatistic):
        return symbol_runs
    if isinstance(protocol, HierarchicalAUC) and protocol.delta == 0:
        return bit_runs
    if isinstance(protocol, TwoRoundAUC):
        return two_round_runs
    if isinstance(protocol, PairedUStatistic) and isinstance(protocol.kernel, Area):
        # values that are flipped; those with noise added are not 0 and 1
        return matched_runs if protocol.pair_noise(1.0).responds else None
    return None


def symbol_runs(clients: Clients, protocol: UStatistic, times: int, rng: Generator) -> ServerResult:
    """Runs of ``UStatistic``: the numbers of all records' symbols."""
    bins = protocol.bins_for(clients.records)
    space = protocol.space(bins)
    held = np.bincount(space.of_records(clients), minlength=space.symbols)
    response = SymbolResponse(space.symbols, protocol.epsilon)
    counts = np.stack([response.simulated_counts(held, rng) for _ in range(times)])
    return protocol.result_of(counts, bins)


def bit_runs(
    clients: Clients, protocol: HierarchicalAUC, times: int, rng: Generator
) -> ServerResult:
    """Runs of ``HierarchicalAUC``: of every class and cell how many records answered each row.

    A record's level and row are independent of its score, and the answer to a row is a function of
    the cell. So the numbers of records by row are multinomial, and those of flips binomial.
    """
    height = protocol.height_for(clients.records)
    cells = np.minimum(
        (protocol.on_scale(clients).scores * 2**height).astype(np.int64), 2**height - 1
    )
    held = np.bincount(cells + (clients.labels.astype(np.int64) << height), minlength=2 << height)
    nodes, chances, negative = answered_rows(height)
    flip = flip_probability(protocol.epsilon)
    tables = np.zeros((times, 2 << height, 2, 2), dtype=np.int64)
    for table in tables:
        asked = rng.multinomial(held, chances).reshape(2, 2**height, nodes.size)
        totals, minus = asked.sum(axis=1), np.sum(asked * negative, axis=1)
        kept = rng.binomial(minus, 1 - flip) + rng.binomial(totals - minus, flip)
        table[nodes] = np.moveaxis(np.stack([totals - kept, kept], axis=-1), 0, 1)
    levels = LevelCounts.of(tables, protocol.report_noise(height))
    return protocol.result_of(levels)


def answered_rows(height: int) -> tuple[Integers, Floats, NDArray[np.bool_]]:
    """The nodes ``2**l + j`` of all rows but the constant ones, shape (n,), and their chances.

    Also whether a cell's unflipped answer to each is -1, shape (2**height, n).
    """
    rows = [np.arange(1, 1 << level) for level in range(1, height + 1)]
    levels = np.repeat(np.arange(1, height + 1), [each.size for each in rows])
    row, cells = np.concatenate(rows), np.arange(1 << height)[:, np.newaxis]
    bits = hadamard_bits(row, cells >> (height - levels))
    return (1 << levels) + row, 1 / (height * ((1 << levels) - 1.0)), bits.astype(bool)


def matched_runs(
    clients: Clients, protocol: PairedUStatistic, times: int, rng: Generator
) -> ServerResult:
    """Runs of ``PairedUStatistic`` for the AUC with flipped values: numbers of pairs won.

    Only the mean of the flipped values enters the estimate, and it is a number of ones: binomial
    given how many pairs the positive wins.
    """
    matchings, half = protocol.pairs_a_record, clients.records // 2
    count_epsilon = protocol.class_epsilon(clients.sizes)
    counts = clients.ragged(clients.labels.astype(np.int64)).sum()
    noise = SimulatedNoise(int(rng.integers(2**63)), replicates=times)
    sent = noisy_counts(counts, clients.sizes, count_epsilon, noise)
    positives, variance = counted_positives(sent, clients.sizes, count_epsilon)
    positive = clients.labels == 1
    scores = clients.scores[positive], clients.scores[~positive]
    won = np.array([won_pairs(*scores, matchings, rng) for _ in range(times)])
    pair_noise = protocol.pair_noise(protocol.epsilon - count_epsilon)
    ones = rng.binomial(won, 1 - pair_noise.response.probability)
    ones = ones + rng.binomial(matchings * half - won, pair_noise.response.probability)
    means = pair_noise.debiased(ones / (matchings * half))
    sample = MatchedSample(
        protocol.function,
        # every value is the mean of all
        np.broadcast_to(means[:, np.newaxis, np.newaxis], (times, matchings, half)),
        np.broadcast_to(np.int64(0), (times, matchings, clients.records)),
        pair_noise.variance(0.0),
        *map(float, BOUNDS[protocol.function]),
    )
    return matched_area_result(sample, positives, float(np.sqrt(variance)))


def won_pairs(positives: Floats, negatives: Floats, matchings: int, rng: Generator) -> int:
    """How many pairs of so many random matchings of these scores the positive wins.

    Of tied scores the first of the pair counts as the higher.
    """
    won = 0
    for _ in range(matchings):
        leading, trailing = mixed_pairs(positives.size, negatives.size, rng)
        drawn = rng.choice(positives, leading + trailing, replace=False)
        # the positives are in random order, so which negatives they meet is random
        met = rng.choice(negatives, leading + trailing, replace=False, shuffle=False)
        won += np.count_nonzero(drawn[:leading] >= met[:leading])
        won += np.count_nonzero(drawn[leading:] > met[leading:])
    return won


def mixed_pairs(positives: int, negatives: int, rng: Generator) -> tuple[int, int]:
    """How many pairs of a random matching hold both classes: positive first, and negative first.

    Of all seats the first ones of pairs are drawn, then the second ones; an odd record stays out.
    """
    half = (positives + negatives) // 2
    first = rng.hypergeometric(positives, negatives, half)
    second = rng.hypergeometric(positives - first, negatives - (half - first), half)
    both = rng.hypergeometric(first, half - first, second)
    return int(first - both), int(second - both)


def two_round_runs(
    clients: Clients, protocol: TwoRoundAUC, times: int, rng: Generator
) -> ServerResult:
    """Runs of ``TwoRoundAUC``: its conversation, with replies whose reports are drawn in numbers.

    Turns are drawn record by record. Records are sorted by class and score, which makes it fast to
    round up their numbers.
    """
    order = np.lexsort((clients.scores, clients.labels))
    scaled = protocol.on_scale(clients)
    records = RecordsInOrder(
        scaled.scores[order], scaled.labels[order], protocol.first_round.inputs_of(scaled)[order]
    )
    return _stacked([_two_rounds(protocol, records, rng) for _ in range(times)])


@dataclass(frozen=True, eq=False)
class RecordsInOrder:
    """Records sorted by class and score.

    Parameters
    ----------
    positions : of their scores on the protocol's scale, shape (M,).
    labels : 1 for positives, shape (M,).
    inputs : of the first round's window, shape (M,).
    """

    positions: Floats
    labels: NDArray[np.int8]
    inputs: Integers


def _two_rounds(protocol: TwoRoundAUC, records: RecordsInOrder, rng: Generator) -> ServerResult:
    labels = records.labels
    turns = rng.integers(0, SLOTS, labels.size, dtype=np.uint8)
    reply = {"turns": _of_one_client(turns)}
    if protocol.labels == "public":
        reply["labels"] = _of_one_client(labels)
    conversation = protocol.conversation(1)
    next(conversation)
    query = conversation.send(reply)
    early = turns < query.broadcast["first"]
    window = protocol.first_round.window
    reports = class_reports(window, records.inputs[early], labels[early], rng)
    query = conversation.send({"reports": _of_one_client(reports)})
    borders, grid, width = (query.broadcast[name] for name in ("knots", "grid", "width"))
    report = GridReport(protocol.epsilon, grid, int(width))
    numbers = reported_numbers(records.positions[~early], labels[~early], borders)
    reports = class_reports(report.window, report.rounded(numbers, rng), labels[~early], rng)
    try:
        conversation.send({"reports": _of_one_client(reports)})
    except StopIteration as end:
        result: ServerResult = end.value
    return result


def class_reports(
    window: SlidingWindow, inputs: Integers, labels: NDArray[np.int8], rng: Generator
) -> Integers:
    """Reports of records sorted by class: in each class in ascending order, shape (M,).

    The server counts the reports of a class, so their order does not matter.
    """
    outputs = np.arange(window.outputs)
    held = (np.bincount(inputs[labels == kind], minlength=window.inputs) for kind in (0, 1))
    return np.concatenate([np.repeat(outputs, window.simulated_counts(each, rng)) for each in held])


def _of_one_client(values: NDArray[Any]) -> Ragged[Any]:
    return Ragged(values, np.array([0, values.size]))


def _stacked(results: list[ServerResult]) -> ServerResult:
    """Single runs with a leading axis."""

    def stacked(name: str) -> Floats:
        return np.array([getattr(result, name) for result in results], dtype=np.float64)

    return ServerResult(
        value=stacked("value"),
        privacy_error=stacked("privacy_error"),
        sampling_error=stacked("sampling_error"),
        positives=stacked("positives"),
        negatives=stacked("negatives"),
        positives_error=stacked("positives_error"),
        approximation_error=stacked("approximation_error"),
    )
