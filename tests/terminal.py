"""Lines typed in a folder, as the pages show them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import runpy
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from tacit.cli import main
from tacit.results.saved.reading import check_result

SECONDS = 600.0
"""After which a line that hangs is ended."""
OURS = "tacit "
OF_THE_SHELL = frozenset("|&;<>")
PROGRAM = re.compile(r"python (?P<file>[\w-]+\.py)")
INTO_FILE = re.compile(r"(?P<line>[^|&;<>]+) > (?P<file>[\w./-]+)")


def run(*arguments: object) -> Result:
    """What our command prints in this process; an error that it does not catch is raised."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def succeeded(result: Result) -> Result:
    """The result of a command, which must end with status 0."""
    assert result.exit_code == 0, result.output
    return result


def content_of(*arguments: object) -> dict[str, Any]:
    """The JSON that our command prints where it succeeds."""
    return strict_json(succeeded(run(*arguments, "--json")).stdout)


def page_of(content: dict[str, Any], folder: Path) -> str:
    """The report of a result, which must be as a result of this version is."""
    check_result(content)
    (folder / "r.json").write_text(json.dumps(content))
    assert run("report", folder / "r.json", "-o", folder / "r.html").exit_code == 0
    return (folder / "r.html").read_text()


def strict_json(text: str) -> Any:
    """What a text of JSON says, which has no constants of JavaScript."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def refusal_of(result: Result, code: int = 2) -> str:
    """The sentence of a command that ended with this status, which is all that it printed."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert result.stderr.startswith("tacit: ")
    return result.stderr.removeprefix("tacit: ").strip()


def typed(line: str, folder: Path, own_process: bool = False) -> str:
    """What a line prints; it must end with status 0.

    A command of ours alone, also one whose output goes to a file, and a file of Python run in this
    process, since starting one takes longer than most do. The shell still reads a command: quotes,
    patterns and ``$(...)`` mean what they mean there.

    Parameters
    ----------
    own_process : whether our commands too are started as programs.
    """
    saved = INTO_FILE.fullmatch(line)
    if saved is not None and not own_process and line.startswith(OURS):
        (folder / saved["file"]).write_text(typed(saved["line"], folder), encoding="utf-8")
        return ""
    program = PROGRAM.fullmatch(line)
    if program is not None and not own_process:
        return executed(program["file"], folder)
    if own_process or not line.startswith(OURS) or OF_THE_SHELL & set(line):
        done = in_shell(line, folder)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout
    words = in_shell(f"printf '%s\\0' {line.removeprefix(OURS)}", folder).stdout
    with contextlib.chdir(folder):
        result = CliRunner().invoke(main, words.split("\0")[:-1])
    reason = "".join(traceback.format_exception(result.exception)) if result.exception else ""
    assert result.exit_code == 0, f"{line}\n{result.output}{reason}"
    return result.stdout


def executed(file: str, folder: Path) -> str:
    """What a file of Python prints that runs in its folder, in this process."""
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        runpy.run_path(file, run_name="__main__")
    return printed.getvalue()


def in_python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program in a Python of its own."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


def in_shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A line in a shell that finds this environment's commands."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
