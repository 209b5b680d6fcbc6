"""``tacit audit``: attack the protocols, and try the attacks on broken mechanisms."""

from __future__ import annotations

import sys
from typing import Any

import click

from tacit.auditing.cases import cases_of, chosen_case
from tacit.auditing.protocol_audit import audit as audit_cases
from tacit.auditing.self_test import self_test
from tacit.auditing.text import audit_text, self_test_text
from tacit.cli.options.settings import SettingsCommand, chosen_protocol
from tacit.cli.options.spelled import Spelled
from tacit.cli.shell import as_json, prompt_interrupt, show
from tacit.protocol.declarations.audits import AuditCase
from tacit.protocol.registry import protocol_names

REFUTED = 1
"""The exit status of an audit that refutes a guarantee, or a self-test that fails."""

ALL = "all"
AUDIT_EXAMPLES = """\b
Examples:
  tacit audit --protocol dpauc --epsilon 1
  tacit audit --protocol published-fedauc --epsilon 2 --allocation adaptive
  tacit audit --protocol all --epsilon 1 --quick --json
  tacit audit --self-test

\b
Exit status:
  0  nothing exceeds what is declared; the self-test came out as it should
  1  a guarantee is refuted; the self-test did not
  2  an error; one sentence says which
"""


@click.command(cls=SettingsCommand, settings_after="print_json", epilog=AUDIT_EXAMPLES)
@click.option(
    "--protocol",
    "name",
    type=Spelled((*protocol_names(), ALL)),
    help="The protocol to attack.",
)
@click.option(
    "--self-test",
    "testing",
    is_flag=True,
    help="Attack mechanisms with known mistakes instead: all must be caught.",
)
@click.option("--quick", is_flag=True, help="Fewer draws, and so weaker attacks.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The seed.")
@click.option("--json", "print_json", is_flag=True, help="Print the outcome as JSON.")
@click.pass_context
def audit(
    context: click.Context,
    /,
    name: str | None,
    testing: bool,
    quick: bool,
    seed: int,
    print_json: bool,
    **settings: Any,
) -> None:
    """Attack a protocol: what epsilon do its replies show, and which labels do they reveal?

    Every client step answers many times on two neighbouring data sets. An attack that
    distinguishes them proves a lower bound on epsilon, which must not exceed the declared one.
    Without other settings than --epsilon, several are attacked, so that every step answers. Nothing
    is spent: the records are synthetic and all noise is simulated.
    """
    chosen = {key: value for key, value in settings.items() if value is not None}
    if testing:
        if name is not None or chosen:
            raise click.UsageError("--self-test takes no protocol and no settings")
        with prompt_interrupt():
            tested = self_test(seed, quick, _show_progress)
        passed, text = tested.passed, self_test_text(tested)
        content = tested.to_dict()
    elif name is None:
        raise click.UsageError("give --protocol, or --self-test")
    else:
        cases = _cases(name, chosen)
        with prompt_interrupt():
            audited = audit_cases(cases, chosen.get("epsilon"), seed, quick, _show_progress)
        passed, text = audited.passed, audit_text(audited)
        content = audited.to_dict()
    show(as_json(content) if print_json else text)
    if not passed:
        context.exit(REFUTED)


def _cases(name: str, chosen: dict[str, Any]) -> list[AuditCase]:
    """What to attack: the settings that were chosen, or those that make every step answer."""
    others = {key: value for key, value in chosen.items() if key != "epsilon"}
    if name != ALL and others:
        chosen_protocol(name, chosen)
        return [chosen_case(name, others)]
    if others:
        raise click.UsageError("--protocol all takes no settings but --epsilon")
    names = protocol_names() if name == ALL else (name,)
    cases = [case for each in names for case in cases_of(each)]
    budgeted = any(case.takes_epsilon for case in cases)
    if budgeted and "epsilon" not in chosen:
        raise click.UsageError(f"--protocol {name} needs --epsilon")
    if not budgeted and "epsilon" in chosen:
        raise click.UsageError(f"--epsilon cannot be used with --protocol {name}")
    return cases


def _show_progress(text: str) -> None:
    """Show on a terminal what is attacked, and replace the text before."""
    if sys.stderr.isatty():
        click.echo(f"\r\033[K{text}\r", nl=False, err=True)
