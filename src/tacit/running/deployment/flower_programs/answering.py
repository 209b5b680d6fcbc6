"""A node starts a process for each message that it received, and serves it through a pipe.

Flower's nodes leave that to a further program, which looks for tasks, starts a process for each,
and lets it ask the node for everything over HTTP. Here the node, as soon as it has stored a
message, asks the prepared process (``template``) for a fork, or starts a process where there is
none. It serves the fork's requests with the functions that Flower serves them with, until the
reply is there. When the process ends without a reply, the reply is an error, at once.

Requests to a node from the process that answers a message, through a pair of sockets. A request is
its path and then its content; an answer is a word and then the content.

Flower's nodes serve these requests over HTTP, for which each takes some milliseconds of either
process's time, and an answer takes a dozen of them. Here they are the same requests, to the same
functions, between a node and a process that it started. The process reads and writes them at its
standard input; no one else has the pair's other end, so that requests need no token.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from flwr.common.constant import SubStatus
from flwr.proto.runtime_pb2 import AcquireTaskRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.protobuf.translation import PROTOBUF_REQUEST_TYPES
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supercore.servicer.runtime import runtime_handlers as core_handlers
from flwr.supernode.servicer.runtime import runtime_handlers

from tacit.running.deployment.flower_programs.launcher import GUARDS, connected, forked

DONE, FAILED = b"done", b"failed"
STANDARD_INPUT = 0


class PipeError(RuntimeError):
    """The node refuses a request."""


class PipeClient(RuntimeHttpClient):  # type: ignore[misc]  # Flower's types are not checked
    """Flower's client of a node's requests, through a socket in place of HTTP.

    Parameters
    ----------
    connection : to the node.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection, self._lock = connection, threading.Lock()

    @classmethod
    def from_server_address(cls, *_: Any, **__: Any) -> PipeClient:
        """The client of the socket at standard input, wherever the node would serve HTTP.

        Programs that this process starts get an empty input in its place, and not the socket.
        """
        connection = Connection(os.dup(STANDARD_INPUT))
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), STANDARD_INPUT)
        return cls(connection)

    def _unary_unary(self, *, path: str, request: Any, response_type: type[Any], **_: Any) -> Any:
        with self._lock:
            self._connection.send_bytes(path.encode())
            self._connection.send_bytes(request.SerializeToString())
            said, content = self._connection.recv_bytes(), self._connection.recv_bytes()
        if said != DONE:
            raise PipeError(f"the node refused {path}: {content.decode(errors='replace')}")
        return response_type.FromString(content)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


PROGRAM = "flwr-clientapp"
LAST = "push-task-output"
"""What a process asks for when its reply is stored."""
PREFIX = "/v1/runtime/"
SERVED = {
    "pull-task-input": runtime_handlers.pull_task_input,
    "pull-messages": runtime_handlers.pull_messages,
    "pull-object": runtime_handlers.pull_object,
    "confirm-message-received": runtime_handlers.confirm_message_received,
    "push-messages": runtime_handlers.push_messages,
    "push-object": runtime_handlers.push_object,
    LAST: runtime_handlers.push_task_output,
    "send-task-heartbeat": core_handlers.send_task_heartbeat,
}
"""What a process that answers a message may ask its node for."""


class Answering:
    """Starts the processes that answer a node's messages.

    Parameters
    ----------
    folder : of the guarded programs, with the prepared process's socket.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before: contextlib.ExitStack = contextlib.ExitStack()

    def answer(self, state: Any) -> None:
        """Answer the message that a node has stored, where there is one; its reply is stored."""
        wanted = AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP])
        acquired = runtime_handlers.acquire_task(wanted, state)
        if not acquired.HasField("task"):
            return
        self._before.close()  # a process has ended, or will, once it has stored its reply
        here, there = Pipe()
        with here:
            with there:
                self._before = self._started(there, acquired.token)
            if not _serve(here, state, acquired.task):
                self._before.close()
                _fail(state, acquired.task)

    def _started(self, standard_input: Connection, token: str) -> contextlib.ExitStack:
        """Start a process; what is returned ends it when it is closed."""
        running = contextlib.ExitStack()
        arguments = [PROGRAM, "--token", token, "--insecure"]
        try:
            connection = running.enter_context(connected(str(self._folder)))
            forked(connection, arguments, standard_input.fileno())
        except OSError:
            running.close()
            process = subprocess.Popen(  # noqa: S603 -- the guarded program, and no shell
                [sys.executable, "-P", "-m", GUARDS, *arguments, "--parent-pid", str(os.getpid())],
                stdin=standard_input.fileno(),
            )
            running.callback(process.wait)
        return running


def _serve(connection: Connection, state: Any, task: Any) -> bool:
    """Serve a process's requests until it has stored its reply; False when it ends before."""
    while True:
        try:
            path, content = connection.recv_bytes(), connection.recv_bytes()
            name = path.decode(errors="replace").removeprefix(PREFIX)
            for part in _served(name, content, state, task):
                connection.send_bytes(part)
        except (EOFError, OSError):
            return False
        if name == LAST:
            return True


def _served(name: str, content: bytes, state: Any, task: Any) -> tuple[bytes, bytes]:
    """The answer to one request."""
    try:
        request = PROTOBUF_REQUEST_TYPES["POST", PREFIX + name].FromString(content)
        return DONE, SERVED[name](request, state, task).SerializeToString()
    except Exception as error:  # as Flower's server does, which goes on with the next request
        return FAILED, f"{type(error).__name__}: {error}".encode()


def _fail(state: Any, task: Any) -> None:
    """Store an error as the reply to a message whose process has ended."""
    state.finish_task(task.task_id, SubStatus.FAILED, "the process that answers has ended")
    for message in state.get_messages_legacy(run_ids=[task.run_id], is_reply=False):
        state.record_message_processing_start(message_id=message.metadata.message_id)
    state._on_task_tokens_expired([task])
