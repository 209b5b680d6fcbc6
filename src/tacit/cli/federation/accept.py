"""``tacit accept``: an invitation becomes a site's folder, with keys and an answer."""

from __future__ import annotations

from pathlib import Path

import click

from tacit.cli.federation.shared import read_letter, show_rows, stoppable
from tacit.cli.federation.templates import party_text
from tacit.data.scaling.units import UNITS
from tacit.running.deployment.preview import asked_line, cost_line, settings_line
from tacit.running.joining.letters import Answer, Invitation
from tacit.running.joining.site import ANSWER_FILE
from tacit.running.joining.site import accept as accept_invitation
from tacit.running.session.plan_file import Plan

EXAMPLES = """\b
Examples:
  tacit accept north.json --records /srv/scores.csv
  tacit accept north.json hospital-north --unit log-odds
"""


@click.command(epilog=EXAMPLES)
@click.argument("invitation", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("folder", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--records",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file of the site's records; records.csv in FOLDER by default.",
)
@click.option("--unit", type=click.Choice(UNITS), help="The unit of the scores in it.")
def accept(invitation: Path, folder: Path | None, records: Path | None, unit: str | None) -> None:
    """Make a site's folder and keys from INVITATION, and the answer that goes back.

    FOLDER is called as the site by default. Nothing is sent and no record is read. Look over
    party.toml, which says what the site allows; send the answer; and read the code to the
    coordinator by phone.
    """
    letter = read_letter(Invitation, invitation)
    home = folder or Path(letter.site)
    with stoppable():
        answer = accept_invitation(letter, home)
    _write_party(letter, home, records, unit)
    show_rows(_rows(letter, answer, home))


def _write_party(letter: Invitation, home: Path, records: Path | None, unit: str | None) -> None:
    """The site's own file; one that exists is left as it is."""
    path = home / "party.toml"
    file = "records.csv" if records is None else str(records.resolve())
    if not path.exists():
        text = party_text(letter.site, unit=unit, server=letter.server, file=file)
        path.write_text(text, encoding="utf-8")
    elif records is not None or unit is not None:
        raise click.ClickException(f"{path} exists already: change file and unit in it")


def _rows(letter: Invitation, answer: Answer, home: Path) -> list[tuple[str, str]]:
    plan = Plan.parsed(letter.plan, "the invitation's plan")
    protocol = {"name": plan.protocol.name, **plan.protocol.settings}
    return [
        ("site", f"{letter.site} of {plan.name}"),
        ("server", letter.server),
        ("protocol", settings_line(protocol)),
        ("asks for", asked_line(plan.protocol)),
        ("a run costs", cost_line(plan.guarantee)),
        ("allows", f"what {home / 'party.toml'} says, under [limit]: look it over"),
        ("answer", f"{home / ANSWER_FILE}  (send it to the coordinator)"),
        ("code", f"{answer.code}  (read it to the coordinator by phone)"),
    ]
