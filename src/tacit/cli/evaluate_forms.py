"""The forms of ``tacit evaluate``: no protocol named, public groups, classes, private groups.

``tacit evaluate`` without ``--protocol``: a plan chooses protocol and settings. ``tacit evaluate
--groups``: every public group of records by itself. ``tacit evaluate --scores`` and
``--private-group``: several classes, and protected groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

import tacit
from tacit.cli.record_options import printed_doubts, together
from tacit.cli.setting_options import Spelled, as_names
from tacit.cli.shell import check_signal, refuse
from tacit.cli.sources import Group, files_in_memory, say_left_out
from tacit.data.categories import scored_classes
from tacit.data.clients import Clients
from tacit.data.reading import FileColumns, read_categories
from tacit.output import PictureFile
from tacit.planning.planner import choose
from tacit.protocol.conversation import Protocol
from tacit.protocol.registry import kind_of
from tacit.protocol.trust import Trust, trust_words
from tacit.results.displays import draw_groups
from tacit.results.several import GroupedEvaluation
from tacit.results.text import as_lines
from tacit.running.spending import unit_of
from tacit.running.units import taken_by

trust_option = click.option(
    "--trust",
    type=Spelled(trust_words()),
    metavar="WORD",
    help=f"Who may see what: {', '.join(trust.value for trust in Trust)} (`tacit plan --help`). By "
    "default secure-sum for up to 1,000 clients, and local for more.",
)


def chosen_or_default(
    protocol: Protocol | None,
    clients: Clients,
    split: int | None,
    epsilon: float | None,
    trust: str | None,
    per_person: int | None,
) -> tuple[Protocol, str | None]:
    """The protocol that was named, or one that is chosen now, with the reason.

    Parameters
    ----------
    protocol : the named one; None if none was named.
    split : to how many clients all records will be dealt out; None for the clients as they are.
    epsilon, trust, per_person : as the options have them.

    Raises
    ------
    ValueError : where nothing is predicted to give an estimate, or epsilon does not fit the trust.
    """
    if protocol is not None:
        return protocol, None
    most = unit_of(clients, per_person)
    names = scored_classes(clients.categories)
    choice = choose(split or clients.count, clients.records, epsilon, trust, most, names)
    return choice.protocol, choice.line


def evaluate_by_group(
    params: Mapping[str, Any],
    columns: FileColumns,
    protocol: Protocol,
    given: frozenset[str],
    picture: PictureFile | None,
) -> None:
    """Read the groups of all clients, evaluate each and show their results next to each other.

    Parameters
    ----------
    params : the options of ``tacit evaluate``.
    columns : what the options say of records.
    protocol : with its settings.
    given : the protocol's settings that were given, by name.
    picture : where to save a picture; None for none.
    """
    with printed_doubts():
        clients, groups = tacit.read_with_groups(
            files_in_memory(params["files"], "--groups"),
            params["groups"],
            group_names=params["group_name"] or None,
            **vars(columns),
        )
    if not params["exact"]:
        say_left_out(clients, params["names"])
    if params["rescale"] is not None:
        clients = tacit.rescale(clients, *params["rescale"])
    protocol, clients = taken_by(protocol, clients, given)
    result = tacit.evaluate_groups(
        clients,
        groups,
        protocol,
        params["seed"],
        exact=bool(params["exact"]),
        federation=params["federation"],
        engine=params["engine"] or "ideal",
        per_person=params["per_person"],
    )
    if not params["names"]:
        result = _without_names(result)
    params["output"].show(result.to_dict(), lambda: as_lines(result.to_rows(), result.warnings))
    if picture is not None:
        picture.save(draw_groups(result))
    check_signal(result.has_signal)


def _without_names(result: GroupedEvaluation) -> GroupedEvaluation:
    groups = tuple(
        group
        if group.evaluation is None
        else replace(group, evaluation=replace(group.evaluation, participants=()))
        for group in result.groups
    )
    return replace(result, groups=groups)


category_options = together(
    click.option(
        "--scores",
        type=as_names,
        metavar="A,B,...",
        help="With several classes: the column of scores of each class.",
    ),
    click.option(
        "--private-group",
        metavar="COL",
        help="The column of private groups, which the protocol protects like labels.",
    ),
)
"""The options of a command that reads classes or private groups."""


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

    @property
    def private(self) -> Group | None:
        """The column of private groups and their names; None for classes."""
        return None if self.group is None else (self.group, self.names)

    def read_classes(self, files: Sequence[str], columns: FileColumns) -> Clients:
        """The clients of these files, whose records have a score of each class.

        Raises
        ------
        click.UsageError : for a database, and for labels that are called by file.
        """
        files, label = files_in_memory(files, "--scores"), columns.label
        if not isinstance(label, str):
            raise click.UsageError("with --scores all files have one column of labels")
        names = self.names or self.scores or ()
        others = replace(columns, label=None)
        return read_categories(files, label, names, others, self.scores or ())


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
    refuse(refused.items(), "{} cannot be used with --scores")
    return CategoryColumns(scores, None, ())


def category_columns(
    protocol: str,
    settings: dict[str, Any],
    scores: tuple[str, ...] | None,
    group: str | None,
    counted: bool,
    refused: Mapping[str, object],
) -> CategoryColumns | None:
    """The columns that a protocol needs; the names of classes are added to its settings.

    Parameters
    ----------
    protocol : its name.
    settings : those that were given; classes that were not are named by their columns.
    scores, group : the options.
    counted : whether records were counted before, so that there are no columns.
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
        if name and not by_class and not counted:
            raise click.UsageError(f"--protocol {protocol} needs --private-group")
        return None
    used = "--scores" if scores is not None else "--private-group"
    refuse(refused.items(), f"{{}} cannot be used with {used}")
    if scores is not None and settings.get(name) is None:
        settings[name] = scores
    if settings.get(name) is None:
        raise click.UsageError(f"--private-group needs --{name.replace('_', '-')}")
    return CategoryColumns(scores, group, tuple(settings[name]))
