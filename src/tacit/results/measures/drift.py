"""How far scores moved between two releases of histograms, less what noise adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats
from tacit.metrics import functional, operating_points
from tacit.results.curves.histogram import Histogram
from tacit.results.estimate import REACH, Estimate, Interval
from tacit.results.measures.figures import MOST_RELATIVE_NOISE, too_few_records
from tacit.results.measures.view import CellView

EMPTY_GROUP = "a group of scores has no record in one release, so its logarithm has no value"
LOST_GROUP = "a group of scores does not stand out from the noise in one release"
GROUPS = 10
"""Number of groups of equally many records of the first release."""
LEAST_PART = 1e-6
"""Least part of the records in a group for its logarithm."""
DEGREE = 4
"""Degree of the polynomial around which noise is drawn again."""


@dataclass(frozen=True)
class ReleaseDrift:
    """The drift of all records' scores from one release to another.

    Parameters
    ----------
    population_stability : the population stability index over ten groups.
    kolmogorov_smirnov : the largest difference of both distribution functions at their borders.
    """

    population_stability: Estimate
    kolmogorov_smirnov: Estimate


def drift_between(first: Histogram, second: Histogram) -> ReleaseDrift:
    """The drift between two releases with the same scale of scores, with independent noise.

    Groups are ten parts of equally many records of the first release; their borders are held fixed
    and lie at borders of cells.

    Raises
    ------
    ValueError : for other cells, or a class with too few records.
    """
    views = CellView.of(first), CellView.of(second)
    size = min(view.size for view in views)
    one, two = (view.merged(size) for view in views)
    same = np.array_equal(one.axis.edges(size), two.axis.edges(size))
    if not same or one.axis.unit != two.axis.unit:
        raise ValueError("releases with other scales or units of scores have no drift")
    for view in (one, two):
        reason = too_few_records(view)
        if reason is not None:
            raise ValueError(f"no drift: a release has {reason}")
    borders = np.round(
        operating_points.quantiles(one.counts.sum(axis=0), np.arange(GROUPS - 1, 0, -1) / GROUPS)
    )
    reached = operating_points.reaching_places(np.unique(np.concatenate([[0.0], borders])), size)
    members = reached - np.vstack([reached[1:], np.zeros(size)])
    parts = _parts(one, members), _parts(two, members)
    reason = _lost_group(*parts)
    index = Estimate.absent(reason) if reason else population_stability(*parts)
    return ReleaseDrift(index, largest_shift(*parts))


def _lost_group(*releases: Parts) -> str:
    """Why the index has no finite value or no known error; empty where it has."""
    for release in releases:
        errors = np.sqrt(np.diag(release.covariance))
        if np.any(errors > MOST_RELATIVE_NOISE * release.parts):
            return LOST_GROUP
        if np.any(release.parts <= 0):
            return EMPTY_GROUP
    return ""


def _parts(view: CellView, members: Floats) -> Parts:
    figure = functional.ratio(
        view.counts, functional.both(members, members), np.ones((members.shape[0], 2, 1))
    )
    covariance = view.noise_covariance(figure.gradient)
    return Parts(figure.value, covariance, float(view.counts.sum()))


def _measure(value: float, biases: Sequence[float], errors: Sequence[float]) -> Estimate:
    """A drift less its bias; it is never below 0.

    Parameters
    ----------
    value : the figure as it comes.
    biases : what noise, and noise and sampling, add to it on average.
    errors : its standard deviations by noise, and by noise and sampling.
    """
    centre = value - biases[0]
    shown = max(centre, 0.0)
    return Estimate(
        shown,
        errors[0],
        float(np.sqrt(max(errors[1] ** 2 - errors[0] ** 2, 0.0))),
        bias=shown - centre,
        intervals=(_around(centre, errors[0]), _around(value - biases[1], errors[1])),
    )


def _around(centre: float, error: float) -> Interval:
    return Interval(max(centre - REACH * error, 0.0), max(centre + REACH * error, 0.0))


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a release's records in the groups that both releases share.

    Parameters
    ----------
    parts : shape (G,).
    covariance : of their noise, shape (G, G).
    records : the number of records.
    """

    parts: Floats
    covariance: Floats
    records: float

    @property
    def sampling(self) -> Floats:
        """The covariance by sampling of multinomial parts, shape (G, G)."""
        kept = np.maximum(self.parts, 0.0)
        return (np.diag(kept) - np.outer(kept, kept)) / max(self.records, 1.0)


def population_stability(first: Parts, second: Parts) -> Estimate:
    """``sum (q - p) log(q / p)`` of two releases' parts, with what noise adds in second order.

    The index has the gradients ``log(p / q) + 1 - q / p`` in p and ``log(q / p) + 1 - p / q`` in q,
    and the second derivatives ``1 / p + q / p^2`` and ``1 / q + p / q^2``. Noise of covariance C
    adds half of their sum over its variances. It varies by ``g' C g`` of both releases, and by
    ``2 tr(D C D C)``, C the covariance of the difference and ``D = diag(2 / (p + q))``.
    """
    one, two = (np.maximum(each.parts, LEAST_PART) for each in (first, second))
    value = float(np.sum((two - one) * np.log(two / one)))
    middle = (one + two) / 2
    slopes = np.log(one / two) + 1 - two / one, np.log(two / one) + 1 - one / two
    bends = 1 / one + two / one**2, 1 / two + one / two**2
    biases, errors = [], []
    for extra in (0.0, 1.0):
        pair = [each.covariance + extra * each.sampling for each in (first, second)]
        excess = sum(
            float(np.diag(each) @ bend) / 2 for each, bend in zip(pair, bends, strict=True)
        )
        # the difference itself holds noise: its square is too long by the excess
        length = max(value - excess, 0.0) / value if value > 0 else 0.0
        linear = sum(float(slope @ each @ slope) for each, slope in zip(pair, slopes, strict=True))
        weighted = (pair[0] + pair[1]) / middle[:, np.newaxis]
        biases.append(excess)
        errors.append(float(np.sqrt(length * linear + 2 * np.sum(weighted * weighted.T))))
    return _measure(value, biases, errors)


def largest_shift(first: Parts, second: Parts, draws: int = 400, seed: int = 0) -> Estimate:
    """The largest difference of both cumulative parts, with what noise adds by simulation.

    Noise of the known covariance is drawn again around the difference shrunk by what it exceeds its
    noise; the mean excess is the bias. A simulation of known noise costs no privacy.
    """
    gap = np.cumsum(second.parts - first.parts)
    value = float(np.abs(gap).max())
    noise = first.covariance + second.covariance
    whole = noise + first.sampling + second.sampling
    source = np.random.default_rng(seed)
    largest = [_largest_again(gap, covariance, draws, source) for covariance in (noise, whole)]
    biases, errors = zip(*largest, strict=True)
    return _measure(value, biases, errors)


def _largest_again(
    gap: Floats, covariance: Floats, draws: int, source: np.random.Generator
) -> tuple[float, float]:
    """The mean excess and the deviation of the largest difference with noise drawn again."""
    if not covariance.any():
        return 0.0, 0.0
    sums = np.cumsum(np.cumsum(covariance, axis=0), axis=1)
    excess = float(np.trace(sums))
    square = float(gap @ gap)
    base = _smooth(gap) * np.sqrt(max(square - excess, 0.0) / square) if square > 0 else gap
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    noise = np.cumsum(source.standard_normal((draws, gap.size)) @ root.T, axis=-1)
    again = np.abs(base + noise).max(axis=-1)
    return float(again.mean() - np.abs(base).max()), float(again.std())


def _smooth(gap: Floats) -> Floats:
    """A polynomial through the differences: noise would make their top less flat than it is."""
    steps = np.linspace(-1, 1, gap.size + 1)
    powers = np.vander(steps, min(DEGREE, gap.size) + 1)
    values = np.concatenate([[0.0], gap])
    return (powers @ np.linalg.lstsq(powers, values, rcond=None)[0])[1:]
