"""Records with classes or private groups, read from a table of a database into memory.

A database may return rows in another order for every message of a run. So records are put in the
order of their values: equal records have equal places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from tacit.arrays import Floats
from tacit.data.categories import Categories
from tacit.data.clients import Clients
from tacit.data.engines.records import Engine, require_columns
from tacit.data.engines.sql.statements import INVALID, Relation
from tacit.data.errors import DataError
from tacit.data.tables.frames import Columns, collect

CATEGORY, LABEL = "category", "class"
"""The columns of a statement's answer beside those of scores."""


def classes_of_table(
    engine: Engine, relation: Relation, scores: Sequence[str], label: str, names: Sequence[str]
) -> Clients:
    """One client with the class of every record and its score of every class.

    Parameters
    ----------
    engine, relation : the table.
    scores : the columns of scores, one for each class.
    label : the column of labels: the classes' names, or their indices from 0.
    names : the agreed classes, in the order of the columns.

    Raises
    ------
    DataError : for a column that is not there, a value that is missing or not finite, and a label
        that is no class.
    """
    require_columns(engine, engine.kinds(relation), (*scores, label))
    numbered = [replace(relation, score=column) for column in scores]
    listed = {f"score {index}": each.score_value for index, each in enumerate(numbered)}
    table = _listed(engine, relation, listed | {CATEGORY: _as_text(relation, label)})
    matrix = np.stack([_numbers(engine, table, name) for name in listed], axis=1)
    made = Categories.of_values(names, _texts(table, label, engine), matrix)
    order = np.lexsort((made.of_record, *matrix.T))
    blank = np.zeros(order.size)
    return Clients.from_arrays(blank, blank).with_categories(made.taken(order))


def groups_of_table(
    engine: Engine, relation: Relation, group: str, names: Sequence[str]
) -> Clients:
    """One client with the private group of every record.

    Parameters
    ----------
    engine, relation : the table, with its columns of scores and labels.
    group : the column of groups.
    names : the agreed groups.

    Raises
    ------
    DataError : as ``classes_of_table``, and for a record of none of the agreed groups.
    """
    needed = (relation.score, str(relation.label), group)
    require_columns(engine, engine.kinds(relation), needed)
    values = {"score": relation.score_value, LABEL: relation.class_value}
    table = _listed(engine, relation, values | {CATEGORY: _as_text(relation, group)})
    scores, labels = _numbers(engine, table, "score"), table[LABEL].to_numpy()
    if np.any(labels == INVALID):
        raise DataError(f"labels must be 0 or 1 in all records of {engine.source}")
    made = Categories.of_values(names, _texts(table, group, engine))
    order = np.lexsort((made.of_record, labels, scores))
    return Clients.from_arrays(scores[order], labels[order]).with_categories(made.taken(order))


def _as_text(relation: Relation, column: str) -> str:
    return f"CAST({relation.dialect.quoted(column)} AS {relation.dialect.text})"


def _listed(engine: Engine, relation: Relation, expressions: dict[str, str]) -> pa.Table:
    """The values of some expressions for every record, as columns of these names."""
    quoted = relation.dialect.quoted
    chosen = ", ".join(f"{value} AS {quoted(name)}" for name, value in expressions.items())
    batches = list(engine.batches(f"SELECT {chosen} FROM {relation.table}"))
    if not sum(batch.num_rows for batch in batches):
        raise DataError(f"{engine.source} has no records")
    return pa.Table.from_batches(batches)


def _numbers(engine: Engine, table: pa.Table, name: str) -> Floats:
    columns = Columns(name, None, None, None)
    return collect(table.select([name]).to_batches(), columns, engine.source).scores


def _texts(table: pa.Table, called: str, engine: Engine) -> Any:
    values = table[CATEGORY]
    if values.null_count:
        raise DataError(f"column {called!r} has no value in some records of {engine.source}")
    return np.array(values.to_pylist(), dtype=np.str_)
