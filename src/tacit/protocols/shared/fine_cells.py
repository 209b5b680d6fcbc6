"""Fixed fine cells for a look at many records, each centred on a round number where there is one.

Where scores have two digits, or one leading digit more near an end, a cell of these holds one of
them, and straight lines between its edges hide nothing (docs, section 5c). There is one layout for
scores spread over the middle, one for low ones and its mirror image, and one for scores of any
kind; all are public and fixed, and noisy counts choose among them only.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.cells.score_distribution import ScoreDistribution
from tacit.metrics.cells.score_scale import PROBABILITY, ScoreScale, named_scale
from tacit.protocols.shared.zoomed_cells import shares_of

FINE_HEIGHT = 7
"""A fine look has ``2**FINE_HEIGHT`` cells."""

HUNDREDTHS = tuple((2 * k + 1) / 200 for k in range(100))
"""Edges of cells that are centred on numbers with two digits."""

MIDDLE_TAIL = (
    *(1e-10, 1e-7, 5e-6, 5e-5, 2e-4, 5e-4, 9e-4),
    *(0.0014, 0.002, 0.0027, 0.0036, 0.0075, 0.0125, 0.03),
)
"""Further edges of the middle layout towards 0; those towards 1 mirror all but the first."""

LOW = (
    *(1e-9, 1e-7, 1e-6, 1e-5, 5e-5, 0.00015, 0.00025, 0.00035, 0.00045, 0.00055, 0.00065),
    *(0.00075, 0.00085, 0.00095, 0.00105, 0.00125, 0.00175, 0.00225, 0.00275, 0.00325),
    *(0.00375, 0.00425, 0.00475, 0.0059, *((2 * k + 1) / 2000 for k in range(1, 20))),
    *(0.0225, 0.025, 0.0275, 0.0325, 0.035, 0.0375, 0.0425, 0.045, 0.0475),
    *(*HUNDREDTHS[5:60], 0.61, 0.62, 0.64, 0.66, 0.7, 0.74, 0.78, 0.82, 0.86, 0.9, 0.94),
    *(0.965, 0.975, 0.985, 0.995, 0.998, 0.9995, 0.9999),
    *(0.68, 0.72),
)
"""Edges for scores most of which lie below a tenth: three digits below 0.02, two above."""


@lru_cache(maxsize=8)
def fine_scales(name: str) -> tuple[ScoreScale, ...]:
    """The layouts for scores of a scale of this name."""
    base = named_scale(name)
    cells = 1 << FINE_HEIGHT
    spread = base.scores(np.arange(1, cells) / cells)
    edges = [spread]
    if name == PROBABILITY:
        mirrored = tuple(1 - edge for edge in MIDDLE_TAIL[1:])
        middle = np.sort(np.array([*MIDDLE_TAIL, *HUNDREDTHS, *mirrored]))
        low = np.sort(np.array(LOW))
        edges = [middle, low, np.sort(1 - low), spread]
    return tuple(ScoreScale(knots, base.low, base.high) for knots in edges)


def recounted(counts: Floats, scale: ScoreScale, finer: ScoreScale) -> Floats:
    """The counts in equal cells of one scale spread over those of another, shape (..., 2, B').

    Parameters
    ----------
    counts : in equal cells of positions on ``scale``, at least 0, shape (..., 2, B).
    """
    cells, sizes = counts.shape[-1], counts.sum(axis=-1, keepdims=True)
    fractions = np.cumsum(counts, axis=-1) / np.where(sizes > 0, sizes, 1.0)
    below = np.clip(fractions[..., :-1], 0.0, 1.0)
    function = ScoreDistribution(np.arange(1, cells) / cells, below, 0.0, 1.0)
    reached = function.at(scale.positions(finer.knots))
    made = np.diff(np.maximum.accumulate(reached, axis=-1), axis=-1, prepend=0.0, append=1.0)
    return np.asarray(made * sizes)


def best_scales(name: str, counts: Floats, scale: ScoreScale) -> list[ScoreScale]:
    """The layout with the least sum of squared shares of pairs in its cells, for each replicate.

    Parameters
    ----------
    counts : positives, then negatives, in equal cells of ``scale``, shape (R, 2, B).
    """
    scales = fine_scales(name)
    shares = shares_of(np.maximum(counts, 0.0))
    crowds = [
        np.sum(np.prod(recounted(shares, scale, each), axis=-2) ** 2, axis=-1) for each in scales
    ]
    return [scales[index] for index in np.argmin(crowds, axis=0)]
