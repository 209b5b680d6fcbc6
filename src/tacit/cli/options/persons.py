"""The options ``--person`` and ``--per-person``, and ``--weights``, which is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click
import numpy as np

from tacit.data.checking import WEIGHTED
from tacit.data.clients import Clients
from tacit.privacy.persons import MAX_RECORDS
from tacit.privacy.sampling.noise import SimulatedNoise
from tacit.protocol.conversation import ClientState
from tacit.running.persons import counted_clients, unit_of

ALL = (
    "all records of a person cost what the largest number costs that was declared in advance: give "
    "that number; a person with more records is cut to it, and one with fewer counts in whole"
)
"""Why ``all`` is no number."""


class PerPerson(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """How many records of a person count."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """A whole number from 1 on; ``all`` is refused with what to give instead."""
        if value == "all":
            self.fail(ALL, param, ctx)
        return int(click.IntRange(1, MAX_RECORDS).convert(value, param, ctx))


def _refuse_weights(context: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError(WEIGHTED)


_OPTIONS = (
    click.option(
        "--person",
        metavar="COL",
        help="The column that says whose record it is: epsilon then protects a person's counted "
        "records at a client together, not one record.",
    ),
    click.option(
        "--per-person",
        type=PerPerson(),
        metavar="K",
        help="With --person: the most records of a person that count at a client, drawn at random; "
        "each has a K-th of epsilon. By default 1.",
    ),
    click.option(
        "--weights",
        metavar="COL",
        hidden=True,
        expose_value=False,
        callback=_refuse_weights,
    ),
)


def person_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that reads records of persons."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def check_person_options(person: str | None, per_person: int | None) -> None:
    """Refuse a number of records of persons that no column names.

    Raises
    ------
    click.UsageError : for ``--per-person`` without ``--person``.
    """
    if per_person is not None and person is None:
        raise click.UsageError("--per-person needs --person")


def split_clients(
    clients: Clients, count: int, by: Any, seed: int | None, per_person: int | None = None
) -> Clients:
    """Deal all records out to simulated clients; the split's random numbers are not the noise's.

    Where persons are known, their records are cut first, so that no more of a person's records
    count at all simulated clients together than would at one.
    """
    split_seed = (
        None if seed is None else int(np.random.SeedSequence([seed, 1]).generate_state(1)[0])
    )
    most, persons = unit_of(clients, per_person), clients.persons
    if persons is not None:
        pooled = replace(clients, offsets=np.array([0, clients.records]), names=())
        clients, inside = counted_clients(pooled, most, ClientState(), SimulatedNoise(split_seed))
        persons = persons[inside]
    dealt = Clients.split(
        clients.scores,
        clients.labels,
        count,
        by or "uniform",
        split_seed,
        second=clients.second,
        persons=persons,
        categories=clients.categories,
    )
    return replace(dealt, unit=clients.unit)
