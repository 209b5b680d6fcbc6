"""``--json [FILE]``: JSON instead of the text, or with a file's name beside it; in every command.

A name after the option must end in ``.json``: in ``--json north.csv`` the file is one of records,
which nothing may write over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from tacit.cli.shell import as_json, show
from tacit.output import OutputFile

OPTION, PRINTED, SUFFIX = "--json", "-", ".json"


class JsonOutput:
    """Where a command's JSON goes.

    Parameters
    ----------
    target : None for nowhere, ``"-"`` for standard output, else a file, which is checked now.
    """

    def __init__(self, target: str | None) -> None:
        self._printed = target == PRINTED
        is_file = target is not None and not self._printed
        self._file = OutputFile(str(target), create_parents=True) if is_file else None

    def show(self, content: Any, text: Callable[[], str]) -> None:
        """Print the JSON or else the text, and write the file if one was named.

        Parameters
        ----------
        content : for the JSON.
        text : makes what a person reads.
        """
        if self._file is not None:
            self._file.write(f"{as_json(content)}\n".encode())
        show(as_json(content) if self._printed else text())


class JsonOption(click.Option):
    """The option, whose value may be left out."""


def json_option(command: Any) -> Any:
    """The option ``--json`` of a command, which gets a ``JsonOutput`` as ``output``."""
    return click.option(
        OPTION,
        "output",
        cls=JsonOption,
        metavar="[FILE]",
        callback=lambda context, option, value: JsonOutput(value),
        help="Print JSON instead of the text, or with FILE (.json) also write it there.",
    )(command)


def with_json_value(command: click.Command, args: Sequence[str]) -> list[str]:
    """A command's arguments, in which ``--json`` has a value.

    Examples
    --------
    >>> @json_option
    ... @click.command()
    ... def cook(output):
    ...     pass
    >>> with_json_value(cook, ["--json", "a.csv"]), with_json_value(cook, ["--json", "r.json"])
    (['--json=-', 'a.csv'], ['--json=r.json'])
    """
    if not any(isinstance(each, JsonOption) for each in command.params):
        return list(args)
    made: list[str] = []
    for position, arg in enumerate(args):
        before = args[position - 1] if position else ""
        if arg == "--":
            return [*made, *args[position:]]
        if before == OPTION and arg.endswith(SUFFIX):
            made[-1] = f"{OPTION}={arg}"
        else:
            made.append(f"{OPTION}={PRINTED}" if arg == OPTION else arg)
    return made
