"""Likely masses: expectation and maximisation against a slow reference; acceleration that holds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.local.turns import acceleration_of, estimated_masses
from tacit.local.two_round.first_round import FirstRound
from tacit.privacy.bounded import SlidingWindow


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    rows=st.integers(1, 3),
    inputs=st.integers(2, 6),
    acceleration=st.sampled_from([1.0, 2.0]),
)
def test_masses_follow_the_reference(
    seed: int, rows: int, inputs: int, acceleration: float
) -> None:
    rng = np.random.default_rng(seed)
    table = SlidingWindow(1.0, inputs, 2).probabilities
    counts = rng.integers(0, 400, (rows, inputs + 1))
    estimated = estimated_masses(counts, table, acceleration)
    np.testing.assert_allclose(estimated.sum(axis=-1), 1.0)
    for row, masses in zip(counts, estimated, strict=True):
        np.testing.assert_allclose(
            masses, slow_masses(row.tolist(), table, acceleration), rtol=1e-8, atol=1e-12
        )


def slow_masses(counts: list[int], table: Any, acceleration: float) -> Any:
    """Expectation and maximisation record by record, until a step gains less than 0.1."""
    masses, last = np.full(table.shape[0], 1 / table.shape[0]), -math.inf
    if not sum(counts):
        return masses
    while True:
        reached = sum(n * math.log(masses @ table[:, o]) for o, n in enumerate(counts))
        if reached - last < 0.1:
            return masses
        last, ratios = reached, np.zeros_like(masses)
        for output, times in enumerate(counts):
            ratios += times / sum(counts) * table[:, output] / (masses @ table[:, output])
        masses = masses * ratios ** max(1.0, min(acceleration, 1.0 / np.abs(np.log(ratios)).max()))
        masses = masses / masses.sum()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("private", [False, True])
def test_the_acceleration_stays_below_what_diverges(epsilon: float, private: bool) -> None:
    """From equal masses, and from masses that all lie at the two ends, likelihood only rises."""
    first_round = FirstRound(epsilon, private)
    table, acceleration = first_round._table, acceleration_of(first_round._table)
    ends = np.zeros(table.shape[0])
    ends[[0, -1]] = 0.5
    for truth in (np.full(table.shape[0], 1 / table.shape[0]), ends):
        counts = np.rint(1e7 * truth @ table)
        masses, last = np.full(table.shape[0], 1 / table.shape[0]), -math.inf
        for _ in range(60):
            reached = float(counts @ np.log(masses @ table))
            assert reached >= last - 1e-6
            last = reached
            masses = masses * ((counts / counts.sum() / (masses @ table)) @ table.T) ** acceleration
            masses = masses / masses.sum()
