"""Lets Flower run this package's two components, and no code that came over the network.

A Flower application travels as a bundle of files: whoever may submit a run sends code, which the
SuperLink and every SuperNode then execute. A hospital that keeps its own limits cannot accept
that. The programs that execute applications are therefore started through this module: it accepts
a bundle without code, which names the installed package's components, and refuses every other one.
A server executes only runs for which this machine's own ``tacit run`` wrote a ticket.

The guard relies on how Flower's programs find each other, which is why the package pins Flower's
version; where something is not as expected, nothing is run.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import secrets
import shlex
import sys
import tomllib
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from tacit.running.deployment.applications import CLIENT, SERVER
from tacit.running.deployment.files import private_folder, write_private

TICKETS = "TACIT_TICKETS"
"""The environment variable that names the folder of tickets."""
ALLOWED = {"pyproject.toml", ".info/CONTENT"}
LARGEST_BUNDLE, LARGEST_FILE = 2**20, 2**16
GUARDED = ("flwr-clientapp", "flwr-serverapp")
REFUSED = ("flwr-agentapp", "flwr-connector", "flwr-model", "flwr-simulation")
MODULE = "tacit.running.deployment.guards"


class GuardError(RuntimeError):
    """A run that this machine does not execute."""


def write_guards(folder: Path) -> Path:
    """Write the programs that go before Flower's own on the search path."""
    private_folder(folder)
    for name in (*GUARDED, *REFUSED):
        program = folder / name
        command = shlex.join([sys.executable, "-m", MODULE, name])
        program.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        program.chmod(0o700)
    return folder


def check_bundle(content: bytes) -> None:
    """Refuse an application that is more than the names of this package's components.

    Parameters
    ----------
    content : a Flower application bundle: a zip archive.

    Raises
    ------
    GuardError : for a bundle that holds code or names other components.
    """
    if len(content) > LARGEST_BUNDLE:
        raise GuardError(f"the application has {len(content)} bytes: it holds more than settings")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as bundle:
            foreign = sorted(set(bundle.namelist()) - ALLOWED)
            if foreign or len(set(bundle.namelist())) < len(bundle.namelist()):
                raise GuardError(f"the application holds files of its own: {', '.join(foreign)}")
            if any(member.file_size > LARGEST_FILE for member in bundle.infolist()):
                raise GuardError("the application holds a file that is too large for settings")
            project = tomllib.loads(bundle.read("pyproject.toml").decode())
        components = project["tool"]["flwr"]["app"]["components"]
    except (zipfile.BadZipFile, ValueError, LookupError, TypeError) as error:
        raise GuardError(f"the application cannot be read: {error}") from None
    if components != {"serverapp": SERVER, "clientapp": CLIENT}:
        raise GuardError(f"the application names components of its own: {components!r:.200}")


def write_ticket(folder: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Allow one run with these settings; gives the settings with the ticket among them."""
    ticket = secrets.token_hex(16)
    write_private(private_folder(folder) / ticket, json.dumps(dict(settings)).encode())
    return {**settings, "ticket": ticket}


def use_ticket(folder: Path, settings: Mapping[str, Any]) -> None:
    """Refuse a run that was not allowed; its ticket is used up.

    Raises
    ------
    GuardError : for settings without a ticket, or with one for other settings.
    """
    ticket = settings.get("ticket")
    place = folder / str(ticket)
    if not isinstance(ticket, str) or not ticket.isalnum() or not place.is_file():
        raise GuardError("this server runs what `tacit run` on its own machine started, only")
    allowed = json.loads(place.read_text(encoding="utf-8"))
    place.unlink()
    if {**allowed, "ticket": ticket} != dict(settings):
        raise GuardError("the settings of this run are not those that its ticket allows")


def main(name: str) -> None:
    """Be one of Flower's programs, with the guard in it."""
    if name not in GUARDED:
        _refuse(f"{name} does not belong to a federation of tacit")
    side = "supernode" if name == "flwr-clientapp" else "superlink"
    kind = name.removeprefix("flwr-")
    try:
        runtime = importlib.import_module(f"flwr.{side}.runtime.run_{kind}")
        program = importlib.import_module(f"flwr.{side}.cli.flwr_{kind}")
        _wrap(runtime, "install_from_fab", _bundle_first)
        if kind == "serverapp":
            _wrap(runtime, "run_", _ticket_first)
        start = getattr(program, f"flwr_{kind}")
    except (ImportError, AttributeError) as error:
        _refuse(f"this version of Flower is not one that tacit knows: {error}")
    sys.argv[0] = name
    start()


def _wrap(module: Any, name: str, made: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    setattr(module, name, made(getattr(module, name)))


def _bundle_first(install: Callable[..., Any]) -> Callable[..., Any]:
    def checked(content: bytes, *args: Any, **options: Any) -> Any:
        check_bundle(content)
        return install(content, *args, **options)

    return checked


def _ticket_first(run: Callable[..., Any]) -> Callable[..., Any]:
    def checked(*args: Any, **options: Any) -> Any:
        use_ticket(Path(os.environ[TICKETS]), options["context"].run_config)
        return run(*args, **options)

    return checked


def _refuse(reason: str) -> NoReturn:
    sys.stderr.write(f"tacit: {reason}\n")
    sys.exit(2)


if __name__ == "__main__":
    main(sys.argv.pop(1))
