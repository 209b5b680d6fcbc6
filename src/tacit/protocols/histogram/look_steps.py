"""The looks of a run: counts of both classes, each with its own fraction of epsilon, and what is
left for one number.

A look counts both classes in the cells of the protocol's scale, or in cells that the server
publishes from the noisy counts of the looks before. Up to ``2**7`` cells are counted flat, with the
class sizes next to them; more are the leaves of a tree, of every group where groups are agreed. All
fractions of epsilon are whole multiples of ``1 / PARTS``, and every query lists those of its run so
far, its own last. The part of a query follows from noisy counts alone, so that the parts add up to
at most epsilon: mechanisms that are chosen adaptively, with epsilons e_1, e_2, ... that add up to
at most epsilon whatever comes out, are together epsilon-private (basic composition with a fixed
total, Rogers et al. 2016, theorem 3.6): the ratio of the probabilities of a whole transcript for
two neighbours is the product of its steps' ratios, each at most ``exp(e_i)`` for the e_i that the
steps before it fixed, and the sum of these is at most epsilon for every transcript.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Integers
from tacit.counts import looks
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.protocol import releases
from tacit.protocol.values import encode_query
from tacit.protocols.histogram.steps import leaf_counts
from tacit.protocols.shared.cells import ALL_RECORDS, KNOTS, placed_on, published_scale
from tacit.protocols.shared.tree_counts import LEVEL, level_counts, level_fields

HEIGHT, LISTED = "height", "parts"
"""Fields of a query: the height of its cells, and the parts of the run so far."""

SPENT = ("score-histogram", "parts")
"""Key under which a client state notes the parts of a run, and a digest of the last query."""


def listed_parts(query: tp.Query) -> tuple[int, ...]:
    """The parts of the run's queries up to this one.

    Raises
    ------
    ValueError : for anything but 1 to 5 whole numbers from 1 that add up to at most ``PARTS``.
    """
    listed = query.broadcast[LISTED]
    if getattr(listed, "dtype", None) != np.dtype(np.int64) or np.ndim(listed) != 1:
        raise ValueError(f"{LISTED} must be a list of 64-bit integers, got {listed!r:.80}")
    parts = tuple(int(part) for part in listed)
    if not 1 <= len(parts) <= looks.MAX_LOOKS + 1 or min(parts) < 1 or sum(parts) > looks.PARTS:
        raise ValueError(
            f"{LISTED} must be at most {looks.MAX_LOOKS + 1} numbers from 1 that add up to at most "
            f"{looks.PARTS}, got {parts}"
        )
    return parts


def epsilon_of(query: tp.Query) -> float:
    """What a query costs: its fraction of epsilon."""
    epsilon: float = query.protocol.known_epsilon
    return epsilon * listed_parts(query)[-1] / looks.PARTS


def pay(query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState) -> None:
    """Note the run's parts, and refuse a query that leaves out any of those before it.

    The very same query may come again, where a sum is tried again; one with the same parts and
    other cells or functions may not. Simulated replicates are not noted: each of them goes its own
    way, with other parts.

    Raises
    ------
    ValueError : for parts that do not go on from those of the last query, and for more than one set
        of cell edges, each of which would be counted in before the shape of all showed.
    """
    parts = listed_parts(query)
    if noise.full_shape(()):
        return
    sets = np.shape(query.broadcast.get(KNOTS, ()))[:-1]
    if sets:
        raise ValueError(f"{KNOTS} that a client counts in are one set, got {sets}")
    asked = hashlib.sha256(encode_query(query)).hexdigest()
    noted, before = state.recall(SPENT) or (parts[:-1], asked)
    goes_on = parts[:-1] == noted or (parts, asked) == (noted, before)
    if not query.step.once and not goes_on:
        raise ValueError(
            f"{LISTED} must go on from {noted} of this run, got {parts}, or the query be the same"
        )
    state.keep(SPENT, (parts, asked))


def look_height(query: tp.Query) -> int:
    """The height of a query's cells.

    Raises
    ------
    ValueError : for a height that the protocol does not use.
    """
    height, agreed = query.broadcast[HEIGHT], query.protocol.look_heights
    if height not in agreed:
        raise ValueError(f"{HEIGHT} must be one of {agreed}, got {height!r:.40}")
    return int(height)


def query_scale(query: tp.Query) -> ScoreScale:
    """The scale whose positions a query takes: the protocol's, or one of published cell edges.

    Raises
    ------
    ValueError : for cell edges that are not one fewer than the cells, finite and ascending.
    """
    base: ScoreScale = query.protocol.score_scale
    return published_scale(query, 1 << look_height(query)) or base


def placed(clients: tp.Clients, query: tp.Query) -> tp.Clients:
    """The clients with their positions on the query's scale for scores.

    Raises
    ------
    DataError : for a score outside [0, 1] where scores are probabilities.
    """
    zoomed = None if query.broadcast.get(KNOTS) is None else query_scale(query)
    return placed_on(zoomed, query.protocol, clients)


def by_knots(query: tp.Query) -> tuple[list[tp.Query], Integers]:
    """The queries of distinct published cells, and which of them each replicate gets, shape (R,).

    Replicates of a simulation may have their own cells; else there is one query, for all.
    """
    knots = query.broadcast.get(KNOTS)
    if knots is None or np.ndim(knots) < 2:
        return [query], np.zeros(0, dtype=np.int64)
    distinct, chosen = np.unique(knots, axis=0, return_inverse=True)
    asked = [replace(query, broadcast={**query.broadcast, KNOTS: each}) for each in distinct]
    return asked, chosen.ravel()


def look_fields(protocol: Any, height: int, epsilon: float) -> dict[str, releases.Released]:
    """What a look of this epsilon releases: on one level a record counts in one node."""
    parts = looks.look_levels(protocol, height, epsilon)
    return level_fields(LEVEL, looks.look_strata(protocol, height), protocol.distance, parts)


def _first_fields(query: tp.Query) -> releases.Fields:
    if query.broadcast.get(KNOTS) is not None or len(listed_parts(query)) != 1:
        raise ValueError(f"the first histogram round has no {KNOTS}, and its part alone")
    return look_fields(query.protocol, look_height(query), epsilon_of(query))


def _further_fields(number: int, query: tp.Query) -> releases.Fields:
    if len(listed_parts(query)) != number:
        raise ValueError(f"look {number} lists {number} {LISTED}, got {listed_parts(query)}")
    knots = query.broadcast.get(KNOTS)
    if knots is not None and np.ndim(knots) < 2:
        query_scale(query)
    return look_fields(query.protocol, look_height(query), epsilon_of(query))


def _counts(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Both classes' counts on the levels of a look."""
    height, protocol = look_height(query), query.protocol
    strata = protocol.strata_of(clients)
    if looks.look_strata(protocol, height) == 1:
        strata = ALL_RECORDS
    queries, chosen = by_knots(query)
    rows = [leaf_counts(query, placed(clients, each), height, strata) for each in queries]
    counts = np.stack(rows)[chosen] if chosen.size else rows[0]
    levels = looks.look_levels(protocol, height, epsilon_of(query))
    return level_counts(LEVEL, counts, height + 1, levels, query)


@releases.release(_first_fields, admits=pay, once=True)
def first_look(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send both classes' counts in the cells of the protocol's scale.

    It begins a run. On one level a record counts in one node: adding or removing it changes one
    number of each level by one, replacing it two. A level costs its part, and the parts add up to
    the query's (``tacit.protocol.releases``).

    The server learns the noisy sum of the counts, and how many clients answered.
    """
    return _counts(clients, query)


@releases.release(lambda query: _further_fields(2, query), admits=pay)
def second_look(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send both classes' counts in the cells of the protocol's scale, or between published edges.

    The cell edges follow from noisy counts of the looks before, and are values like any other that
    a server chooses: whatever they are, a record counts in one cell. So the cost is the query's
    fraction of epsilon. A party adds to one sum a step in a run, so that each look has a step.

    The server learns the noisy sum of the counts, and how many clients answered.
    """
    return _counts(clients, query)


@releases.release(lambda query: _further_fields(3, query), admits=pay)
def third_look(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send both classes' counts a third time, in the same cells or between published edges.

    Its cells and its cost are those of ``second_look``.

    The server learns the noisy sum of the counts, and how many clients answered.
    """
    return _counts(clients, query)


@releases.release(lambda query: _further_fields(4, query), admits=pay)
def fourth_look(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send both classes' counts a fourth time, in the same cells or between published edges.

    Its cells and its cost are those of ``second_look``.

    The server learns the noisy sum of the counts, and how many clients answered.
    """
    return _counts(clients, query)


LOOKS = (first_look, second_look, third_look, fourth_look)
"""The looks of a run, in order, ``MAX_LOOKS`` of them."""
