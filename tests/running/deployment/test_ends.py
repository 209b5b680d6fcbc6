"""Runs of real processes that are interrupted or killed: none of Flower's programs is left."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.running.deployment.processes import descendants, example, nothing_left, processes_in

pytest.importorskip("flwr")
pytestmark = pytest.mark.slow

TACIT = Path(sys.executable).parent / "tacit"
WAIT = 60.0


@pytest.mark.thorough
def test_an_interrupted_run_leaves_nothing(tmp_path: Path) -> None:
    home = example(tmp_path)
    command: list[str | Path] = [TACIT, "run", "--local", "3", home / "plan.toml"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert started.stdout is not None
    for line in started.stdout:
        if line.startswith("server on"):
            break
    assert processes_in(tmp_path)
    started.send_signal(signal.SIGINT)
    _, errors = started.communicate(timeout=WAIT)
    assert started.returncode == 130
    assert errors.strip() == "tacit: interrupted"
    assert nothing_left(tmp_path)


@pytest.mark.parametrize(
    ("ready", "left", "count"),
    [
        pytest.param("starting the server", "flower-superlink", 1, id="start"),
        pytest.param("round 0", "flower-supernode", 3, id="round", marks=pytest.mark.thorough),
    ],
)
def test_a_killed_run_leaves_nothing(tmp_path: Path, ready: str, left: str, count: int) -> None:
    """Killed so that it can clean nothing up: its programs, and those that they started, end."""
    home = example(tmp_path)
    command: list[str | Path] = [TACIT, "run", "--local", "3", home / "plan.toml"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        assert any(line.startswith(ready) for line in started.stdout)
        for _ in range(int(WAIT / 0.2)):
            begun = descendants(started.pid)
            if sum(left in command for command in begun.values()) == count:
                break
            time.sleep(0.2)
        started.kill()
    assert sum(left in command for command in begun.values()) == count
    assert nothing_left(tmp_path, begun)
