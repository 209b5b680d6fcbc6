"""ROC and precision-recall curves of a histogram between the borders of its cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Floats
from tacit.metrics.cells import binning
from tacit.metrics.cells.score_distribution import ScoreDistribution, rising_fractions
from tacit.results.curves.histogram import Histogram

PLACES_IN_CELL = 8
"""Number of points a cell at which curves are computed; between them they are linear."""


@dataclass(frozen=True, eq=False)
class SmoothCurves:
    """Curves through both classes' distribution functions, which are monotone cubics in each cell.

    The area between such a curve and the records' curve is smaller than that of linear pieces
    between the borders of cells, or of buckets. Its noise is that at these borders.

    Parameters
    ----------
    thresholds : ascending scores, shape (T,); infinite at open ends.
    false_positive_rate, true_positive_rate : rates of calling scores positive from there on,
        falling from 1 to 0, shape (T,).
    positives, negatives : the estimated class sizes.

    Examples
    --------
    >>> rates = np.array([1.0, 0.5, 0.0])
    >>> curves = SmoothCurves(np.array([0.0, 0.5, 1.0]), rates**2, rates, 100.0, 300.0)
    >>> curves.recall_at([0.25, 0.625]).tolist(), curves.precision_at([0.5, 1.0]).tolist()
    ([0.5, 0.75], [0.4, 0.25])
    """

    thresholds: Floats
    false_positive_rate: Floats
    true_positive_rate: Floats
    positives: float
    negatives: float

    @classmethod
    def of(cls, histogram: Histogram) -> SmoothCurves:
        """Through the counts of both classes at the borders of cells.

        Noisy cells are merged to as many equi-depth ones as the counts support: where hardly any
        record scores, noise would look like records.
        """
        counts = histogram.counts
        cells = counts.shape[-1]
        starts = np.arange(cells)
        if not histogram.noise.exact:
            supported = max(histogram.supported, 1)
            starts = binning.equi_depth_starts(counts.sum(axis=0), supported)
        borders, runs = starts[1:] / cells, binning.merge(counts, starts)
        places = np.linspace(0.0, 1.0, PLACES_IN_CELL * cells + 1)
        below = [_below(each, borders, places) for each in runs]
        # a position of 1 is a score in the last cell, and no threshold above it
        below[0][-1] = below[1][-1] = 1.0
        positives, negatives = np.maximum(counts.sum(axis=-1), 0.0).tolist()
        thresholds = histogram.axis.scale.scores(places)
        return cls(thresholds, 1 - below[1], 1 - below[0], positives, negatives)

    def recall_at(self, false_positive_rates: ArrayLike) -> Floats:
        """The ROC curve: the recall at these false-positive rates, from 0 to 1, any shape."""
        across, up = np.flip(self.false_positive_rate), np.flip(self.true_positive_rate)
        return np.interp(np.asarray(false_positive_rates, dtype=np.float64), across, up)

    def precision_at(self, recalls: ArrayLike) -> Floats:
        """The precision-recall curve: the precision at these recalls, above 0 to 1, any shape."""
        wanted = np.asarray(recalls, dtype=np.float64)
        across, up = np.flip(self.false_positive_rate), np.flip(self.true_positive_rate)
        hit = self.positives * wanted
        called = hit + self.negatives * np.interp(wanted, up, across)
        return np.divide(hit, called, out=np.full_like(called, np.nan), where=called > 0)


def _below(runs: Floats, borders: Floats, places: Floats) -> Floats:
    """The share of a class below every position."""
    if not borders.size:
        return places.copy()
    return ScoreDistribution(borders, rising_fractions(runs)[1:-1]).at(places)
