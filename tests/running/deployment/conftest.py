"""A server with three nodes, over TLS with authentication, which the tests of a folder share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from tacit.running.deployment.flower_programs.programs import Program, free_port
from tacit.running.deployment.keys import make_certificates, stored_identity, stored_node_key
from tacit.running.deployment.server import Coordinator, nodes_online, register_nodes, start_server
from tacit.running.deployment.site import start_node, wait_connected
from tests.running.deployment.processes import HOSPITALS, WAIT, nothing_left

PARTIES = ("a", "b", "c")
PLANS: dict[str, dict[str, Any]] = {
    "fedauc": {"name": "fedauc", "epsilon": 1.0},
    "encrypted": {"name": "encrypted-auc", "most_records": 1500, "perturbed": False},
    "hidden-ranks": {"name": "fedauc", "epsilon": 1.0, "trust": "mpc"},
    "pairs": {"name": "paired-ustatistic", "kernel": "auc", "epsilon": 2.0},
}
DEADLINE = 120.0


class Federation:
    """A coordinator with several plans, and parties that agreed to all of them."""

    connected: Program

    def __init__(
        self,
        folder: Path,
        plans: dict[str, dict[str, Any]],
        parties: tuple[str, ...] = PARTIES,
    ) -> None:
        self.folder, self.port = folder, free_port()
        self.plans, self.parties = plans, parties
        self.coordinator = Coordinator(folder / "centre")
        make_certificates(self.coordinator.certificates, ["127.0.0.1"])
        self.coordinator.nodes.mkdir()
        for name, settings in plans.items():
            self.plan(name).write_text(self._plan(name, settings))
        for name in parties:
            public = stored_node_key(folder / name / "node.key")
            shutil.copy(public, self.coordinator.nodes / f"{name}.pub")
            (folder / name / "party.toml").write_text(self._party(name))

    def plan(self, name: str) -> Path:
        """Where a plan lies."""
        return self.coordinator.folder / f"{name}.toml"

    def _plan(self, name: str, settings: dict[str, Any]) -> str:
        centre = stored_identity(self.coordinator.identity).public.hex()
        head = {"name": name, "coordinator": centre, "deadline": DEADLINE}
        keys = {part: stored_identity(self.folder / part / "identity.key") for part in self.parties}
        parties = [{"name": part, "key": keys[part].public.hex()} for part in self.parties]
        return tomli_w.dumps({"plan": head, "protocol": settings, "party": parties})

    def _party(self, name: str) -> str:
        agreed = [str(self.plan(part)) for part in self.plans]
        records = str(HOSPITALS / name / "records.csv")
        return tomli_w.dumps(
            {
                "party": {"name": name, "plan": agreed},
                "data": {"file": records, "dataset": "registry"},
                "limit": {"epsilon": float("inf"), "adjacency": "label"},
                "mpc": {"listen": f"127.0.0.1:{free_port()}"},
            }
        )

    def server(self, lasting: bool = False) -> Program:
        """Start the server; as in a local run its state is in memory, unless it is ``lasting``."""
        return start_server(self.coordinator, "127.0.0.1", self.port, lasting=lasting)

    def start(self, running: ExitStack) -> None:
        """Start the server and all nodes, which fork from its prepared process, and wait for them.

        A server with a database, and nodes with their own processes, are those of the walk-through.
        """
        running.enter_context(self.server())
        assert register_nodes(self.coordinator) == list(self.parties)
        assert register_nodes(self.coordinator) == []
        nodes = [running.enter_context(self.node(name)) for name in self.parties]
        for node in nodes:
            wait_connected(node, WAIT)
        self.connected = nodes[0]

    def node(
        self, party: str, folder: str = "up", key: Path | None = None, authority: Path | None = None
    ) -> Program:
        """A SuperNode of a party, of its own configuration."""
        part = self.folder / party
        return start_node(
            part / "party.toml",
            f"127.0.0.1:{self.port}",
            authority or self.coordinator.certificates.authority,
            key or part / "node.key",
            part / folder,
            prepared=self.coordinator.guards,
        )


@pytest.fixture(scope="package")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """A running server with three parties connected, of which nothing is left afterwards."""
    made = Federation(tmp_path_factory.mktemp("federation"), PLANS)
    with ExitStack() as running:
        made.start(running)
        yield made
        assert nodes_online(made.coordinator) == dict.fromkeys(PARTIES, "online")
    assert nothing_left(made.folder)
