"""A batch of clients: scores and labels in one flat array each, cut by offsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.data.arrays import SCORES, SECOND, as_ids, as_labels, as_scores
from tacit.data.dealing import dealt
from tacit.data.errors import DataError
from tacit.data.persons import as_persons, counted
from tacit.data.units import ENDS_OF_LOG_ODDS, LOG_ODDS, RANGES, check_unit, outside

Scalar = TypeVar("Scalar", bound=np.generic)

WEIGHTED = (
    "weights on records are not supported: nobody has defined by how much a record of a given "
    "weight may change a figure, and noise follows from that; leave weights out"
)


@dataclass(frozen=True)
class Ragged(Generic[Scalar]):
    """Values of several clients in one array: client ``k`` holds ``offsets[k]:offsets[k+1]``.

    The client axis is the last one; an optional leading axis holds replicates.
    """

    values: NDArray[Scalar]
    offsets: NDArray[np.int64]

    @property
    def clients(self) -> int:
        """The number of clients."""
        return self.offsets.size - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of values of each client, shape (K,)."""
        return np.diff(self.offsets)

    def sum(self) -> NDArray[Any]:
        """The sum of each client's values, shape (..., K)."""
        return np.add.reduceat(self.values, self.offsets[:-1], axis=-1)

    def minimum(self) -> NDArray[Scalar]:
        """The smallest value of each client, shape (..., K)."""
        return np.minimum.reduceat(self.values, self.offsets[:-1], axis=-1)

    def maximum(self) -> NDArray[Scalar]:
        """The largest value of each client, shape (..., K)."""
        return np.maximum.reduceat(self.values, self.offsets[:-1], axis=-1)

    def part(self, start: int, stop: int) -> Ragged[Scalar]:
        """The clients ``start`` to ``stop - 1``."""
        low, high = int(self.offsets[start]), int(self.offsets[stop])
        return Ragged(self.values[..., low:high], self.offsets[start : stop + 1] - low)


@dataclass(frozen=True, eq=False)
class Clients:
    """One or more clients' scored and labelled records.

    Parameters
    ----------
    scores : float64, shape (M,). Finite; higher means more likely positive.
    labels : int8, shape (M,). 0 or 1.
    offsets : int64, shape (K+1,). Client ``k`` holds records ``offsets[k]:offsets[k+1]``; no client
        is empty.
    names : one name a client, or empty for clients that are only numbered.
    simulated : True when one party's records were split into clients that do not exist.
    second : float64, shape (M,). A second value of each record, for statistics of pairs of values
        (Kendall's tau); None where records have one value only. Finite.
    unit : what the scores are: ``"probability"``, ``"percent"``, ``"log-odds"`` or ``"real"``; None
        where it is unknown.
    persons : whose records they are, shape (M,), as ``tacit.data.persons`` has them; None where
        every record is another person, or nothing is said. No client step sees them: a run begins
        with the records that count (``counted``).

    Raises
    ------
    DataError : naming client, row and value, for a score or second value that is not finite, a
        score that cannot be of the named unit, a label other than 0 and 1, an empty client,
        duplicate names, or lengths that do not agree.
        Row 17 is a client's 17th record.

    Examples
    --------
    >>> clients = Clients.from_arrays([0.1, 0.7, 0.4], [0, 1, 1], ["a", "b", "a"])
    >>> clients.count, clients.records, clients.names
    (2, 3, ('a', 'b'))
    """

    scores: NDArray[np.float64]
    labels: NDArray[np.int8]
    offsets: NDArray[np.int64]
    names: tuple[str, ...] = ()
    simulated: bool = False
    second: NDArray[np.float64] | None = None
    unit: str | None = None
    persons: NDArray[np.bytes_] | None = field(default=None, repr=False)
    _checked: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if not self._checked:
            _validate(self)

    @classmethod
    def from_arrays(
        cls,
        scores: ArrayLike,
        labels: ArrayLike,
        client_ids: ArrayLike | None = None,
        second: ArrayLike | None = None,
        unit: str | None = None,
        persons: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Clients:
        """Clients from parallel arrays; without ``client_ids`` there is one client.

        Parameters
        ----------
        scores : shape (M,), numbers.
        labels : shape (M,), 0/1 or booleans.
        client_ids : shape (M,), integers or strings; clients are numbered in order of their ids,
            and records keep their order within a client.
        second : shape (M,), numbers: a second value of each record.
        unit : what the scores are.
        persons : shape (M,), integers or strings: whose records they are, so that a run can let
            only so many of a person's records count.
        sample_weight : None; weights are refused.
        """
        refuse_weights(sample_weight)
        flat_scores, flat_labels = as_scores(scores), as_labels(labels)
        flat_second = None if second is None else as_scores(second, SECOND)
        whose = None if persons is None else as_persons(persons)
        if client_ids is None:
            offsets = np.array([0, flat_scores.size], dtype=np.int64)
            return cls(
                flat_scores, flat_labels, offsets, second=flat_second, unit=unit, persons=whose
            )
        _check_second_size(flat_scores.size, flat_second)
        _check_person_size(flat_scores.size, whose)
        ids = as_ids(client_ids)
        if not ids.shape == flat_scores.shape == flat_labels.shape:
            raise DataError(
                "scores, labels and client ids must have one length, "
                f"got {flat_scores.shape}, {flat_labels.shape} and {ids.shape}"
            )
        try:
            names, index = np.unique(ids, return_inverse=True)
        except TypeError:
            raise DataError("client ids must be all integers or all strings") from None
        order = np.argsort(index, kind="stable")
        offsets = np.concatenate(([0], np.cumsum(np.bincount(index, minlength=names.size))))
        return cls(
            flat_scores[order],
            flat_labels[order],
            offsets.astype(np.int64),
            tuple(str(name) for name in names),
            second=None if flat_second is None else flat_second[order],
            unit=unit,
            persons=None if whose is None else whose[order],
        )

    @classmethod
    def from_values(
        cls,
        values: ArrayLike,
        second: ArrayLike | None = None,
        client_ids: ArrayLike | None = None,
    ) -> Clients:
        """Clients whose records have one or two values and no label; every label reads 0.

        Parameters
        ----------
        values : shape (M,), numbers; they replace the scores.
        second : shape (M,), numbers: a second value of each record.
        client_ids : as in ``from_arrays``.

        Examples
        --------
        >>> ratings = Clients.from_values([5, 3, 4], second=[4, 3, 5])
        >>> ratings.scores, ratings.second
        (array([5., 3., 4.]), array([4., 3., 5.]))
        """
        flat = as_scores(values)
        return cls.from_arrays(flat, np.zeros(flat.size, dtype=np.int8), client_ids, second)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        score: str = "score",
        label: str | None = "label",
        client: str | None = None,
        second: str | None = None,
        unit: str | None = None,
        person: str | None = None,
    ) -> Clients:
        """Clients from a pandas, polars or Arrow table (anything with an Arrow stream).

        Parameters
        ----------
        frame : the table.
        score, label : the names of the score and label columns; None for records without labels.
        client : the column that names each record's client; without it there is one client.
        second : the column of a second value of each record; None where there is none.
        unit : what the scores are.
        person : the column that names whose record it is; None where nothing is said.
        """
        from tacit.data.frames import columns_of_frame  # noqa: PLC0415 -- it imports Arrow

        columns = columns_of_frame(frame, score, label, client, second, person)
        scores, labels, ids, seconds, persons = columns
        return cls.from_arrays(scores, labels, ids, seconds, unit, persons)

    @classmethod
    def split(
        cls,
        scores: ArrayLike,
        labels: ArrayLike,
        clients: int,
        by: Literal["uniform", "score"] = "uniform",
        seed: int | None = None,
        second: ArrayLike | None = None,
        persons: ArrayLike | None = None,
    ) -> Clients:
        """Split one party's records into simulated clients of nearly equal size.

        ``by="uniform"`` deals records out at random (the papers' IID setting); ``by="score"`` gives
        records of similar score to the same client (their non-IID setting). ``second`` is a second
        value of each record, ``persons`` says whose it is; a person's records are dealt out too.
        """
        flat_scores, flat_labels = as_scores(scores), as_labels(labels)
        flat_second = None if second is None else as_scores(second, SECOND)
        whose = None if persons is None else as_persons(persons)
        _check_sizes(flat_scores.size, flat_labels, flat_second)
        _check_person_size(flat_scores.size, whose)
        order, offsets = dealt(flat_scores, clients, by, seed)
        return cls(
            flat_scores[order],
            flat_labels[order],
            offsets,
            simulated=True,
            second=None if flat_second is None else flat_second[order],
            persons=None if whose is None else whose[order],
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Clients]) -> Clients:
        """All clients of several batches as one batch, in order.

        Raises
        ------
        DataError : for no batch at all, where only some of them have second values, or where their
            units differ.
        """
        if not parts:
            raise DataError("no clients were given")
        seconds = [part.second for part in parts if part.second is not None]
        if seconds and len(seconds) < len(parts):
            raise DataError(
                f"{len(seconds)} of {len(parts)} batches have second values: all must, or none"
            )
        ends = np.cumsum([part.records for part in parts])
        shifted = [
            part.offsets[1:] + end - part.records for part, end in zip(parts, ends, strict=True)
        ]
        return cls(
            np.concatenate([part.scores for part in parts]),
            np.concatenate([part.labels for part in parts]),
            np.concatenate([np.zeros(1, dtype=np.int64), *shifted]),
            tuple(name for part in parts for name in part.names),
            any(part.simulated for part in parts),
            np.concatenate(seconds) if seconds else None,
            _common_unit(parts),
            _all_persons(parts),
        )

    @property
    def count(self) -> int:
        """K, the number of clients."""
        return self.offsets.size - 1

    @property
    def records(self) -> int:
        """M, the number of records of all clients."""
        return self.scores.size

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of records of each client, shape (K,)."""
        return np.diff(self.offsets)

    @property
    def positives(self) -> int:
        """P, the number of records with label 1."""
        return int(np.count_nonzero(self.labels))

    @cached_property
    def client_of_record(self) -> NDArray[np.int64]:
        """The index of the client that holds each record, shape (M,)."""
        return np.repeat(np.arange(self.count, dtype=np.int64), self.sizes)

    @cached_property
    def ascending(self) -> NDArray[np.int64]:
        """Indices of the records in ascending order of score within each client, shape (M,)."""
        if self.count == self.records:
            return np.arange(self.records, dtype=np.int64)
        if self.count == 1:
            return np.argsort(self.scores, kind="stable")
        return np.lexsort((self.scores, self.client_of_record))

    def ragged(self, values: NDArray[Scalar]) -> Ragged[Scalar]:
        """Values of shape (..., M), cut like these clients' records."""
        return Ragged(values, self.offsets)

    def part(self, start: int, stop: int) -> Clients:
        """The batch of the clients ``start`` to ``stop - 1``."""
        low, high = int(self.offsets[start]), int(self.offsets[stop])
        return Clients(
            self.scores[low:high],
            self.labels[low:high],
            self.offsets[start : stop + 1] - low,
            self.names[start:stop],
            self.simulated,
            None if self.second is None else self.second[low:high],
            self.unit,
            None if self.persons is None else self.persons[low:high],
            _checked=True,
        )

    def counted(self, per_person: int, seed: bytes) -> tuple[Clients, NDArray[np.bool_]]:
        """The records that count where a person is the unit of privacy, and which those are.

        Parameters
        ----------
        per_person : the most records of a person that count at a client.
        seed : 32 secret random bytes, which draw them.

        Raises
        ------
        DataError : where nothing says whose records they are.
        """
        if self.persons is None:
            raise DataError("per_person needs persons: nothing says whose records these are")
        inside = counted(self.persons, self.offsets, per_person, seed)
        sizes = np.add.reduceat(inside, self.offsets[:-1], dtype=np.int64)
        chosen = Clients(
            self.scores[inside],
            self.labels[inside],
            np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            self.names,
            self.simulated,
            None if self.second is None else self.second[inside],
            self.unit,
            _checked=True,
        )
        return chosen, inside

    def name(self, index: int) -> str:
        """What to call a client in a message."""
        return self.names[index] if self.names else f"client {index}"

    def location(self, record: int) -> str:
        """Where a record stands, in a message: its client, and its row counted from 1."""
        client = int(np.searchsorted(self.offsets, record, side="right")) - 1
        return f"{self.name(client)}, row {record - int(self.offsets[client]) + 1}"


def refuse_weights(weights: object) -> None:
    """Refuse weights on records.

    Raises
    ------
    DataError : for anything but None.
    """
    if weights is not None:
        raise DataError(WEIGHTED)


def _all_persons(parts: Sequence[Clients]) -> NDArray[np.bytes_] | None:
    """The persons of all batches, which all have them, or none has."""
    known = [part.persons for part in parts if part.persons is not None]
    if known and len(known) < len(parts):
        raise DataError(f"{len(known)} of {len(parts)} batches have persons: all must, or none")
    return np.concatenate(known) if known else None


def _common_unit(parts: Sequence[Clients]) -> str | None:
    """The unit of all batches; a batch of unknown unit fits no other."""
    units = sorted({part.unit or "no named unit" for part in parts})
    if len(units) > 1:
        raise DataError(f"batches of one unit can be put together, got {' and '.join(units)}")
    return parts[0].unit


def _validate(clients: Clients) -> None:
    offsets, records = clients.offsets, clients.scores.size
    _check_sizes(records, clients.labels, clients.second)
    _check_person_size(records, clients.persons)
    if offsets.size < 2:
        raise DataError("at least one client is needed, got none")
    if offsets[0] != 0 or offsets[-1] != records:
        raise DataError(f"offsets must run from 0 to {records}, got {offsets[0]} to {offsets[-1]}")
    empty = np.flatnonzero(np.diff(offsets) <= 0)
    if empty.size:
        raise DataError(f"{clients.name(int(empty[0]))} has no records")
    if clients.names and len(clients.names) != clients.count:
        raise DataError(f"{clients.count} clients but {len(clients.names)} names")
    _refuse_duplicates(clients.names)
    _check_finite(clients, clients.scores, SCORES)
    _check_range(clients)
    if clients.second is not None:
        _check_finite(clients, clients.second, SECOND)
    wrong = np.flatnonzero((clients.labels != 0) & (clients.labels != 1))
    if wrong.size:
        location = clients.location(int(wrong[0]))
        raise DataError(f"labels must be 0 or 1, got {clients.labels[wrong[0]]} in {location}")


def _check_finite(clients: Clients, values: NDArray[np.float64], called: str) -> None:
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        location = clients.location(int(wrong[0]))
        remedy = f"; {ENDS_OF_LOG_ODDS}" if clients.unit == LOG_ODDS and called == SCORES else ""
        raise DataError(f"{called} must be finite, got {values[wrong[0]]} in {location}{remedy}")


def _check_range(clients: Clients) -> None:
    """Refuse scores that cannot be of the unit that the clients name."""
    if clients.unit is None:
        return
    try:
        low, high = RANGES[check_unit(clients.unit)]
    except ValueError as error:
        raise DataError(str(error)) from None
    wrong = np.flatnonzero(outside(clients.scores, clients.unit))
    if wrong.size:
        raise DataError(
            f"scores in {clients.unit} must be from {low:g} to {high:g}, "
            f"got {clients.scores[wrong[0]]} in {clients.location(int(wrong[0]))}"
        )


def _check_sizes(
    records: int, labels: NDArray[np.int8], second: NDArray[np.float64] | None
) -> None:
    if labels.size != records:
        raise DataError(f"{records} scores but {labels.size} labels")
    _check_second_size(records, second)


def _check_second_size(records: int, second: NDArray[np.float64] | None) -> None:
    if second is not None and second.size != records:
        raise DataError(f"{records} scores but {second.size} second values")


def _check_person_size(records: int, persons: NDArray[np.bytes_] | None) -> None:
    if persons is not None and persons.size != records:
        raise DataError(f"{records} scores but {persons.size} persons")


def _refuse_duplicates(names: tuple[str, ...]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(f"client names must be unique, got {name!r} twice")
        seen.add(name)
