"""Train over three hospitals on this machine, and print the private AUC of every round.

python examples/flower-training/run.py

Real Flower programs over TLS on loopback: a SuperLink, three SuperNodes, and ``flwr run``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hospital_training.model import scores_of
from hospitals import HOSPITALS, pooled_test_records, write_hospitals

from tacit.files import write_public
from tacit.metrics.ranking import auc
from tacit.running.deployment.flower_programs.programs import (
    DeploymentError,
    Flower,
    Program,
    free_port,
    is_listening,
    require_flower,
)
from tacit.running.deployment.local import local_parties, prepared
from tacit.running.deployment.server import CONNECTION, Coordinator, register_nodes
from tacit.running.deployment.site import wait_connected

PROJECT = Path(__file__).resolve().parent
HOST, START_TIME, LONGEST = "127.0.0.1", 60.0, 600.0
PREFIX = "tacit: "


def start_superlink(coordinator: Coordinator, port: int) -> Program:
    """The server: TLS, and only nodes whose keys it knows.

    ``tacit serve`` would refuse this project, as it holds code: see docs/guides/federation.md.
    """
    files = coordinator.certificates
    home = coordinator.private / "flower"
    text = (
        f'[superlink]\ndefault = "{CONNECTION}"\n\n[superlink.{CONNECTION}]\n'
        f'address = "{HOST}:{port}"\nroot-certificates = "{files.authority}"\n'
    )
    write_public(home / "config.toml", text.encode())
    program = Flower(home).start(
        coordinator.private / "superlink.log",
        "flower-superlink",
        *("--ssl-ca-certfile", str(files.authority)),
        *("--ssl-certfile", str(files.certificate), "--ssl-keyfile", str(files.key)),
        *("--enable-supernode-auth", "--disable-runtime-dependency-installation"),
        *("--host", HOST, "--port", str(port)),
    )
    program.wait_until(lambda: is_listening(HOST, port), START_TIME)
    return program


def start_supernode(coordinator: Coordinator, name: str, port: int) -> Program:
    """A hospital's node, which is told where the party's file lies."""
    folder = coordinator.folder / "parties" / name
    return Flower(folder / "node" / "flower").start(
        folder / "node" / "supernode.log",
        "flower-supernode",
        *("--root-certificates", str(coordinator.certificates.authority)),
        *("--superlink", f"{HOST}:{port}"),
        *("--auth-supernode-private-key", str(folder / "node.key")),
        *("--host", HOST, "--port", str(free_port())),
        *("--node-config", f'party="{folder / "party.toml"}"'),
    )


def train(folder: Path, rounds: int, limit: float, seed: int) -> list[dict[str, Any]]:
    """Run the project with Flower; returns its rounds as the ServerApp wrote them.

    Raises
    ------
    DeploymentError : when a program fails, or there is no result.
    """
    plan = write_hospitals(folder, limit, seed)
    parties = local_parties(plan, len(HOSPITALS))
    coordinator = prepared(plan, parties, folder / ".tacit")
    result, port = folder / "rounds.json", free_port()
    config = {
        "plan": coordinator.folder / "plan.toml",
        "identity": coordinator.identity,
        "result": result,
    }
    reported = " ".join(f'{name}="{path}"' for name, path in config.items()) + f" rounds={rounds}"
    result.unlink(missing_ok=True)
    with contextlib.ExitStack() as programs:
        programs.enter_context(start_superlink(coordinator, port))
        register_nodes(coordinator)
        nodes = [
            programs.enter_context(start_supernode(coordinator, name, port)) for name in parties
        ]
        for node in nodes:
            wait_connected(node, START_TIME)
        command = ("flwr", "run", str(PROJECT), CONNECTION, "--stream", "--run-config", reported)
        flower = Flower(coordinator.private / "flower")
        with flower.start(coordinator.private / "run.log", *command) as run:
            said = list(_shown(run.lines(LONGEST)))
    if not result.exists():
        raise DeploymentError("the run gave no result: " + " / ".join(said[-4:]))
    return list(json.loads(result.read_text(encoding="utf-8")))


def _shown(lines: Any) -> Any:
    """Lines of a run, of which those by tacit are printed."""
    for line in lines:
        if line.startswith(PREFIX):
            print(line.rstrip(), flush=True)
        yield line


def table(rounds: list[dict[str, Any]], folder: Path) -> str:
    """Private and exact AUC of every round's model, and the budget spent so far."""
    features, labels = pooled_test_records(folder)
    lines = ["95 % intervals are about these records"]
    lines.append("round  private AUC                exact   epsilon so far")
    spent = 0.0
    for entry in rounds:
        exact = auc(scores_of(np.array(entry["weights"]), features), labels)
        value = "not measured"
        if "result" in entry:
            result = entry["result"]["auc"]
            low, high = result["interval"]
            value = f"{result['value']:.4f} ({low:.4f} to {high:.4f})"
            spent += entry["result"]["spent"]["epsilon"]
        lines.append(f"{entry['round']:5}  {value:25}  {exact:.4f}  {spent:g}")
    return "\n".join(lines)


def main(words: list[str] | None = None) -> None:
    """Train, measure, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=3.0, help="epsilon that the ledgers allow")
    parser.add_argument("--seed", type=int, default=0, help="of the records; noise has none")
    parser.add_argument("--folder", type=Path, help="keep records, books and logs here")
    requested = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) if requested.folder is None else requested.folder.resolve()
        try:
            require_flower()
            rounds = train(folder, requested.rounds, requested.limit, requested.seed)
        except (DeploymentError, ImportError, ValueError, OSError) as error:
            sys.exit(f"run.py: {error}")
        print(table(rounds, folder))


if __name__ == "__main__":
    main()
