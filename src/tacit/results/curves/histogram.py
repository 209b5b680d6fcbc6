"""A histogram of both classes' scores with its errors, and everything that follows from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.metrics import calibration as cal
from tacit.metrics import curves, functional, trees
from tacit.metrics.cells import binning
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.results import estimate as est
from tacit.results.curves import curve
from tacit.results.curves.calibrator import Calibrator
from tacit.results.curves.score_axis import EVEN_AXIS, ScoreAxis, in_unit_interval

MAX_CELLS = 2**14
"""The most cells that are written into a result."""

BY_LEVEL = ("variances", "assumed", "factors")
"""What the noise of a tree has for each level."""


@dataclass(frozen=True, eq=False)
class Histogram:
    """Estimated numbers of both classes in cells of scores.

    Everything here is computed from the estimates alone, and costs no further privacy. Errors are
    linearised; each figure carries its privacy error and its sampling error.

    Parameters
    ----------
    counts : positives, then negatives, in ``2**height`` cells, shape (2, B); may be negative.
    noise : the errors of the tree that the counts come from.
    supported : the number of equi-depth buckets that the counts support under this noise.
    buckets : the number of buckets of the curves and of the calibration figures.
    axis : the scores of the cells; equal cells of [0, 1] by default.
    """

    counts: Floats
    noise: trees.TreeNoise
    supported: int
    buckets: int
    axis: ScoreAxis = EVEN_AXIS

    @cached_property
    def edges(self) -> Floats:
        """The scores at the borders of the cells, shape (B+1,); infinite at open ends."""
        return self.axis.edges(self.counts.shape[-1])

    @property
    def states_probabilities(self) -> bool:
        """Whether a score is a probability or the log-odds of one, which calibration compares."""
        return self.axis.half is not None

    @cached_property
    def starts(self) -> binning.Starts:
        """The first cell of every equi-depth bucket."""
        return binning.equi_depth_starts(self.counts.sum(axis=0), self.buckets)

    @cached_property
    def cells(self) -> binning.ScoreCells:
        """The buckets' counts with the variance of their noise, for calibration.

        Scores are those of ``in_unit_interval``: for log-odds the probabilities that they state.
        """
        return self._score_cells(self.starts)

    @cached_property
    def finest(self) -> binning.ScoreCells:
        """The cells that calibration is measured on: all of them, where their counts are exact.

        Merging exact counts hides where in a bucket its records score. Noisy cells have to be
        merged, until a bucket stands out from its noise.
        """
        every = np.arange(self.counts.shape[-1])
        return self._score_cells(every) if self.noise.exact else self.cells

    def variance(self, weights: Floats) -> Floats:
        """The noise variance of weighted sums of the counts, weights of shape (..., 2, B)."""
        flat = weights.reshape(*weights.shape[:-2], -1)
        return self.noise.variance_of(flat, self.counts.ravel())

    def average_precision(self) -> est.Estimate:
        """The average precision over the buckets, or over all cells where counts are exact.

        The error of measuring on cells falls with the square of their width: it is estimated as a
        third of the change that merging them in pairs makes.
        """
        starts = binning.finest_starts(self.finest) if self.noise.exact else self.starts
        fine, coarse = (
            functional.average_precision(binning.merge(self.counts, some))
            for some in (starts, starts[::2])
        )
        hidden = abs(float(fine.value[0] - coarse.value[0])) / 3
        band = self._band(fine, starts)
        errors = float(band.privacy_error[0]), float(band.sampling_error[0]), hidden
        return est.Estimate(float(band.value[0]), *errors).within(curve.UNIT)

    def auc(self, buckets: int, density: bool = True) -> float:
        """The area of so many equi-depth buckets.

        Parameters
        ----------
        buckets : the number of buckets.
        density : take densities as linear inside a bucket; else pairs within one count a half.
        """
        merged = binning.merge(
            self.counts, binning.equi_depth_starts(self.counts.sum(axis=0), buckets)
        )
        area = curves.cell_area(merged[0], merged[1])
        return float(area + curves.density_correction(merged[0], merged[1]) if density else area)

    def certain_range(self) -> tuple[float, float]:
        """The AUCs of all placements of the records within their cells; noise adds to that.

        Pairs of both classes in one cell may be won or lost: half their share on either side
        (``sum p_i n_i / (2 P N)``).
        """
        positives, negatives = self.counts
        if min(positives.sum(), negatives.sum()) <= 0:
            return (math.nan, math.nan)
        middle = float(curves.cell_area(positives, negatives))
        pairs = positives.sum() * negatives.sum()
        reach = max(float(np.sum(positives * negatives) / 2 / pairs), 0.0)
        return (middle - reach, middle + reach)

    def roc(self) -> curve.Curve:
        """The ROC curve at the buckets' borders, with privacy and sampling errors."""
        across, up = self._across, self._borders["recall"].falling()
        errors = across.privacy_error, up.privacy_error, across.sampling_error, up.sampling_error
        return curve.Curve(self.edges[self.starts], across.value, up.value, *errors)

    def precision_recall(self) -> curve.PrecisionRecall:
        """Precision and recall at the buckets' borders."""
        starts = self.starts
        return curve.PrecisionRecall(
            self.edges[starts],
            self._borders["recall"].falling(),
            self._borders["precision"].within(),
        )

    def rates(self) -> dict[str, curve.Band]:
        """Every rate of ``at`` at the buckets' borders; recall and specificity as on the curves."""
        made = {name: band.within() for name, band in self._borders.items()}
        recall, specificity = self._borders["recall"].falling(), self._across.complement()
        return made | {"recall": recall, "specificity": specificity}

    def reliability(self) -> curve.Reliability:
        """The share of positives in every bucket and the mean probability that scores state.

        Real numbers state none, and the mean is NaN there. Sampling errors are taken with two
        records of each class added, as in Agresti and Coull's interval (1998): a bucket of
        positives alone does not show that there are no negatives.
        """
        starts, merged = self.starts, self._merged
        share = self._band(
            functional.positive_predictive_value(merged, np.eye(starts.size)), starts
        )
        positives, totals = np.maximum(merged[0], 0.0), merged.sum(axis=0)
        likely = (positives + 2) / (np.maximum(totals, positives) + 4)
        sampling = np.sqrt(likely * (1 - likely) / np.maximum(totals, 1.0))
        ends = np.append(self.edges[starts[1:]], self.edges[-1])
        observed = curve.Band(share.value, share.privacy_error, sampling).within()
        return curve.Reliability(self.edges[starts], ends, self._stated(starts), totals, observed)

    def calibration(self) -> cal.CalibrationFigures:
        """How far the probabilities that scores state are from the shares of positives.

        Over the finest cells. All figures are NaN for real numbers, which state no probability.
        """
        known = self.states_probabilities
        return cal.calibration_figures(self.finest) if known else cal.NO_FIGURES

    def calibrator(self, method: str = "bbq") -> Calibrator:
        """A map from scores of this unit to calibrated probabilities, fitted on the buckets.

        Raises
        ------
        ValueError : for Platt's method where scores are real numbers: it needs log-odds.
        """
        return Calibrator.from_cells(self.cells, method, unit=self.axis.unit)

    def debiased_ece(self) -> cal.DebiasedError:
        """The expected calibration error over the buckets, less what privacy and sampling add.

        Errors of buckets inflate an average of absolute differences. A bucket's p positives and n
        negatives are taken for Poisson counts: where its share is its score, that is binomial
        sampling. Real numbers state no probability, and have no such error: it is NaN.
        """
        if not self.states_probabilities:
            return cal.DebiasedError(math.nan, math.nan)
        cells = self.cells
        variances = cells.variance, 2 * cells.variance
        buckets = binning.Buckets(cells.predicted, cells.positives, cells.totals, *variances)
        return cal.debiased_ece(buckets.sampled())

    def to_dict(self) -> dict[str, Any]:
        """The curves and figures as plain numbers and lists."""
        return {
            "cells": int(self.counts.shape[-1]),
            "buckets": int(self.starts.size),
            "supported_buckets": self.supported,
            "average_precision": self.average_precision().to_dict(),
            "certain_range": est.numbers(self.certain_range()),
            "precision_recall": self.precision_recall().to_dict(),
            "rates": curve.rates_entry(self.edges[self.starts], self.rates()),
            "reliability": self.reliability().to_dict(),
            "calibration": self._calibration_entry(),
        }

    def stored(self) -> dict[str, Any]:
        """The ``histogram`` entry, which ``restored`` reads. It says nothing new: all was released.

        A result of more than ``MAX_CELLS`` cells has only the figures that follow from them.
        """
        scale = self.axis.scale
        by_level = {name: getattr(self.noise, name) for name in BY_LEVEL}
        return {
            "counts": self.counts.tolist(),
            "supported": self.supported,
            "buckets": self.buckets,
            "noise": {
                # infinity, which an unobserved level has, is null
                **{name: None if x is None else est.numbers(x) for name, x in by_level.items()},
                "extra": float(self.noise.extra),
                "centred": bool(self.noise.centred),
            },
            "axis": {
                "knots": scale.borders.tolist(),
                "low": scale.low,
                "high": scale.high,
                "unit": self.axis.unit,
            },
        }

    @classmethod
    def restored(cls, entry: Mapping[str, Any]) -> Histogram:
        """The histogram of an entry that ``stored`` made.

        Raises
        ------
        ValueError : for an entry whose parts do not fit together.
        """
        noise, axis, (positives, negatives) = entry["noise"], entry["axis"], entry["counts"]
        if len(positives) != len(negatives):
            sizes = f"{len(positives)} and {len(negatives)}"
            raise ValueError(f"both classes must have as many cells, got {sizes}")
        counts = np.array([positives, negatives], dtype=np.float64)
        by_level = {name: _by_level(noise[name]) for name in BY_LEVEL}
        # the root, both classes, and every level below them
        for each in by_level.values():
            if each is not None and 2 ** (each.size - 1) != counts.size:
                raise ValueError(f"{counts.size} cells cannot have {each.size} levels")
        tree = trees.TreeNoise(**by_level, extra=noise["extra"], centred=noise["centred"])
        scale = ScoreScale(np.array(axis["knots"], dtype=np.float64), axis["low"], axis["high"])
        return cls(
            counts, tree, entry["supported"], entry["buckets"], ScoreAxis(scale, axis["unit"])
        )

    def _calibration_entry(self) -> dict[str, float | None]:
        if not self.states_probabilities:
            return {}
        figures, honest = self.calibration(), self.debiased_ece()
        return est.entry_of(figures, figures.__dataclass_fields__) | {
            "debiased_ece": est.finite(honest.value),
            "debiased_ece_error": est.finite(honest.standard_error),
            "width_error": est.finite(cal.width_error(self.finest)),
        }

    def _score_cells(self, runs: binning.Starts) -> binning.ScoreCells:
        """The counts of runs of cells that start here, with the variance of their noise.

        Runs stay apart where their scores differ as numbers from 0 to 1: far out, several cells may
        have one double for an edge. A run's centre is the mean of its records' scores.
        """
        lowest = in_unit_interval(self.edges[runs], self.axis.unit)
        apart = (np.diff(lowest, prepend=-1.0) > 0) & (lowest < 1)
        starts, edges = runs[apart], np.append(lowest[apart], 1.0)
        totals, noise = self.counts.sum(axis=0), None
        if not self.noise.exact:
            alone = np.eye(starts.size)[:, np.newaxis, :] * np.array([[1.0], [0.0]])
            sizes = np.diff(starts, append=totals.size)
            noise = self.variance(np.repeat(alone, sizes, axis=-1))
        middles = self.axis.stated(totals.size)
        single = starts.size == totals.size
        means = middles if single else binning.bucket_means(totals, middles, starts)
        centres = binning.within_cells(means, edges)
        positives, negatives = binning.merge(self.counts, starts)
        return binning.ScoreCells(edges, positives, negatives, noise, centres)

    def _stated(self, starts: binning.Starts) -> Floats:
        """The mean probability that the scores of each bucket state; NaN where they state none."""
        if not self.states_probabilities:
            return np.full(starts.size, np.nan)
        totals = self.counts.sum(axis=0)
        return binning.bucket_means(totals, self.axis.stated(totals.size), starts)

    @property
    def _merged(self) -> Floats:
        """Both classes' counts in the buckets."""
        return binning.merge(self.counts, self.starts)

    @cached_property
    def _borders(self) -> dict[str, curve.Band]:
        """Every written rate at every bucket's lower border, as it comes."""
        above = np.triu(np.ones((self.starts.size, self.starts.size)))
        made = curve.written_rates(self._merged, above)
        return {name: self._band(rate, self.starts) for name, rate in made.items()}

    @property
    def _across(self) -> curve.Band:
        """The false-positive rates there, which fall."""
        return self._borders["specificity"].complement().falling()

    def _band(self, rate: functional.Functional, starts: binning.Starts) -> curve.Band:
        """A rate of the buckets that start at these cells, with its errors."""
        known, error = np.isfinite(rate.value), np.zeros_like(rate.value)
        if not self.noise.exact:
            gradient = np.where(known[..., np.newaxis, np.newaxis], rate.gradient, 0.0)
            sizes = np.diff(starts, append=self.counts.shape[-1])
            error = np.sqrt(self.variance(np.repeat(gradient, sizes, axis=-1)))
        sampling = rate.sampling_error(binning.merge(self.counts, starts))
        return curve.Band(rate.value, np.where(known, error, np.nan), sampling)


def _by_level(values: list[float | None] | None) -> Any:
    """Numbers of each level, of which null is infinite; None where there are none."""
    if values is None:
        return None
    return np.array([math.inf if value is None else value for value in values])
