"""A copy of the example to run, and the processes that a run starts and has to end."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

HOSPITALS = Path(__file__).parents[3] / "examples" / "three-hospitals"

WAIT = 180.0
"""Seconds that a program may take to be ready on a busy machine."""

LONGEST_END = 120.0
"""Seconds that processes may take to end on a busy machine before they count as left behind."""


def example(folder: Path) -> Path:
    """A copy of the example without what a run left behind."""
    left = shutil.ignore_patterns(".tacit", "*.key*", "ledger*", "__pycache__")
    shutil.copytree(HOSPITALS, folder / "hospitals", ignore=left)
    return folder / "hospitals"


def processes_in(folder: Path) -> list[str]:
    """The commands of running processes that name a folder."""
    return [command for command in running().values() if str(folder) in command]


def nothing_left(folder: Path, begun: Mapping[int, str] = MappingProxyType({})) -> bool:
    """Whether all processes of a folder, and those begun, end, which may take them a moment."""
    return comes(lambda: not (processes_in(folder) or {*begun.items()} & {*running().items()}))


def comes(true: Callable[[], bool]) -> bool:
    """Whether something becomes true, which may take a moment."""
    until = time.monotonic() + LONGEST_END
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def running() -> dict[int, str]:
    """The commands of running processes, by process number."""
    return {process: command for process, (_, command) in _listed().items()}


def descendants(process: int) -> dict[int, str]:
    """The running processes that a process started, and that they started in turn."""
    listed, results = _listed(), {process}
    for _ in listed:
        results |= {child for child, (parent, _) in listed.items() if parent in results}
    return {child: listed[child][1] for child in results - {process}}


def _listed() -> dict[int, tuple[int, str]]:
    command = ["ps", "-eww", "-o", "pid=,ppid=,stat=,args="]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [line.split(maxsplit=3) for line in listed.stdout.splitlines()]
    return {int(row[0]): (int(row[1]), row[3]) for row in rows if not row[2].startswith("Z")}
