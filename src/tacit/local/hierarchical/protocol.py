"""HierarchicalAUC: one bit a record about its score (Bell et al. 2020, section 4; docs, section
4b).

Labels are public, scores are private, and no one is trusted: a record answers one yes-or-no
question about the cell of its score, by randomised response. The server counts both classes on
every level of a tree of cells, and takes the area of these counts.

Predictions for HierarchicalAUC, whose records report one bit each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Flags, Floats, Integers
from tacit.data.errors import check_classes
from tacit.local import turns
from tacit.local.hierarchical import estimate
from tacit.metrics import trees
from tacit.privacy.cost import check_fraction
from tacit.privacy.mechanisms.response import Bits, UniformIntegers, flip_probability
from tacit.privacy.symbols import answer_epsilon, hadamard_bits, walsh_hadamard
from tacit.protocol import audits, devices, forecast
from tacit.protocol.declared import LOCAL, LOCAL_PAGE, NO_REPORTS, ReportDeclarations

MAX_HEIGHT = 24

WASTED_DELTA = (
    "with a delta every record answers on every level, which at this epsilon brings more noise "
    "than answering on one level, drawn at random, with delta 0"
)

PLANNED_HEIGHTS = 16
"""Largest height that is chosen by default."""

PLANNED_RANGE = 0.15
"""Fraction of the positions that scores are assumed to fill when the height is chosen."""


ONE_ANSWER = tp.ThreatModel(
    LOCAL,
    "Exactly: of every record its label, and which question it was asked. With noise: one "
    "answer, yes or no, or one on every level where a delta was given.",
    "Nothing.",
    "Labels: the server sees every one of them. Numbers of records.",
    LOCAL_PAGE,
)


@dataclass(frozen=True)
class OneLevel(tp.Choice):
    """A record answers on one level, drawn at random."""

    word = "one"


@dataclass(frozen=True)
class EveryLevel(tp.Choice):
    """A record answers on every level, at an epsilon each that costs (epsilon, delta) together.

    That pays only for a large epsilon.

    Parameters
    ----------
    delta : the probability that epsilon fails, above 0 and below 1.
    """

    delta: float

    word = "every"

    def __post_init__(self) -> None:
        check_fraction("delta", self.delta)


@tp.step(cost=lambda clients, query, state: query.protocol.guarantee)
def hadamard_reports(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Send one bit about the cell of every record's score, flipped at random.

    A record draws a level l from 1..h and a row j from 1..2**l - 1, both independent of its
    score, and answers with the entry ``H[j, v]`` of the Walsh-Hadamard matrix, v being the score's
    cell among ``2**l`` (Bell et al. 2020, section 4 and B.2). Row 0 is left out: it is 1 in every
    cell. The answer is flipped with probability ``1 / (1 + e^epsilon)``.

    Spends epsilon for a score's replacement by any other: l and j have the same distribution under
    both scores, and given them either bit is at most ``(1-f)/f = e^epsilon`` times as likely under
    the one as under the other, f being the flip probability; other records' reports do not depend
    on the score. Under ``EveryLevel`` every level is answered, each bit flipped at
    ``settings.answer_epsilon(h)``: together they cost (epsilon, delta), by ``composed_delta``.

    A client sends its reports in ascending order, as those of one record already are. Their order
    is then a function of the reports alone, even where the client's records are sorted by score.
    The server learns each record's label, level, row and flipped bit, and nothing else about its
    score.

    A report is ``4 (2**l + j) + 2 label + bit``, the bit set where the answer is -1.
    """
    settings: HierarchicalAUC = query.protocol
    height: int = query.broadcast["height"]
    if not 1 <= height <= MAX_HEIGHT:
        raise ValueError(f"height must be from 1 to {MAX_HEIGHT}, got {height}")
    positions = settings.on_scale(clients).scores
    cells = np.minimum((positions * 2**height).astype(np.int64), 2**height - 1)
    answers = settings.answers(height)
    levels = np.tile(np.arange(1, height + 1, dtype=np.int64), clients.records)
    if answers == 1:
        levels = 1 + noise.draw(UniformIntegers(height), (clients.records,))
    size = clients.records * answers
    rows = 1 + noise.draw(UniformIntegers((1 << levels) - 1), (size,))
    flipped = noise.draw(tp.RandomisedResponse(settings.answer_epsilon(height)), (size,))
    bits = hadamard_bits(rows, np.repeat(cells, answers) >> (height - levels)) ^ flipped
    reports = 4 * ((1 << levels) + rows) + 2 * np.repeat(clients.labels, answers) + bits
    if clients.count < clients.records:
        owners = np.repeat(clients.client_of_record, answers) << (height + 3)
        reports = np.sort(reports + owners, axis=-1) - owners
    return {"reports": tp.Ragged(reports.astype(np.uint32), clients.offsets * answers)}


@dataclass(frozen=True)
class HierarchicalAUC(tp.ScaledScores, ReportDeclarations, tp.Protocol):
    """The AUC with private scores, public labels and no trusted party, by one bit a record.

    Parameters
    ----------
    epsilon : the privacy budget of one evaluation, for every record.
    height : scores are counted in ``2**height`` cells of the scale; None chooses by
        ``height_for`` from the number of records, which clients then send in a round of its own.
    levels : ``OneLevel()`` (a record answers on one level, drawn at random), ``EveryLevel(delta)``
        (on each, which costs (epsilon, delta)), or their words.
    scale : the map of scores to positions, of which equal cells are counted: ``"probability"``,
        ``"log-odds"``, ``"real"``, or ``"even"`` as in the paper (``metrics.cells.score_scale``).

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> HierarchicalAUC(epsilon=1.0).guarantee
    Cost(epsilon=1.0, delta=0.0, adjacency=<Adjacency.SCORE: 'score'>, rho=None)
    """

    epsilon: float = tp.setting(help=tp.EPSILON)
    height: int | None = tp.setting(default=None, help="2**height cells of scores")
    levels: OneLevel | EveryLevel | str = tp.setting(
        default=OneLevel(), help="on which levels of the tree a record answers; one by default"
    )
    scale: str = tp.scale_setting()

    name = "hierarchical-auc"
    planning_module = __name__
    planned = tuple({"height": height} for height in (3, 4, 5, 6, 7, 8))
    trusts: ClassVar[tuple[tp.Trust, ...]] = (tp.Trust.LOCAL,)
    given_up = "every record's label is shown to the server"
    steps = (turns.count_records, hadamard_reports)
    threats = staticmethod(lambda settings: ONE_ANSWER)
    audit_settings = ({}, {"height": 2, "levels": str(EveryLevel(audits.DELTA))})
    law_settings: ClassVar[audits.Configurations] = {
        "local-hierarchical": {"epsilon": 6.0, "height": 2},
        "local-hierarchical-delta": {"epsilon": 8.0, "height": 2, "levels": EveryLevel(0.01)},
    }
    law_traits = audits.LawTraits(
        inexact="answers are debiased all the same", unmeasured_loss=NO_REPORTS
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = isinstance(self.height, int | np.integer)
        if self.height is not None and not (whole and 1 <= self.height <= MAX_HEIGHT):
            raise ValueError(
                f"height must be a whole number between 1 and {MAX_HEIGHT}, got {self.height}"
            )

    @property
    def delta(self) -> float:
        """The probability that epsilon fails."""
        return self.levels.delta if isinstance(self.levels, EveryLevel) else 0.0

    @property
    def guarantee(self) -> tp.Cost:
        """What one evaluation costs each client at most."""
        return tp.Cost(self.epsilon, self.delta, tp.Adjacency.SCORE)

    def answers(self, height: int) -> int:
        """How many bits a record sends."""
        return height if isinstance(self.levels, EveryLevel) else 1

    def answer_epsilon(self, height: int) -> float:
        """The epsilon of one bit."""
        return answer_epsilon(self.epsilon, self.delta, self.answers(height))

    def report_noise(self, height: int) -> estimate.ReportNoise:
        """How reports of this height are drawn."""
        gain = 1 / math.tanh(self.answer_epsilon(height) / 2)
        return estimate.ReportNoise(height, gain, sampled=isinstance(self.levels, OneLevel))

    def height_for(self, records: int) -> int:
        """The height of the settings, or the one with the least planned error.

        The plan is from public figures: the consistent estimator's noise for so many records, half
        of them positive, and for B cells in use the error ``1 / (3 B**2)`` of counting pairs
        within a cell one half (docs, section 5), where scores fill 0.15 of the scale.

        Examples
        --------
        >>> [HierarchicalAUC(epsilon).height_for(458407) for epsilon in (0.5, 1.0, 5.0)]
        [6, 7, 7]
        """
        if self.height is not None:
            return self.height

        def planned(height: int) -> float:
            inside = 1 / (3 * (PLANNED_RANGE * 2**height) ** 2)
            return estimate.planned_variance(self.report_noise(height), records) + inside**2

        return min(range(1, PLANNED_HEIGHTS + 1), key=planned)

    def replicate_size(self, clients: tp.Clients) -> int:
        """Numbers a replicate holds: some of every answer, and the table of reports."""
        height = self.height_for(clients.records)
        return 8 * clients.records * self.answers(height) + 2 ** (height + 5)

    def device_reports(self, devices: int) -> devices.DeviceReports:
        """One bit a device, which answers on one level."""
        if isinstance(self.levels, EveryLevel):
            return super().device_reports(devices)
        return HadamardDevices(self)

    def conversation(self, clients: int) -> tp.Conversation:
        """Reports up; before them numbers of records, where the height is to suit them."""
        height = self.height
        if height is None:
            height = self.height_for((yield from turns.reporting_records(self, clients)))
        reply = yield tp.Query(hadamard_reports, self, broadcast={"height": height})
        table = estimate.table_of(reply, height)
        levels = estimate.LevelCounts.of(table, self.report_noise(height))
        negatives, positives = levels.classes.astype(np.int64)
        check_classes(positives, negatives)
        server_result = self.result_of(levels)
        # answering on one level only, with delta 0, may bring less noise
        pure = replace(self, levels=OneLevel()).report_noise(height).record_variances[-1]
        wasted = self.report_noise(height).record_variances[-1] > pure
        if server_result.value.ndim == 0 and wasted:
            return replace(server_result, warnings=(WASTED_DELTA, *server_result.warnings))
        return server_result

    def result_of(self, levels: estimate.LevelCounts) -> tp.ServerResult:
        """The area of noisy counts, with its errors."""
        leaves = estimate.consistent_counts(levels)
        return estimate.result_from_levels(levels, leaves, self.area(levels, leaves))

    def area(self, levels: estimate.LevelCounts, leaves: Floats) -> estimate.LevelArea:
        """The area of the consistent leaves."""
        return estimate.consistent_area(levels, leaves)


def hierarchical_forecast(
    protocol: HierarchicalAUC, scenario: tp.Scenario, shape: tp.Shape
) -> forecast.Forecast:
    """The variance of the consistent area at the expected counts (docs, section 4b).

    The server takes the noise of its influences out of their squares; expected influences have
    none, so ``product`` enters once, as the second order.

    Examples
    --------
    >>> scenario = tp.Scenario(40_000, 4_000, 40_000, 1.0)
    >>> forecast = hierarchical_forecast(HierarchicalAUC(1.0, 5), scenario, tp.Shape(0.8))
    >>> round(forecast.standard_error, 3)
    0.038
    """
    height = protocol.height_for(round(scenario.records))
    noise = protocol.report_noise(height)
    positives, negatives = scenario.counts(shape, 1 << height, protocol.scale)
    classes = np.array([scenario.negatives, scenario.positives], dtype=np.float64)
    reports = np.repeat(classes[:, np.newaxis], height, axis=-1)
    counts = trees.levels_of(np.stack([negatives, positives]))
    levels = estimate.LevelCounts(
        classes, counts, reports / (height if noise.sampled else 1), noise
    )
    leaves = estimate.consistent_counts(levels)
    area = estimate.consistent_area(levels, leaves)
    alone = replace(area, product=np.zeros_like(area.product))
    first = float(estimate.privacy_variance(levels, alone, leaves))
    variance = first + float(area.product) + forecast.placement((positives, negatives))
    return forecast.Forecast(math.sqrt(variance), float(area.value) - shape.auc)


PLANNING = forecast.Planning.of_figure(None, hierarchical_forecast)


class HadamardDevices(devices.NumberReports):
    """One number a device: level, row, label and bit.

    Parameters
    ----------
    protocol : a ``HierarchicalAUC`` of one level.
    """

    number_bytes = 4

    def instructions(self, query: tp.Query) -> devices.Instructions:
        """The height, and how many of ``2**64`` words flip the bit."""
        return {
            "kind": "hadamard",
            "scale": devices.scale_entry(self._protocol.scale),
            "height": int(query.broadcast["height"]),
            "set_words": str(Bits(flip_probability(self._protocol.epsilon)).threshold),
        }

    def numbers(self, query: tp.Query) -> int:
        """Of every level, row, label and bit."""
        return 1 << (int(query.broadcast["height"]) + 3)

    def refused(self, query: tp.Query, payloads: devices.Payloads) -> Flags:
        """Numbers outside the levels, and numbers about row 0, about which no record is asked."""
        reports = devices.from_bytes(payloads).astype(np.int64)
        nodes = reports >> 2
        outside = (reports < 8) | (reports >= self.numbers(query))
        # a power of two is row 0 of its level
        return np.asarray(outside | (nodes & (nodes - 1) == 0))

    def influences(self, query: tp.Query, counts: Sequence[Integers]) -> Floats:
        """By the area's influences of a level's counts, in the rows that are asked.

        A report of a class with m of its n records on a level of d nodes adds ``(n / m) gain
        (d - 1) / d H[j]`` or less that to the level's counts (``LevelCounts.of``); its influence on
        the area is that times row j of the transformed influences of these counts.
        """
        height = int(query.broadcast["height"])
        table = estimate.table_of(devices.CountedReports(counts[0]), height)
        noise = self._protocol.report_noise(height)
        levels = estimate.LevelCounts.of(table, noise)
        area = estimate.consistent_area(levels, estimate.consistent_counts(levels))
        largest = 0.0
        for level, influences in enumerate(area.influences):
            size = influences.shape[-1]
            rows = np.abs(walsh_hadamard(influences)[..., 1:]).max(axis=-1)
            factors = levels.classes / np.maximum(levels.reports[:, level], 1.0)
            change = rows * factors * noise.gain * (size - 1) / size
            largest = max(largest, float(change.max()))
        return np.array([-largest, largest], np.float64) * self.reported(query, counts[0])
