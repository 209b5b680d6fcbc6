"""HierarchicalAUC: one bit a record about its score (Bell et al. 2020, section 4; docs, section
4b).

Labels are public, scores are private, and nobody is trusted: a record answers one yes-or-no
question about the cell of its score, by randomised response. The server counts both classes on
every level of a tree of cells, and takes the area of these counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tacit.arrays import Integers
from tacit.data.batches.ragged import Ragged
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.metrics.hadamard import hadamard_bits
from tacit.metrics.ranking import plug_in_variance
from tacit.privacy.cost import Adjacency, Cost, check_budget
from tacit.privacy.local.hadamard_response import answer_epsilon
from tacit.privacy.mechanisms.choices import UniformIntegers
from tacit.privacy.mechanisms.response import RandomisedResponse
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import (
    ClientState,
    Conversation,
    Protocol,
    Query,
    Reply,
    step,
)
from tacit.protocol.devices import DeviceReports, counts_in
from tacit.protocol.settings.declaring import EPSILON, setting
from tacit.protocol.settings.scaled import ScaledScores, scale_setting
from tacit.protocols.hierarchical.consistent_area import (
    consistent_area,
    consistent_counts,
    planned_variance,
    within_leaf_variance,
)
from tacit.protocols.hierarchical.declared import HierarchicalDeclarations
from tacit.protocols.hierarchical.level_counts import LevelCounts, ReportNoise, privacy_variance
from tacit.protocols.hierarchical.traversal import traversal_area
from tacit.protocols.shared.reports.numbers import count_records, reporting_records
from tacit.results.server_result import ServerResult

MAX_HEIGHT = 24

WASTED_DELTA = (
    "with a delta every record answers on every level, which at this epsilon brings more noise "
    "than answering on one level, drawn at random, with delta 0"
)

PLANNED_HEIGHTS = 16
"""Largest height that is chosen by default."""

PLANNED_RANGE = 0.15
"""Fraction of the positions that scores are assumed to fill when the height is chosen."""


def _cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    guarantee: Cost = query.protocol.guarantee
    return guarantee


@step(cost=_cost)
def hadamard_reports(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    """Send one bit about the cell of every record's score, flipped at random.

    A record draws a level l from 1..h and a row j from 1..2**l - 1, both independent of its
    score, and answers with the entry ``H[j, v]`` of the Walsh-Hadamard matrix, v being the score's
    cell among ``2**l`` (Bell et al. 2020, section 4 and B.2). Row 0 is left out: it is 1 in every
    cell. The answer is flipped with probability ``1 / (1 + e^epsilon)``.

    Spends epsilon for a score's replacement by any other: l and j have the same distribution under
    both scores, and given them either bit is at most ``(1-f)/f = e^epsilon`` times as likely under
    the one as under the other, f being the flip probability; other records' reports do not depend
    on the score. With a delta every level is answered, each bit flipped at
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
    levels = _levels(clients.records, height, answers, noise)
    size = clients.records * answers
    rows = 1 + noise.draw(UniformIntegers((1 << levels) - 1), (size,))
    flipped = noise.draw(RandomisedResponse(settings.answer_epsilon(height)), (size,))
    bits = hadamard_bits(rows, np.repeat(cells, answers) >> (height - levels)) ^ flipped
    reports = 4 * ((1 << levels) + rows) + 2 * np.repeat(clients.labels, answers) + bits
    if clients.count < clients.records:
        owners = np.repeat(clients.client_of_record, answers) << (height + 3)
        reports = np.sort(reports + owners, axis=-1) - owners
    return {"reports": Ragged(reports.astype(np.uint32), clients.offsets * answers)}


def _levels(records: int, height: int, answers: int, noise: NoiseSource) -> Integers:
    """The level of every answer, counted from 1: drawn, or every one in turn."""
    if answers == 1:
        return 1 + noise.draw(UniformIntegers(height), (records,))
    return np.tile(np.arange(1, height + 1, dtype=np.int64), records)


@dataclass(frozen=True)
class HierarchicalAUC(ScaledScores, HierarchicalDeclarations, Protocol):
    """The AUC with private scores, public labels and no trusted party, by one bit a record.

    Parameters
    ----------
    epsilon : the privacy budget of one evaluation, for every record.
    height : scores are counted in ``2**height`` cells of the scale; None chooses by
        ``height_for`` from the number of records, which clients then send in a round of its own.
    delta : above 0 every record answers on every level, at an epsilon each that costs
        (epsilon, delta) together; that pays only for large epsilon.
    estimator : ``"consistent"`` (all levels made consistent by weighted least squares, then the
        area of the leaves) or the paper's ``"traversal"``, from the same reports, with a larger
        error.
    scale : the map of scores to positions, of which equal cells are counted: ``"probability"``,
        ``"log-odds"``, ``"real"``, or ``"even"`` as in the paper (``metrics.score_scale``).

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> HierarchicalAUC(epsilon=1.0).guarantee
    Cost(epsilon=1.0, delta=0.0, adjacency=<Adjacency.SCORE: 'score'>, rho=None)
    """

    epsilon: float = setting(help=EPSILON)
    height: int | None = setting(default=None, help="2**height cells of scores")
    delta: float = setting(
        default=0.0,
        help="the chance that epsilon fails",
        used=lambda protocol: protocol.delta > 0,
    )
    estimator: Literal["consistent", "traversal"] = setting(
        default="consistent", help="consistent by default"
    )
    scale: str = scale_setting()

    name = "hierarchical-auc"
    planning_module = f"{__package__}.forecast"
    setting_order = ("epsilon", "estimator", "height")
    steps = (count_records, hadamard_reports)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_budget(self.epsilon)
        whole = isinstance(self.height, int | np.integer)
        if self.height is not None and not (whole and 1 <= self.height <= MAX_HEIGHT):
            raise ValueError(
                f"height must be a whole number between 1 and {MAX_HEIGHT}, got {self.height}"
            )
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must be at least 0 and below 1, got {self.delta}")

    @property
    def guarantee(self) -> Cost:
        """What one evaluation costs each client at most."""
        return Cost(self.epsilon, self.delta, Adjacency.SCORE)

    def answers(self, height: int) -> int:
        """How many bits a record sends: one, or with a delta one a level."""
        return height if self.delta > 0 else 1

    def answer_epsilon(self, height: int) -> float:
        """The epsilon of one bit."""
        return answer_epsilon(self.epsilon, self.delta, self.answers(height))

    def report_noise(self, height: int) -> ReportNoise:
        """How reports of this height are drawn."""
        gain = 1 / math.tanh(self.answer_epsilon(height) / 2)
        return ReportNoise(height, gain, sampled=self.delta == 0)

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
            return planned_variance(self.report_noise(height), records) + inside**2

        return min(range(1, PLANNED_HEIGHTS + 1), key=planned)

    def replicate_size(self, clients: Clients) -> int:
        """Numbers a replicate holds: some of every answer, and the table of reports."""
        height = self.height_for(clients.records)
        return 8 * clients.records * self.answers(height) + 2 ** (height + 5)

    def device_reports(self, devices: int) -> DeviceReports:
        """One bit a device, where there is no delta."""
        if self.delta > 0:
            return super().device_reports(devices)
        from tacit.protocols.hierarchical.devices import HadamardDevices

        return HadamardDevices(self)

    def conversation(self, clients: int) -> Conversation:
        """Reports up; before them numbers of records, where the height is to suit them."""
        height = self.height
        if height is None:
            height = self.height_for((yield from reporting_records(self, clients)))
        reply = yield Query(hadamard_reports, self, broadcast={"height": height})
        table = table_of(reply, height)
        levels = LevelCounts.of(table, self.report_noise(height))
        if not levels.classes.all():
            raise DataError(
                "the AUC is undefined without both classes, got "
                f"{levels.classes[1]:.0f} positive and {levels.classes[0]:.0f} negative records"
            )
        server_result = result_from_levels(levels, self.estimator)
        if server_result.value.ndim == 0 and self._delta_wasted(height):
            return replace(server_result, warnings=(WASTED_DELTA, *server_result.warnings))
        return server_result

    def _delta_wasted(self, height: int) -> bool:
        """Whether answering on one level only, with delta 0, would bring less noise."""
        pure = replace(self, delta=0.0).report_noise(height)
        return self.report_noise(height).record_variances[-1] > pure.record_variances[-1]


def table_of(reply: Reply, height: int) -> Integers:
    """How often each report came, shape (..., 2**(h+1), 2, 2): by node ``2**l + j``, label and bit.

    Raises
    ------
    TypeError : when the reports are not ragged.
    ValueError : for a report that no record of this height can send.

    Examples
    --------
    >>> sent = Ragged(np.array([12, 15, 15], dtype=np.uint32), np.array([0, 3]))
    >>> table_of({"reports": sent}, 1)[3].tolist()
    [[1, 0], [0, 2]]
    """
    size = 2 ** (height + 3)
    counts = counts_in(reply)
    if counts is not None:
        return counts.reshape(size // 4, 2, 2)
    reports = reply["reports"]
    if not isinstance(reports, Ragged):
        raise TypeError("reports must be ragged")
    values = reports.values
    for extreme in (values.min(), values.max()):
        if not 8 <= extreme < size:
            raise ValueError(f"reports must be from 8 to {size - 1}, got {extreme}")
    replicates = values.reshape(-1, values.shape[-1])
    cells = replicates + size * np.arange(replicates.shape[0], dtype=np.int64)[:, np.newaxis]
    drawn = np.bincount(cells.ravel(), minlength=size * replicates.shape[0])
    return drawn.reshape(*values.shape[:-1], size // 4, 2, 2)


def result_from_levels(levels: LevelCounts, estimator: str) -> ServerResult:
    """The area of two trees of counts, with its errors and warnings."""
    leaves = consistent_counts(levels)
    consistent = estimator == "consistent"
    area = consistent_area(levels, leaves) if consistent else traversal_area(levels)
    error = np.sqrt(privacy_variance(levels, area, leaves))
    cell_variance = np.sqrt(area.cell_variance + within_leaf_variance(levels, leaves))
    undefined = error > 0.5
    value = np.where(undefined, np.nan, area.value)
    negatives, positives = levels.classes
    like = np.zeros(value.shape)
    sampling = np.sqrt(np.vectorize(plug_in_variance)(area.value, positives, negatives))
    return ServerResult(
        value=value,
        privacy_error=error,
        sampling_error=np.where(undefined, np.nan, sampling),
        positives=like + positives,
        negatives=like + negatives,
        approximation_error=cell_variance,
        warnings=_warnings(float(error), float(cell_variance)) if value.ndim == 0 else (),
    )


def _warnings(error: float, cell_variance: float) -> tuple[str, ...]:
    if error > 0.5:
        return (
            "not enough signal at this epsilon for this number of records: "
            f"the predicted error of the AUC is {error:.2f}",
        )
    warnings = []
    if cell_variance > error:
        warnings.append(
            "what the cells hide outweighs the privacy noise: use a larger height, or map the "
            "scores by an agreed public function so that they spread over their scale"
        )
    return tuple(warnings)
