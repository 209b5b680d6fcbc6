"""The option ``--unit`` of commands that read files, and doubts about scales on the screen."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import click

from tacit.cli.shell import complain
from tacit.data.persons import PersonWarning
from tacit.data.scaling.file_units import ScaleWarning, Units
from tacit.data.scaling.units import REAL, UNITS
from tacit.data.tables.missing import MissingWarning


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
    "numbers. Where a protocol counts scores in cells, these follow from it. With FILE= that "
    "file's; files that are not named then hold probabilities.",
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
