"""Legs of a federation against empty rounds of Flower: ``python -m benchmarks.federation``.

One SuperLink and three SuperNodes, over TLS with authentication of nodes, on this machine. In turn
run an application whose ClientApp returns at once and does not know this package, and ours with a
plan of five legs. Flower's programs look for messages every three seconds on both sides, so that
seconds of a leg come in steps. Processor seconds of a node for one message have no such steps.

Nodes run without our guard, which would refuse the empty application. Takes some minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.timing import row
from tacit.running.deployment.applications import write_application
from tacit.running.deployment.certificates import make_certificates
from tacit.running.deployment.keys import kept_identity, kept_node_key
from tacit.running.deployment.local import toml_text
from tacit.running.deployment.node import wait_connected
from tacit.running.deployment.programs import Flower, Program, free_port, is_listening, plain
from tacit.running.deployment.server import CONNECTION, Coordinator

HOST, PARTIES, WAIT = "127.0.0.1", ("a", "b", "c"), 60.0
LEGS, LONGEST = 5, 400.0
PLAN = {"name": "score-histogram", "trust": "distributed-dp", "epsilon": 1.0}
EMPTY = f"""\
import time
from flwr.app import Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

client = ClientApp()
server = ServerApp()


@client.query("empty")
def empty(message, context):
    return Message(RecordDict({{}}), reply_to=message)


@server.main()
def main(grid, context):
    while len(nodes := list(grid.get_node_ids())) < {len(PARTIES)}:
        time.sleep(0.5)
    for leg in range(-1, {LEGS}):
        asked = [
            Message(RecordDict({{}}), dst_node_id=node, message_type="query.empty", ttl=240.0)
            for node in nodes
        ]
        started = time.monotonic()
        told = len(list(grid.send_and_receive(asked, timeout=120.0)))
        seconds = time.monotonic() - started
        print(f"leg {{leg}}: {{told}} of {len(PARTIES)} parties answered in {{seconds:.1f}} s,",
              "0 bytes down, 0 up so far", flush=True)
"""
"""The first round, -1, stands for the greeting with which our runs begin."""
TOLD = re.compile(r"leg (\d+): 3 of 3 .* in ([\d.]+) s, ([\d,]+) bytes down, ([\d,]+) up")


@dataclass(frozen=True)
class Legs:
    """What one run took.

    Parameters
    ----------
    seconds : of each leg.
    bytes_down, bytes_up : of all letters.
    processor : seconds that one node's processes had the processor for one message.
    """

    seconds: tuple[float, ...]
    bytes_down: int
    bytes_up: int
    processor: float


class Session:
    """A started server with three nodes, on which applications run."""

    def __init__(self, folder: Path, running: contextlib.ExitStack) -> None:
        self._folder, self._running = folder, running
        self._place = Coordinator(folder / "centre")
        self._flower = Flower(folder / "flower")
        self._port = free_port()
        make_certificates(self._place.certificates, [HOST])
        self._write_plan()
        self._start_server()
        self._nodes = [self._start_node(name) for name in PARTIES]
        for node in self._nodes:
            wait_connected(node, WAIT)

    def empty(self) -> Legs:
        """A run of rounds in which nothing is done."""
        project = write_application(self._folder / "empty", "empty:server", "empty:client")
        (project / "empty.py").write_text(EMPTY, encoding="utf-8")
        return self._run(project, "")

    def ours(self) -> Legs:
        """A run of our plan."""
        place = self._place
        settings = f'plan="{self._plan}" identity="{place.identity}"'
        result = self._folder / "result.json"
        return self._run(write_application(self._folder / "ours"), f'{settings} result="{result}"')

    @property
    def _plan(self) -> Path:
        return self._place.folder / "plan.toml"

    def _run(self, project: Path, settings: str) -> Legs:
        command = ["flwr", "run", str(project), CONNECTION, "--stream"]
        command += ["--run-config", settings] if settings else []
        before = self._processor_seconds()
        with self._flower.lines(*command) as process:
            said, _ = process.communicate(timeout=LONGEST)
        found = [match for line in said.splitlines() if (match := TOLD.search(plain(line)))]
        if len(found) != LEGS:
            raise RuntimeError(f"{project.name}: {len(found)} of {LEGS} legs, and it said\n{said}")
        spent = self._processor_seconds() - before
        whole = [[int(leg[side].replace(",", "")) for side in (3, 4)] for leg in found]
        return Legs(
            tuple(float(leg[2]) for leg in found),
            sum(down for down, _ in whole),
            whole[-1][1],
            spent / ((LEGS + 1) * len(PARTIES)),
        )

    def _processor_seconds(self) -> float:
        """Of all nodes, with the processes that they started."""
        return sum(processor_seconds(node.pid) for node in self._nodes)

    def _write_plan(self) -> None:
        rng = np.random.default_rng(0)
        parties = []
        for name in PARTIES:
            home = self._folder / name
            own = kept_identity(home / "identity.key").public.hex()
            parties.append({"name": name, "key": own})
            labels = rng.integers(0, 2, 400)
            scores = 1 / (1 + np.exp(-rng.normal(1.2 * labels - 0.6, 1.0)))
            table = np.column_stack((scores, labels))
            np.savetxt(home / "records.csv", table, "%.6f,%d", header="score,label", comments="")
            party = {"name": name, "plan": str(self._plan)}
            data = {"file": "records.csv", "dataset": "registry"}
            (home / "party.toml").write_text(
                toml_text({"party": party, "data": data, "limit": {"epsilon": 100.0}})
            )
        head = {"name": "bench", "coordinator": kept_identity(self._place.identity).public.hex()}
        self._plan.write_text(toml_text({"plan": head, "protocol": PLAN, "party": parties}))

    def _start_server(self) -> None:
        files, address = self._place.certificates, f"{HOST}:{self._port}"
        connection = {"address": address, "root-certificates": str(files.authority)}
        config = {"superlink": {"default": CONNECTION}, f"superlink.{CONNECTION}": connection}
        (self._folder / "flower").mkdir()
        (self._folder / "flower" / "config.toml").write_text(toml_text(config))
        server = self._flower.start(
            self._folder / "superlink.log",
            "flower-superlink",
            *("--ssl-ca-certfile", str(files.authority)),
            *("--ssl-certfile", str(files.certificate)),
            *("--ssl-keyfile", str(files.key)),
            "--enable-supernode-auth",
            "--disable-runtime-dependency-installation",
            *("--host", HOST, "--port", str(self._port)),
        )
        self._running.enter_context(server)
        server.wait_until(lambda: is_listening(HOST, self._port), WAIT)

    def _start_node(self, name: str) -> Program:
        home = self._folder / name
        public = kept_node_key(home / "node.key")
        self._flower.call("flwr", "supernode", "register", str(public), CONNECTION, "--name", name)
        node = self._flower.start(
            home / "supernode.log",
            "flower-supernode",
            *("--root-certificates", str(self._place.certificates.authority)),
            *("--superlink", f"{HOST}:{self._port}"),
            *("--auth-supernode-private-key", str(home / "node.key")),
            *("--host", HOST, "--port", str(free_port())),
            *("--node-config", f'party="{home / "party.toml"}"'),
        )
        return self._running.enter_context(node)


def processor_seconds(session: int) -> float:
    """Of the running processes of a session, and of those that they have seen end."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = path.read_text(encoding="utf-8").rpartition(")")[2].split()
            if int(fields[3]) == session:
                ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def started() -> Iterator[Session]:
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        yield Session(Path(folder), running)


def lines(empty: Sequence[Legs], ours: Sequence[Legs]) -> list[str]:
    """What is printed: seconds of a leg, processor seconds of a message, bytes."""

    def every(runs: Sequence[Legs]) -> list[float]:
        return [second for run in runs for second in run.seconds]

    def compared(name: str, measure: Callable[[Sequence[Legs]], float], aim: str) -> str:
        mine, bare = measure(ours), measure(empty)
        note = f"empty {bare:.3f}, ratio {mine / bare:.2f}{aim}"
        return row(name, mine, note)

    mean, median = statistics.mean, statistics.median
    down, up = ours[-1].bytes_down, ours[-1].bytes_up
    return [
        compared("A leg, mean", lambda runs: mean(every(runs)), "; target ratio at most 1.10"),
        compared("A leg, median", lambda runs: median(every(runs)), ""),
        compared(
            "A node's processor seconds a message",
            lambda runs: mean(run.processor for run in runs),
            "",
        ),
        f"  letters of {LEGS} legs, {len(PARTIES)} parties: {down:,} bytes down, {up:,} up",
        f"  seconds by leg: ours {every(ours)}, empty {every(empty)}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.federation", description=__doc__)
    parser.add_argument("--runs", type=int, default=2, help="runs of each application")
    options = parser.parse_args()
    print(f"Three nodes over TLS, {options.runs} runs of {LEGS} legs each, in turn; seconds")
    empty, ours = [], []
    with started() as session:
        for _ in range(options.runs):
            empty.append(session.empty())
            ours.append(session.ours())
    print("\n".join(lines(empty, ours)))


if __name__ == "__main__":
    main()
