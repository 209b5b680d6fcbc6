"""Devices of one record that report in one of two rounds: a cell, or an influence on the AUC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arrays import Integers
from tacit.data.clients import Clients
from tacit.local.two_round.first_round import FirstRound, first_round_slots
from tacit.local.two_round.second_round import Influence, reported_numbers
from tacit.privacy.local.bounded import GridReport, SlidingWindow
from tacit.protocol.conversation import Query
from tacit.protocol.devices import (
    Instructions,
    NumberReports,
    ReportsByInput,
    scale_entry,
    spread_of,
    window_entry,
)


class TwoRoundDevices(NumberReports, ReportsByInput):
    """One output of a sliding window a device.

    Parameters
    ----------
    protocol : a ``TwoRoundAUC`` with private labels.
    devices : how many are expected.
    """

    number_bytes = 2

    def __init__(self, protocol: Any, devices: int) -> None:
        self._protocol = protocol
        self._first: FirstRound = protocol.first_round
        self.steps = protocol.steps[1:]
        self.first_turns = first_round_slots(protocol.epsilon, devices, private_labels=True)

    def instructions(self, query: Query) -> Instructions:
        """A window over class and cell; or the published numbers, and a window over their grid."""
        if query.step is self.steps[0]:
            return self._first.instructions(self._protocol.scale)
        scale, window = scale_entry(self._protocol.scale), window_entry(self._window(query))
        published = {name: query.broadcast[name].tolist() for name in ("knots", "grid")}
        return {"kind": "influence", "scale": scale, **published, **window}

    def numbers(self, query: Query) -> int:
        """The window's outputs."""
        return self._window(query).outputs

    def input_counts(self, query: Query, clients: Clients, rng: np.random.Generator) -> Integers:
        """How many records have each class and cell; or each number, rounded to the grid."""
        scaled = self._protocol.on_scale(clients)
        if query.step is self.steps[0]:
            values = self._first.inputs_of(scaled)
        else:
            numbers = reported_numbers(scaled.scores, scaled.labels, query.broadcast["knots"])
            values = self._grid(query).rounded(numbers, rng)
        return np.bincount(values, minlength=self._window(query).inputs)

    def simulated_counts(self, query: Query, held: Integers, rng: np.random.Generator) -> Integers:
        """By ``SlidingWindow``."""
        return self._window(query).simulated_counts(held, rng)

    def influences(self, query: Query, counts: Sequence[Integers]) -> tuple[float, float]:
        """Of the second round: a report's value about the mean, over the rarer class's fraction.

        The first round's errors cancel to first order, and so do its liars; a report there changes
        the AUC by products of errors only.
        """
        if query.step is self.steps[0]:
            return 0.0, 0.0
        plan = self._plan(counts)
        values, came = plan.report.values(plan.distributions[0]), counts[1]
        moved = (values - values @ came / max(came.sum(), 1)) / plan.rarer
        return spread_of(moved)

    def _plan(self, counts: Sequence[Integers]) -> Influence:
        """How records report in the second round, from the reports of the first."""
        sizes = np.array([[sum(int(each.sum()) for each in counts)], [int(counts[1].sum())]])
        model = self._first.model(counts[0][np.newaxis], 0.0)
        plan: Influence = self._protocol.influence(model, sizes)
        return plan

    def _window(self, query: Query) -> SlidingWindow:
        if query.step is self.steps[0]:
            return self._first.window
        return self._grid(query).window

    def _grid(self, query: Query) -> GridReport:
        grid, width = query.broadcast["grid"], int(query.broadcast["width"])
        return GridReport(self._protocol.epsilon, grid, width)
