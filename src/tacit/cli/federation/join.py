"""``tacit join``: a party takes part, on its own terms."""

from __future__ import annotations

import time
from pathlib import Path

import click

from tacit.cli.federation.rosters import newest_roster
from tacit.cli.federation.shared import show_rows, stoppable, teller, verbose_option
from tacit.cli.shell import complain, show
from tacit.running.deployment.flower_programs.programs import require_flower
from tacit.running.deployment.node import follow, start_node, wait_connected
from tacit.running.deployment.preview import check_records, doubts, preview
from tacit.running.joining.letters import ADDRESS, LetterError
from tacit.running.joining.reaching import reach
from tacit.running.joining.site import invitation_in
from tacit.running.session.party.party_file import PartyFile
from tacit.running.session.party.service import PartyDesk

PATIENCE = 600.0
LOOK_SECONDS = 0.5
EXAMPLES = """\b
Examples:
  tacit join hospital-a/party.toml --check
  tacit join hospital-a/party.toml
  tacit join hospital-a/party.toml --server study.example.org:8443
"""


@click.command(epilog=EXAMPLES)
@click.argument("party", type=click.Path(dir_okay=False, path_type=Path))
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
    "--ca",
    type=click.Path(path_type=Path),
    help="The certificate of the server's authority; ca.crt beside PARTY by default.",
)
@click.option(
    "--node-key",
    type=click.Path(path_type=Path),
    help="The private node key; node.key beside PARTY by default.",
)
@click.option("--check", is_flag=True, help="Show what joining means, and end.")
@verbose_option
def join(
    party: Path,
    server: str | None,
    code: str | None,
    ca: Path | None,
    node_key: Path | None,
    check: bool,
    verbose: bool,
) -> None:
    """Take part with the records that PARTY names, until interrupted.

    A site that was invited first fetches the roster of all sites, and takes one that is new by its
    code only. Then the data, the plan and the keys are checked, and what the plan asks is shown
    beside what the ledger allows. A SuperNode dials out to the server; nothing listens on the
    network here.
    """
    home = party.resolve().parent
    authority, key = ca or home / "ca.crt", node_key or home / "node.key"
    address = _address(party, server)
    if check:
        _show_terms(party)
        return
    if address is None:
        raise click.UsageError(f"joining needs --server HOST:PORT, got {server!r}")
    with stoppable():
        if invitation_in(home) is None:
            desk = _show_terms(party)
            _check_files(authority, key)
            reach(address, authority, show, PATIENCE)
        else:
            _check_files(authority, key)
            newest_roster(home, address, authority, code, PATIENCE)
            desk = _show_terms(party)
        files = (party.resolve(), address, authority.resolve(), key.resolve())
        folder = desk.party_file.state / "node"
        with start_node(*files, folder, teller(verbose)) as node:
            desk.set_limit()
            wait_connected(node, PATIENCE, lambda left: _still_waiting(address, left))
            show(f"connected to {address}; Ctrl-C leaves")
            seen = 0
            while True:
                node.check()
                seen, lines = follow(node, seen, verbose)
                for line in lines:
                    show(line)
                time.sleep(LOOK_SECONDS)


def _address(party: Path, server: str | None) -> str | None:
    """The server's address: the option's, or the one in the party's file."""
    if server is not None:
        return server if ADDRESS.fullmatch(server) else None
    named = PartyFile.read(party).server
    if named is None:
        return None
    host, port = named
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _show_terms(party: Path) -> PartyDesk:
    """Check records, plan and keys; show what a run asks and costs, and what the ledger allows."""
    if invitation_in(party.resolve().parent) is not None and not _has_roster(party):
        raise LetterError(
            "this site has no roster yet: tacit join fetches it when the coordinator has admitted "
            "all sites"
        )
    desk = PartyDesk.open(party)
    desk.plan.agreement()
    check_records(desk)
    show_rows(preview(desk))
    for sentence in doubts(desk):
        complain(f"tacit: warning: {sentence}")
    return desk


def _check_files(*files: Path) -> None:
    """Refuse to wait for a server without Flower, or without a file that connecting needs."""
    require_flower()
    for file in files:
        file.stat()


def _has_roster(party: Path) -> bool:
    return all(each.key is not None for each in PartyFile.read(party).first_plan.parties)


def _still_waiting(address: str, left: float) -> None:
    show(f"{address} answers; waiting for it to let this node in, {left:.0f} s left")
