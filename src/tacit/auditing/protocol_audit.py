"""An audit of protocols: every client step attacked, and labels inferred from what is released."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.auditing import inferring, steps
from tacit.auditing.exposure import Exposure, judged_together
from tacit.auditing.steps import StepAudit, Target, audit_target, targets_of
from tacit.protocol import audits
from tacit.protocol.conversation import Protocol

CONFIDENCE = 0.999
"""Least probability that an audit of sound protocols raises no false alarm in any of its rows.

Half of the remaining probability is for the client steps, half for the attacks on labels.
"""

PART = (1 - CONFIDENCE) / 2
"""False-alarm probability of either half."""

TWO_RECORDS = 2
"""Number of records of a second, smaller attack: each may decide what is the largest or the only
one."""


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
        return {
            "protocol": self.protocol,
            "settings": dict(self.settings),
            "steps": [step.to_dict() for step in self.steps],
        }


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
    exposures: tuple[Exposure, ...]

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
        return {
            "epsilon": self.epsilon,
            "seed": self.seed,
            "confidence": CONFIDENCE,
            "passed": self.passed,
            "cases": [case.to_dict() for case in self.cases],
            "exposures": [exposure.to_dict() for exposure in self.exposures],
        }


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
    >>> case = AuditCase("dpauc", {"thresholds": 4})
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
    return Audit(epsilon, seed, outcomes, judged_together(exposures, PART))


def _attacks(case: audits.AuditCase, protocol: Protocol) -> list[list[Target]]:
    """The targets of a case, each alone or with the same step on a client of two records."""
    targets = targets_of(protocol, case.clients(protocol), case.one_by_one, case.tight)
    if case.apart or case.one_by_one or case.records <= TWO_RECORDS:
        return [[target] for target in targets]
    clients = protocol.audit_federation(TWO_RECORDS, apart=False)
    small = defaultdict(list)
    for target in targets_of(protocol, clients, tight=False):
        small[target.name].append(target)
    return [[target, *_first(small[target.name])] for target in targets]


def _first(left: list[Target]) -> list[Target]:
    """The first of those that are left, and none of them twice."""
    return [left.pop(0)] if left else []


def _exposures(
    protocols: Sequence[Protocol], seed: int, quick: bool, progress: Callable[[str], None]
) -> list[Exposure]:
    sizes = inferring.QUICK if quick else inferring.FULL
    first = {protocol.name: protocol for protocol in reversed(protocols)}
    exposures = []
    for name in dict.fromkeys(protocol.name for protocol in protocols):
        progress(f"{name}: labels")
        fewer = replace(sizes, trials=sizes.trials // first[name].trials_divisor)
        exposures += inferring.exposures_of(first[name], fewer, seed)
    return list(dict.fromkeys(exposures))
