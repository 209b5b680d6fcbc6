"""The work of a party on its records in a computation between clients, and its refusals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.privacy.mechanisms.choices import UniformIntegers
from tacit.privacy.sampling.noise import NoiseSource, NoNoise
from tacit.protocol.mpc import Function, SharedRun, Words
from tacit.protocols.paired.kernels import paired_values
from tacit.protocols.paired.noise import RESPONSE, PairNoise
from tacit.protocols.paired.shared_kernels import (
    COIN_MODULUS,
    kernel_codes,
    noisy_kernel,
    responding_kernel,
)

COIN_SLACK = 1.0 + 2.0**-40
"""Factor on a coin's probability: it is rounded up, towards one half, which costs less epsilon."""


@dataclass(frozen=True)
class Terms:
    """The agreed settings under which a party admits its records to pairs.

    Parameters
    ----------
    kernel : the kernel that is computed: a name in ``shared_kernels.COLUMNS``.
    pair_noise : the noise of a pair.
    matchings : the largest number of pairs of a record.
    source : where the client's noise comes from. ``NoNoise()`` checks the arithmetic and is never
        for a release.
    """

    kernel: str
    pair_noise: PairNoise
    matchings: int
    source: NoiseSource

    @property
    def threshold(self) -> int:
        """A joint coin flips a value when it falls below this, of ``2**30``."""
        if isinstance(self.source, NoNoise):
            return 0
        threshold = math.ceil(self.pair_noise.flip * COIN_MODULUS * COIN_SLACK)
        return min(threshold, COIN_MODULUS // 2)


class PairWork:
    """A party's records in pairs: it admits no record to more pairs than agreed.

    Parameters
    ----------
    terms : what was agreed.
    rows : this party's records, shape (2, n), as ``paired_values`` takes them.
    """

    def __init__(self, terms: Terms, rows: NDArray[Any]) -> None:
        if rows.ndim != 2 or rows.shape[0] != 2:
            raise ValueError(f"records have two rows, got an array of shape {rows.shape}")
        self._terms = terms
        self._rows = np.ascontiguousarray(rows, dtype=np.float64)
        self._pairs_by_record = np.zeros(rows.shape[1], dtype=np.int64)

    def shares(
        self,
        run: SharedRun,
        indices: NDArray[Any],
        leading: NDArray[Any],
        chunk: int,
    ) -> Iterator[Words]:
        """This party's shares of noisy values of pairs with another party's records, in chunks.

        Parameters
        ----------
        run : the computation of the two parties.
        indices : which of this party's records is in each pair, shape (m,).
        leading : whether it is the first of the pair, shape (m,).
        chunk : how many pairs are computed at once.
        """
        if indices.shape != leading.shape or chunk < 1:
            raise ValueError(f"{indices.size} indices, {leading.size} orders, chunks of {chunk}")
        self._admit(indices)
        agreed = self._terms
        function = self._function(run.arrays)
        name = (agreed.kernel, agreed.pair_noise.kind, agreed.threshold)
        for start in range(0, indices.size, chunk):
            part = slice(start, start + chunk)
            records = self._rows[:, indices[part]]
            codes = kernel_codes(agreed.kernel, records, leading[part])
            inputs = np.vstack([codes, self._noise(records.shape[1])])
            yield run.shares(name, function, inputs, [inputs.shape] * 2)

    def alone(self, first: NDArray[Any], second: NDArray[Any]) -> Integers:
        """Noisy values of pairs of this party's records, shape (m,)."""
        if first.shape != second.shape:
            raise ValueError(f"{first.size} first records and {second.size} second ones")
        self._admit(np.concatenate([first, second]))
        agreed = self._terms
        values = paired_values(agreed.kernel, self._rows[:, first], self._rows[:, second])
        inside = np.zeros((1, values.size), dtype=np.bool_)
        noisy = agreed.pair_noise.applied(values[np.newaxis], inside, agreed.source)
        return np.asarray(noisy[0], dtype=np.int64)

    def _admit(self, indices: NDArray[Any]) -> None:
        """Count the pairs of every record, and refuse more than were agreed."""
        size = self._pairs_by_record.size
        if indices.dtype != np.int64 or np.any((indices < 0) | (indices >= size)):
            raise ValueError(f"indices of records must be from 0 to {size - 1}")
        pairs_by_record = self._pairs_by_record + np.bincount(indices, minlength=size)
        if pairs_by_record.max(initial=0) > self._terms.matchings:
            raise ValueError(
                f"a record may be in {self._terms.matchings} pairs, got {pairs_by_record.max()}"
            )
        self._pairs_by_record = pairs_by_record

    def _function(self, arrays: Any) -> Function:
        agreed = self._terms
        if agreed.pair_noise.kind == RESPONSE:
            return responding_kernel(agreed.kernel, agreed.threshold, arrays)
        return noisy_kernel(agreed.kernel, arrays)

    def _noise(self, pairs: int) -> Integers:
        """This party's random row: half of a coin, or a draw or half a draw of noise."""
        agreed, source = self._terms, self._terms.source
        if agreed.pair_noise.kind == RESPONSE:
            return source.draw(UniformIntegers(COIN_MODULUS), (pairs,))
        return source.draw(agreed.pair_noise.part, (pairs,))
