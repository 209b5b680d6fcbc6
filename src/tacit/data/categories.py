"""Classes and groups of records: a public list of names, and a choice of each record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.data.checking import as_keys
from tacit.data.errors import DataError
from tacit.data.ragged import by_client

MAX_CATEGORIES = 200
"""More categories than this are a mistake: a column of numbers, or of names."""


MOST_LISTED = 60
"""Characters of names in an error."""


def check_names(
    called: str, names: Sequence[str], least: int = 2, error: type[ValueError] = ValueError
) -> None:
    """Refuse names of classes or groups that repeat, too few or too many of them.

    Parameters
    ----------
    called : the setting, or what has these names.
    names : the names.
    least : how many there must be.
    error : what is raised.

    Raises
    ------
    ValueError : naming what it is called, the bounds and the names.
    """
    if not least <= len(names) <= MAX_CATEGORIES or len(set(names)) < len(names):
        listed = ", ".join(map(str, names))
        raise error(
            f"{called} must be {least} to {MAX_CATEGORIES} names that differ, got {len(names)}: "
            f"{listed if len(listed) <= MOST_LISTED else listed[:MOST_LISTED] + '...'}"
        )


def is_permuted(columns: tuple[str, ...], names: tuple[str, ...]) -> bool:
    """Whether columns that are called as the classes are in another order than these."""
    return columns != names and set(columns) == set(names)


def texts_of(names: tuple[str, ...], found: Sequence[str]) -> tuple[str, ...]:
    """What records have for each of the names: the name, or its index where none is a name.

    Parameters
    ----------
    names : the agreed names.
    found : the different texts of all records.

    Examples
    --------
    >>> texts_of(("cat", "dog"), ["0", "1"]), texts_of(("cat", "dog"), ["dog"])
    (('0', '1'), ('cat', 'dog'))
    """
    are_indices = all(text.isdecimal() for text in found) and not set(names) & set(found)
    return tuple(map(str, range(len(names)))) if are_indices else names


@dataclass(frozen=True, eq=False)
class Categories:
    """Which of several agreed names each record has; only the list of names is public.

    Parameters
    ----------
    names : the agreed classes or groups, in the order of the result.
    of_record : int64, shape (M,): indices in ``names``, in the order of the clients' records.
    scores : float64, shape (M, C): a classifier's score of every class for each record; None where
        the categories are groups.

    Raises
    ------
    DataError : for names that repeat, too many or fewer than two of them, an index that is none of
        theirs, scores of another shape, or a score that is not finite.

    Examples
    --------
    >>> Categories.of_values(["cat", "dog"], ["dog", "cat", "dog"]).of_record.tolist()
    [1, 0, 1]
    """

    names: tuple[str, ...]
    of_record: NDArray[np.int64]
    scores: NDArray[np.float64] | None = None
    _checked: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if not self._checked:
            _validate(self)

    @classmethod
    def of_values(
        cls, names: Sequence[str], values: ArrayLike, scores: ArrayLike | None = None
    ) -> Categories:
        """Categories from a value each: one of the names, or of the indices 0 to C - 1.

        Parameters
        ----------
        names : the agreed names.
        values : shape (M,), texts or integers: names, or indices where none of them is a name.
        scores : shape (M, C), numbers; None for groups.

        Raises
        ------
        DataError : for a value that is neither, with its row; and as the class does.
        """
        listed = tuple(str(name) for name in names)
        array = as_keys(values, "labels")
        distinct, inverse = np.unique(array.astype(str), return_inverse=True)
        texts = texts_of(listed, distinct.tolist())
        index = {name: number for number, name in enumerate(texts)}
        for number, name in enumerate(distinct.tolist()):
            if name not in index:
                row = int(np.argmax(inverse == number)) + 1
                raise DataError(f"{name!r} in row {row} is none of {', '.join(listed)}")
        positions = np.array([index[name] for name in distinct.tolist()], dtype=np.int64)
        matrix = None if scores is None else np.asarray(scores, dtype=np.float64)
        return cls(listed, positions[inverse].astype(np.int64), matrix)

    def __len__(self) -> int:
        """The number of records."""
        return self.of_record.size

    def __getitem__(self, records: Any) -> Categories:
        """The categories of some records: a slice, a mask of shape (M,), or indices."""
        scores = None if self.scores is None else self.scores[records]
        return Categories(self.names, self.of_record[records], scores, _checked=True)

    def rescored(self, rising: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> Categories:
        """The categories with the images of every class's scores under a rising map."""
        return self if self.scores is None else replace(self, scores=rising(self.scores))

    @classmethod
    def concatenate(cls, known: Sequence[Categories]) -> Categories:
        """Those of several batches, which all have the same names.

        Raises
        ------
        DataError : where they differ.
        """
        if any(part.names != known[0].names for part in known):
            raise DataError("all batches must have the same classes or groups, or none of them any")
        matrices = [part.scores for part in known if part.scores is not None]
        if matrices and len(matrices) < len(known):
            raise DataError("all batches must have scores of every class, or none of them")
        scores = np.concatenate(matrices) if matrices else None
        return cls(known[0].names, np.concatenate([p.of_record for p in known]), scores)


def _validate(categories: Categories) -> None:
    check_names("classes or groups", categories.names, error=DataError)
    count, index = len(categories.names), categories.of_record
    wrong = np.flatnonzero((index < 0) | (index >= count))
    if wrong.size:
        first = int(wrong[0])
        raise DataError(f"a record's index must be from 0 to {count - 1}, got {index[first]}")
    scores = categories.scores
    if scores is None:
        return
    if scores.shape != (index.size, count):
        raise DataError(f"scores must have the shape {(index.size, count)}, got {scores.shape}")
    rows, columns = np.nonzero(~np.isfinite(scores))
    if rows.size:
        value = scores[rows[0], columns[0]]
        raise DataError(f"scores must be finite, got {value} in row {rows[0] + 1}")


Batch = TypeVar("Batch")
"""Clients (``tacit.data.clients``, which know categories)."""


@dataclass(frozen=True, eq=False)
class Groups:
    """To which group each record belongs, which is public.

    Parameters
    ----------
    names : the groups, in order of their values.
    of_record : int64, shape (M,): indices in ``names``, in the order of the clients' records.
    agreed : whether the names were agreed on beforehand, and not read off the records. A group
        whose only record is removed is then still in the list.

    Raises
    ------
    DataError : for names that repeat, or more than ``MAX_CATEGORIES`` of them.

    Examples
    --------
    >>> from tacit.data.clients import Clients
    >>> clients = Clients.from_arrays([0.1, 0.7, 0.4], [0, 1, 1], ["a", "b", "a"])
    >>> groups = Groups.from_arrays([40, 18, 18], ["a", "b", "a"])
    >>> groups.names, groups.of_record.tolist()
    (('18', '40'), [1, 0, 0])
    >>> groups.members(clients, 0).scores.tolist(), groups.members(clients, 1).names
    ([0.4, 0.7], ('a',))
    """

    names: tuple[str, ...]
    of_record: NDArray[np.int64]
    agreed: bool = False

    def __post_init__(self) -> None:
        check_names("groups", self.names, 0, DataError)

    @classmethod
    def from_arrays(
        cls,
        values: ArrayLike,
        client_ids: ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ) -> Groups:
        """Groups of records from a value each.

        Parameters
        ----------
        values : shape (M,), integers or strings.
        client_ids : shape (M,), where ``Clients.from_arrays`` was given them: it orders records by
            client.
        names : the agreed groups, in the order of the result; some of them may have no record.
            None reads them off the values.

        Raises
        ------
        DataError : for values of other types, lengths that do not agree, too many groups, agreed
            names that repeat, and a value that is not among them.
        """
        group_of_record = as_keys(values, "groups")
        if client_ids is not None:
            ids = as_keys(client_ids, "client ids")
            if ids.shape != group_of_record.shape:
                raise DataError(f"{group_of_record.size} groups but {ids.size} client ids")
            group_of_record = group_of_record[by_client(ids)[0]]
        try:
            distinct, index = np.unique(group_of_record, return_inverse=True)
        except TypeError:
            raise DataError("groups must be all integers or all strings") from None
        present_names = tuple(str(name) for name in distinct)
        if names is None:
            return cls(present_names, index.astype(np.int64))
        agreed = tuple(map(str, names))
        return cls(agreed, _indices(present_names, agreed)[index], agreed=True)

    @property
    def records(self) -> int:
        """M, the number of records."""
        return self.of_record.size

    def taken(self, clients: Batch, inside: NDArray[np.bool_] | None) -> Groups:
        """The groups of the records that count.

        Parameters
        ----------
        clients : with these records.
        inside : which of all records these are, shape (M,); None where they are stored.

        Raises
        ------
        DataError : for clients whose records are stored.
        """
        if inside is None:
            raise DataError("groups of persons' records need the records in memory: tacit.read")
        return replace(self, of_record=self.of_record[inside])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The exact number of records of each group, shape (G,)."""
        return np.bincount(self.of_record, minlength=len(self.names)).astype(np.int64)

    def members(self, clients: Batch, group: int, all_clients: bool = False) -> Batch:
        """A group's records, at the clients that hold some of them, or at all clients.

        Parameters
        ----------
        clients : all records, in the order of ``of_record``.
        group : an index into ``names``.
        all_clients : keep clients without any record of the group, with no records: who they are
            would show whether a record is there.

        Raises
        ------
        DataError : where the groups are of another number of records.
        """
        batch: Any = clients
        if self.of_record.size != batch.records:
            raise DataError(f"{batch.records} records but {self.of_record.size} groups")
        inside = self.of_record == group
        sizes = np.add.reduceat(inside, batch.offsets[:-1], dtype=np.int64)
        client_indices = np.arange(batch.count) if all_clients else np.flatnonzero(sizes)
        offsets = np.concatenate(([0], np.cumsum(sizes[client_indices]))).astype(np.int64)
        in_memory = batch.part(0, batch.count)
        members: Batch = replace(
            in_memory.taken(inside, offsets),
            names=tuple(batch.names[index] for index in client_indices) if batch.names else (),
            left_out=None,
            _checked=all_clients,
        )
        return members


def _indices(present_names: tuple[str, ...], names: Sequence[str]) -> NDArray[np.int64]:
    """The index of each group found among the agreed names."""
    index = {name: number for number, name in enumerate(names)}
    for name in present_names:
        if name not in index:
            raise DataError(
                f"a record is of group {name!r:.60}, which is none of {', '.join(names)}: "
                "agree on every group that there may be"
            )
    return np.array([index[name] for name in present_names], dtype=np.int64)
