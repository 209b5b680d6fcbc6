"""Protocols end to end on one started server: three nodes over TLS with authentication.

What is exact must equal what is computed from the same records in one process. What is noisy must
say what it spent, and come from all three parties. ``pytest -s`` shows seconds and bytes by round.
"""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.ledger.ledger import Ledger
from tacit.results.schema import check_result
from tacit.running.deployment.certificates import make_certificates
from tacit.running.deployment.keys import stored_identity, stored_node_key
from tacit.running.deployment.local import toml_text
from tacit.running.deployment.node import start_node, wait_connected
from tacit.running.deployment.programs import free_port
from tacit.running.deployment.runs import conduct_run
from tacit.running.deployment.server import (
    Coordinator,
    nodes_online,
    register_nodes,
    start_server,
)
from tests.running.deployment.processes import HOSPITALS, nothing_left
from tests.running.deployment.test_processes import WAIT

pytest.importorskip("flwr")
pytestmark = pytest.mark.slow

PARTIES = ("a", "b", "c")
PLANS: dict[str, dict[str, Any]] = {
    "fedauc": {"name": "fedauc", "epsilon": 1.0},
    "histogram": {"name": "score-histogram", "trust": "exact-sum", "height": 8},
    "encrypted": {
        "name": "encrypted-auc",
        "most_records": 1500,
        "perturbed": False,
    },
    "hidden-ranks": {"name": "fedauc", "epsilon": 1.0, "ranks": "mpc"},
    "pairs": {"name": "paired-ustatistic", "kernel": "auc", "epsilon": 2.0},
}
DEADLINE = 120.0
ROUND = re.compile(
    r"round (\d+): 3 of 3 parties answered in [\d.]+ s, [\d,]+ bytes down, ([\d,]+) up"
)
WHO_AND_WHEN = {"software", "federation", "participants", "time", "fingerprint"}
"""Entries of a result about the run, and not about what was measured."""


class Site:
    """A coordinator with several plans, and three parties that agreed to all of them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.coordinator = Coordinator(folder / "centre")
        make_certificates(self.coordinator.certificates, ["127.0.0.1"])
        self.coordinator.nodes.mkdir()
        for name, settings in PLANS.items():
            self.plan(name).write_text(self._plan(name, settings))
        for name in PARTIES:
            public = stored_node_key(folder / name / "node.key")
            shutil.copy(public, self.coordinator.nodes / f"{name}.pub")
            (folder / name / "party.toml").write_text(self._party(name))

    def plan(self, name: str) -> Path:
        """Where a plan lies."""
        return self.coordinator.folder / f"{name}.toml"

    def _plan(self, name: str, settings: dict[str, Any]) -> str:
        centre = stored_identity(self.coordinator.identity).public.hex()
        head = {"name": name, "coordinator": centre, "deadline": DEADLINE}
        keys = {part: stored_identity(self.folder / part / "identity.key") for part in PARTIES}
        parties = [{"name": part, "key": keys[part].public.hex()} for part in PARTIES]
        return toml_text({"plan": head, "protocol": settings, "party": parties})

    def _party(self, name: str) -> str:
        agreed = [str(self.plan(part)) for part in PLANS]
        records = str(HOSPITALS / name / "records.csv")
        return toml_text(
            {
                "party": {"name": name, "plan": agreed},
                "data": {"file": records, "dataset": "registry"},
                "limit": {"epsilon": float("inf"), "adjacency": "label"},
                "mpc": {"listen": f"127.0.0.1:{free_port()}"},
            }
        )

    def start(self, running: ExitStack) -> None:
        """Start the server and the three nodes, and wait until they are connected."""
        running.enter_context(start_server(self.coordinator, "127.0.0.1", self.port))
        assert register_nodes(self.coordinator) == list(PARTIES)
        address, authority = f"127.0.0.1:{self.port}", self.coordinator.certificates.authority
        nodes = []
        for name in PARTIES:
            part = self.folder / name
            node = start_node(
                part / "party.toml", address, authority, part / "node.key", part / "up"
            )
            nodes.append(running.enter_context(node))
        for node in nodes:
            wait_connected(node, WAIT)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A running server with three parties connected, of which nothing is left afterwards."""
    federation_site = Site(tmp_path_factory.mktemp("site"))
    with ExitStack() as running:
        federation_site.start(running)
        yield federation_site
        assert nodes_online(federation_site.coordinator) == dict.fromkeys(PARTIES, "online")
    assert nothing_left(federation_site.folder)


def run_of(site: Site, name: str, rounds: int) -> dict[str, Any]:
    """The checked result of a run: of all three parties, in so many rounds, its bytes counted."""
    said: list[str] = []
    before = entries(site)
    result = conduct_run(site.coordinator, site.plan(name), DEADLINE, said.append)
    sent = {who["name"]: who["bytes_sent"] for who in result["participants"]}
    print(f"\n{name}:", *said, f"bytes by party: {sent}", sep="\n  ")
    check_result(result)
    results = [match for line in said if (match := ROUND.match(line))]
    assert [int(round_messages[1]) for round_messages in results] == list(range(rounds))
    assert sum(sent.values()) == result["traffic"]["bytes_sent"] == whole(results[-1][2])
    assert list(sent) == list(PARTIES)
    assert min(sent.values()) > 0
    assert result["noise"] == "system"
    assert not result["simulation"]
    assert all(after > once for after, once in zip(entries(site), before, strict=True))
    return result


def whole(text: str) -> int:
    """A number with commas between its thousands."""
    return int(text.replace(",", ""))


def in_one_process(name: str) -> dict[str, Any]:
    """The same plan on the same records, without any network."""
    settings = dict(PLANS[name])
    protocol = {
        "score-histogram": tacit.ScoreHistogram,
        "encrypted-auc": tacit.EncryptedAUC,
    }[settings.pop("name")](**settings)
    clients = tacit.read([HOSPITALS / part / "records.csv" for part in PARTIES])
    content = json.dumps(tacit.evaluate(clients, protocol, exact=True).to_dict())
    return dict(json.loads(content))


def entries(site: Site) -> list[int]:
    """How many entries every party's ledger holds, after it was verified."""
    counts = []
    for name in PARTIES:
        path = site.folder / name / "ledger.db"
        if not path.exists():
            counts.append(0)
            continue
        with Ledger.open_readonly(path) as pages:
            counts.append(pages.verify())
    return counts


def test_fedauc(site: Site) -> None:
    result = run_of(site, "fedauc", 2)
    assert result["spent"] == {"epsilon": 1.0, "delta": 0.0, "adjacency": "label"}


def test_a_secure_histogram_is_exact(site: Site) -> None:
    result, alone = run_of(site, "histogram", 5), in_one_process("histogram")
    same = set(alone) - {"traffic", "exact"} - WHO_AND_WHEN
    assert {key: result[key] for key in same} == {key: alone[key] for key in same}


def test_an_encrypted_auc_is_exact(site: Site) -> None:
    result, alone = run_of(site, "encrypted", 4), in_one_process("encrypted")
    assert result["auc"] == alone["auc"]
    assert result["auc"]["value"] == pytest.approx(alone["exact"], abs=0.01)


@pytest.mark.parametrize(("name", "adjacency"), [("hidden-ranks", "label"), ("pairs", "replace")])
def test_parties_compute_together(site: Site, name: str, adjacency: str) -> None:
    """In four rounds: numbers of records (or class sizes), announcements, outputs, noisy sums."""
    pytest.importorskip("spu.libspu", reason="computations between parties need SPU")
    result = run_of(site, name, 4)
    epsilon = PLANS[name]["epsilon"]
    assert result["spent"] == {"epsilon": epsilon, "delta": 0.0, "adjacency": adjacency}
    assert not [line for line in result["warnings"] if "trusted party" in line]
