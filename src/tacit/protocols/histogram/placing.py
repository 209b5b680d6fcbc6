"""Cells of a summed tree placed where both classes score: a first count with little of epsilon.

A ROC curve errs in a cell by where its p positives and n negatives lie: by ``p n / 6`` records
squared for either class, so that of B cells those of equal ``sqrt(p n)`` leave the least error
(Lagrange: minimise ``sum p n / b`` over the numbers b of cells that a place is cut into). Equal
cells of a fixed scale spend most of their number on tails without records.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arrays import Floats
from tacit.data.clients import Clients
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.privacy.cost import Cost
from tacit.privacy.mechanisms.laplace import PolyaShare
from tacit.privacy.sampling.distributions import discrete_laplace_variance
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Layout, Query, Reply, step
from tacit.protocol.sum_bounds import clipped, clipped_sum_bound, planned_clients
from tacit.protocols.histogram.local.rounds import placed_knots
from tacit.protocols.shared.cell_counts import even_cell_counts

if TYPE_CHECKING:
    from tacit.protocols.histogram.protocol import ScoreHistogram

PLACING_FRACTION = 1 / 32
"""Fraction of epsilon of the first count; a power of two, so that both parts add up exactly."""

PLACING_CELLS = 2**7
"""Number of cells of the protocol's scale in which the first count looks for records."""

NOISE_ERRORS = 1.0
"""Standard errors that are taken off every noisy count, so that noise draws no cells to tails."""

CLASS_PART = 0.3
"""Part of the cells that follows the records of either class, for rates where the other is rare."""

FIXED_PART = 0.02
"""Part of the cells that lies evenly on the protocol's scale, whatever the counts say."""


def _placing_cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    cost: Cost = query.protocol.placing_cost
    return cost


def _placing_layout(query: Query) -> Layout:
    return {"cells": (2 * PLACING_CELLS,), "clients": ()}


def _share(query: Query, batch: int) -> PolyaShare:
    """A batch's share of the noise."""
    settings = query.protocol
    share = settings.noise_share(batch, planned_clients(query))
    return PolyaShare(settings.distance, settings.placing_cost.epsilon, share)


def _placing_bounds(query: Query) -> dict[str, int]:
    return {
        "cells": clipped_sum_bound(query, _share(query, 1)),
        "clients": planned_clients(query),
    }


@step(cost=_placing_cost, sums=_placing_layout, shares=planned_clients, bounds=_placing_bounds)
def placing_counts(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send both classes' counts in the cells of the protocol's scale, with a share of the noise.

    A record counts in one cell: adding or removing it changes one number by one, replacing it two.
    The noise shares of all queried clients add up to discrete Laplace noise of scale ``distance /
    e`` on every count, which costs e by the Laplace mechanism on the integers, e being the part
    ``PLACING_FRACTION`` of epsilon; the tree has the rest. The guarantee is about the sum over all
    clients, and holds against a server that sees the sum only and colludes with no client.

    The server learns the noisy sum of the counts, and how many clients answered.
    """
    counts = even_cell_counts(query.protocol.on_scale(clients), PLACING_CELLS)
    made: dict[str, Any] = {
        "cells": clipped(counts, query) + noise.draw(_share(query, clients.count), counts.shape),
        "clients": np.asarray(clients.count, dtype=np.int64),
    }
    return made


def knots_of(protocol: ScoreHistogram, counts: Floats, height: int, inflation: float) -> Floats:
    """The inner edges of ``2**height`` cells placed by noisy counts, shape (2**height - 1,).

    Parameters
    ----------
    counts : positives, then negatives, in ``PLACING_CELLS`` cells, shape (2 * PLACING_CELLS,).
    height : of the tree.
    inflation : the noise that arrived, as a multiple of what the guarantee needs.
    """
    scale = protocol.distance / protocol.placing_cost.epsilon
    error = math.sqrt(inflation * float(discrete_laplace_variance(scale)))
    return balanced_knots(protocol.score_scale, counts.reshape(2, -1), error, height)


def balanced_knots(scale: ScoreScale, counts: Floats, error: float, height: int) -> Floats:
    """Inner edges of cells of equal ``sqrt(p n)``, a part of them following either class alone.

    Parameters
    ----------
    scale : of whose equal cells the counts are.
    counts : positives and negatives, shape (2, B).
    error : the standard error of a count.
    height : there are ``2**height`` new cells.

    Examples
    --------
    >>> from tacit.metrics.cells.score_scale import named_scale
    >>> counts = np.array([[0.0, 100.0, 100.0, 0.0] * 16] * 2)
    >>> balanced_knots(named_scale("even"), counts, 0.0, 2).round(2).tolist()
    [0.25, 0.5, 0.75]
    """
    clear = np.maximum(counts - NOISE_ERRORS * error, 0.0)
    both, alone = (_normalised(each) for each in (np.sqrt(np.prod(clear, axis=0)), clear.sum(0)))
    mixed = (1 - CLASS_PART) * both + CLASS_PART * alone
    return placed_knots(scale, mixed, height, FIXED_PART)


def _normalised(masses: Floats) -> Floats:
    """The same adding up to 1; even where there is nothing."""
    total = float(masses.sum())
    return masses / total if total > 0 else np.full(masses.size, 1 / masses.size)
