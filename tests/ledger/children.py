"""Processes that share a ledger, are killed, or run out of disk; started by the tests.

``python -m tests.ledger.children COMMAND ...`` prints what happened as JSON lines. One
process forks all others, so that a run takes no start of Python.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from tacit.ledger.entries import Entry, LedgerError, LimitError, request_digest
from tacit.ledger.ledger import Ledger
from tacit.privacy.cost import Adjacency, Cost

STEPS, LINE = 8, 49
DATASET = "registry"
Answer = Callable[[Ledger, Entry, Callable[[], bytes]], bytes]


def entry(session: str, step: int, epsilon: float = 0.25) -> Entry:
    cost = Cost(epsilon, adjacency=Adjacency.RECORD)
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
        if not any(part in frame.f_code.co_filename for part in ("ledger", "tacit/files")):
            return None
        if event == "line":
            left[0] -= 1
            if left[0] <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)


def answer_paid(ledger: Ledger, requested: Entry, compute: Callable[[], bytes]) -> bytes:
    """An answer as a party gives it: the debit first."""
    ledger.debit(requested)
    return compute()


def answer_unsafely(ledger: Ledger, requested: Entry, compute: Callable[[], bytes]) -> bytes:
    """What must be noticed: a reply that leaves before its debit."""
    reply = compute()
    os.write(OUT, reply)
    ledger.debit(requested)
    return b""


OUT = 3


def rehearse(path: Path, session: str, start: int, answer: Answer, rng: random.Random) -> None:
    """Answer a session's steps from ``start``, some of them twice, each reply to the pipe."""
    with open_limited(path, 1e6) as ledger:
        for step in range(start, STEPS):
            requested = entry(session, step, rng.choice((0.0, 0.25)))
            for _ in range(rng.choice((1, 1, 2))):
                os.write(OUT, answer(ledger, requested, partial(reply_of, session, step)))


def reply_of(session: str, step: int) -> bytes:
    """Fresh noise, so that another answer to the same question has other bytes."""
    return f"{session:>10} {step:5d} {os.urandom(16).hex()}".encode()[: LINE - 1] + b"\n"


def received(pipe: int, most: int | None = None) -> bytes:
    """What left the child: all of it, or at least so many bytes."""
    parts = b""
    while most is None or len(parts) < most:
        part = os.read(pipe, 4096)
        if not part:
            break
        parts += part
    return parts


def killed_run(
    path: Path, session: str, start: int, answer: Answer, rng: random.Random
) -> tuple[bytes, int]:
    """One child, killed at a random line of the ledger or after random bytes of replies."""
    inside = rng.random() < 0.6
    lines = int(10 ** rng.uniform(0.5, 4.3))
    after = rng.randrange(0, 3 * LINE)
    reading, writing = os.pipe()

    def child() -> None:
        os.close(reading)
        os.dup2(writing, OUT)
        if inside:
            dies_after(lines)
        rehearse(path, session, start, answer, rng)

    pid = fork(child)
    os.close(writing)
    left = b""
    if not inside:
        left = received(reading, after)
        os.kill(pid, signal.SIGKILL)
    left += received(reading)
    os.close(reading)
    return left, os.waitpid(pid, 0)[1]


def uncovered(path: Path, left: dict[tuple[str, str], set[bytes]]) -> int:
    """How many different replies left beyond the debits of their session and step."""
    if not path.exists():
        return sum(map(len, left.values()))
    with Ledger.open_readonly(path) as ledger:
        ledger.verify()
        debits = Counter((e.session, e.step) for e in ledger.lines() if e.kind == "debit")
    return sum(max(len(replies) - debits[requested], 0) for requested, replies in left.items())


def kill(folder: Path, seed: int, runs: int, unsafe: bool) -> None:
    """Sessions killed and restarted again and again, the ledger looked at after every run."""
    rng = random.Random(seed)  # noqa: S311
    answer = answer_unsafely if unsafe else answer_paid
    left: dict[tuple[str, str], set[bytes]] = defaultdict(set)
    start, session = 0, 0
    path = folder / "ledger.db"
    for run in range(runs):
        if run % 20 == 0:
            path, start, session = folder / f"ledger-{run}.db", 0, session + 1
            left.clear()
        source = random.Random(rng.random())  # noqa: S311
        replies, status = killed_run(path, f"run {session}", start, answer, source)
        for reply in replies.splitlines():
            left[(f"run {session}", reply.split()[2].decode())].add(reply)
            start = int(reply.split()[2]) + 1
        if start >= STEPS:
            start, session = 0, session + 1
        facts = {"run": run, "status": status, "replies": sum(map(len, left.values()))}
        try:
            facts["uncovered"] = uncovered(path, left)
        except LedgerError as error:
            print(json.dumps({**facts, "broken": str(error)}))
            continue
        print(json.dumps(facts))


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


def full(path: Path, most_bytes: int) -> None:
    """A ledger on a disk with so much room, and with more again."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    sent = 0
    with open_limited(path, 1e6) as ledger:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
        try:
            for step in range(10_000):
                ledger.debit(entry("full", step))
                sent += 1
        except LedgerError as error:
            public, reported = error.public, str(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        ledger.debit(entry("full", 10_000))
        entries = ledger.verify()
    facts = {"sent": sent, "public": public, "told": reported, "entries": entries}
    print(json.dumps(facts))


def main() -> None:
    command, path, *numbers = sys.argv[1:]
    commands: dict[str, Callable[..., None]] = {"kill": kill, "crowd": crowd, "full": full}
    commands[command](Path(path), *map(int, numbers))


if __name__ == "__main__":
    main()
