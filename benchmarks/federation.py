"""Rounds of a federation against empty rounds of Flower: ``python -m benchmarks.federation``.

A SuperLink and three SuperNodes, over TLS with authentication of nodes, on this machine: first as
Flower starts them, with an application whose ClientApp returns at once and does not know this
package, then as this package starts them, with a plan of five rounds. Flower alone looks for
messages every three seconds on both sides and starts a process for each, so that seconds of its
rounds come in steps. This package's programs look more often and are forks of a prepared process.
Processor seconds of a node for one message have no steps. Takes some minutes.

With ``--rows`` one party has so many records in a database of DuckDB, the others an eighth of them
each: a run of fifteen rounds beside one of few records, and ``tacit.evaluate`` of all records in
one process, with the peak memory of the large party's processes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import tomli_w

import tacit
from benchmarks.timing import clock, row
from tacit.data.engines.opening import from_files
from tacit.files import write_public
from tacit.running.deployment.flower_programs.guards import write_application
from tacit.running.deployment.flower_programs.programs import (
    Flower,
    Program,
    free_port,
    is_listening,
)
from tacit.running.deployment.keys import make_certificates, stored_identity, stored_node_key
from tacit.running.deployment.server import (
    CONNECTION,
    Coordinator,
    conduct_run,
    register_nodes,
    start_server,
)
from tacit.running.deployment.site import start_node, wait_connected

HOST, PARTIES, WAIT = "127.0.0.1", ("a", "b", "c"), 60.0
ROUNDS, LONGEST = 5, 400.0
LOOKS = {"name": "score-histogram", "trust": "secure-sum", "epsilon": 1.0}
PLAN = LOOKS | {"height": 10}
EMPTY = f"""\
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
    for number in range(-1, {ROUNDS}):
        messages = [
            Message(RecordDict({{}}), dst_node_id=node, message_type="query.empty", ttl=240.0)
            for node in nodes
        ]
        started = time.monotonic()
        answers = len(list(grid.send_and_receive(messages, timeout=120.0)))
        seconds = time.monotonic() - started
        print(f"round {{number}}: {{answers}} of {len(PARTIES)} parties answered",
              f"in {{seconds:.1f}} s, 0 bytes down, 0 up so far", flush=True)
"""
"""The first round, -1, is the greeting with which a run of this package begins."""
ROUND_LINE = re.compile(r"round (\d+): 3 of 3 .* in ([\d.]+) s, ([\d,]+) bytes down, ([\d,]+) up")


@dataclass(frozen=True)
class Rounds:
    """What one run took.

    Parameters
    ----------
    seconds : of each round.
    bytes_down, bytes_up : of all messages.
    processor : seconds that one node's processes had the processor for one message.
    """

    seconds: tuple[float, ...]
    bytes_down: int
    bytes_up: int
    processor: float


class Session:
    """A started server with three nodes, on which an application runs.

    Parameters
    ----------
    folder : for all files.
    running : ends the programs.
    guarded : whether this package starts the programs, with its guards, or Flower alone.
    rows : records of the first party, in a database; 0 for few, in files, at all parties.
    """

    def __init__(
        self, folder: Path, running: contextlib.ExitStack, guarded: bool, rows: int = 0
    ) -> None:
        self._folder, self._running = folder, running
        self._coordinator = Coordinator(folder / "centre")
        self._flower = Flower(folder / "flower")
        self._port = free_port()
        make_certificates(self._coordinator.certificates, [HOST])
        self._write_plan(rows)
        start = self._start_guarded if guarded else self._start_bare
        self._nodes = [running.enter_context(node) for node in start()]
        for node in self._nodes:
            wait_connected(node, WAIT)

    def empty(self) -> Rounds:
        """A run of rounds in which nothing is done."""
        project = write_application(self._folder / "empty", "empty:server", "empty:client")
        (project / "empty.py").write_text(EMPTY, encoding="utf-8")
        command = ("flwr", "run", str(project), CONNECTION, "--stream")
        before = self._processor_seconds()
        with self._flower.start(self._folder / "run.log", *command) as run:
            return self._rounds(list(run.lines(LONGEST)), before)

    def guarded(self) -> Rounds:
        """A run of our plan."""
        before, printed = self._processor_seconds(), list[str]()
        conduct_run(self._coordinator, self._plan, LONGEST, printed.append)
        return self._rounds(printed, before)

    def large(self) -> tuple[float, float, float]:
        """Of a run: seconds, processor seconds of all nodes, and a process's peak memory in MiB.

        The process is the first party's largest.
        """
        roots = {each.pid for each in (self._nodes[0], self._nodes[0].helper) if each is not None}
        peak, over = 0.0, threading.Event()

        def watch() -> None:
            nonlocal peak
            while not over.wait(0.05):
                peak = max(peak, *map(peak_memory, descendants(roots)))

        watching, before = threading.Thread(target=watch), self._processor_seconds()
        watching.start()
        seconds = clock(lambda: conduct_run(self._coordinator, self._plan, LONGEST, print))
        over.set()
        watching.join()
        return seconds, self._processor_seconds() - before, peak

    def pooled(self) -> tacit.Clients:
        """All records, in Parquet files."""
        for name in PARTIES:
            database = str(self._folder / name / "records.duckdb")
            with duckdb.connect(database, read_only=True) as connection:
                connection.execute(f"COPY scored TO '{self._folder / name}.parquet'")
        return from_files([str(self._folder / "*.parquet")])

    @property
    def _plan(self) -> Path:
        return self._coordinator.folder / "plan.toml"

    def _rounds(self, printed: Sequence[str], before: float) -> Rounds:
        matches = [match for line in printed if (match := ROUND_LINE.search(line))]
        if len(matches) != ROUNDS:
            raise RuntimeError(
                f"{len(matches)} of {ROUNDS} rounds, and it printed\n" + "\n".join(printed)
            )
        spent = self._processor_seconds() - before
        whole = [[int(match[side].replace(",", "")) for side in (3, 4)] for match in matches]
        return Rounds(
            tuple(float(match[2]) for match in matches),
            sum(down for down, _ in whole),
            whole[-1][1],
            spent / ((ROUNDS + 1) * len(PARTIES)),
        )

    def _processor_seconds(self) -> float:
        """Of all nodes, with the processes that they started."""
        prepared = [node.helper for node in self._nodes if node.helper is not None]
        return processor_seconds({program.pid for program in (*self._nodes, *prepared)})

    def _write_plan(self, rows: int) -> None:
        rng = np.random.default_rng(0)
        parties = []
        for name in PARTIES:
            home = self._folder / name
            key = stored_identity(home / "identity.key").public.hex()
            parties.append({"name": name, "key": key})
            labels = rng.integers(0, 2, 400)
            scores = 1 / (1 + np.exp(-rng.normal(1.2 * labels - 0.6, 1.0)))
            table = np.column_stack((scores, labels))
            np.savetxt(home / "records.csv", table, "%.6f,%d", header="score,label", comments="")
            party = {"name": name, "plan": str(self._plan)}
            data = {"file": "records.csv", "dataset": "registry"}
            if rows:
                write_database(home / "records.duckdb", rows if name == PARTIES[0] else rows // 8)
                data = {"records": "duckdb://records.duckdb", "table": "scored", "dataset": "r"}
            (home / "party.toml").write_text(
                tomli_w.dumps({"party": party, "data": data, "limit": {"epsilon": 100.0}})
            )
        head = {
            "name": "bench",
            "coordinator": stored_identity(self._coordinator.identity).public.hex(),
            "deadline": LONGEST,
        }
        protocol = LOOKS if rows else PLAN
        self._plan.write_text(tomli_w.dumps({"plan": head, "protocol": protocol, "party": parties}))

    def _start_guarded(self) -> list[Program]:
        """All programs as this package starts them."""
        coordinator = self._coordinator
        self._running.enter_context(start_server(coordinator, HOST, self._port))
        for name in PARTIES:
            public = stored_node_key(self._folder / name / "node.key")
            write_public(coordinator.nodes / f"{name}.pub", public.read_bytes())
        register_nodes(coordinator)
        address, authority = f"{HOST}:{self._port}", coordinator.certificates.authority
        homes = [self._folder / name for name in PARTIES]
        return [
            start_node(home / "party.toml", address, authority, home / "node.key", home / "up")
            for home in homes
        ]

    def _start_bare(self) -> list[Program]:
        """All programs as Flower starts them."""
        self._start_server()
        return [self._start_node(name) for name in PARTIES]

    def _start_server(self) -> None:
        files, address = self._coordinator.certificates, f"{HOST}:{self._port}"
        connection = {"address": address, "root-certificates": str(files.authority)}
        config = {"superlink": {"default": CONNECTION}, f"superlink.{CONNECTION}": connection}
        (self._folder / "flower").mkdir()
        (self._folder / "flower" / "config.toml").write_text(tomli_w.dumps(config))
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
        public = stored_node_key(home / "node.key")
        self._flower.call("flwr", "supernode", "register", str(public), CONNECTION, "--name", name)
        return self._flower.start(
            home / "supernode.log",
            "flower-supernode",
            *("--root-certificates", str(self._coordinator.certificates.authority)),
            *("--superlink", f"{HOST}:{self._port}"),
            *("--auth-supernode-private-key", str(home / "node.key")),
            *("--host", HOST, "--port", str(free_port())),
            *("--node-config", f'party="{home / "party.toml"}"'),
        )


def write_database(file: Path, rows: int) -> None:
    """Scores of a binormal model as doubles, three tenths of them positive."""
    with duckdb.connect(str(file)) as connection:
        connection.execute(f"""CREATE TABLE scored AS
        SELECT 1 / (1 + exp(-(label + sqrt(-2 * ln(1 - u)) * cos(2 * pi() * v)))) AS score, label
        FROM (SELECT random() AS u, random() AS v, (random() < 0.3)::INTEGER AS label
          FROM range({rows}))""")


def peak_memory(process: int) -> float:
    """The most that a process had in memory so far, in MiB; 0 where it has ended."""
    with contextlib.suppress(OSError):
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
        return max((int(kib) / 1024 for kib in re.findall(r"VmHWM:\s+(\d+)", status)), default=0.0)
    return 0.0


def processor_seconds(roots: Set[int]) -> float:
    """Of running processes and all that they started, and of those that these have seen end."""
    ticks = descendants(roots)
    return sum(ticks.values()) / os.sysconf("SC_CLK_TCK")


def descendants(roots: Set[int]) -> dict[int, int]:
    """Running processes and all that they started, with their ticks of processor time."""
    parents, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = path.read_text(encoding="utf-8").rpartition(")")[2].split()
            process = int(path.parent.name)
            parents[process] = int(fields[1])
            ticks[process] = sum(int(field) for field in fields[11:15])
    reached = {process for process in parents if process in roots}
    while more := {process for process, parent in parents.items() if parent in reached} - reached:
        reached |= more
    return {process: ticks[process] for process in reached}


@contextlib.contextmanager
def started(guarded: bool, rows: int = 0) -> Iterator[Session]:
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        yield Session(Path(folder), running, guarded, rows)


def print_large(rows: int) -> None:
    """A run about many records, beside one about few, and beside one process."""
    with started(guarded=True, rows=64) as session:
        idle = session.large()
    with started(guarded=True, rows=rows) as session:
        runs = [session.large() for _ in range(2)]
        clients, protocol = session.pooled(), tacit.ScoreHistogram(epsilon=1.0)
        before = time.process_time()
        alone = clock(lambda: tacit.evaluate(clients, protocol)), time.process_time() - before
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"{rows:,} records and twice {rows // 8:,}; load {load}")
    for run, name in zip(runs, ("A run", "Another, of the same records"), strict=True):
        less = [(run[side] - idle[side]) / alone[side] for side in range(2)]
        note = f"less its rounds {less[0]:.1f} of one process, by processors {less[1]:.1f}; target "
        print(row(name, run[0], f"{note}at most 2.5; peak {run[2]:.0f} MiB"))
    print(row("A run of few records", idle[0], f"peak {idle[2]:.0f} MiB"))
    print(row("tacit.evaluate in one process", alone[0], f"by processors {alone[1]:.1f}"))


def lines(empty: Sequence[Rounds], guarded: Sequence[Rounds]) -> list[str]:
    """What is printed: seconds of a round, processor seconds of a message, bytes."""

    def every(runs: Sequence[Rounds]) -> list[float]:
        return [second for run in runs for second in run.seconds]

    def compared(name: str, measure: Callable[[Sequence[Rounds]], float], aim: str) -> str:
        seconds, bare = measure(guarded), measure(empty)
        note = f"empty {bare:.3f}, ratio {seconds / bare:.2f}{aim}"
        return row(name, seconds, note)

    mean, median = statistics.mean, statistics.median
    down, up = guarded[-1].bytes_down, guarded[-1].bytes_up
    return [
        compared("A round, mean", lambda runs: mean(every(runs)), "; target at most 1.5 s"),
        compared("A round, median", lambda runs: median(every(runs)), ""),
        compared(
            "A node's processor seconds a message",
            lambda runs: mean(run.processor for run in runs),
            "",
        ),
        f"  messages of {ROUNDS} rounds, {len(PARTIES)} parties: {down:,} bytes down, {up:,} up",
        f"  seconds by round: ours {every(guarded)}, empty {every(empty)}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.federation", description=__doc__)
    parser.add_argument("--runs", type=int, default=2, help="runs of each application")
    parser.add_argument("--rows", type=float, help="records of the largest party: one long run")
    options = parser.parse_args()
    if options.rows:
        print_large(int(options.rows))
        return
    print(f"Three nodes over TLS, {options.runs} runs of {ROUNDS} rounds each; seconds")
    with started(guarded=False) as session:
        empty = [session.empty() for _ in range(options.runs)]
    with started(guarded=True) as session:
        guarded = [session.guarded() for _ in range(options.runs)]
    print("\n".join(lines(empty, guarded)))


if __name__ == "__main__":
    main()
