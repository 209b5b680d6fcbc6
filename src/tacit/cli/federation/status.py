"""``tacit status``: what a coordinator's server knows."""

from __future__ import annotations

from pathlib import Path

import click

from tacit.cli.federation.shared import show_rows, stoppable, teller, verbose_option
from tacit.running.deployment.programs import require_flower
from tacit.running.deployment.server import Coordinator, nodes_online, runs_of
from tacit.running.session.plan_file import Plan

LATEST = 5


@click.command()
@click.argument("plan", type=click.Path(dir_okay=False, path_type=Path))
@verbose_option
def status(plan: Path, verbose: bool) -> None:
    """Show PLAN's server: who is connected, and how the latest runs ended."""
    require_flower()
    study_plan, coordinator, tell = Plan.read(plan), Coordinator.of(plan), teller(verbose)
    with stoppable():
        coordinator.check_running()
        host, port = coordinator.address()
        nodes = nodes_online(coordinator, tell)
        rows = [("server", f"{host}:{port} is running")]
        rows += [
            (f"party {party.name}", nodes.pop(party.name, "no key")) for party in study_plan.parties
        ]
        rows += [(f"node {name}", state) for name, state in nodes.items()]
        for run in runs_of(coordinator, tell)[:LATEST]:
            reason = run.get("status-details") or ""
            details = "" if reason == "N/A" else f": {reason}"
            rows.append((f"run {run['run-id']}", f"{run['status']}{details}"))
    show_rows(rows)
