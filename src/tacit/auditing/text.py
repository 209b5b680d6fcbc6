"""Audits and self-tests as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.auditing.exposure import Exposure
from tacit.auditing.protocol_audit import CONFIDENCE, Audit, CaseAudit
from tacit.auditing.self_test import SelfTest, TrialOutcome
from tacit.auditing.steps import MIN_FRACTION, StepAudit

Row = tuple[str, ...]

STEP_HEADING = ("step", "hides", "declared", "at least", "reached", "verdict")
EXPOSURE_HEADING = (
    "release",
    "right",
    "blind",
    "advantage",
    "95 % interval (each row)",
    "at most",
    "verdict",
)


ALARM = (
    f"verdicts of all rows, labels among them, raise a false alarm with probability "
    f"{1 - CONFIDENCE:.1%} at most"
)


def audit_text(audit: Audit) -> str:
    """An audit as tables, with a summary sentence."""
    heading = (
        "Client steps: epsilon as declared, and at least, by attacks on worst-case neighbours\n"
        f"({ALARM})"
    )
    blocks = [heading, *map(_case_text, audit.cases), exposure_text(audit.exposures)]
    return "\n\n".join([*filter(None, blocks), _summary(audit)])


def self_test_text(outcome: SelfTest) -> str:
    """A self-test as tables, with a summary sentence."""
    heading = f"Mechanisms with a mistake (!) must be refuted, sound ones left alone\n({ALARM})"
    columns = ("mechanism", "declared", "at least", "verdict")
    rows = [columns, *map(_trial_row, outcome.trials)]
    caught = sum(trial.passed for trial in outcome.trials)
    summary = f"{caught} of {len(outcome.trials)} mechanisms came out as they should"
    silent = "; without success on an exact release: " + ", ".join(outcome.silent)
    summary += f"{silent if outcome.silent else '; every attack succeeds on an exact release'}."
    return "\n\n".join([heading, _table(rows), exposure_text(outcome.exposures), summary])


def exposure_text(exposures: Sequence[Exposure]) -> str:
    """Attacks on labels, grouped by what is guessed; empty where there are none."""
    if not exposures:
        return ""
    groups = []
    for attack in dict.fromkeys(exposure.attack for exposure in exposures):
        rows: list[Row] = [EXPOSURE_HEADING]
        distinct = dict.fromkeys(
            _exposure_row(exposure) for exposure in exposures if exposure.attack == attack
        )
        groups.append(f"{attack}\n{_table([*rows, *distinct])}")
    heading = (
        "What an attacker infers from exact (-) and from protected (+) releases: right guesses,\n"
        "blind ones, and the advantage between them (1 is knowing), which may be at most so much.\n"
        "p: how likely so many right guesses are, at most, where the guarantee holds"
    )
    return "\n\n".join([heading, *groups])


def settings_text(settings: Mapping[str, Any]) -> str:
    """Settings as a phrase."""
    return ", ".join(f"{name} {value}" for name, value in settings.items()) or "default settings"


def _summary(audit: Audit) -> str:
    wrong = [step for step in audit.steps if not step.within]
    telling = sum(not step.constant_cost for step in audit.steps)
    weak = sum(step.weak for step in audit.steps)
    more = [exposure for exposure in audit.exposures if not exposure.holds]
    if wrong or more or telling:
        costs = f"; {telling} declared costs DEPEND on the records" if telling else ""
        return (
            f"{len(wrong)} of {len(audit.steps)} bounds EXCEED what is declared, and "
            f"{len(more)} advantages what it allows{costs}."
        )
    sentence = f"None of {len(audit.steps)} attacks on steps refutes what is declared"
    if weak:
        sentence += f"; {weak} reached less than {MIN_FRACTION:.0%} of it, and say little"
    bounded = sum(exposure.ceiling is not None for exposure in audit.exposures)
    if bounded:
        sentence += f"; none of {bounded} attacks on labels is above its bound by more than chance"
    return f"{sentence}."


def _case_text(case: CaseAudit) -> str:
    rows = [STEP_HEADING, *map(_step_row, case.steps)]
    return f"{case.protocol}, {settings_text(case.settings)}\n{_table(rows)}"


def _step_row(step: StepAudit) -> Row:
    bound = step.bound
    return (
        step.name,
        step.adjacency.value,
        _epsilon(step.declared.epsilon, step.declared.delta),
        "-" if bound is None else f"{bound.epsilon:.3f}",
        "-" if step.share is None else f"{step.share:.0%}",
        step.verdict,
    )


def _trial_row(trial: TrialOutcome) -> Row:
    bound = trial.audit.bound
    declared = _epsilon(trial.audit.declared.epsilon, trial.audit.declared.delta)
    least = "-" if bound is None else f"{bound.epsilon:.3f}"
    return (f"{'! ' if trial.broken else '  '}{trial.name}", declared, least, trial.verdict)


def _exposure_row(exposure: Exposure) -> Row:
    low, high = exposure.bounds
    return (
        f"{'+' if exposure.protected else '-'} {exposure.release}",
        f"{exposure.share:.1%}",
        f"{exposure.blind:.1%}",
        f"{exposure.advantage:.3f}",
        f"{low:.3f} to {high:.3f}",
        "-" if exposure.ceiling is None else f"{exposure.ceiling:.3f}",
        exposure.verdict,
    )


def _epsilon(epsilon: float, delta: float) -> str:
    return f"{epsilon:.3g}" if delta == 0 else f"{epsilon:.3g}, {delta:g}"


def _table(rows: Sequence[Row]) -> str:
    """Rows of equal column widths, indented; the first row is the heading."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join(f"  {line}" for line in lines)
