"""Scenarios and shapes: their bounds, and their counts against drawn records."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.metrics.cells.score_scale import LOG_ODDS, REAL, SCALES, named_scale
from tacit.metrics.ranking import auc
from tacit.protocol.scenario import MAX_RECORDS, Form, Scenario, Shape, plausible_shapes

SHAPES = [Shape(0.65), Shape(0.9), Shape(0.8, "calibrated")]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"positives": 1000}, "positives must be from 1 to 999, fewer than the records, got 1000"),
        ({"positives": 0}, "positives must be from 1 to 999, fewer than the records, got 0"),
        ({"clients": 1001}, "clients must be from 1 to 1000, as each holds a record, got 1001"),
        ({"clients": 0}, "clients must be from 1 to 1000, as each holds a record, got 0"),
        ({"records": 1}, f"records must be from 2 to {MAX_RECORDS}, got 1"),
        ({"epsilon": 0.0}, "epsilon must be positive and finite, got 0.0"),
        ({"epsilon": math.nan}, "epsilon must be positive and finite, got nan"),
    ],
)
def test_impossible_plans_are_refused(changed: dict[str, Any], said: str) -> None:
    given_ = {"records": 1000, "positives": 300, "clients": 10, "epsilon": 1.0}
    with pytest.raises(ValueError) as error:
        Scenario(**(given_ | changed))
    assert str(error.value) == said


@pytest.mark.parametrize("guess", [0.5, 1.0, 0.2, math.nan, -3.0])
def test_guesses_outside_their_range_are_refused(guess: float) -> None:
    with pytest.raises(ValueError, match=r"above 0\.5 and below 1, got"):
        plausible_shapes(guess)


def test_a_guess_leaves_both_forms() -> None:
    assert plausible_shapes(0.7) == (Shape(0.7), Shape(0.7, "calibrated"))


@pytest.mark.parametrize("scale", [*SCALES])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("positives", [300, 20_000])
def test_expected_counts_are_those_of_drawn_records(
    shape: Shape, positives: int, scale: str
) -> None:
    """Each of 2 x 12 counts within 5.5 standard errors: a false alarm in a million."""
    scenario = Scenario(100_000, positives, 4, 1.0)
    clients = scenario.drawn(shape, seed=7)
    scores = clients.scores
    if scale == LOG_ODDS or (scale == REAL and shape.form == "calibrated"):
        scores = scipy.special.logit(scores)
    elif scale == REAL:
        scores = scipy.special.ndtri(scores)
    positions = named_scale(scale).positions(scores)
    for label, expected in zip((1, 0), scenario.counts(shape, 12, scale), strict=True):
        drawn, _ = np.histogram(positions[clients.labels == label], 12, (0.0, 1.0))
        assert np.all(np.abs(drawn - expected) <= 5.5 * np.sqrt(expected) + 1)


@pytest.mark.parametrize("shape", SHAPES)
def test_drawn_records_have_the_shape_s_auc(shape: Shape) -> None:
    """Within 5 sampling errors: a false alarm in a million."""
    scenario = Scenario(40_000, 8_000, 4, 1.0)
    clients = scenario.drawn(shape, seed=3)
    result = auc(clients.scores, clients.labels)
    assert abs(result - shape.auc) < 5 * scenario.sampling_error(shape)


def test_calibrated_scores_are_the_probability_of_being_positive() -> None:
    shape, scenario = Shape(0.8, "calibrated"), Scenario(1000, 100, 1, 1.0)
    first, second = scenario.counts(shape, 1000)
    middles, filled = (np.arange(1000) + 0.5) / 1000, first + second > 1e-3
    shares = first[filled] / (first + second)[filled]
    assert np.abs(shares - middles[filled]).max() < 1e-3


@given(
    st.floats(0.51, 0.99), st.sampled_from(["even", "calibrated"]), st.floats(0.001, 0.999),
    st.integers(1, 300), st.floats(0.0, 1.0),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_shares_are_distributions(
    area: float, form: Form, share: float, cells: int, threshold: float
) -> None:
    shape = Shape(area, form)
    for scale in SCALES:
        for part in shape.cell_fractions(cells, share, scale):
            assert part.shape == (cells,)
            assert np.all(part >= 0)
            assert abs(part.sum() - 1) < 1e-9
    first, second = shape.reaching(threshold, share)
    assert 0 <= second <= first + 1e-12 <= 1 + 2e-12


def test_scaling_keeps_shares_and_lone_clients() -> None:
    lone, others = Scenario(1000, 100, 1000, 1.0), Scenario(1000, 100, 10, 1.0)
    assert lone.scaled(3.0) == Scenario(3000, 300, 3000, 1.0)
    assert others.scaled(3.0) == Scenario(3000, 300, 10, 1.0)
    assert others.scaled(0.001).clients == 2
