"""What is known of each record, in parallel arrays."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.data.arrays import SECOND, as_labels, as_scores
from tacit.data.categories import Categories
from tacit.data.checking import (
    check_category_size,
    check_person_size,
    check_second_size,
    check_sizes,
)
from tacit.data.persons import as_persons


@dataclass(frozen=True, eq=False)
class RecordColumns:
    """The columns of records, named as the fields of ``Clients``; of one length where checked.

    Parameters
    ----------
    scores, labels : shape (M,).
    second, persons, categories : shape (M,), or None.
    """

    scores: NDArray[np.float64]
    labels: NDArray[np.int8]
    second: NDArray[np.float64] | None = None
    persons: NDArray[np.bytes_] | None = None
    categories: Categories | None = None

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        labels: ArrayLike,
        second: ArrayLike | None,
        persons: ArrayLike | None,
        categories: Categories | None = None,
    ) -> RecordColumns:
        """The columns of values in any form.

        Raises
        ------
        DataError : for values that cannot be of a column.
        """
        return cls(
            as_scores(scores),
            as_labels(labels),
            None if second is None else as_scores(second, SECOND),
            None if persons is None else as_persons(persons),
            categories,
        )

    def check_further(self) -> None:
        """Refuse further columns of another length than the scores."""
        check_second_size(self.scores.size, self.second)
        check_person_size(self.scores.size, self.persons)
        check_category_size(self.scores.size, self.categories)

    def check(self) -> None:
        """Refuse columns of another length than the scores."""
        check_sizes(self.scores.size, self.labels, self.second)
        self.check_further()

    def taken(self, which: Any) -> RecordColumns:
        """The columns of some records, or of all in another order."""
        return RecordColumns(
            self.scores[which],
            self.labels[which],
            None if self.second is None else self.second[which],
            None if self.persons is None else self.persons[which],
            None if self.categories is None else self.categories.taken(which),
        )

    @property
    def by_name(self) -> dict[str, Any]:
        """The columns by their names."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
