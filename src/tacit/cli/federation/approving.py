"""``tacit approve``: a plan as one page, and the signatures of a site's people under it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from tacit.cli.federation import show_rows
from tacit.cli.shell import show
from tacit.ledger.entries import REVOKED
from tacit.ledger.ledger import Ledger
from tacit.running.deployment.preview import approval_line, approval_page
from tacit.running.session.approval import Subject
from tacit.running.session.party_file import PartyFile
from tacit.running.session.plan_file import Plan
from tacit.running.session.service import read_identity

FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("party", type=FILE)
@click.option("--plan", type=FILE, help="The plan; the first one of PARTY by default.")
@click.option("--runs", type=click.IntRange(1, 10**6), help="Draft: the number of runs.")
@click.option("--until", type=click.DateTime(("%Y-%m-%d",)), help="Draft: the last day, in UTC.")
@click.option("--sign", metavar="KEY", type=FILE, help="Sign the page with this identity key.")
@click.option("--revoke", metavar="KEY", type=FILE, help="End all approvals of the plan.")
def approve(
    party: Path,
    plan: Path | None,
    runs: int | None,
    until: datetime | None,
    sign: Path | None,
    revoke: Path | None,
) -> None:
    """Show on one page what a plan asks of a site, and approve or revoke it.

    The table [approval] in PARTY names who approves, and how many of them must sign. With --runs
    and --until an approval is drafted: earlier ones of the plan end. Each of them then reads the
    page and signs it, here or on another machine with copies of the files. The ledger holds every
    draft and revocation, and for each run the names of those who signed.

    Examples:
      tacit approve hospital-a/party.toml --runs 3 --until 2027-06-30
      tacit approve hospital-a/party.toml
      tacit approve hospital-a/party.toml --sign ada/identity.key
      tacit approve hospital-a/party.toml --revoke ada/identity.key
    """
    if (runs is None) != (until is None) or sum(map(bool, (runs, sign, revoke))) > 1:
        raise click.UsageError("give --runs with --until, or --sign, or --revoke")
    file = PartyFile.read(party)
    subject = Subject(file, Plan.read(plan or file.plan))
    if revoke is not None:
        with Ledger(file.ledger) as ledger:
            subject.note(REVOKED, ledger, subject.name_of(read_identity(revoke)))
    if runs is not None and until is not None:
        with Ledger(file.ledger) as ledger:
            subject.begin(runs, until.date(), ledger)
    if (draft := subject.draft) is None:
        raise click.ClickException("nothing is drafted: give --runs N and --until YYYY-MM-DD")
    show_rows(approval_page(subject, draft))
    if sign is not None:
        identity = read_identity(sign)
        click.confirm(f"{subject.name_of(identity)}, sign this page?", abort=True)
        subject.sign(draft, identity)
        show(approval_line(subject))
