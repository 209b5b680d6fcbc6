"""Cells whose edges the server publishes as scores, from noisy counts alone.

The edges are values like any other that a server chooses: whatever they are, a record counts in
one cell, and a function of a score has the same bounds.
"""

from __future__ import annotations

import numpy as np

from tacit.data.clients import Clients
from tacit.metrics.cells.score_scale import CentredScale, ScoreScale
from tacit.protocol.conversation import Query
from tacit.protocol.settings.scaled import ScaledScores
from tacit.protocol.settings.score_range import check_scores_in_unit_interval

KNOTS = "knots"
"""Field of a query: the scores at the inner edges of its cells."""


def published_scale(query: Query, cells: int) -> ScoreScale | None:
    """The scale of the knots that a query publishes; None where it publishes none.

    Raises
    ------
    ValueError : for knots that are not one fewer than the cells, finite and ascending.
    """
    knots, base = query.broadcast.get(KNOTS), query.protocol.score_scale
    if knots is None:
        return None
    expected = (np.dtype(np.float64), (cells - 1,))
    received = (getattr(knots, "dtype", type(knots)), np.shape(knots))
    if received != expected:
        raise ValueError(f"{KNOTS} must be {expected[1][0]} 64-bit floats, got {received}")
    return ScoreScale(knots, base.low, base.high)


def placed_on(scale: ScoreScale | None, protocol: ScaledScores, clients: Clients) -> Clients:
    """The clients with positions for scores: on published cells, or on the protocol's scale.

    Raises
    ------
    DataError : for a score outside [0, 1] where scores are probabilities.
    """
    if scale is None:
        return protocol.on_scale(clients)
    if protocol.score_range is not None:
        check_scores_in_unit_interval(clients)
    return clients.rescored(CentredScale(scale.knots, scale.low, scale.high))
