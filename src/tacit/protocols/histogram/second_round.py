"""The second round of a score histogram: one number, the summed influences of all records.

The first round gives the distribution functions F- and F+ of both classes, their sizes P and N, and
the AUC A1 of these functions. The second measures, with m = min(P, N),

    S = sum over positives of (F-(s) - A1) m/P + sum over negatives of (1 - F+(s) - A1) m/N

and ``A1 + S/m`` is the AUC but for the noise on S and for products of two errors of the first
round. Scores enter exactly: cells matter only through these products.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.counts import influence, looks
from tacit.protocol import releases
from tacit.protocols.histogram import look_steps
from tacit.protocols.shared import influence_sum
from tacit.protocols.shared.cells import KNOTS
from tacit.protocols.shared.influence_sum import number_field

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
    deepest = min(look_steps.look_height(query), looks.MAX_FLAT_HEIGHT)
    inner = (influence.inner_edges(fields[influence.POSITIVES], deepest),)
    shapes = {
        influence.POSITIVES: inner,
        influence.NEGATIVES: inner,
        influence.SIZES: (2,),
    }
    influence.check_published(
        fields, {name: noise.full_shape(shape) for name, shape in shapes.items()}
    )
    if np.ndim(fields[influence.SIZES]) == 1:
        influence.influences_of(fields, _straight(query))
    look_steps.pay(query, noise, state)


def _straight(query: tp.Query) -> bool:
    """Whether functions are linear between edges: on cell edges that the server published."""
    return query.broadcast.get(KNOTS) is not None


@releases.release(lambda query: {SUM: number_field(look_steps.epsilon_of(query))}, admits=_admits)
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
    units = number_field(look_steps.epsilon_of(query)).per_record
    adjacency = tp.Adjacency(query.protocol.adjacency)
    queries, chosen = look_steps.by_knots(query)
    if chosen.size:
        totals = np.zeros((chosen.size, clients.count), dtype=np.int64)
        for index, each in enumerate(queries):
            rows = np.flatnonzero(chosen == index)
            fields = {name: query.broadcast[name][rows] for name in influence.PUBLISHED}
            influences = influence.influences_of(fields, linear=True)
            totals[rows] = _in_units(influences, look_steps.placed(clients, each), units, adjacency)
        return {SUM: releases.by_view(query, totals)}
    fields = {name: query.broadcast[name] for name in influence.PUBLISHED}
    if np.ndim(fields[influence.SIZES]) == 1:
        influences = influence.influences_of(fields, _straight(query))
        totals = _in_units(influences, look_steps.placed(clients, query), units, adjacency)
        return {SUM: releases.by_view(query, totals)}
    # replicates with the same functions have one sum
    together = np.concatenate(list(fields.values()), axis=-1)
    _, first, index = np.unique(together, axis=0, return_index=True, return_inverse=True)
    distinct = influence.influences_of(
        {name: each[first] for name, each in fields.items()}, _straight(query)
    )
    totals = _in_units(distinct, look_steps.placed(clients, query), units, adjacency)
    return {SUM: releases.by_view(query, totals[index.ravel()])}


def _in_units(
    influences: influence.Influences, clients: tp.Clients, units: int, adjacency: tp.Adjacency
) -> Integers:
    """Every client's sum of influences, rounded once to units, shape (..., K)."""
    reach = influences.sensitivity(adjacency)[..., np.newaxis]
    return influence.whole_units(influences.totals(clients), reach, units)


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
    moved, variance = influence_sum.on_scale(sums, released, reach / smaller, noises)
    return influences.area + moved, variance
