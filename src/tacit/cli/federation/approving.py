"""``tacit approve``: a plan as one page, and the signatures of a site's people under it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from tacit.cli.federation import show_rows
from tacit.cli.shell import show
from tacit.ledger.entries import REVOKED
from tacit.ledger.ledger import Ledger
from tacit.running.deployment.preview import approval_line, approval_page
from tacit.running.session.approval import MAX_RUNS, Draft, Subject
from tacit.running.session.party_file import PartyFile
from tacit.running.session.plan_file import Plan
from tacit.running.session.service import read_identity

KEY = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("party", type=KEY)
@click.option("--plan", type=KEY, help="Which plan of PARTY; its first one by default.")
@click.option("--runs", type=click.IntRange(1, MAX_RUNS), help="Draft: the number of runs.")
@click.option("--until", type=click.DateTime(("%Y-%m-%d",)), help="Draft: the last day, in UTC.")
@click.option("--sign", metavar="KEY", type=KEY, help="Sign the page with this identity key.")
@click.option("--revoke", metavar="KEY", type=KEY, help="End all approvals of the plan.")
@click.option("--yes", is_flag=True, help="--sign: do not ask whether the page was read.")
def approve(
    party: Path,
    plan: Path | None,
    runs: int | None,
    until: datetime | None,
    sign: Path | None,
    revoke: Path | None,
    yes: bool,
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
    if (runs is None) != (until is None):
        raise click.UsageError("a draft needs both --runs and --until")
    if sum(given is not None for given in (runs, sign, revoke)) > 1:
        raise click.UsageError("draft, --sign or --revoke: one at a time")
    party_file = PartyFile.read(party)
    subject = Subject(party_file, Plan.read(plan or party_file.plan))
    if revoke is not None:
        name = subject.name_of(read_identity(revoke))
        with Ledger(party_file.ledger) as ledger:
            subject.note(REVOKED, ledger, name)
        show(f"revoked by {name}: no run of this plan is answered")
        return
    draft = subject.draft
    if runs is not None and until is not None:
        _check_last_day(until)
        with Ledger(party_file.ledger) as ledger:
            draft = subject.begin(runs, until.date(), ledger)
    if draft is None:
        raise click.ClickException("nothing is drafted: give --runs N and --until YYYY-MM-DD")
    show_rows(approval_page(subject, draft))
    if sign is not None:
        _sign(subject, draft, sign, yes)


def _sign(subject: Subject, draft: Draft, key: Path, yes: bool) -> None:
    """Sign a page that was shown, once its reader says so."""
    name = subject.name_of(identity := read_identity(key))
    if not yes and not sys.stdin.isatty():
        raise click.UsageError(
            "--sign asks on a terminal whether you read the page, or needs --yes"
        )
    if not yes:
        click.confirm(f"{name}, sign this page?", abort=True)
    subject.sign(draft, identity)
    show(f"signed by {name}: {approval_line(subject)}")


def _check_last_day(until: datetime) -> None:
    if until.date() < datetime.now(UTC).date():
        raise click.UsageError(f"--until must not be past, got {until:%Y-%m-%d}")
