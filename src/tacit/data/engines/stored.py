"""Clients whose records stay in files or a database, or of which only counts are known.

They answer counts by one statement, and sums over records by one pass over them in batches. Steps
that need all records at once read them into memory, at their first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial, reduce
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.crypto.multisets import digests_of
from tacit.data.categories import Categories, Groups
from tacit.data.checking import check_unit_of, columns_of, record_sums
from tacit.data.clients import Clients
from tacit.data.engines.pieces import ClassFunctions, ScorePieces, least_scores
from tacit.data.engines.ranking import Ascending, listed, ranked
from tacit.data.errors import DataError
from tacit.data.ragged import Ranked, Ranking, by_place
from tacit.data.units import LinearMap
from tacit.metrics.cells.score_scale import ScoreScale

Map = Callable[[Floats], Floats]

Numbers = Callable[[Clients], Integers]
"""Whole numbers of clients, which add up over batches of all of them: int64, of one shape."""


class Stored(Protocol):
    """Where records are stored, or counted.

    Attributes
    ----------
    names : one name a client, in the order of their answers; empty for ones only numbered.
    groups : the names of groups or classes; empty where records have none.
    second : the same records by their second values; None where they have none.
    left_out : as ``Clients`` has it.
    by_class : whether the groups are classes, of each of which records have a score.
    knows_persons : whether it is known whose records they are.
    sizes, positives : records, and positives among them, of every client, shape (K,).
    ends : the least and the largest score there is, or can be.
    """

    names: tuple[str, ...]
    groups: tuple[str, ...]
    sizes: Integers
    positives: Integers
    ends: tuple[float, float]
    knows_persons: bool
    by_class: bool = False

    SUMMARY: ClassVar[tuple[str, ...]] = (
        *("names", "groups", "sizes", "positives", "ends", "knows_persons", "by_class", "left_out"),
    )

    @property
    def summary(self) -> dict[str, Any]:
        """What is known of the records without another pass: the attributes in ``SUMMARY``."""
        return {name: getattr(self, name) for name in self.SUMMARY}

    @property
    def left_out(self) -> Integers | None:
        """The records that were left out."""
        return None

    @property
    def second(self) -> Stored | None:
        """The same records by their second values."""
        return None

    def of_group(self, group: int, all_clients: bool = False) -> Stored:
        """A group's records, at the clients that hold some of them, or at all clients.

        Raises
        ------
        DataError : where groups of the records cannot be selected.
        """
        raise DataError("public groups of these records are not read where the records are")

    def counts(self, edges: Floats, by_group: bool = False) -> Integers | None:
        """Positives and negatives by cell and client, shape (2, B, K).

        None where a pass over the records is faster than a statement.

        Parameters
        ----------
        edges : the inner edges of B cells, ascending, shape (B-1,).
        by_group : whether they are counted for each group, shape (G, 2, B, K).
        """
        return None

    def sums(self, pieces: ScorePieces, maps: Sequence[LinearMap] = ()) -> Integers | None:
        """The sum of records' whole numbers of every client, shape (K,); None as for ``counts``.

        Parameters
        ----------
        pieces : the whole numbers, of images.
        maps : through which scores go one after another.
        """
        return None

    def batches(self) -> Iterator[Clients]:
        """All records, in batches of all K clients, some of which are without records in them."""

    def added(self, numbers: Numbers) -> Integers:
        """The sum of the numbers of all batches; while one is read, that before is counted."""
        with ThreadPoolExecutor(1) as other:
            sent = (other.submit(numbers, batch) for batch in self.batches())
            total: Integers = np.zeros((), dtype=np.int64)
            before = next(sent)
            for each in sent:
                total, before = total + before.result(), each
            return np.asarray(total + before.result())

    def ascending(self) -> Iterator[Ascending]:
        """All records in ascending order of their scores, with ``2 * client + label``."""

    def counted(self, per_person: int, seed: bytes) -> Stored:
        """The records that count where a person is the unit of privacy, as ``Clients.counted``."""

    def pooled(self) -> Stored:
        """All records as those of one client."""

    def marks(self, key: bytes) -> tuple[bytes, bytes]:
        """As ``Clients.marks``, of which both are whatever the order.

        Raises
        ------
        DataError : where the records changed since they were summarised.
        """
        return digests_of(key, self.added(partial(record_sums, key)))


class StoredClients(Clients):
    """Clients whose records stay where they are stored.

    Parameters
    ----------
    stored : where that is.
    unit : what the scores are.
    maps : rising maps, through which scores go one after another.
    rising : whether the maps do not fall, to the last bit, so that a cell of images is a cell of
        scores.
    before : the same clients without maps, which keep what they read for all their images; None
        for these clients.
    by_value : whether records that are read into memory are in the order of their values, as an
        engine may return them in another order each time it is asked.

    Raises
    ------
    DataError : for a score that cannot be of the unit.
    """

    stored: Stored

    def __init__(
        self,
        stored: Stored,
        unit: str | None = None,
        maps: tuple[Map, ...] = (),
        rising: bool = True,
        before: StoredClients | None = None,
        by_value: bool = False,
    ) -> None:
        offsets = np.concatenate(([0], np.cumsum(stored.sizes))).astype(np.int64)
        known = {"stored": stored, "offsets": offsets, "names": stored.names, "unit": unit}
        # what clients may know besides has its default
        vars(self).update(known, _maps=maps, _rising=rising, _before=before, _by_value=by_value)
        check_unit_of(unit, self.outlier)

    @property
    def by_values(self) -> StoredClients:
        """The same clients, with records in the order of their values where they are in memory."""
        return StoredClients(self.stored, self.unit, by_value=True)

    @property
    def at_hand(self) -> bool:
        """False: records are read when a step needs them."""
        return False

    @property
    def positives(self) -> int:
        """P, the number of records with label 1."""
        return int(self.stored.positives.sum())

    @property
    def scores(self) -> NDArray[np.float64]:
        """All scores, read into memory, shape (M,)."""
        return self._loaded.scores

    @property
    def labels(self) -> NDArray[np.int8]:
        """All labels, read into memory, shape (M,)."""
        return self._loaded.labels

    @property
    def left_out(self) -> Integers | None:
        """The records that were left out, as ``Clients`` has them."""
        return self.stored.left_out

    @property
    def scored_classes(self) -> tuple[str, ...]:
        """The names of the classes where records have a score of each."""
        return self.stored.groups if self.stored.by_class else ()

    @property
    def second(self) -> NDArray[np.float64] | None:
        """All second values, read into memory, shape (M,); None where records have none."""
        return None if self.stored.second is None else self._loaded.second

    @property
    def second_as_scores(self) -> StoredClients | None:
        """The clients with their second values in place of scores; None where they have none."""
        second = self.stored.second
        return None if second is None else StoredClients(second, self.unit, by_value=self._by_value)

    def of_group(self, group: int, all_clients: bool = False) -> StoredClients:
        """A group's records, at the clients that hold some of them, or at all clients."""
        return self._of(self.stored.of_group(group, all_clients))

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest score there is, or can be."""
        low, high = self._mapped(np.array(self.stored.ends)).tolist()
        return low, high

    @property
    def category_names(self) -> tuple[str, ...]:
        """The names of private groups; empty where records have none."""
        return self.stored.groups

    def counts_in(self, edges: Floats, by_group: bool = False) -> Integers:
        """Positives and negatives by cell and client, shape (2, B, K), or (G, 2, B, K) by group."""
        counted = None
        if self._rising:
            known = least_scores(self._mapped, edges, *self.stored.ends) if self._maps else edges
            counted = self.stored.counts(known, by_group)
        if counted is not None:
            return counted
        # workers of a cluster get no more than the function needs
        return self.added(lambda batch: batch.counts_in(edges, by_group))

    def summed(self, functions: ClassFunctions) -> Integers | None:
        """Sums over records' positions by a statement, where linear maps and a scale give these."""
        if not self._maps or not isinstance(self._maps[-1], ScoreScale):
            return None
        before = [each for each in self._maps[:-1] if isinstance(each, LinearMap)]
        pieces = functions.on(self._maps[-1])
        if pieces is None or len(before) < len(self._maps) - 1:
            return None
        return self.stored.sums(pieces, before)

    def batches(self) -> Iterator[Clients]:
        """The records in batches that fit into memory, each of all clients."""
        for batch in self.stored.batches():
            yield _images(self._maps, self.unit, batch)

    def added(self, numbers: Numbers) -> Integers:
        """The sum of the numbers of all batches, which anyone who has the records may compute."""
        maps, unit = self._maps, self.unit
        return self.stored.added(lambda batch: numbers(_images(maps, unit, batch)))

    @property
    def ranking(self) -> Ranking:
        """Passes in order of the scores, by an engine's sort."""
        return Ranking(lambda: self._ranked, lambda: listed(self._ascending(), self.count))

    @cached_property
    def _ranked(self) -> Ranked:
        """Totals of all records' ranks, by one pass in ascending order."""
        return ranked(self._ascending(), self.count, self.sizes)

    def _ascending(self) -> Iterator[Ascending]:
        """All records in ascending order of their images.

        Where the engine stores the records it sorts them; images that rounding may put out of order
        are sorted by DuckDB.
        """
        if self._rising:
            return ((self._mapped(scores), codes) for scores, codes in self.stored.ascending())
        from tacit.data.engines.connections import sorted_by_score  # noqa: PLC0415 -- slow to import

        images = (
            (batch.scores, 2 * batch.client_of_record + batch.labels) for batch in self.batches()
        )
        return sorted_by_score(images)

    @property
    def knows_persons(self) -> bool:
        """Whether it is known whose records they are."""
        return self.stored.knows_persons

    def pooled(self) -> Clients:
        """All records as those of one client."""
        return self._of(self.stored.pooled())

    def counted(self, per_person: int, seed: bytes) -> tuple[Clients, None]:
        """The records that count where a person is the unit of privacy, and None.

        Parameters
        ----------
        per_person, seed : as ``Clients.counted`` takes them.
        """
        return self._of(self.stored.counted(per_person, seed)), None

    def rescored(self, rising: Map, unit: str | None = None, exact: bool = True) -> Clients:
        """The clients with their scores' images under a rising map for scores."""
        return self._derived(unit, (*self._maps, rising), self._rising and exact)

    def in_named_unit(self, unit: str | None) -> Clients:
        """The same scores, said to be in a unit."""
        return self._derived(unit, self._maps, self._rising)

    def outlier(self, low: float, high: float) -> tuple[float, str] | None:
        """A score outside [low, high], and where it is; None where there is none."""
        least, largest = self.ends
        if low <= least and largest <= high:
            return None
        return (least if least < low else largest), "the records"

    def part(self, start: int, stop: int) -> Clients:
        """The batch of the clients ``start`` to ``stop - 1``, read into memory."""
        return self._loaded.part(start, stop)

    def digest(self, key: bytes, with_scores: bool = True) -> bytes:
        """A keyed digest of the records as they are stored, 32 bytes.

        Whatever is kept by the place of a record is kept next to it. Where places follow from the
        records' values, so that equal records have equal places, it is a digest whatever the order.

        Parameters
        ----------
        key : as ``Clients.digest`` takes it.
        with_scores : False for a digest of labels alone, for which records are read into memory.
        """
        if with_scores and self._by_value:
            return self.marks(key)[1]
        return self._loaded.digest(key, with_scores)

    def marks(self, key: bytes) -> tuple[bytes, bytes]:
        """As ``Clients.marks``, whatever the order."""
        return self.stored.marks(key)

    _maps: tuple[Map, ...]
    _rising: bool
    _before: StoredClients | None
    _by_value: bool

    def _of(self, stored: Stored) -> StoredClients:
        """Other records with the same maps."""
        whole = StoredClients(stored, by_value=self._by_value)
        return StoredClients(stored, self.unit, self._maps, self._rising, whole, self._by_value)

    def _derived(self, unit: str | None, maps: tuple[Map, ...], rising: bool) -> StoredClients:
        return StoredClients(self.stored, unit, maps, rising, self._before or self, self._by_value)

    def _mapped(self, scores: Floats) -> Floats:
        return image_of(self._maps, scores)

    @cached_property
    def _loaded(self) -> Clients:
        """All records in memory, by client, in the order in which they are stored, or of values."""
        if self._before is not None:
            return self._before._loaded.rescored(self._mapped, self.unit)
        filled, columns = self.offsets[:-1].copy(), dict[str, Any]()
        for batch in self.batches():
            places = np.repeat(filled - batch.offsets[:-1], batch.sizes)
            places += np.arange(batch.records)
            filled += batch.sizes
            read = columns_of(batch)
            known = read.pop("categories")
            if known is not None:
                read |= {"of_record": known.of_record, "by_class": known.scores}
            for name, values in read.items():
                if values is not None:
                    shape = (self.records, *values.shape[1:])
                    columns.setdefault(name, np.empty(shape, values.dtype))[places] = values
        if self._by_value:
            more = [
                columns[name] for name in ("by_class", "second", "of_record") if name in columns
            ]
            keys = [key for values in more for key in np.atleast_2d(values.T)]
            last = columns["labels"], columns["scores"], self.client_of_record
            order = np.lexsort((*keys, *last))
            columns = {name: values[order] for name, values in columns.items()}
        categories = columns.pop("of_record", None), columns.pop("by_class", None)
        made = Clients(
            offsets=self.offsets,
            names=self.names,
            unit=self.unit,
            left_out=self.left_out,
            _checked=True,
            **columns,
        )
        if categories[0] is None:
            return made
        return made.with_categories(Categories(self.category_names, *categories))


def image_of(maps: Sequence[Map], scores: Floats) -> Floats:
    """The scores' images under maps one after another."""
    return reduce(lambda image, each: each(image), maps, scores)


def _images(maps: Sequence[Map], unit: str | None, batch: Clients) -> Clients:
    """A batch with its scores' images."""
    return batch.rescored(partial(image_of, maps), unit) if maps else batch


class StoredGroups(Groups):
    """The public groups of clients whose records stay where they are stored.

    Parameters
    ----------
    clients : whose records have groups.
    agreed : whether the groups' names were agreed on beforehand.

    Raises
    ------
    DataError : for too many groups.
    """

    def __init__(self, clients: StoredClients, agreed: bool) -> None:
        vars(self).update(names=clients.category_names, agreed=agreed, _clients=clients)
        self.__post_init__()

    _clients: StoredClients

    @property
    def records(self) -> int:
        """M, the number of records."""
        return self._clients.records

    def taken(self, clients: Any, inside: NDArray[np.bool_] | None) -> StoredGroups:
        """The groups of the records that count."""
        return StoredGroups(clients, self.agreed)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The exact number of records of each group, shape (G,)."""
        return self._clients.counts_in(np.zeros(0), by_group=True).sum(axis=(1, 2, 3))

    def members(self, clients: Any, group: int, all_clients: bool = False) -> Any:
        """A group's records, as ``Groups`` has them."""
        return clients.of_group(group, all_clients)


def batch_of(columns: dict[str, Any], whose: Integers, clients: int) -> Clients:
    """A batch of validated records of some of the clients; the others have none in it.

    Parameters
    ----------
    columns : scores, labels and what else ``Clients`` has of each record, shape (m,).
    whose : the index of each record's client, shape (m,).
    clients : K.
    """
    order, offsets = by_place(whose, clients)
    if clients > 1:
        columns = {name: values[order] for name, values in columns.items()}
    return Clients(offsets=offsets, _checked=True, **columns)
