"""An audit of protocols: every client step attacked, and labels inferred from what is released.

The self-test audits the audit: it must refute mechanisms with a mistake, and no sound ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.auditing import inferring, steps
from tacit.auditing.steps import Effort, StepAudit, Target, audit_target, targets_of
from tacit.protocol import audits
from tacit.protocol.conversation import Protocol
from tacit.protocol.registry import protocol_kinds

CONFIDENCE = 0.999
"""Least probability that an audit of sound protocols raises no false alarm in any of its rows.

Half of the remaining probability is for the client steps, half for the attacks on labels.
"""

PART = (1 - CONFIDENCE) / 2
"""False-alarm probability of either half."""

TWO_RECORDS = 2
"""Number of records of a second, smaller attack: each may decide what is the largest or the only
one."""


def _entry(record: object, *names: str) -> dict[str, Any]:
    """Parts of a record by name, for JSON: those of several records are an entry each."""
    values = {name: getattr(record, name) for name in names}
    return {
        name: [each.to_dict() for each in value] if isinstance(value, tuple) else value
        for name, value in values.items()
    }


@dataclass(frozen=True)
class CaseAudit:
    """The attacks on the steps of a protocol with certain settings.

    Parameters
    ----------
    protocol : its name.
    settings : its settings without epsilon.
    steps : an outcome for each step, and for the whole run where several steps spend.
    """

    protocol: str
    settings: Mapping[str, Any]
    steps: tuple[StepAudit, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {**_entry(self, "protocol", "settings", "steps"), "settings": dict(self.settings)}


@dataclass(frozen=True)
class Audit:
    """The outcome of an audit.

    Parameters
    ----------
    epsilon : the budget that was audited; None where no protocol takes one.
    seed : makes it repeatable.
    cases : the attacks on client steps.
    exposures : the attacks on labels, of each protocol with its first settings.
    """

    epsilon: float | None
    seed: int
    cases: tuple[CaseAudit, ...]
    exposures: tuple[inferring.Exposure, ...]

    @property
    def steps(self) -> list[StepAudit]:
        """All attacks on client steps."""
        return [step for case in self.cases for step in case.steps]

    @property
    def passed(self) -> bool:
        """Whether nothing exceeds what is declared."""
        sound = all(step.holds for step in self.steps)
        return sound and all(exposure.holds for exposure in self.exposures)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        budget = _entry(self, "epsilon", "seed")
        return {**budget, "confidence": CONFIDENCE, **_entry(self, "passed", "cases", "exposures")}


def audit(
    cases: Sequence[audits.AuditCase],
    epsilon: float | None,
    seed: int = 0,
    quick: bool = False,
    progress: Callable[[str], None] = lambda text: None,
) -> Audit:
    """Attack every step of every case, and infer labels from what each protocol releases.

    Parameters
    ----------
    cases : protocols with their settings.
    epsilon : the budget of those that take one.
    seed : makes the audit repeatable, except for ciphertexts.
    quick : fewer draws, and so weaker attacks.
    progress : is called with the name of the next attack.

    Raises
    ------
    SettingError : for settings that a protocol does not take, or an epsilon that is missing.
    ImportError : for a protocol whose library is not installed, with the install command.

    Examples
    --------
    >>> case = audits.AuditCase("dpauc", {"thresholds": 4})
    >>> outcome = audit([case], 1.0, quick=True)
    >>> outcome.passed, outcome.steps[0].name, 0.6 < outcome.steps[0].share <= 1
    (True, 'noisy_histograms', True)
    """
    protocols = [case.protocol(epsilon) for case in cases]
    attacks = [_attacks(case, protocol) for case, protocol in zip(cases, protocols, strict=True)]
    error = PART / max(sum(map(len, itertools.chain(*attacks))), 1)
    effort = steps.QUICK if quick else steps.FULL
    seeds = np.random.SeedSequence(seed)

    def attacked(case: audits.AuditCase, targets: Sequence[Target]) -> StepAudit:
        """The attack on the case's records, or one on two records that refutes more."""
        progress(f"{case.name}: {targets[0].name}")
        target_seed = int(seeds.spawn(1)[0].generate_state(1, np.uint64)[0])
        first = audit_target(targets[0], seed=target_seed, effort=effort, error=error)
        others = (
            audit_target(each, seed=target_seed, effort=steps.FEW, error=error)
            for each in targets[1:]
        )
        return next((other for other in others if first.holds and not other.holds), first)

    outcomes = tuple(
        CaseAudit(case.name, case.settings, tuple(attacked(case, each) for each in targets))
        for case, targets in zip(cases, attacks, strict=True)
    )
    exposures = _exposures(protocols, seed, quick, progress)
    return Audit(epsilon, seed, outcomes, inferring.judged_together(exposures, PART))


def _attacks(case: audits.AuditCase, protocol: Protocol) -> list[list[Target]]:
    """The targets of a case, each alone or with the same step on a client of two records."""
    targets = targets_of(protocol, case.clients(protocol), case.one_by_one, case.tight)
    if case.apart or case.one_by_one or case.records <= TWO_RECORDS:
        return [[target] for target in targets]
    clients = protocol.audit_federation(TWO_RECORDS, apart=False)
    small = targets_of(protocol, clients, tight=False)
    by_name = {each.name: iter([t for t in small if t.name == each.name]) for each in small}
    none: Iterator[Target] = iter(())
    return [[each, *itertools.islice(by_name.get(each.name, none), 1)] for each in targets]


def _exposures(
    protocols: Sequence[Protocol], seed: int, quick: bool, progress: Callable[[str], None]
) -> list[inferring.Exposure]:
    sizes = inferring.QUICK if quick else inferring.FULL
    first = {protocol.name: protocol for protocol in reversed(protocols)}
    exposures = []
    for name in dict.fromkeys(protocol.name for protocol in protocols):
        progress(f"{name}: labels")
        fewer = replace(sizes, trials=sizes.trials // first[name].trials_divisor)
        exposures += inferring.exposures_of(first[name], fewer, seed)
    return list(dict.fromkeys(exposures))


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
        attack = {"attack": self.audit.to_dict()}
        return _entry(self, "name", "broken", "passed", "verdict") | attack


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
    exposures: tuple[inferring.Exposure, ...]

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
        sound = all(exposure.holds for exposure in self.exposures) and not self.silent
        return sound and all(trial.passed for trial in self.trials)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "seed": self.seed,
            "confidence": CONFIDENCE,
            **_entry(self, "passed", "trials", "exposures"),
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
    return SelfTest(seed, tuple(outcomes), inferring.judged_together(exposures, PART))


def trials() -> list[audits.AuditTrial]:
    """Sound mechanisms and mechanisms with a mistake, as protocols declare them, by topic."""
    declared = [trial for each in _declared() for trial in each.trials]
    return sorted(declared, key=lambda trial: audits.TOPICS.index(trial.topic))


def _declared() -> list[audits.SelfTestCases]:
    """The cases that protocols add to the self-test, in the order of their first topics."""
    declared = [kind.self_test_cases() for kind in protocol_kinds().values()]
    used = [cases for cases in declared if cases.trials]
    return sorted(
        used, key=lambda cases: min(audits.TOPICS.index(trial.topic) for trial in cases.trials)
    )


def tried(trial: audits.AuditTrial, seed: int, effort: Effort, error: float) -> TrialOutcome:
    """Attack a trial's mechanism, every step and the whole run, and keep the worst outcome."""
    if trial.system:
        effort = replace(effort, tries=min(effort.tries, SYSTEM_TRIES), pilot=500)
    clients = trial.protocol.audit_federation(trial.records, apart=False)
    spending = [
        target
        for target in targets_of(trial.protocol, clients, noise=trial.noise, tight=not trial.system)
        if target.declared.epsilon > 0
    ]
    low_bits, part = trial.topic == audits.LOW_BITS, error / len(spending)
    attacked = [
        audit_target(target, trial.noise, seed, effort, part, low_bits) for target in spending
    ]
    worst = max(attacked, key=lambda audit: audit.share or 0.0)
    return TrialOutcome(trial.name, trial.broken, worst)
