"""One run on a running server: submit it, follow its lines, and stop it when the caller leaves."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.running.deployment.files import private_folder
from tacit.running.deployment.flower_programs.guards import write_application, write_ticket
from tacit.running.deployment.flower_programs.programs import DeploymentError, Tell, settings_text
from tacit.running.deployment.server import CONNECTION, Coordinator, runs_of
from tacit.running.session.result import ROWS_SUFFIX

LOG_PREFIX = "tacit: "
"""Beginning of every line that the coordinator's program writes."""
STARTED = re.compile(r"Successfully started run (\d+)")
SLACK = 90.0
"""Seconds beyond a round's deadline in which a run must say something, before it is looked
after."""
ENDED = "finished"
FAILED = "ServerApp failed with "


@dataclass(frozen=True)
class Conducted:
    """What a run gave.

    Parameters
    ----------
    content : the result, as its JSON has it.
    rows : its summary, as labelled lines.
    """

    content: dict[str, Any]
    rows: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, path: Path) -> Conducted:
        """What a coordinator's program wrote."""
        rows = json.loads(path.with_suffix(ROWS_SUFFIX).read_text(encoding="utf-8"))["rows"]
        return cls(
            json.loads(path.read_text(encoding="utf-8")),
            tuple((str(name), str(value)) for name, value in rows),
        )


def conduct_run(
    coordinator: Coordinator, plan: Path, deadline: float, tell: Tell, verbose: Tell | None = None
) -> Conducted:
    """Run a plan on the server, and give the result as the coordinator wrote it.

    Parameters
    ----------
    coordinator : the coordinator's folder, whose server is running.
    plan : the plan.
    deadline : seconds that a round of the run may take.
    tell : receives a line about each step of the run.
    verbose : receives the commands and all output of Flower.

    Raises
    ------
    DeploymentError : for a run without a result, with the reason.
    """
    folder = private_folder(coordinator.private / "results")
    result = folder / f"{secrets.token_hex(8)}.json"
    settings = {"plan": str(plan), "identity": str(coordinator.identity), "result": str(result)}
    allowed = write_ticket(coordinator.tickets, settings)
    application = write_application(coordinator.private / "application")
    flower = coordinator.flower(verbose)
    command = ("flwr", "run", str(application), CONNECTION, "--stream")
    number, log = "", result.with_suffix(".log")
    with flower.start(log, *command, "--run-config", settings_text(allowed)) as program:
        try:
            for line in program.lines(deadline + SLACK):
                number = number or _number(line)
                _report(line, tell, verbose)
        except BaseException:
            _stop(coordinator, number, verbose)
            raise
        finally:
            (coordinator.tickets / allowed["ticket"]).unlink(missing_ok=True)
            log.unlink()
    if not result.exists():
        raise DeploymentError(_reason(coordinator, number, verbose))
    return Conducted.read(result)


def _number(line: str) -> str:
    match = STARTED.search(line)
    return match[1] if match else ""


def _report(line: str, tell: Tell, verbose: Tell | None) -> None:
    if line.startswith(LOG_PREFIX):
        tell(line.removeprefix(LOG_PREFIX))
    elif verbose is not None and line:
        verbose(line)


def _stop(coordinator: Coordinator, number: str, verbose: Tell | None) -> None:
    """End a run for which the caller no longer waits."""
    if number:
        with contextlib.suppress(DeploymentError):
            coordinator.flower(verbose).call("flwr", "stop", number, CONNECTION)


def reason_of(run: Mapping[str, Any]) -> str:
    """Why a run ended, without what Flower puts before it; empty where nobody says.

    Examples
    --------
    >>> reason_of({"status-details": "ServerApp failed with exception: b declined"})
    'b declined'
    >>> reason_of({"status-details": "N/A"})
    ''
    """
    details = str(run.get("status-details") or "")
    return "" if details == "N/A" else details.removeprefix(FAILED).removeprefix("exception: ")


def _reason(coordinator: Coordinator, number: str, verbose: Tell | None) -> str:
    """Why a run left no result, as its server says."""
    if not number:
        return f"the server did not start the run; see {coordinator.private / 'superlink.log'}"
    try:
        for _ in range(10):
            matching = [
                run for run in runs_of(coordinator, verbose) if str(run["run-id"]) == number
            ]
            if matching and str(matching[0]["status"]).startswith(ENDED):
                return f"the run gave no result: {reason_of(matching[0])}"
            time.sleep(1.0)
    except DeploymentError as error:
        return f"the server went away during the run: {error}"
    return "the run gave no result, and its server does not say why"
