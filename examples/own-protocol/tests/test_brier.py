"""The laws, the audit's attacks and rehearsals with faults, on a protocol outside of tacit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from tacit_brier import Brier

import tacit
import tacit.protocol as tp
from tacit.testing import (
    Audit,
    Fault,
    Rehearsal,
    RunError,
    audit,
    binormal_clients,
    laws_for,
    rehearse,
    simulate,
)

ONE_LOST = tp.SecureSum(dropouts=0.2)

globals().update(laws_for(Brier))


@tp.register
@dataclass(frozen=True)
class HalfDeclared(Brier):
    """The same noise, which costs twice what the protocol guarantees here."""

    name = "brier-half-declared"

    @property
    def guarantee(self) -> tp.Cost:
        return tp.Cost(self.epsilon / 2, adjacency=tp.Adjacency.RECORD)


def attacked(name: str) -> Audit:
    return audit([tp.AuditCase(name)], 1.0, seed=3, quick=True)


def test_attacks_come_near_the_guarantee_and_do_not_exceed_it() -> None:
    """A sound protocol exceeds it with probability 0.001 over the seed, which is fixed."""
    outcome = attacked("brier")
    assert outcome.passed
    (step,) = outcome.steps
    assert step.verdict == "holds"  # neither refuted, nor a weak attack


def test_half_a_guarantee_is_rejected() -> None:
    outcome = attacked("brier-half-declared")
    assert not outcome.passed
    assert [step.verdict for step in outcome.steps] == ["holds", "EXCEEDED"]  # step, whole run


def near(run: Rehearsal, clients: tacit.Clients) -> bool:
    """Whether a figure is that of the members' records, within 12 standard errors.

    The noise of a sum lies within 12 standard deviations with probability above ``1 - exp(-12)``.
    """
    records = np.isin(clients.client_of_record, run.members)
    members = tacit.Clients.from_arrays(clients.scores[records], clients.labels[records])
    figure = run.server_result.estimate()
    exact = Brier(1.0).exact(members)
    return abs(figure.value - exact) < 12 * figure.standard_error < 0.2


@pytest.mark.parametrize("number", range(5))
def test_a_party_that_vanishes_is_left_out(number: int) -> None:
    """Before its masked sum came; afterwards it is in. All stop and resume after each message."""
    clients, protocol = binormal_clients(300, 700, 5), Brier(1.0, ONE_LOST)
    lost = [Fault("drop", party=2, round=number, times=9)]
    run = rehearse(clients, protocol, lost, min_clients=4, restarts=True)
    assert run.members == ((0, 1, 3, 4) if number < 3 else (0, 1, 2, 3, 4))
    assert near(run, clients)
    assert (run.spent, run.server_result.protection) == (protocol.guarantee, None)


@pytest.mark.parametrize("number", [1, 2])
def test_where_too_many_vanish_the_run_fails_or_the_sum_is_begun_again(number: int) -> None:
    """One before the sum's first round and one after it, of whom the noise allows for one."""
    clients, protocol = binormal_clients(300, 700, 5), Brier(1.0, ONE_LOST)
    lost = [Fault("drop", 2, 0), Fault("drop", 3, number)]
    with pytest.raises(RunError, match="of at least 4 clients must come, got 3"):
        rehearse(clients, protocol, lost, min_clients=4, restarts=True)
    run = rehearse(clients, protocol, lost, min_clients=4, restarts=True, on_loss="restart")
    assert run.members == (0, 1, 2, 3, 4)
    assert near(run, clients)
    masked = number > 1  # the others had sent their numbers, and debited them
    assert run.spent.epsilon == (2.0 if masked else 1.0)


def test_without_dropouts_nobody_may_vanish() -> None:
    lost = [Fault("drop", party=2, round=0)]
    with pytest.raises(RunError, match="at least 5 clients must come, got 4"):
        rehearse(binormal_clients(300, 700, 5), Brier(1.0), lost, min_clients=4)


def test_fewer_than_planned_weaken_the_protection_which_the_result_says() -> None:
    clients = binormal_clients(300, 700, 8)
    enough = simulate(clients, Brier(1.0, ONE_LOST), tp.SimulatedNoise(0), asked=10)
    assert enough.server_result.protection is None
    fewer = simulate(clients, Brier(1.0), tp.SimulatedNoise(0), asked=10)
    assert fewer.server_result.protection is not None
    assert 1 < fewer.server_result.protection.epsilon < math.inf


def test_the_sampling_error_is_that_of_a_mean() -> None:
    """Its noise is 11 records' squares in 20,000, of which the variance is more than a fiftieth."""
    clients = binormal_clients(8000, 12000, 20)
    errors = (clients.scores - clients.labels) ** 2
    estimate = tacit.evaluate(clients, Brier(1.0), seed=1).estimate
    expected = errors.std() / math.sqrt(errors.size)
    assert estimate.sampling_error == pytest.approx(expected, rel=0.05)


def test_what_noise_drowns_is_not_told() -> None:
    result = tacit.evaluate(binormal_clients(3, 3, 2), Brier(0.5), seed=1)
    assert math.isnan(result.estimate.value)
    assert "no figure" in result.warnings[-1]


def test_scores_outside_the_range_are_refused() -> None:
    clients = tacit.Clients.from_arrays(np.array([0.5, 5.0]), np.array([0, 1]))
    with pytest.raises(tacit.DataError, match=r"scores must be in \[0, 1\]"):
        tacit.evaluate(clients, Brier(1.0), seed=1)


def test_the_smallest_epsilon_is_the_least_that_a_plan_recommends() -> None:
    """There exact shares of the noise can still be drawn, as real parties draw them."""
    made = tacit.plan(40_000, 4_000, 10, 1.0, "secure-sum", metric="Brier score", target=0.05)
    assert made.recommended is not None
    assert 0.125 <= (made.recommended.smallest_epsilon or 0) < 0.14
    with pytest.raises(ValueError, match=r"take a larger epsilon than 0\.12"):
        tacit.evaluate(binormal_clients(30, 70, 5), Brier(0.12), seed=1)


@pytest.mark.parametrize(("epsilon", "trust"), [(0.0, "secure-sum"), (1.0, "each")])
def test_settings_out_of_range_are_refused(epsilon: float, trust: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        Brier(epsilon, trust)
