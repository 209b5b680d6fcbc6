"""Flower's own programs as child processes: started, watched, and never left behind.

A process that starts a program holds a lock on a file, and the program, like every program that it
starts in turn, waits in a separate thread for that lock. The kernel releases a lock when its
owner ends, however it ends; what gets the lock then ends at once. Nothing is polled, and nothing
rests on process groups, which Flower's own programs leave.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.metadata
import importlib.util
import json
import os
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn, Self, TypeVar

from tacit import __version__, operating

OWNER = "TACIT_OWNER"
"""The environment variable that names the file to watch."""
FOLDER = "TACIT_PROGRAMS"
"""The environment variable that names the folder of guarded programs."""
LOOPBACK = "127.0.0.1"
PORTS = range(20_000, 32_768)
"""Where programs of this machine listen: below the ports that systems give to outgoing connections,
of which one may take a port between the look for it and the start of its program."""
PORT_TRIES = 100
"""Random ports that are tried."""
POLL_SECONDS = 0.05
"""Seconds between two looks at a program."""
CALL_TIME = 180.0
"""Seconds that one call of ``flwr`` may take."""
GRACE = 10.0
"""Seconds that a program has to end when it is asked to."""
QUOTED_LINES = 4
"""Lines of a program's log that an error quotes."""

Tell = Callable[[str], None]
"""A function that takes lines that a user may want to read, one at a time."""
RETRY_SECONDS, REPEAT_SECONDS = 2.0, 15.0
"""Seconds between two attempts to reach a server, and until a reason that has not changed is said
again."""
Result = TypeVar("Result")


class DeploymentError(RuntimeError):
    """A program, a port or a server outside this process does not work."""


class UnreachableError(DeploymentError):
    """A server that does not answer now, and may answer later."""


def retried(attempt: Callable[[], Result], patience: float, tell: Tell) -> Result:
    """What an attempt gives, once its server can be reached; lines say why it cannot be yet.

    Parameters
    ----------
    attempt : tries once.
    patience : seconds after which this gives up.
    tell : receives a line for each reason, and the same again from time to time.

    Raises
    ------
    DeploymentError : of the attempt, or when the time is over.
    """
    ends, said, again = time.monotonic() + patience, "", 0.0
    while True:
        try:
            return attempt()
        except UnreachableError as error:
            now = time.monotonic()
            if now >= ends:
                raise DeploymentError(f"{error}; gave up after {patience:.0f} s") from None
            if str(error) != said or now >= again:
                tell(f"{error}; retrying, {ends - now:.0f} s left, Ctrl-C ends")
                said, again = str(error), now + REPEAT_SECONDS
            time.sleep(RETRY_SECONDS)


def require_flower() -> None:
    """Refuse to go on without Flower.

    Raises
    ------
    ImportError : with the install command, when it is not installed.
    """
    if importlib.util.find_spec("flwr") is None:
        raise ImportError(
            "federations run on Flower, which is not installed: pip install 'tacit[federation]'"
        )


def versions() -> dict[str, str]:
    """The versions of this package and of Flower, which both sides of a federation must share."""
    return {"tacit": __version__, "flwr": importlib.metadata.version("flwr")}


def free_port() -> int:
    """A free port on loopback, which no outgoing connection takes before a program listens there.

    Raises
    ------
    DeploymentError : when ``PORT_TRIES`` random ports in ``PORTS`` are taken.
    """
    for _ in range(PORT_TRIES):
        port = PORTS.start + secrets.randbelow(len(PORTS))
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((LOOPBACK, port))
            return port
    raise DeploymentError(f"no free port among {PORT_TRIES} from {PORTS.start} to {PORTS.stop - 1}")


def is_listening(host: str, port: int) -> bool:
    """Whether connections are accepted there."""
    try:
        with socket.create_connection((host, port), timeout=1.0):
            return True
    except OSError:
        return False


class Owner:
    """The lock of a process on the programs that it starts, until it is closed.

    Parameters
    ----------
    folder : where the locked file lies, made if there is none.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder.resolve() / f".owner-{secrets.token_hex(8)}"
        self._file = self._path.open("xb")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    @property
    def settings(self) -> dict[str, str]:
        """What a program's environment says of it."""
        return {OWNER: str(self._path)}

    def close(self) -> None:
        """Release the lock, which ends what still watches it."""
        self._path.unlink(missing_ok=True)
        self._file.close()


def end_with_owner() -> None:
    """End this process when the one that started it ends, if the environment names that process."""
    name = os.environ.get(OWNER)
    if name is None:
        return
    path = Path(name)
    try:
        file = path.open("rb")
    except FileNotFoundError:
        _end()
    threading.Thread(target=_end_once_free, args=(file, path), daemon=True).start()


def _end_once_free(file: IO[bytes], path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_SH)
        with contextlib.suppress(OSError):
            path.unlink()
    finally:
        _end()


def _end() -> NoReturn:
    """End at once: handlers and threads of Flower's own may not delay it."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise SystemExit(1)


class Flower:
    """How Flower's programs are called: with a separate configuration folder.

    Parameters
    ----------
    home : the folder, instead of the user's own ``~/.flwr``.
    first : a folder whose programs stand for those of Flower; None for Flower's.
    tell : receives every command before it runs.
    settings : further environment variables.
    """

    def __init__(
        self,
        home: Path,
        first: Path | None = None,
        tell: Tell | None = None,
        settings: dict[str, str] | None = None,
    ) -> None:
        self.home, self._first = home, first
        self._tell = tell
        self._settings = {
            "FLWR_HOME": str(home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.5",
            "PYTHONUNBUFFERED": "1",
            **({} if first is None else {FOLDER: str(first)}),
            **(settings or {}),
        }

    def start(self, log: Path, *command: str, helper: Program | None = None) -> Program:
        """A program that goes on running, with its output in a file.

        Parameters
        ----------
        log : the file.
        command : the program and its arguments.
        helper : a program that it needs, which is stopped after it.
        """
        self._say(command)
        return Program(command, self.environment(), log, helper=helper)

    def call(self, *command: str) -> dict[str, Any]:
        """The JSON answer of a ``flwr`` command.

        Raises
        ------
        DeploymentError : when it fails, or does not answer within ``CALL_TIME``.
        """
        command = (*command, "--format", "json")
        self._say(command)
        try:
            with contextlib.closing(Owner(self.home)) as owner:
                done = subprocess.run(  # noqa: S603
                    command,
                    env=self.environment() | owner.settings,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    timeout=CALL_TIME,
                    check=False,
                )
        except subprocess.TimeoutExpired:
            raise DeploymentError(
                f"{' '.join(command[:3])} gave no answer in {CALL_TIME:.0f} seconds"
            ) from None
        return _answer(command, done)

    def environment(self) -> dict[str, str]:
        """The environment variables of Flower's programs."""
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("FLWR_")
        }
        path = search_path(self._first, inherited.get("PATH", os.defpath))
        return {**inherited, **without_proxy(inherited), **self._settings, "PATH": path}

    def _say(self, command: Sequence[str]) -> None:
        if self._tell is not None:
            program = command[0] if self._first is None else str(self._first / command[0])
            line = shlex.join([program, *command[1:]])
            self._tell(f"+ FLWR_HOME={shlex.quote(str(self.home))} {line}")


def without_proxy(inherited: Mapping[str, str]) -> dict[str, str]:
    """Settings by which programs of this machine reach each other without its proxy.

    Flower's programs talk to each other at 127.0.0.1, and take a proxy for the network for these
    connections too, unless ``NO_PROXY`` excludes the address.

    Examples
    --------
    >>> without_proxy({"NO_PROXY": "intranet.example"})["no_proxy"]
    'intranet.example,127.0.0.1'
    """
    known = inherited.get("no_proxy") or inherited.get("NO_PROXY") or ""
    names = ",".join([*filter(None, known.split(",")), LOOPBACK])
    return {"no_proxy": names, "NO_PROXY": names}


def search_path(guards: Path | None, inherited: str) -> str:
    """Where programs are looked for, as the variable ``PATH`` says it.

    A folder that holds one of the guarded programs is left out: a search goes on where a program
    cannot be run, and would end at the one without a guard.

    Parameters
    ----------
    guards : the folder of programs that stand for Flower's; None for Flower's.
    inherited : the folders of this process's environment.
    """
    folders = [str(Path(sys.executable).parent), *inherited.split(os.pathsep)]
    if guards is None:
        return os.pathsep.join(folders)
    names = [program.name for program in guards.iterdir() if program.is_file()]
    others = [
        folder
        for folder in dict.fromkeys(folders)
        if not any((Path(folder) / name).exists() for name in names)
    ]
    return os.pathsep.join([str(guards), *others])


class Program:
    """A running program; leaving its block stops it.

    Parameters
    ----------
    command : the program and its arguments.
    environment : its environment variables.
    log : the file of its output; an older one is replaced.
    files : open files that it inherits.
    helper : a program that it needs, which is stopped after it.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: dict[str, str],
        log: Path,
        files: Sequence[int] = (),
        helper: Program | None = None,
    ) -> None:
        self.name = Path(command[0]).name
        self.log = log
        self._owner, self.helper = Owner(log.parent), helper
        try:
            with log.open("wb") as output:
                self._process = subprocess.Popen(  # noqa: S603
                    command,
                    env=environment | self._owner.settings,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=files,
                )
        except OSError:
            self._release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The process number."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def status(self, seconds: float) -> int | None:
        """The exit status, once it has ended; None where it still runs after so long."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    def said(self) -> str:
        """What it has written so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Wait for a condition, as long as the program runs.

        Parameters
        ----------
        ready : the condition.
        seconds : how long.

        Raises
        ------
        DeploymentError : when the program ends, or the time is over.
        """
        until = time.monotonic() + seconds
        while not ready():
            self.check()
            if time.monotonic() > until:
                raise DeploymentError(
                    f"{self.name} was not ready in {seconds:.0f} seconds; see {self.log}"
                )
            time.sleep(POLL_SECONDS)

    def check(self) -> None:
        """Refuse to go on without the program.

        Raises
        ------
        DeploymentError : when it has ended, with the last that it said.
        """
        code = self._process.poll()
        if code is not None:
            last = " / ".join(plain(line) for line in self.said().splitlines()[-QUOTED_LINES:])
            said = "" if operating.is_logging() else f": {last}"
            raise DeploymentError(f"{self.name} ended with status {code}{said}; see {self.log}")

    def lines(self, silence: float) -> Iterator[str]:
        """What it writes, line by line as it comes, until it ends.

        Raises
        ------
        DeploymentError : when it writes nothing for so many seconds.
        """
        until, rest = time.monotonic() + silence, ""
        with self.log.open(encoding="utf-8", errors="replace") as log:
            while True:
                was_running = self.is_running
                part = log.read()
                *whole, rest = (rest + part).split("\n")
                yield from map(plain, whole)
                if part:
                    until = time.monotonic() + silence
                elif not was_running:
                    return
                elif time.monotonic() > until:
                    raise DeploymentError(f"the run said nothing for {silence:.0f} seconds")
                else:
                    time.sleep(POLL_SECONDS)

    def query_to_end(self) -> None:
        """Ask it to end, without waiting."""
        if self.is_running:
            self._process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """Ask it to end, wait, and kill it if it does not end; its children end with it."""
        end(self._process)
        self._release()

    def _release(self) -> None:
        self._owner.close()
        if self.helper is not None:
            self.helper.stop()


def end(process: subprocess.Popen[Any]) -> None:
    """End a process that leads a session, and what is left of that session."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL if process.poll() is None else signal.SIGTERM)
    process.wait()


def settings_text(settings: Mapping[str, str]) -> str:
    """Settings as Flower reads them in ``--run-config`` and ``--node-config``.

    Raises
    ------
    DeploymentError : for a text that cannot be written there.
    """
    for value in settings.values():
        if any(sign in value for sign in "\"'\\\n"):
            raise DeploymentError(f"a path must not hold quotes or backslashes, got {value!r}")
    return " ".join(f'{name}="{value}"' for name, value in settings.items())


def plain(line: str) -> str:
    """A line of a log without colours."""
    parts = line.split("\x1b[")
    return (parts[0] + "".join(part.partition("m")[2] for part in parts[1:])).strip()


def _answer(command: Sequence[str], done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    start = done.stdout.find("{")
    try:
        content = json.loads(done.stdout[start:]) if start >= 0 else None
    except ValueError:
        content = None
    if not isinstance(content, dict):
        said = plain(" ".join((done.stdout + done.stderr).split()))
        raise DeploymentError(f"{' '.join(command[:3])} failed: {said[-300:] or 'no reason given'}")
    if not content.get("success", False):
        reason = " ".join(str(content.get("error-message", "no reason given")).split())
        raise DeploymentError(f"{' '.join(command[:3])} failed: {reason}")
    return content
