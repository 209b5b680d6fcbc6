"""Holds a server's answer "nothing there" until there is something.

Flower's programs look for work again and again: a node for messages, the coordinator for replies,
the program that starts others for tasks. Between two looks nothing happens, and each look takes
some milliseconds of the server's processor, of which a run has none to spare. Here a look that
finds nothing is not answered until what it asks for arrives, for a few seconds at most. So a
message is fetched when it comes, and idle programs look seldom.

The middleware is the innermost one. A request reaches it after it was admitted and its sender
authenticated, so that a stranger's request is refused at once, as before. It decides about time
only: every answer is one that Flower gave at that moment, to the same request.

How long Flower's programs wait before they look for work again.

Flower waits for the same time after every look that finds nothing: a node 3 seconds, half a second
for a reply. Here the wait is a twentieth of the time since something last happened, at least 0.05
and at most as long as Flower's own. What comes while a run goes on is seen at once, and any longer
wait grows by a twentieth at most; a node that has been idle for a minute looks every 3 seconds, as
before.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from tacit.running.deployment.door import App, Receive, Scope, Send

Subject = tuple[str, str | int]
"""What a request may wait for: a task, a message of a node, a reply, an object."""
Subjects = Callable[[Any], Collection[Subject]]

IDLE_SECONDS = 3.0
"""How long a look of an idle program is held: Flower's nodes alone look every 3 seconds."""
RUN_SECONDS = 1.0
"""How long a look is held for which a run's deadline may come meanwhile."""
ANSWER = "protobuf_response"
QUESTION = "protobuf_request"
"""Where Flower's servers leave both, in the state of a request."""
TASK: Subject = ("task", "")


class Poll(NamedTuple):
    """A request that looks for something.

    Parameters
    ----------
    subjects : what it waits for.
    is_empty : whether an answer says that there is nothing.
    seconds : how long it is held at most.
    """

    subjects: Subjects
    is_empty: Callable[[Any], bool]
    seconds: float


def _no_message(answer: Any) -> bool:
    return not answer.messages_list


def _not_there_yet(answer: Any) -> bool:
    return bool(answer.object_found and not answer.object_available)


def _object(request: Any) -> Collection[Subject]:
    return [("object", request.object_id)]


POLLS = {
    "/v1/fleet/pull-messages": Poll(
        lambda request: [("node", request.node.node_id)], _no_message, IDLE_SECONDS
    ),
    "/v1/runtime/pull-messages": Poll(
        lambda request: [("reply", number) for number in request.message_ids],
        _no_message,
        RUN_SECONDS,
    ),
    "/v1/runtime/acquire-task": Poll(
        lambda _: [TASK], lambda answer: not answer.HasField("task"), IDLE_SECONDS
    ),
    "/v1/fleet/pull-object": Poll(_object, _not_there_yet, RUN_SECONDS),
    "/v1/runtime/pull-object": Poll(_object, _not_there_yet, RUN_SECONDS),
}
"""Requests that look for something, by path."""
NEWS: dict[str, Subjects] = {
    "/v1/runtime/push-messages": lambda request: [
        ("node", message.metadata.dst_node_id) for message in request.messages_list
    ],
    "/v1/fleet/push-messages": lambda request: [
        ("reply", message.metadata.reply_to_message_id) for message in request.messages_list
    ],
    "/v1/fleet/push-object": _object,
    "/v1/runtime/push-object": _object,
    "/v1/control/start-run": lambda _: [TASK],
}
"""Requests that bring something, by path, with what they bring."""


class Arrivals:
    """Who waits for what in one server."""

    def __init__(self) -> None:
        self._waiting: dict[Subject, set[asyncio.Event]] = {}
        self.is_closed = False

    @contextlib.contextmanager
    def awaited(self, subjects: Collection[Subject]) -> Iterator[asyncio.Event]:
        """An event that is set when one of the subjects arrives, while the block runs."""
        event = asyncio.Event()
        for subject in subjects:
            self._waiting.setdefault(subject, set()).add(event)
        try:
            yield event
        finally:
            for subject in subjects:
                others = self._waiting.get(subject, set())
                others.discard(event)
                if not others:
                    self._waiting.pop(subject, None)

    def tell(self, subjects: Collection[Subject]) -> None:
        """Wake who waits for one of the subjects."""
        for subject in subjects:
            for event in self._waiting.get(subject, ()):
                event.set()

    def close(self) -> None:
        """Wake everybody, and let no one wait any more: the server ends."""
        self.is_closed = True
        self.tell(tuple(self._waiting))


class Holding:
    """ASGI middleware that holds empty answers of a server.

    Parameters
    ----------
    app : the application behind it, whose middleware has parsed the request.
    arrivals : what has come to this server.
    """

    def __init__(self, app: App, arrivals: Arrivals) -> None:
        self._app, self._arrivals = app, arrivals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its answer back when there is something, or time is over."""
        path, request = scope.get("path", ""), scope.get("state", {}).get(QUESTION)
        if request is None:
            await self._app(scope, receive, send)
        elif path in POLLS:
            await self._poll(POLLS[path], scope, receive, send)
        else:
            await self._app(scope, receive, send)
            if path in NEWS:
                self._arrivals.tell(NEWS[path](request))

    async def _poll(self, poll: Poll, scope: Scope, receive: Receive, send: Send) -> None:
        ends = asyncio.get_running_loop().time() + poll.seconds
        state = scope["state"]
        with self._arrivals.awaited(poll.subjects(state[QUESTION])) as arrived:
            while True:
                arrived.clear()
                answer: list[Scope] = []
                await self._app({**scope}, receive, _into(answer))
                said = state.get(ANSWER)  # None for a refusal, which is no answer
                if said is None or not poll.is_empty(said) or not await self._wait(arrived, ends):
                    break
        for part in answer:
            await send(part)

    async def _wait(self, arrived: asyncio.Event, ends: float) -> bool:
        """Whether something came before the time was over."""
        left = ends - asyncio.get_running_loop().time()
        if left <= 0 or self._arrivals.is_closed:
            return False
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(arrived.wait(), left)
        return arrived.is_set() and not self._arrivals.is_closed


def _into(parts: list[Scope]) -> Send:
    """A function that keeps the parts of an answer, instead of sending them."""

    async def kept(part: Scope) -> None:
        parts.append(part)

    return kept


MIN_WAIT = 0.05
"""Seconds between two looks while something happens."""
IDLE_FRACTION = 1 / 20
"""The wait as a fraction of the time since something last happened."""


def wait_after(idle: float, longest: float) -> float:
    """Seconds to wait when nothing has happened for so long.

    Examples
    --------
    >>> [wait_after(idle, longest=3.0) for idle in (0.0, 10.0, 120.0)]
    [0.05, 0.5, 3.0]
    """
    return min(max(MIN_WAIT, idle * IDLE_FRACTION), longest)


class Waits:
    """Stands in for the module ``time`` in one of Flower's modules.

    Parameters
    ----------
    sleep, now : the functions that wait, and that give the time; tests pass others.
    """

    def __init__(
        self, sleep: Callable[[float], None] = time.sleep, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._sleep, self._now = sleep, now
        self._since = self._polled = now()

    def __getattr__(self, name: str) -> Any:
        """What else the module has."""
        return getattr(time, name)

    def sleep(self, longest: float) -> None:
        """Wait, for no longer than Flower asks for, counted from the beginning of the last look."""
        now = self._now()
        self._sleep(max(wait_after(now - self._since, longest) - (now - self._polled), 0.0))
        self._polled = self._now()

    def noting(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function: beginning and end of each call count as something that happened."""

        def noted(*args: Any, **options: Any) -> Any:
            self._since = self._now()
            try:
                return work(*args, **options)
            finally:
                self._since = self._now()

        return noted
