"""A node serves the processes that answer its messages, and notices when one ends before."""

from __future__ import annotations

import subprocess
import sys
import threading
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr")

from flwr.app import RecordDict
from flwr.common.serde import message_from_proto, recorddict_to_proto
from flwr.proto import message_pb2, runtime_pb2
from flwr.supercore.constant import TaskType
from flwr.supercore.inflatable.inflatable_object import get_object_tree
from flwr.supercore.object_store import ObjectStoreFactory
from flwr.supercore.run import Run, RunNotRunningException
from flwr.supernode.nodestate import NodeStateFactory
from flwr.supernode.start_client_internal import _insert_message, _pull_and_store_message

from tacit.running.deployment.flower_programs import answering, guards
from tacit.running.deployment.flower_programs.answering import Answering, PipeClient, PipeError

RUN = 7
WAIT = 60.0


@pytest.fixture
def state() -> Any:
    """A node's state with one message that waits for its answer."""
    made = NodeStateFactory(objectstore_factory=ObjectStoreFactory()).state()
    made.set_node_id(5)
    metadata = message_pb2.Metadata(
        run_id=RUN, src_node_id=1, dst_node_id=5, message_type="query.letter", ttl=60.0
    )
    content = recorddict_to_proto(RecordDict({}))
    message = message_from_proto(message_pb2.Message(metadata=metadata, content=content))
    _insert_message(message, made, made.object_store)
    assert made.create_task(task_type=TaskType.CLIENT_APP, run_id=RUN, fab_hash="") is not None
    return made


def served(state: Any, task: Any) -> tuple[PipeClient, threading.Thread, list[bool]]:
    """A client of a node's requests, the node's side in a thread, and how that ended."""
    here, there = Pipe()
    ended: list[bool] = []

    def serve() -> None:
        with here:
            ended.append(answering._serve(here, state, task))

    thread = threading.Thread(target=serve)
    thread.start()
    return PipeClient(there), thread, ended


def acquired(state: Any) -> Any:
    """The task of the message that waits."""
    return state.get_tasks()[0]


def test_a_process_asks_its_node_for_the_message(state: Any) -> None:
    client, thread, ended = served(state, acquired(state))
    pulled = client.PullMessages(runtime_pb2.PullAppMessagesRequest())
    assert pulled.messages_list[0].metadata.message_type == "query.letter"
    parts = [pulled.message_object_trees[0].object_id]
    found = [client.PullObject(message_pb2.PullObjectRequest(object_id=part)) for part in parts]
    assert all(part.object_available for part in found)
    with pytest.raises(PipeError, match="refused /v1/runtime/get-nodes"):
        client.GetNodes(runtime_pb2.GetNodesRequest())
    client.PushTaskOutput(runtime_pb2.PushTaskOutputRequest(sub_status="completed"))
    thread.join(WAIT)
    assert ended == [True]
    client.close()


@pytest.mark.parametrize("pulls", [False, True], ids=["at once", "with the message"])
def test_a_process_that_ends_before_its_reply(state: Any, pulls: bool) -> None:
    """The reply is an error, and is there."""
    task = acquired(state)
    client, thread, ended = served(state, task)
    if pulls:
        client.PullMessages(runtime_pb2.PullAppMessagesRequest())
    client.close()
    thread.join(WAIT)
    assert ended == [False]
    answering._fail(state, task)
    (reply,) = state.get_messages_legacy(is_reply=True)
    assert reply.has_error()


def test_a_start_that_fails(state: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a prepared process the program starts anew; this one ends with its message."""
    monkeypatch.setattr(answering, "GUARDS", "no.such.module")
    Answering(tmp_path).answer(state)
    (reply,) = state.get_messages_legacy(is_reply=True)
    assert reply.has_error()


def test_nothing_is_started_where_no_message_waits(tmp_path: Path) -> None:
    empty = NodeStateFactory(objectstore_factory=ObjectStoreFactory()).state()
    Answering(tmp_path).answer(empty)
    assert empty.get_messages_legacy(is_reply=True) == []


@pytest.mark.parametrize("lost", ["pull_object", "confirm_message_received"])
def test_a_message_whose_run_ends_leaves_nothing(state: Any, lost: str) -> None:
    """Else a node would wait hours for its parts, and answer no later run."""
    (message,) = state.get_messages_legacy(is_reply=False)
    empty = NodeStateFactory(objectstore_factory=ObjectStoreFactory()).state()
    empty.store_run(Run.create_empty(RUN))
    whole = {part: state.get_object(RUN, part) for part in (message.object_id,)}

    def ended(*_: Any) -> None:
        raise RunNotRunningException

    steps: dict[str, Any] = {
        "pull_object": lambda _, part: whole[part],
        "confirm_message_received": lambda *_: None,
        lost: ended,
    }
    received = guards.dropping_ended(_pull_and_store_message)(
        state=empty,
        object_store=empty.object_store,
        node_config={},
        receive=lambda: (message, get_object_tree(message)),
        get_run=ended,
        get_fab=ended,
        trusted_entities=None,
        **steps,
    )
    assert received is None
    assert empty.get_messages_legacy() == []
    assert [task.status.status for task in empty.get_tasks()] == ["finished"]


def test_a_reply_is_made_first(state: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    answers = Answering(tmp_path)
    monkeypatch.setattr(answers, "answer", lambda _: order.append("answer"))
    first = guards.preceded_by(answers.answer, lambda _: order.append("push"))
    first(state)
    assert order == ["answer", "push"]


def test_programs_that_a_process_starts_do_not_hold_its_pipe() -> None:
    """Their standard input is empty; the process's end of the pipe is closed to them."""
    code = (
        "import subprocess, sys\n"
        "from tacit.running.deployment.flower_programs.answering import PipeClient\n"
        "client = PipeClient.from_server_address()\n"
        "command = [sys.executable, '-c', 'import sys; print(sys.stdin.read())']\n"
        "said = subprocess.run(command, capture_output=True, check=True).stdout\n"
        "client._connection.send_bytes(said)\n"
    )
    here, there = Pipe()
    with here:
        with there:
            started = subprocess.Popen([sys.executable, "-c", code], stdin=there.fileno())
        assert here.recv_bytes() == b"\n"
        assert started.wait(WAIT) == 0
