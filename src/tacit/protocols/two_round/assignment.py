"""Which records report in which of two rounds, as the server knows it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.data.batches.ragged import Ragged
from tacit.data.errors import DataError
from tacit.protocol.conversation import Field, Reply
from tacit.protocol.devices import counts_in
from tacit.protocols.shared.reports.turns import Bits, ragged_of


class RoundAssignment(ABC):
    """The two rounds' records, and the counts of what they report."""

    @property
    @abstractmethod
    def records(self) -> int:
        """The number of records."""

    @property
    @abstractmethod
    def positive_fraction(self) -> float:
        """The fraction of the positives, where labels are public; else 0."""

    @property
    @abstractmethod
    def sizes(self) -> Integers:
        """The numbers of records, and of those that report in the second round, shape (2, C)."""

    @property
    @abstractmethod
    def turns(self) -> Mapping[str, Field]:
        """What each client receives: its records' turns, where the server has them."""

    @abstractmethod
    def counted(self, reply: Reply, first: bool, outputs: int) -> Integers:
        """How often each report came from each class, shape (R, C, outputs), R at least 1.

        Parameters
        ----------
        reply : of a round.
        first : whether it is the first.
        outputs : how many reports there are at most.

        Raises
        ------
        ValueError : for a number of reports, or a report, that cannot have come.
        """


@dataclass(frozen=True, eq=False)
class DrawnRounds(RoundAssignment):
    """Rounds by the turn of every record.

    Parameters
    ----------
    drawn : every record's turn.
    classes : the class by which reports are counted: a record's label where labels are public,
        else 0; shape (M,).
    kinds : how many such classes there are.
    first : records whose turn is below this report in the first round.
    """

    drawn: Ragged[np.uint8]
    classes: NDArray[np.int8]
    kinds: int
    first: int

    @property
    def records(self) -> int:
        """The number of records."""
        return self.classes.size

    @property
    def early(self) -> Bits:
        """Which records report in the first round, shape (M,)."""
        return np.asarray(self.drawn.values < self.first)

    @property
    def positive_fraction(self) -> float:
        """The fraction of the positives, where labels are public; else 0."""
        return float(self.classes.mean())

    @property
    def sizes(self) -> Integers:
        """The numbers of records, and of those that report in the second round, shape (2, C)."""
        kinds = [self.classes, self.classes[~self.early]]
        return np.stack([np.bincount(classes, minlength=self.kinds) for classes in kinds])

    @property
    def turns(self) -> Mapping[str, Field]:
        """Every record's turn."""
        return {"turns": self.drawn}

    def counted(self, reply: Reply, first: bool, outputs: int) -> Integers:
        """How often each report came from each class, shape (R, C, outputs), R at least 1."""
        values = ragged_of(reply["reports"]).values
        reporting = self.early if first else ~self.early
        several = np.atleast_2d(values).astype(np.int64)
        if several.shape[-1] != np.count_nonzero(reporting):
            raise ValueError(
                f"{np.count_nonzero(reporting)} records report, got {several.shape[-1]} reports"
            )
        if several.size and several.max() >= outputs:
            raise ValueError(f"reports must be below {outputs}, got {several.max()}")
        replicate = np.arange(several.shape[0])[:, np.newaxis]
        cells = (replicate * self.kinds + self.classes[reporting]) * outputs + several
        shape = (several.shape[0], self.kinds, outputs)
        return np.bincount(cells.ravel(), minlength=int(np.prod(shape))).reshape(shape)


@dataclass(frozen=True, eq=False)
class CountedRounds(RoundAssignment):
    """Rounds of which only the numbers of records are known, with private labels.

    Parameters
    ----------
    by_round : the records of either round, shape (2,).
    """

    by_round: Integers

    @property
    def records(self) -> int:
        """The number of records."""
        return int(self.by_round.sum())

    @property
    def positive_fraction(self) -> float:
        """Not known."""
        return 0.0

    @property
    def sizes(self) -> Integers:
        """The numbers of records, and of those that report in the second round, shape (2, 1)."""
        return np.array([[self.records], [self.by_round[1]]])

    @property
    def turns(self) -> Mapping[str, Field]:
        """Nothing: each record keeps its turn."""
        return {}

    def counted(self, reply: Reply, first: bool, outputs: int) -> Integers:
        """How often each report came, shape (1, 1, outputs)."""
        counts, records = counts_in(reply), int(self.by_round[0 if first else 1])
        if counts is None or counts.size != outputs:
            raise ValueError(f"the reply must hold counts of {outputs} reports")
        if counts.sum() != records:
            raise ValueError(f"{records} records report, got {counts.sum()} reports")
        return counts[np.newaxis, np.newaxis]


def assigned_rounds(reply: Reply, first: int, private_labels: bool) -> RoundAssignment:
    """The rounds of the records, from the reply about their turns.

    Parameters
    ----------
    reply : turns, with labels where these are public; or counts of both rounds.
    first : records whose turn is below this report in the first round.
    private_labels : whether labels are private.

    Raises
    ------
    DataError : for public labels of one class.
    """
    counts = counts_in(reply)
    if counts is not None:
        return CountedRounds(counts)
    turns = ragged_of(reply["turns"])
    records = turns.values.size
    if private_labels:
        return DrawnRounds(turns, np.zeros(records, dtype=np.int8), 1, first)
    labels = ragged_of(reply["labels"]).values
    positives = int(np.count_nonzero(labels))
    if positives in (0, records):
        raise DataError(
            "the AUC is undefined without both classes, "
            f"got {positives} positive and {records - positives} negative records"
        )
    return DrawnRounds(turns, labels, 2, first)
