"""Figures at a threshold that the counts themselves choose: a specificity, a share of traffic.

The area under a part of the ROC curve ends at one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from tacit.arrays import Floats
from tacit.metrics.cells.score_distribution import rising_fractions
from tacit.metrics.functional import Functional, above_middle, both

LEAST_PART = 1e-4
"""Least part, on either side, whose normal quantile is taken."""


def quantiles(cells: Floats, shares: Floats) -> Floats:
    """Where so large a part of the records lies above, as numbers of cells from 0 to B.

    Noisy cumulative counts are made to rise; between cells' borders they rise linearly.

    Parameters
    ----------
    cells : records in each cell, shape (B,).
    shares : parts from 0 to 1, shape (T,).

    Examples
    --------
    >>> quantiles(np.array([2.0, 2.0]), np.array([0.25, 0.5])).tolist()
    [1.5, 1.0]
    """
    below = rising_fractions(cells)
    rises = np.concatenate(([True], np.diff(below) > 0))
    return np.interp(1 - shares, below[rises], np.flatnonzero(rises).astype(np.float64))


def reaching_places(places: Floats, cells: int) -> Floats:
    """The part of each cell that lies above each place, shape (T, B)."""
    return np.clip(np.arange(1, cells + 1) - places[:, np.newaxis], 0.0, 1.0)


def rate_at_rate(
    counts: Floats, fixed: Floats, read: Floats, shares: Floats, errors: Floats
) -> Functional:
    """The part of some records above the threshold that a given part of others reaches.

    With ``fixed`` the negatives and ``read`` the positives, the sensitivity at a specificity. A
    record that raises the given part moves the threshold, and so the figure by the slope of one
    part over the other (``_slopes``).

    The records' own figure climbs in steps. An error e of the given part moves the threshold past
    ``n_c`` records of each class c, whose numbers vary by ``n_c``. So the figure departs from its
    slope by ``sum_c n_c (r_c / R - slope f_c / F)^2`` with the classes' weights r and f in the
    resulting and in the given part, of R and F records. A normal error has the mean size
    ``sqrt(2 / pi)`` of its standard deviation.

    Parameters
    ----------
    counts : shape (2, B).
    fixed, read : the weights of the classes in the given and in the resulting part, shape (2,).
    shares : the given parts, shape (T,).
    errors : the standard deviations by noise of the given parts at fixed thresholds, shape (T,).
    """
    given, other = fixed @ counts, read @ counts
    places = quantiles(given, shares)
    above = reaching_places(places, counts.shape[-1])
    value = above @ other / other.sum()
    inside = np.clip(shares, LEAST_PART, 1 - LEAST_PART)
    reach = np.minimum(inside, 1 - inside) / 2
    ends = [
        reaching_places(quantiles(given, end), counts.shape[-1])
        for end in (inside - reach, inside + reach)
    ]
    slope = _slopes(inside, reach, value, [end @ other / other.sum() for end in ends])
    reached = (above - value[:, np.newaxis]) / other.sum()
    moved = (above - shares[:, np.newaxis]) / given.sum() * slope[:, np.newaxis]
    gradient = by_class(read, reached) - by_class(fixed, moved)
    # the classes' records that the threshold passes, shape (T, 2)
    part = np.sqrt(2 / np.pi) * errors / (2 * reach)
    passed = np.maximum((ends[1] - ends[0]) @ counts.T, 0.0) * part[:, np.newaxis]
    steps = read / other.sum() - slope[:, np.newaxis] * fixed / given.sum()
    rough = np.sqrt(np.sum(passed * steps**2, axis=-1))
    return Functional(value, gradient, fewer_side(fixed, above, shares), above, rough)


def _slopes(shares: Floats, reach: Floats, values: Floats, beside: Sequence[Floats]) -> Floats:
    """The slopes of the resulting over the given part, shape (T,), at least 0.

    Between normal distributions of scores ``z(value) = a + b z(share)`` with z the normal quantile
    (Zhou, Obuchowski and McClish 2011, section 4.2). So b is taken between parts that lie half of
    the smaller side away, whose difference stands out from its noise, and the slope is
    ``b phi(z(value)) / phi(z(share))``.

    Parameters
    ----------
    shares, values : the given parts, inside (0, 1), and the resulting ones.
    reach : how far away b is taken.
    beside : the resulting parts there, below and above.
    """
    low, high, at = (
        scipy.special.ndtri(np.clip(part, LEAST_PART, 1 - LEAST_PART)) for part in (*beside, values)
    )
    near, far, given = (scipy.special.ndtri(shares + off) for off in (-reach, reach, 0.0))
    rise = np.maximum((high - low) / (far - near), 0.0)
    # phi(x) / phi(y) = exp((y^2 - x^2) / 2)
    return np.asarray(rise * np.exp((given**2 - at**2) / 2))


def fewer_side(weights: Floats, above: Floats, shares: Floats) -> Floats:
    """The weights of the records on the side of a quantile that has fewer, shape (T, 2, B).

    A quantile is known only where these stand out from their noise.
    """
    return by_class(weights, np.where(shares[:, np.newaxis] <= 1 / 2, above, 1 - above))


def share_above(counts: Floats, weights: Floats, above: Floats) -> Functional:
    """The part of the records, of classes with these weights, that lies above; shape (T,)."""
    chosen = weights @ counts
    value = above @ chosen / chosen.sum()
    return Functional(
        value, by_class(weights, (above - value[:, np.newaxis]) / chosen.sum()), None, above
    )


def separation(counts: Floats, places: Floats) -> Functional:
    """Sensitivity less the false-positive rate from each of these places on, shape (T,).

    Its largest value over all places is the Kolmogorov-Smirnov distance of the classes.

    Examples
    --------
    >>> separation(np.array([[1.0, 3.0], [3.0, 1.0]]), np.array([0.0, 1.0])).value.tolist()
    [0.0, 0.5]
    """
    above = reaching_places(places, counts.shape[-1])
    up = share_above(counts, np.array([1.0, 0.0]), above)
    across = share_above(counts, np.array([0.0, 1.0]), above)
    return Functional(up.value - across.value, up.gradient - across.gradient, None, above)


def partial_auc(counts: Floats, largest: float) -> Functional:
    """The area under the ROC curve from false-positive rate 0 to ``largest``.

    Records lie evenly in their cells, so the curve is linear between borders. The influences
    are those of ``mean over negatives of max(f - FPR, 0)``: a positive at the false-positive rate
    u adds ``max(f - u, 0)``, a negative above the cut the positives above it less those above the
    cut.

    Examples
    --------
    >>> counts = np.array([[0.0, 1.0], [1.0, 1.0]])
    >>> partial_auc(counts, 0.5).value.tolist(), partial_auc(counts, 1.0).value.tolist()
    ([0.25], [0.75])
    """
    up, across = (above_middle(cells) / cells.sum() for cells in counts)
    cut = reaching_places(quantiles(counts[1], np.array([largest])), counts.shape[-1])[0]
    reached = float(cut @ counts[0] / counts[0].sum())
    share = counts[1] / counts[1].sum()
    inside = (cut > 0) & (cut < 1)
    # negatives of the cut cell above the cut see half of the positives there above the cut
    positives_above = up - (1 - cut) * counts[0] / counts[0].sum() / 2
    left = largest - float(np.sum(cut * share))
    value = float(np.sum(cut * share * positives_above)) + left * reached
    won = np.where(inside, cut**2 * share / 2, np.maximum(largest - across, 0.0))
    by_positive = won - value
    by_negative = cut * (positives_above - reached) + largest * reached - value
    gradient = both(by_positive / counts[0].sum(), by_negative / counts[1].sum())
    return Functional(np.array([value]), gradient[np.newaxis], None, None)


def standardised_partial_auc(counts: Floats, largest: float) -> Functional:
    """The same on McClish's (1989) scale: 1/2 for guessing and 1 for the largest possible area."""
    area = partial_auc(counts, largest)
    least, most = largest**2 / 2, largest
    value = (1 + (area.value - least) / (most - least)) / 2
    return Functional(value, area.gradient / (most - least) / 2)


def by_class(weights: Floats, cells: Floats) -> Floats:
    """Weights of both classes, shape (T, 2, B)."""
    return both(weights[0] * cells, weights[1] * cells)
