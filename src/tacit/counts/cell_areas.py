"""Estimates from noisy counts in score cells: the AUC, its errors, the ROC curve, and warnings."""

from __future__ import annotations

import math

import numpy as np
import scipy

from tacit.arrays import Floats
from tacit.counts.cell_levels import CellNoise
from tacit.counts.noisy_areas import hidden_variance
from tacit.metrics import curves
from tacit.results.curves.curve import Curve
from tacit.results.server_result import ServerResult

COARSE_CELLS = (
    "what the cells hide outweighs the privacy noise: use more cells, or map the scores by an "
    "agreed public function so that they spread over [0, 1]"
)


def independent_variance(positives: Floats, negatives: Floats, noise: CellNoise) -> Floats:
    """The AUC's variance when both classes' cells carry independent noise.

    The first order is the variance of the influences' weighted sums. Products of a positive and a
    negative cell's noise add half the product of the totals' variances over ``(P N)^2``: half of
    all pairs of cells count fully.
    """
    by_positive, by_negative = curves.cell_influences(positives, negatives)
    variance = noise.variance_of(by_positive) + noise.variance_of(by_negative)
    pairs = positives.sum(axis=-1, dtype=np.float64) * negatives.sum(axis=-1, dtype=np.float64)
    return variance + noise.total**2 / 2 / np.maximum(np.abs(pairs), 1.0) ** 2


def exchange_variance(positives: Floats, negatives: Floats, noise: CellNoise) -> Floats:
    """The AUC's variance when noise moves records from one class to the other within a cell."""
    by_positive, by_negative = curves.cell_influences(positives, negatives)
    return noise.variance_of(by_positive - by_negative)


def area_variance(adjacency: str, cells: tuple[Floats, Floats], noise: CellNoise) -> Floats:
    """The AUC's variance by what the noise hides: a label, or a record with its class and cell."""
    variance_of = exchange_variance if adjacency == "label" else independent_variance
    return variance_of(*cells, noise)


def result_from_cells(
    edges: Floats,
    cells: tuple[Floats, Floats],
    variance: Floats,
    noise: CellNoise,
    even: bool = False,
) -> ServerResult:
    """The area of noisy cells, with densities that are linear inside a cell.

    Parameters
    ----------
    edges : the lower edges of the cells, shape (B,).
    cells : positives and negatives in each cell, summed over clients, shape (..., B).
    variance : the AUC's variance by privacy noise, shape (...).
    noise : the noise in each class's cells.
    even : as ``hidden_variance`` takes it.
    """
    value = curves.cell_area(*cells) + curves.density_correction(*cells)
    cell_variance = hidden_variance(*cells, even)
    classes = cells[0].sum(axis=-1, dtype=np.float64), cells[1].sum(axis=-1, dtype=np.float64)
    single = np.ndim(value) == 0
    warnings = signal_warnings(value, classes, math.sqrt(noise.total)) if single else ()
    if single and math.sqrt(cell_variance) > math.sqrt(variance):
        warnings += (COARSE_CELLS,)
    return ServerResult(
        value=value,
        privacy_error=np.sqrt(variance),
        sampling_error=np.sqrt(curves.noisy_sampling_variance(*cells, value)),
        positives=classes[0],
        negatives=classes[1],
        positives_error=math.sqrt(noise.total),
        approximation_error=np.sqrt(cell_variance),
        roc=_curve_of_cells(edges, cells, noise) if single and np.isfinite(value) else None,
        warnings=warnings,
    )


def _curve_of_cells(edges: Floats, cells: tuple[Floats, Floats], noise: CellNoise) -> Curve:
    """Rates made monotone, which post-processing may; errors are those of the raw rates."""
    rates = []
    for counts in cells:
        total = max(float(counts.sum()), 1.0)
        rate = curves.counts_from_thresholds(counts) / total
        rates.append((falling(rate), np.sqrt(noise.rate_variance(rate)) / total))
    (up, up_error), (across, across_error) = rates
    return Curve(edges, across, up, across_error, up_error)


def falling(rate: Floats) -> Floats:
    """The nearest rates that fall with the threshold and stay in [0, 1]."""
    return np.clip(scipy.optimize.isotonic_regression(rate, increasing=False).x, 0.0, 1.0)


def signal_warnings(
    value: Floats, classes: tuple[Floats, Floats], total_error: float
) -> tuple[str, ...]:
    """The warning for noisy class totals without an AUC."""
    if np.isfinite(value):
        return ()
    return (
        "not enough signal at this epsilon: the noisy class totals are "
        f"{float(classes[0]):.1f} and {float(classes[1]):.1f}, with a standard error of "
        f"{total_error:.1f}; the predicted error of the AUC is above 0.5",
    )
