"""A site's commands: ``tacit accept``, ``approve`` and ``join``, with the roster they rely on.

``tacit accept``: an invitation becomes a site's folder, with keys and an answer. A site fetches the
roster from the coordinator's server, and takes a new one by its code. ``tacit approve``: a plan as
one page, and the signatures of a site's people under it. ``tacit join``: a party takes part, on its
own terms.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click

from tacit import operating
from tacit.cli.federation import TERMS, read_letter, show_rows, stoppable, teller, verbose_option
from tacit.cli.federation.inviting import FILE, party_text
from tacit.cli.shell import complain, operator_options, show, show_timed
from tacit.data import units
from tacit.running.deployment import door, letters, preview, site
from tacit.running.deployment.flower_programs.programs import require_flower
from tacit.running.session.approval import Subject
from tacit.running.session.party_file import PartyFile
from tacit.running.session.plan_file import Plan
from tacit.running.session.service import PartyDesk, read_identity


@click.command()
@click.argument("invitation", type=FILE)
@click.argument("folder", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--records",
    type=FILE,
    help="The file of the site's records; records.csv in FOLDER by default.",
)
@click.option("--unit", type=click.Choice(units.UNITS), help="The unit of the scores in it.")
def accept(invitation: Path, folder: Path | None, records: Path | None, unit: str | None) -> None:
    """Make a site's folder and keys from INVITATION, and the answer that goes back.

    FOLDER is called as the site by default. Nothing is sent and no record is read. Look over
    party.toml, which says what the site allows; send the answer; and read the code to the
    coordinator by phone.

    Examples:
      tacit accept north.json --records /srv/scores.csv
      tacit accept north.json hospital-north --unit log-odds
    """
    letter = read_letter(letters.Invitation, invitation)
    home = folder or Path(letter.site)
    with stoppable():
        answer = site.accept(letter, home)
    _write_party(letter, home, records, unit)
    show_rows(_rows(letter, answer, home))


def _write_party(
    letter: letters.Invitation, home: Path, records: Path | None, unit: str | None
) -> None:
    """The site's own file; one that exists is left as it is."""
    path = home / "party.toml"
    file = "records.csv" if records is None else str(records.resolve())
    if not path.exists():
        text = party_text(letter.site, unit=unit, server=letter.server, file=file)
        path.write_text(text, encoding="utf-8")
    elif records is not None or unit is not None:
        raise click.ClickException(f"{path} exists already: change file and unit in it")


def _rows(letter: letters.Invitation, answer: letters.Answer, home: Path) -> list[tuple[str, str]]:
    plan = Plan.parsed(letter.plan, "the invitation's plan")
    return [
        ("site", f"{letter.site} of {plan.name}"),
        ("server", letter.server),
        *preview.run_rows(plan),
        ("allows", f"what {home / 'party.toml'} says, under [limit]: check it"),
        ("answer", f"{home / site.ANSWER_FILE}  (send it to the coordinator)"),
        ("code", f"{answer.code}  (read it to the coordinator by phone)"),
    ]


ROSTER_POLL_SECONDS = 3.0


def newest_roster(
    home: Path, server: str, authority: Path, code: str | None, patience: float
) -> None:
    """Bring an invited site's plan up to date with the coordinator's roster.

    Parameters
    ----------
    home : the site's folder, with its invitation.
    server, authority : where the roster is, and how its server is recognised.
    code : what the other sites read to this one; None asks on the terminal where it is needed.
    patience : seconds to wait for the server, and for the coordinator to admit all sites.

    Raises
    ------
    LetterError : for a roster that must not be taken, or whose code is not the one that was given.
    """
    invitation = site.invitation_in(home)
    if invitation is None:
        raise letters.LetterError(f"{home} holds no invitation")
    site.trust(home)
    answer = _waited_for(invitation, server, authority, patience)
    local_plan = (home / site.PLAN_FILE).read_text(encoding="utf-8")
    if answer.status != door.OK:
        if not Plan.parsed(local_plan, site.PLAN_FILE).is_complete:
            raise letters.LetterError(
                "the server does not know this invitation: it was replaced, or is another "
                "coordinator's"
            )
        show("the server hands out no roster for this invitation: the site's own copy is used")
        return
    text = site.checked_roster(answer.content, invitation, home)
    if not site.is_agreed(text, local_plan):
        _confirm(text, local_plan, code)
    site.take_roster(answer.content, text, home, invitation.coordinator)


def _waited_for(
    invitation: letters.Invitation, server: str, authority: Path, patience: float
) -> site.Reached:
    """The server's answer, once all sites are admitted."""
    ends = time.monotonic() + patience
    tell: Callable[[str], None] = show_timed
    while True:
        answer = site.reach(server, authority, tell, patience, invitation.token)
        if answer.status != door.NOT_YET or time.monotonic() >= ends:
            return answer
        tell("the server answers; waiting until the coordinator has admitted all sites")
        tell = _silent
        time.sleep(ROSTER_POLL_SECONDS)


def _silent(line: str) -> None:
    """The first lines are enough."""


def _confirm(text: str, local_plan: str, code: str | None) -> None:
    """Show a roster that is new, and have its code compared.

    Raises
    ------
    LetterError : where the code is another one.
    """
    plan = Plan.parsed(text, "the roster")
    before = {party.name: party.key for party in Plan.parsed(local_plan, site.PLAN_FILE).parties}
    rows = [("roster of", f"{plan.name}; a result needs {plan.min_clients} sites")]
    rows += [
        (f"site {party.name}", _change(party.key, before.get(party.name))) for party in plan.parties
    ]
    shown = letters.roster_code(plan)
    show_rows([*rows, ("code", shown)])
    if code is None and not sys.stdin.isatty():
        raise letters.LetterError(
            "the roster is new here: call the other sites, and if all read the same code, give it "
            "as --code CODE"
        )
    heard = code or str(click.prompt("call another site; the code that it reads", type=str))
    if not letters.is_code(heard, shown):
        raise letters.LetterError(
            "the sites were shown different rosters, or a code was misread: nothing was taken, and "
            "this site does not join"
        )


def _change(key: bytes | None, before: bytes | None) -> str:
    short = "" if key is None else key.hex()[:16]
    if before is None:
        return f"key {short}..."
    return f"key {short}...{', another than before' * (before != key)}"


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
    if until is not None and until.date() < datetime.now(UTC).date():
        raise click.UsageError(f"--until must be today or later, got {until:%Y-%m-%d}")
    file = PartyFile.read(party)
    subject = Subject(file, Plan.read(plan or file.plan))
    if revoke is not None:
        subject.revoke(read_identity(revoke))
    if runs is not None and until is not None:
        subject.begin(runs, until.date())
    if (draft := subject.draft) is None:
        raise click.ClickException("nothing is drafted: give --runs N and --until YYYY-MM-DD")
    show_rows(preview.approval_page(subject, draft))
    if sign is not None:
        identity = read_identity(sign)
        click.confirm(f"{subject.name_of(identity)}, sign this page?", abort=True)
        subject.sign(draft, identity)
        show(preview.approval_line(subject))


PATIENCE = 600.0


@click.command()
@click.argument("party", type=FILE)
@click.option(
    "--server", metavar="HOST:PORT", help="The coordinator's server; PARTY's own by default."
)
@click.option(
    "--code",
    metavar="CODE",
    envvar="TACIT_ROSTER_CODE",
    show_envvar=True,
    help="For a roster that is new: the code that the other sites read to you by phone.",
)
@click.option(
    "--certificate",
    "authority",
    type=click.Path(path_type=Path),
    help="The certificate of the server's authority; ca.crt in the folder of PARTY by default.",
)
@click.option(
    "--key",
    "node_key",
    type=click.Path(path_type=Path),
    help="The private node key; node.key in the folder of PARTY by default.",
)
@click.option("--check", is_flag=True, help="Show what joining means, and end.")
@operator_options
@verbose_option
def join(
    party: Path,
    server: str | None,
    code: str | None,
    authority: Path | None,
    node_key: Path | None,
    check: bool,
    metrics: tuple[str, int] | None,
    verbose: bool,
) -> None:
    """Take part with the records that PARTY names, until interrupted.

    A site that was invited first fetches the roster of all sites, and takes one that is new by its
    code only. Then the data, the plan and the keys are checked, and what the plan asks is shown
    with what the ledger allows. A SuperNode dials out to the server; nothing listens on the
    network here.

    Examples:
      tacit join hospital-a/party.toml --check
      tacit join hospital-a/party.toml
      tacit join hospital-a/party.toml --server study.example.org:8443
      tacit join hospital-a/party.toml --metrics 127.0.0.1:9464 --log-format json
    """
    home = party.resolve().parent
    authority, key = authority or home / "ca.crt", node_key or home / "node.key"
    address = _address(party, server)
    if check:
        _show_terms(party, show_only=True)
        return
    if address is None:
        raise click.UsageError(f"joining needs --server HOST:PORT, got {server!r}")
    watch = site.NodeWatch(PartyFile.read(party))
    with stoppable(), operating.telling(metrics, watch.operated()):
        if site.invitation_in(home) is None:
            desk = _show_terms(party)
            _check_files(authority, key)
            site.reach(address, authority, show_timed, PATIENCE)
        else:
            _check_files(authority, key)
            newest_roster(home, address, authority, code, PATIENCE)
            desk = _show_terms(party)
        files = (party.resolve(), address, authority.resolve(), key.resolve())
        folder = desk.party_file.state / "node"
        with site.start_node(*files, folder, teller(verbose)) as node:
            desk.set_limit()
            show_timed(
                f"{address} answers; waiting {PATIENCE:.0f} s at most for it to let this node in"
            )
            watch.node = node
            site.wait_connected(node, PATIENCE)
            watch.is_connected = True
            show_timed(f"connected to {address}; Ctrl-C leaves")
            for line in node.lines(math.inf):
                event = watch.event(line)
                shown = (
                    event if operating.is_logging() else line if verbose else site.user_line(line)
                )
                if shown:
                    show_timed(shown)
            node.check()


def _address(party: Path, server: str | None) -> str | None:
    """The server's address: the option's, or the one in the party's file."""
    if server is not None:
        return server if letters.ADDRESS.fullmatch(server) else None
    named = PartyFile.read(party).server
    if named is None:
        return None
    return letters.address_of(*named)


def _show_terms(party: Path, show_only: bool = False) -> PartyDesk:
    """Check records, plan and keys; show what a run asks and costs, and what the ledger allows."""
    is_invited = site.invitation_in(party.resolve().parent) is not None
    if is_invited and not Plan.read(PartyFile.read(party).plan).is_complete:
        raise letters.LetterError(
            "this site has no roster yet: tacit join fetches it when the coordinator has admitted "
            "all sites; problems of the records are found before that by: tacit check FILE"
        )
    desk = PartyDesk.open(party)
    desk.plan.agreement()
    preview.check_records(desk)
    problem = "" if show_only else Subject(desk.party_file, desk.plan).now.problem
    if problem:
        raise click.ClickException(f"not approved: {problem}; see: tacit approve {party}")
    doubts = preview.doubts(desk)
    if operating.is_logging():
        show(f"checked records, plan and keys; what joining means is shown by: {TERMS}")
        if doubts:
            complain(f"there are doubts about records or ledger, shown by: {TERMS}")
        return desk
    show_rows(preview.preview(desk))
    for sentence in doubts:
        complain(f"tacit: warning: {sentence}")
    return desk


def _check_files(*files: Path) -> None:
    """Refuse to wait for a server without Flower, or without a file that connecting needs."""
    require_flower()
    for file in files:
        file.stat()
