"""Calibrators: quality on private counts, saved maps, scikit-learn's conventions."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from tacit.metrics.cells.binning import ScoreCells
from tacit.results.curves.calibrator import METHODS, SCHEMA, Calibrator, Lines, Logistic, Steps
from tests.metrics.test_calibration import noised, sampled_cells
from tests.terminal import in_python

Floats = NDArray[np.float64]

EDGES = np.array([0, 0.25, 0.5, 0.75, 1])
POSITIVES, NEGATIVES = np.array([2, 9, 31, 58]), np.array([98, 91, 69, 42])
UNIT = st.floats(0, 1)


def fitted(method: str) -> Calibrator:
    return Calibrator.from_counts(EDGES, POSITIVES, NEGATIVES, method=method)


def holding(method: str, curve: Any) -> Calibrator:
    return Calibrator(method)._with(curve, "probability")


@st.composite
def maps(draw: st.DrawFn) -> Calibrator:
    method = draw(st.sampled_from(sorted(METHODS)))
    if method == "platt":
        return holding(method, Logistic(*(draw(st.floats(-50, 50)) for _ in range(2))))
    knots = sorted(draw(st.sets(st.floats(0, 1), min_size=1, max_size=8)))
    if method == "isotonic":
        values = sorted(draw(UNIT) for _ in knots)
        return holding(method, Lines(np.array(knots), np.array(values)))
    edges = sorted({0.0, *knots, 1.0})
    values = [draw(UNIT) for _ in edges[1:]]
    return holding(method, Steps(np.array(edges), np.array(values)))


# What it is for


def distorted(seed: int, cells: int, deviation: float) -> tuple[ScoreCells, Floats, Floats]:
    """Cells of 100,000 squared probabilities, and 100,000 fresh ones with their scores.

    The discrete Laplace noise on every count has this standard deviation.
    """
    rng = np.random.default_rng(seed)
    counts = sampled_cells(rng, 100_000, cells)
    fresh = rng.random(100_000)
    return noised(rng, counts, deviation) if deviation else counts, fresh, fresh**2


def calibration_error(scores: Floats, truth: Floats) -> float:
    """The expected calibration error in 15 buckets of equal width, against true probabilities."""
    index = np.minimum((scores * 15).astype(int), 14)
    return float(np.abs(np.bincount(index, scores - truth, 15)).sum() / scores.size)


@pytest.mark.parametrize(("cells", "deviation"), [(256, 3.0), (1024, 0.0), (1024, 3.0)])
@pytest.mark.parametrize("method", ["bbq", "binning", "isotonic"])
def test_a_distorted_score_is_recalibrated(method: str, cells: int, deviation: float) -> None:
    _, truth, scores = distorted(0, cells, deviation)
    # A record may stay off its true probability by a tenth of what the distortion moved it.
    before = calibration_error(scores, truth)
    assert before > 0.16
    results = []
    for seed in range(6):
        counts, truth, scores = distorted(seed, cells, deviation)
        mapped = Calibrator.from_cells(counts, method).transform(scores)
        results.append((calibration_error(mapped, truth), float(np.abs(mapped - truth).mean())))
    error, distance = np.mean(results, axis=0)
    assert error <= 0.01
    assert distance <= before / 10


# Maps


@given(maps(), st.lists(UNIT, min_size=1))
def test_a_map_comes_back_from_json_bit_for_bit(made: Calibrator, scores: list[float]) -> None:
    again = Calibrator.from_json(made.to_json())
    assert again.to_json() == made.to_json()
    assert (again.method, again.monotone) == (made.method, made.monotone)
    points = np.array(scores)
    if not isinstance(made.curve_, Logistic):
        corners = made.curve_.edges if isinstance(made.curve_, Steps) else made.curve_.knots
        ends = np.nextafter(corners, 0), np.nextafter(corners, 1)
        points = np.concatenate((points, corners, *ends))
    result = made.transform(np.sort(points))
    assert again.transform(np.sort(points)).tobytes() == result.tobytes()
    assert ((result >= 0) & (result <= 1)).all()
    assert not made.monotone or (np.diff(result) >= 0).all()


def test_steps_include_their_lower_edge_and_the_last_its_upper() -> None:
    steps = Steps(np.array([0, 0.5, 1]), np.array([0.2, 0.6]))
    assert steps(np.array([0, np.nextafter(0.5, 0), 0.5, 1])).tolist() == [0.2, 0.2, 0.6, 0.6]


def test_lines_are_flat_outside_their_knots() -> None:
    lines = Lines(np.array([0.2, 0.6]), np.array([0.1, 0.5]))
    assert lines(np.array([0, 0.2, 0.4, 0.6, 1])) == pytest.approx([0.1, 0.1, 0.3, 0.5, 0.5])


def test_logistic_is_finite_at_zero_and_one() -> None:
    ends = Logistic(1.0, 0.0)(np.array([0.0, 0.25, 1.0]))
    assert ends == pytest.approx([1e-6, 0.25, 1 - 1e-6])


def test_maps_cannot_be_changed() -> None:
    curve = fitted("binning").curve_
    assert isinstance(curve, Steps)
    with pytest.raises(ValueError, match="read-only"):
        curve.values[0] = 0.5


SOUND = {
    "schema": SCHEMA,
    "method": "binning",
    "kind": "piecewise-constant",
    "edges": [0, 0.5, 1],
    "values": [0, 1],
}
LOGISTIC = {"schema": SCHEMA, "method": "platt", "kind": "logistic", "slope": 1, "intercept": 0}
LINES = {**SOUND, "method": "isotonic", "kind": "piecewise-linear", "knots": [0.2, 0.1]}
del LINES["edges"]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{", "a calibrator must be JSON"),
        ("[]", "a calibrator must be a JSON object, got list"),
        ({"schema": "tacit.calibrator/2"}, "schema must be 'tacit.calibrator/1', got .*/2'"),
        ({**SOUND, "method": "magic"}, "method must be one of .* got 'magic'"),
        ({**SOUND, "kind": "logistic"}, "kind must be 'piecewise-constant', got 'logistic'"),
        ({**SOUND, "more": 1}, "entries must be"),
        ({**SOUND, "edges": [0, 0.5, 0.4, 1], "values": [0, 1, 1]}, "edges must ascend, got 0.5"),
        ({**SOUND, "edges": [0, 0.5, 2]}, "edges must run from 0 to 1, got 0.0 to 2.0"),
        ({**SOUND, "edges": ["0", 0.5, 1]}, "edges must hold numbers"),
        ({**SOUND, "edges": None}, "edges must hold numbers, got None"),
        ({**SOUND, "edges": 1}, "edges must have shape"),
        ({**SOUND, "values": [0, True]}, "values must hold numbers"),
        ({**SOUND, "values": [0, 1, 1]}, r"values must have shape \(2,\), got \(3,\)"),
        ({**SOUND, "values": [0, 1.5]}, "values must lie within 0 and 1, got 1.5"),
        ({**SOUND, "values": [0, math.nan]}, "values must be finite, got nan"),
        ({**SOUND, "values": [0, 10**400]}, "values must be finite, got inf"),
        (LINES, "`knots` must ascend, got 0.2 before 0.1"),
        ({**LINES, "knots": []}, r"knots must have shape \(K,\), got \(0,\)"),
        ({**LOGISTIC, "slope": math.inf}, "slope must be a finite number, got inf"),
        ({**LOGISTIC, "intercept": [0]}, r"intercept must be a finite number, got \[0.0\]"),
    ],
)
def test_json_that_is_no_calibrator_is_refused(written: dict[str, Any] | str, message: str) -> None:
    text = written if isinstance(written, str) else json.dumps(written)
    with pytest.raises(ValueError, match=message):
        Calibrator.from_json(text)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_saved_calibrators_load_and_say_if_they_are_monotone(method: str, tmp_path: Path) -> None:
    made = fitted(method)
    made.save(tmp_path / "map.json")
    again = Calibrator.load(tmp_path / "map.json")
    assert (again.method, again.to_json()) == (method, made.to_json())
    backwards = Calibrator.from_counts(EDGES, NEGATIVES, POSITIVES, method=method)
    assert (made.monotone, backwards.monotone) == (True, method == "isotonic")
    assert pickle.loads(pickle.dumps(made)).to_json() == made.to_json()  # noqa: S301


# Scores in, probabilities out


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([0.1, math.nan], "scores must be finite, got nan"),
        ([[0.1], [math.inf]], "scores must be finite, got inf"),
        ([0.1, 1.25], "scores must lie within 0 and 1, got 1.25"),
        ([-0.5], "scores must lie within 0 and 1, got -0.5"),
        ([[0.1, 0.2]], r"scores must have shape \(n,\) or \(n, 1\), got \(1, 2\)"),
        (0.5, r"scores must have shape \(n,\) or \(n, 1\), got \(\)"),
    ],
)
@pytest.mark.parametrize("method", sorted(METHODS))
def test_scores_that_are_none_are_refused(method: str, scores: Any, message: str) -> None:
    made = fitted(method)
    with pytest.raises(ValueError, match=message):
        made.transform(scores)
    with pytest.raises(ValueError, match=message):
        made.fit(scores, [0, 1])


@pytest.mark.parametrize("method", sorted(METHODS))
def test_columns_come_back_as_columns(method: str) -> None:
    made, scores = fitted(method), np.array([0.9, 0.1, 0.4])
    flat = made.transform(scores)
    assert flat.shape == (3,)
    assert flat.dtype == np.float64
    assert made.transform(scores[:, None]).tolist() == [[value] for value in flat]
    assert made.transform(np.zeros(0)).shape == (0,)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_counts_and_records_at_the_centres_fit_alike(method: str) -> None:
    middles = (EDGES[:-1] + EDGES[1:]) / 2
    counts = np.concatenate((POSITIVES, NEGATIVES))
    scores = np.repeat(np.tile(middles, 2), counts)
    labels = np.repeat([1, 0], [POSITIVES.sum(), NEGATIVES.sum()])
    from_records = Calibrator(method).fit(scores, labels).transform(middles)
    assert from_records == pytest.approx(fitted(method).transform(middles), abs=1e-9)


def test_settings_are_checked_when_fitting() -> None:
    with pytest.raises(ValueError, match=r"method must be one of .* got 'magic'"):
        Calibrator("magic").fit([0.1], [1])
    with pytest.raises(ValueError, match="buckets is for 'binning' alone, got 5 with 'bbq'"):
        Calibrator("bbq", buckets=5).fit([0.1], [1])
    with pytest.raises(ValueError, match="buckets must be at least 1, got 0"):
        Calibrator("binning", buckets=0).fit([0.1], [1])
    assert Calibrator("binning", buckets=1).fit([0.1, 0.9], [1, 0]).monotone


# scikit-learn's conventions


def test_clones_have_the_settings_and_nothing_learned() -> None:
    made = Calibrator("binning", buckets=7).fit([0.1, 0.9], [0, 1])
    copy = clone(made)
    assert copy.get_params() == {"method": "binning", "buckets": 7}
    check_is_fitted(made)
    with pytest.raises(ValueError, match="not fitted"):
        copy.transform([0.5])
    with pytest.raises(ValueError, match="not fitted"):
        check_is_fitted(copy)
    with pytest.raises(ValueError, match=r"settings are \['buckets', 'method'\], got 'depth'"):
        made.set_params(depth=3)


def test_it_works_in_a_pipeline() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(5000)
    labels = (rng.random(5000) < truth).astype(int)
    column = (truth**2)[:, None]
    pipeline = make_pipeline(FunctionTransformer(np.sqrt), Calibrator("binning"))
    pipeline.set_params(calibrator__method="isotonic")
    result = pipeline.fit_transform(column, labels)
    check_is_fitted(pipeline)
    assert result.shape == (5000, 1)
    assert np.abs(result[:, 0] - truth).mean() < 0.03
    assert (clone(pipeline).fit(column, labels).transform(column) == result).all()
    assert "Calibrator(method='isotonic', buckets=None)" in repr(pipeline)
    assert "<style>" in pipeline._repr_html_()


def test_columns_keep_their_name() -> None:
    frame = pd.DataFrame({"risk": [0.1, 0.2, 0.9]})
    made = Calibrator("platt").fit(frame, [0, 0, 1])
    assert made.get_feature_names_out().tolist() == ["risk"]
    assert made.get_feature_names_out(["other"]).tolist() == ["other"]
    assert made.n_features_in_ == 1
    assert made.fit([0.1, 0.9], [0, 1]).get_feature_names_out().tolist() == ["x0"]
    with pytest.raises(ValueError, match="input_features must hold one name, got 2"):
        made.get_feature_names_out(["a", "b"])


def test_it_works_without_scikit_learn() -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "from tacit.results.curves.calibrator import Calibrator\n"
        "print(Calibrator('isotonic').fit_transform([0.25, 0.75], [0, 1]).tolist())\n"
    )
    assert in_python(code).stdout == "[0.0, 1.0]\n"
