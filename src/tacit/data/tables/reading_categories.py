"""Reads records with classes and a score of every class, or with private groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tacit.data.categories import Categories
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.data.file_units import ByFile, Units
from tacit.data.files.form import PLAIN, FileForm
from tacit.data.groups import Groups
from tacit.data.tables.reading import FilePath, read_with_groups


def read_classes(
    paths: FilePath | Sequence[FilePath],
    scores: Sequence[str],
    label: str = "label",
    classes: Sequence[str] | None = None,
    client: str | None = None,
    person: str | None = None,
    unit: Units = None,
    *,
    form: FileForm | Mapping[str, FileForm] = PLAIN,
) -> Clients:
    """Read clients of a classifier with several classes, one column of scores for each class.

    The files are read once for each column.

    Parameters
    ----------
    paths, client, person, form : as ``read`` takes them.
    unit : as ``read`` takes it, for all columns of scores.
    scores : the columns of scores, one for each class.
    label : the column of labels, integers or texts: the classes' names, or their indices from 0.
    classes : the agreed names of the classes, in the order of the columns; None takes the names of
        the columns.

    Raises
    ------
    DataError : as ``read`` does; for fewer than two columns, another number of names, and a label
        that is no class.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "clinic.csv")
    ...     _ = path.write_text("flu,cold,label\\n0.2,0.8,cold\\n0.9,0.1,flu\\n")
    ...     clients = read_classes(path, ["flu", "cold"])
    >>> clients.categories.names, clients.categories.of_record.tolist()
    (('flu', 'cold'), [1, 0])
    """
    names = tuple(scores) if classes is None else tuple(classes)
    if len(scores) < 2 or len(scores) != len(names):
        raise DataError(
            f"every class needs a column of scores, got {len(scores)} columns for "
            f"{len(names)} classes"
        )
    columns: list[NDArray[np.float64]] = []
    for column in scores:
        clients, labels = read_with_groups(
            paths, label, column, None, client, unit=unit, person=person, form=form
        )
        columns.append(clients.scores)
    if any(column.size != columns[0].size for column in columns):
        raise DataError("a file changed while its columns were read")
    made = Categories.of_values(names, _values(labels), np.stack(columns, axis=1))
    blank = np.zeros(clients.records)
    return replace(clients, scores=blank).with_categories(made)


def read_private_groups(
    paths: FilePath | Sequence[FilePath],
    group: str,
    names: Sequence[str],
    score: ByFile = "score",
    label: ByFile | None = "label",
    client: str | None = None,
    unit: Units = None,
    person: str | None = None,
    *,
    form: FileForm | Mapping[str, FileForm] = PLAIN,
) -> Clients:
    """Read clients with the private group of each record.

    Parameters
    ----------
    paths, score, label, client, unit, person, form : as ``read`` takes them.
    group : the column of groups, integers or texts.
    names : the agreed groups; only this list is public.

    Raises
    ------
    DataError : as ``read`` does; for a record of none of the agreed groups.
    """
    clients, groups = read_with_groups(
        paths, group, score, label, client, unit=unit, person=person, group_names=names, form=form
    )
    return clients.with_categories(Categories(tuple(names), groups.of_record))


def _values(groups: Groups) -> NDArray[np.str_]:
    """The name of every record's group."""
    return np.array(groups.names)[groups.of_record]
