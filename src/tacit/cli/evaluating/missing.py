"""The options ``--missing`` and ``--count-missing``: records without a score or a label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import click

from tacit.cli.shell import complain
from tacit.data.clients import Clients
from tacit.data.engines.places import is_address
from tacit.data.tables.missing import RULES, dealt_out
from tacit.results.text import escaped

MOST_NAMED = 20
"""Largest number of clients whose own numbers are on the screen."""


def missing_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that reads records."""
    options = (
        click.option(
            "--missing",
            type=click.Choice(RULES),
            default=RULES[0],
            show_default=True,
            help="Records without a score or a label (empty, NA, NaN, n/d, null): an error, or "
            "left out.",
        ),
        click.option(
            "--count-missing",
            "missing_epsilon",
            type=float,
            metavar="EPSILON",
            help="With --missing drop: a noisy number of the records left out, for this part of "
            "--epsilon. Without it the result does not say how many, and the screen does.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def check_missing(
    missing: str,
    missing_epsilon: float | None,
    files: Sequence[str],
    others: Sequence[tuple[str, object]],
) -> None:
    """Refuse options that do not go together.

    Parameters
    ----------
    missing, missing_epsilon : the options' values.
    files : files, or a database.
    others : options with their values, None for those not given, under which nothing is left out.

    Raises
    ------
    click.UsageError : naming the options.
    """
    if missing_epsilon is not None and missing == RULES[0]:
        raise click.UsageError("--count-missing needs --missing drop")
    if missing == RULES[0]:
        return
    if any(map(is_address, files)):
        raise click.UsageError(
            "--missing drop needs files, not a database: leave records out in --query"
        )
    for option, value in others:
        if value is not None:
            raise click.UsageError(f"--missing drop cannot be used with {option}")


def with_dealt(split: Clients, whole: Clients) -> Clients:
    """Simulated clients with the incomplete records of all, dealt out evenly."""
    return replace(split, left_out=dealt_out(whole.left_out, split.count))


def say_left_out(clients: Clients, names: bool) -> None:
    """Print on standard error how many records were left out, which only exact results say.

    Parameters
    ----------
    clients : with the records that were left out.
    names : whether the clients may be named.
    """
    if clients.left_out is None:
        return
    scores, labels = clients.left_out.sum(axis=1).tolist()
    complain(
        f"tacit: {scores + labels:,} records were left out: {scores:,} without a score, "
        f"{labels:,} without a label{_by_client(clients) if names else ''}. The exact number is "
        "for this screen: without --exact it is not in the result"
    )


def _by_client(clients: Clients) -> str:
    """The numbers of clients that left any out, where they are few enough for a line."""
    if clients.left_out is None or len(clients.names) != clients.count:
        return ""
    totals = zip(clients.names, clients.left_out.sum(axis=0).tolist(), strict=True)
    parts = [f"{escaped(name)} {total:,}" for name, total in totals if total]
    return f" ({', '.join(parts)})" if 1 < len(parts) <= MOST_NAMED else ""
