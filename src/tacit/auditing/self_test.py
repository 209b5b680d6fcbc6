"""An audit of the audit: it must refute mechanisms with a mistake, and no sound ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.auditing import inferring, steps
from tacit.auditing.exposure import Exposure, judged_together
from tacit.auditing.protocol_audit import CONFIDENCE, PART
from tacit.auditing.steps import Effort, StepAudit, audit_target, targets_of
from tacit.protocol.audits import LOW_BITS, TOPICS, AuditTrial, SelfTestCases
from tacit.protocol.registry import protocol_kinds

SYSTEM_TRIES = 30_000
"""Number of draws with noise from the operating system, which is slow."""

MIN_ADVANTAGE = 0.4
"""Smallest lower bound on the advantage of the strongest attack of a kind on an exact release."""


@dataclass(frozen=True)
class TrialOutcome:
    """The outcome of a trial.

    Parameters
    ----------
    name : what was tried.
    broken : whether it has a mistake.
    audit : the attack that reached the largest share of the declared epsilon.
    """

    name: str
    broken: bool
    audit: StepAudit

    @property
    def passed(self) -> bool:
        """Whether a mistake was refuted, or a sound mechanism was found tight and not refuted."""
        if self.broken:
            return not self.audit.holds
        return self.audit.holds and not self.audit.weak

    @property
    def verdict(self) -> str:
        """In a word or two."""
        if self.broken:
            return "caught" if self.passed else "MISSED"
        if not self.audit.holds:
            return "FALSE ALARM"
        return "holds" if self.passed else "WEAK"

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "name": self.name,
            "broken": self.broken,
            "passed": self.passed,
            "verdict": self.verdict,
        } | {"attack": self.audit.to_dict()}


@dataclass(frozen=True)
class SelfTest:
    """The outcome of a self-test.

    Parameters
    ----------
    seed : makes it repeatable, except for noise from the operating system.
    trials : mechanisms with and without a mistake.
    exposures : attacks on labels; those on exact releases must succeed.
    """

    seed: int
    trials: tuple[TrialOutcome, ...]
    exposures: tuple[Exposure, ...]

    @property
    def silent(self) -> list[str]:
        """Attacks that succeed on no exact release."""
        best: dict[str, float] = {}
        for exposure in self.exposures:
            if not exposure.protected:
                best[exposure.attack] = max(best.get(exposure.attack, -1.0), exposure.bounds[0])
        return [attack for attack, low in best.items() if low < MIN_ADVANTAGE]

    @property
    def passed(self) -> bool:
        """Whether all trials came out right and all attacks on exact releases succeed."""
        sound = all(trial.passed for trial in self.trials) and all(
            exposure.holds for exposure in self.exposures
        )
        return sound and not self.silent

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "seed": self.seed,
            "confidence": CONFIDENCE,
            "passed": self.passed,
            "trials": [trial.to_dict() for trial in self.trials],
            "exposures": [exposure.to_dict() for exposure in self.exposures],
            "attacks_without_success": self.silent,
        }


def self_test(
    seed: int = 0, quick: bool = False, progress: Callable[[str], None] = lambda text: None
) -> SelfTest:
    """Try the audit on sound and on broken mechanisms, and the attacks on exact releases.

    Parameters
    ----------
    seed : makes it repeatable, except for noise from the operating system.
    quick : fewer draws.
    progress : is called with the name of the next trial.
    """
    effort = steps.QUICK if quick else steps.FULL
    made = trials()
    seeds = np.random.SeedSequence(seed).generate_state(len(made), np.uint64)
    outcomes = []
    for trial, trial_seed in zip(made, seeds, strict=True):
        progress(trial.name)
        outcomes.append(tried(trial, int(trial_seed), effort, PART / len(made)))
    progress("labels")
    sizes = inferring.QUICK if quick else inferring.FULL
    attacked = [protocol for each in _declared() for protocol in each.attacked]
    exposures = [
        exposure for each in attacked for exposure in inferring.exposures_of(each, sizes, seed)
    ]
    return SelfTest(seed, tuple(outcomes), judged_together(exposures, PART))


def trials() -> list[AuditTrial]:
    """Sound mechanisms and mechanisms with a mistake, as protocols declare them, by topic."""
    declared = [trial for each in _declared() for trial in each.trials]
    return sorted(declared, key=lambda trial: TOPICS.index(trial.topic))


def _declared() -> list[SelfTestCases]:
    """The cases that protocols add to the self-test, in the order of their first topics."""
    declared = [kind.self_test_cases() for kind in protocol_kinds().values()]
    used = [cases for cases in declared if cases.trials]
    return sorted(used, key=lambda cases: min(TOPICS.index(trial.topic) for trial in cases.trials))


def tried(trial: AuditTrial, seed: int, effort: Effort, error: float) -> TrialOutcome:
    """Attack a trial's mechanism, every step and the whole run, and keep the worst outcome."""
    if trial.system:
        effort = replace(effort, tries=min(effort.tries, SYSTEM_TRIES), pilot=500)
    clients = trial.protocol.audit_federation(trial.records, apart=False)
    spending = [
        target
        for target in targets_of(trial.protocol, clients, noise=trial.noise, tight=not trial.system)
        if target.declared.epsilon > 0
    ]
    low_bits, part = trial.topic == LOW_BITS, error / len(spending)
    audits = [
        audit_target(target, trial.noise, seed, effort, part, low_bits) for target in spending
    ]
    worst = max(audits, key=lambda audit: audit.share or 0.0)
    return TrialOutcome(trial.name, trial.broken, worst)
