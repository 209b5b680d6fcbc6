"""Lets Flower run this package's two components, and no code that came over the network.

A Flower application travels as a bundle of files: anyone who may submit a run sends code, which the
SuperLink and every SuperNode then execute. A hospital that keeps its own limits cannot accept
that. The programs that execute applications are therefore started through this module: it accepts
a bundle without code, which names the installed package's components, and refuses every other one.
A server executes only runs for which this machine's own ``tacit run`` wrote a ticket. The
application that ``tacit run`` submits has no code either: a ``pyproject.toml`` names both
components by where the installed package has them.

All of Flower's programs are started through it: so each ends with the process that started it, and
servers admit the programs of their own machine only. They look for work more often than by
themselves (``holding``), and start as forks of a process that has imported them (``template``).

The guard relies on how Flower's programs find each other, which is why the package pins Flower's
version; where something is not as expected, nothing is run.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import io
import json
import os
import secrets
import shlex
import sys
import tomllib
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from tacit import files
from tacit.running.deployment.door import NODES, Door, RosterDoor, Token, token_path
from tacit.running.deployment.flower_programs import launcher
from tacit.running.deployment.flower_programs.holding import MIN_WAIT, Arrivals, Holding, Waits
from tacit.running.deployment.flower_programs.programs import FOLDER, end_with_owner, versions

NAME = "tacit-federation"
SERVER = "tacit.running.flower:server"
CLIENT = "tacit.running.flower:client"
RUN_SETTINGS = ("plan", "identity", "result", "ticket")
"""What ``flwr run --run-config`` may set: files on the server's machine, and the run's ticket."""

TEXT = """\
[project]
name = "{name}"
version = "1.0.0"
description = "Measures a classifier on data that several parties may not show each other"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "tacit"

[tool.flwr.app.components]
serverapp = "{server}"
clientapp = "{client}"

[tool.flwr.app.config]
{settings}
"""

TICKETS = "TACIT_TICKETS"
"""The environment variable that names the folder of tickets."""
ALLOWED = {"pyproject.toml", ".info/CONTENT"}
MAX_BUNDLE, MAX_FILE = 2**20, 2**16
PROGRAMS = (
    "flwr",
    "flower-superlink",
    "flower-supernode",
    "flower-superexec",
    "flwr-serverapp",
    "flwr-clientapp",
)
REFUSED = ("flwr-agentapp", "flwr-connector", "flwr-model", "flwr-simulation")
WAITING = {
    "flower-supernode": ("flwr.supernode.start_client_internal", "_push_messages"),
    "flower-superexec": ("flwr.supercore.superexec.run_superexec", "_handle_launch_result"),
}
"""Modules in which programs wait for work, and the functions that they call when work has come."""
RECEIVE = "_pull_and_store_message"
"""How a node takes a message, in the module in which it waits."""
LOGS = "flwr.superlink.servicer.control.control_handlers"
LOG_WAIT = 0.1
"""Seconds between two looks of the server for lines that a run wrote."""
PULLING = ("flower-supernode", "flwr-clientapp", "flwr-serverapp")
"""Programs that fetch messages in parts, and wait for parts that have not come yet."""


class GuardError(RuntimeError):
    """A run that this machine refuses to execute."""


def write_guards(folder: Path) -> Path:
    """Write the programs that stand for Flower's own on the search path."""
    folder = files.private_folder(folder).resolve()
    for name in (*PROGRAMS, *REFUSED):
        command = shlex.join([sys.executable, "-I", "-S", launcher.__file__, str(folder), name])
        files.write_program(folder / name, f'#!/bin/sh\nexec {command} "$@"\n'.encode())
    return folder


def write_application(folder: Path, server: str = SERVER, client: str = CLIENT) -> Path:
    """Write the application's folder, which ``flwr run`` takes.

    Parameters
    ----------
    folder : where; made if there is none.
    server : the ServerApp as ``module:name``.
    client : the ClientApp.
    """
    settings = "\n".join(f'{name} = ""' for name in RUN_SETTINGS)
    text = TEXT.format(name=NAME, server=server, client=client, settings=settings)
    files.write_public(folder / "pyproject.toml", text.encode())
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
    if len(content) > MAX_BUNDLE:
        raise GuardError(f"the application has {len(content)} bytes: it holds more than settings")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as bundle:
            foreign = sorted(set(bundle.namelist()) - ALLOWED)
            if foreign or len(set(bundle.namelist())) < len(bundle.namelist()):
                raise GuardError(f"the application holds its own files: {', '.join(foreign)}")
            if any(member.file_size > MAX_FILE for member in bundle.infolist()):
                raise GuardError("the application holds a file that is too large for settings")
            project = tomllib.loads(bundle.read("pyproject.toml").decode())
        components = project["tool"]["flwr"]["app"]["components"]
    except (zipfile.BadZipFile, ValueError, LookupError, TypeError) as error:
        raise GuardError(f"the application cannot be read: {error}") from None
    if components != {"serverapp": SERVER, "clientapp": CLIENT}:
        raise GuardError(f"the application names its own components: {components!r:.200}")


def write_ticket(folder: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Allow one run with these settings; gives the settings with the ticket among them."""
    ticket = secrets.token_hex(16)
    files.write_private(files.private_folder(folder) / ticket, json.dumps(dict(settings)).encode())
    return {**settings, "ticket": ticket}


def use_ticket(folder: Path, settings: Mapping[str, Any]) -> None:
    """Refuse a run that was not allowed; its ticket is used up.

    Raises
    ------
    GuardError : for settings without a ticket, or with one for other settings.
    """
    ticket = settings.get("ticket")
    path = folder / str(ticket)
    if not isinstance(ticket, str) or not ticket.isalnum() or not path.is_file():
        raise GuardError("this server runs what `tacit run` on its own machine started, only")
    allowed = json.loads(path.read_text(encoding="utf-8"))
    path.unlink()
    if {**allowed, "ticket": ticket} != dict(settings):
        raise GuardError("the settings of this run are not those that its ticket allows")


def main(name: str) -> None:
    """Run one of Flower's programs in this process, with the guard in it."""
    if name not in PROGRAMS:
        _refuse(f"{name} does not belong to a federation of tacit")
    end_with_owner()
    try:
        start = importlib.metadata.distribution("flwr").entry_points[name].load()
        _guard(name)
    except (ImportError, AttributeError, KeyError) as error:
        _refuse(f"this version of Flower is not one that tacit knows: {error}")
    except FileNotFoundError as error:
        _refuse(f"{name} was not started by tacit: there is no {error.filename}")
    sys.argv[0] = name
    start()


def _guard(name: str) -> None:
    """Put the checks of one program into the modules that it uses."""
    token = token_path(Path(os.environ["FLWR_HOME"]))
    if name == "flower-superlink":
        door = _behind(Door, token=token.read_text(), open_to=(NODES,))
        _wrap("flwr.superlink.main", "create_app", door)
        roster = _behind(RosterDoor, private=token.parent.parent, versions=versions())
        _wrap("flwr.superlink.main", "create_app", roster)
        _wrap("flwr.superlink.main", "create_app", _holding)
        _wrap(LOGS, "LOG_STREAM_INTERVAL", lambda seconds: min(seconds, LOG_WAIT))
    elif name == "flower-supernode":
        _wrap("flwr.supernode.main", "create_app", _behind(Door, token=token.read_text()))
        from tacit.running.deployment.flower_programs.answering import Answering  # noqa: PLC0415 -- imports Flower

        answering = Answering(Path(os.environ[FOLDER]))
        first = partial(preceded_by, lambda *, state, **_: answering.answer(state))
        _wrap(*WAITING[name], first)
        _wrap(WAITING[name][0], RECEIVE, dropping_ended)
    elif token.exists():
        client = importlib.import_module("flwr.supercore.protobuf.client").ProtobufClient
        client.__init__ = _with_token(client.__init__, token.read_text())
    if name == "flwr-serverapp":
        _wrap("flwr.superlink.runtime.run_serverapp", "install_from_fab", _bundle_first)
        _wrap("flwr.superlink.runtime.run_serverapp", "run_", _ticket_first)
    elif name == "flwr-clientapp":
        _wrap("flwr.supernode.runtime.run_clientapp", "install_from_fab", _bundle_first)
        from tacit.running.deployment.flower_programs.answering import PipeClient  # noqa: PLC0415 -- as above

        _wrap("flwr.supernode.runtime.run_clientapp", "RuntimeHttpClient", lambda _: PipeClient)
    if name in WAITING:
        _wait_less(*WAITING[name])
    if name in PULLING:
        _pull_sooner()


def _wrap(module: str, name: str, made: Callable[[Any], Any]) -> None:
    imported = importlib.import_module(module)
    setattr(imported, name, made(getattr(imported, name)))


def _wait_less(module: str, name: str) -> None:
    """Let a module look for work more often while there is some."""
    waits = Waits()
    _wrap(module, "time", lambda _: waits)
    _wrap(module, name, waits.noting)


def dropping_ended(receive: Callable[..., Any]) -> Callable[..., Any]:
    """Let a node drop a message whose run ends while its parts come, as one whose parts fail.

    Flower leaves its task instead. The node would answer that one first, and wait hours for parts
    that never come, where a server was started again during a run.
    """
    ended: type[BaseException] = importlib.import_module(
        "flwr.supercore.run"
    ).RunNotRunningException

    def failing(ask: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*arguments: Any) -> Any:
            try:
                return ask(*arguments)
            except ended:
                raise RuntimeError("its run has ended") from None

        return asked

    def received(*, pull_object: Any, confirm_message_received: Any, **others: Any) -> Any:
        steps = {"pull_object": pull_object, "confirm_message_received": confirm_message_received}
        return receive(**others, **{name: failing(step) for name, step in steps.items()})

    return received


def _pull_sooner() -> None:
    """Ask again soon for a part of a message that has not come; later waits still double."""
    module = importlib.import_module("flwr.supercore.inflatable.inflatable_utils")
    for pull in (module.pull_objects, module.pull_and_inflate_object_from_tree):
        pull.__kwdefaults__["initial_backoff"] = min(
            MIN_WAIT, pull.__kwdefaults__["initial_backoff"]
        )


def _changed(change: Callable[[Any], None], create: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes something, which is changed before it is returned."""

    def created(*args: Any, **options: Any) -> Any:
        made = create(*args, **options)
        change(made)
        return made

    return created


def _behind(middleware: type, **settings: Any) -> Callable[[Any], Any]:
    """A server's application behind a middleware with these settings."""
    return partial(_changed, lambda application: application.add_middleware(middleware, **settings))


def _holding(create: Callable[..., Any]) -> Callable[..., Any]:
    """A server's application that holds empty answers, until it ends."""
    arrivals = Arrivals()
    middleware = importlib.import_module("starlette.middleware").Middleware
    # the last one is the innermost, behind those that authenticate
    innermost = middleware(Holding, arrivals=arrivals)
    created = _changed(lambda application: application.user_middleware.append(innermost), create)
    server = importlib.import_module("uvicorn").Server
    shutdown = server.shutdown

    async def shut(*args: Any, **options: Any) -> None:
        arrivals.close()
        await shutdown(*args, **options)

    server.shutdown = shut
    return created


def _with_token(begin: Callable[..., Any], token: str) -> Callable[..., Any]:
    """A client that shows the token to its server."""

    def begun(*args: Any, interceptors: Sequence[Any] = (), **options: Any) -> None:
        begin(*args, interceptors=(*interceptors, Token(token)), **options)

    return begun


def preceded_by(work: Callable[..., None], function: Callable[..., Any]) -> Callable[..., Any]:
    """A function before which other work is done with its arguments, which may refuse them."""

    def after(*args: Any, **options: Any) -> Any:
        work(*args, **options)
        return function(*args, **options)

    return after


_bundle_first = partial(preceded_by, lambda content, *_, **__: check_bundle(content))
_ticket_first = partial(
    preceded_by,
    lambda *_, context, **__: use_ticket(Path(os.environ[TICKETS]), context.run_config),
)


def _refuse(reason: str) -> NoReturn:
    sys.stderr.write(f"tacit: {reason}\n")
    sys.exit(2)


if __name__ == "__main__":
    main(sys.argv.pop(1))
