"""The second round of a score histogram: one number, the summed influences of all records.

The first round gives the distribution functions F- and F+ of both classes, their sizes P and N, and
the AUC A1 of these functions. The second measures, with m = min(P, N),

    S = sum over positives of (F-(s) - A1) m/P + sum over negatives of (1 - F+(s) - A1) m/N

and ``A1 + S/m`` is the AUC but for the noise on S and for products of two errors of the first
round. Scores enter exactly: cells matter only through these products.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.data.clients import Clients
from tacit.metrics.cells.score_distribution import ScoreDistribution, StraightDistribution
from tacit.privacy.cost import Adjacency, Cost
from tacit.privacy.mechanisms.laplace import PolyaShare
from tacit.privacy.sampling.distributions import discrete_laplace_variance
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Layout, Query, Reply, step
from tacit.protocol.sum_bounds import clipped, clipped_sum_bound, planned_clients
from tacit.protocols.histogram.looking import looks
from tacit.protocols.shared import influence_sum
from tacit.protocols.shared.cells import KNOTS

POSITIVES, NEGATIVES, SIZES = influence_sum.PUBLISHED


def influences_of(fields: Mapping[str, Any], straight: bool = False) -> influence_sum.Influences:
    """The influences that follow from the published fields, at the server and at every client.

    Parameters
    ----------
    fields : what was published.
    straight : whether functions are straight between edges, as on published knots.
    """
    kind = StraightDistribution if straight else ScoreDistribution
    positives, negatives = (_on_equal_cells(kind, fields[name]) for name in (POSITIVES, NEGATIVES))
    return influence_sum.Influences.of(positives, negatives, fields[SIZES])


def _on_equal_cells(kind: type[ScoreDistribution], values: Floats) -> ScoreDistribution:
    """A distribution function on equal cells of [0, 1]."""
    cells = values.shape[-1] + 1
    return kind(np.arange(1, cells) / cells, values, 0.0, 1.0)


def agreed_influences(query: Query, noise: NoiseSource) -> influence_sum.Influences:
    """The influences of a query, as a client accepts them.

    Raises
    ------
    ValueError : for fields of another type or shape, for cells that are no level of the agreed
        tree, for functions that fall (unless they are straight) or leave [0, 1], and for sizes that
        are not above 0 and finite.
    """
    fields = query.broadcast
    cells = np.shape(fields[POSITIVES])[-1:]
    depths = [(1 << depth) - 1 for depth in range(1, looks.look_height(query) + 1)]
    if not cells or cells[0] not in depths:
        raise ValueError(f"functions must have a number of inner edges in {depths}, got {cells}")
    for name, shape in ((POSITIVES, cells), (NEGATIVES, cells), (SIZES, (2,))):
        _check_numbers(name, fields[name], noise.full_shape(shape))
    sizes = fields[SIZES]
    if not np.all((sizes > 0) & np.isfinite(sizes)):
        raise ValueError(f"class sizes must be above 0 and finite, got {sizes.tolist()}")
    return influences_of(fields, _straight(query))


def _straight(query: Query) -> bool:
    """Whether functions are straight between edges: on knots that the server published."""
    return query.broadcast.get(KNOTS) is not None


def _check_numbers(name: str, numbers: Any, shape: tuple[int, ...]) -> None:
    """Refuse what is no array of 64-bit floats of this shape: two sets would share one noise."""
    received = (getattr(numbers, "dtype", type(numbers)), np.shape(numbers))
    if received != (np.dtype(np.float64), shape):
        raise ValueError(f"{name} must be 64-bit floats of shape {shape}, got {received}")


def _cost_of(query: Query) -> Cost:
    """Of the part that the query names after its looks."""
    settings = query.protocol
    return looks.part_cost(settings.epsilon, looks.listed_parts(query)[-1], settings.adjacency)


def _influence_cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    return _cost_of(query)


def _influence_layout(query: Query) -> Layout:
    return {"sum": (), "clients": ()}


def _influence_bounds(query: Query) -> dict[str, int]:
    planned, epsilon = planned_clients(query), _cost_of(query).epsilon
    units = influence_sum.units_for(epsilon)
    noise = PolyaShare(units, epsilon, query.protocol.trust.share(1, planned))
    return {"sum": clipped_sum_bound(query, noise, units), "clients": planned}


@step(
    cost=_influence_cost, sums=_influence_layout, shares=planned_clients, bounds=_influence_bounds
)
def summed_influences(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    """Send the sum of the records' influences on the AUC, with this batch's share of the noise.

    The query publishes both classes' distribution functions at the inner edges of equal cells of
    positions (``ScoreScale``), and the class sizes; also the knots of the scale, if it was zoomed.
    From these alone the client computes the influence of every record, a whole multiple
    of ``1 / FIXED_POINT`` from ``-A1`` to ``1 - A1`` times at most 1, and the sensitivity
    D of their sum: the largest size of an influence where a record is added or removed, their width
    where it is replaced by any other. So a neighbour moves the exact sum by at most D. The client
    rounds its sum once to units of ``D / R``, R whole, after which a neighbour moves it by at most
    R units (``whole_units``). The shares of all clients that were asked add up to discrete Laplace
    noise of scale ``R / epsilon_2``, epsilon_2 the second round's part of epsilon, which costs that
    part by the Laplace mechanism on the integers. The guarantee is about the sum over all clients,
    and holds against a server that sees it only and colludes with nobody.

    The server learns the noisy sum over all clients, and how many clients answered.

    Raises
    ------
    DataError : for a score outside [0, 1] where scores are probabilities.
    ValueError : for published functions or sizes that could not come from a first round.
    """
    settings, influences = query.protocol, agreed_influences(query, noise)
    looks.pay(query, noise, state)
    on_scale, epsilon = looks.placed(clients, query), _cost_of(query).epsilon
    reach = influences.sensitivity(Adjacency(settings.adjacency))[..., np.newaxis]
    units = influence_sum.units_for(epsilon)
    rounded = influence_sum.whole_units(_totals(influences, query, on_scale), reach, units).sum(
        axis=-1
    )
    share = settings.trust.share(clients.count, planned_clients(query))
    drawn = noise.draw(PolyaShare(units, epsilon, share), ())
    total = clipped(rounded, query, units) + drawn
    return {"sum": total, "clients": np.asarray(clients.count, dtype=np.int64)}


def _totals(influences: influence_sum.Influences, query: Query, clients: Clients) -> Integers:
    """The sums of every client; of replicates with the same functions only once."""
    if np.ndim(query.broadcast[SIZES]) == 1:
        return influences.totals(clients)
    fields = {name: query.broadcast[name] for name in influence_sum.PUBLISHED}
    together = np.concatenate(list(fields.values()), axis=-1)
    _, first, index = np.unique(together, axis=0, return_index=True, return_inverse=True)
    shown = {name: field[first] for name, field in fields.items()}
    distinct = influences_of(shown, _straight(query))
    return distinct.totals(clients)[index.ravel()]


def both_rounds(
    fields: Mapping[str, Floats],
    sums: Floats,
    epsilon: float,
    adjacency: Adjacency,
    inflation: float = 1.0,
    straight: bool = False,
) -> tuple[Floats, Floats]:
    """The AUC by both rounds, and its variance by the second round's noise.

    Parameters
    ----------
    fields : what was published.
    sums : the noisy sums, in units.
    epsilon, adjacency : of the second round.
    inflation : the noise that arrived, as a multiple of what epsilon needs.
    straight : as for ``influences_of``.
    """
    influences = influences_of(fields, straight)
    units = influence_sum.units_for(epsilon)
    smaller = fields[SIZES].min(axis=-1)
    reach = influences.sensitivity(adjacency) / influence_sum.FIXED_POINT
    unit = reach / (units * smaller)
    variance = inflation * float(discrete_laplace_variance(units / epsilon))
    return influences.area + sums * unit, variance * unit**2
