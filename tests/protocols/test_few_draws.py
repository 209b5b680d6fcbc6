"""Intervals where few draws of noise are far from normal."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tacit
from tacit.protocols.shared.trees.levels import Levels
from tests.federations import binormal_clients

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("levels", [Levels(12, 3, 3.0, 4.0), Levels(12, 0, 7.0, 0.0)])
def test_the_law_of_cells_has_the_variance_of_their_weighted_sum(levels: Levels) -> None:
    weights = RNG.normal(size=(2, 12)), RNG.normal(size=(2, 12))
    law = levels.law(weights, 3, 2.0, np.zeros(2))
    assert law is not None
    noise = levels.noise(3, 2.0)
    np.testing.assert_allclose(law.variance, sum(noise.variance_of(each) for each in weights))


def test_many_small_draws_are_normal() -> None:
    weights = RNG.normal(size=64), RNG.normal(size=64)
    assert Levels(64, 0, 0.5, 0.0).law(weights, 10, 1.0, np.zeros(())) is None


def test_few_clients_have_a_law_and_many_none() -> None:
    for clients, known in ((3, True), (40, False)):
        records = binormal_clients(400, 600, clients)
        result = tacit.evaluate(records, tacit.FedAUC(8.0), seed=1)
        assert (result.auc.law is not None) == known
        low, high = result.auc.interval(0.95)
        errors = (high - low) / 2 / result.auc.standard_error
        assert (abs(errors - 1.96) > 0.1) == known


def test_intervals_of_a_law_reach_replicates_and_the_population() -> None:
    records = binormal_clients(300, 300, 3)
    result = tacit.evaluate(records, tacit.DPAUC(8.0, 100), seed=1).auc
    assert result.law is not None
    narrow, wide = result.interval(0.95), result.interval(0.95, about="population")
    assert wide.low < narrow.low < result.value < narrow.high < wide.high
    assert math.hypot(result.sampling_error, result.standard_error) * 1.9 < wide.high - result.value


@pytest.mark.parametrize("protocol", [tacit.FedAUC(8.0), tacit.DPAUC(8.0, 100)])
def test_a_file_holds_the_draws_and_gives_the_same_intervals(protocol: tacit.Protocol) -> None:
    result = tacit.evaluate(binormal_clients(300, 300, 3), protocol, seed=1)
    read = tacit.Evaluation.from_dict(result.to_dict())
    assert "draws" in result.to_dict()["auc"]
    assert read.to_dict()["auc"] == result.to_dict()["auc"]
    for level in (0.5, 0.99):
        assert read.auc.interval(level) == result.auc.interval(level)


def test_a_law_of_many_cells_is_not_computed() -> None:
    weights = np.ones(600), np.ones(600)
    assert Levels(600, 0, 9.0, 0.0).law(weights, 1, 1.0, np.zeros(())) is None
