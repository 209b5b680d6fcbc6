"""A whole federation on one machine, for a first look: real programs, TLS and authentication.

Server and parties are separate processes, as in a deployment; only the machine is one. Keys of
parties lie next to their files and are kept. All else lies in a hidden folder next to the plan,
with a copy of the plan that names the keys.
"""

from __future__ import annotations

import contextlib
import shutil
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from tacit import files
from tacit.data.errors import DataError
from tacit.data.scales import check_scales
from tacit.running.deployment import server
from tacit.running.deployment.flower_programs import programs
from tacit.running.deployment.keys import make_certificates, stored_identity, stored_node_key
from tacit.running.deployment.letters import NAME
from tacit.running.deployment.preview import doubts
from tacit.running.deployment.site import start_node, wait_connected
from tacit.running.session.party_file import PartyFile
from tacit.running.session.plan_file import Plan
from tacit.running.session.service import PartyDesk
from tacit.running.session.toml_source import PlanError

HIDDEN, PARTIES = ".tacit", "parties"
CONNECT_TIME = 180.0
HOST = "127.0.0.1"


def local_parties(path: Path, count: int) -> dict[str, Path]:
    """The files of a plan's parties by name, which lie in folders next to the plan.

    Raises
    ------
    PlanError : when the plan has another number of parties, or a file is missing or another's.
    """
    plan = Plan.read(path)
    if count != len(plan.parties):
        raise PlanError(f"{path} has {len(plan.parties)} parties, got --local {count}")
    found = {}
    for party in plan.parties:
        if not NAME.fullmatch(party.name):
            raise PlanError(f"a party's name must be one of a folder, got {party.name!r}")
        file = path.resolve().parent / party.name / "party.toml"
        if not file.is_file():
            raise PlanError(f"party {party.name!r} has no file {file}")
        named = PartyFile.read(file).name
        if named != party.name:
            raise PlanError(f"{file} is of party {named!r}, not of {party.name!r}")
        found[party.name] = file
    return found


def run_locally(
    path: Path, count: int, tell: programs.Tell, verbose: programs.Tell | None = None
) -> server.Conducted:
    """Run a plan with a server and all parties on this machine, over TLS on loopback.

    Parameters
    ----------
    path : the plan; keys that it does not name are made.
    count : how many parties it must have.
    tell : receives a line about each step.
    verbose : receives the commands and their output.

    Returns
    -------
    Conducted : the result.

    Raises
    ------
    PlanError, DataError : for a plan, a party's file or records that cannot be used.
    DeploymentError : when there is no result.
    ImportError : when Flower is not installed.
    """
    programs.require_flower()
    parties = local_parties(path, count)
    hidden = files.private_folder(path.resolve().parent / HIDDEN)
    with server.alone(hidden), contextlib.ExitStack() as running:
        coordinator = prepared(path, parties, hidden)
        plan = Plan.read(hidden / "plan.toml")
        copies = {name: hidden / PARTIES / name / "party.toml" for name in parties}
        check_parties([PartyDesk.open(copy) for copy in copies.values()])
        began = time.time()
        tell("starting the server")
        port = programs.free_port()
        link = server.start_server(coordinator, HOST, port, verbose, lasting=False)
        running.enter_context(link)
        tell(f"server on {HOST}:{port}, with TLS and authentication of nodes")
        server.register_nodes(coordinator, verbose)
        server_files = f"{HOST}:{port}", coordinator.certificates.authority
        nodes = []
        for copy in copies.values():
            own_files = copy.with_name("node.key"), copy.with_name("node")
            node = start_node(copy, *server_files, *own_files, verbose, coordinator.guards)
            nodes.append(running.enter_context(node))
        for node in nodes:  # all nodes end at once, before each is waited for
            running.callback(node.query_to_end)
        for name, node in zip(parties, nodes, strict=True):
            wait_connected(node, CONNECT_TIME)
            tell(f"{name} is connected")
        try:
            copy = hidden / "plan.toml"
            result = server.conduct_run(coordinator, copy, plan.deadline, tell, verbose)
        except programs.DeploymentError:
            tell(f"a party's log: {hidden / PARTIES / 'NAME' / 'node' / 'supernode.log'}")
            raise
        link.check()
        for name, copy in copies.items():
            file = last_result(PartyFile.read(copy), began)
            if file is not None:
                tell(f"{name} has its result in {file}")
    return result


def last_result(party_file: PartyFile, since: float) -> Path | None:
    """The file of the last result that a party received after a time; None where there is none."""
    times = {path: path.stat().st_mtime for path in party_file.results.glob("*.json")}
    last = max(times, key=times.__getitem__, default=None)
    return last if last is not None and times[last] >= since else None


def check_parties(desks: Sequence[PartyDesk]) -> None:
    """Refuse units that do not suit the plan, and scores that are evidently of other scales.

    One owner runs all parties here, so that a refusal reveals nothing.
    """
    for desk in desks:
        desk.check_unit()
    for desk in desks:
        sentences = doubts(desk)
        if sentences:
            raise DataError(f"{desk.party_file.records}: {sentences[0]}")
    desks = [desk for desk in desks if not desk.party_file.counted]
    if all(desk.party_file.unit is None for desk in desks):
        names = [str(desk.party_file.records) for desk in desks]
        check_scales(names, [desk.records for desk in desks], [None] * len(names))


def prepared(path: Path, parties: Mapping[str, Path], hidden: Path) -> server.Coordinator:
    """Make keys, certificates, and copies of the plan and the parties' files that name them.

    Parameters
    ----------
    path : the plan.
    parties : as ``local_parties`` found them.
    hidden : the folder for all of it, which becomes the coordinator's.
    """
    coordinator = server.Coordinator(hidden)
    shutil.rmtree(coordinator.private, ignore_errors=True)
    shutil.rmtree(coordinator.nodes, ignore_errors=True)
    make_certificates(coordinator.certificates, [HOST])
    for name in parties:
        public = stored_node_key(hidden / PARTIES / name / "node.key")
        files.write_public(coordinator.nodes / f"{name}.pub", public.read_bytes())
    _write_plan(path, parties, coordinator)
    return coordinator


def _write_plan(path: Path, parties: Mapping[str, Path], coordinator: server.Coordinator) -> None:
    """The plan with all parties' keys, and every party's file with this plan and whole paths.

    The parties' identities are their own. The coordinator is one made for this machine. Parties
    that compute together listen on this machine alone.
    """
    import tomli_w  # noqa: PLC0415 -- comes with Flower

    content = tomllib.loads(path.read_text(encoding="utf-8"))
    steps = Plan.read(path).protocol.steps
    computes = any(step.computes is not None for step in steps)
    content["plan"]["coordinator"] = stored_identity(coordinator.identity).public.hex()
    for (name, file), entry in zip(parties.items(), content["party"], strict=True):
        party_file = PartyFile.read(file)
        public = stored_identity(party_file.identity).public.hex()
        if entry.setdefault("key", public).lower() != public:
            raise PlanError(f"{path} names another key of {name!r} than {party_file.identity}")
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
        settings["party"] |= {
            "plan": str(coordinator.folder / "plan.toml"),
            "identity": str(party_file.identity),
            "ledger": str(party_file.ledger),
        }
        settings["data"] |= party_file.source()
        if computes:
            settings["mpc"] = {"listen": f"{HOST}:{programs.free_port()}"}
        copy = coordinator.folder / PARTIES / name / "party.toml"
        files.write_public(copy, tomli_w.dumps(settings).encode())
    files.write_public(coordinator.folder / "plan.toml", tomli_w.dumps(content).encode())
