"""The options of how files are written: words for labels, separator, decimal mark."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from tacit.data.errors import DataError
from tacit.data.files.form import DECIMALS, FileForm

_NAMED = {"tab": "\t", "\\t": "\t", "semicolon": ";", "comma": ",", "space": " "}

_OPTIONS = (
    click.option(
        "--positive",
        multiple=True,
        metavar="WORD",
        help="A word that means a label of 1, such as yes; once for each. The one other word of a "
        "file then means 0. Without it labels are 0/1 or true/false.",
    ),
    click.option(
        "--separator",
        metavar="CHARACTER",
        help="What stands between values in files of text, also by name: tab. By default the "
        "usual one, or where the header needs another, that one.",
    ),
    click.option(
        "--decimal",
        type=click.Choice(DECIMALS),
        default=".",
        show_default=True,
        help="With a comma, 0,5 is a number too.",
    ),
)


def form_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the command gets them together, as ``form``."""

    @wraps(command)
    def with_form(
        *args: Any, positive: tuple[str, ...], separator: str | None, decimal: str, **extra: Any
    ) -> Any:
        mark = None if separator is None else _NAMED.get(separator.lower(), separator)
        try:
            form = FileForm(positive, mark, decimal)
        except DataError as error:
            raise click.UsageError(str(error)) from None
        return command(*args, form=form, **extra)

    for option in reversed(_OPTIONS):
        with_form = option(with_form)
    return with_form
