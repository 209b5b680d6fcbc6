"""``tacit admit``: sites are taken into a plan by their answers."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tacit.cli.federation.shared import read_letter, stoppable
from tacit.cli.shell import show
from tacit.crypto.spoken_codes import is_code
from tacit.running.deployment.server import Coordinator
from tacit.running.joining.coordinator import admit as admit_site
from tacit.running.joining.coordinator import open_record, publish_roster
from tacit.running.joining.letters import Answer, LetterError, roster_code
from tacit.running.session.plan_file import Plan

EXAMPLES = """\b
Examples:
  tacit admit study/plan.toml north-answer.json
  tacit admit study/plan.toml north-answer.json --code north=3f2a-91cc-77d0
"""


def _codes(
    context: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    codes: dict[str, str] = {}
    for text in texts:
        site, equals, code = text.partition("=")
        if not (site and equals and code) or site in codes:
            raise click.BadParameter(f"a code is given once a site, as SITE=CODE, got {text!r}")
        codes[site] = code
    return codes


@click.command(epilog=EXAMPLES)
@click.argument("plan", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("answers", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--code",
    "codes",
    multiple=True,
    callback=_codes,
    metavar="SITE=CODE",
    help="What the site read to you by phone; asked for where it is not given.",
)
def admit(plan: Path, answers: tuple[Path, ...], codes: dict[str, str]) -> None:
    """Take sites into PLAN by the ANSWERS that they sent.

    Call each site at a number that you know, and have it read its code: type what you hear. A code
    that differs means that an invitation or an answer was exchanged on its way. Answers with a
    right code are written into the plan and the folder of node keys; a running server notices.
    """
    coordinator = Coordinator.of(plan)
    wrong = []
    with stoppable():
        for path in answers:
            answer = read_letter(Answer, path)
            open_record(coordinator, answer)
            if is_code(_heard(answer, codes), answer.code):
                admit_site(plan, coordinator, answer)
                show(f"admitted: {answer.site}")
            else:
                wrong.append(answer.site)
        complete = publish_roster(plan, coordinator)
    if wrong:
        raise LetterError(
            f"the code of {' and '.join(wrong)} is not the one of this answer: it was not admitted"
        )
    _show_standing(Plan.read(plan), complete)


def _heard(answer: Answer, codes: dict[str, str]) -> str:
    """The code that the site read."""
    if answer.site in codes:
        return codes[answer.site]
    if not sys.stdin.isatty():
        raise click.UsageError(
            f"call {answer.site}, and give the code that it reads: --code {answer.site}=CODE"
        )
    heard = click.prompt(f"call {answer.site}; the code that it reads", type=str)
    return str(heard)


def _show_standing(plan: Plan, complete: bool) -> None:
    if complete:
        show(f"all {len(plan.parties)} sites are admitted; code of the roster: {roster_code(plan)}")
        show("the sites compare this code with each other when they join")
        return
    missing = [party.name for party in plan.parties if party.key is None]
    show(f"not admitted yet: {', '.join(missing)}")
