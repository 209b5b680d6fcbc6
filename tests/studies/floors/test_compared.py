"""The records of the comparison's study, and one of its runs."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.metrics.ranking import auc
from tacit.protocols.shared.declared import both_models
from tacit_studies.floors.compared import AUC, POPULATION, SETTINGS, Setting, drawn
from tacit_studies.registry import TABLES
from tacit_studies.rows import Target
from tacit_studies.sources import Scores


def test_records_have_the_population_s_aucs() -> None:
    """A difference of 200,000 records has a standard error of 8e-4; five are allowed (6e-7)."""
    first, second = both_models(drawn(Setting(200_000, 0.5, 1.0), np.random.default_rng(1)))
    areas = [auc(each.scores, each.labels) for each in (first, second)]
    assert areas[0] == pytest.approx(AUC, abs=5e-3)
    assert areas[0] - areas[1] == pytest.approx(POPULATION, abs=4e-3)


def test_every_setting_has_two_rows_and_three_targets() -> None:
    measured = TABLES["compared"].measure(Scores(), repeats=1, only="1,000 records")
    assert [type(each) is Target for each in measured] == [False, False, True, True, True]
    assert len({str(each) for each in SETTINGS}) == len(SETTINGS)
    assert 0 <= measured[0].ours < 0.1
