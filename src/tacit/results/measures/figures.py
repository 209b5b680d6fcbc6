"""How a figure of the counts becomes a measure: its errors, its intervals, or why it is absent."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats
from tacit.metrics import functional
from tacit.results.estimate import EVERYWHERE, REACH, Estimate, Interval
from tacit.results.measures.view import CellView

MOST_RELATIVE_NOISE = 0.25
"""Largest noise of a denominator, relative to it, at which a quotient is linearised."""
LEAST_RECORDS = 100
"""Least number of records of each class at which figures are given."""
NO_PROBABILITIES = "scores that are real numbers state no probability"
NO_FIT = "the counts determine no logistic fit: the noise is too large for them"
LOST_IN_NOISE = "the records that it divides by do not stand out from their noise"

Make = Callable[[CellView], functional.Functional | None]


@dataclass(frozen=True)
class Kind:
    """What is known of a figure besides its value.

    Parameters
    ----------
    limits : the least and the largest value that it can have.
    quotient : whether its denominator has a noise that counts, so that Fieller's interval is taken.
    at_threshold : whether a threshold cuts cells; else it changes smoothly with every score.
    """

    limits: tuple[float, float] = EVERYWHERE
    quotient: bool = False
    at_threshold: bool = False


SMOOTH = Kind()
RATE = Kind((0.0, 1.0), at_threshold=True)
BENEFIT = Kind((-math.inf, 1.0), at_threshold=True)
POSITIVE_RATIO = Kind((0.0, math.inf), quotient=True)
RATIO_AT_THRESHOLD = Kind((0.0, math.inf), quotient=True, at_threshold=True)


def too_few_records(view: CellView) -> str | None:
    """Why no figure is given where a class has too few records; None where both have enough."""
    for name, cells in zip(("positive", "negative"), view.counts, strict=True):
        if cells.sum() < LEAST_RECORDS:
            return (
                f"fewer than {LEAST_RECORDS} {name} records: {max(cells.sum(), 0):.0f} as estimated"
            )
    return None


def measured(
    view: CellView, make: Make, kind: Kind, thresholds: tuple[float | None, ...] = (None,)
) -> list[Estimate]:
    """The measures of a figure's values, one for each threshold."""
    figure = make(view)
    if figure is None:
        return [Estimate.absent(NO_FIT, threshold) for threshold in thresholds]
    privacy, sampling = view.privacy_error(figure), _sampling_error(view, figure, kind)
    placed, width = cell_errors(view, figure, make, kind)
    cells = np.hypot(placed, width)
    clear = stands_out(view, figure)
    around = None
    if kind.quotient and figure.base is not None:
        around = quotient_intervals(view, figure, figure.base, cells)
    made = []
    for index, threshold in enumerate(thresholds):
        value = float(figure.value[index])
        if not clear[index] or not math.isfinite(value):
            made.append(Estimate.absent(LOST_IN_NOISE, threshold))
            continue
        intervals = None
        if around is not None:
            data, population = (Interval(*each[index].tolist()) for each in around)
            intervals = data, population
        estimate = Estimate(
            value,
            float(privacy[index]),
            float(sampling[index]),
            float(cells[index]),
            intervals=intervals,
            threshold=threshold,
            placement_error=float(placed[index]),
        )
        made.append(estimate.within(kind.limits))
    return made


def quotient_intervals(
    view: CellView, figure: functional.Functional, weights: Floats, cells: Floats
) -> tuple[Floats, Floats]:
    """Fieller's intervals of a quotient about the records and the population, shape (T, 2) each.

    Parameters
    ----------
    weights : of the sum that it divides by, shape (T, 2, B).
    cells : its error by cells, shape (T,).
    """
    total = np.sum(weights * view.counts, axis=(-2, -1))
    known = np.where(total > 0, total, np.nan)[:, np.newaxis, np.newaxis]
    slopes, base = np.nan_to_num(figure.gradient), np.nan_to_num(weights / known)
    of_both, of_slopes, of_base = (
        view.noise_variance(each) for each in (slopes + base, slopes, base)
    )
    noise = of_slopes + cells**2, (of_both - of_slopes - of_base) / 2, of_base
    sampling = (
        np.sum(view.counts * pair, axis=(-2, -1)) for pair in (slopes**2, slopes * base, base**2)
    )
    both = tuple(each + more for each, more in zip(noise, sampling, strict=True))
    about = [
        np.stack(functional.fieller_bounds(figure.value, variance, crossed, bases, REACH), axis=-1)
        for variance, crossed, bases in (noise, both)
    ]
    return about[0], about[1]


def _sampling_error(view: CellView, figure: functional.Functional, kind: Kind) -> Floats:
    """The error by sampling, shape (T,); a rate of 0 or 1 has that of the rule of three.

    Of n records none of which is a miss, fewer than 3 in n are in the population, with 95 %.
    """
    error = figure.sampling_error(view.counts)
    if kind is not RATE or figure.base is None:
        return error
    records = np.maximum(np.sum(figure.base * view.counts, axis=(-2, -1)), 1.0)
    at_end = (figure.value <= 0) | (figure.value >= 1)
    return np.where(at_end, np.maximum(error, 3 / records / REACH), error)


def cell_errors(
    view: CellView, figure: functional.Functional, make: Make, kind: Kind
) -> tuple[Floats, Floats]:
    """What cells hide of a figure: by records' places, and by the cells' width, shape (T,) each.

    At a threshold, the records of the cut cell. Elsewhere, records anywhere in their cells, and a
    third of the change that merging cells in pairs makes: an error that falls with the square of
    the width is four times as large there.
    """
    if kind.at_threshold:
        return view.cut_errors(figure)
    placed = view.placement_error(figure)
    coarse = make(view.halved) if view.size >= 4 else None
    if coarse is None:
        return placed, np.zeros(placed.shape)
    return placed, np.abs(figure.value - coarse.value) / 3


def stands_out(
    view: CellView, figure: functional.Functional
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Whether each denominator is clear of its noise, so that a quotient may be linearised."""
    if figure.base is None or view.noise.exact:
        return np.ones(figure.value.shape, dtype=np.bool_)
    total = np.sum(figure.base * view.counts, axis=(-2, -1))
    error = np.sqrt(view.noise_variance(figure.base))
    return np.broadcast_to(error <= MOST_RELATIVE_NOISE * total, figure.value.shape)
