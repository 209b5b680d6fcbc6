"""Help: examples, lists of commands and options; and that every example runs."""

from __future__ import annotations

import re
import shlex
import shutil
from copy import copy
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import tacit
from tacit.cli import main
from tacit.cli.plugins import SUMMARIES, plugin_names
from tacit.cli.shell import prepare_help
from tests.cli.examples import example_files
from tests.running.deployment.joining.studies import quick_codes
from tests.terminal import run, succeeded


def examples(command: click.Command) -> list[str]:
    lines = (line.strip() for line in (command.epilog or "").splitlines())
    return [line for line in lines if line.startswith("tacit ")]


def test_the_help_of_evaluate_fits_a_screen() -> None:
    said = run("evaluate", "--help").stdout
    assert len(said.splitlines()) <= 60
    assert max(map(len, said.splitlines())) <= 100
    assert "--missing" not in said
    assert "--missing" in run("evaluate", "--help-all").stdout
    settings = run("evaluate", "--protocol", "score-histogram", "--help").stdout
    assert "Settings of score-histogram" in settings
    assert "--kernel" not in settings


def built_in_commands() -> dict[str, click.Command]:
    commands = {name: main.get_command(click.Context(main), name) for name in SUMMARIES}
    return {name: command for name, command in commands.items() if command is not None}


def test_commands_are_listed_with_the_first_sentences_of_their_help() -> None:
    """The list imports no command; its sentences stand apart from the commands."""
    limit = 1000
    sentences = {name: one.get_short_help_str(limit) for name, one in built_in_commands().items()}
    assert dict(SUMMARIES) == sentences
    main.get_help_option(click.Context(main))  # it takes no name of help away
    said = run("-h").stdout
    assert "..." not in said.partition("Measure:")[2].partition("Examples:")[0]
    listed = re.findall(r"^  ([a-z]+)  ", said, re.MULTILINE)
    assert sorted(listed) == sorted({*SUMMARIES, *plugin_names()})


def commands_below(command: click.Command) -> list[click.Command]:
    """Commands of the built-in modules, where the command is the whole program's."""
    if command is main:
        below = list(built_in_commands().values())
    else:
        below = list(command.commands.values()) if isinstance(command, click.Group) else []
    return [command, *(own for part in below for own in commands_below(part))]


@pytest.mark.parametrize("command", commands_below(main), ids=lambda command: command.name)
def test_a_command_used_alone_knows_both_names_of_help(command: click.Command) -> None:
    """What it learns at its first use it keeps, so the first use is made without the group.

    Documents look at a command first: their contexts know nothing of the group.
    """
    unused = copy(command)
    unused._help_option = None
    prepare_help(unused)
    known = unused.get_help_option(click.Context(unused))
    assert known is not None and known.opts == ["-h", "--help"]
    unused._help_option = None
    for option in ("--help", "-h"):
        succeeded(CliRunner().invoke(unused, [option]))


FEDERATION = (
    *("init", "keys", "serve", "join", "approve", "run", "status", "admit", "collect"),
    *("doctor", "renew"),
)
"""Commands that need each other's files and servers, or a code that a person reads out.

tests/running and test_cli_joining run them as documented; tests/collecting runs a collector.
"""

ALL_EXAMPLES = dict.fromkeys(
    line
    for command in (
        main,
        *(own for name, own in built_in_commands().items() if name not in FEDERATION),
    )
    for line in examples(command)
)


@pytest.fixture(scope="module")
def example_folder(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documented")
    with pytest.MonkeyPatch.context() as patch:
        quick_codes(patch)
        example_files(folder, made / "phones.parquet")
    return folder


@pytest.fixture
def documented(folder: Path, example_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory with copies of all that examples name."""
    quick_codes(monkeypatch)
    shutil.copytree(example_folder, folder, dirs_exist_ok=True)
    return folder


def runs_elsewhere(line: str) -> bool:
    """Whether ``test_audit.py`` or ``test_demo.py`` runs an example, or one of its form."""
    return line.startswith(("tacit audit ", "tacit demo"))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, marks=[pytest.mark.thorough] if runs_elsewhere(line) else [])
        for line in ALL_EXAMPLES
    ],
)
def test_the_examples_run(documented: Path, line: str) -> None:
    """An audit draws fewer numbers here: ``tests/cli/test_audit.py`` is about what it finds."""
    command, _, _ = line.partition(" > ")
    fewer = ["--quick"] if command.startswith("tacit audit ") else []
    result = succeeded(run(*shlex.split(command)[1:], *fewer))
    assert result.stdout


def test_help_names_the_exit_statuses_and_the_version() -> None:
    text = run("evaluate", "-h").stdout
    for status in ("2    an error", "3    the noise left no signal", "130  interrupted"):
        assert status in text
    assert run().stdout == run("-h").stdout
    assert tacit.__version__ in run("--version").stdout


def test_help_lists_common_options_first_and_in_groups() -> None:
    said = CliRunner().invoke(main, ["evaluate", "--help-all"]).output
    common = "Common options:.*--protocol .*--epsilon .*--label .*--groups .*--json "
    assert re.search(f"{common}.*Settings of protocols:.*Other options:.*--missing ", said, re.S)
    assert "[FILES]" not in said.partition("Common options:")[2]  # an argument is no option


def test_completion_knows_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMP_WORDS", "tacit inv")
    monkeypatch.setenv("COMP_CWORD", "1")
    monkeypatch.setenv("_TACIT_COMPLETE", "bash_complete")
    done = CliRunner().invoke(main, [], prog_name="tacit", complete_var="_TACIT_COMPLETE")
    assert "plain,invite" in done.output
