"""``tacit evaluate --scores`` and ``--private-group``: several classes, and protected groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from tacit.cli.evaluating.sources import files_in_memory
from tacit.cli.options.settings import Texts
from tacit.data.clients import Clients
from tacit.data.files.form import FileForm
from tacit.data.scaling.file_units import Units
from tacit.data.tables.reading_categories import read_classes, read_private_groups
from tacit.protocol.registry import kind_of

_OPTIONS = (
    click.option(
        "--scores",
        type=Texts(),
        metavar="A,B,...",
        help="With several classes: the column of scores of each class.",
    ),
    click.option(
        "--private-group",
        metavar="COL",
        help="The column of private groups, which the protocol protects like labels.",
    ),
)


@dataclass(frozen=True)
class CategoryColumns:
    """The columns of classes or private groups.

    Parameters
    ----------
    scores : the columns of scores by class; None where records have one score.
    group : the column of private groups; None where there is none.
    names : the agreed classes or groups; empty where the columns' names are the classes.
    """

    scores: tuple[str, ...] | None
    group: str | None
    names: tuple[str, ...]

    def read(
        self,
        files: Sequence[str],
        *,
        score: str,
        label: str,
        client: str | None,
        unit: Units,
        person: str | None,
        form: FileForm,
    ) -> Clients:
        """The clients of these files; a database is refused."""
        option = "--private-group" if self.scores is None else "--scores"
        files = files_in_memory(files, option)
        if self.scores is not None:
            names = self.names or self.scores
            return read_classes(files, self.scores, label, names, client, person, unit, form=form)
        return read_private_groups(
            files, str(self.group), self.names, score, label, client, unit, person, form=form
        )


def category_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that reads classes or private groups."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def class_columns(
    scores: tuple[str, ...] | None, refused: Mapping[str, object]
) -> CategoryColumns | None:
    """The columns of classes that are called as their columns; None where records have one score.

    Raises
    ------
    click.UsageError : for an option that does not go with them.
    """
    if scores is None:
        return None
    _refuse_beside("--scores", refused)
    return CategoryColumns(scores, None, ())


def _refuse_beside(used: str, refused: Mapping[str, object]) -> None:
    for option, value in refused.items():
        if value is not None:
            raise click.UsageError(f"{option} cannot be used with {used}")


def category_columns(
    protocol: str,
    settings: dict[str, Any],
    scores: tuple[str, ...] | None,
    group: str | None,
    refused: Mapping[str, object],
) -> CategoryColumns | None:
    """The columns that a protocol needs; the names of classes are added to its settings.

    Parameters
    ----------
    protocol : its name.
    settings : those that were given; classes that were not are named by their columns.
    scores, group : the options.
    refused : options that do not go with these, with their values; None for those not given.

    Raises
    ------
    click.UsageError : for a column that the protocol does not take, or one that it lacks.
    """
    kind = kind_of(protocol)
    name, by_class = kind.categories_setting, kind.scores_by_class
    if scores is not None and not by_class:
        raise click.UsageError(f"--scores cannot be used with --protocol {protocol}")
    if group is not None and (by_class or not name):
        raise click.UsageError(f"--private-group cannot be used with --protocol {protocol}")
    if scores is None and group is None:
        if name and not by_class:
            raise click.UsageError(f"--protocol {protocol} needs --private-group")
        return None
    _refuse_beside("--scores" if scores is not None else "--private-group", refused)
    if scores is not None and settings.get(name) is None:
        settings[name] = scores
    if settings.get(name) is None:
        raise click.UsageError(f"--private-group needs --{name.replace('_', '-')}")
    return CategoryColumns(scores, group, tuple(settings[name]))
