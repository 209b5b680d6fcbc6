"""The looks of a run that asks for the AUC: flat counts of both classes, each with its own part of
epsilon, and what is left for one number.

A look counts both classes in at most 128 cells. The first counts in cells of the protocol's scale;
a later one in cells that the server publishes (``zoom``), or in the same again. All parts of
epsilon are whole multiples of ``1 / PARTS``, and every query lists those of its run so far, its own
last. The part of a query follows from noisy counts alone, so that the parts add up to at most
epsilon: mechanisms that are chosen adaptively, with epsilons e_1, e_2, ... that add up to at most
epsilon whatever comes out, are together epsilon-private (basic composition with a fixed total,
Rogers et al. 2016, theorem 3.6): the ratio of the probabilities of a whole transcript for two
neighbours is the product of its steps' ratios, each at most ``exp(e_i)`` for the e_i that the steps
before it fixed, and the sum of these is at most epsilon for every transcript.
"""

from __future__ import annotations

import numpy as np

from tacit.data.clients import Clients
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.privacy.cost import Adjacency, Cost
from tacit.privacy.mechanisms.laplace import PolyaShare
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Layout, Query, Reply, step
from tacit.protocol.sum_bounds import clipped, clipped_sum_bound, planned_clients
from tacit.protocols.shared.cells import KNOTS, even_cell_counts, placed_on, published_scale

PARTS = 40
"""Number of equal parts of epsilon; a query names how many of them it costs."""

FIRST_PARTS = 1
"""Parts of epsilon of the first look, which says what comes next, and of a look at crowds."""

MAX_LOOKS = 4
"""Largest number of looks of a run."""

LOOK_HEIGHT, MAX_LOOK_HEIGHT = 6, 7
"""The first look has ``2**height`` cells, by default of the first height; a zoomed one has twice as
many where that is at most ``2**MAX_LOOK_HEIGHT``."""

CLASS_FRACTION = 0.25
"""Fraction of a look's epsilon for the class sizes; the rest is for the cells. Their errors enter
the AUC as products only, those of the class sizes with all others."""

CLASSES, CELLS = "classes", "cells"
"""Fields of a look's reply."""

LISTED = "parts"
"""Field of a query: the parts of the run so far."""

SPENT = ("score-histogram", "parts")
"""Key under which a client state notes the parts of a run."""


def part_cost(epsilon: float, parts: int, adjacency: str) -> Cost:
    """What a query of so many parts costs a record."""
    return Cost(epsilon * parts / PARTS, adjacency=Adjacency(adjacency))


def listed_parts(query: Query) -> tuple[int, ...]:
    """The parts of the run's queries up to this one.

    Raises
    ------
    ValueError : for anything but 1 to 5 whole numbers from 1 that add up to at most ``PARTS``.
    """
    listed = query.broadcast[LISTED]
    if getattr(listed, "dtype", None) != np.dtype(np.int64) or np.ndim(listed) != 1:
        raise ValueError(f"{LISTED} must be a list of 64-bit integers, got {listed!r:.80}")
    parts = tuple(int(part) for part in listed)
    if not 1 <= len(parts) <= MAX_LOOKS + 1 or min(parts) < 1 or sum(parts) > PARTS:
        raise ValueError(
            f"{LISTED} must be at most {MAX_LOOKS + 1} numbers from 1 that add up to at most "
            f"{PARTS}, got {parts}"
        )
    return parts


def pay(query: Query, noise: NoiseSource, state: ClientState) -> None:
    """Note the run's parts, and refuse a query that leaves out any of those before it.

    The same query may come again, where a sum is tried anew. Simulated replicates are not noted:
    each of them goes its own way, with other parts.

    Raises
    ------
    ValueError : for parts that do not go on from those of the last query.
    """
    parts, noted = listed_parts(query), state.recall(SPENT)
    if noise.full_shape(()):
        return
    if query.step.name != first_look.name and noted not in (None, parts, parts[:-1]):
        raise ValueError(f"{LISTED} must go on from {noted} of this run, got {parts}")
    state.keep(SPENT, parts)


def look_height(query: Query) -> int:
    """The height of a query's cells.

    Raises
    ------
    ValueError : for a height that the protocol does not use.
    """
    height, agreed = query.broadcast["height"], query.protocol.look_heights
    if height not in agreed:
        raise ValueError(f"height must be one of {agreed}, got {height!r:.40}")
    return int(height)


def query_scale(query: Query) -> ScoreScale:
    """The scale whose positions a query takes: the protocol's, or one of published knots.

    Raises
    ------
    ValueError : for knots that are not one fewer than the cells, finite and ascending.
    """
    base: ScoreScale = query.protocol.score_scale
    return published_scale(query, 1 << look_height(query)) or base


def zoomed_scale(query: Query) -> ScoreScale | None:
    """The scale of knots that the query publishes; None for the protocol's."""
    return None if query.broadcast.get(KNOTS) is None else query_scale(query)


def placed(clients: Clients, query: Query) -> Clients:
    """The clients with their positions on the query's scale for scores.

    Raises
    ------
    DataError : for a score outside [0, 1] where scores are probabilities.
    """
    return placed_on(zoomed_scale(query), query.protocol, clients)


def _look_cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    settings = query.protocol
    return part_cost(settings.epsilon, listed_parts(query)[-1], settings.adjacency)


def look_epsilons(epsilon: float, parts: int) -> tuple[float, float]:
    """What a look of so many parts spends on the class sizes, and on the cells."""
    spent = epsilon * parts / PARTS
    return spent * CLASS_FRACTION, spent * (1 - CLASS_FRACTION)


def _look_layout(query: Query) -> Layout:
    return {CLASSES: (2,), CELLS: (2 << look_height(query),), "clients": ()}


def _look_bounds(query: Query) -> dict[str, int]:
    settings, planned = query.protocol, planned_clients(query)
    share = settings.trust.share(1, planned)
    epsilons = look_epsilons(settings.epsilon, listed_parts(query)[-1])
    by_class, by_cell = (
        clipped_sum_bound(query, PolyaShare(settings.distance, epsilon, share))
        for epsilon in epsilons
    )
    return {CLASSES: by_class, CELLS: by_cell, "clients": planned}


def _counts(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Both classes' sizes and cells, with this batch's share of the noise."""
    pay(query, noise, state)
    settings, cells = query.protocol, 1 << look_height(query)
    counts = even_cell_counts(placed(clients, query), cells)
    share = settings.trust.share(clients.count, planned_clients(query))
    by_class, by_cell = look_epsilons(settings.epsilon, listed_parts(query)[-1])
    sizes = counts.reshape(2, cells).sum(axis=-1)
    return {
        CLASSES: clipped(sizes, query)
        + noise.draw(PolyaShare(settings.distance, by_class, share), (2,)),
        CELLS: clipped(counts, query)
        + noise.draw(PolyaShare(settings.distance, by_cell, share), counts.shape),
        "clients": np.asarray(clients.count, dtype=np.int64),
    }


@step(
    cost=_look_cost,
    sums=_look_layout,
    shares=planned_clients,
    once=True,
    bounds=_look_bounds,
)
def first_look(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send both classes' counts in the cells of the protocol's scale, with a share of the noise.

    It begins a run. A record counts in one class and in one cell: adding or removing it changes one
    number of each kind by one, replacing it two. The noise shares of all queried clients add up to
    discrete Laplace noise of scale ``distance / epsilon_l`` on every number of kind l, which costs
    ``epsilon_l`` by the Laplace mechanism on the integers; both add up to the query's part of
    epsilon. The guarantee is about the sum over all clients, and holds against a server that sees
    the sum only and colludes with no client.

    The server learns the noisy sum of the counts, and how many clients answered.
    """
    if query.broadcast.get(KNOTS) is not None or len(listed_parts(query)) != 1:
        raise ValueError(f"the first look has no {KNOTS}, and its part alone")
    return _counts(clients, query, noise, state)


def _further(
    number: int, clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    """Counts as in ``first_look``, in the same cells or in those of published knots.

    The knots follow from noisy counts of the looks before, and are values like any other that a
    server chooses: whatever they are, a record counts in one cell. So the cost is the query's part
    of epsilon.
    """
    if len(listed_parts(query)) != number:
        raise ValueError(f"look {number} lists {number} {LISTED}, got {listed_parts(query)}")
    return _counts(clients, query, noise, state)


@step(cost=_look_cost, sums=_look_layout, shares=planned_clients, bounds=_look_bounds)
def second_look(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send a second look's counts (``first_look``); a party adds to one sum a step in a run.

    The server learns the noisy sum of the counts, and how many clients answered.
    """
    return _further(2, clients, query, noise, state)


@step(cost=_look_cost, sums=_look_layout, shares=planned_clients, bounds=_look_bounds)
def third_look(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send a third look's counts (``first_look``).

    The server learns the noisy sum of the counts, and how many clients answered.
    """
    return _further(3, clients, query, noise, state)


@step(cost=_look_cost, sums=_look_layout, shares=planned_clients, bounds=_look_bounds)
def fourth_look(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send a fourth look's counts (``first_look``).

    The server learns the noisy sum of the counts, and how many clients answered.
    """
    return _further(4, clients, query, noise, state)


LOOKS = (first_look, second_look, third_look, fourth_look)
"""The looks of a run, in order, ``MAX_LOOKS`` of them."""
