"""Processes that share a ledger, or are killed; started by the tests.

``python -m tests.ledger.children COMMAND ...`` prints what happened as JSON lines. One
process forks all others, so that a run takes no start of Python.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

from tacit import Adjacency, Cost, Ledger
from tacit.ledger.entries import Entry, LimitError, request_digest

DATASET = "registry"
QUARTER = Cost(0.25, adjacency=Adjacency.RECORD)
WRITING = ("tacit/ledger/ledger.py", "tacit/ledger/files.py")


def entry(session: str, step: int = 0, cost: Cost = QUARTER) -> Entry:
    request = request_digest(f"{session} {step}".encode())
    return Entry(DATASET, bytes(32), "dpauc", str(step), session, request, cost)


def open_limited(path: Path, epsilon: float) -> Ledger:
    ledger = Ledger(path)
    if DATASET not in ledger.datasets():
        ledger.limit(DATASET, epsilon)
    return ledger


def fork(work: Callable[[], None]) -> int:
    """A child that does the work and ends without anything of its parent's."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException as error:
        os.write(2, f"{error!r}\n".encode())
        os._exit(1)
    os._exit(0)


def dies_after(lines: int) -> None:
    """Kill this process after so many lines of the code that writes a ledger."""
    left = [lines]

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.endswith(WRITING):
            return None
        left[0] -= event == "line"
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)


def received(pipe: int) -> bytes:
    """What left the children."""
    with os.fdopen(pipe, "rb") as file:
        return file.read()


def killed(work: Callable[[int], None], lines: int) -> tuple[bytes, int]:
    """What left a child that is killed after so many lines, and how it ended."""
    reading, writing = os.pipe()

    def child() -> None:
        dies_after(lines)
        work(writing)

    pid = fork(child)
    os.close(writing)
    return received(reading), os.waitpid(pid, 0)[1]


def kill(path: Path, unsafe: int) -> None:
    """A ledger that is made, and then a debit, each killed at every line until one ends.

    Where it is ``unsafe`` a reply leaves before its debit, which must be noticed.
    """
    debited, replied = 0, 0

    def answer(reply: int) -> None:
        with Ledger(path) as ledger:
            if unsafe:
                os.write(reply, b"1")
            ledger.debit(entry("run", debited))
            if not unsafe:
                os.write(reply, b"1")

    def make(_: int) -> None:
        open_limited(path, 1e6).close()

    if unsafe:
        make(0)
    for work in (make, answer)[unsafe:]:
        for lines in count(1):
            left, status = killed(work, lines)
            replied += len(left)
            if path.exists():
                with Ledger.open_readonly(path) as ledger:
                    ledger.verify()
                    debited = sum(line.kind == "debit" for line in ledger.lines())
            print(json.dumps({"status": status, "debited": debited, "replied": replied}))
            if status == 0 or replied > debited:
                break


def crowd(path: Path, processes: int, each: int, epsilon: float) -> None:
    """Processes that open, or make, one ledger at the same moment and debit until they may not."""
    starting, go = os.pipe()
    reading, writing = os.pipe()

    def child(number: int) -> None:
        os.close(go)
        os.read(starting, 1)
        accepted = 0
        with open_limited(path, epsilon) as ledger:
            for step in range(each):
                try:
                    ledger.debit(entry(f"{number}", step))
                    accepted += 1
                except LimitError:
                    break
        os.write(writing, f"{accepted}\n".encode())

    children = [fork(partial(child, number)) for number in range(processes)]
    os.close(go)
    os.close(writing)
    codes = [os.waitpid(pid, 0)[1] for pid in children]
    print(json.dumps({"accepted": [int(n) for n in received(reading).split()], "codes": codes}))


def main() -> None:
    command, path, *numbers = sys.argv[1:]
    commands: dict[str, Callable[..., None]] = {"kill": kill, "crowd": crowd}
    commands[command](Path(path), *map(int, numbers))


if __name__ == "__main__":
    main()
