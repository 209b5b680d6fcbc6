"""``tacit status``: what a coordinator's server knows."""

from __future__ import annotations

from pathlib import Path

import click

from tacit.cli.federation.shared import show_rows, stoppable, teller, verbose_option
from tacit.running.deployment.programs import require_flower
from tacit.running.deployment.server import Coordinator, nodes_online, runs_of
from tacit.running.plans import Plan

LATEST = 5


@click.command()
@click.argument("plan", type=click.Path(dir_okay=False, path_type=Path))
@verbose_option
def status(plan: Path, verbose: bool) -> None:
    """Show PLAN's server: who is connected, and how the latest runs ended."""
    require_flower()
    own, place, tell = Plan.read(plan), Coordinator.of(plan), teller(verbose)
    with stoppable():
        place.check_running()
        host, port = place.address()
        nodes = nodes_online(place, tell)
        rows = [("server", f"{host}:{port} is running")]
        rows += [(f"party {one.name}", nodes.pop(one.name, "no key")) for one in own.parties]
        rows += [(f"node {name}", state) for name, state in nodes.items()]
        for run in runs_of(place, tell)[:LATEST]:
            told = run.get("status-details") or ""
            details = "" if told == "N/A" else f": {told}"
            rows.append((f"run {run['run-id']}", f"{run['status']}{details}"))
    show_rows(rows)
