"""Starts one of Flower's programs as a fork of a prepared process, and takes its signals and exit
status.

Flower starts programs by name and watches the process that it started. This is that process: it
asks the prepared process (``template``) for a fork, hands on signals, and ends as the fork ends.
Where no prepared process answers, it becomes the guarded program itself, which imports everything.

It runs as a file, with the standard library only and without ``site``, because each message to a
party starts it once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

SOCKET = "template"
"""The name of the prepared process's socket, in the folder of the guarded programs."""
GUARDS = "tacit.running.deployment.flower_programs.guards"
SIZE = struct.Struct("!Q")
STARTED, ENDED = b"started", b"ended"
"""What a fork says with its process number, and the prepared process with the fork's status."""
PASSED_FILES = 4
"""Standard input, output and error, and the working folder."""
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)
PEER = struct.Struct("3i")


def socket_address(folder: int) -> str:
    """The address of the socket in an open folder; a path may be too long for an address."""
    return f"/proc/self/fd/{folder}/{SOCKET}"


def has_same_owner(connection: socket.socket) -> bool:
    """Whether the process at the other end belongs to this user, as the kernel says."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size)
    return bool(PEER.unpack(credentials)[1] == os.getuid())


def packed(arguments: Sequence[str], environment: Mapping[bytes, bytes]) -> bytes:
    """A program's arguments and environment as bytes, without their size before them."""
    head = [str(len(arguments)).encode(), *map(os.fsencode, arguments)]
    return b"\0".join([*head, *(name + b"=" + value for name, value in environment.items())])


def unpacked(content: bytes) -> tuple[list[str], dict[bytes, bytes]]:
    """Arguments and environment, as ``packed`` wrote them.

    Raises
    ------
    ValueError : for bytes that it did not write.
    """
    count, *rest = content.split(b"\0")
    arguments = [os.fsdecode(argument) for argument in rest[: int(count)]]
    pairs = [pair.partition(b"=") for pair in rest[int(count) :]]
    if len(arguments) != int(count) or not arguments or any(not sign for _, sign, _ in pairs):
        raise ValueError("this is no request for a program")
    return arguments, {name: value for name, _, value in pairs}


def connected(folder: str) -> socket.socket:
    """A connection to the prepared process of a folder.

    Raises
    ------
    OSError : when there is none, or it belongs to another user.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(socket_address(descriptor))
        if not has_same_owner(connection):
            raise PermissionError("the prepared process belongs to another user")
    except OSError:
        connection.close()
        raise
    finally:
        os.close(descriptor)
    return connection


def forked(connection: socket.socket, arguments: Sequence[str], standard_input: int = 0) -> int:
    """Ask for a fork that runs a program; return its process number.

    Parameters
    ----------
    connection : to the prepared process; the fork ends when it is closed.
    arguments : the program's name, and its arguments.
    standard_input : the open file that the fork reads; the other files are this process's.

    Raises
    ------
    OSError : when the prepared process does not make one.
    """
    content = packed(arguments, os.environb)
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        socket.send_fds(connection, [SIZE.pack(len(content))], [standard_input, 1, 2, folder])
        connection.sendall(content)
    finally:
        os.close(folder)
    said, _, process = read_line(connection).partition(b" ")
    if said != STARTED:
        raise ConnectionResetError("the prepared process made no fork")
    return int(process)


def read_line(connection: socket.socket) -> bytes:
    """A line without its end; empty when the connection was closed before its end."""
    line = b""
    while not line.endswith(b"\n"):
        try:
            byte = connection.recv(1)
        except ConnectionResetError:
            byte = b""
        if not byte:
            return b""
        line += byte
    return line[:-1]


def stand_in(connection: socket.socket, process: int) -> NoReturn:
    """Hand on signals to a fork, and end as it ends; it does not outlive the prepared process."""

    def forward(number: int, _: object) -> None:
        with contextlib.suppress(OSError):
            connection.sendall(bytes([number]))

    for forwarded in FORWARDED:
        signal.signal(forwarded, forward)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    said, _, status = read_line(connection).partition(b" ")
    if said != ENDED:
        os.kill(process, signal.SIGKILL)
        os._exit(1)
    code = int(status)
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


def launch(folder: str, arguments: Sequence[str]) -> NoReturn:
    """Run a program: through a fork, or by starting a new process.

    Parameters
    ----------
    folder : of the guarded programs, with the socket in it.
    arguments : the program's name, and its arguments.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)  # until there is a fork to signal
    try:
        connection = connected(folder)
        process = forked(connection, arguments)
    except OSError:  # the program that takes this one's place does not inherit the connection
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
        os.execv(  # noqa: S606 -- no shell is wanted
            sys.executable, [sys.executable, "-P", "-m", GUARDS, *arguments]
        )
    stand_in(connection, process)


if __name__ == "__main__":
    launch(sys.argv[1], sys.argv[2:])
