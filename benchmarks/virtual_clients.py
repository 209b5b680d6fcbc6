"""1,000 parties of a histogram as virtual clients of Flower's simulation engine.

The engine of Flower 1.41 runs on Ray only, which comes with ``flwr[simulation]`` and is no
dependency of ours: install that into an environment of its own, with this package, and run

    python -m benchmarks.virtual_clients --clients 1000

Every virtual client has its own key, records and ledger, and answers signed messages. The
SuperLink of a simulation has no TLS and knows no nodes: what it runs is no federation.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tomli_w

from benchmarks.timing import row
from tacit.crypto.identities import Identity
from tacit.files import write_private
from tacit.running.deployment.flower_programs.guards import write_application
from tacit.running.deployment.flower_programs.programs import Flower, free_port, is_listening

CONNECTION, HOST, WAIT = "virtual", "127.0.0.1", 60.0
RECORDS, LONGEST = 50, 3000.0
PLAN = {"name": "score-histogram", "trust": "secure-sum", "epsilon": 1.0}
GIBIBYTE = 2**30
COMPONENTS = """\
from flwr.clientapp import ClientApp
from tacit.running import flower

server = flower.server
client = ClientApp()


def seated(context):
    context.node_config["party"] = {folder!r} + f"/{{context.node_config['partition-id']}}.toml"
    return context


@client.query("hello")
def hello(message, context):
    return flower.hello(message, seated(context))


@client.query("message")
def answer(message, context):
    return flower.answer(message, seated(context))
"""


def write_federation(folder: Path, clients: int) -> str:
    """Write plan, keys, records and party files; returns the settings of the run."""
    centre = Identity.generate()
    write_private(folder / "identity.key", centre.to_bytes().hex().encode())
    rng, parties = np.random.default_rng(0), []
    for index in range(clients):
        identity, name = Identity.generate(), str(index)
        write_private(folder / f"{name}.key", identity.to_bytes().hex().encode())
        parties.append({"name": name, "key": identity.public.hex()})
        labels = rng.integers(0, 2, RECORDS)
        scores = 1 / (1 + np.exp(-rng.normal(1.2 * labels - 0.6, 1.0)))
        rows = [f"{score:.6f},{label}\n" for score, label in zip(scores, labels, strict=True)]
        (folder / f"{name}.csv").write_text("score,label\n" + "".join(rows), encoding="ascii")
        files = {"identity": f"{name}.key", "ledger": f"{name}.db"}
        party = {"name": name, "plan": "plan.toml", **files}
        data = {"file": f"{name}.csv", "dataset": "registry"}
        (folder / f"{name}.toml").write_text(
            tomli_w.dumps({"party": party, "data": data, "limit": {"epsilon": 100.0}})
        )
    head = {"name": "virtual", "coordinator": centre.public.hex(), "deadline": LONGEST}
    plan = {"plan": head | {"retries": 0}, "protocol": PLAN, "party": parties}
    (folder / "plan.toml").write_text(tomli_w.dumps(plan), encoding="utf-8")
    named = {"plan": "plan.toml", "identity": "identity.key", "result": "result.json"}
    return " ".join(f'{name}="{folder / file}"' for name, file in named.items())


class Family:
    """The processes that run with one Flower home, wherever they were started.

    Parameters
    ----------
    home : their ``FLWR_HOME``, which every process inherits.
    """

    def __init__(self, home: Path) -> None:
        self.most = 0
        self._mark, self._over = f"FLWR_HOME={home}".encode(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Family:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()
        ends = time.monotonic() + WAIT
        while (members := self._members()) and time.monotonic() < ends:
            for member in members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(member, signal.SIGKILL)
            time.sleep(0.2)

    def _watch(self) -> None:
        while not self._over.wait(1.0):
            self.most = max(self.most, sum(map(proportional_bytes, self._members())))

    def _members(self) -> list[int]:
        pids = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if self._mark in path.read_bytes().split(b"\0"):
                    pids.append(int(path.parent.name))
        return pids


def proportional_bytes(process: int) -> int:
    """What a process holds in memory; a page that several share counts in parts."""
    with contextlib.suppress(OSError):
        rollup = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii")
        if pids := re.search(r"^Pss: +(\d+) kB", rollup, re.MULTILINE):
            return 1024 * int(pids[1])
    return 0


def simulate(folder: Path, clients: int, actors: int) -> tuple[float, int, Sequence[str]]:
    """Seconds of a run, the most memory in bytes, and what the run said."""
    settings, port = write_federation(folder, clients), free_port()
    project = write_application(folder / "app", "virtual:server", "virtual:client")
    (project / "virtual.py").write_text(COMPONENTS.format(folder=str(folder)), encoding="utf-8")
    home = folder / "flower"
    home.mkdir()
    connection = {"address": f"{HOST}:{port}", "insecure": True}
    config = {"superlink": {"default": CONNECTION}, f"superlink.{CONNECTION}": connection}
    (home / "config.toml").write_text(tomli_w.dumps(config), encoding="utf-8")
    flower = Flower(home, settings={"RAY_USAGE_STATS_ENABLED": "0"})
    link = ("flower-superlink", "--simulation", "--insecure", "--host", HOST)
    engine = f"num-supernodes={clients} client-resources-num-cpus=1 init-args-num-cpus={actors}"
    with (
        Family(home) as family,
        flower.start(folder / "link.log", *link, "--port", str(port)) as server,
    ):
        server.wait_until(lambda: is_listening(HOST, port), WAIT)
        started = time.monotonic()
        command = ("flwr", "run", str(project), CONNECTION, "--stream", "--run-config", settings)
        log = folder / "run.log"
        with flower.start(log, *command, "--federation-config", engine) as run:
            lines = list(run.lines(LONGEST))
        seconds = time.monotonic() - started
        if not (folder / "result.json").exists():
            raise RuntimeError("the run left no result:\n" + "\n".join(lines[-40:]))
    return seconds, family.most, [line for line in lines if re.match("tacit: round", line)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.virtual_clients")
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--actors", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if importlib.util.find_spec("ray") is None:
        sys.exit("virtual clients run on Ray: pip install 'flwr[simulation]' where you run this")
    with tempfile.TemporaryDirectory() as folder:
        seconds, most, said = simulate(Path(folder), options.clients, options.actors)
    note = f"peak {most / GIBIBYTE:.2f} GiB in all processes; target at most 12"
    print(row(f"{options.clients:,} virtual clients, one run", seconds, note))
    print("\n".join(f"  {line.removeprefix('tacit: ')}" for line in said))


if __name__ == "__main__":
    main()
