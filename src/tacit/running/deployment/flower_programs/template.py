"""A prepared process, which has imported everything and forks for each of Flower's programs.

Flower starts a process for every message that a party answers, and each would import for seconds
what the last one had imported. One process for each SuperNode and each SuperLink therefore imports
it once, starts no thread, and waits at a socket in a folder that only its owner may enter. For
each ``launcher`` that asks, it forks. The fork takes over the launcher's arguments, environment,
working folder and files, and goes on as the same guarded program that would start otherwise. The
prepared process holds no key, no record and no random state: a fork draws everything from the
operating system, and what one fork reads no other fork sees.

The prepared process ends with the process that started it, and ends its forks before. It works on
Linux; elsewhere, and wherever it cannot fork safely, programs start as new processes.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import selectors
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np

from tacit import files
from tacit.protocol.registry import kind_of, names_registered_by
from tacit.running.deployment.flower_programs import guards, launcher
from tacit.running.deployment.flower_programs.programs import Flower, Program

PREPARED = (
    "tacit.running.deployment.flower_programs.answering",
    "tacit.running.flower",
    "tacit.running.session.coordinator",
    "flwr.supernode.cli",
    "flwr.supernode.main",
    "flwr.supernode.runtime.run_clientapp",
    "flwr.supercore.cli",
    "flwr.superlink.cli",
    "flwr.superlink.main",
    "flwr.superlink.runtime.run_serverapp",
    "anyio._backends._asyncio",
    "httpcore",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
)
"""Modules that the programs import, on either side, be it late. Two are left out, because every
fork would have them in memory: SciPy's interpolation, which a party needs for one message of a run,
and Flower's command line, which a server starts a few times a run."""
PACKAGE = "tacit"
"""Whose protocols are imported. Others' are imported in the fork that asks for them: a generator
that such a module made, or a note that it took, would be the same in every fork."""
THREADLESS = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""Settings with which numpy's and pyarrow's libraries start no thread when they are imported."""
MAX_REQUEST = 2**22
REQUEST_SECONDS = 10.0
"""Time that a launcher has to write its request."""
BACKLOG = 64
TASKS = Path("/proc/self/task")
"""The kernel's list of this process's threads, those of libraries among them."""
NAME = Path("/proc/self/comm")


class Template(Program):
    """A prepared process; leaving its block ends it and its forks.

    Parameters
    ----------
    flower : how Flower's programs are called.
    folder : of the guarded programs, where its socket goes.
    """

    def __init__(self, flower: Flower, folder: Path) -> None:
        with _listening(files.private_folder(folder)) as listener:
            ended, self._alive = os.pipe()
            try:
                passed = (listener.fileno(), ended)
                command = [sys.executable, "-P", "-m", __name__, str(folder), *map(str, passed)]
                environment = flower.environment() | THREADLESS
                super().__init__(command, environment, folder.parent / "template.log", passed)
            except BaseException:
                os.close(self._alive)
                raise
            finally:
                os.close(ended)

    def stop(self) -> None:
        """End it, and with it its forks."""
        super().stop()
        with contextlib.suppress(OSError):
            os.close(self._alive)
        self._alive = -1


def start_template(flower: Flower, folder: Path) -> Template | None:
    """Start a prepared process for a folder of guarded programs; None on other systems."""
    return Template(flower, folder) if sys.platform == "linux" else None


def _listening(folder: Path) -> socket.socket:
    """A socket in a folder, at which launchers may wait before the process has imported all."""
    (folder / launcher.SOCKET).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        listener.bind(launcher.socket_address(descriptor))
        (folder / launcher.SOCKET).chmod(0o600)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    finally:
        os.close(descriptor)
    return listener


@dataclass(frozen=True)
class Request:
    """The program that a fork runs.

    Parameters
    ----------
    arguments : the program's name, and its arguments.
    environment : its environment variables.
    files : its standard input, output and error, and its working folder.
    """

    arguments: tuple[str, ...]
    environment: Mapping[bytes, bytes]
    files: tuple[int, ...]

    @classmethod
    def read(cls, connection: socket.socket) -> Request:
        """What a launcher asks for.

        Raises
        ------
        OSError, ValueError : when that is not a whole request.
        """
        head, files, _, _ = socket.recv_fds(connection, launcher.SIZE.size, launcher.PASSED_FILES)
        try:
            if len(head) != launcher.SIZE.size or len(files) != launcher.PASSED_FILES:
                raise ValueError("this is no request for a program")
            arguments, environment = launcher.unpacked(
                _exactly(connection, *launcher.SIZE.unpack(head))
            )
        except (OSError, ValueError):
            _close(files)
            raise
        return cls(tuple(arguments), environment, tuple(files))

    def take_over(self) -> None:
        """Make this process the one that was asked for."""
        *streams, folder = self.files
        for target, file in enumerate(streams):
            os.dup2(file, target)
        os.fchdir(folder)
        self.close()
        os.environb.clear()
        os.environb.update(self.environment)
        sys.argv = list(self.arguments)
        np.random.seed()  # noqa: NPY002 -- its common generator was copied with the process
        with contextlib.suppress(OSError):
            NAME.write_text(self.arguments[0][:15], encoding="ascii")

    def close(self) -> None:
        """Close the files that came with it."""
        _close(self.files)


class Forks:
    """The forks of a prepared process, and the launchers that stand in for them.

    Parameters
    ----------
    listener : where launchers connect.
    owner : a file that is at its end when the process ends that this one belongs to.
    """

    def __init__(self, listener: socket.socket, owner: int) -> None:
        self._listener, self._owner = listener, owner
        self._selector = selectors.DefaultSelector()
        self._launchers: dict[int, socket.socket] = {}
        self._signals, self._signalled = socket.socketpair()
        for end in (self._signals, self._signalled):
            end.setblocking(False)
        signal.set_wakeup_fd(self._signalled.fileno())
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)  # it wakes the selector
        for file in (listener, owner, self._signals):
            self._selector.register(file, selectors.EVENT_READ, None)

    def serve(self) -> Request:
        """Fork for every launcher; returns in a fork only, with what it has become."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    request = self._fork()
                    if request is not None:
                        return request
                elif key.fileobj is self._signals:
                    self._follow_signals()
                elif key.fileobj == self._owner:
                    self._end()
                else:
                    self._forward(key.data)

    def _fork(self) -> Request | None:
        """Fork for a launcher; gives its request in the fork, and None in this process."""
        connection, _ = self._listener.accept()
        connection.settimeout(REQUEST_SECONDS)
        try:
            if not launcher.has_same_owner(connection) or not is_single_threaded():
                raise PermissionError("no fork is made for this launcher")
            request = Request.read(connection)
        except (OSError, ValueError):
            connection.close()
            return None
        try:
            process = os.fork()
        except OSError:  # no more processes: the launcher becomes the program itself
            request.close()
            connection.close()
            return None
        if process == 0:
            os.setsid()
            self._leave()
            request.take_over()
            connection.sendall(b"%s %d\n" % (launcher.STARTED, os.getpid()))
            connection.close()
            return request
        request.close()
        self._launchers[process] = connection
        self._selector.register(connection, selectors.EVENT_READ, process)
        return None

    def _leave(self) -> None:
        """Close, in a fork, what belongs to the prepared process."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        self._selector.close()
        os.close(self._owner)
        for other in (self._listener, self._signals, self._signalled, *self._launchers.values()):
            other.close()

    def _follow_signals(self) -> None:
        if signal.SIGTERM in self._signals.recv(4096):
            self._end()
        while self._launchers:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == 0:
                return
            connection = self._launchers.pop(process)
            with contextlib.suppress(KeyError):
                self._selector.unregister(connection)
            with contextlib.suppress(OSError):
                connection.sendall(b"%s %d\n" % (launcher.ENDED, os.waitstatus_to_exitcode(status)))
            connection.close()

    def _forward(self, process: int) -> None:
        """Give a fork the signals that its launcher got; end it where the launcher has gone."""
        connection = self._launchers.get(process)
        if connection is None:
            return
        try:
            numbers = connection.recv(64)
        except OSError:
            numbers = b""
        for number in numbers:
            os.kill(process, number)
        if not numbers:
            self._selector.unregister(connection)
            _kill(process)

    def _end(self) -> None:
        """End all forks and this process."""
        for process in self._launchers:
            _kill(process)
        for process in self._launchers:
            os.waitpid(process, 0)
        os._exit(0)


def is_single_threaded() -> bool:
    """Whether this process has one thread: only then is a fork of it sound."""
    return threading.active_count() == 1 and len(list(TASKS.iterdir())) == 1


def main(listener: int, owner: int) -> None:
    """Import everything, fork for every launcher, and be its program in the fork."""
    for module in PREPARED:
        with contextlib.suppress(ImportError):  # the program that needs it says that it is missing
            importlib.import_module(module)
    for name in names_registered_by(PACKAGE):
        kind_of(name)
    if not is_single_threaded():
        sys.exit("tacit: an import started a thread; programs are started again")
    gc.collect()
    gc.freeze()
    request = Forks(socket.socket(fileno=listener), owner).serve()
    _leave_quickly(run_to_end(lambda: guards.main(request.arguments[0])))


def run_to_end(program: Callable[[], None]) -> int:
    """Run a program as Python would, with what it left to do at its exit; give its exit status."""
    status: int | str | None = 0
    try:
        program()
    except SystemExit as ended:
        status = ended.code
    except BaseException:  # as Python does with an exception that nobody catches
        traceback.print_exc()
        status = 1
    if not isinstance(status, int | None):
        sys.stderr.write(f"{status}\n")
        status = 1
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    return status or 0


def _leave_quickly(status: int) -> NoReturn:
    """End without freeing every object: that would copy all memory that a fork shares."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def _kill(process: int) -> None:
    """End a fork and its process group, which it may not lead yet."""
    os.kill(process, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)


def _exactly(connection: socket.socket, size: int) -> bytes:
    if size > MAX_REQUEST:
        raise ValueError(f"a request has at most {MAX_REQUEST} bytes, got {size}")
    content = bytearray()
    while len(content) < size:
        part = connection.recv(size - len(content))
        if not part:
            raise ConnectionResetError("a launcher disconnected")
        content += part
    return bytes(content)


def _close(files: tuple[int, ...] | list[int]) -> None:
    for file in files:
        os.close(file)


if __name__ == "__main__":
    main(*map(int, sys.argv[2:4]))
