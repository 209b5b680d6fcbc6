"""``tacit join``: a party takes part, on its own terms."""

from __future__ import annotations

import re
import time
from pathlib import Path

import click

from tacit.cli.federation.shared import show_rows, stoppable, teller, verbose_option
from tacit.cli.shell import complain, show
from tacit.running.deployment.node import follow, start_node, wait_connected
from tacit.running.deployment.preview import check_records, doubts, preview
from tacit.running.session.service import PartyDesk

PATIENCE = 600.0
LOOK_SECONDS = 0.5
ADDRESS = re.compile(r"(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+):\d{1,5}")
EXAMPLES = """\b
Examples:
  tacit join hospital-a/party.toml --check
  tacit join hospital-a/party.toml --server study.example.org:8443
"""


@click.command(epilog=EXAMPLES)
@click.argument("party", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--server", metavar="HOST:PORT", help="The coordinator's server.")
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
    ca: Path | None,
    node_key: Path | None,
    check: bool,
    verbose: bool,
) -> None:
    """Take part with the records that PARTY names, until interrupted.

    First the data, the plan and the keys are checked, and what the plan asks is shown beside what
    the ledger allows. Then a SuperNode dials out to the server; nothing listens on the
    network here.
    """
    if not check and (server is None or not ADDRESS.fullmatch(server)):
        raise click.UsageError(f"joining needs --server HOST:PORT, got {server!r}")
    desk = PartyDesk.open(party)
    desk.plan.agreement()
    check_records(desk)
    show_rows(preview(desk))
    for sentence in doubts(desk):
        complain(f"tacit: warning: {sentence}")
    if check or server is None:
        return
    home = party.resolve().parent
    authority, key = ca or home / "ca.crt", node_key or home / "node.key"
    files = (party.resolve(), server, authority.resolve(), key.resolve())
    with stoppable(), start_node(*files, desk.party_file.state / "node", teller(verbose)) as node:
        desk.set_limit()
        wait_connected(node, PATIENCE)
        show(f"connected to {server}; Ctrl-C leaves")
        seen = 0
        while True:
            node.check()
            seen, lines = follow(node, seen, verbose)
            for line in lines:
                show(line)
            time.sleep(LOOK_SECONDS)
