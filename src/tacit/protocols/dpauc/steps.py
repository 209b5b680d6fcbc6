"""Client steps of DPAUC: noisy histograms, in one round or in looks.

The second round of DPAUC: each client's sum of influences, one number with noise of its own.

The looks give the distribution functions F- and F+ of both classes, their sizes P and N, and the
AUC A1 of these functions. Each client then sends, with m = min(P, N), the sum over its records of

    (F-(s) - A1) m/P for a positive, (1 - F+(s) - A1) m/N for a negative

and ``A1 + S/m``, S the sum over clients, is the AUC but for the noise on S and for products of two
errors of the first round. Scores enter exactly: cells matter only through these products.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.data.clients import Clients
from tacit.metrics.cells.score_distribution import (
    ScoreDistribution,
    StraightDistribution,
    clipped_fractions,
    rising_fractions,
)
from tacit.privacy.cost import Adjacency, Cost
from tacit.privacy.mechanisms.laplace import DiscreteLaplace
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol import releases
from tacit.protocol.conversation import ClientState, Query, Reply, step
from tacit.protocols.dpauc.looks import NUMBER_PARTS, number_variance
from tacit.protocols.shared import influence_sum
from tacit.protocols.shared.cells import KNOTS, placed_on, published_scale, true_cell_counts
from tacit.protocols.shared.trees.levels import Levels

if TYPE_CHECKING:
    from tacit.protocols.dpauc.protocol import DPAUC


POSITIVES, NEGATIVES, SIZES = influence_sum.PUBLISHED

PART, CELLS = "part", "cells"
"""Fields of a query: the part of epsilon that its answer costs, and the number of cells."""


def published(cells: Floats, straight: bool = False) -> dict[str, Floats]:
    """What the server publishes of consistent counts of positives and negatives, shape (..., 2, B).

    Functions that are straight between edges need not rise: as they lie within 0 and 1, influences
    lie within their ends (``Influences.ends``). A class that came out empty gets the size 1: the
    round goes on, and its result is no figure.
    """
    functions = (clipped_fractions if straight else rising_fractions)(cells)[..., 1:-1]
    return {
        POSITIVES: functions[..., 0, :],
        NEGATIVES: functions[..., 1, :],
        SIZES: np.maximum(cells.sum(axis=-1), 1.0),
    }


def influences_of(fields: Mapping[str, Any], straight: bool = False) -> influence_sum.Influences:
    """The influences that follow from the published fields, at the server and at every client.

    Parameters
    ----------
    fields : what was published.
    straight : whether functions are straight between edges, as on published knots.
    """
    kind = StraightDistribution if straight else ScoreDistribution
    cells = fields[POSITIVES].shape[-1] + 1
    inner = np.arange(1, cells) / cells
    positives, negatives = (kind(inner, fields[name], 0.0, 1.0) for name in (POSITIVES, NEGATIVES))
    return influence_sum.Influences.of(positives, negatives, fields[SIZES])


def agreed_influences(query: Query, noise: NoiseSource) -> influence_sum.Influences:
    """The influences of a query, as a client accepts them.

    Raises
    ------
    ValueError : for fields of another type or shape, for a number of cells that was not agreed, for
        functions that fall or leave [0, 1] (straight ones may fall), and for sizes that are not
        above 0 and finite.
    """
    fields, agreed = query.broadcast, [cells - 1 for cells in query.protocol.cell_menu]
    inner = np.shape(fields[POSITIVES])[-1] if np.ndim(fields[POSITIVES]) else 0
    if inner not in agreed:
        raise ValueError(f"functions must have a number of inner edges in {agreed}, got {inner}")
    for name, shape in ((POSITIVES, (inner,)), (NEGATIVES, (inner,)), (SIZES, (2,))):
        numbers, expected = fields[name], noise.full_shape(shape)
        received = (getattr(numbers, "dtype", type(numbers)), np.shape(numbers))
        if received != (np.dtype(np.float64), expected):
            raise ValueError(f"{name} must be 64-bit floats of shape {expected}, got {received}")
    sizes = fields[SIZES]
    if not np.all((sizes > 0) & np.isfinite(sizes)):
        raise ValueError(f"class sizes must be above 0 and finite, got {sizes.tolist()}")
    return influences_of(fields, fields.get(KNOTS) is not None)


def agreed_part(query: Query, menu: tuple[float, ...]) -> float:
    """The part of epsilon that a query asks for.

    Raises
    ------
    ValueError : for a part that the settings do not name.
    """
    part = query.broadcast[PART]
    if not isinstance(part, float) or part not in menu:
        raise ValueError(f"the part of epsilon must be one of {menu}, as agreed, got {part!r}")
    return part


def agreed_cells(query: Query) -> int:
    """The number of cells that a query asks for.

    Raises
    ------
    ValueError : for a number that the settings do not name.
    """
    cells, menu = query.broadcast[CELLS], query.protocol.cell_menu
    if not isinstance(cells, int) or cells not in menu:
        raise ValueError(f"the number of cells must be one of {menu}, as agreed, got {cells!r}")
    return cells


def _number_cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    cost: Cost = query.protocol.cost_of(agreed_part(query, NUMBER_PARTS))
    return cost


@step(cost=_number_cost)
def noisy_influences(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    """Send each client's sum of its records' influences on the AUC, with noise.

    The query publishes both classes' distribution functions at the inner edges of equal cells of
    positions, or of cells between knots that it names, the class sizes, and the part f of epsilon
    that the answer costs, one of those that the settings name. From these alone the client computes
    the influence of every record, a whole multiple of ``1 / FIXED_POINT`` from ``-A1`` to
    ``1 - A1`` times at most 1, and the sensitivity D of their sum: the largest size of an influence
    where a record is added or removed, their width where it is replaced by any other. So a
    neighbour moves the exact sum by at most D. The client rounds its sum once to units of
    ``D / R``, R whole, after which a neighbour moves it by at most R units (``whole_units``).
    Discrete Laplace noise of scale ``R / (f epsilon)`` costs ``f epsilon``, by the Laplace
    mechanism on the integers.

    The functions follow from earlier noisy answers, and the parts that all answers of a run cost
    add up to at most epsilon, which every client checks: by the composition of mechanisms that are
    chosen by earlier outputs, the run costs epsilon (Dwork and Roth 2014, section 3.5).

    The server learns each client's noisy sum.

    Raises
    ------
    DataError : for a score outside the range of its unit.
    ValueError : for a part that was not agreed, and for functions or sizes that could not come from
        a first round.
    """
    settings = query.protocol
    epsilon = settings.epsilon * agreed_part(query, NUMBER_PARTS)
    influences = agreed_influences(query, noise)
    cells = query.broadcast[POSITIVES].shape[-1] + 1
    placed = placed_on(published_scale(query, cells), settings, clients)
    reach = influences.sensitivity(Adjacency(settings.adjacency))[..., np.newaxis]
    units = influence_sum.units_for(epsilon)
    rounded = influence_sum.whole_units(influences.totals(placed), reach, units)
    return {"sums": rounded + noise.draw(DiscreteLaplace(units, epsilon), (clients.count,))}


@dataclass(frozen=True, eq=False)
class BothRounds:
    """The AUC by both rounds, and its variance by the second round's noise, shape (...).

    Parameters
    ----------
    clients : how many of them each drew a part of that noise.
    """

    area: Floats
    variance: Floats
    clients: int

    @property
    def one_draw(self) -> Floats:
        """The standard deviation by that noise where a single client drew it, else 0."""
        return np.sqrt(self.variance) if self.clients == 1 else np.zeros_like(self.variance)


def both_rounds(
    fields: Mapping[str, Floats],
    sums: Floats,
    epsilon: float,
    adjacency: Adjacency,
    straight: bool = False,
) -> BothRounds:
    """What clients' noisy sums in units, shape (..., K), say at the second round's epsilon.

    ``straight`` is as for ``influences_of``.
    """
    influences, units = influences_of(fields, straight), influence_sum.units_for(epsilon)
    reach = influences.sensitivity(adjacency) / influence_sum.FIXED_POINT
    unit = reach / (units * fields[SIZES].min(axis=-1))
    total = sums.sum(axis=-1, dtype=np.float64)
    variance = number_variance(sums.shape[-1], units, epsilon)
    return BothRounds(influences.area + total * unit, variance * unit**2, sums.shape[-1])


def _fields(settings: DPAUC, levels: Levels) -> releases.Fields:
    """The counts of both levels; at label adjacency those of positives, and public records."""
    labelled, moved = settings.adjacency == "label", int(settings.record_distance)
    classes = () if labelled else (2,)
    fields = {"cells": releases.Released((*classes, levels.cells), moved, levels.cell_epsilon)}
    if levels.groups:
        fields["groups"] = releases.Released((*classes, levels.groups), moved, levels.group_epsilon)
    return fields | {"records": releases.Released((levels.cells,), 0)} if labelled else fields


def _counts(
    placed: Clients, settings: DPAUC, levels: Levels, edges: Floats
) -> dict[str, NDArray[np.int64]]:
    positives, records = true_cell_counts(placed, edges)
    labelled = settings.adjacency == "label"
    cells = positives if labelled else np.stack([positives, records - positives])
    counts = {"cells": cells, "records": records}
    if levels.groups:
        counts["groups"] = np.add.reduceat(cells, levels.starts, axis=-2)
    return counts


@releases.release(lambda query: _fields(query.protocol, query.protocol.levels))
def noisy_histograms(clients: Clients, query: Query) -> dict[str, NDArray[np.int64]]:
    """Send the numbers of positives and negatives in cells and groups of cells, with noise.

    A record sits in one cell, and its group, of one class: adding or removing it changes one count
    of each level by one, and replacing it at most two. Discrete Laplace noise of scale
    ``sensitivity / part`` on every count costs that level's part of epsilon, and both levels
    together epsilon (``tacit.protocol.releases``). At label adjacency the number of records in a
    cell is public and sent as it is; a label flip changes one positive count of each level by one.

    The server learns the noisy counts of each client's cells and groups.
    """
    settings: DPAUC = query.protocol
    return _counts(settings.on_scale(clients), settings, settings.levels, settings.edges)


def _look_levels(query: Query) -> Levels:
    """The levels of a look, from the part and the number of cells that a query asks for."""
    settings: DPAUC = query.protocol
    return settings.levels_for(agreed_part(query, settings.look_menu), agreed_cells(query))


@releases.release(lambda query: _fields(query.protocol, _look_levels(query)))
def noisy_looks(clients: Clients, query: Query) -> dict[str, NDArray[np.int64]]:
    """Send a histogram as ``noisy_histograms`` does, for a part of epsilon.

    The query says which part, and how many cells, both of those that the settings name, and perhaps
    the knots between which the cells lie; whatever these are, a record counts in one cell. From
    part and cells the levels follow: cells and class totals, or, for the part that ends the run
    after the first look, cells and the groups that suit them. Both levels together cost the part
    that the query says. All parts of a run add up to at most epsilon (``noisy_influences``).

    The server learns the noisy counts of each client's cells and groups.

    Raises
    ------
    DataError : for a score outside the range of its unit.
    ValueError : for a part or a number of cells that was not agreed, and for knots that do not
        bound so many cells.
    """
    settings: DPAUC = query.protocol
    levels = _look_levels(query)
    placed = placed_on(published_scale(query, levels.cells), settings, clients)
    return _counts(placed, settings, levels, np.arange(levels.cells) / levels.cells)
