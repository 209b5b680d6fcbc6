"""The lift of the top decile, in two rounds of noisy secure sums: a protocol of tacit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp

CELLS, DEPTH = 32, 0.1
"""Cells of [0, 1] that are counted in the first round; the fraction of records at the top."""

FIRST, SURE = 0.5, 1.0
"""Fraction of epsilon for the first round; its margin in standard deviations of the noise."""


def count_in_cells(clients: tp.Clients) -> NDArray[np.int64]:
    """The number of scores in each cell."""
    cells = np.minimum((clients.scores * CELLS).astype(np.int64), CELLS - 1)
    return np.bincount(cells, minlength=CELLS)


def count_in_zones(clients: tp.Clients, window: NDArray[np.float64]) -> NDArray[np.int64]:
    """The number of records above a window, in it and below it, by label, shape (..., 3, 2)."""
    zones = (clients.scores < window[..., [1]]).astype(int) + (clients.scores < window[..., [0]])
    groups = 2 * zones + clients.labels
    counts = np.stack([(groups == group).sum(axis=-1) for group in range(6)], axis=-1)
    return counts.reshape(*counts.shape[:-1], 3, 2)


@tp.release(lambda query: {"cells": query.protocol.cells})
def count_cells(clients: tp.Clients, query: tp.Query) -> dict[str, NDArray[np.int64]]:
    """Send the number of scores in each cell, with noise.

    Adding or removing a record changes one count by 1.

    The server learns the noisy counts over all clients, and how many clients answered.
    """
    return {"cells": count_in_cells(clients)}


@tp.release(lambda query: {"zones": query.protocol.zones})
def count_zones(clients: tp.Clients, query: tp.Query) -> dict[str, NDArray[np.int64]]:
    """Send the number of records of each label above the window, in it and below it, with noise.

    Adding or removing a record changes one count by 1. The window, shape (..., 2), has an axis of
    replicates if the first round had one.

    The server learns the noisy counts over all clients, and how many clients answered.
    """
    return {"zones": count_in_zones(clients, query.broadcast["window"])}


def window_of(cells: NDArray[Any], variance: float) -> NDArray[np.float64]:
    """Two cell edges between which the top decile surely begins, shape (..., 2)."""
    above = np.cumsum(cells[..., ::-1], axis=-1)[..., ::-1]
    room = SURE * np.sqrt(variance * np.arange(CELLS, 0, -1))
    wanted = DEPTH * above[..., :1]
    low = ((above - room >= wanted) * np.arange(CELLS)).max(axis=-1)
    high = np.where(above + room <= wanted, np.arange(CELLS), CELLS).min(axis=-1)
    return np.stack([low, np.maximum(high, low + 1)], axis=-1) / CELLS


def lift_of(zones: NDArray[Any]) -> tuple[Any, Any, Any]:
    """The lift, its derivative by every count, and the error for not knowing the window's order.

    Records that the top decile lacks above the window are taken at random from the window. So the
    figure depends on the window's position only through its rate of positives.
    """
    records, positives = zones.sum(axis=(-2, -1)), zones[..., 1].sum(axis=-1)
    positives = np.where(positives > 0, positives, np.nan)
    inside = np.maximum(zones[..., 1, :].sum(axis=-1), 1.0)
    rate = np.clip(zones[..., 1, 1] / inside, 0.0, 1.0)
    lacking = DEPTH * records - zones[..., 0, :].sum(axis=-1)
    part = np.clip(lacking / inside, 0.0, 1.0)
    lift = (zones[..., 0, 1] + rate * lacking) / (DEPTH * positives)
    order = np.sqrt(rate * (1 - rate) * part * (1 - part) * inside) / (DEPTH * positives)
    taken = np.stack([np.ones_like(part), part, np.zeros_like(part)], axis=-1)[..., np.newaxis]
    label, rate, whole = np.arange(2), rate[..., None, None], positives[..., None, None]
    by_top = label * taken - rate * (taken - DEPTH)
    return lift, (by_top / DEPTH - lift[..., None, None] * label) / whole, order


@dataclass(frozen=True)
class Lift(tp.Protocol):
    """How many times more frequent positives are in the tenth of records with the largest scores.

    Of equal scores at the border the same fraction of each is taken.
    """

    epsilon: float = tp.setting(help=tp.EPSILON)
    trust: tp.SecureSum | str = tp.trust_setting()
    name = "lift"
    figure = tp.Figure("lift of the top decile", limits=(0.0, 1 / DEPTH))
    score_range = tp.UNIT_INTERVAL
    needs_both_classes = True
    steps = (count_cells, count_zones)
    trusts = (tp.Trust.SECURE_SUM,)

    @property
    def cells(self) -> tp.Released:
        """What the first round releases."""
        return tp.Released((CELLS,), epsilon=FIRST * self.epsilon)

    @property
    def zones(self) -> tp.Released:
        """What the second round releases."""
        return tp.Released((3, 2), epsilon=(1 - FIRST) * self.epsilon)

    def conversation(self, clients: int) -> tp.Conversation:
        """Two rounds: cells up, a window down; zones up."""
        cells = yield from tp.ask(count_cells, self, clients)
        window = window_of(cells["cells"], cells.variance("cells"))
        zones = yield from tp.ask(count_zones, self, clients, {"window": window})
        lift, by_count, order = lift_of(zones["zones"])
        sampling = np.sqrt((np.maximum(zones["zones"], 0.0) * by_count**2).sum(axis=(-2, -1)))
        return zones.result(lift, {"zones": by_count}, sampling, approximation_error=order)

    def exact(self, clients: tp.Clients) -> float:
        """The lift, which is not private."""
        order = np.argsort(-clients.scores, kind="stable")
        scores, labels = clients.scores[order], clients.labels[order]
        wanted, border = DEPTH * labels.size, scores[int(np.ceil(DEPTH * labels.size)) - 1]
        above, equal = labels[scores > border], labels[scores == border]
        top = above.sum() + (wanted - above.size) * equal.mean()
        return float(top / (DEPTH * labels.sum()))

    def forecast(self, scenario: tp.Scenario, shape: tp.Shape, metric: tp.Metric) -> tp.Forecast:
        """The error that the server states of records that are drawn from the shape."""
        return tp.measured_forecast(self, scenario, shape)

    def noiseless_value(self, clients: tp.Clients) -> float:
        """The lift by exact counts, without the order of the records in the window."""
        window = window_of(count_in_cells(clients), self.cells.variance())
        return float(lift_of(count_in_zones(clients, window))[0])
