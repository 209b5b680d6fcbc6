"""Runs while links drop and the server restarts: ``python -m benchmarks.outages``.

A SuperLink and a SuperNode for each site, over TLS with authentication of nodes, on this machine.
Between every node and the server lies a relay, and an hour lasts ``HOUR`` seconds: each link drops
once in an hour, at a random time for a random while. Either its connections are reset, or nothing
passes until they are reset at the end, as where a router starts again; none is taken meanwhile.
In each tenth run the server is killed, and started again as an operator's supervisor does.

A run ends right if its figure is that of the records of the sites that are in it: exactly, without
noise; else within ``WIDER`` times its own 95 % interval, which noise misses once in 10^8 runs. Any
other run must end with a sentence. After each run every site's ledger is verified. *Debited twice*
are messages that a site debited more than once; *forgotten* are debits that a ledger has not, and
of which the site's own state, its last receipt, or the result knows. 100 runs take half an hour.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import selectors
import signal
import socket
import struct
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import tomli_w

import tacit
from tacit.files import write_public
from tacit.ledger.entries import DEBIT
from tacit.protocol.values import decode_values
from tacit.running.deployment import server
from tacit.running.deployment.flower_programs.programs import DeploymentError, Program, free_port
from tacit.running.deployment.keys import make_certificates, stored_identity, stored_node_key
from tacit.running.deployment.site import start_node, wait_connected
from tacit.running.session.party import state_kinds
from tacit.running.session.party_file import PartyFile
from tacit.running.session.plan_file import Plan
from tacit.running.session.run_records import RUN

HOST, WAIT, HOUR, RESTART_EVERY = "127.0.0.1", 180.0, 60.0, 10
SHORTEST, LONGEST = 0.2, 3.0
"""Seconds that a link is down."""
DEADLINE, RETRIES, WIDER = 60.0, 5, 3.0
PROTOCOLS = (
    {"name": "exact"},
    {"name": "score-histogram", "trust": "secure-sum", "epsilon": 1.0, "height": 4},
    {"name": "fedauc", "epsilon": 1.0},
)
"""One answer without noise, masked sums of which each leaves once, and answers that follow from
earlier ones; in turn."""
RECORDS = 400


class Link:
    """A relay on loopback between a site and the server, which cuts what goes through it.

    Parameters
    ----------
    port : of the server.
    """

    def __init__(self, port: int) -> None:
        self._server, self._port = (HOST, port), free_port()
        self._lock, self._up = threading.Lock(), threading.Event()
        self._open: set[socket.socket] = set()
        self._up.set()
        self._door = socket.create_server((HOST, self._port))
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def address(self) -> str:
        """Where the site finds the server."""
        return f"{HOST}:{self._port}"

    def drop(self, seconds: float, silent: bool) -> None:
        """Let nothing through for a while; a silent link says so only at its end."""
        self._up.clear()
        if not silent:
            self._reset()
        time.sleep(seconds)
        self._reset()
        self._up.set()

    def _reset(self) -> None:
        with self._lock:
            for end in self._open:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        while True:
            near, _ = self._door.accept()
            threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        with contextlib.suppress(OSError), near:
            near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if not self._up.is_set():
                return
            with socket.create_connection(self._server) as far, self._known(near, far):
                self._pass_on({near: far, far: near})

    @contextlib.contextmanager
    def _known(self, *ends: socket.socket) -> Iterator[None]:
        with self._lock:
            self._open.update(ends)
        try:
            yield
        finally:
            with self._lock:
                self._open.difference_update(ends)

    def _pass_on(self, other: dict[socket.socket, socket.socket]) -> None:
        with selectors.DefaultSelector() as ready:
            for one in other:
                ready.register(one, selectors.EVENT_READ, one)
            while True:
                for key, _ in ready.select():
                    end: socket.socket = key.data
                    data = end.recv(65536)
                    if not data:
                        return
                    self._up.wait()
                    other[end].sendall(data)


@dataclass
class Tally:
    """What came of all runs."""

    right: int = 0
    sentences: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    twice: int = 0
    forgotten: int = 0
    longest: float = 0.0
    drops: int = 0
    resends: int = 0
    restarts: int = 0
    rejoined: int = 0

    def row(self, runs: int) -> str:
        """The table."""
        columns = {
            "runs": runs,
            "ended right": self.right,
            "ended with a sentence": self.sentences.total(),
            "wrong": len(self.wrong),
            "debited twice": self.twice,
            "forgotten": self.forgotten,
            "longest run, s": f"{self.longest:.1f}",
            "resends": self.resends,
            "drops": self.drops,
            "server killed": self.restarts,
            "nodes started again": self.rejoined,
        }
        return "\n".join(f"{name:24}{value:>8}" for name, value in columns.items())

    @property
    def holds(self) -> bool:
        """Whether nothing was wrong."""
        return not (self.wrong or self.twice or self.forgotten)


class Site:
    """A site's folder, its link, and what of its ledger was seen.

    Parameters
    ----------
    home : the folder.
    link : to the server.
    """

    def __init__(self, home: Path, link: Link) -> None:
        self.home, self.link, self.name = home, link, home.name
        self.node: Program | None = None
        self._seen: set[bytes] = set()

    def begin(self, seed: int, plans: Sequence[Path]) -> None:
        """Write the site's file and records."""
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 2, RECORDS)
        scores = 1 / (1 + np.exp(-rng.normal(1.2 * labels - 0.6, 1.0)))
        table = np.column_stack((scores, labels))
        np.savetxt(self.home / "records.csv", table, "%.6f,%d", header="score,label", comments="")
        content = {
            "party": {"name": self.name, "plan": [str(plan) for plan in plans]},
            "data": {"file": "records.csv", "dataset": "registry"},
            "limit": {"epsilon": float("inf"), "adjacency": "label"},
        }
        (self.home / "party.toml").write_text(tomli_w.dumps(content), encoding="utf-8")

    def connect(self, centre: server.Coordinator, running: contextlib.ExitStack) -> None:
        """Start the site's node."""
        files = self.home / "party.toml", self.link.address, centre.certificates.authority
        own = self.home / "node.key", self.home / "up"
        self.node = running.enter_context(start_node(*files, *own))

    def booked(self, plans: dict[str, Plan]) -> tuple[int, int, float]:
        """Messages debited more than once, debits that are forgotten, and what is new in epsilon.

        Parameters
        ----------
        plans : by their protocol's name.
        """
        file = PartyFile.read(self.home / "party.toml")
        with tacit.Ledger.open_readonly(file.ledger) as pages:
            pages.verify()
            lines = [line for line in pages.lines() if line.kind == DEBIT]
        new = [line for line in lines if line.hash not in self._seen]
        forgotten = len(self._seen - {line.hash for line in lines})
        twice = sum(
            count - 1 for count in Counter((line.session, line.step) for line in new).values()
        )
        self._seen |= {line.hash for line in new}
        for path in file.state.glob(f"*.{RUN}"):
            booked = [line for line in lines if line.session == path.stem]
            kinds = state_kinds(plans[booked[0].protocol or ""].protocol) if booked else ()
            run = decode_values(path.read_bytes(), kinds, opaque=True)["run"]
            paid = sum(payment.cost.epsilon for payment in run.payments) if booked else 0.0
            known = run.receipt in {line.hash for line in booked} if booked else False
            same = np.isclose(sum(line.epsilon for line in booked), paid)
            forgotten += not (known and same)
        return twice, forgotten, sum(line.epsilon for line in new)


class Federation:
    """A coordinator and sites behind links, on this machine.

    Parameters
    ----------
    folder : for all files.
    sites : their number.
    running : ends the programs.
    """

    def __init__(self, folder: Path, sites: int, running: contextlib.ExitStack) -> None:
        self._running, self._port = running, free_port()
        self.centre = server.Coordinator(folder / "centre")
        make_certificates(self.centre.certificates, [HOST])
        self.plans = [self.centre.folder / f"{each['name']}.toml" for each in PROTOCOLS]
        names = [f"site-{number}" for number in range(sites)]
        self.sites = [Site(folder / name, Link(self._port)) for name in names]
        parties = []
        for seed, site in enumerate(self.sites):
            key = stored_identity(site.home / "identity.key").public.hex()
            parties.append({"name": site.name, "key": key})
            public = stored_node_key(site.home / "node.key")
            write_public(self.centre.nodes / f"{site.name}.pub", public.read_bytes())
            site.begin(seed, self.plans)
        head = {
            "name": "outages",
            "coordinator": stored_identity(self.centre.identity).public.hex(),
            "min_clients": sites - max(1, sites // 4),
            "deadline": DEADLINE,
            "retries": RETRIES,
        }
        for path, protocol in zip(self.plans, PROTOCOLS, strict=True):
            content = {"plan": head, "protocol": protocol, "party": parties}
            path.write_text(tomli_w.dumps(content), encoding="utf-8")
        self.known = {plan.protocol.name: plan for plan in map(Plan.read, self.plans)}
        self._server = self._serve()
        server.register_nodes(self.centre)
        for site in self.sites:
            site.connect(self.centre, running)
        for site in self.sites:
            assert site.node is not None
            wait_connected(site.node, WAIT)

    def _serve(self) -> Program:
        return self._running.enter_context(server.start_server(self.centre, HOST, self._port))

    def restart(self) -> None:
        """Kill the server, and start it again."""
        os.kill(self._server.pid, signal.SIGKILL)
        self._server.stop()
        self._server = self._serve()

    def lost_nodes(self) -> list[Site]:
        """Sites whose node has ended, which are started again."""
        lost = [site for site in self.sites if site.node is None or not site.node.is_running]
        for site in lost:
            site.connect(self.centre, self._running)
        return lost

    def area(self, names: Sequence[str]) -> float:
        """The exact AUC of these sites' records."""
        files = [str(site.home / "records.csv") for site in self.sites if site.name in names]
        return tacit.evaluate(tacit.read(files), tacit.ExactAUC()).auc.value


AGAIN = re.compile(r"asked again: (.*)")


def study(folder: Path, runs: int, sites: int, drops: float, seed: int) -> Tally:
    """All runs of a federation, one after the other.

    Parameters
    ----------
    folder : for all files.
    runs, sites : their numbers.
    drops : of each link, in an hour of ``HOUR`` seconds.
    seed : of the times of drops and restarts.
    """
    tally, over, drawn = Tally(), threading.Event(), random.Random(seed)  # noqa: S311
    with contextlib.ExitStack() as running:
        federation = Federation(folder, sites, running)
        running.callback(over.set)

        def weather(link: Link, own: random.Random) -> None:
            while not over.wait(own.expovariate(drops / HOUR)):
                tally.drops += 1
                link.drop(own.uniform(SHORTEST, LONGEST), silent=own.random() < 0.5)

        for number, site in enumerate(federation.sites):
            own = random.Random(f"{seed} {number}")  # noqa: S311
            threading.Thread(target=weather, args=(site.link, own), daemon=True).start()
        for number in range(runs):
            kill = threading.Timer(drawn.uniform(1.0, 8.0), federation.restart)
            if number % RESTART_EVERY == 1:
                tally.restarts += 1
                kill.start()
            _one(federation, federation.plans[number % len(PROTOCOLS)], tally)
            if kill.ident is not None:
                kill.join()
            tally.rejoined += len(federation.lost_nodes())
    return tally


def _one(federation: Federation, plan: Path, tally: Tally) -> None:
    """One run, and what became of it and of the ledgers."""
    began, said, content = time.monotonic(), list[str](), None
    try:
        content = server.conduct_run(federation.centre, plan, DEADLINE, said.append).content
    except DeploymentError as error:
        why = re.sub(r"site-\d+(( and|,) site-\d+)*", "SITES", str(error))
        tally.sentences[re.sub(r"\d[\d.]*", "N", why)] += 1
    seconds = time.monotonic() - began
    tally.longest = max(tally.longest, seconds)
    again = [found[1] for line in said if (found := AGAIN.search(line))]
    tally.resends += sum(each.count(",") + 1 for each in again)
    debited = {}
    for site in federation.sites:
        twice, forgotten, debited[site.name] = site.booked(federation.known)
        tally.twice, tally.forgotten = tally.twice + twice, tally.forgotten + forgotten
    if content is None:
        print(f"{plan.stem}: no result in {seconds:.1f} s", flush=True)
        return
    names = [who["name"] for who in content["participants"]]
    spent = max(debited[name] for name in names)
    tally.forgotten += spent < float(content["spent"]["epsilon"] or "inf") - 1e-9
    value, (low, high) = content["auc"]["value"], content["auc"]["interval"]
    truth, room = federation.area(names), (WIDER - 1) / 2 * (high - low) + 1e-12
    right = low - room <= truth <= high + room
    tally.right += right
    words = f"{plan.stem}: {value:.4f} of {len(names)} sites in {seconds:.1f} s"
    if not right:
        tally.wrong.append(f"{words}, and their records have {truth:.4f}")
    print(words, flush=True)


def main(arguments: Sequence[str] | None = None) -> bool:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.outages", description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--sites", type=int, default=8)
    parser.add_argument("--drops", type=float, default=1.0, help="of each link, in an hour")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    print(
        f"{options.sites} sites over TLS; an hour lasts {HOUR:g} s; load {os.getloadavg()[0]:.1f}"
    )
    with tempfile.TemporaryDirectory() as folder:
        tally = study(Path(folder), options.runs, options.sites, options.drops, options.seed)
    print(tally.row(options.runs))
    for sentence, count in tally.sentences.most_common():
        print(f"{count:4} ended with: {sentence}")
    print(*tally.wrong, sep="\n")
    return tally.holds


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
