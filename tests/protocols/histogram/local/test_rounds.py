"""Private reports in two rounds: cells that lie where the records do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, logit

from tacit import Clients, DataError, ScoreHistogram, binormal_scores
from tacit.arrays import Floats
from tacit.counts.placing import placed_borders
from tacit.local.turns import CELLS
from tacit.metrics.cells.score_scale import named_scale
from tacit.privacy.cost import NOTHING, Adjacency, Cost
from tacit.protocol import ClientState, NoNoise, Query, Ragged, ServerResult, SimulatedNoise
from tacit.protocols.histogram import local_rounds
from tacit.protocols.shared.counting import BORDERS
from tacit.running.evaluating import exact_auc
from tacit.running.simulation import simulate

SCALE = named_scale("probability")
HEIGHT = 4
PROTOCOL = ScoreHistogram("local", 2.0, HEIGHT)


def lone(scores: Floats, labels: NDArray[Any]) -> Clients:
    return Clients(scores, labels, np.arange(scores.size + 1))


def moved(size: int, shift: float) -> Clients:
    scores, labels = binormal_scores(size // 2, size // 2, 0.8, seed=3)
    return lone(expit(logit(scores) + shift), labels)


def run(clients: Clients, protocol: ScoreHistogram, seed: int) -> ServerResult:
    return simulate(clients, protocol, SimulatedNoise(seed)).server_result


class TestWhereCellsLie:
    def test_cells_hold_about_equal_parts(self) -> None:
        masses = np.exp(-(((np.arange(CELLS) - 20) / 3.0) ** 2))
        masses /= masses.sum()
        borders = placed_borders(SCALE, masses, 5, local_rounds.FIXED_PART)
        below = np.interp(
            SCALE.positions(borders),
            np.arange(CELLS + 1) / CELLS,
            np.append(0.0, np.cumsum(masses)),
        )
        parts = np.diff(below, prepend=0.0, append=1.0)
        assert parts.max() <= 1 / 32 / (1 - local_rounds.FIXED_PART) + 1e-9
        assert np.median(parts) > 0.9 / 32

    @pytest.mark.parametrize("cell", [0, 17, 63])
    @pytest.mark.parametrize("name", ["probability", "log-odds", "real"])
    def test_all_mass_in_one_cell_leaves_ascending_knots(self, name: str, cell: int) -> None:
        scale, masses = named_scale(name), np.zeros(CELLS)
        masses[cell] = 1.0
        for height in (1, 4, 10):
            borders = placed_borders(scale, masses, height, local_rounds.FIXED_PART)
            assert borders.shape == ((1 << height) - 1,)
            assert np.all(np.diff(borders) > 0)
            assert np.all(np.isfinite(borders))

    def test_many_reports_show_the_masses(self) -> None:
        truth = np.zeros(CELLS)
        truth[10:20], truth[40:50] = 0.07, 0.03
        counts = np.rint(
            1e7 * truth @ local_rounds.position_round(1.0).window.probabilities
        ).astype(np.int64)
        likely = local_rounds.position_round(1.0).masses(counts[np.newaxis])[0]
        assert np.abs(np.cumsum(likely) - np.cumsum(truth)).max() < 0.03

    def test_more_noise_and_fewer_records_take_a_larger_part(self) -> None:
        slots = [local_rounds.early_slots(epsilon, 10_000) for epsilon in (0.1, 0.5, 1.0, 4.0)]
        assert slots == sorted(slots, reverse=True)
        assert local_rounds.early_slots(0.1, 3) == local_rounds.MAX_EARLY
        assert local_rounds.early_slots(8.0, 10**9) == 1


class TestErrors:
    def test_shifts_of_the_log_odds_do_not_change_them(self) -> None:
        """Stated errors of shifts are within 10 %, and at most 1.15 times those of even cells.

        Fixed cells of the log-odds, without a first round, state 1.6 times even ones.
        """
        stated = {
            shift: float(run(moved(40_000, shift), ScoreHistogram("local", 4.0), 1).privacy_error)
            for shift in (0.0, -3.0, -5.0)
        }
        even = run(moved(40_000, 0.0), ScoreHistogram("local", 4.0, scale="even"), 1)
        assert max(stated.values()) < 1.1 * min(stated.values())
        assert stated[0.0] < 1.15 * float(even.privacy_error)

    def test_replicates_have_cells_of_their_own(self) -> None:
        clients = moved(3_000, -2.0)
        noise = SimulatedNoise(1, 3)
        result = simulate(clients, ScoreHistogram("local", 5.0), noise).server_result
        assert result.value.shape == (3,)
        assert np.all(np.abs(result.value - exact_auc(clients)) < 0.1)

    def test_records_that_all_said_where_they_are_leave_nothing_known(self) -> None:
        """Without noise every record draws the first turn."""
        clients = moved(50, 0.0)
        result = simulate(clients, PROTOCOL, NoNoise()).server_result
        assert float(result.value) == 0.5
        assert float(result.privacy_error) > 0.5


class TestWhatAClientAnswers:
    def setup_method(self) -> None:
        self.clients = moved(200, 0.0)
        self.state, self.noise = ClientState(), SimulatedNoise(5)
        query = Query(local_rounds.draw_report_turns, PROTOCOL)
        self.turns = query.step.answer(self.clients, query, self.noise, self.state)["turns"]
        self.borders = SCALE.scores(np.arange(1, 1 << HEIGHT) / (1 << HEIGHT))

    def positions(self, first: int = 60) -> Query:
        return Query(
            local_rounds.report_positions, PROTOCOL, {"first": first}, {"turns": self.turns}
        )

    def leaves(self, first: int = 60, borders: Floats | None = None) -> Query:
        placed = self.borders if borders is None else borders
        shared = {"clients": 200, "height": HEIGHT, "first": first, BORDERS: placed}
        return Query(local_rounds.report_leaves, PROTOCOL, shared, {"turns": self.turns})

    def answer(self, query: Query) -> dict[str, object]:
        return dict(query.step.answer(self.clients, query, self.noise, self.state))

    def test_a_record_reports_once(self) -> None:
        assert isinstance(self.turns, Ragged)
        soon = self.turns.values < 60
        first = self.answer(self.positions())["reports"]
        second = self.answer(self.leaves())["levels"]
        assert isinstance(first, Ragged)
        assert isinstance(second, Ragged)
        np.testing.assert_array_equal(np.diff(first.offsets), soon)
        np.testing.assert_array_equal(np.diff(second.offsets), ~soon)

    def test_no_round_is_asked_for_twice_or_early(self) -> None:
        with pytest.raises(DataError, match="reports once"):
            self.answer(self.leaves())
        self.answer(self.positions())
        for query in (self.positions(), self.leaves(first=61)):
            with pytest.raises(DataError, match="reports once"):
                self.answer(query)
        self.answer(self.leaves())
        with pytest.raises(DataError, match="reports once"):
            self.answer(self.leaves())

    @pytest.mark.parametrize(
        "bad",
        [
            np.linspace(0.1, 0.9, 14),
            np.linspace(0.9, 0.1, 15),
            np.full(15, np.nan),
            np.linspace(0.1, 0.9, 15).astype(np.float32),
        ],
    )
    def test_other_knots_are_refused(self, bad: Floats) -> None:
        self.answer(self.positions())
        with pytest.raises(ValueError, match=r"knots must|cell edges"):
            self.answer(self.leaves(borders=bad))

    def test_a_round_costs_epsilon_where_a_record_reports(self) -> None:
        spent = Cost(2.0, adjacency=Adjacency.REPLACE)
        for query in (self.positions(), self.leaves()):
            assert query.step.cost(self.clients, query, self.state) == spent
        nobody = self.positions(first=0)
        assert nobody.step.cost(self.clients, nobody, self.state) == NOTHING
