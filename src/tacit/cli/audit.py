"""``tacit audit``: attack the protocols, and try the attacks on broken mechanisms.

Audits and self-tests as text.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click
from click.exceptions import Exit

from tacit.auditing import protocol_audit
from tacit.auditing.inferring import Exposure
from tacit.auditing.steps import MIN_FRACTION, StepAudit
from tacit.cli.setting_options import Normalised, SettingsCommand, chosen_protocol
from tacit.cli.shell import JsonOutput, json_option, prompt_interrupt
from tacit.protocol import audits
from tacit.protocol.registry import kind_of, protocol_names
from tacit.results.text import aligned

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
    f"{1 - protocol_audit.CONFIDENCE:.1%} at most"
)


def audit_text(audit: protocol_audit.Audit) -> str:
    """An audit as tables, with a summary sentence."""
    heading = (
        "Client steps: epsilon as declared, and at least, by attacks on worst-case neighbours\n"
        f"({ALARM})"
    )
    blocks = [heading, *map(_case_text, audit.cases), exposure_text(audit.exposures)]
    return "\n\n".join([*filter(None, blocks), _summary(audit)])


def self_test_text(outcome: protocol_audit.SelfTest) -> str:
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
    by_attack = dict[str, dict[Row, None]]()
    for exposure in exposures:
        by_attack.setdefault(exposure.attack, {})[_exposure_row(exposure)] = None
    tables = [f"{attack}\n{_table([EXPOSURE_HEADING, *by_attack[attack]])}" for attack in by_attack]
    heading = (
        "What an attacker infers from exact (-) and from protected (+) releases: right guesses,\n"
        "blind ones, and the advantage between them (1 is knowing), which may be at most so much.\n"
        "p: how likely so many right guesses are, at most, where the guarantee holds"
    )
    return "\n\n".join([heading, *tables])


def _summary(audit: protocol_audit.Audit) -> str:
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


def _case_text(case: protocol_audit.CaseAudit) -> str:
    rows = [STEP_HEADING, *map(_step_row, case.steps)]
    settings = ", ".join(f"{name} {value}" for name, value in case.settings.items())
    return f"{case.protocol}, {settings or 'default settings'}\n{_table(rows)}"


def _step_row(step: StepAudit) -> Row:
    return (
        step.name,
        step.adjacency.value,
        *_bounds(step),
        "-" if step.share is None else f"{step.share:.0%}",
        step.verdict,
    )


def _trial_row(trial: protocol_audit.TrialOutcome) -> Row:
    name = f"{'! ' if trial.broken else '  '}{trial.name}"
    return (name, *_bounds(trial.audit), trial.verdict)


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


def _bounds(step: StepAudit) -> tuple[str, str]:
    """The declared epsilon with its delta, and the least epsilon that the attack proved."""
    declared, bound = step.declared, step.bound
    delta = f", {declared.delta:g}" if declared.delta else ""
    return f"{declared.epsilon:.3g}{delta}", "-" if bound is None else f"{bound.epsilon:.3f}"


def _table(rows: Sequence[Row]) -> str:
    """Rows of equal column widths, indented; the first row is the heading."""
    return "\n".join(f"  {line}" for line in aligned(rows))


REFUTED = 1
"""The exit status of an audit that refutes a guarantee, or a self-test that fails."""

EPSILON = 1.0
"""The epsilon of audited protocols by default."""

ALL = "all"


@click.command(cls=SettingsCommand)
@click.option(
    "--protocol",
    "name",
    type=Normalised((*protocol_names(), ALL)),
    help="The protocol to attack.",
)
@click.option(
    "--self-test",
    "testing",
    is_flag=True,
    help="Attack mechanisms with known mistakes instead: all must be caught.",
)
@click.option("--quick", is_flag=True, help="Fewer draws, and so weaker attacks.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="The seed.")
@json_option
@prompt_interrupt()
def audit(
    name: str | None,
    testing: bool,
    quick: bool,
    seed: int,
    output: JsonOutput,
    settings: dict[str, Any],
) -> None:
    """Attack a protocol: what epsilon do its replies show, and which labels?

    Every client step answers many times on two neighbouring data sets. An attack that
    distinguishes them proves a lower bound on epsilon, which must not exceed the declared one, 1 by
    default. Without other settings than --epsilon, several are attacked, so that every step
    answers. Nothing is spent: the records are synthetic and all noise is simulated.

    Examples:
      tacit audit --protocol dpauc --epsilon 1
      tacit audit --protocol published-fedauc --epsilon 2 --allocation adaptive
      tacit audit --protocol all --epsilon 1 --quick --json
      tacit audit --self-test

    Exit status:
      0  nothing exceeds what is declared; the self-test came out as it should
      1  a guarantee is refuted; the self-test did not
      2  an error; one sentence says which
    """
    outcome: protocol_audit.Audit | protocol_audit.SelfTest
    if testing:
        if name is not None or settings:
            raise click.UsageError("--self-test takes no protocol and no settings")
        outcome = protocol_audit.self_test(seed, quick, _show_progress)
        text = self_test_text(outcome)
    elif name is None:
        raise click.UsageError("give --protocol, or --self-test")
    else:
        cases = _cases(name, settings)
        takes = any(case.takes_epsilon for case in cases)
        epsilon = settings.get("epsilon", EPSILON) if takes else None
        outcome = protocol_audit.audit(cases, epsilon, seed, quick, _show_progress)
        text = audit_text(outcome)
    output.show(outcome.to_dict(), lambda: text)
    if not outcome.passed:
        raise Exit(REFUTED)


def _cases(name: str, chosen: dict[str, Any]) -> list[audits.AuditCase]:
    """What to attack: the settings that were chosen, or those that make every step answer."""
    others = {key: value for key, value in chosen.items() if key != "epsilon"}
    if name != ALL and others:
        takes = kind_of(name).takes_epsilon(others)
        chosen_protocol(name, {"epsilon": EPSILON} | chosen if takes else chosen)
        return [kind_of(name).audit_case(others)]
    if others:
        raise click.UsageError("--protocol all takes no settings but --epsilon")
    names = protocol_names() if name == ALL else (name,)
    cases = [case for each in names for case in kind_of(each).audit_cases()]
    if "epsilon" in chosen and not any(case.takes_epsilon for case in cases):
        raise click.UsageError(f"--epsilon cannot be used with --protocol {name}")
    return cases


def _show_progress(text: str) -> None:
    """Show on a terminal what is attacked, and replace the text before."""
    if sys.stderr.isatty():
        click.echo(f"\r\033[K{text}\r", nl=False, err=True)
