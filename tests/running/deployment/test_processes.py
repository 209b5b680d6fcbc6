"""Deployments of real processes on loopback: Flower's programs, TLS, authentication, our apps.

Every wait is bounded, and no process outlives its test.
"""

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import takewhile
from pathlib import Path
from typing import Any

import httpx
import pytest

from tacit.ledger.ledger import Ledger
from tacit.running.deployment import keys, server
from tacit.running.deployment.flower_programs import programs
from tacit.running.deployment.flower_programs.guards import write_application
from tacit.running.deployment.site import RefusedError, wait_connected
from tacit.running.session.service import PartyDesk
from tests import known
from tests.running.deployment import processes
from tests.running.deployment.conftest import PARTIES, Federation
from tests.terminal import typed

pytest.importorskip("flwr")
pytestmark = pytest.mark.slow

DOCUMENT = Path(__file__).parents[3] / "docs" / "guides" / "federation.md"
TACIT = Path(sys.executable).parent / "tacit"


def walk_through() -> list[str]:
    """The lines that the deployment's walk-through has its reader type, in order."""
    lines, inside = [], False
    for line in DOCUMENT.read_text().splitlines():
        inside = line == "<!-- walk-through -->" or (inside and (not line or line[:4] == "    "))
        if inside and line.startswith("    "):
            lines.append(line.strip())
    return lines


class Terminals:
    """Lines typed in a folder: most of them end by themselves, some go on until interrupted."""

    def __init__(self, folder: Path, running: ExitStack) -> None:
        self.folder, self._running = folder, running
        path = f"{TACIT.parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path}
        self._open: list[tuple[programs.Program, str]] = []
        self.operators = list[str]()

    def type(self, line: str) -> str:
        """Type a line; what it printed, if it ended."""
        if line.startswith(("tacit join", "tacit serve")) and "--check" not in line:
            self._go_on(line, "serving on" if "serve " in line else "connected to")
            return ""
        for program, ready in self._open:
            program.wait_until(lambda: ready in program.said(), processes.WAIT)  # noqa: B023
        return typed(line, self.folder)

    def _go_on(self, line: str, ready: str) -> None:
        log = self.folder / f"terminal-{len(self._open)}.log"
        command = f"cd '{self.folder}' && exec {line}"
        self.operators.append(f"127.0.0.1:{programs.free_port()}")
        environment = {**self._environment, "TACIT_METRICS": self.operators[-1]}
        program = programs.Program(["bash", "-c", command], environment, log)
        self._running.enter_context(program)
        if line.startswith("tacit serve"):
            program.wait_until(lambda: "c may connect" in program.said(), processes.WAIT)
        self._open.append((program, ready))


def test_the_walk_through_makes_what_a_server_and_its_parties_need(tmp_path: Path) -> None:
    """Its lines up to those that start a server and the parties' programs."""
    (tmp_path / "examples").symlink_to(processes.HOSPITALS.parent)
    for line in takewhile(lambda line: not line.startswith("tacit serve"), walk_through()):
        typed(line, tmp_path)
    for name in "abc":
        assert (tmp_path / "centre" / "nodes" / f"{name}.pub").is_file()
        assert PartyDesk.open(tmp_path / f"hospital-{name}" / "party.toml").party_file.name == name


@pytest.mark.thorough
def test_the_walk_through_of_the_documents(tmp_path: Path) -> None:
    """Three hospitals over TLS with authentication, line by line as the reader types them."""
    (tmp_path / "examples").symlink_to(processes.HOSPITALS.parent)
    port, said = str(programs.free_port()), {}
    with ExitStack() as running:
        terminals = Terminals(tmp_path, running)
        for line in walk_through():
            said[line] = terminals.type(line.replace("8443", port))
        for address in terminals.operators:
            health = httpx.get(f"http://{address}/health", trust_env=False)
            assert (health.status_code, set(health.json().values())) == (200, {"ok"})
        assert processes.processes_in(tmp_path)
    assert processes.nothing_left(tmp_path)
    status, run = (
        said["tacit status centre/plan.toml"],
        said["tacit run centre/plan.toml --json result.json"],
    )
    assert status.count("online") == 3
    assert "round 1.5: 3 of 3 parties answered" in run
    check_result(json.loads((tmp_path / "result.json").read_text()))
    for name in "abc":
        check_book(tmp_path / f"hospital-{name}" / "ledger.db", "my-records")


def check_result(result: dict[str, Any]) -> None:
    """Three parties spent epsilon 1, and the classifier of the example has an AUC of about 0.8."""
    assert [who["name"] for who in result["participants"]] == ["a", "b", "c"]
    spent = {"epsilon": 1.0, "delta": 0.0, "adjacency": "record"}
    assert result["spent"].items() >= spent.items()
    low, high = result["auc"]["interval"]
    assert low < 0.9
    assert high > 0.7


def check_book(path: Path, dataset: str) -> None:
    """The ledger verifies, and has epsilon 1 in it."""
    with Ledger.open_readonly(path) as pages:
        pages.verify()
        (spent,) = pages.spending(dataset)
    assert spent.epsilon == 1.0


ONE = {"one": {"name": "dpauc", "epsilon": 1.0}}
"""The plan of a site: a server, and one party."""


def test_wrong_nodes_and_servers_are_refused(federation: Federation, tmp_path: Path) -> None:
    """A new key under the party's name, and a server with another authority's certificate."""
    keys.stored_node_key(tmp_path / "stranger.key")
    other = keys.Certificates.within(tmp_path, tmp_path / "other")
    keys.make_certificates(other, ["127.0.0.1"])
    with ExitStack() as running:
        unknown = federation.node("a", "stranger", key=tmp_path / "stranger.key")
        stranger = running.enter_context(unknown)
        foreign = running.enter_context(federation.node("a", "foreign", authority=other.authority))
        with pytest.raises(RefusedError, match="does not know this node key"):
            wait_connected(stranger, processes.WAIT)
        with pytest.raises(RefusedError, match="not be the server that it claims to be"):
            wait_connected(foreign, processes.WAIT)
    assert server.nodes_online(federation.coordinator) == dict.fromkeys(PARTIES, "online")


def ends_of(federation: Federation, submitted: dict[Path, str]) -> dict[Path, str]:
    """How runs ended that were submitted around our command: applications and their settings."""
    flower, command = federation.coordinator.flower(), ("flwr", "run")
    numbers = {
        flower.call(*command, str(part), server.CONNECTION, "--run-config", settings)[
            "run-id"
        ]: part
        for part, settings in submitted.items()
    }
    for _ in range(int(processes.WAIT)):
        runs = {run["run-id"]: run for run in server.runs_of(federation.coordinator)}
        if all(runs[number]["status"].startswith("finished") for number in numbers):
            return {part: runs[number]["status-details"] for number, part in numbers.items()}
        time.sleep(1)
    raise AssertionError("the runs did not end")


def test_what_others_submit_is_not_run(federation: Federation, tmp_path: Path) -> None:
    """Who got hold of the server's token may submit: an application that leaves a mark when it is
    run, or our own one without a ticket, writing where the sender wants."""
    mark, target = tmp_path / "mark", tmp_path / "result.json"
    second = write_application(tmp_path / "theirs", server="theirs:server", client="theirs:client")
    (second / "theirs.py").write_text(f"open({str(mark)!r}, 'w').close()\nserver = client = None\n")
    first = write_application(tmp_path / "ours")
    plan, identity = federation.plan("fedauc"), federation.coordinator.identity
    settings = f'plan="{plan}" identity="{identity}" result="{target}"'
    ends = ends_of(federation, {second: 'plan="x"', first: f'{settings} ticket="{"0" * 32}"'})
    assert "holds its own files: theirs.py" in ends[second]
    assert "on its own machine" in ends[first]
    assert not mark.exists()
    assert not target.exists()


def test_strangers_take_over_no_task(federation: Federation) -> None:
    """The task of a run is its messages: neither the server's port nor a node's hands it out."""
    httpx = pytest.importorskip("httpx")
    client = importlib.import_module("flwr.supercore.runtime").RuntimeHttpClient
    requested = importlib.import_module("flwr.proto.runtime_pb2").AcquireTaskRequest()
    requested.supported_task_types.extend(["flwr-serverapp", "flwr-clientapp"])
    place = known(re.search(r"http://(127.0.0.1:\d+)", federation.connected.said()))
    root = federation.coordinator.certificates.authority.read_bytes()
    for address, authority in ((f"127.0.0.1:{federation.port}", root), (place[1], None)):
        stranger = client.from_server_address(address, authority is None, authority, ())
        with stranger, pytest.raises(httpx.HTTPStatusError, match="403"):
            stranger.AcquireTask(requested)


@pytest.mark.thorough
def test_a_server_that_is_killed_comes_back(tmp_path: Path) -> None:
    """Killed without warning and started again from its database, it knows its nodes; a node whose
    key was taken away may not connect any more."""
    site = Federation(tmp_path, ONE, ("a",))
    with site.server(lasting=True) as killed:
        server.register_nodes(site.coordinator)
        os.kill(killed.pid, signal.SIGKILL)
        with pytest.raises(programs.DeploymentError, match="ended with status -9"):
            killed.wait_until(lambda: False, processes.WAIT)
    with site.server(lasting=True):
        assert server.register_nodes(site.coordinator) == []
        with site.node("a", "again") as node:
            wait_connected(node, processes.WAIT)
        (site.coordinator.nodes / "a.pub").unlink()
        assert server.register_nodes(site.coordinator) == []
        with site.node("a", "gone") as node, pytest.raises(RefusedError, match="does not know"):
            wait_connected(node, processes.WAIT)
    assert processes.nothing_left(tmp_path)


MOST_COMMANDS = 11
SITE_CODE = re.compile(r"^code +(\S+)", re.MULTILINE)
ROSTER_CODE = re.compile(r"code of the roster: (\S+)")


def commands() -> list[str]:
    """The lines that the page has its reader type, in order."""
    blocks = re.findall(r"<!-- joining -->\n\n```console\n(.*?)```", DOCUMENT.read_text(), re.S)
    return [line[2:] for block in blocks for line in block.splitlines() if line[:2] == "$ "]


def heard(line: str, said: str) -> dict[str, str]:
    """The code that a command printed, by what stands for it where a person types it."""
    if line.startswith("tacit accept") and (site := SITE_CODE.search(said)):
        return {f"CODE-{line.partition('hospital-')[2][0].upper()}": site[1]}
    roster = ROSTER_CODE.search(said)
    return {"ROSTER-CODE": roster[1]} if roster else {}


@pytest.mark.thorough
def test_three_sites_join(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    (tmp_path / "examples").symlink_to(processes.HOSPITALS.parent)
    port, lines, codes = str(programs.free_port()), commands(), dict[str, str]()
    assert len(lines) == MOST_COMMANDS
    started, said = time.monotonic(), ""
    with ExitStack() as running:
        terminals = Terminals(tmp_path, running)
        for line in lines:
            typed_line = line.replace("8443", port)
            for name, code in codes.items():
                typed_line = typed_line.replace(name, code)
            said = terminals.type(typed_line)
            codes |= heard(line, said)
        record_property("seconds", time.monotonic() - started)
        shown = (tmp_path / "terminal-1.log").read_text()
    assert codes.keys() == {"CODE-A", "CODE-B", "CODE-C", "ROSTER-CODE"}
    assert processes.nothing_left(tmp_path)
    check_result(json.loads((tmp_path / "result.json").read_text()))
    for words in ("precision at 0.5", "calibration error", "sent by c"):
        assert words in said
    for words in ("roster of", "connected to localhost", "answered: AUC", "the ledger allows"):
        assert words in shown
    for name in "abc":
        check_book(tmp_path / f"hospital-{name}" / "ledger.db", "my-records")


@pytest.mark.parametrize(
    ("ready", "left", "count", "sent"),
    [
        pytest.param("starting the server", "flower-superlink", 1, signal.SIGKILL, id="start"),
        pytest.param(
            "round 1.1", "flower-supernode", 3, signal.SIGKILL, marks=pytest.mark.thorough
        ),
        pytest.param("server on", "flower-superlink", 1, signal.SIGINT, marks=pytest.mark.thorough),
    ],
)
def test_a_killed_run_leaves_nothing(
    tmp_path: Path, ready: str, left: str, count: int, sent: signal.Signals
) -> None:
    """Killed so that it can clean nothing up, or interrupted: what it started ends."""
    home = processes.example(tmp_path)
    with subprocess.Popen(
        [TACIT, "run", "--local", "3", home / "plan.toml"], stdout=subprocess.PIPE, text=True
    ) as started:
        assert any(line.startswith(ready) for line in known(started.stdout))

        def are_there() -> bool:
            commands = processes.descendants(started.pid).values()
            return sum(left in command for command in commands) == count

        assert processes.comes(are_there)
        begun = processes.descendants(started.pid)
        started.send_signal(sent)
    assert started.returncode == (130 if sent is signal.SIGINT else -sent)
    assert processes.nothing_left(tmp_path, begun)
