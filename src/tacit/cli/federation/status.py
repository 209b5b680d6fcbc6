"""``tacit status``: what a coordinator's server knows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from tacit.cli.federation.shared import show_rows, stoppable, teller, verbose_option
from tacit.running.deployment.flower_programs.programs import require_flower
from tacit.running.deployment.runs import reason_of
from tacit.running.deployment.server import Coordinator, nodes_online, runs_of
from tacit.running.session.plan_file import Plan

LATEST = 5
OUTCOMES = {"completed": "gave a result", "failed": "no result", "stopped": "was stopped"}
"""How Flower says that a run ended, and how a person reads it."""


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
        rows += [_run_row(run) for run in runs_of(coordinator, tell)[:LATEST]]
    show_rows(rows)


def _run_row(run: Mapping[str, Any]) -> tuple[str, str]:
    """When a run was started, how it ended, and why."""
    started = str(run.get("pending-at") or "an unknown time")
    ended = str(run.get("finished-at") or "")
    return f"run of {_moment(started)}", f"{_outcome(run)}{_took(started, ended)}"


def _outcome(run: Mapping[str, Any]) -> str:
    state, _, how = str(run["status"]).partition(":")
    if not how:
        return state
    details = reason_of(run)
    return OUTCOMES.get(how, how) + (f": {details}" if details else "")


def _moment(text: str) -> str:
    """A time as Flower writes it, in this machine's zone, to the second."""
    try:
        return f"{datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M:%S}"
    except ValueError:
        return text


def _took(started: str, ended: str) -> str:
    try:
        seconds = (datetime.fromisoformat(ended) - datetime.fromisoformat(started)).total_seconds()
    except ValueError:
        return ""
    return f", after {seconds:.0f} s"
