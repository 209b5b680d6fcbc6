"""The forms of ``tacit evaluate``: public groups, classes, private groups.

``tacit evaluate --groups``: every public group of records separately. ``tacit evaluate --scores``
and ``--private-group``: several classes, and protected groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import click

import tacit
from tacit.cli.record_options import ledger_rows, printed_doubts
from tacit.cli.shell import JsonOutput, PictureFile, check_signal, refuse
from tacit.cli.sources import files_in_memory, read_asked, say_left_out, stored_source
from tacit.data.categories import Groups
from tacit.data.clients import Clients
from tacit.data.engines.stored import StoredGroups
from tacit.data.reading import FileColumns
from tacit.protocol.conversation import Protocol
from tacit.protocol.registry import kind_of
from tacit.protocol.settings import known_settings
from tacit.results.displays import draw_groups
from tacit.results.several import GroupedEvaluation
from tacit.results.text import as_lines
from tacit.running.units import taken_by


def evaluate_by_group(
    asked: SimpleNamespace,
    columns: FileColumns,
    protocol: Protocol,
    given: frozenset[str],
    picture: PictureFile | None,
    output: JsonOutput,
) -> None:
    """Read the groups of all clients, evaluate each and show their results next to each other.

    Parameters
    ----------
    asked : the options of ``tacit evaluate``.
    columns : what the options say of records.
    protocol : with its settings.
    given : the protocol's settings that were given, by name.
    picture : where to save a picture; None for none.
    output : where the result goes.
    """
    with printed_doubts(asked.files):
        clients, groups = _read_groups(asked, columns, protocol.one_count is not None)
    if not asked.exact:
        say_left_out(clients, asked.names)
    if asked.rescale is not None:
        clients = tacit.rescale(clients, *asked.rescale)
    protocol, clients = taken_by(protocol, clients, given)
    with printed_doubts():
        result = tacit.evaluate_groups(
            clients,
            groups,
            protocol,
            asked.seed,
            exact=bool(asked.exact),
            federation=asked.federation,
            engine=asked.engine or "ideal",
            per_person=asked.per_person,
            ledger=asked.ledger,
        )
    if not asked.names:
        result = _without_names(result)
    rows = [*result.to_rows(), *ledger_rows(asked)]
    output.show(result.to_dict(), lambda: as_lines(rows, result.warnings))
    if picture is not None:
        picture.save(draw_groups(result))
    check_signal(result.has_signal)


def _read_groups(
    asked: SimpleNamespace, columns: FileColumns, only_counts: bool
) -> tuple[Clients, Groups]:
    """The clients, and the public groups of their records."""
    stored = stored_source(asked, columns, asked.groups, asked.group_name, (), only_counts)
    if stored is not None:
        return stored, StoredGroups(stored, agreed=bool(asked.group_name))
    return tacit.read_with_groups(
        files_in_memory(asked.files),
        asked.groups,
        group_names=asked.group_name or None,
        **vars(columns),
    )


def _without_names(result: GroupedEvaluation) -> GroupedEvaluation:
    groups = (
        replace(each, evaluation=each.evaluation and replace(each.evaluation, participants=()))
        for each in result.groups
    )
    return replace(result, groups=tuple(groups))


def read_classes(asked: SimpleNamespace, columns: FileColumns, names: tuple[str, ...]) -> Clients:
    """The clients of files whose records have a score of each class.

    Parameters
    ----------
    asked : the options of ``tacit evaluate``.
    columns : what the options say of records.
    names : the agreed classes.

    Raises
    ------
    click.UsageError : for labels that are called by file.
    """
    label, without = columns.label, replace(columns, label=None)
    if not isinstance(label, str):
        raise click.UsageError("with --scores all files have one column of labels")
    return read_asked(asked, without, label, names, asked.scores, only_counts=True)


def category_names(
    protocol: str | None, settings: dict[str, Any], params: Mapping[str, Any]
) -> tuple[str, ...]:
    """The agreed classes or private groups; none where records have neither.

    Parameters
    ----------
    protocol : its name; None where it is chosen later.
    settings : the given settings; without ``classes`` the columns' names are the classes.
    params : the options of ``tacit evaluate``.

    Raises
    ------
    click.UsageError : for a column that the protocol does not take, or one that it lacks.
    """
    scores, group, name = params["scores"], params["private_group"], ""
    if protocol is not None:
        kind = kind_of(protocol)
        name, by_class = kind.categories_setting, kind.scores_by_class
        taken = "scores" if by_class else "private_group" if name else ""
        unused = (each for each in ("scores", "private_group") if each != taken)
        refuse(f"{{}} cannot be used with --protocol {protocol}", params, *unused)
        # groups that are none by default need no column
        needed = settings.get(name) or known_settings(kind)[name].default != () if name else ""
        if needed and not by_class and group is None and params["counts"] is None:
            raise click.UsageError(f"--protocol {protocol} needs --private-group")
    if scores is None and group is None:
        return ()
    used = "--scores" if scores is not None else "--private-group"
    refuse(f"{{}} cannot be used with {used}", params, "groups", "second", "rescale")
    if protocol is None:
        return tuple(scores)
    if scores is not None:
        settings.setdefault(name, scores)
    if name not in settings:
        raise click.UsageError(f"--private-group needs --{name.replace('_', '-')}")
    return tuple(settings[name])
