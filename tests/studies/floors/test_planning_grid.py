"""The grid of planned and measured errors: its size, and that a cell is measured."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.protocol.forecast import AREA, ECE
from tacit_studies.floors.planning_grid import KINDS, PRECISION, cells, chosen, grid, run_of
from tacit_studies.measuring import Bench
from tacit_studies.rows import Target
from tests.studies.sources import few

REPEATS = 60


def test_the_grid_has_sixty_different_cells() -> None:
    assert len(cells()) >= 60
    assert len(set(cells())) == len(cells())
    assert len(grid("planning-grid")) == len(cells()) + 1
    assert {kind.metric for kind in KINDS} == {AREA, ECE, PRECISION}


def test_every_cell_has_a_feasible_plan_of_its_own_epsilon() -> None:
    for kind, sizes in cells():
        scenario, family, protocol = chosen(kind, sizes)
        assert protocol.settings.get("epsilon", sizes[-1]) == sizes[-1]
        assert family.forecast(protocol, scenario, kind.shape).obstacle is None


@pytest.mark.parametrize("place", [6, 27, 43, 45], ids=["rr", "tree", "precision", "ece"])
def test_a_cell_is_planned_and_measured(place: int) -> None:
    """A deviation of 60 runs is known to 9 %."""
    bench = Bench(few(), REPEATS, seed=1)
    rows = grid("planning-grid")[place].work(bench)
    assert [row.column for row in rows] == ["planned error", "measured error", "planned / measured"]
    planned, measured, ratio = (row.ours for row in rows)
    assert ratio == planned / measured
    assert 0.6 < ratio < 1.7
    assert isinstance(rows[-1], Target)


def test_runs_are_about_each_data_set_s_own_figure() -> None:
    """Errors, not estimates; as many as were asked for."""
    kind, sizes = cells()[10]
    scenario, _, protocol = chosen(kind, sizes)
    errors = run_of(kind, scenario)(scenario.drawn(kind.shape, 0), protocol, 5, 1)
    assert errors.shape == (5,)
    assert np.abs(errors).max() < 0.1
