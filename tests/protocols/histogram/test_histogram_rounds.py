"""Rounds of a score histogram: their exact cost, servers that lie, zooms, and their errors."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit import Clients, ScoreHistogram, binormal_scores, evaluate
from tacit.counts.choices import Choices
from tacit.counts.influence import NEGATIVES, POSITIVES, SIZES
from tacit.counts.pooling import Pooled
from tacit.counts.tree_budget import PARTS
from tacit.counts.zoomed_cells import concentrated_cells, zoomed
from tacit.metrics.cells.score_scale import ScoreScale, named_scale
from tacit.privacy.mechanisms.interface import Distribution
from tacit.protocol import ClientState, Cost, NoNoise, Query, SimulatedNoise, Step, View
from tacit.protocol.releases import conducted
from tacit.protocols.histogram.steps import (
    LISTED,
    ROUNDS,
    first_round,
    second_round,
    summed_influences,
)
from tacit.protocols.shared.counting import BORDERS
from tacit.running.evaluating import exact_auc, repeat_results
from tacit.running.simulation import simulate
from tests.federations import binormal_clients
from tests.protocols.histogram.losses import CELLS, HEIGHT, hospital

PROTOCOL = ScoreHistogram("secure-sum", 1.0, HEIGHT, aim="auc", scale="even")
AIMS: tuple[Literal["report", "auc"], ...] = ("report", "auc")
RISING = np.arange(1, CELLS) / CELLS
FIELDS = {POSITIVES: RISING**2, NEGATIVES: RISING**0.5, SIZES: np.array([30.0, 50.0])}


def query_of(step: Step, protocol: ScoreHistogram, so_far: tuple[int, ...], **more: Any) -> Query:
    shared = {"clients": 1, "height": HEIGHT, LISTED: np.array(so_far), **more}
    return Query(step, protocol, broadcast=shared, view=View.SUM)


UNMEASURABLE = np.sort(
    np.concatenate([[-1.01e308, -1e308, 1e308], 1.01e308 + np.arange(4) * 1e306])
)
"""Knots between which lies a cell whose width is no double."""

LIES: list[tuple[Step, tuple[int, ...], dict[str, Any], str]] = [
    (first_round, (PARTS + 1,), {}, f"add up to at most {PARTS}"),
    (first_round, (0,), {}, "from 1 that add up"),
    (first_round, (1, 2), {}, "its part alone"),
    (first_round, (1,), {BORDERS: RISING}, "the first histogram round has no knots"),
    (first_round, (1,), {LISTED: [1]}, "must be a list of 64-bit integers"),
    (first_round, (1,), {"height": 9}, r"height must be one of \(3, 4\), got 9"),
    (second_round, (1,), {}, "round 2 lists 2 parts"),
    (second_round, (1, 1, 1, 1, 1), {}, "round 2 lists 2 parts"),
    (second_round, (10, PARTS - 9), {}, f"add up to at most {PARTS}"),
    (second_round, (PARTS + 10, -10), {}, "from 1 that add up"),
    (second_round, (1, 1), {BORDERS: RISING[::-1].copy()}, "cell edges must be finite and ascend"),
    (second_round, (1, 1), {BORDERS: np.full(7, np.nan)}, "cell edges must be finite and ascend"),
    (second_round, (1, 1), {BORDERS: RISING + 1}, "cell edges must be finite and ascend"),
    (second_round, (1, 1), {BORDERS: np.linspace(0.1, 0.9, 200)}, "knots must be 7 64-bit floats"),
    (second_round, (1, 1), {BORDERS: np.stack([RISING, RISING])}, r"are one set, got \(2,\)"),
    (second_round, (1, 1), {BORDERS: RISING.astype(np.float32)}, "knots must be 7 64-bit floats"),
    (summed_influences, (1, PARTS), FIELDS, f"add up to at most {PARTS}"),
    (summed_influences, (1,) * 6, FIELDS, "at most 5 numbers"),
]


def test_no_knots_make_a_client_tell_of_a_record_by_a_refusal() -> None:
    """A score of 9e307 had no position in a cell that was too wide, others had."""
    protocol = ScoreHistogram("secure-sum", 1.0, HEIGHT, scale="real")
    query = query_of(second_round, protocol, (1, 1), **{BORDERS: UNMEASURABLE})
    for scores in ([1.0, 2.0, 3.0], [1.0, 2.0, 9e307]):
        with pytest.raises(ValueError, match="neighbouring cell edges"):
            query.step.answer(
                Clients.from_arrays(scores, [0, 1, 1]), query, NoNoise(), ClientState()
            )


@pytest.mark.parametrize(("step", "parts", "more", "said"), LIES)
def test_clients_refuse_what_no_run_asks(
    step: Step, parts: tuple[int, ...], more: dict[str, Any], said: str
) -> None:
    query = query_of(step, PROTOCOL, parts, **more)
    with pytest.raises(ValueError, match=said):
        query.step.answer(hospital(), query, NoNoise(), ClientState())


def test_a_client_remembers_what_its_run_has_spent() -> None:
    """A query that leaves earlier parts out is refused, and one with other cells for the same part.

    The very same query may come again.
    """
    state = ClientState()

    def ask(step: Step, *parts: int, **more: Any) -> None:
        query = query_of(step, PROTOCOL, parts, **more)
        query.step.answer(hospital(), query, NoNoise(), state)

    ask(first_round, 5)
    ask(second_round, 5, 10)
    ask(second_round, 5, 10)
    with pytest.raises(ValueError, match="or the query be the same"):
        ask(second_round, 5, 10, **{BORDERS: RISING})
    for count_round, parts in zip(ROUNDS[1:], ((1, 10), (5, 9, 2), (5, 10, 1, 1)), strict=True):
        with pytest.raises(ValueError, match=r"must go on from \(5, 10\)"):
            ask(count_round, *parts)
    with pytest.raises(ValueError, match="must go on from"):
        ask(summed_influences, 1, 19, **FIELDS)
    ask(summed_influences, 5, 10, 5, **FIELDS)


def test_the_protocol_counts_in_rounds_where_no_height_is_asked_for() -> None:
    for aim in AIMS:
        assert ScoreHistogram("secure-sum", 1.0, aim=aim).counts_in_rounds
        assert not ScoreHistogram("secure-sum", 1.0, 10, aim=aim).counts_in_rounds
        assert not ScoreHistogram("secure-sum", 1e-3, aim=aim).counts_in_rounds
    assert ScoreHistogram("secure-sum", 1.0, 7, aim="auc").counts_in_rounds
    assert not ScoreHistogram("secure-sum", 1.0, 7).counts_in_rounds
    assert not ScoreHistogram("exact-sum").counts_in_rounds
    assert not ScoreHistogram("local", 1.0).counts_in_rounds


def shifted(by: float, times: float = 1.0) -> Clients:
    scores, labels = binormal_scores(4000, 6000, 0.8, seed=4)
    log_odds = np.log(scores) - np.log1p(-scores)
    moved = 1 / (1 + np.exp(-times * log_odds - by))
    return Clients.split(moved, labels, 10, seed=1)


def errors_of(clients: Clients, protocol: ScoreHistogram, runs: int = 300) -> NDArray[np.float64]:
    return np.asarray(repeat_results(clients, protocol, runs, 5).value - exact_auc(clients))


@cache
def mean_error(
    aim: Literal["report", "auc"], by: float, times: float = 1.0, runs: int = 300
) -> float:
    """Of runs on scores that were moved on the scale of log-odds."""
    protocol = ScoreHistogram("secure-sum", 1.0, aim=aim)
    return float(np.abs(errors_of(shifted(by, times), protocol, runs)).mean())


class TestAnyScale:
    """The same noise on every scale, so that ratios of errors are known better than errors."""

    @pytest.mark.parametrize("aim", ["auc", pytest.param("report", marks=pytest.mark.thorough)])
    def test_shifts_of_the_log_odds_do_not_change_the_error(self, aim: Any) -> None:
        """The rounds for a report take ten times as long as those for the area alone."""
        assert mean_error(aim, -5.0) == pytest.approx(mean_error(aim, 0.0), rel=0.06)

    @pytest.mark.parametrize("times", [0.1, 6.0])
    @pytest.mark.parametrize("aim", AIMS)
    def test_crowded_and_wide_log_odds_hardly_do(self, times: float, aim: Any) -> None:
        """100 runs know their mean error to 8 %: one that doubles passes with probability 1e-3."""
        assert mean_error(aim, 0.0, times, 100) < 1.35 * mean_error(aim, 0.0, 1.0, 100)

    def test_real_numbers_far_from_zero_need_no_bounds(self) -> None:
        clients = shifted(0.0)
        scores = 1000 + np.log(clients.scores) - np.log1p(-clients.scores)
        real = Clients.from_arrays(scores, clients.labels)
        protocol = ScoreHistogram("secure-sum", 1.0, aim="auc", scale="real")
        result = simulate(real, protocol, SimulatedNoise(1))
        assert result.rounds in (4, 5)
        error = result.server_result.standard_error
        assert error < 1e-3
        assert abs(float(result.server_result.value) - exact_auc(real)) < 4 * error

    @pytest.mark.parametrize("scale", ["probability", "log-odds", "real", "even"])
    @pytest.mark.parametrize("scores", [[0.3, 0.3], [0.3, 0.3001], [0.0, 1.0], [0.0, 5e-324]])
    @pytest.mark.parametrize("aim", AIMS)
    def test_scores_of_one_or_two_values_end(
        self, scale: str, scores: list[float], aim: Any
    ) -> None:
        """Within the rounds; the AUC is within 4 errors, of noise and of what is left of ties."""
        values = np.where(np.arange(20_000) // 2 % 3 == np.arange(20_000) % 2, *scores)
        clients = Clients.from_arrays(values, np.arange(20_000) % 2)
        protocol = ScoreHistogram("secure-sum", 1.0, aim=aim, scale=scale)
        run = simulate(clients, protocol, SimulatedNoise(2))
        assert run.rounds <= (5 if aim == "auc" else 4)
        result = run.server_result
        assert abs(float(result.value) - exact_auc(clients)) < 4 * result.standard_error


class TestZoom:
    def test_nothing_is_split_where_nothing_crowds(self) -> None:
        counts = np.tile(np.full(64, 100.0), (2, 1))
        assert not concentrated_cells(counts, 1.0, np.array(1e-4)).any()

    @pytest.mark.parametrize("name", ["probability", "log-odds", "real"])
    @pytest.mark.parametrize("cell", [0, 1, 31, 40, 63])
    def test_a_crowded_cell_is_split_and_ends_stay_open(self, name: str, cell: int) -> None:
        base, counts = named_scale(name), np.full((2, 64), 1.0)
        counts[:, cell] = 5000.0
        concentrated = concentrated_cells(counts, 1.0, np.array(1e-4))
        assert np.flatnonzero(concentrated).tolist() == [cell]
        finer = zoomed(base, counts, concentrated, 128)
        assert finer is not None
        assert (finer.cells, finer.low, finer.high) == (128, base.low, base.high)
        low, high = base.scores(np.array([cell, cell + 1]) / 64)
        assert np.sum((finer.borders > low) & (finer.borders < high)) == 63

    def test_a_single_double_is_not_split(self) -> None:
        counts = np.zeros((2, 4))
        counts[:, 1] = 1000.0
        tiny = ScoreScale(np.array([0.5, np.nextafter(0.5, 1), 0.75]), 0.0, 1.0)
        assert zoomed(tiny, counts, np.array([False, True, False, False]), 8) is None

    def test_counts_that_crowd_in_more_cells_than_there_are_pieces_split_none(self) -> None:
        """One client alone can make them: its counts cancel, and each is all of so small a sum."""
        counts = np.tile([1e12, -1e12], (2, 64))
        concentrated = concentrated_cells(counts, 1.0, np.array(1e-4))
        assert np.count_nonzero(concentrated) == 64
        assert zoomed(named_scale("probability"), counts, concentrated, 64) is None


class RowNoise(SimulatedNoise):
    """Draws of a replicate by its number and the parts of epsilon so far, whoever runs with it."""

    def __init__(self, *rows: int) -> None:
        super().__init__(0, replicates=len(rows))
        self.rows = rows

    def begin(self, listed: list[int]) -> None:
        self.sources = [np.random.default_rng([row, *listed]) for row in self.rows]

    def draw(self, distribution: Distribution, shape: tuple[int, ...]) -> NDArray[Any]:
        return np.stack([distribution.simulated(source, shape) for source in self.sources])


def result_of(
    clients: Clients, protocol: ScoreHistogram, noise: RowNoise
) -> tuple[NDArray[np.float64], int]:
    """The values of all replicates, and how many queries there were."""
    conversation, queries = conducted(protocol, clients.count), 1
    query = next(conversation)
    while True:
        noise.begin(np.asarray(query.broadcast[LISTED]).tolist())
        reply = query.step.answer(clients, query, noise, ClientState())
        try:
            query, queries = conversation.send(reply), queries + 1
        except StopIteration as end:
            return np.asarray(end.value.value), queries


@pytest.mark.parametrize("aim", AIMS)
def test_replicates_that_decide_differently_go_their_own_ways(aim: Any) -> None:
    """Of each the value is that of a run on its own with the same draws."""
    clients, protocol = shifted(0.0, 0.25).part(0, 3), ScoreHistogram("secure-sum", 1.0, aim=aim)
    together, queries = result_of(clients, protocol, RowNoise(*range(12)))
    alone = [result_of(clients, protocol, RowNoise(row)) for row in range(12)]
    assert queries > max(own for _, own in alone)
    np.testing.assert_allclose(together, np.concatenate([value for value, _ in alone]), rtol=1e-9)


@pytest.mark.parametrize("spent", [(1, PARTS - 2), (1, 8, PARTS - 10)])
def test_the_last_part_is_the_numbers_however_crowded_cells_are(spent: tuple[int, ...]) -> None:
    choices = Choices(ScoreHistogram("secure-sum", 1.0, aim="auc"))
    counts = np.zeros((1, 128))
    counts[:, [20, 84]] = 50_000.0
    levels = {1: np.full((1, 2), 50_000.0), 7: counts}
    pool = Pooled(named_scale("probability"), None, levels, choices.variances(10, 6))
    (step,) = choices.decided(pool, spent)
    assert (step.parts, step.counts) == (1, False)
    (before,) = choices.decided(pool, spent[:-1])
    assert before.counts


def test_a_class_that_does_not_show_names_the_epsilon_that_would_do() -> None:
    clients = binormal_clients(200, 4000, 3, seed=1)
    result = evaluate(clients, ScoreHistogram("secure-sum", 0.1), seed=3)
    assert not result.has_signal
    assert result.spent == Cost(result.spent.epsilon, adjacency=result.spent.adjacency)
    assert any("would give a figure" in warning for warning in result.warnings)


@pytest.mark.parametrize(
    ("positives", "negatives", "some_empty"),
    [(3000, 300_000, True), (900, 900, False), (10_000, 10_000, False)],
)
def test_cells_count_as_empty_where_both_classes_lack_next_to_nothing(
    positives: int, negatives: int, some_empty: bool
) -> None:
    """Of 200 draws: at most 30 decide otherwise than 95 % of them do, but with 10^-7."""
    rng = np.random.default_rng(4)
    shape = np.exp(-((np.arange(64) - 40.0) ** 2) / 18)
    exact = np.array([[positives], [negatives]]) * shape / shape.sum()
    noise = rng.laplace(0, 7.6, (200, 2, 64))
    cells = (exact + noise).reshape(200, 128)
    classes = np.broadcast_to(np.array([positives, negatives], dtype=np.float64), (200, 2))
    variances = np.full(8, np.inf)
    variances[1], variances[7] = 500.0, 2 * 7.6**2
    pool = Pooled(named_scale("probability"), None, {1: classes, 7: cells}, variances)
    with_empty = int(np.sum(~pool.filled.all(axis=-1)))
    assert (with_empty > 170) if some_empty else (with_empty < 30)
    functions = np.stack([pool.published[POSITIVES], pool.published[NEGATIVES]])
    assert np.all(np.diff(functions, axis=-1) >= 0)
    if some_empty:
        assert np.all(pool.filled[:, 38:43])
