"""The coordinator's side: its folder, its SuperLink, the nodes that may connect, and its runs."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tacit import files, operating
from tacit.running.deployment.door import check_closed, write_token
from tacit.running.deployment.flower_programs import guards, programs
from tacit.running.deployment.flower_programs.template import start_template
from tacit.running.deployment.keys import Certificates, KeyFileError, checked_node_key, use_renewed
from tacit.running.deployment.letters import address_of
from tacit.running.speaking import LOG_PREFIX

CONNECTION = "tacit"
"""What the configuration calls this server."""
START_TIME = 180.0
PATIENCE = 60.0
"""Seconds for which a run waits for its server."""
PORT = 8443
ROWS_SUFFIX = ".rows.json"
"""Ending of the file next to a result that holds its summary as labelled lines."""
STARTED = re.compile(r"Successfully started run (\d+)")
SLACK = 90.0
"""Seconds beyond a round's deadline in which a run must say something, before it is looked
after."""
ENDED = "finished"
FAILED = "ServerApp failed with "
BEFORE_ANOTHER = (
    "before another run, see who is connected (tacit status); what sites spent stays in their "
    "ledgers"
)
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104  # nothing is bound here: these are compared with


class Coordinator:
    """The folder of a coordinator: the plan, and all that belongs to its server.

    Parameters
    ----------
    folder : where the plan lies.

    Attributes
    ----------
    identity : the coordinator's identity key.
    nodes : the folder of public node keys that may connect, one file ``NAME.pub`` each.
    private : keys, database and logs of the server.
    certificates : the server's TLS files.
    tickets : what allows a run.
    guards : the guarded programs.
    results : the folder of results, each named as Flower numbers its run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.private = folder, folder / "server"
        self.identity, self.nodes = folder / "identity.key", folder / "nodes"
        self.certificates = Certificates.within(folder, self.private)
        self.tickets, self.guards = self.private / "tickets", self.private / "programs"
        self.results = self.private / "results"

    @classmethod
    def of(cls, plan: str | Path) -> Coordinator:
        """The folder around a plan."""
        return cls(Path(plan).resolve().parent)

    def flower(self, tell: programs.Tell | None = None) -> programs.Flower:
        """Flower's programs with this folder's configuration."""
        guarded = guards.write_guards(self.guards)
        settings = {guards.TICKETS: str(files.private_folder(self.tickets))}
        return programs.Flower(self.private / "flower", guarded, tell, settings)

    def address(self) -> tuple[str, int]:
        """Where the server was started last, as this machine reaches it.

        Raises
        ------
        DeploymentError : when no server was started from this folder.
        """
        try:
            host, port = json.loads((self.private / "address.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise programs.UnreachableError(
                f"no server was started from {self.folder}; start one with: tacit serve"
            ) from None
        return str(host), int(port)

    def check_running(self) -> None:
        """Refuse to go on without a server.

        Raises
        ------
        DeploymentError : when none listens.
        """
        host, port = self.address()
        if not programs.is_listening(host, port):
            raise programs.UnreachableError(
                f"no server listens on {host}:{port}; start it with: tacit serve"
            )

    def wait_running(self, tell: programs.Tell) -> None:
        """Wait for a server that is not there yet; ``tell`` receives a line now and again.

        Raises
        ------
        DeploymentError : when none listens after ``PATIENCE`` seconds.
        """
        programs.retried(self.check_running, PATIENCE, tell)

    def registered(self) -> dict[str, dict[str, str]]:
        """The nodes that may connect: name, key and Flower's number."""
        try:
            known = json.loads((self.private / "nodes.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        return dict(known)

    def note_registered(self, nodes: dict[str, dict[str, str]]) -> None:
        """Write down who may connect."""
        files.write_private(self.private / "nodes.json", json.dumps(nodes, indent=2).encode())


def alone(folder: Path) -> contextlib.AbstractContextManager[None]:
    """Keep every other process from running a server from this folder.

    Raises
    ------
    DeploymentError : when another process does.
    """
    refusal = programs.DeploymentError(f"another process runs a server from {folder}")
    return files.locked(files.private_folder(folder) / "lock", refusal=refusal)


def start_server(
    coordinator: Coordinator,
    listen: str,
    port: int,
    tell: programs.Tell | None = None,
    lasting: bool = True,
) -> programs.Program:
    """Start the SuperLink, with TLS and authentication of nodes.

    Its other interfaces than the nodes' are closed to programs that this folder did not start.

    Parameters
    ----------
    coordinator : the coordinator's folder, with certificates.
    listen : the address to listen on.
    port : the one port of all of Flower's interfaces.
    tell : receives the command.
    lasting : whether the server's state is in a file, so that a server started again from this
        folder knows its nodes and runs; a state in memory answers sooner.

    Raises
    ------
    DeploymentError : when there are no certificates, the port is taken, it does not start, or it
        answers requests without a token.
    ImportError : when Flower is not installed.
    """
    programs.require_flower()
    tls = coordinator.certificates
    use_renewed(tls, datetime.now(UTC))
    if not tls.exist:
        raise programs.DeploymentError(
            f"{coordinator.folder} holds no certificates: tacit keys --coordinator"
        )
    if tls.served.not_valid_after_utc < datetime.now(UTC):
        raise programs.DeploymentError(
            f"the server's certificate has expired: remove {tls.authority}, make another with "
            "tacit keys --coordinator --host, and send the new ca.crt to every party"
        )
    host = "127.0.0.1" if listen in EVERYWHERE else listen
    if programs.is_listening(host, port):
        raise programs.DeploymentError(f"port {port} on {host} is taken")
    _write_connection(coordinator, host, port)
    flower = coordinator.flower(tell)
    write_token(flower.home)
    server = flower.start(
        coordinator.private / "superlink.log",
        "flower-superlink",
        *("--ssl-ca-certfile", str(tls.authority)),
        *("--ssl-certfile", str(tls.certificate)),
        *("--ssl-keyfile", str(tls.key)),
        "--enable-supernode-auth",
        "--disable-runtime-dependency-installation",
        *("--host", listen, "--port", str(port)),
        *(("--database", str(coordinator.private / "state.db")) if lasting else ()),
        helper=start_template(flower, coordinator.guards),
    )
    try:
        server.wait_until(lambda: programs.is_listening(host, port), START_TIME)
        check_closed(host, port, tls.authority)
    except BaseException:
        server.stop()
        raise
    return server


def operated(coordinator: Coordinator, server: programs.Program) -> operating.Operated:
    """What a running server tells who operates it."""
    host, port = coordinator.address()
    name, text = "tacit_admitted_parties", "Parties whose node keys may connect."
    checks = {
        "process": lambda: server.is_running and programs.is_listening(host, port),
        "disk": lambda: operating.takes_writes(coordinator.private),
    }
    return operating.Operated(
        checks, lambda: [operating.gauge(name, text, len(coordinator.registered()))]
    )


def register_nodes(coordinator: Coordinator, tell: programs.Tell | None = None) -> list[str]:
    """Let every node key in the folder of keys connect; gives the names that are new.

    A key that is replaced, or whose file is gone, may no longer connect.

    Raises
    ------
    KeyFileError : for a file that holds no node key.
    DeploymentError : when the server refuses one.
    """
    keys = node_keys(coordinator.nodes)
    known = coordinator.registered()
    flower = coordinator.flower(tell)
    for name in [name for name, node in known.items() if keys.get(name) != node["key"]]:
        flower.call("flwr", "supernode", "unregister", known[name]["node"], CONNECTION)
        del known[name]
        coordinator.note_registered(known)
    new = [name for name in keys if name not in known]
    with ThreadPoolExecutor(max_workers=3) as pool:
        calls = {
            name: pool.submit(_register, flower, coordinator.nodes / f"{name}.pub", name)
            for name in new
        }
    done = {name: call.result() for name, call in calls.items() if call.exception() is None}
    known |= {name: {"key": keys[name], "node": number} for name, number in done.items()}
    coordinator.note_registered(known)
    for name in new:
        calls[name].result()
    return new


def nodes_online(coordinator: Coordinator, tell: programs.Tell | None = None) -> dict[str, str]:
    """What the server says of every node by name: registered, online or offline."""
    listed = coordinator.flower(tell).call("flwr", "supernode", "list", CONNECTION)["nodes"]
    states = {str(node["node-id"]): str(node["status"]) for node in listed}
    return {
        name: states.get(node["node"], "unknown") for name, node in coordinator.registered().items()
    }


def runs_of(coordinator: Coordinator, tell: programs.Tell | None = None) -> list[dict[str, Any]]:
    """The runs that the server remembers, the latest first."""
    return list(coordinator.flower(tell).call("flwr", "list", CONNECTION)["runs"])


def node_keys(folder: Path) -> dict[str, str]:
    """The public node keys in a folder, by name.

    Raises
    ------
    KeyFileError : for a file that holds no node key, or another node's.
    """
    keys: dict[str, str] = {}
    for path in sorted(folder.glob("*.pub")):
        key = checked_node_key(path.read_bytes(), path).decode().strip()
        if key in keys.values():
            raise KeyFileError(f"{path} holds the key of another node")
        keys[path.stem] = key
    return keys


def _register(flower: programs.Flower, key: Path, name: str) -> str:
    command = ("flwr", "supernode", "register", str(key), CONNECTION, "--name", name)
    return str(flower.call(*command)["node-id"])


def _write_connection(coordinator: Coordinator, host: str, port: int) -> None:
    """The configuration with which ``flwr`` finds the server."""
    authority = json.dumps(str(coordinator.certificates.authority), ensure_ascii=False)
    text = (
        f'[superlink]\ndefault = "{CONNECTION}"\n\n[superlink.{CONNECTION}]\n'
        f'address = "{address_of(host, port)}"\nroot-certificates = {authority}\n'
    )
    files.write_public(coordinator.private / "flower" / "config.toml", text.encode())
    files.write_private(coordinator.private / "address.json", json.dumps([host, port]).encode())


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
    coordinator: Coordinator,
    plan: Path,
    deadline: float,
    tell: programs.Tell,
    verbose: programs.Tell | None = None,
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
    folder = files.private_folder(coordinator.results)
    result = folder / f"{secrets.token_hex(8)}.json"
    settings = {"plan": str(plan), "identity": str(coordinator.identity), "result": str(result)}
    allowed = guards.write_ticket(coordinator.tickets, settings)
    application = guards.write_application(coordinator.private / "application")
    flower = coordinator.flower(verbose)
    command = ("flwr", "run", str(application), CONNECTION, "--stream")
    number, log = "", result.with_suffix(".log")
    with flower.start(log, *command, "--run-config", programs.settings_text(allowed)) as program:
        try:
            for line in program.lines(deadline + SLACK):
                match = STARTED.search(line)
                number = number or (match[1] if match else "")
                _report(line, tell, verbose)
        except BaseException:
            _stop(coordinator, number, verbose)
            raise
        finally:
            (coordinator.tickets / allowed["ticket"]).unlink(missing_ok=True)
            log.unlink()
    if not result.exists():
        raise programs.DeploymentError(_reason(coordinator, number, verbose))
    named = folder / f"{number}.json"
    result.with_suffix(ROWS_SUFFIX).rename(named.with_suffix(ROWS_SUFFIX))
    return Conducted.read(result.rename(named))


def _report(line: str, tell: programs.Tell, verbose: programs.Tell | None) -> None:
    if line.startswith(LOG_PREFIX):
        tell(line.removeprefix(LOG_PREFIX))
    elif verbose is not None and line:
        verbose(line)


def _stop(coordinator: Coordinator, number: str, verbose: programs.Tell | None) -> None:
    """End a run for which the caller no longer waits."""
    if number:
        with contextlib.suppress(programs.DeploymentError):
            coordinator.flower(verbose).call("flwr", "stop", number, CONNECTION)


def reason_of(run: Mapping[str, Any]) -> str:
    """The reason why a run ended, without the prefix of Flower; empty if Flower gives none.

    Examples
    --------
    >>> reason_of({"status-details": "ServerApp failed with exception: b declined"})
    'b declined'
    >>> reason_of({"status-details": "N/A"})
    ''
    """
    details = str(run.get("status-details") or "")
    return "" if details == "N/A" else details.removeprefix(FAILED).removeprefix("exception: ")


def _reason(coordinator: Coordinator, number: str, verbose: programs.Tell | None) -> str:
    """Why a run left no result, as its server says."""
    if not number:
        return f"the server did not start the run; see {coordinator.private / 'superlink.log'}"
    try:
        for _ in range(10):
            matching = [
                run for run in runs_of(coordinator, verbose) if str(run["run-id"]) == number
            ]
            if matching and str(matching[0]["status"]).startswith(ENDED):
                return f"the run gave no result: {reason_of(matching[0])}; {BEFORE_ANOTHER}"
            time.sleep(1.0)
    except programs.DeploymentError:
        return f"the server went away during the run: start it (tacit serve); {BEFORE_ANOTHER}"
    return f"the run gave no result, and its server does not say why; {BEFORE_ANOTHER}"
