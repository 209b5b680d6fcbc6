"""A coordinator's commands for runs: ``tacit serve``, ``run``, ``status`` and ``doctor``.

``tacit serve``: the server that parties connect to. ``tacit run``: one run of a plan, and its
result. ``tacit status``: what a coordinator's server knows. ``tacit doctor``, for parties too: what
is wrong in a folder or on the way to the server. The picture of a result that is known as JSON.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.exceptions import Exit

from tacit import operating
from tacit.cli.federation import stoppable, teller, verbose_option
from tacit.cli.shell import (
    JsonOutput,
    PictureFile,
    check_signal,
    complain,
    json_option,
    operator_options,
    show,
    show_timed,
)
from tacit.data.clients import Clients
from tacit.results.evaluation import Evaluation
from tacit.results.text import as_lines
from tacit.running.deployment import doctor as examining
from tacit.running.deployment import inviting, keys, letters, server, site
from tacit.running.deployment.flower_programs.programs import DeploymentError, Tell, require_flower
from tacit.running.deployment.local import run_locally
from tacit.running.session.party_file import agreed_names
from tacit.running.session.plan_file import Plan

POLL_SECONDS = 2.0


@click.command()
@click.argument("plan", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--host",
    default="0.0.0.0",  # noqa: S104  # parties dial in from other machines
    help="The address to listen on.",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=server.PORT,
    help="The one port.",
)
@operator_options
@verbose_option
def serve(plan: Path, host: str, port: int, metrics: tuple[str, int] | None, verbose: bool) -> None:
    """Start the server of PLAN, and keep it running until interrupted.

    It is Flower's SuperLink, with TLS, authentication of nodes, and a database. Node keys in the
    folder `nodes` next to the plan may connect, each as NAME.pub; a key that is put there or taken
    away counts at once. Invited sites get the roster here, once the plan has all keys. Runs are
    started with `tacit run` on the same machine, and no others are.

    Examples:
      tacit serve study/plan.toml
      tacit serve study/plan.toml --host 192.0.2.7 --port 443
      tacit serve study/plan.toml --metrics 127.0.0.1:9464 --log-format json
    """
    Plan.read(plan)
    coordinator, tell = server.Coordinator.of(plan), teller(verbose)
    with stoppable(), server.alone(coordinator.private):
        while True:
            with (
                server.start_server(coordinator, host, port, tell) as running,
                operating.telling(metrics, server.operated(coordinator, running)),
            ):
                show_timed(f"serving on {host}:{port}; Ctrl-C ends")
                _serve_until_renewed(plan, coordinator, running.check, tell)
            show_timed("the time of the renewed certificates has come: the server starts again")


def _serve_until_renewed(
    plan: Path, coordinator: server.Coordinator, check: Callable[[], None], tell: Tell | None
) -> None:
    """Let nodes in and hand out the roster, until renewed certificates are to be used."""
    refused = ""
    while not keys.is_due(coordinator.certificates, datetime.now(UTC)):
        check()
        inviting.publish_roster(plan, coordinator)
        refused = _registered(coordinator, refused, tell)
        time.sleep(POLL_SECONDS)


def _registered(coordinator: server.Coordinator, before: str, tell: Tell | None) -> str:
    """Let new nodes in; what is wrong with a key is said once."""
    try:
        for name in server.register_nodes(coordinator, tell):
            show_timed(f"{name} may connect")
    except (keys.KeyFileError, DeploymentError) as error:
        if str(error) != before:
            complain(f"tacit: {error}")
        return str(error)
    return ""


LATEST, WATCH_SECONDS = 5, 5.0
"""Runs that are shown, and seconds between two looks at a server."""
OUTCOMES = {"completed": "gave a result", "failed": "no result", "stopped": "was stopped"}
"""How Flower says that a run ended, and how a person reads it."""


@click.command()
@click.argument("plan", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--watch", is_flag=True, help="Show it again whenever it changes, until Ctrl-C.")
@json_option
@verbose_option
def status(plan: Path, watch: bool, output: JsonOutput, verbose: bool) -> None:
    """Show PLAN's server: who is connected, and how the latest runs ended."""
    require_flower()
    coordinator, tell = server.Coordinator.of(plan), teller(verbose)
    before: dict[str, Any] = {}
    with stoppable():
        while True:
            known = _standing(Plan.read(plan), coordinator, tell)
            if known != before:
                now = datetime.now().astimezone().isoformat(timespec="seconds")
                rows = [("time", now)] * watch + _status_rows(known)
                output.show({"time": now, **known}, partial(as_lines, rows, ()))
            if not watch:
                return
            before = known
            time.sleep(WATCH_SECONDS)


def _standing(plan: Plan, coordinator: server.Coordinator, tell: Tell | None) -> dict[str, Any]:
    """What is known of a server, its parties and its latest runs, for JSON."""
    coordinator.check_running()
    nodes = server.nodes_online(coordinator, tell)
    return {
        "schema": "tacit-status/1",
        "server": letters.address_of(*coordinator.address()),
        "parties": {each.name: nodes.pop(each.name, "no key") for each in plan.parties},
        "nodes": nodes,
        "runs": [_run(each, coordinator) for each in server.runs_of(coordinator, tell)[:LATEST]],
    }


def _run(run: Mapping[str, Any], coordinator: server.Coordinator) -> dict[str, Any]:
    """When a run was started, how it ended, why, and where its result is."""
    begun, ended = (_moment(run.get(name)) for name in ("pending-at", "finished-at"))
    state, _, how = str(run["status"]).partition(":")
    result = coordinator.results / f"{run['run-id']}.json"
    return {
        "run": str(run["run-id"]),
        "begun": begun and begun.isoformat(),
        "seconds": (ended - begun).total_seconds() if begun and ended else None,
        "state": how or state,
        "reason": server.reason_of(run),
        "result": str(result) if result.exists() else None,
    }


def _status_rows(known: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is known, as labelled lines."""
    rows = [("server", f"{known['server']} is running")]
    rows += [(f"party {name}", state) for name, state in known["parties"].items()]
    rows += [(f"node {name}", state) for name, state in known["nodes"].items()]
    for run in known["runs"]:
        begun = _moment(run["begun"])
        # in this machine's zone
        started = f"{begun.astimezone():%Y-%m-%d %H:%M:%S}" if begun else "an unknown time"
        outcome = OUTCOMES.get(run["state"], run["state"])
        outcome += f": {run['reason']}" if run["reason"] else ""
        outcome += "" if run["seconds"] is None else f", after {run['seconds']:.0f} s"
        outcome += f"; {run['result']}" if run["result"] else ""
        rows.append((f"run of {started}", outcome))
    return rows


def _moment(text: object) -> datetime | None:
    """A time as Flower writes it; None for none."""
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None


@click.command()
@click.argument("plan", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--local",
    type=click.IntRange(min=1),
    metavar="N",
    help="Start a server and all N parties on this machine: those in folders next to the plan.",
)
@json_option
@click.option("--plot", metavar="FILE", help="Save a picture (.png, .svg or .pdf).")
@verbose_option
def run(plan: Path, local: int | None, output: JsonOutput, plot: str | None, verbose: bool) -> None:
    """Run PLAN once, with the parties that are connected, and print the result.

    The server of the plan runs on this machine (`tacit serve`), and is waited for a minute, unless
    --local starts everything. Each party decides itself whether it answers, and its ledger keeps
    what it spent.

    Examples:
      tacit run study/plan.toml --json result.json --plot roc.png
      tacit run --local 3 examples/three-hospitals/plan.toml

    Exit status:
      0    there is an estimate, or the parties have it
      2    there is no result; one sentence says why
      3    the noise left no signal: the result is printed without an estimate
      130  interrupted; the run was stopped
    """
    require_flower()
    picture = None if plot is None else PictureFile(plot)
    tell = teller(verbose)
    with stoppable():
        if local is None:
            study_plan, coordinator = Plan.read(plan), server.Coordinator.of(plan)
            study_plan.agreement()
            coordinator.wait_running(show)
            done = server.conduct_run(coordinator, plan.resolve(), study_plan.deadline, show, tell)
        else:
            done = run_locally(plan, local, show, tell)
    content = done.content
    result = Evaluation.from_dict(content)
    if picture is not None:
        picture.save(result.plot().figure)
    output.show(content, lambda: f"\n{as_lines(_rows(done), content['warnings'])}")
    check_signal(result.has_signal or result.protocol.get("reveal") == "parties")


def _rows(done: server.Conducted) -> list[tuple[str, str]]:
    """The summary that `tacit evaluate` prints too, with what each site sent."""
    sent = [
        (f"sent by {who.get('name', 'a party')}", f"{who['bytes_sent']:,} bytes")
        for who in done.content.get("participants", ())
    ]
    return [*done.rows, *sent]


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
