"""The commands of a federation: plans and keys, a server, parties that join it, and runs.

This module holds what they share: printing, stopping, and reading invitations and answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import click

import tacit.protocol as tp
from tacit import operating
from tacit.cli.shell import complain, show, terminable
from tacit.results.text import as_lines
from tacit.running.deployment import letters
from tacit.running.deployment.flower_programs.programs import DeploymentError, Tell
from tacit.running.session.coordinator import RunError
from tacit.running.speaking import UNFIT

verbose_option = click.option(
    "-v", "--verbose", is_flag=True, help="Print the commands that are run, and what they say."
)


def teller(verbose: bool) -> Tell | None:
    """The function that prints a line of progress; None without --verbose."""
    return (lambda line: complain(click.unstyle(line))) if verbose else None


def show_rows(rows: Sequence[tuple[str, str]]) -> None:
    """Print labelled lines."""
    show(as_lines(rows, ()))


TERMS = "tacit join --check --log-format plain"


@contextmanager
def stoppable() -> Iterator[None]:
    """End as on Ctrl-C when asked to terminate, and say failures in the command's own form."""
    try:
        with terminable():
            yield
    except (DeploymentError, RunError) as error:
        raise click.ClickException(str(error)) from None
    except tp.DataError:
        if operating.is_logging():
            raise click.ClickException(f"{UNFIT}; why is shown by: {TERMS}") from None
        raise


Letter = TypeVar("Letter", letters.Invitation, letters.Answer)


def read_letter(kind: type[Letter], path: Path) -> Letter:
    """An invitation or an answer in a file, with the file in its errors."""
    try:
        with path.open("rb") as file:
            return kind.of_bytes(file.read(letters.MAX_LETTER + 1))
    except letters.LetterError as error:
        raise letters.LetterError(f"{path}: {error}") from None
