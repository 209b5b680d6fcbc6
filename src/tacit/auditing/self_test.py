"""An audit of the audit: mechanisms with a mistake must be caught, sound ones must not be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tacit.auditing import inferring, steps
from tacit.auditing.broken import (
    GridNoise,
    RepeatedNoise,
    ScaledNoise,
    SmallSensitivity,
    TwoReleases,
)
from tacit.auditing.exposure import Exposure, judged_together
from tacit.auditing.neighbours import federation
from tacit.auditing.protocol_audit import CONFIDENCE, PART
from tacit.auditing.steps import Effort, NoiseMaker, StepAudit, audit_target, simulated, targets_of
from tacit.protocols.conversation import Protocol
from tacit.protocols.dpauc import DPAUC
from tacit.protocols.fedauc import FedAUC

SYSTEM_TRIES = 30_000
"""Draws from the operating system, which are slow."""

TOLD = 0.4
"""The advantage that the strongest attack of its kind on an exact release must surely have."""


@dataclass(frozen=True)
class Trial:
    """A mechanism that the audit is tried on.

    Parameters
    ----------
    name : what it is.
    broken : whether it has a mistake.
    protocol : what it declares.
    noise : what it draws instead of the noise that it should draw.
    records : of its one client.
    low_bits : whether the low bits of numbers are looked at.
    system : whether it draws from the operating system: slowly and never the same, so that an
        attack on it is a control only, and not judged by how near it comes to what is declared.
    """

    name: str
    broken: bool
    protocol: Protocol
    noise: NoiseMaker = simulated
    records: int = 4
    low_bits: bool = False
    system: bool = False


@dataclass(frozen=True)
class TrialOutcome:
    """What the audit said of a trial.

    Parameters
    ----------
    name : what was tried.
    broken : whether it has a mistake.
    audit : the attack that reached the largest share of what is declared.
    """

    name: str
    broken: bool
    audit: StepAudit

    @property
    def passed(self) -> bool:
        """Whether a mistake was caught, or a sound mechanism seen to be tight and left alone."""
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
    seed : makes it repeatable, but for noise from the operating system.
    trials : mechanisms with and without a mistake.
    exposures : attacks on labels, of which those on exact releases must succeed.
    """

    seed: int
    trials: tuple[TrialOutcome, ...]
    exposures: tuple[Exposure, ...]

    @property
    def silent(self) -> list[str]:
        """Attacks that no exact release made succeed."""
        best: dict[str, float] = {}
        for one in self.exposures:
            if not one.protected:
                best[one.attack] = max(best.get(one.attack, -1.0), one.bounds[0])
        return [attack for attack, low in best.items() if low < TOLD]

    @property
    def passed(self) -> bool:
        """Whether all trials came out right and all attacks on exact releases succeed."""
        sound = all(one.passed for one in self.trials) and all(own.holds for own in self.exposures)
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
    seed : makes it repeatable, but for noise from the operating system.
    quick : fewer draws.
    progress : is told what is tried next.
    """
    effort = steps.QUICK if quick else steps.FULL
    made = trials()
    seeds = np.random.SeedSequence(seed).generate_state(len(made), np.uint64)
    outcomes = []
    for trial, own in zip(made, seeds, strict=True):
        progress(trial.name)
        outcomes.append(tried(trial, int(own), effort, PART / len(made)))
    progress("labels")
    sizes = inferring.QUICK if quick else inferring.FULL
    attacked = [DPAUC(1.0), FedAUC(1.0, "discrete-laplace", "adaptive")]
    exposures = [one for own in attacked for one in inferring.exposures_of(own, sizes, seed)]
    return SelfTest(seed, tuple(outcomes), judged_together(exposures, PART))


def trials() -> list[Trial]:
    """Sound mechanisms, and the same with a mistake each, at epsilon 1."""
    histogram, adaptive = DPAUC(1.0, 4), FedAUC(1.0, "staircase", "adaptive")
    response = FedAUC(1.0, "randomised-response")
    laplace = FedAUC(1.0, "laplace", "fixed")
    twice, doubled = TwoReleases(1.0, 4), TwoReleases(1.0, 4, declared=1.0)
    halved, lowered = partial(ScaledNoise, 0.5), partial(ScaledNoise, 0.7)
    return [
        Trial("noisy histogram", False, histogram),
        Trial("its noise halved", True, histogram, halved),
        Trial("its noise 30 % too small", True, histogram, lowered),
        Trial("its sensitivity too small", True, SmallSensitivity(1.0, 4, adjacency="replace")),
        Trial("noisy rank sums", False, adaptive),
        Trial("their noise halved", True, adaptive, halved),
        Trial("flipped labels", False, response, records=2),
        Trial("flipped half as often", True, response, halved, records=2),
        Trial("two releases at twice epsilon", False, twice),
        Trial("their budget counted twice", True, doubled),
        Trial("their noise from one seed", True, twice, RepeatedNoise),
        Trial(
            "Laplace noise on a grid, low bits",
            False,
            laplace,
            GridNoise,
            low_bits=True,
            system=True,
        ),
        Trial("floating-point noise, low bits", True, laplace, low_bits=True),
    ]


def tried(trial: Trial, seed: int, effort: Effort, error: float) -> TrialOutcome:
    """Attack a trial's mechanism, every step and the whole run, and keep the worst outcome."""
    if trial.system:
        effort = replace(effort, tries=min(effort.tries, SYSTEM_TRIES), pilot=500)
    clients = federation(trial.records, apart=False)
    spending = [
        target
        for target in targets_of(trial.protocol, clients, noise=trial.noise, tight=not trial.system)
        if target.declared.epsilon > 0
    ]
    found = [
        audit_target(target, trial.noise, seed, effort, error / len(spending), trial.low_bits)
        for target in spending
    ]
    worst = max(found, key=lambda one: one.share or 0.0)
    return TrialOutcome(trial.name, trial.broken, worst)
