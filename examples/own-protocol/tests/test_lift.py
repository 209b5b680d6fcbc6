"""The laws, the audit's attacks and a rehearsal with a fault, on a protocol of two rounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tacit_lift import Lift, lift_of, window_of

import tacit
import tacit.protocol as tp
from tacit.testing import Fault, audit, binormal_clients, laws_for, rehearse, simulate

globals().update(laws_for(Lift))


def test_attacks_come_near_the_guarantee_and_do_not_exceed_it() -> None:
    """A sound protocol exceeds it with probability 0.001 over the seed, which is fixed."""
    assert audit([tp.AuditCase("lift")], 1.0, seed=3, quick=True).passed


def test_a_lift_of_three_is_shown_with_its_interval() -> None:
    result = tacit.evaluate(binormal_clients(2000, 18000, 10, auc=0.9), Lift(1.0), seed=1)
    low, high = result.estimate.interval(0.95)
    assert 3 < low < result.estimate.value < high < 10
    assert not any("no figure" in warning for warning in result.warnings)


def test_a_party_that_vanishes_between_the_rounds_is_left_out() -> None:
    clients = binormal_clients(300, 700, 5)
    lost = [Fault("drop", party=2, round=4, times=9)]
    run = rehearse(clients, Lift(1.0, tp.SecureSum(dropouts=0.2)), lost, min_clients=4)
    assert run.server_result.protection is None
    assert run.spent.epsilon == 1.0


def test_what_is_left_of_the_guarantee_counts_both_rounds() -> None:
    clients = binormal_clients(300, 700, 8)
    fewer = simulate(clients, Lift(1.0), tp.SimulatedNoise(0), asked=10).server_result
    assert fewer.protection is not None
    assert 1 < fewer.protection.epsilon < math.inf


def test_the_window_holds_the_border_of_the_decile() -> None:
    scores = np.sort(np.random.default_rng(1).random(5000))
    low, high = window_of(np.histogram(scores, 32, (0, 1))[0].astype(float), 8.0)
    assert low <= scores[4500] <= high < low + 0.1


def test_without_signal_there_is_no_figure() -> None:
    lift, by_count, _ = lift_of(np.array([[3.0, -4.0], [0.0, 0.0], [9.0, 1.0]]))
    assert np.isnan(lift)
    assert np.isnan(by_count).all()


@pytest.mark.parametrize("records", [300, 2000])
def test_intervals_cover_on_small_data(records: int) -> None:
    """Of 400 draws of data and noise 95 % are covered, less 4 standard errors of 1.1 %."""
    covered = []
    for seed in range(400):
        clients = binormal_clients(records // 4, records - records // 4, 4, seed=seed)
        run = simulate(clients, Lift(1.0), tp.SimulatedNoise(seed))
        covered.append(bool(run.server_result.covers(Lift(1.0).exact(clients))))
    assert 0.906 < np.mean(covered) < 0.994
