"""Options about records: how files are written, units, persons; and others that commands share.

The options of how files are written: words for labels, separator, decimal mark. The option
``--unit`` of commands that read files, and doubts about scales on the screen. The options
``--person`` and ``--per-person``, and ``--weights``, which is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any

import click
import numpy as np

from tacit.cli.shell import complain
from tacit.data.checking import WEIGHTED
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.data.file_units import ByFile, ScaleWarning, Units
from tacit.data.files.form import DECIMALS, FileForm
from tacit.data.persons import PersonWarning
from tacit.data.tables.missing import MissingWarning
from tacit.data.units import REAL, UNITS
from tacit.privacy import composition
from tacit.privacy.sampling.noise import SimulatedNoise
from tacit.protocol.conversation import ClientState
from tacit.running.persons import counted_clients, unit_of

_NAMED = {"tab": "\t", "\\t": "\t", "semicolon": ";", "comma": ",", "space": " "}


def by_file(
    option: str, texts: Sequence[str], files: Sequence[str]
) -> tuple[list[str], dict[str, list[str]]]:
    """What was given for all files, and for single ones as FILE=.

    Parameters
    ----------
    option : as it is typed.
    texts : its values; one that begins with a file's path and ``=`` is for this file.
    files : the files' paths as given.

    Examples
    --------
    >>> by_file("--score", ["risk", "south.csv=p=1"], ["north.csv", "south.csv"])
    (['risk'], {'south.csv': ['p=1']})
    """
    for_all: list[str] = []
    named: dict[str, list[str]] = {}
    for text in texts:
        paths = [file for file in files if text.startswith(f"{file}=")]
        if not paths:
            for_all.append(text)
            continue
        path = max(paths, key=len)
        named.setdefault(path, []).append(text[len(path) + 1 :])
    return for_all, named


def _column_of(option: str, usual: str, context: click.Context, texts: tuple[str, ...]) -> ByFile:
    """One column for all files, or columns by file."""
    files = context.params["files"]
    for_all, named = by_file(option, texts, files)
    for several in (for_all, *named.values()):
        if len(several) > 1:
            raise click.UsageError(
                f"{option} names two columns, {several[0]} and {several[1]}; give one for all "
                "files, or FILE=COLUMN for a file that has its own"
            )
    shared = for_all[0] if for_all else usual
    if not named:
        return shared
    return {file: named.get(file, [shared])[0] for file in files}


def column_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--score`` and ``--label``, whose columns a file may have by other names."""

    @wraps(command)
    def with_columns(
        *args: Any, score: tuple[str, ...], label: tuple[str, ...], **extra: Any
    ) -> Any:
        context = click.get_current_context()
        columns = {
            name: _column_of(f"--{name}", name, context, texts)
            for name, texts in (("score", score), ("label", label))
        }
        context.params |= columns
        return command(*args, **columns, **extra)

    for name, held in (("label", "labels"), ("score", "scores")):
        with_columns = click.option(
            f"--{name}",
            multiple=True,
            metavar="[FILE=]COL",
            help=f"The column of {held}, {name} by default. With FILE= that file's.",
        )(with_columns)
    return with_columns


_FORM_OPTIONS = (
    click.option(
        "--positive",
        multiple=True,
        metavar="[FILE=]WORD",
        help="A word that means a label of 1, such as yes; once for each. The one other word of a "
        "file then means 0. Without it labels are 0/1 or true/false. With FILE= in that file.",
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
        files = extra["files"]
        for_all, named = by_file("--positive", positive, files)
        try:
            form = FileForm(tuple(for_all), mark, decimal)
            forms = {
                file: replace(form, positive=tuple(named.get(file, for_all))) for file in files
            }
        except DataError as error:
            raise click.UsageError(str(error)) from None
        return command(*args, form=forms if named else form, **extra)

    for option in reversed(_FORM_OPTIONS):
        with_form = option(with_form)
    return with_form


def _units(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> Units:
    """One unit for all files, or units by file."""
    files = {}
    for text in texts:
        path, equals, unit = text.rpartition("=")
        if unit not in UNITS:
            raise click.BadParameter(f"a unit is one of {', '.join(UNITS)}, got {unit!r}")
        if not equals and len(texts) > 1:
            raise click.BadParameter("give one unit for all files, or FILE=UNIT for each")
        if not equals:
            return unit
        if path in files:
            raise click.BadParameter(f"{path} has two units")
        files[path] = unit
    return files or None


unit_option = click.option(
    "--unit",
    multiple=True,
    callback=_units,
    metavar="[FILE=]UNIT",
    help="What the scores are: probability (the default), percent, log-odds, or real for any other "
    "numbers. With FILE= that file's; files that are not named then hold probabilities.",
)


def refuse_two_maps(unit: Units, rescale: object) -> None:
    """Refuse to map scores by their unit and by bounds.

    Raises
    ------
    click.UsageError : for bounds beside a unit that is no real number.
    """
    if rescale is not None and unit not in (None, REAL):
        raise click.UsageError("--rescale maps scores of --unit real, got another unit")


@contextmanager
def printed_doubts() -> Iterator[None]:
    """Print doubts about scales, persons and clients on standard error: they are about records."""
    with warnings.catch_warnings(record=True) as caught:
        for doubt in (ScaleWarning, PersonWarning, MissingWarning):
            warnings.simplefilter("always", doubt)
        yield
    for sentence in dict.fromkeys(str(each.message) for each in caught):
        complain(f"tacit: warning: {sentence}")


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
        return int(click.IntRange(1, composition.MAX_RECORDS).convert(value, param, ctx))


def _refuse_weights(context: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError(WEIGHTED)


_PERSON_OPTIONS = (
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
    for option in reversed(_PERSON_OPTIONS):
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


split_option = click.option(
    "--split",
    type=click.IntRange(min=1),
    metavar="K",
    help="Simulate: pool all records and deal them out to K clients.",
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="Simulate: fix the noise and the split. Without it, noise comes from the system, or "
    "with --split from fresh entropy.",
)
names_option = click.option(
    "--names/--no-names", default=True, help="Write the clients' names into the JSON, up to 200."
)
