"""Display objects draw what a result has, and refuse what it has not."""

from __future__ import annotations

import numpy as np
import pytest

import tacit
from tacit.results.drawing import new_axes

CLIENTS = tacit.Clients.split(*tacit.binormal_scores(400, 1600, 0.8, seed=0), clients=4, seed=0)


def test_a_roc_curve_is_drawn_on_given_axes() -> None:
    result, ax = tacit.evaluate(CLIENTS, tacit.ScoreHistogram(epsilon=2.0), seed=1), new_axes()
    display = tacit.RocCurveDisplay.from_result(result, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.roc_auc == result.auc.value
    assert result.plot(ax=new_axes()) is not ax


def test_calibration_is_drawn_in_probabilities() -> None:
    result = tacit.evaluate(CLIENTS, tacit.ScoreHistogram(epsilon=2.0), seed=1)
    display = tacit.CalibrationDisplay.from_result(result)
    assert np.all(np.diff(display.prob_pred) > 0)
    assert display.prob_true.shape == display.prob_pred.shape
    assert display.ax_.get_xlim() == (0.0, 1.0)


def test_what_a_result_has_not_is_refused() -> None:
    result = tacit.evaluate(CLIENTS, tacit.FedAUC(1.0), seed=1)
    with pytest.raises(ValueError, match="fedauc gives no ROC curve"):
        tacit.RocCurveDisplay.from_result(result)
    with pytest.raises(ValueError, match="fedauc gives no calibration"):
        tacit.CalibrationDisplay.from_result(result)
