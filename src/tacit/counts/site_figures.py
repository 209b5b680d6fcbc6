"""Figures of every client that released its own counts, and how clients differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from tacit.arrays import Floats
from tacit.data import units
from tacit.metrics import logistic
from tacit.metrics.sites import LEAST_SITES
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.estimate import Estimate
from tacit.results.figure import AUC_FIGURE, class_too_small, is_class_too_small
from tacit.results.parts import SiteFigure, Sites
from tacit.results.server_result import ServerResult

MAX_SITES = 200
"""Most clients that are compared one by one."""

INTERCEPT, SLOPE = "calibration intercept", "calibration slope"

NO_LINE = "the noise leaves no line: the equations' curvature does not stand clear of it"


@dataclass(frozen=True, eq=False)
class ClientCells:
    """Both classes' noisy cells of every client.

    Parameters
    ----------
    positives, negatives : shape (K, B), of equal cells of positions.
    variance : of a weighted sum of one client's cells of one class, weights of shape (B,).
    """

    positives: Floats
    negatives: Floats
    variance: Callable[[Floats], float]


def has_sites(clients: int) -> bool:
    """Whether so many clients are compared one by one."""
    return LEAST_SITES <= clients <= MAX_SITES


def sites_of(result: ServerResult, cells: ClientCells, axis: ScoreAxis) -> Sites:
    """The AUC, and calibration where scores state probabilities, of every client.

    Parameters
    ----------
    result : the AUC of every client, its errors and class sizes: arrays of shape (K,).
    cells : the cells that it came from.
    axis : the scores of the cells.
    """
    return Sites(lambda: _figures(result, cells, axis))


def _figures(result: ServerResult, cells: ClientCells, axis: ScoreAxis) -> tuple[SiteFigure, ...]:
    reasons = _too_small(result)
    known = result.within(AUC_FIGURE.limits).estimates()
    aucs = [
        Estimate.absent(reason) if reason else auc
        for reason, auc in zip(reasons, known, strict=True)
    ]
    figures = [SiteFigure.of("AUC", "log-odds", aucs)]
    if axis.unit in (units.PROBABILITY, units.LOG_ODDS):
        figures += _calibrations(cells, axis, reasons)
    return tuple(figures)


def _too_small(result: ServerResult) -> list[str]:
    """Why a client has no figure; empty where it has one."""
    smaller = np.minimum(result.positives, result.negatives)
    errors = np.broadcast_to(result.positives_error, smaller.shape)
    return [
        class_too_small(size, error) if size <= 0 or is_class_too_small(size, error) else ""
        for size, error in zip(smaller.tolist(), errors.tolist(), strict=True)
    ]


def _calibrations(cells: ClientCells, axis: ScoreAxis, reasons: list[str]) -> list[SiteFigure]:
    middles = axis.middles(cells.positives.shape[-1])
    odds = scipy.special.logit(middles) if axis.unit == units.PROBABILITY else middles
    known = []
    classes = zip(cells.positives, cells.negatives, strict=True)
    for reason, counts in zip(reasons, classes, strict=True):
        line = None if reason else logistic.calibration_line(odds, *counts, cells.variance)
        absent = Estimate.absent(reason or NO_LINE)
        known.append([absent, absent] if line is None else [Estimate(*each) for each in line])
    named = zip((INTERCEPT, SLOPE), zip(*known, strict=True), strict=True)
    return [SiteFigure.of(name, "as it is", estimates) for name, estimates in named]
