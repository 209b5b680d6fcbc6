"""A party's side: its SuperNode, which dials out to the coordinator's server."""

from __future__ import annotations

import re
from pathlib import Path

from tacit import files
from tacit.running.deployment.door import write_token
from tacit.running.deployment.flower_programs import programs
from tacit.running.deployment.flower_programs.guards import write_guards
from tacit.running.deployment.flower_programs.template import start_template
from tacit.running.speaking import LOG_PREFIX

CONNECTED = "SuperNode ID:"
"""What Flower writes when the server has let a node in."""
RECEIVED = re.compile(r"Receiving: query\.(\w+) message")
WORDS = {"hello": "a run begins: asked who this party is"}
"""What arriving messages are called; what the others cost, the party itself says."""
LOST = "Connection attempt failed"
REACHED = "Connection successful"
UNKNOWN_KEY = "Failed to activate SuperNode"
FOREIGN_SERVER = "CERTIFICATE_VERIFY_FAILED"
FOREIGN_WORDS = (
    "the server's certificate is not of the authority in ca.crt, or not for this name: "
    "this may not be the server that it claims to be"
)


class RefusedError(programs.DeploymentError):
    """Node and server do not accept each other."""


def start_node(
    party: Path,
    server: str,
    authority: Path,
    key: Path,
    folder: Path,
    tell: programs.Tell | None = None,
    prepared: Path | None = None,
) -> programs.Program:
    """Start a SuperNode for a party's file; ``running.flower.client`` answers its messages.

    Parameters
    ----------
    party : the party's file, which every process that answers a message reads again.
    server : the server's address, as host:port.
    authority : the certificate of the server's authority.
    key : the party's private node key.
    folder : where Flower's configuration and the log go.
    tell : receives the command.
    prepared : a folder of guarded programs with a prepared process; None makes the node's own.

    Raises
    ------
    ImportError : when Flower is not installed.
    FileNotFoundError : when the certificate or the key is not there.
    """
    programs.require_flower()
    for path in (authority, key):
        path.stat()
    home = files.private_folder(folder)
    guarded = prepared or write_guards(home / "programs")
    flower = programs.Flower(home / "flower", guarded, tell)
    write_token(flower.home)
    config = programs.settings_text({"party": str(party)})
    template = start_template(flower, guarded) if prepared is None else None
    return flower.start(
        home / "supernode.log",
        "flower-supernode",
        *("--root-certificates", str(authority)),
        *("--superlink", server),
        *("--auth-supernode-private-key", str(key)),
        *("--host", "127.0.0.1", "--port", str(programs.free_port())),
        *("--isolation", "process"),  # the guarded node starts processes that answer by itself
        *("--node-config", config),
        helper=template,
    )


def wait_connected(
    node: programs.Program, seconds: float, waiting: programs.Waiting | None = None
) -> None:
    """Wait until the server has let a node in.

    Parameters
    ----------
    node : the node.
    seconds : how long.
    waiting : receives from time to time how many seconds are left.

    Raises
    ------
    RefusedError : when the server does not know its key, or is not the one that it claims to be.
    DeploymentError : when it ends for another reason, or the time is over.
    """
    try:
        node.wait_until(lambda: is_connected(node), seconds, waiting)
    except programs.DeploymentError:
        _tell_refusal(node)
        raise


def is_connected(node: programs.Program) -> bool:
    """Whether the server has let a node in."""
    return CONNECTED in node.said()


def follow(node: programs.Program, seen: int, everything: bool) -> tuple[int, list[str]]:
    """How many bytes a node's log has now, and its new lines for the user.

    Parameters
    ----------
    node : the running node.
    seen : how many bytes of its log were read before.
    everything : whether to give Flower's own lines too; otherwise only what begins, what the party
        said, and a connection that is lost or back.
    """
    with node.log.open("rb") as log:
        log.seek(seen)
        new = log.read()
    whole = new[: new.rfind(b"\n") + 1]
    lines = [programs.plain(line) for line in whole.decode(errors="replace").splitlines()]
    shown = lines if everything else map(_user_line, lines)
    return seen + len(whole), [line for line in shown if line]


def _user_line(line: str) -> str:
    """A line of the log as a user reads it; empty for Flower's own lines."""
    if line.startswith(LOG_PREFIX):
        return line.removeprefix(LOG_PREFIX)
    if LOST in line:
        return "the server cannot be reached; retrying"
    if REACHED in line:
        return "the server is reached again"
    match = RECEIVED.search(line)
    if match is None:
        return ""
    return WORDS.get(match[1], "")


def _tell_refusal(node: programs.Program) -> None:
    said = node.said()
    if UNKNOWN_KEY in said:
        raise RefusedError(
            "the server does not know this node key: its coordinator has to register node.key.pub"
        )
    if FOREIGN_SERVER in said:
        raise RefusedError(FOREIGN_WORDS)
