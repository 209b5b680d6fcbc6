"""How far scores moved between two releases of histograms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.measures import functional, operating_points
from tacit.metrics.measures.drift import Drift, Parts, largest_shift, population_stability
from tacit.results.curves.histogram import Histogram
from tacit.results.estimate import REACH, Estimate, Interval
from tacit.results.measures.figures import MOST_RELATIVE_NOISE, too_few_records
from tacit.results.measures.view import CellView

EMPTY_GROUP = "a group of scores has no record in one release, so its logarithm has no value"
LOST_GROUP = "a group of scores does not stand out from the noise in one release"
GROUPS = 10
"""Number of groups of equally many records of the first release."""


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
    index = Estimate.absent(reason) if reason else _measure(population_stability(*parts))
    return ReleaseDrift(index, _measure(largest_shift(*parts)))


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


def _measure(drift: Drift) -> Estimate:
    """The drift less its bias; it is never below 0."""
    centre = drift.value - drift.bias
    shown = max(centre, 0.0)
    about = (
        _around(centre, drift.error),
        _around(drift.value - drift.population_bias, drift.population_error),
    )
    return Estimate(
        shown,
        drift.error,
        float(np.sqrt(max(drift.population_error**2 - drift.error**2, 0.0))),
        bias=shown - centre,
        intervals=about,
    )


def _around(centre: float, error: float) -> Interval:
    return Interval(max(centre - REACH * error, 0.0), max(centre + REACH * error, 0.0))
