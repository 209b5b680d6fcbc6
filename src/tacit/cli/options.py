"""Options of commands: several that are added together, and ones that are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator; the help lists them in this order."""

    def added(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return added


def refuse(options: Iterable[tuple[str, object]], sentence: str) -> None:
    """Refuse options that do not go with others.

    Parameters
    ----------
    options : as they are typed, with their values; None for those not given.
    sentence : says why, with ``{}`` in place of the first option that was given.

    Raises
    ------
    click.UsageError : naming the option.
    """
    for option, value in options:
        if value is not None:
            raise click.UsageError(sentence.format(option))
