"""What pictures show: curves from corner to corner, marked points, intervals and captions."""

from __future__ import annotations

import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tacit
from tacit.cli import main
from tacit.protocol import Adjacency, Cost, Curve
from tacit.results import displays as drawing
from tacit.results.estimate import Estimate

CLIENTS = tacit.Clients.split(*tacit.binormal_scores(400, 1600, 0.8, seed=0), clients=4, seed=0)
PAGE = Path(drawing.__file__).parents[1] / "reporting" / "templates" / "page.css"


def curve_of(thresholds: Any) -> Curve:
    """A noisy curve whose points are out of order and beyond the unit square."""
    across = np.array([1.0, 0.4, 0.4, -0.02])
    up = np.array([1.0, 0.7, 0.8, 0.1])
    errors = np.full(4, 0.02)
    return Curve(np.asarray(thresholds, dtype=np.float64), across, up, errors, errors)


CURVE = curve_of([0.0, 0.3, 0.52, 0.9])


def evaluation_of(estimate: Estimate, roc: Curve | None) -> Any:
    """What a picture reads of an evaluation."""
    run = {"protocol": {"name": "dpauc"}, "spent": Cost(1.0, adjacency=Adjacency.RECORD)}
    return SimpleNamespace(figure="AUC", estimate=estimate, roc=roc, exact=None, **run)


WITH_CURVE = evaluation_of(Estimate(0.75, 0.005, 0.02), CURVE)


def texts_of(axes: Any) -> str:
    return "\n".join([axes.get_title("left"), *(each.get_text() for each in axes.texts)])


def test_a_curve_runs_from_corner_to_corner_and_never_back() -> None:
    line = drawing.draw_evaluation(WITH_CURVE).lines[1]
    across, up = line.get_data()
    assert (across[0], up[0], across[-1], up[-1]) == (0, 0, 1, 1)
    assert (np.diff(across) >= 0).all()
    assert min(across.min(), up.min()) >= 0
    assert up[1:-1].tolist() == [0.1, 0.7, 0.8, 1.0]


def test_a_picture_says_figure_interval_protocol_and_cost() -> None:
    told = texts_of(drawing.draw_evaluation(WITH_CURVE))
    for part in ("AUC 0.750", "0.740 to 0.760", "dpauc, epsilon 1 (record)"):
        assert part in told


@pytest.mark.parametrize(
    ("thresholds", "index"),
    [
        ([0.0, 0.3, 0.52, 0.9], 2),
        ([0.0, 0.3, 0.6, 0.9], None),
        ([-3.0, 0.0, 0.5, 2.0], None),
        ([np.nan, 0.3, 0.5, np.inf], 2),
        ([np.nan] * 4, None),
    ],
)
def test_the_marked_point_is_next_to_one_half_on_probabilities_alone(
    thresholds: list[float], index: int | None
) -> None:
    assert drawing.operating_point(curve_of(thresholds)) == index


def test_a_result_without_signal_has_a_picture_that_says_so() -> None:
    axes = drawing.draw_evaluation(evaluation_of(Estimate.absent("too noisy"), None))
    assert "not enough signal" in texts_of(axes)
    assert not axes.lines


def test_a_bar_shows_both_intervals_and_the_exact_figure() -> None:
    axes = drawing.draw_bars([drawing.Bar("a", Estimate(0.7, 0.05, 0.1), 0.72)], "t", "c", "AUC")
    ends = [line.get_xdata()[0] for line in axes.lines]
    assert ends == pytest.approx([0.48, 0.6, 0.7, 0.72], abs=3e-3)


def test_more_bars_than_are_legible_are_said_to_be_left_out() -> None:
    bars = [drawing.Bar(str(n), Estimate(0.5, math.nan, 0.0)) for n in range(drawing.MAX_BARS + 3)]
    axes = drawing.draw_bars(bars, "t", "c", "AUC", drawing.new_axes())
    assert f"the first {drawing.MAX_BARS} of {drawing.MAX_BARS + 3}" in texts_of(axes)
    assert len(axes.lines) == drawing.MAX_BARS


def test_pictures_have_the_colours_of_a_report() -> None:
    light = PAGE.read_text().split("@media")[0]
    names = {"card": "CARD", "ink": "INK", "soft": "SOFT", "edge": "EDGE"}
    names |= {"accent": "ACCENT", "band": "BAND", "mark": "MARK"}
    for name, constant in names.items():
        found = re.search(rf"--{name}: (#[0-9a-f]+)", light)
        assert found is not None
        shown = getattr(drawing, constant)
        assert shown == (found[1] if len(found[1]) == 7 else "#" + 2 * found[1][1:])


def test_a_comparison_shows_both_models_and_their_difference() -> None:
    compared = tacit.compare(CLIENTS, 1 - CLIENTS.scores, tacit.FedAUC(1.0), seed=1)
    upper, lower = drawing.draw_comparison(compared).axes
    assert [label.get_text() for label in upper.get_yticklabels()] == ["first", "second"]
    assert lower.get_title("left").startswith("first less second: +")
    assert "epsilon 1 (label) for all three figures" in texts_of(upper)


def test_groups_are_shown_below_each_other() -> None:
    groups = tacit.Groups.from_arrays(np.arange(CLIENTS.records) % 2)
    grouped = tacit.evaluate_groups(CLIENTS, groups, tacit.FedAUC(1.0), seed=1)
    axes = drawing.draw_groups(grouped).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "1"]
    assert axes.get_title("left") == "AUC of 2 groups"


@pytest.mark.parametrize(
    "options",
    [
        ["compare", "a.csv", "--score", "score", "--versus", "old", "--epsilon", "1"],
        ["evaluate", "a.csv", "--groups", "ward", "--protocol", "fedauc", "--epsilon", "1"],
    ],
)
def test_a_command_saves_the_picture_and_says_so(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{i / 200},{(i * 37 % 200) / 200},{int(i > 90)},w{i % 2}" for i in range(200)]
    Path("a.csv").write_text("\n".join(["score,old,label,ward", *rows]))
    said = CliRunner().invoke(main, [*options, "--seed", "1", "--plot", "a.svg"])
    assert said.stderr.endswith("tacit: saved a.svg\n"), said.output
    assert "<svg" in Path("a.svg").read_text()


def test_a_roc_curve_is_drawn_on_given_axes() -> None:
    result = tacit.evaluate(CLIENTS, tacit.ScoreHistogram(epsilon=2.0), seed=1)
    ax = drawing.new_axes()
    display = tacit.RocCurveDisplay.from_result(result, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.roc_auc == result.auc.value
    assert result.plot(ax=drawing.new_axes()) is not ax
    assert ax.get_legend() is not None
    small = result.plot(ax=ax.figure.add_axes((0.0, 0.0, 0.4, 0.4)))
    assert (small.get_legend(), len(small.texts)) == (None, 0)
    with pytest.raises(TypeError, match=r"got 'calibration'; other .*CalibrationDisplay"):
        result.plot("calibration")


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
