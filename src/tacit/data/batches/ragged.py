"""Values of several clients in one flat array, cut by offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)


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

    @property
    def itemsize(self) -> int:
        """The bytes of a value."""
        return self.values.itemsize

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
