"""Client steps of time to event: the number of records, two tables, and one number.

Epsilon is divided by ``Division``, chosen from the noisy number of records. A step costs what the
division of its query says, the parts of each division add up to 1, and a party answers no query
with which a run would cost more than epsilon, whatever the server asks (basic composition of
mechanisms that are chosen adaptively, whose epsilons add up to a fixed total, Rogers et al. 2016,
theorem 3.6).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.outcomes import clipping
from tacit.protocol import releases

if TYPE_CHECKING:
    from tacit.outcomes.survival.protocol import TimeToEvent

RECORDS, TIMES, RISKS, SUM = "records", "times", "risks", "sum"
"""The released fields."""

DIVISION, UNTIL, INFLUENCES = "division", "until", "influences"
"""Fields of a query: how epsilon is divided, the end of the grid of times, and influences on the
concordance at corners of cells."""

COUNTING = 0.02
"""The fraction of epsilon of the number of records."""


class Division(NamedTuple):
    """How the rest of epsilon is divided, and the cells of the table of times and risks.

    Parameters
    ----------
    since : the number of records times epsilon from which on it is chosen.
    parts : of epsilon, by field.
    cells : of time and of risk.
    split : cells of the table of times in each cell of time.
    """

    since: float
    parts: Mapping[str, float]
    cells: tuple[int, int]
    split: int


DIVISIONS = {
    "survival": Division(0, {TIMES: 0.7, RISKS: 0.28}, (4, 8), 5),
    "both": Division(1_500, {TIMES: 0.62, RISKS: 0.12, SUM: 0.24}, (4, 8), 5),
    "concordance": Division(8_000, {TIMES: 0.27, RISKS: 0.14, SUM: 0.57}, (10, 16), 2),
}
"""By what most of epsilon is for. The noise of a survival curve falls faster than what sampling
leaves open: the more records, the less it needs."""

EXACT = Division(0, {TIMES: 1.0, RISKS: 1.0, SUM: 1.0}, (40, 40), 2)
"""Where sums have no noise."""

SPANS = np.array([digit * 10.0**power for power in range(-6, 9) for digit in (1, 2, 5)])
"""Ends of the first round's cells of time, where the end of the grid is not named."""

WEIGHT, HEIGHT = 1 << 14, 1 << 20
"""Units of a record's weight at a corner, and of an influence: their products are summed."""


class Grid(NamedTuple):
    """The public cells.

    Parameters
    ----------
    edges : of cells of time, from 0, shape (n + 1,).
    split : in the table of times, each is so many.
    risks : the number of cells of risk.
    """

    edges: Floats
    split: int
    risks: int

    @property
    def cells(self) -> int:
        """n."""
        return self.edges.size - 1

    @property
    def ends(self) -> Floats:
        """Of the cells of the table of times, shape (n split,)."""
        places = np.arange(1, self.cells * self.split + 1) / self.split
        return np.interp(places, np.arange(self.cells + 1), self.edges)

    def spread(self, step: float | None, fine: bool) -> tuple[Floats, Floats]:
        """How times that are multiples of a step lie in cells, all of which are alike likely.

        Returned are, for each cell, the part of the censored records that is gone before an event,
        and the mean part of the cell that is left after one, shape (n,) each: a half for any times.
        """
        edges = np.append(0.0, self.ends) if fine else self.edges
        if step is None:
            return np.full(edges.size - 1, 0.5), np.full(edges.size - 1, 0.5)
        # rounding makes no multiple at an end later
        last = np.floor(edges / step * (1 + 1e-12))
        distinct = np.maximum(np.diff(last), 1)
        middle = step * (last[:-1] + last[1:] + 1) / 2
        left = (edges[1:] - middle) / np.diff(edges)
        return (1 - 1 / distinct) / 2, np.clip(left, 0.0, 1.0)

    def times(self, clients: tp.Clients, fine: bool) -> Integers:
        """Every record's place in a life table, shape (M,): a time at an end is before it."""
        ends = self.ends if fine else self.edges[1:]
        cell = np.searchsorted(ends, times_of(clients))
        lost = np.where(clients.labels == 1, 0, ends.size)
        return np.where(cell == ends.size, 2 * ends.size, cell + lost)


def times_of(clients: tp.Clients) -> Floats:
    """Every record's time, from 0, shape (M,).

    Raises
    ------
    DataError : for clients without times.
    """
    if clients.second is None:
        raise tp.DataError("a time to event needs a second value of every record, its time")
    return np.maximum(clients.second, 0.0)


def grid_of(query: tp.Query) -> Grid:
    """The cells of a query.

    Raises
    ------
    ValueError : for a division or an end of times that was not agreed.
    """
    protocol: TimeToEvent = query.protocol
    name, until = query.broadcast[DIVISION], query.broadcast[UNTIL]
    agreed = list(DIVISIONS) if protocol.division is None else [protocol.division]
    if name not in agreed:
        raise ValueError(f"{DIVISION} must be one of {', '.join(agreed)}, got {name!r:.40}")
    allowed = SPANS if protocol.until is None else np.array([protocol.until])
    if not isinstance(until, float) or until not in allowed:
        raise ValueError(f"{UNTIL} must be one of {allowed.tolist()}, got {until!r:.40}")
    made: Grid = protocol.grid(name, until)
    return made


def _first(query: tp.Query) -> dict[str, releases.Released]:
    protocol: TimeToEvent = query.protocol
    shape = () if protocol.until is not None else SPANS.shape
    return {RECORDS: releases.Released(shape, epsilon=COUNTING * protocol.budget)}


def _tables(query: tp.Query) -> dict[str, releases.Released]:
    protocol: TimeToEvent = query.protocol
    grid, parts = grid_of(query), protocol.divided(query.broadcast[DIVISION]).parts
    shapes = {TIMES: (2 * grid.ends.size + 1,), RISKS: (2 * grid.cells + 1, grid.risks)}
    return {
        name: releases.Released((protocol.groups, *shape), epsilon=parts[name] * protocol.budget)
        for name, shape in shapes.items()
    }


def _number(query: tp.Query) -> dict[str, releases.Released]:
    protocol: TimeToEvent = query.protocol
    table, grid = query.broadcast[INFLUENCES], grid_of(query)
    shape = (2, grid.cells + 1, grid.risks + 1)
    known = isinstance(table, np.ndarray) and table.dtype == np.float64
    if not known or table.shape[-3:] != shape or not np.all(np.abs(table) <= 1):
        raise ValueError(f"{INFLUENCES} must be 64-bit floats from -1 to 1, of shape {shape}")
    part = protocol.divided(query.broadcast[DIVISION]).parts.get(SUM)
    if part is None:
        raise ValueError(f"the division {query.broadcast[DIVISION]} has no {SUM}")
    return {SUM: protocol.sum_field((), part * protocol.budget)}


@releases.release(_first)
def count_records(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send the number of records, with noise; by cells of time where no end of times is named.

    Adding or removing a record changes one number by 1.

    The server learns the noisy numbers over all clients, and how many clients answered.
    """
    spans = query.protocol.until is None
    numbers = clients.added(_spans) if spans else clients.sizes
    return {RECORDS: releases.by_view(query, numbers)}


@releases.release(_tables)
def count_times(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send how many records have an event, or are censored, in each cell, with noise.

    A record is one of a group, and has one time, one event or none, and one risk. So it counts in
    one cell of the table of times, and in one of that of times and risks: adding or removing it
    changes one number of each by 1, and each table costs its fraction of epsilon.

    The server learns the noisy tables over all clients, and how many clients answered.
    """
    counts = tables_of(clients, query)[1]
    return {name: releases.by_view(query, each) for name, each in counts.items()}


@releases.release(_number)
def sum_influences(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send the sum of the records' influences on the concordance, with noise.

    The query has influences from -1 to 1 at corners of cells, whatever the server chose. A record
    takes the mean of those at the four corners of its cell, with weights that are whole multiples
    of ``1 / WEIGHT`` and add up to 1. So it adds a number in [-1, 1]: adding or removing a record
    moves the sum by at most 1. All products are whole numbers. The client rounds each sum once to
    units of ``1 / R``, R whole, after which a record moves it by at most R
    (``influence.whole_units``); noise of scale ``R / epsilon_3`` hides that.

    The server learns the noisy sum over all clients, and how many clients answered.

    Raises
    ------
    DataError : for a client with too many records (``clipping.check_sizes``).
    """
    clipping.check_sizes(clients, WEIGHT * HEIGHT, query)
    weights = clients.added(partial(_weights, query.protocol, grid_of(query)))
    whole = np.rint(query.broadcast[INFLUENCES] * HEIGHT).astype(np.int64)
    totals = np.tensordot(whole, weights, axes=3)
    return {SUM: clipping.units_of(totals, WEIGHT * HEIGHT, _number(query)[SUM], query)}


def tables_of(clients: tp.Clients, query: tp.Query) -> tuple[releases.Fields, dict[str, Integers]]:
    """What a query for tables asks for, and each client's numbers, shape (*shape, K)."""
    fields, grid = _tables(query), grid_of(query)
    return fields, {
        name: clients.added(partial(_counts, query.protocol, grid, each.shape))
        for name, each in fields.items()
    }


def _spans(clients: tp.Clients) -> Integers:
    """How many times of each client lie in each cell with these ends, shape (B, K)."""
    cell = np.minimum(np.searchsorted(SPANS, times_of(clients)), SPANS.size - 1)
    return clipping.in_cells(cell, SPANS.shape, clients)


def _risks(protocol: TimeToEvent, clients: tp.Clients, grid: Grid) -> tuple[Integers, Floats]:
    """The cell of every record's risk, and where in it the risk lies, shape (M,) each."""
    place = (protocol.scaled(clients.scores) + 1) / 2 * grid.risks
    cell = np.minimum(place.astype(np.int64), grid.risks - 1)
    return cell, place - cell


def _counts(
    protocol: TimeToEvent, grid: Grid, shape: tuple[int, ...], clients: tp.Clients
) -> Integers:
    """Each client's numbers of records in the cells of a table, shape (*shape, K)."""
    joint = len(shape) > 2
    index = clipping.group_of(clients, protocol.group_names) * shape[1]
    index = index + grid.times(clients, not joint)
    if joint:
        index = index * shape[2] + _risks(protocol, clients, grid)[0]
    return clipping.in_cells(index, shape, clients)


def _weights(protocol: TimeToEvent, grid: Grid, clients: tp.Clients) -> Integers:
    """Sums of each client's weights at corners of cells, shape (2, n + 1, R + 1, K)."""
    times = times_of(clients)
    place = np.interp(times, grid.edges, np.arange(grid.cells + 1.0))
    late = np.minimum(place.astype(np.int64), grid.cells - 1)
    high, above = _risks(protocol, clients, grid)
    died = ((clients.labels == 1) & (times <= grid.edges[-1])).astype(np.int64)
    shape = (2, grid.cells + 1, grid.risks + 1, clients.count)
    made, left = np.zeros(shape, np.int64), np.full(clients.records, WEIGHT)
    shares = {(0, 0): (1 - place + late) * (1 - above), (0, 1): (1 - place + late) * above}
    shares[1, 0] = (place - late) * (1 - above)
    for (later, higher), share in (shares | {(1, 1): None}).items():
        weight = left if share is None else (share * WEIGHT).astype(np.int64)
        np.add.at(made, (died, late + later, high + higher, clients.client_of_record), weight)
        left = left - weight
    return made
