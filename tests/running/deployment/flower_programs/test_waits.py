"""How long Flower's programs wait, and that its modules are as the guard expects them."""

import importlib
import threading
import time
from types import SimpleNamespace

import pytest

from tacit.running.deployment.flower_programs import guards
from tacit.running.deployment.flower_programs.holding import MIN_WAIT, Waits, wait_after


class Watched:
    """Waits by a clock that a test turns; it notes them, and turns by them where it is told to."""

    def __init__(self, turns: bool = False) -> None:
        self.clock, self.slept, self._turns = 0.0, list[float](), turns
        self.waits = Waits(self._sleep, lambda: self.clock)

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock += seconds * self._turns


def test_waits_grow_while_nothing_happens() -> None:
    """At most a twentieth is added to any wait; an idle node looks as seldom as Flower's own."""
    watched = Watched(turns=True)
    while watched.clock < 600.0:
        watched.waits.sleep(3.0)
    slept = watched.slept
    assert slept[0] == MIN_WAIT
    assert slept == sorted(slept)
    assert slept[-1] == 3.0
    assert len(slept) < 600 / 3 + 130
    watched.waits.noting(lambda: None)()
    watched.waits.sleep(3.0)
    assert slept[-1] == MIN_WAIT
    assert wait_after(1e9, longest=0.5) == 0.5
    assert wait_after(0.0, longest=0.01) == 0.01
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
    assert watched.slept == [MIN_WAIT, 0.0, 1.5, MIN_WAIT]


def test_a_look_that_a_server_held_is_followed_by_the_next() -> None:
    """The wait is the time between the beginnings of two looks."""
    watched = Watched()
    for seconds in (60.0, 1.0, 3.0):
        watched.clock += seconds
        watched.waits.sleep(3.0)
    assert watched.slept == [0.0, 2.0, 0.0]


@pytest.mark.parametrize("name", [*guards.WAITING])
def test_flowers_modules_wait_less(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("flwr")
    path, work = guards.WAITING[name]
    module = importlib.import_module(path)
    monkeypatch.setattr(module, "time", module.time)
    before = getattr(module, work)
    monkeypatch.setattr(module, work, before)
    guards._wait_less(path, work)
    assert isinstance(module.time, Waits)
    assert getattr(module, work) is not before


def test_parts_of_messages_are_asked_for_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part comes at the third look, which takes Flower alone 3 seconds and more."""
    pytest.importorskip("flwr")
    module = importlib.import_module("flwr.supercore.inflatable.inflatable_utils")
    for pull in (module.pull_objects, module.pull_and_inflate_object_from_tree):
        monkeypatch.setitem(pull.__kwdefaults__, "initial_backoff", 1)
    guards._pull_sooner()
    looks: list[str] = []

    def look(part: str) -> bytes:
        looks.append(part)
        if len(looks) < 3:
            raise module.ObjectUnavailableError(part)
        return b"content"

    waits: list[float] = []

    class Event(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            return self.is_set()

    monkeypatch.setattr(module, "threading", SimpleNamespace(Event=Event, Lock=threading.Lock))
    assert module.pull_objects(["part"], look) == {"part": b"content"}
    assert len(looks) == 3
    assert sum(waits) <= 1.2 * (MIN_WAIT + 2 * MIN_WAIT)  # Flower varies a wait by a fifth
