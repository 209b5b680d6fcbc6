"""Devices of one record that report one symbol, by k-ary randomised response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arrays import Integers
from tacit.data.clients import Clients
from tacit.local.pair_kernels import Axis
from tacit.privacy.local.response import SymbolResponse
from tacit.privacy.mechanisms.response import Bits
from tacit.protocol.conversation import Query
from tacit.protocol.devices import Instructions, NumberReports, ReportsByInput, spread_of

STEP = 1e-3
"""The fraction of reports that is replaced to find how the estimate changes."""

MAX_TRIED = 512
"""Largest number of symbols that are tried, evenly spread among all."""


class SymbolDevices(NumberReports, ReportsByInput):
    """One symbol a device.

    Parameters
    ----------
    protocol : a ``UStatistic``.
    """

    number_bytes = 2
    field = "symbols"

    def __init__(self, protocol: Any) -> None:
        self._protocol = protocol
        self.steps = (protocol.steps[-1],)

    def instructions(self, query: Query) -> Instructions:
        """The axes of the space, and how many of ``2**64`` words replace a symbol, or keep it."""
        space = self._protocol.space(query.broadcast["bins"])
        replaced = Bits(self._response(query).replaced_chance)
        return {
            "kind": "symbol",
            "axes": [_axis_entry(axis) for axis in space.axes],
            "other_words": str(replaced.threshold),
            "others_rarer": replaced.probability <= 0.5,
        }

    def numbers(self, query: Query) -> int:
        """The symbols; there are 4096 at most."""
        return self._response(query).symbols

    def input_counts(self, query: Query, clients: Clients, rng: np.random.Generator) -> Integers:
        """How many records have each symbol."""
        space = self._protocol.space(query.broadcast["bins"])
        return np.bincount(space.of_records(clients), minlength=space.symbols)

    def simulated_counts(self, query: Query, held: Integers, rng: np.random.Generator) -> Integers:
        """By ``SymbolResponse``."""
        return self._response(query).simulated_counts(held, rng)

    def influences(self, query: Query, counts: Sequence[Integers]) -> tuple[float, float]:
        """By how the estimate changes where a thousandth of the reports are one symbol."""
        symbols = self.numbers(query)
        came = counts[0].astype(np.float64)
        tried = np.unique(np.linspace(0, symbols - 1, min(symbols, MAX_TRIED)).astype(np.int64))
        replaced = np.tile((1 - STEP) * came, (tried.size + 1, 1))
        replaced[-1] = came
        replaced[np.arange(tried.size), tried] += STEP * came.sum()
        values = self._protocol.result_of(replaced, query.broadcast["bins"]).value
        return spread_of(np.nan_to_num(values[:-1] - values[-1]) / STEP)

    def _response(self, query: Query) -> SymbolResponse:
        space = self._protocol.space(query.broadcast["bins"])
        return SymbolResponse(space.symbols, self._protocol.epsilon)


def _axis_entry(axis: Axis) -> dict[str, Any]:
    return {
        "column": axis.column,
        "grid": [float(each) for each in axis.grid],
        "low": float(axis.low),
        "high": float(axis.high),
        "bins": int(axis.bins),
        "scale": axis.scale,
    }
