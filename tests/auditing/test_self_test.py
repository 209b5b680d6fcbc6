from __future__ import annotations

from dataclasses import replace

import pytest

from tacit.auditing.inferring import Exposure
from tacit.auditing.protocol_audit import SelfTest, TrialOutcome, audit, self_test, trials
from tacit.protocol import Adjacency, AuditCase, Cost

Done = tuple[SelfTest, list[str]]


@pytest.fixture(scope="module")
def done() -> Done:
    """A quick self-test, and the trials that it named on its way."""
    messages: list[str] = []
    return self_test(seed=1, quick=True, progress=messages.append), messages


@pytest.mark.parametrize("number", range(len(trials())), ids=lambda number: trials()[number].name)
def test_mistakes_are_caught_and_sound_mechanisms_are_not(done: Done, number: int) -> None:
    """All sound ones together are refuted with probability below 1e-3; one draws without a seed."""
    trial, result = trials()[number], done[0].trials[number]
    assert (result.name, result.passed) == (trial.name, True), result
    assert result.verdict == ("caught" if trial.broken else "holds")


def test_every_named_mistake_is_tried() -> None:
    names = " ".join(trial.name for trial in trials() if trial.broken)
    for mistake in ("halved", "one seed", "counted twice", "low bits", "30 %"):
        assert mistake in names


def test_what_comes_out_wrong_fails() -> None:
    (step,) = audit([AuditCase("dpauc", {"thresholds": 4})], 1.0, quick=True).steps
    assert step.bound is not None
    beyond = replace(step, bound=replace(step.bound, epsilon=1.5))
    below = replace(step, bound=replace(step.bound, epsilon=0.1))
    assert TrialOutcome("a", broken=True, audit=step).verdict == "MISSED"
    assert TrialOutcome("a", broken=False, audit=beyond).verdict == "FALSE ALARM"
    assert TrialOutcome("a", broken=False, audit=below).verdict == "WEAK"
    good, bad = TrialOutcome("a", True, beyond), TrialOutcome("a", False, beyond)
    reported = Exposure("labels", "exact", protected=False, right=99, tries=100, blind=0.5)
    silent = replace(reported, right=55)
    betrayed = replace(reported, protected=True, guarantee=Cost(0.2, adjacency=Adjacency.LABEL))
    assert SelfTest(0, (good,), (reported,)).passed
    assert not SelfTest(0, (good, bad), (reported,)).passed
    assert not SelfTest(0, (good,), (silent,)).passed
    assert SelfTest(0, (good,), (silent,)).silent == ["labels"]
    assert not SelfTest(0, (good,), (reported, betrayed)).passed


def test_a_self_test_passes_and_names_its_trials(done: Done) -> None:
    result, messages = done
    assert result.passed
    assert messages == [*(trial.name for trial in trials()), "labels"]
    assert len(result.to_dict()["trials"]) == len(trials())
