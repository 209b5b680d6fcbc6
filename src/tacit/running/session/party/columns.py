"""A party's records by the columns that its file names, with the plan's classes or groups.

Only the plan's names of classes and groups are public. A record of another class or group is an
error on the party's own screen, before anything is debited or sent; others read that the records do
not fit.
"""

from __future__ import annotations

from typing import Any

from tacit.data.clients import Clients
from tacit.data.engines.database import DatabaseTable
from tacit.data.errors import DataError
from tacit.data.tables.reading import read
from tacit.data.tables.reading_categories import read_classes, read_private_groups
from tacit.protocol.conversation import Protocol
from tacit.running.session.party.party_file import PartyFile

NO_CLASS_COLUMNS = "its own file does not name a column of scores for each class of the plan"
"""Reason that a party gives where the plan has classes of which its file names no scores."""

NO_GROUP_COLUMN = "its own file does not name the column of the plan's groups"
"""Reason that a party gives where the plan has groups and its file names no column of them."""


def agreed_names(protocol: Protocol) -> tuple[str, ...]:
    """The classes or groups of which records need columns; empty where they need none."""
    if not protocol.categories_setting:
        return ()
    names: tuple[str, ...] = getattr(protocol, protocol.categories_setting)
    return names


def columns_misfit(party_file: PartyFile, protocol: Protocol) -> str:
    """Why a file's columns do not suit a plan, by words of configuration alone; empty if they do.

    One score is enough for two classes, and one group needs no column.
    """
    names, columns = agreed_names(protocol), party_file.scores
    if protocol.scores_by_class:
        fits = len(columns) == len(names) or (not columns and len(names) == 2)
        return "" if fits and not _is_permuted(columns, names) else NO_CLASS_COLUMNS
    return NO_GROUP_COLUMN if len(names) > 1 and party_file.group is None else ""


def columns_remedy(party_file: PartyFile, protocol: Protocol) -> str:
    """What a party reads on its screen where ``columns_misfit`` gives a reason."""
    names, columns = agreed_names(protocol), party_file.scores
    listed, known = ", ".join(names), ", ".join(columns) or "none"
    if not protocol.scores_by_class:
        return (
            f"the plan has the groups {listed}, and the file of {party_file.name!r} names no "
            "column of them; under [data], name it as group"
        )
    if _is_permuted(columns, names):
        return (
            f"the file of {party_file.name!r} names the columns of scores {known}, and the plan "
            f"the classes in the order {listed}; name the columns in the plan's order"
        )
    return (
        f"the plan has the classes {listed}, and the file of {party_file.name!r} names "
        f"{len(columns)} columns of scores; under [data], name one for each class, in the plan's "
        "order, as scores"
    )


def _is_permuted(columns: tuple[str, ...], names: tuple[str, ...]) -> bool:
    """Whether columns that are called as the classes are in another order than these."""
    return columns != names and set(columns) == set(names)


def read_records(party_file: PartyFile, protocol: Protocol | None = None) -> Clients:
    """A party's records, as one client.

    Parameters
    ----------
    party_file : where they are.
    protocol : the plan's, whose classes or groups they have; None for records of two classes.

    Raises
    ------
    DataError : for records that cannot be used, or of a class or group that the plan does not name.
    """
    names = () if protocol is None else agreed_names(protocol)
    if protocol is not None and protocol.scores_by_class and party_file.scores:
        return _classified(party_file, names)
    if len(names) > 1 and party_file.group is not None:
        return _grouped(party_file, party_file.group, names)
    score, label, second = party_file.columns
    if isinstance(party_file.records, DatabaseTable):
        return party_file.records.read(score, label, party_file.name)
    return read(
        [str(party_file.records)],
        score,
        label,
        None,
        second=second,
        person=party_file.person,
        form=party_file.form,
        missing=party_file.missing,
    )


def _refuse_missing(party_file: PartyFile) -> None:
    if party_file.missing != "refuse":
        raise DataError(
            "records without a score or label cannot be left out beside several classes or groups: "
            "remove missing = 'drop' under [data], and these records from the file"
        )


def _classified(party_file: PartyFile, names: tuple[str, ...]) -> Clients:
    _refuse_missing(party_file)
    label, scores = party_file.class_column or party_file.columns[1], party_file.scores
    if isinstance(party_file.records, DatabaseTable):
        return party_file.records.read_classes(scores, label, names, party_file.name)
    return read_classes(
        [str(party_file.records)],
        scores,
        label,
        names,
        person=party_file.person,
        form=party_file.form,
    )


def _grouped(party_file: PartyFile, group: str, names: tuple[str, ...]) -> Clients:
    _refuse_missing(party_file)
    columns: dict[str, Any] = {"score": party_file.columns[0], "label": party_file.columns[1]}
    if isinstance(party_file.records, DatabaseTable):
        return party_file.records.read_groups(group, names, name=party_file.name, **columns)
    return read_private_groups(
        [str(party_file.records)],
        group,
        names,
        person=party_file.person,
        form=party_file.form,
        **columns,
    )
