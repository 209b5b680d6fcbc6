"""Cells of a summed tree placed where both classes score: a first count with little of epsilon.

A ROC curve errs in a cell by where its p positives and n negatives lie: by ``p n / 6`` records
squared for either class, so that of B cells those of equal ``sqrt(p n)`` leave the least error
(Lagrange: minimise ``sum p n / b`` over the numbers b of cells that a place is cut into). Equal
cells of a fixed scale spend most of their number on tails without records.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.data.clients import Clients
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.protocol.conversation import Query
from tacit.protocol.releases import Released, release
from tacit.protocols.histogram.local.rounds import placed_knots
from tacit.protocols.shared.cell_counts import even_cell_counts

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


def placing_field(protocol: Any) -> Released:
    """The first count, of which a neighbour changes ``distance`` numbers by one."""
    part = protocol.known_epsilon * PLACING_FRACTION
    return Released((2 * PLACING_CELLS,), protocol.distance, part)


@release(lambda query: {"cells": placing_field(query.protocol)})
def placing_counts(clients: Clients, query: Query) -> dict[str, Integers]:
    """Send both classes' counts in the cells of the protocol's scale.

    A record counts in one cell: adding or removing it changes one number by one, replacing it two.
    That costs the part ``PLACING_FRACTION`` of epsilon (``tacit.protocol.releases``); the tree has
    the rest.

    The server learns the noisy sum of the counts, and how many clients answered.
    """
    return {"cells": even_cell_counts(query.protocol.on_scale(clients), PLACING_CELLS)}


def knots_of(protocol: Any, counts: Floats, height: int, noises: float = 1.0) -> Floats:
    """The inner edges of ``2**height`` cells placed by noisy counts, shape (2**height - 1,).

    Parameters
    ----------
    counts : positives, then negatives, in ``PLACING_CELLS`` cells, shape (2 * PLACING_CELLS,).
    height : of the tree.
    noises : the noise that arrived, as a multiple of what the guarantee needs.
    """
    error = math.sqrt(placing_field(protocol).variance(noises))
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
