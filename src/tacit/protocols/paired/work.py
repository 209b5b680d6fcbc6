"""What a party does with its own records in a computation between clients, and what it refuses."""

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
"""A coin's probability is rounded up, towards one half, where a flipped bit says least."""


@dataclass(frozen=True)
class Terms:
    """What a party agreed to before it admits its records to pairs.

    Parameters
    ----------
    kernel : which values are computed: a name in ``shared_kernels.COLUMNS``.
    pair_noise : the noise of a pair.
    matchings : in how many pairs a record may be.
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
        wanted = math.ceil(self.pair_noise.flip * COIN_MODULUS * COIN_SLACK)
        return min(wanted, COIN_MODULUS // 2)


class PairWork:
    """A party's records in pairs: it admits no record to more pairs than agreed.

    Parameters
    ----------
    terms : what was agreed.
    rows : the own records, shape (2, n), as ``paired_values`` takes them.
    """

    def __init__(self, terms: Terms, rows: NDArray[Any]) -> None:
        if rows.ndim != 2 or rows.shape[0] != 2:
            raise ValueError(f"records have two rows, got an array of shape {rows.shape}")
        self._terms = terms
        self._rows = np.ascontiguousarray(rows, dtype=np.float64)
        self._met = np.zeros(rows.shape[1], dtype=np.int64)

    def shares(
        self,
        run: SharedRun,
        places: NDArray[Any],
        leading: NDArray[Any],
        chunk: int,
    ) -> Iterator[Words]:
        """This party's shares of noisy values of pairs with another party's records, in chunks.

        Parameters
        ----------
        run : the computation of the two parties.
        places : which own record is in each pair, shape (m,).
        leading : whether it is the first of the pair, shape (m,).
        chunk : how many pairs are computed at once.
        """
        if places.shape != leading.shape or chunk < 1:
            raise ValueError(f"{places.size} places, {leading.size} orders, chunks of {chunk}")
        self._admit(places)
        agreed = self._terms
        function = self._function(run.arrays)
        name = (agreed.kernel, agreed.pair_noise.kind, agreed.threshold)
        for start in range(0, places.size, chunk):
            part = slice(start, start + chunk)
            records = self._rows[:, places[part]]
            codes = kernel_codes(agreed.kernel, records, leading[part])
            inputs = np.vstack([codes, self._noise(records.shape[1])])
            yield run.shares(name, function, inputs, [inputs.shape] * 2)

    def alone(self, first: NDArray[Any], second: NDArray[Any]) -> Integers:
        """Noisy values of pairs of own records, shape (m,)."""
        if first.shape != second.shape:
            raise ValueError(f"{first.size} first records and {second.size} second ones")
        self._admit(np.concatenate([first, second]))
        agreed = self._terms
        values = paired_values(agreed.kernel, self._rows[:, first], self._rows[:, second])
        inside = np.zeros((1, values.size), dtype=np.bool_)
        noisy = agreed.pair_noise.applied(values[np.newaxis], inside, agreed.source)
        return np.asarray(noisy[0], dtype=np.int64)

    def _admit(self, places: NDArray[Any]) -> None:
        """Count the pairs of every record, and refuse more than were agreed."""
        size = self._met.size
        if places.dtype != np.int64 or np.any((places < 0) | (places >= size)):
            raise ValueError(f"places of records must be from 0 to {size - 1}")
        met = self._met + np.bincount(places, minlength=size)
        if met.max(initial=0) > self._terms.matchings:
            raise ValueError(f"a record may be in {self._terms.matchings} pairs, got {met.max()}")
        self._met = met

    def _function(self, arrays: Any) -> Function:
        agreed = self._terms
        if agreed.pair_noise.kind == RESPONSE:
            return responding_kernel(agreed.kernel, agreed.threshold, arrays)
        return noisy_kernel(agreed.kernel, arrays)

    def _noise(self, pairs: int) -> Integers:
        """This party's random row: half of a coin, or its own draw or half a draw of noise."""
        agreed, source = self._terms, self._terms.source
        if agreed.pair_noise.kind == RESPONSE:
            return source.draw(UniformIntegers(COIN_MODULUS), (pairs,))
        return source.draw(agreed.pair_noise.part, (pairs,))
