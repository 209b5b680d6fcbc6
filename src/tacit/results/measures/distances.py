"""Largest differences of distributions of scores, less what noise adds to them.

The Kolmogorov-Smirnov distance of the classes, and how far scores moved between two releases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.metrics import curves, functional, operating_points
from tacit.results.curves.histogram import Histogram
from tacit.results.estimate import REACH, Estimate, Interval
from tacit.results.measures.figures import MOST_RELATIVE_NOISE, CellView, too_few_records

BORDERS = 40
"""Number of quantiles of the scores at which noisy classes are compared, twice."""
WINDOW = 4
"""Number of quantiles on both sides of the first largest difference that are looked at closely."""
DRAWS = 400
"""Number of times that noise is drawn again around a polynomial."""
CLASSES_DEGREE, SHIFT_DEGREE = 3, 4
"""Degrees of that polynomial, of the classes and of two releases."""
DISCRETE = 0.5826
"""How many steps the largest value of a walk is lower than that of a Brownian motion."""


def class_separation(view: CellView) -> Estimate:
    """The largest difference of sensitivity and false-positive rate over all thresholds.

    Exact counts are compared at every border of cells. Noisy ones are compared at ``BORDERS``
    quantiles, then at as many close to the largest difference. A largest value over many noisy ones
    is too large, and the records' own distance has its largest value between the quantiles. So
    noise of the known covariance, and the records' places around a smooth curve through the
    differences, are drawn again; by how much the largest value found exceeds that of all thresholds
    is the bias. The simulation costs no privacy; its seed is fixed.
    """
    if view.noise.exact:
        widest = operating_points.separation(view.counts, np.array([_widest_border(view.counts)]))
        return _separated(view, widest, 0, 0.0, 0.0)
    totals, shares = view.counts.sum(axis=0), np.linspace(0, 1, BORDERS + 1)[1:-1]
    coarse = operating_points.separation(
        view.counts, operating_points.quantiles(totals, shares)
    ).value
    top = int(np.argmax(coarse))
    around = shares[max(top - WINDOW, 0)], shares[min(top + WINDOW, shares.size - 1)]
    places = np.unique(operating_points.quantiles(totals, np.linspace(*around, BORDERS)))
    figure = operating_points.separation(view.counts, places)
    between = totals.sum() * (around[1] - around[0]) / (places.size - 1 or 1)
    bias, error = _excess(figure.value, view, figure.gradient, between)
    return _separated(view, figure, int(np.argmax(figure.value)), bias, error)


def _separated(
    view: CellView, figure: functional.Functional, top: int, bias: float, error: float
) -> Estimate:
    """The largest difference, less its bias.

    A threshold inside a cell may tell the classes further apart, by at most what the largest cell
    around holds of either.
    """
    gradient = figure.gradient[top]
    parts = np.max(np.abs(view.counts / view.counts.sum(axis=-1, keepdims=True)))
    hidden = float(parts) / math.sqrt(12) if view.noise.exact else 0.0
    sampling = math.sqrt(max(float(np.sum(view.counts * gradient**2)), 0.0))
    return Estimate(float(figure.value[top]) - bias, error, sampling, hidden).within((0.0, 1.0))


def _widest_border(counts: Floats) -> float:
    """The border of cells from which on the classes differ most."""
    shares = counts / counts.sum(axis=-1, keepdims=True)
    return float(np.argmax(curves.counts_from_thresholds(shares[0] - shares[1])))


def _excess(
    values: Floats, view: CellView, gradient: Floats, between: float
) -> tuple[float, float]:
    """The mean excess of the largest noisy value over the records' own distance, and its deviation.

    Passing a record changes the difference by 1/P or by 1/N. So around a smooth curve the records'
    own difference is a random walk, with the variance ``p (1 - p) (1/P + 1/N)**2`` a record where p
    is the part of positives (the variance of a two-valued step). Its largest value is over all
    steps, the noisy one over the quantiles.

    Parameters
    ----------
    values : differences at quantiles, shape (T,).
    view : the counts.
    gradient : of the differences, shape (T, 2, B).
    between : records between two neighbouring quantiles.
    """
    base = _polynomial(values, CLASSES_DEGREE)
    source = np.random.default_rng(0)
    whole, tops = _walks(base, _step(view.counts), between, source)
    noise = normal_draws(view.noise_covariance(gradient), DRAWS, source)
    # noise of both signs: what is linear in it cancels in the mean
    maxima = np.stack([(whole + sign * noise).max(axis=-1) for sign in (1, -1)])
    return float(np.mean(maxima - tops)), float(np.std(maxima - tops))


def _step(counts: Floats) -> float:
    """The standard deviation of what passing one record adds, ``sqrt(p (1 - p)) (1/P + 1/N)``."""
    sizes = np.maximum(counts.sum(axis=-1), 1.0)
    part = float(sizes[0] / sizes.sum())
    return math.sqrt(part * (1 - part)) * float(np.sum(1 / sizes))


def _walks(
    base: Floats, step: float, between: float, source: np.random.Generator
) -> tuple[Floats, Floats]:
    """Walks of so many records between neighbouring quantiles, and their largest values.

    Between two of its values a and b, a Brownian motion of variance v exceeds m with the
    probability ``exp(-2 (m - a) (m - b) / v)``, so its largest value there is
    ``(a + b + sqrt((a - b)**2 - 2 v log u)) / 2`` with u uniform (Borodin and Salminen 2002,
    part II, 1.1.8). A walk in steps has a largest value lower by 0.5826 of a step on average
    (Siegmund 1979).
    """
    spread = step * math.sqrt(max(between, 0.0))
    walk = spread * source.standard_normal((DRAWS, base.size - 1)).cumsum(axis=-1)
    at = base + np.concatenate([np.zeros((DRAWS, 1)), walk], axis=-1)
    ends = at[:, :-1], at[:, 1:]
    uniform = source.random(ends[0].shape)
    reach = np.sqrt((ends[0] - ends[1]) ** 2 - 2 * spread**2 * np.log1p(-uniform))
    tops = ((ends[0] + ends[1] + reach) / 2).max(axis=-1) - DISCRETE * step
    return at, np.maximum(tops, at.max(axis=-1))


EMPTY_GROUP = "a group of scores has no record in one release, so its logarithm has no value"
LOST_GROUP = "a group of scores does not stand out from the noise in one release"
GROUPS = 10
"""Number of groups of equally many records of the first release."""
LEAST_PART = 1e-6
"""Least part of the records in a group for its logarithm."""


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
    """The drift between two releases with independent noise.

    Groups are ten parts of equally many records of the first release, as nearly as borders allow
    that cells of both have: where cells follow the records, those at probabilities of decisions.
    They are held fixed.

    Raises
    ------
    ValueError : for another unit, cells without a common border, or a class with too few records.
    """
    one, two = views = CellView.of(first), CellView.of(second)
    edges = [view.axis.edges(view.size) for view in views]
    shared = np.intersect1d(edges[0], edges[1])
    if shared.size <= 2 or one.axis.unit != two.axis.unit:
        raise ValueError("releases with other scales or units of scores have no drift")
    for view in views:
        reason = too_few_records(view)
        if reason is not None:
            raise ValueError(f"a release has {reason}")
    tenths = operating_points.quantiles(
        one.counts.sum(axis=0), np.arange(GROUPS - 1, 0, -1) / GROUPS
    )
    places = [np.searchsorted(each, shared[:-1]) for each in edges]
    nearest = np.abs(places[0] - np.round(tenths)[:, np.newaxis]).argmin(axis=1)
    chosen = np.unique(np.append(nearest, 0))
    parts = [_parts(view, each[chosen]) for view, each in zip(views, places, strict=True)]
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


def _parts(view: CellView, borders: Integers) -> Parts:
    """The parts between borders of cells, shape (G,), of which the first is the least one."""
    reached = operating_points.reaching_places(borders.astype(np.float64), view.size)
    members = reached - np.vstack([reached[1:], np.zeros(view.size)])
    figure = functional.ratio(
        view.counts, functional.both(members, members), np.ones((members.shape[0], 2, 1))
    )
    covariance = view.noise_covariance(figure.gradient)
    return Parts(figure.value, covariance, float(view.counts.sum()))


def _moved(value: float, biases: Sequence[float], errors: Sequence[float]) -> Estimate:
    """A drift less its bias; it is never below 0.

    Parameters
    ----------
    value : the figure as it comes.
    biases : what noise, and noise and sampling, add to it on average.
    errors : its standard deviations by noise, and by noise and sampling.
    """
    centre = value - biases[0]
    shown = max(centre, 0.0)
    sampling = math.sqrt(max(errors[1] ** 2 - errors[0] ** 2, 0.0))
    around = _around(centre, errors[0]), _around(value - biases[1], errors[1])
    return Estimate(shown, errors[0], sampling, bias=shown - centre, intervals=around)


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
    return _moved(value, biases, errors)


def largest_shift(first: Parts, second: Parts) -> Estimate:
    """The largest difference of both cumulative parts, with what noise adds by simulation.

    Noise of the known covariance is drawn again around the difference shrunk by what it exceeds its
    noise; the mean excess is the bias. A simulation of known noise costs no privacy. The interval
    reaches as far as the largest noise alone does in 95 % of draws: noise moves the largest
    difference by no more, also where there is no drift.
    """
    gap = np.cumsum(second.parts - first.parts)
    value = float(np.abs(gap).max())
    noise = first.covariance + second.covariance
    whole = noise + first.sampling + second.sampling
    source = np.random.default_rng(0)
    largest = [_largest_again(gap, covariance, source) for covariance in (noise, whole)]
    biases, errors, reaches = zip(*largest, strict=True)
    around = _around(value, reaches[0] / REACH), _around(value, reaches[1] / REACH)
    return replace(_moved(value, biases, errors), intervals=around)


def _largest_again(
    gap: Floats, covariance: Floats, source: np.random.Generator
) -> tuple[float, float, float]:
    """The mean excess and the deviation of the largest difference with noise drawn again, and the
    bound of the largest noise in 95 % of draws."""
    if not covariance.any():
        return 0.0, 0.0, 0.0
    sums = np.cumsum(np.cumsum(covariance, axis=0), axis=1)
    excess = float(np.trace(sums))
    square = float(gap @ gap)
    smooth = _polynomial(np.append(0.0, gap), SHIFT_DEGREE)[1:]
    base = smooth * np.sqrt(max(square - excess, 0.0) / square) if square > 0 else gap
    drawn = np.cumsum(normal_draws(covariance, DRAWS, source), axis=-1)
    again = np.abs(base + drawn).max(axis=-1)
    reach = float(np.quantile(np.abs(drawn).max(axis=-1), 0.95))
    return float(again.mean() - np.abs(base).max()), float(again.std()), reach


def normal_draws(covariance: Floats, draws: int, source: np.random.Generator) -> Floats:
    """Several times normal noise of a covariance of shape (T, T), shape (draws, T)."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return source.standard_normal((draws, values.size)) @ root.T


def _polynomial(values: Floats, degree: int) -> Floats:
    """A polynomial through differences: noise would make their top less flat than it is."""
    steps = np.linspace(-1, 1, values.size)
    powers = np.vander(steps, min(degree, values.size - 1) + 1)
    return np.asarray(powers @ np.linalg.lstsq(powers, values, rcond=None)[0])
