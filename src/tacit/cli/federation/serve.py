"""``tacit serve``: the server that parties connect to."""

from __future__ import annotations

import time
from pathlib import Path

import click

from tacit.cli.federation.shared import stoppable, teller, verbose_option
from tacit.cli.shell import complain, show
from tacit.running.deployment.flower_programs.programs import DeploymentError, Tell
from tacit.running.deployment.keys import KeyFileError
from tacit.running.deployment.server import (
    PORT,
    Coordinator,
    alone,
    register_nodes,
    start_server,
)
from tacit.running.joining.coordinator import publish_roster
from tacit.running.session.plan_file import Plan

LOOK_SECONDS = 2.0
EXAMPLES = """\b
Examples:
  tacit serve study/plan.toml
  tacit serve study/plan.toml --listen 192.0.2.7 --port 443
"""


@click.command(epilog=EXAMPLES)
@click.argument("plan", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--listen",
    default="0.0.0.0",  # noqa: S104  # parties dial in from other machines
    show_default=True,
    help="The address to listen on.",
)
@click.option(
    "--port", type=click.IntRange(1, 65535), default=PORT, show_default=True, help="The one port."
)
@verbose_option
def serve(plan: Path, listen: str, port: int, verbose: bool) -> None:
    """Start the server of PLAN, and keep it running until interrupted.

    It is Flower's SuperLink, with TLS, authentication of nodes, and a database. Node keys in the
    folder `nodes` beside the plan may connect, each as NAME.pub; a key that is put there or taken
    away counts at once. Invited sites get the roster here, once the plan has all keys. Runs are
    started with `tacit run` on the same machine, and no others are.
    """
    Plan.read(plan)
    coordinator, tell = Coordinator.of(plan), teller(verbose)
    with (
        stoppable(),
        alone(coordinator.private),
        start_server(coordinator, listen, port, tell) as server,
    ):
        show(f"serving on {listen}:{port}; Ctrl-C ends")
        refused = ""
        while True:
            server.check()
            publish_roster(plan, coordinator)
            refused = _registered(coordinator, refused, tell)
            time.sleep(LOOK_SECONDS)


def _registered(coordinator: Coordinator, before: str, tell: Tell | None) -> str:
    """Let new nodes in; what is wrong with a key is said once."""
    try:
        for name in register_nodes(coordinator, tell):
            show(f"{name} may connect")
    except (KeyFileError, DeploymentError) as error:
        if str(error) != before:
            complain(f"tacit: {error}")
        return str(error)
    return ""
