"""The scores on which tables are measured.

The papers' records are not published, only their numbers and their exact AUCs, which differ between
three epochs of training and two sizes of the evaluation set. So scores of the right numbers of both
classes are drawn, either from one real set of scores or from a binormal model; then one constant is
added to every positive's log-odds, found by bisection, so that the exact AUC is the paper's for
that epoch to one part in a million (or as close as few records allow). Scores are first clipped to
[1e-6, 1 - 1e-6], and stay inside (0, 1).
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from tacit.data.clients import Clients
from tacit.data.reading import read
from tacit.data.splitting import binormal_scores, resample_scores
from tacit_studies.references import fedauc as paper

Floats = NDArray[np.float64]
Labels = NDArray[np.int8]

EDGE = 1e-6
"""Smallest distance of a clipped score from 0 and 1; log-odds are taken after clipping."""

TOLERANCE = 5e-7
"""Bisection stops when the exact AUC is this close to the one wanted."""


@dataclass(frozen=True)
class EvaluationSet:
    """An evaluation set's class sizes, and its exact AUC at every epoch."""

    positives: int
    negatives: int
    auc: tuple[float, ...]

    @property
    def records(self) -> int:
        """M, the number of records."""
        return self.positives + self.negatives


SMALL = EvaluationSet(*paper.SMALL_SET, paper.SMALL_AUC)
LARGE = EvaluationSet(*paper.LARGE_SET, paper.LARGE_AUC)


@dataclass(frozen=True, eq=False)
class Scores:
    """Where scores come from: real ones, or a binormal model when none are given.

    Parameters
    ----------
    real : records whose scores are resampled.
    small, large : the evaluation sets to make; tests make smaller ones.

    Examples
    --------
    >>> from tacit.metrics.ranking import auc
    >>> scores, labels = Scores().draw(SMALL, epoch=0, seed=0)
    >>> scores.size, round(auc(scores, labels), 5)
    (458407, 0.74938)
    """

    real: Clients | None = None
    small: EvaluationSet = SMALL
    large: EvaluationSet = LARGE

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], score: str = "score", label: str = "label"
    ) -> Scores:
        """Real scores from a CSV or Parquet file."""
        return cls(read(path, score=score, label=label))

    def draw(self, wanted: EvaluationSet, epoch: int, seed: int) -> tuple[Floats, Labels]:
        """Scores and labels of an evaluation set at an epoch.

        With real scores the same records are drawn for every epoch, and only the shift differs.
        """
        area, sizes = wanted.auc[epoch], (wanted.positives, wanted.negatives)
        if self.real is None:
            scores, labels = binormal_scores(*sizes, area, seed)
        else:
            scores, labels = resample_scores(self.real.scores, self.real.labels, *sizes, seed)
        return with_auc(scores, labels, area), labels


def with_auc(scores: Floats, labels: Labels, area: float) -> Floats:
    """The scores with a constant added to the positives' log-odds, so that the AUC is ``area``."""
    odds = logit(np.clip(scores, EDGE, 1 - EDGE))
    positive = labels == 1
    odds[positive] += _shift(np.sort(odds[positive]), np.sort(odds[~positive]), area)
    shifted: Floats = expit(odds)
    return shifted


def _shift(positives: Floats, negatives: Floats, area: float) -> float:
    """Find the constant by bisection; the arrays are sorted, so that lookups stay in cache."""
    low, high = -40.0, 40.0
    while True:
        middle = (low + high) / 2
        shifted_area = _area(positives + middle, negatives)
        if abs(shifted_area - area) <= TOLERANCE or not low < middle < high:
            return middle
        low, high = (middle, high) if shifted_area < area else (low, middle)


def _area(positives: Floats, negatives: Floats) -> float:
    """The fraction of pairs whose positive scores higher; a tie counts one half."""
    below = np.searchsorted(negatives, positives, side="left").sum(dtype=np.int64)
    reached = np.searchsorted(negatives, positives, side="right").sum(dtype=np.int64)
    return int(below + reached) / (2 * positives.size * negatives.size)
