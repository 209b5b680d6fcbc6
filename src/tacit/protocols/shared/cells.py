"""Estimates from noisy counts in score cells: the AUC, its errors, the ROC curve, and warnings.

How many records, and positives among them, clients have in the cells between thresholds.

Cells whose edges the server publishes as scores, from noisy counts alone.

The edges are values like any other that a server chooses: whatever they are, a record counts in
one cell, and a function of a score has the same bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.clients import Clients
from tacit.metrics import curves
from tacit.metrics.cells.score_scale import CentredScale, ScoreScale
from tacit.protocol.conversation import Query
from tacit.protocol.scaled import ScaledScores, check_scores_in_unit_interval
from tacit.protocols.shared.areas import hidden_variance
from tacit.protocols.shared.levels import CellNoise
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


@dataclass(frozen=True, eq=False)
class Strata:
    """Parts of the records each of which is counted separately; every record is in one.

    Parameters
    ----------
    count : how many there are.
    of_record : the stratum of every record, shape (M,); 0 where there is one, or records are not at
        hand.
    """

    count: int = 1
    of_record: Integers | int = 0


ALL_RECORDS = Strata()
"""One stratum."""


def cell_counts(
    clients: Clients, thresholds: Floats, labels: NDArray[np.int8] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positives and records of every client in every cell, shapes (..., T, K) and (T, K).

    Cell ``j`` holds the scores from ``thresholds[j]`` up to the next threshold. A first threshold
    of minus infinity makes room for every score.

    Parameters
    ----------
    clients : whose records are counted.
    thresholds : ascending, shape (T,).
    labels : shape (..., M); None for the records' own, which are counted by a statement where
        records are not at hand.

    Raises
    ------
    DataError : for a score outside [0, 1], naming the client and the score.
    """
    if np.isfinite(thresholds[0]):
        check_scores_in_unit_interval(clients)
    if labels is None and not clients.at_hand:
        positives, negatives = clients.counts_in(thresholds)[:, 1:]
        return positives, positives + negatives
    labels = clients.labels if labels is None else labels
    cells = thresholds.size
    cell = np.searchsorted(thresholds, clients.scores, side="right") - 1
    index = cell * clients.count + clients.client_of_record
    shape = (cells, clients.count)
    records = np.bincount(index, minlength=cells * clients.count).reshape(shape)
    if labels.ndim == 1:
        positives = np.bincount(index[labels == 1], minlength=cells * clients.count)
        return positives.reshape(shape).astype(np.int64), records.astype(np.int64)
    order = np.argsort(index, kind="stable")
    filled = np.flatnonzero(records.ravel())
    starts = np.concatenate(([0], np.cumsum(records.ravel()[filled])[:-1]))
    replicated = np.zeros((*labels.shape[:-1], cells * clients.count), dtype=np.int64)
    replicated[..., filled] = np.add.reduceat(labels[..., order], starts, axis=-1, dtype=np.int64)
    return replicated.reshape(*labels.shape[:-1], *shape), records.astype(np.int64)


KNOTS = "knots"
"""Field of a query: the scores at the inner edges of its cells."""


def published_scale(query: Query, cells: int) -> ScoreScale | None:
    """The scale of the cell edges that a query publishes; None where it publishes none.

    Raises
    ------
    ValueError : for cell edges that are not one fewer than the cells, finite and ascending.
    """
    knots = query.broadcast.get(KNOTS)
    return None if knots is None else scale_of_knots(query.protocol, knots, cells)


def scale_of_knots(protocol: ScaledScores, knots: Any, cells: int) -> ScoreScale:
    """The scale whose equal cells end at these cell edges.

    Raises
    ------
    ValueError : for cell edges that are not one fewer than the cells, finite and ascending.
    """
    received = (getattr(knots, "dtype", type(knots)), np.shape(knots))
    if received != (np.dtype(np.float64), (cells - 1,)):
        raise ValueError(f"{KNOTS} must be {cells - 1} 64-bit floats, got {received}")
    base = protocol.score_scale
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
