from __future__ import annotations

from dataclasses import replace

import pytest

from tacit.auditing.exposure import Exposure
from tacit.auditing.protocol_audit import audit
from tacit.auditing.self_test import SelfTest, TrialOutcome, self_test, trials, tried
from tacit.auditing.steps import QUICK, StepAudit
from tacit.protocol.declarations.audits import AuditCase, AuditTrial


@pytest.mark.parametrize("trial", trials(), ids=lambda trial: trial.name)
def test_mistakes_are_caught_and_sound_mechanisms_are_not(trial: AuditTrial) -> None:
    """Sound ones are refuted with probability below 1e-4 each; one draws without a seed."""
    result = tried(trial, seed=5, effort=QUICK, error=1e-4)
    assert result.passed, result
    assert result.verdict == ("caught" if trial.broken else "holds")


def test_every_named_mistake_is_tried() -> None:
    names = " ".join(trial.name for trial in trials() if trial.broken)
    for mistake in ("halved", "one seed", "counted twice", "low bits", "30 %"):
        assert mistake in names


def outcome(name: str, broken: bool, audited: StepAudit) -> TrialOutcome:
    return TrialOutcome(name, broken, audited)


def test_what_comes_out_wrong_fails() -> None:
    (step,) = audit([AuditCase("dpauc", {"thresholds": 4})], 1.0, quick=True).steps
    assert step.bound is not None
    beyond = replace(step, bound=replace(step.bound, epsilon=1.5))
    below = replace(step, bound=replace(step.bound, epsilon=0.1))
    assert outcome("a", broken=True, audited=step).verdict == "MISSED"
    assert outcome("a", broken=False, audited=beyond).verdict == "FALSE ALARM"
    assert outcome("a", broken=False, audited=below).verdict == "WEAK"
    good, bad = outcome("a", True, beyond), outcome("a", False, beyond)
    reported = Exposure("labels", "exact", protected=False, right=99, tries=100, blind=0.5)
    silent = replace(reported, right=55)
    betrayed = replace(reported, protected=True, ceiling=0.1)
    assert SelfTest(0, (good,), (reported,)).passed
    assert not SelfTest(0, (good, bad), (reported,)).passed
    assert not SelfTest(0, (good,), (silent,)).passed
    assert SelfTest(0, (good,), (silent,)).silent == ["labels"]
    assert not SelfTest(0, (good,), (reported, betrayed)).passed


def test_a_self_test_passes_and_is_repeatable_but_for_noise_from_the_system() -> None:
    messages: list[str] = []
    result = self_test(seed=1, quick=True, progress=messages.append)
    assert result.passed
    assert messages == [*(trial.name for trial in trials()), "labels"]
    assert len(result.to_dict()["trials"]) == len(trials())
