"""Looks that find nothing: how long they are held, how far apart they are, and what wakes them."""

from __future__ import annotations

import asyncio
import importlib
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("flwr")

from flwr.proto import fleet_pb2, message_pb2, runtime_pb2, task_pb2
from flwr.supercore.inflatable import inflatable_utils
from flwr.supercore.protobuf.translation import PROTOBUF_REQUEST_TYPES

from tacit.running.deployment.flower_programs import guards, holding
from tests.loops import in_a_loop

PULL, PUSH = "/v1/fleet/pull-object", "/v1/fleet/push-object"


class Store:
    """An application in which objects arrive, as Flower's servers keep them."""

    def __init__(self) -> None:
        self.there: set[str] = set()
        self.polls: list[str] = []
        self.arrivals = holding.Arrivals()
        self._app = holding.Holding(self._answer, self.arrivals)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        request = scope["state"][holding.QUESTION]
        if scope["path"] == PUSH:
            self.there.add(request.object_id)
        else:
            self.polls.append(request.object_id)
            there = request.object_id in self.there
            answer = SimpleNamespace(object_found=True, object_available=there)
            scope["state"][holding.ANSWER] = answer
        await send({"type": "http.response.start", "status": 200})

    async def ask(self, path: str, name: str) -> bool:
        """Whether the answer to a request is that an object is there; one answer is sent."""
        state: dict[str, Any] = {holding.QUESTION: SimpleNamespace(object_id=name)}
        scope = {"type": "http", "path": path, "state": state}
        sent: list[Any] = []

        async def send(part: Any) -> None:
            sent.append(part)

        await self._app(scope, _nothing, send)
        assert len(sent) == 1
        return bool(getattr(state.get(holding.ANSWER), "object_available", False))


async def _nothing() -> Any:
    raise AssertionError("nothing is read again")


async def settled() -> None:
    """Let everything that can go on go on."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def held_for_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(holding.POLLS, PULL, holding.POLLS[PULL]._replace(seconds=3600.0))


@pytest.fixture
def store() -> Store:
    return Store()


@in_a_loop
async def test_a_look_is_answered_when_what_it_asks_for_arrives(store: Store) -> None:
    poll = asyncio.create_task(store.ask(PULL, "a"))
    await settled()
    await store.ask(PUSH, "b")
    await settled()
    assert not poll.done()
    assert store.polls == ["a"]
    await store.ask(PUSH, "a")
    assert await poll
    assert store.polls == ["a", "a"]
    assert await store.ask(PULL, "b")


@in_a_loop
async def test_what_arrives_during_a_look_is_not_missed(store: Store) -> None:
    """It arrives after the look found nothing, and before the look waits."""

    answer = store._app._app

    async def overtaken(scope: Any, receive: Any, send: Any) -> None:
        await answer(scope, receive, send)
        if scope["path"] == PULL and len(store.polls) == 1:
            await store.ask(PUSH, "a")

    store._app._app = overtaken
    assert await store.ask(PULL, "a")


@in_a_loop
async def test_a_look_in_vain_ends(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(holding.POLLS, PULL, holding.POLLS[PULL]._replace(seconds=0.01))

    assert not await store.ask(PULL, "a")
    assert store.polls == ["a"]
    assert store.arrivals._waiting == {}


@in_a_loop
async def test_a_server_that_ends_holds_nothing(store: Store) -> None:
    polls = [asyncio.create_task(store.ask(PULL, name)) for name in "aab"]
    await settled()
    store.arrivals.close()
    assert await asyncio.gather(*polls) == [False, False, False]
    assert not await store.ask(PULL, "c")


def test_a_refusal_is_given_at_once() -> None:
    """A request that Flower does not answer has no answer in its state."""
    sent: list[Any] = []

    async def refuse(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 403})

    async def keep(part: Any) -> None:
        sent.append(part)

    state = {holding.QUESTION: SimpleNamespace(object_id="a")}
    scope = {"type": "http", "path": PULL, "state": state}
    asyncio.run(holding.Holding(refuse, holding.Arrivals())(scope, _nothing, keep))
    assert sent == [{"type": "http.response.start", "status": 403}]


def test_flowers_messages_have_what_is_read_of_them() -> None:
    """Paths are Flower's; requests have the subjects, and answers say what is empty."""
    answers = {
        "/v1/fleet/pull-messages": fleet_pb2.PullMessagesResponse(),
        "/v1/runtime/pull-messages": runtime_pb2.PullAppMessagesResponse(),
        "/v1/runtime/acquire-task": runtime_pb2.AcquireTaskResponse(),
        PULL: message_pb2.PullObjectResponse(object_found=True),
        "/v1/runtime/pull-object": message_pb2.PullObjectResponse(object_found=True),
    }
    assert answers.keys() == holding.POLLS.keys()
    for path, answer in answers.items():
        assert holding.POLLS[path].is_empty(answer)
        holding.POLLS[path].subjects(PROTOBUF_REQUEST_TYPES["POST", path]())
    for path, subjects in holding.NEWS.items():
        subjects(PROTOBUF_REQUEST_TYPES["POST", path]())
    there = message_pb2.PullObjectResponse(object_found=True, object_available=True)
    assert not holding.POLLS[PULL].is_empty(there)
    assert not holding.POLLS[PULL].is_empty(message_pb2.PullObjectResponse())
    task = task_pb2.Task(task_id=1)
    got = runtime_pb2.AcquireTaskResponse(task=task, token="t")  # noqa: S106 -- no secret
    assert not holding.POLLS["/v1/runtime/acquire-task"].is_empty(got)
    metadata = message_pb2.Metadata(dst_node_id=7, reply_to_message_id="x")
    whole = [message_pb2.Message(metadata=metadata)]
    pushed = runtime_pb2.PushAppMessagesRequest(messages_list=whole)
    pulled = fleet_pb2.PullMessagesRequest()
    pulled.node.node_id = 7
    assert holding.NEWS["/v1/runtime/push-messages"](pushed) == holding.POLLS[
        "/v1/fleet/pull-messages"
    ].subjects(pulled)
    asked = runtime_pb2.PullAppMessagesRequest(message_ids=["x"])
    replied = fleet_pb2.PushMessagesRequest(messages_list=whole)
    assert holding.NEWS["/v1/fleet/push-messages"](replied) == holding.POLLS[
        "/v1/runtime/pull-messages"
    ].subjects(asked)


class Watched:
    """Waits by a clock that a test turns; it notes them, and turns by them where it is told to."""

    def __init__(self, turns: bool = False) -> None:
        self.clock, self.slept, self._turns = 0.0, list[float](), turns
        self.waits = holding.Waits(self._sleep, lambda: self.clock)

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock += seconds * self._turns


def test_waits_grow_while_nothing_happens() -> None:
    """At most a twentieth is added to any wait; an idle node looks as seldom as Flower's own."""
    watched = Watched(turns=True)
    while watched.clock < 600.0:
        watched.waits.sleep(3.0)
    slept = watched.slept
    assert slept[0] == holding.MIN_WAIT
    assert slept == sorted(slept)
    assert slept[-1] == 3.0
    assert len(slept) < 600 / 3 + 130
    watched.waits.noting(lambda: None)()
    watched.waits.sleep(3.0)
    assert slept[-1] == holding.MIN_WAIT
    assert holding.wait_after(1e9, longest=0.5) == 0.5
    assert holding.wait_after(0.0, longest=0.01) == 0.01
    assert watched.waits.monotonic is time.monotonic


def test_work_is_noted_before_and_after() -> None:
    watched = Watched()

    def work(value: int) -> int:
        watched.waits.sleep(3.0)
        watched.clock += 30.0
        watched.waits.sleep(3.0)
        watched.waits.sleep(3.0)
        return value

    assert watched.waits.noting(work)(4) == 4
    watched.waits.sleep(3.0)
    assert watched.slept == [holding.MIN_WAIT, 0.0, 1.5, holding.MIN_WAIT]


def test_a_look_that_a_server_held_is_followed_by_the_next() -> None:
    """The wait is the time between the beginnings of two looks."""
    watched = Watched()
    for seconds in (60.0, 1.0, 3.0):
        watched.clock += seconds
        watched.waits.sleep(3.0)
    assert watched.slept == [0.0, 2.0, 0.0]


@pytest.mark.parametrize("name", [*guards.WAITING])
def test_flowers_modules_wait_less(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, work = guards.WAITING[name]
    module = importlib.import_module(path)
    monkeypatch.setattr(module, "time", module.time)
    before = getattr(module, work)
    monkeypatch.setattr(module, work, before)
    guards._wait_less(path, work)
    assert isinstance(module.time, holding.Waits)
    assert getattr(module, work) is not before


def test_parts_of_messages_are_asked_for_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part comes at the third look, which takes Flower alone 3 seconds and more."""
    module = inflatable_utils
    for pull in (module.pull_objects, module.pull_and_inflate_object_from_tree):
        monkeypatch.setitem(pull.__kwdefaults__, "initial_backoff", 1)
    guards._pull_sooner()
    polls: list[str] = []

    def poll(part: str) -> bytes:
        polls.append(part)
        if len(polls) < 3:
            raise module.ObjectUnavailableError(part)
        return b"content"

    waits: list[float] = []

    class Event(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            return self.is_set()

    monkeypatch.setattr(module, "threading", SimpleNamespace(Event=Event, Lock=threading.Lock))
    assert module.pull_objects(["part"], poll) == {"part": b"content"}
    assert len(polls) == 3
    assert sum(waits) <= 1.2 * 3 * holding.MIN_WAIT  # Flower varies a wait by a fifth
