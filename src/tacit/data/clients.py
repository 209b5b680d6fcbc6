"""A batch of clients: scores and labels in one flat array each, cut by offsets.

All scores of a batch, ascending within each client.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Floats
from tacit.crypto.multisets import digests_of
from tacit.data import checking
from tacit.data.categories import Categories
from tacit.data.errors import DataError
from tacit.data.form import PLAIN, FileForm
from tacit.data.persons import as_persons, counted
from tacit.data.ragged import Ragged, Scalar, StoredScores, ascending_order, by_client, dealt
from tacit.metrics.cells.score_scale import cells_of

if TYPE_CHECKING:
    from tacit.data.engines.pieces import ClassFunctions
    from tacit.data.ragged import Ranking


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
    categories : the class of each record and its score of every class, or its private group; None
        where records have two classes and no such group.
    left_out : int64, shape (2, K). How many records of each client had no score (or second value),
        and how many had one and no label; they are not among the records. None if no client left
        any out.

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
    categories: Categories | None = field(default=None, repr=False)
    left_out: NDArray[np.int64] | None = field(default=None, repr=False)
    _checked: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if not self._checked:
            checking.validate_clients(self)

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
        if sample_weight is not None:
            raise DataError(checking.WEIGHTED)
        columns = _as_columns(scores, labels, second, persons)
        shapes = columns["scores"].shape, columns["labels"].shape
        if client_ids is None:
            offsets = np.array([0, columns["scores"].size], dtype=np.int64)
            return cls(offsets=offsets, unit=unit, **columns)
        ids = checking.as_keys(client_ids, "client ids")
        if {*shapes, ids.shape} != {ids.shape}:
            raise DataError(
                "scores, labels and client ids must have one length, "
                f"got {shapes[0]}, {shapes[1]} and {ids.shape}"
            )
        checking.check_sizes(columns)
        order, offsets, names = by_client(ids)
        return cls(offsets=offsets, names=names, unit=unit, **_taken(columns, order))

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
        flat = checking.as_scores(values)
        return cls.from_arrays(flat, np.zeros(flat.size, dtype=np.int8), client_ids, second)

    @classmethod
    def from_classes(
        cls,
        scores: ArrayLike,
        labels: ArrayLike,
        classes: Sequence[str],
        client_ids: ArrayLike | None = None,
    ) -> Clients:
        """Clients of a classifier with several classes; scores and labels of two classes read 0.

        Parameters
        ----------
        scores : shape (M, C), numbers: a score of every class.
        labels : shape (M,), the classes' names, or their indices 0 to C - 1.
        classes : the agreed names of the classes, in the order of the columns.
        client_ids : as in ``from_arrays``.

        Examples
        --------
        >>> clients = Clients.from_classes([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]], ["a", "c"], "abc")
        >>> clients.records, clients.categories.of_record.tolist()
        (2, [0, 2])
        """
        made = Categories.of_values(tuple(classes), labels, scores)
        blank = np.zeros(made.of_record.size)
        return cls.from_arrays(blank, blank, client_ids).with_categories(made, client_ids)

    def with_categories(
        self, categories: Categories, client_ids: ArrayLike | None = None
    ) -> Clients:
        """The same records with their classes or private groups.

        Parameters
        ----------
        categories : in the order of the records.
        client_ids : shape (M,), where ``from_arrays`` was given them: it orders records by client.

        Raises
        ------
        DataError : for categories of another number of records.
        """
        if categories.of_record.size != self.records:
            raise DataError(f"{self.records} records but {categories.of_record.size} categories")
        if client_ids is not None:
            categories = categories[by_client(checking.as_keys(client_ids, "client ids"))[0]]
        return replace(self, categories=categories)

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
        missing: Literal["refuse", "drop"] = "refuse",
        *,
        form: FileForm = PLAIN,
        group: str | None = None,
        group_names: Sequence[str] = (),
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
        form : how values are written that are text, such as the words for labels.
        missing : what is done with records without a score or label, as ``tacit.read`` takes it.
        group, group_names : the column of private groups, and their agreed names.
        """
        # imports of Arrow are slow, and clients may be of arrays
        tables, reading = map(import_module, ("tacit.data.tables", "tacit.data.reading"))
        drop = reading.check_rule(missing)
        names = (label, client, second, group, person)
        named = reading.Columns((score,), *names, drop, form, unit, tuple(group_names))
        made: Clients = reading.clients_of_table(tables.table_of_frame(frame), named)
        return made

    @classmethod
    def from_counts(
        cls,
        edges: ArrayLike,
        counts: ArrayLike,
        names: Sequence[str] = (),
        unit: str | None = None,
        ends: tuple[float, float] = (0.0, 1.0),
    ) -> Clients:
        """Clients of which only counts in cells are known, for protocols that count once.

        Parameters
        ----------
        edges : the inner edges of B cells as scores, ascending, shape (B-1,); a record's cell is
            the number of edges that are at most its score.
        counts : positives and negatives by cell and client, whole numbers, shape (2, B, K).
        names : one name a client.
        unit : what the scores are.
        ends : the least and the largest score there can be.

        Raises
        ------
        DataError : for counts of another shape, below 0, or of a client without records; and in a
            run, where a protocol needs records, or cells with another edge.

        Examples
        --------
        >>> clients = Clients.from_counts([0.5], [[[1], [3]], [[4], [2]]])
        >>> clients.count, clients.records, clients.positives
        (1, 10, 4)
        """
        # stored clients are clients: a module that extends this one
        counts_file, stored = map(
            import_module, ("tacit.data.engines.counts_file", "tacit.data.engines.stored")
        )
        counted = counts_file.CountedRecords(
            checking.as_scores(edges), np.asarray(counts), tuple(names), ends
        )
        made: Clients = stored.StoredClients(counted, unit)
        return made

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
        categories: Categories | None = None,
    ) -> Clients:
        """Split one party's records into simulated clients of nearly equal size.

        ``by="uniform"`` deals records out at random (the papers' IID setting); ``by="score"`` gives
        records of similar score to the same client (their non-IID setting). ``second`` is a second
        value of each record, ``persons`` says whose it is; a person's records are dealt out too.
        ``categories`` are the records' classes or private groups.
        """
        columns = _as_columns(scores, labels, second, persons) | {"categories": categories}
        checking.check_sizes(columns)
        order, offsets = dealt(columns["scores"], clients, by, seed)
        return cls(offsets=offsets, simulated=True, **_taken(columns, order))

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
        sizes = np.concatenate([part.sizes for part in parts])
        return cls(
            np.concatenate([part.scores for part in parts]),
            np.concatenate([part.labels for part in parts]),
            np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            tuple(name for part in parts for name in part.names),
            any(part.simulated for part in parts),
            checking.all_or_none(checking.SECOND, [part.second for part in parts]),
            checking.common_unit(parts),
            checking.all_or_none("persons", [part.persons for part in parts]),
            checking.all_or_none(
                "categories", [part.categories for part in parts], Categories.concatenate
            ),
            checking.all_left_out(parts),
        )

    @property
    def count(self) -> int:
        """K, the number of clients."""
        return self.offsets.size - 1

    @property
    def records(self) -> int:
        """M, the number of records of all clients."""
        return int(self.offsets[-1])

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
        return ascending_order(self.scores, self.sizes)

    @property
    def at_hand(self) -> bool:
        """Whether the records are in memory, not in files or a database (``engines.stored``)."""
        return True

    @property
    def knows_persons(self) -> bool:
        """Whether it is known whose records they are."""
        return self.persons is not None

    def pooled(self) -> Clients:
        """All records as those of one client."""
        return replace(self, offsets=self.offsets[[0, -1]], names=(), left_out=None)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest score."""
        return float(self.scores.min()), float(self.scores.max())

    @property
    def second_as_scores(self) -> Clients | None:
        """The clients with their second values in place of scores; None where they have none."""
        return None if self.second is None else replace(self, scores=self.second, second=None)

    @property
    def scored_classes(self) -> tuple[str, ...]:
        """The names of the classes where records have a score of each."""
        known = self.categories
        return () if known is None or known.scores is None else known.names

    @property
    def category_names(self) -> tuple[str, ...]:
        """The names of classes or private groups; empty where records have none."""
        return () if self.categories is None else self.categories.names

    def counts_in(self, edges: NDArray[np.float64], by_group: bool = False) -> NDArray[np.int64]:
        """Positives and negatives by cell and client, shape (2, B, K).

        Parameters
        ----------
        edges : the inner edges of B cells, ascending, shape (B-1,); a record's cell is the number
            of edges that are at most its score.
        by_group : whether they are counted for each private group, shape (G, 2, B, K).
        """
        cells = cells_of(self.scores, edges)
        shape: tuple[int, ...] = (2, edges.size + 1, self.count)
        cells += np.multiply(self.labels == 0, shape[1], dtype=np.int64)
        if by_group:
            cells += 0 if self.categories is None else 2 * shape[1] * self.categories.of_record
            shape = (max(len(self.category_names), 1), *shape)
        index = cells * self.count + self.client_of_record
        return np.bincount(index, minlength=int(np.prod(shape))).reshape(shape).astype(np.int64)

    def summed(self, functions: ClassFunctions) -> NDArray[np.int64] | None:
        """Sums over records by a statement, shape (K,); None where records are read for it."""
        return None

    def ragged(self, values: NDArray[Scalar]) -> Ragged[Scalar]:
        """Values of shape (..., M), cut like these clients' records."""
        return Ragged(values, self.offsets)

    def name(self, index: int) -> str:
        """What to call a client in a message."""
        return self.names[index] if self.names else f"client {index}"

    def location(self, record: int) -> str:
        """Where a record stands, in a message: its client, and its row counted from 1."""
        client = int(np.searchsorted(self.offsets, record, side="right")) - 1
        return f"{self.name(client)}, row {record - int(self.offsets[client]) + 1}"

    @property
    def ranking(self) -> Ranking | None:
        """Passes over records that are not at hand, in order of their scores; None in memory."""
        return None

    def batches(self) -> Iterator[Clients]:
        """The records in batches that fit into memory, each of all clients; here there is one."""
        yield self

    def added(self, numbers: Callable[[Clients], NDArray[np.int64]]) -> NDArray[np.int64]:
        """The sum of whole numbers over batches, each of all clients; here there is one."""
        return numbers(self)

    def rescored(
        self,
        rising: Callable[[NDArray[np.float64]], NDArray[np.float64]],
        unit: str | None = None,
        exact: bool = True,
    ) -> Clients:
        """The clients with their scores' images under a rising map for scores, also of all classes.

        Parameters
        ----------
        rising : the map, of arrays of any length.
        unit : what the images are.
        exact : whether the map does not fall anywhere, not even by rounding.
        """
        mapped = None if self.categories is None else self.categories.rescored(rising)
        return replace(self, scores=rising(self.scores), unit=unit, categories=mapped)

    def in_named_unit(self, unit: str | None) -> Clients:
        """The same scores, said to be in a unit."""
        return replace(self, unit=unit)

    def outlier(self, low: float, high: float) -> tuple[float, str] | None:
        """The first score outside [low, high], and where it is; None where there is none.

        Records with a score of every class have those for scores.
        """
        scores = self.all_scores
        wrong = np.flatnonzero((scores < low) | (scores > high))
        if not wrong.size:
            return None
        record = int(wrong[0]) // (scores.size // self.records)
        return float(scores[wrong[0]]), self.location(record)

    @property
    def all_scores(self) -> NDArray[np.float64]:
        """The scores of all records, shape (M,); of all classes where there are some, (M C,)."""
        by_class = None if self.categories is None else self.categories.scores
        return self.scores if by_class is None else by_class.ravel()

    def part(self, start: int, stop: int) -> Clients:
        """The batch of the clients ``start`` to ``stop - 1``."""
        low, high = int(self.offsets[start]), int(self.offsets[stop])
        return replace(
            self.taken(slice(low, high), self.offsets[start : stop + 1] - low),
            names=self.names[start:stop],
            left_out=None if self.left_out is None else self.left_out[:, start:stop],
        )

    def taken(
        self, which: slice | NDArray[np.bool_ | np.int64], offsets: NDArray[np.int64]
    ) -> Clients:
        """Some of the records, or all in another order, cut by other offsets."""
        return replace(
            self, offsets=offsets, _checked=True, **_taken(checking.columns_of(self), which)
        )

    def digest(self, key: bytes, with_scores: bool = True) -> bytes:
        """A keyed digest of the records in their order: HMAC-SHA256, 32 bytes.

        Whatever is kept by the place of a record is kept next to it.

        Parameters
        ----------
        key : what no one else knows; empty where the digest stays next to what it says.
        with_scores : whether it covers scores and second values too; other records may then have
            the same digest where their labels are the same.

        Examples
        --------
        >>> one = Clients.from_arrays([0.2, 0.7], [1, 1])
        >>> other = Clients.from_arrays([0.7, 0.2], [1, 1])
        >>> one.digest(b"") == other.digest(b""), one.digest(b"", False) == other.digest(b"", False)
        (False, True)
        """
        made = hmac.new(key, digestmod="sha256")
        columns = [self.offsets, self.labels, self.persons]
        if self.categories is not None:
            columns.append(self.categories.of_record)
        if with_scores:
            columns += [self.scores, self.second]
            columns.append(None if self.categories is None else self.categories.scores)
        for column in columns:
            content = b"" if column is None else np.ascontiguousarray(column).tobytes()
            made.update(len(content).to_bytes(8, "little") + content)
        return made.digest()

    def marks(self, key: bytes) -> tuple[bytes, bytes]:
        """Keyed digests of what records say, whatever their order, and of all that a run goes by.

        The first is that of the same numbers under any name and at any client, in memory or not.
        The second has clients and persons, too, and places as ``digest`` has them.

        Parameters
        ----------
        key : secret, of at least 16 random bytes.
        """
        return digests_of(key, checking.record_sums(key, self))[0], self.digest(key)

    def counted(self, per_person: int, seed: bytes) -> tuple[Clients, NDArray[np.bool_] | None]:
        """The records that count where a person is the unit of privacy, and which those are.

        Which they are is None for records that are not in memory.

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
        inside = counted(self.persons, self.offsets, per_person, seed, self.names)
        sizes = np.add.reduceat(inside, self.offsets[:-1], dtype=np.int64)
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        return replace(self.taken(inside, offsets), persons=None), inside


def sorted_scores(clients: Clients) -> Ragged[np.float64]:
    """All scores, ascending within each client: in memory, or where they are stored.

    Examples
    --------
    >>> from tacit.data.clients import Clients
    >>> sorted_scores(Clients.from_arrays([0.7, 0.2], [1, 0])).values
    array([0.2, 0.7])
    """

    def load() -> Floats:
        return clients.scores[clients.ascending]

    if clients.ranking is None:
        return clients.ragged(load())
    return StoredScores(clients.offsets, clients.ranking.ranked, load)


def _as_columns(
    scores: ArrayLike,
    labels: ArrayLike,
    second: ArrayLike | None,
    persons: ArrayLike | None,
) -> dict[str, Any]:
    """The columns of records by their names, of values in any form."""
    return {
        "scores": checking.as_scores(scores),
        "labels": checking.as_labels(labels),
        "second": None if second is None else checking.as_scores(second, checking.SECOND),
        "persons": None if persons is None else as_persons(persons),
    }


def _taken(columns: dict[str, Any], which: Any) -> dict[str, Any]:
    """The columns of some records, or of all in another order."""
    return {name: None if each is None else each[which] for name, each in columns.items()}
