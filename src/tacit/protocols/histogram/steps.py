"""Client steps of score histograms: a summed tree, the rounds of a run, and one number.

**Rounds.** A round counts both classes in the cells of the protocol's scale, or in cells that the
server publishes from the noisy counts of the rounds before. Up to ``2**7`` cells are counted flat,
with the class sizes next to them; more are the leaves of a tree, of every group where groups are
agreed. All fractions of epsilon are whole multiples of ``1 / PARTS``, and every query lists those
of its run so far, its own last. The part of a query follows from noisy counts alone, so that the
parts add up to at most epsilon: mechanisms that are chosen adaptively, with epsilons e_1, e_2, ...
that add up to at most epsilon whatever comes out, are together epsilon-private (basic composition
with a fixed total, Rogers et al. 2016, theorem 3.6): the ratio of the probabilities of a whole
transcript for two neighbours is the product of its steps' ratios, each at most ``exp(e_i)`` for the
e_i that the steps before it fixed, and the sum of these is at most epsilon for every transcript.

**One number**, the summed influences of all records. The rounds give the distribution functions F-
and F+ of both classes, their sizes P and N, and the AUC A1 of these functions. The number measures,
with m = min(P, N),

    S = sum over positives of (F-(s) - A1) m/P + sum over negatives of (1 - F+(s) - A1) m/N

and ``A1 + S/m`` is the AUC but for the noise on S and for products of two errors of the first
round. Scores enter exactly: cells matter only through these products.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.counts import influence, tree_budget
from tacit.metrics.cells.score_scale import CentredScale, ScoreScale
from tacit.protocol import releases
from tacit.protocol.values import encode_query
from tacit.protocols.shared import counting


def leaves_of(clients: tp.Clients, height: int, protocol: tp.ScaledScores) -> Integers:
    """The leaf of every record, shape (M,): cells of positives first, then those of negatives.

    Raises
    ------
    DataError : for a score outside [0, 1] where the protocol's scores are probabilities.
    """
    return leaves_at(protocol.on_scale(clients).scores, clients.labels, height)


def leaves_at(positions: Floats, labels: NDArray[Any], height: int) -> Integers:
    """The leaf of every record at a position from 0 to 1, shape (M,)."""
    cells = 1 << height  # a power of two, so that a position times it is exact
    cell = np.minimum((positions * cells).astype(np.int64), cells - 1)
    return cell + np.where(labels == 1, 0, cells)


def agreed_height(query: tp.Query) -> int:
    """The height of the tree, which follows from the settings and the number of clients.

    Raises
    ------
    ValueError : for a query that says another.
    """
    height, agreed = (
        query.broadcast["height"],
        query.protocol.tree_height(query.broadcast["clients"]),
    )
    if height != agreed:
        raise ValueError(f"height must be {agreed}, as agreed, got {height}")
    return int(agreed)


def tree_fields(protocol: Any, height: int) -> dict[str, releases.Released]:
    """The counts of a summed tree's levels, of which a neighbour changes ``distance`` by one."""
    return counting.level_fields(
        counting.LEVEL, protocol.strata, protocol.distance, protocol.level_parts(height)
    )


@releases.release(lambda query: tree_fields(query.protocol, agreed_height(query)))
def summed_trees(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send the tree of both classes' counts.

    On one level a record counts in one node, of its group where groups are agreed
    (``histogram.grouped``). Adding or removing it changes one count of each level by one, replacing
    it two. A level costs its part, and the parts add up to the tree's
    (``tacit.protocol.releases``); with exact sums there is no noise and no guarantee.

    The server learns the noisy sum of the trees, and how many clients answered.
    """
    height, protocol = agreed_height(query), query.protocol
    strata = protocol.strata_of(clients)
    counts = leaf_counts(query, protocol.on_scale(clients), height, strata)
    return counting.level_counts(
        counting.LEVEL, counts, height + 1, protocol.level_parts(height), query
    )


def leaf_counts(
    query: tp.Query,
    clients: tp.Clients,
    height: int,
    strata: counting.Strata = counting.ALL_RECORDS,
) -> Integers:
    """Both classes' counts in equal cells of positions, of each client or of all as the query asks.

    Positives, then negatives, stratum by stratum: shape (S * 2 * cells,), or (S * 2 * cells, K)
    where the server sees each client.
    """
    cells, leaves = 1 << height, 2 << height
    if not clients.at_hand:
        counts = clients.counts_in(np.arange(1, cells) / cells, by_group=strata.count > 1)
        return releases.by_view(query, counts.reshape(strata.count * leaves, clients.count))
    own = leaves_at(clients.scores, clients.labels, height) + strata.of_record * leaves
    return counting.counts_at(own, strata.count * leaves, query, clients)


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
    if (
        not 1 <= len(parts) <= tree_budget.MAX_ROUNDS + 1
        or min(parts) < 1
        or sum(parts) > tree_budget.PARTS
    ):
        raise ValueError(
            f"{LISTED} must be at most {tree_budget.MAX_ROUNDS + 1} numbers from 1 that add up to "
            f"at most {tree_budget.PARTS}, got {parts}"
        )
    return parts


def epsilon_of(query: tp.Query) -> float:
    """What a query costs: its fraction of epsilon."""
    return query.protocol.known_epsilon * listed_parts(query)[-1] / tree_budget.PARTS


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
    sets = np.shape(query.broadcast.get(counting.BORDERS, ()))[:-1]
    if sets:
        raise ValueError(f"{counting.BORDERS} that a client counts in are one set, got {sets}")
    asked = hashlib.sha256(encode_query(query)).hexdigest()
    noted, before = state.recall(SPENT) or (parts[:-1], asked)
    goes_on = parts[:-1] == noted or (parts, asked) == (noted, before)
    if not query.step.once and not goes_on:
        raise ValueError(
            f"{LISTED} must go on from {noted} of this run, got {parts}, or the query be the same"
        )
    state.keep(SPENT, (parts, asked))


def round_height(query: tp.Query) -> int:
    """The height of a query's cells.

    Raises
    ------
    ValueError : for a height that the protocol does not use.
    """
    height, agreed = query.broadcast[HEIGHT], query.protocol.round_heights
    if height not in agreed:
        raise ValueError(f"{HEIGHT} must be one of {agreed}, got {height!r:.40}")
    return int(height)


def query_scale(query: tp.Query, height: int) -> ScoreScale:
    """The scale whose positions a query takes: the protocol's, or one of published cell edges.

    Raises
    ------
    ValueError : for cell edges that are not one fewer than the cells, finite and ascending.
    """
    protocol, borders = query.protocol, query.broadcast.get(counting.BORDERS)
    if borders is not None:
        return counting.scale_of_borders(protocol, borders, 1 << height)
    return protocol.score_scale


def placed(clients: tp.Clients, query: tp.Query, height: int) -> tp.Clients:
    """The clients with their positions on the query's scale for scores.

    Raises
    ------
    DataError : for a score outside [0, 1] where scores are probabilities.
    """
    scale = query_scale(query, height)
    query.protocol.check_range(clients)
    if _linear(query):
        scale = CentredScale(scale.borders, scale.low, scale.high)
    return clients.rescored(scale)


def by_borders(query: tp.Query) -> tuple[list[tp.Query], Integers]:
    """The queries of distinct published cells, and which of them each replicate gets, shape (R,).

    Replicates of a simulation may have their own cells; else there is one query, for all.
    """
    borders = query.broadcast.get(counting.BORDERS)
    if borders is None or np.ndim(borders) < 2:
        return [query], np.zeros(0, dtype=np.int64)
    distinct, chosen = np.unique(borders, axis=0, return_inverse=True)
    asked = [
        replace(query, broadcast={**query.broadcast, counting.BORDERS: each}) for each in distinct
    ]
    return asked, chosen.ravel()


def round_fields(protocol: Any, height: int, epsilon: float) -> dict[str, releases.Released]:
    """What a round of this epsilon releases: on one level a record counts in one node."""
    parts = tree_budget.round_levels(protocol, height, epsilon)
    return counting.level_fields(
        counting.LEVEL, tree_budget.round_strata(protocol, height), protocol.distance, parts
    )


def _first_fields(query: tp.Query) -> releases.Fields:
    if _linear(query) or len(listed_parts(query)) != 1:
        raise ValueError(f"the first histogram round has no {counting.BORDERS}, and its part alone")
    return round_fields(query.protocol, round_height(query), epsilon_of(query))


def _further_fields(number: int, query: tp.Query) -> releases.Fields:
    if len(listed_parts(query)) != number:
        raise ValueError(f"round {number} lists {number} {LISTED}, got {listed_parts(query)}")
    if np.ndim(query.broadcast.get(counting.BORDERS, 0)) < 2:
        query_scale(query, round_height(query))
    return round_fields(query.protocol, round_height(query), epsilon_of(query))


def _counts(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Both classes' counts on the levels of a round."""
    height, protocol = round_height(query), query.protocol
    strata = protocol.strata_of(clients)
    if tree_budget.round_strata(protocol, height) == 1:
        strata = counting.ALL_RECORDS
    queries, chosen = by_borders(query)
    rows = [leaf_counts(query, placed(clients, each, height), height, strata) for each in queries]
    counts = np.stack(rows)[chosen] if chosen.size else rows[0]
    levels = tree_budget.round_levels(protocol, height, epsilon_of(query))
    return counting.level_counts(counting.LEVEL, counts, height + 1, levels, query)


@releases.release(_first_fields, admits=pay, once=True)
def first_round(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send both classes' counts in the cells of the protocol's scale.

    It begins a run. On one level a record counts in one node: adding or removing it changes one
    number of each level by one, replacing it two. A level costs its part, and the parts add up to
    the query's (``tacit.protocol.releases``).

    The server learns the noisy sum of the counts, and how many clients answered.
    """
    return _counts(clients, query)


@releases.release(lambda query: _further_fields(2, query), admits=pay)
def second_round(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send both classes' counts in the cells of the protocol's scale, or between published edges.

    The cell edges follow from noisy counts of the rounds before, and are values like any other that
    a server chooses: whatever they are, a record counts in one cell. So the cost is the query's
    fraction of epsilon. A party adds to one sum a step in a run, so that each round has a step.

    The server learns the noisy sum of the counts, and how many clients answered.
    """
    return _counts(clients, query)


@releases.release(lambda query: _further_fields(3, query), admits=pay)
def third_round(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send both classes' counts a third time, in the same cells or between published edges.

    Its cells and its cost are those of ``second_round``.

    The server learns the noisy sum of the counts, and how many clients answered.
    """
    return _counts(clients, query)


@releases.release(lambda query: _further_fields(4, query), admits=pay)
def fourth_round(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send both classes' counts a fourth time, in the same cells or between published edges.

    Its cells and its cost are those of ``second_round``.

    The server learns the noisy sum of the counts, and how many clients answered.
    """
    return _counts(clients, query)


ROUNDS = (first_round, second_round, third_round, fourth_round)
"""The rounds of a run, in order, ``MAX_ROUNDS`` of them."""


SUM = "sum"
"""The field of the number."""


def _admits(query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState) -> None:
    """Check what a query publishes, as a client accepts it, and note what it costs.

    Raises
    ------
    ValueError : for fields of another type or shape, for cells that are no level of the agreed
        tree, for functions that fall (unless they are linear) or leave [0, 1], and for sizes that
        are not above 0 and finite.
    """
    fields = query.broadcast
    deepest = min(round_height(query), tree_budget.MAX_FLAT_HEIGHT)
    inner = (influence.inner_edges(fields[influence.POSITIVES], deepest),)
    shapes = {influence.POSITIVES: inner, influence.NEGATIVES: inner, influence.SIZES: (2,)}
    influence.check_published(
        fields, {name: noise.full_shape(shape) for name, shape in shapes.items()}
    )
    if np.ndim(fields[influence.SIZES]) == 1:
        influence.influences_of(fields, _linear(query))
    pay(query, noise, state)


def _linear(query: tp.Query) -> bool:
    """Whether functions are linear between edges: on cell edges that the server published."""
    return query.broadcast.get(counting.BORDERS) is not None


@releases.release(lambda query: {SUM: counting.number_field(epsilon_of(query))}, admits=_admits)
def summed_influences(clients: tp.Clients, query: tp.Query) -> dict[str, Integers]:
    """Send the sum of the records' influences on the AUC.

    The query publishes both classes' distribution functions at the inner edges of equal cells of
    positions (``ScoreScale``), and the class sizes; also the cell edges of the scale, if the server
    placed them. From these alone the client computes the influence of every record, a whole
    multiple of ``1 / FIXED_POINT`` from ``-A1`` to ``1 - A1`` times at most 1, and the sensitivity
    D of their sum: the largest size of an influence where a record is added or removed, their width
    where it is replaced by any other. So a neighbour moves the exact sum by at most D. The client
    rounds its sum once to units of ``D / R``, R whole, after which a neighbour moves it by at most
    R units (``whole_units``). Discrete Laplace noise of scale ``R / epsilon_2``, epsilon_2 the
    query's fraction of epsilon, costs that part (``tacit.protocol.releases``).

    The server learns the noisy sum over all clients, and how many clients answered.

    Raises
    ------
    DataError : for a score outside [0, 1] where scores are probabilities.
    ValueError : for published functions or sizes that could not come from a first round.
    """
    units = counting.number_field(epsilon_of(query)).per_record
    adjacency = tp.Adjacency(query.protocol.adjacency)
    fields = {name: query.broadcast[name] for name in influence.PUBLISHED}

    def sums(asked: tp.Query, rows: Any) -> Integers:
        """Every client's sum of influences, rounded once to units, shape (..., K)."""
        chosen = {name: each[rows] for name, each in fields.items()}
        influences = influence.influences_of(chosen, _linear(query))
        reach = influences.sensitivity(adjacency)[..., np.newaxis]
        return influence.whole_units(
            influences.totals(placed(clients, asked, round_height(asked))), reach, units
        )

    queries, chosen = by_borders(query)
    if chosen.size:
        totals = np.zeros((chosen.size, clients.count), dtype=np.int64)
        for index, each in enumerate(queries):
            totals[chosen == index] = sums(each, chosen == index)
    elif np.ndim(fields[influence.SIZES]) == 1:
        totals = sums(query, ...)
    else:  # replicates with the same functions have one sum
        together = np.concatenate(list(fields.values()), axis=-1)
        _, first, same = np.unique(together, axis=0, return_index=True, return_inverse=True)
        totals = sums(query, first)[same.ravel()]
    return {SUM: releases.by_view(query, totals)}


def both_rounds(
    fields: Mapping[str, Floats],
    sums: Floats,
    released: releases.Released,
    adjacency: tp.Adjacency,
    noises: float = 1.0,
    linear: bool = False,
) -> tuple[Floats, Floats]:
    """The AUC by both rounds, and its variance by the second round's noise.

    Parameters
    ----------
    fields : what was published.
    sums : the noisy sums, in units.
    released : what was declared of them.
    adjacency : of the guarantee.
    noises : the noise that arrived, as a multiple of what epsilon needs.
    linear : as for ``influences_of``.
    """
    influences = influence.influences_of(fields, linear)
    reach = influences.sensitivity(adjacency) / influence.FIXED_POINT
    smaller = fields[influence.SIZES].min(axis=-1)
    moved, variance = counting.on_scale(sums, released, reach / smaller, noises)
    return influences.area + moved, variance
