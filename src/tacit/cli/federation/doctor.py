"""``tacit doctor``: what is wrong in a folder or on the way to the server, and who mends it."""

from __future__ import annotations

import time
from pathlib import Path

import click
import numpy as np
from click.exceptions import Exit

from tacit.cli.shell import show
from tacit.data.clients import Clients
from tacit.running.deployment import doctor as examining
from tacit.running.deployment import letters, site
from tacit.running.session.party_file import agreed_names
from tacit.running.session.plan_file import Plan

PROBLEMS = 1
"""The exit status of `tacit doctor` where something fails."""


@click.command()
@click.argument(
    "folder", default=".", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "--server", metavar="HOST:PORT", help="The coordinator's server; that of party.toml by default."
)
def doctor(folder: Path, server: str | None) -> None:
    """Find what is wrong in FOLDER or on the way to the server, and who mends it.

    FOLDER is a party's, with party.toml, or the coordinator's, with plan.toml. Every check that
    joining or serving makes is made, and the plan's protocol runs once with made-up records.
    Nothing is spent or sent but a request for the roster. It takes 10 seconds at most. The output
    holds no record, count, key or code: it may be sent by mail.

    Examples:
      tacit doctor hospital-a
      tacit doctor centre

    Exit status:
      0    nothing fails
      1    something fails; each line says who mends it, and how
      2    FOLDER is of neither side
    """
    if server is not None and not letters.ADDRESS.fullmatch(server):
        raise click.UsageError(f"--server must be HOST:PORT, got {server!r}")
    if (folder / examining.PARTY_FILE).is_file():
        found = examining.examine_party(folder, server, _dry_round)
    elif (folder / site.PLAN_FILE).is_file():
        found = examining.examine_coordinator(folder, _dry_round)
    else:
        raise click.UsageError(f"{folder} has neither {examining.PARTY_FILE} nor {site.PLAN_FILE}")
    for each in found:
        show(f"{each.state:<8} {each.topic:<12} {each.says}")
        if each.remedy:
            show(f"{'':<21} {each.remedy}")
    if any(each.state == "failing" for each in found):
        raise Exit(PROBLEMS)


MADE_UP = 8
"""Records of each party in a dry round."""
TERMS = "min_clients", "colluders", "unit", "most_records"
"""What a dry round takes from the plan."""


def _dry_round(plan: Plan) -> str:
    """Run a plan's protocol in this process, between as many parties, with made-up records."""
    if plan.per_person or agreed_names(plan.protocol):
        return "not made for plans with persons, classes or groups"
    from tacit.testing.rehearsal import rehearse  # noqa: PLC0415 -- for this command only

    scores, began = np.linspace(0.1, 0.9, MADE_UP * len(plan.parties)), time.monotonic()
    clients = Clients.split(scores, np.arange(scores.size) % 2, len(plan.parties), seed=0)
    terms = {name: getattr(plan, name) for name in TERMS}
    rehearse(clients, plan.protocol, **terms)
    return f"the protocol ran with made-up records in {time.monotonic() - began:.1f} s"
