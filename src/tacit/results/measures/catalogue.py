"""The catalogue of figures that follow from the counts in cells, one entry each.

An entry says what a figure is called in files and texts, how it is computed with its errors, and
whether scores have to state probabilities for it. Files, tables, pages, wishes of a plan and
studies of coverage read it. Rates at a threshold have their own table, ``metrics.functional``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial

import numpy as np

from tacit.arrays import Floats
from tacit.metrics import functional, logistic, operating_points
from tacit.metrics.functional import Functional, prevalence
from tacit.metrics.logistic import calibration_ratio, line_fit
from tacit.results.curves.curve import RatesAt
from tacit.results.curves.histogram import Histogram
from tacit.results.estimate import REACH, Estimate, Interval
from tacit.results.measures import figures, smooth_calibration
from tacit.results.measures.distances import class_separation
from tacit.results.measures.figures import CellView, Kind

THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.5)
"""Probabilities at which figures of a decision are given by default."""
PARTIAL = 0.1
"""The largest false-positive rate of the partial AUC: specificities from 0.9 to 1."""

SHARES = (0.01, 0.05, 0.1, 0.2)
"""Parts of the traffic, from the highest score down, at which lift and gain are given."""

DECILES = 10
"""Groups of equally many records at which calibration ratios are given."""

RATES_GIVEN = (0.9, 0.95)
"""Specificities and sensitivities at which the other one is given."""

ALL, POSITIVES, NEGATIVES = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
"""Weights of both classes that count all records, or those of one class."""

SHARE = Kind((0.0, 1.0))
"""A part of a whole that changes smoothly with every score."""

SCALED = Kind((-np.inf, 1.0))
"""1 less a part that one loss is of another."""

SEPARATION = "kolmogorov_smirnov"
"""The largest difference of sensitivity and false-positive rate."""

Loss = Callable[[Floats, Floats], Functional]
"""A loss of counts, by the log-odds that each cell states."""

OfStated = Callable[[Floats, Floats], Functional | None]
"""A figure of counts, by what every cell states; None where it cannot be computed."""

Value = Callable[[CellView, Floats], Functional | None]
"""A figure of counts, at several places where it has any; None where it cannot be computed."""


def benefit_at(view: CellView, points: Floats) -> Functional:
    """Net benefit of treating from these probabilities on."""
    return functional.net_benefit(view.counts, view.reaching(view.stating(points)), points)


def benefit_of_all(view: CellView, points: Floats) -> Functional:
    """Net benefit of treating everybody, at these probabilities."""
    return functional.treat_all(view.counts, points)


def gain_at(view: CellView, shares: Floats) -> Functional:
    """The part of all positives among these parts of the records, from the highest score down."""
    return _rate_at_rate(view, ALL, POSITIVES, shares)


def lift_at(view: CellView, shares: Floats) -> Functional:
    """The share of positives among these parts over that among all: the gain over the part."""
    gain = gain_at(view, shares)
    by_share = shares[:, np.newaxis, np.newaxis]
    rough = None if gain.rough is None else gain.rough / shares
    return replace(gain, value=gain.value / shares, gradient=gain.gradient / by_share, rough=rough)


def _decile_ratios(view: CellView, _: Floats) -> Functional:
    """Calibration ratios of ten groups of equally many records, the lowest scores first."""
    borders = operating_points.quantiles(
        view.counts.sum(axis=0), 1 - np.arange(DECILES + 1) / DECILES
    )
    reached = operating_points.reaching_places(borders, view.size)
    # the first and the last group hold every record below and above
    reached[0], reached[-1] = 1.0, 0.0
    low, high = np.append(0.0, borders[1:-1]), np.append(borders[1:-1], view.size)
    members = reached[:-1] - reached[1:]
    # the middle of the part of each cell that belongs to a group
    cells = np.arange(view.size)
    start, stop = (np.clip(ends[:, np.newaxis], cells, cells + 1) for ends in (low, high))
    middles = (start + stop) / 2 - 0.5
    stated = np.interp(middles, cells, view.predicted)
    return replace(calibration_ratio(view.counts, stated, members), above=members)


def _on(stated: str, figure: OfStated) -> Value:
    """A figure of the counts and of what every cell states: a field of the view."""
    return lambda view, _: figure(view.counts, getattr(view, stated))


def _of_line(figure: OfStated, view: CellView, _: Floats) -> Functional | None:
    """A figure of the logistic line; None where noise hides the ends that its slope depends on."""
    return figure(view.counts, view.log_odds) if view.ends_known else None


def _after_line(loss: Loss, counts: Floats, log_odds: Floats) -> Functional | None:
    """A loss after logistic recalibration on the same counts; None where no line exists.

    At the fitted line the loss is least, so its gradient is that at fixed coefficients. The line
    needs the part of the curvature that its slope divides by.
    """
    fit = line_fit(counts, log_odds)
    if fit is None:
        return None
    stated = fit.coefficients[0] + fit.coefficients[1] * log_odds
    return replace(loss(counts, stated), base=fit.base[1:])


def threshold_of_share(view: CellView, weights: Floats, share: float) -> Estimate:
    """The score that this part of some records reaches, with intervals by inversion.

    The part that reaches a fixed score is an ordinary share with a known error. The scores that
    parts within 1.96 of its errors reach are the interval, whatever the score's scale is.
    """
    place = operating_points.quantiles(weights @ view.counts, np.array([share]))
    above = operating_points.reaching_places(place, view.size)
    figure = operating_points.share_above(view.counts, weights, above)
    counted = replace(figure, base=operating_points.fewer_side(weights, above, np.array([share])))
    if not figures.stands_out(view, counted)[0]:
        return Estimate.absent(figures.LOST_IN_NOISE)
    by_cells, by_sampling = np.hypot(*view.cut_errors(figure)), figure.sampling_error(view.counts)
    errors = np.concatenate([view.privacy_error(figure), by_cells, by_sampling])
    within = [
        _scores_within(view, weights, share, math.hypot(*errors[:last])) for last in (1, 2, 3)
    ]
    widths = np.array([bounds.high - bounds.low for bounds in within]) / (2 * REACH)
    privacy, cells, sampling = _added(widths).tolist()
    around = within[1], within[2]
    return Estimate(float(view.scores_of(place)[0]), privacy, sampling, cells, intervals=around)


def _added(widths: Floats) -> Floats:
    """What each error adds: the squares of nested intervals' widths differ by it.

    From the first interval on that reaches an open end of the scale, it is infinite.
    """
    known = np.isfinite(widths)
    squares = np.where(known, widths, 0.0) ** 2
    return np.where(known, np.sqrt(np.maximum(np.diff(squares, prepend=0.0), 0.0)), math.inf)


def _scores_within(view: CellView, weights: Floats, share: float, error: float) -> Interval:
    """The scores of all parts within the interval of one."""
    reached = np.clip(share + REACH * error * np.array([1.0, -1.0]), 0.0, 1.0)
    low, high = view.scores_of(operating_points.quantiles(weights @ view.counts, reached))
    return Interval(float(low), float(high))


def _sensitivity_at(view: CellView, specificities: Floats) -> Functional:
    return _rate_at_rate(view, NEGATIVES, POSITIVES, 1 - specificities)


def _specificity_at(view: CellView, sensitivities: Floats) -> Functional:
    false = _rate_at_rate(view, POSITIVES, NEGATIVES, sensitivities)
    return replace(false, value=1 - false.value, gradient=-false.gradient)


def _rate_at_rate(view: CellView, fixed: Floats, read: Floats, shares: Floats) -> Functional:
    """The part of some records above the threshold that a given part of others reaches.

    Noise moves the threshold by the error of the part of the others above it.
    """
    places = operating_points.quantiles(fixed @ view.counts, shares)
    above = operating_points.reaching_places(places, view.size)
    errors = view.privacy_error(operating_points.share_above(view.counts, fixed, above))
    return operating_points.rate_at_rate(view.counts, fixed, read, shares, errors)


@dataclass(frozen=True)
class Entry:
    """A figure, or several that are computed together.

    Parameters
    ----------
    names : in a file; of a figure of decisions what comes before ``_at_`` and the probability.
    measures : from the counts and the probabilities of decisions, one measure for each name.
    titles : what texts call them; empty for the names with spaces.
    stated : whether scores have to state probabilities.
    of_decisions : whether there is one measure for each probability of a decision.
    """

    names: tuple[str, ...]
    measures: Callable[[CellView, tuple[float, ...]], list[Estimate]]
    titles: tuple[str, ...] = ()
    stated: bool = True
    of_decisions: bool = False

    def listed(self, thresholds: Sequence[float]) -> tuple[str, ...]:
        """The names with these probabilities of decisions."""
        return _placed(self.names[0], "_at_", thresholds) if self.of_decisions else self.names


def _placed(name: str, between: str, places: Sequence[float]) -> tuple[str, ...]:
    return tuple(f"{name}{between}{place:g}" for place in places)


def _figure(
    name: str,
    value: Value,
    kind: Kind = figures.SMOOTH,
    title: str = "",
    at: tuple[float, ...] = (),
    of_decisions: bool = False,
    stated: bool = True,
) -> Entry:
    """A figure, at places that are settled or at every probability of a decision if there are any.

    Parameters
    ----------
    name, title, of_decisions, stated : as an entry has them.
    value : the figure and its dependence on every count.
    kind : its range, and how its errors and its interval follow.
    at : the places where it is given, which end its names.
    """

    def measures(view: CellView, thresholds: tuple[float, ...]) -> list[Estimate]:
        places = np.array(thresholds if of_decisions else at)
        each = thresholds if of_decisions else (None,) * max(len(at), 1)
        return figures.measured(view, lambda some: value(some, places), kind, each)

    names = _placed(name, "_", at) or (name,)
    return Entry(names, measures, (title,) if title else (), stated, of_decisions)


def _rate(rate: functional.Rate) -> Entry:
    """A rate from every probability of a decision on."""
    return _figure(
        rate.name,
        lambda view, points: rate(view.counts, view.reaching(view.stating(points))),
        _rate_kind(rate),
        rate.title,
        of_decisions=True,
    )


def _rate_kind(rate: functional.Rate) -> Kind:
    return Kind(rate.limits, rate.quotient, at_threshold=True)


def rates_at(histogram: Histogram, score: float) -> RatesAt:
    """The rates of calling scores from ``score`` on, by either field's names.

    Raises
    ------
    ValueError : for a score that this unit does not have.
    """
    view = CellView.of(histogram)
    above = view.reaching(np.array([score]))
    made = RatesAt()
    for name, rate in functional.RATES.items():
        [made[name]] = figures.measured(view, _reaching(rate, above), _rate_kind(rate))
    return made


def _reaching(rate: functional.Rate, above: Floats) -> figures.Make:
    return lambda view: rate(view.counts, above)


def _threshold_for(name: str, weights: Floats, given: tuple[float, ...], high: bool) -> Entry:
    """The score that a part of some records reaches; ``high`` where the rest is what is given."""
    shares = tuple(1.0 - each if high else each for each in given)
    return Entry(
        _placed(f"threshold_for_{name}", "_", given),
        lambda view, _: [threshold_of_share(view, weights, share) for share in shares],
        stated=False,
    )


CATALOGUE: tuple[Entry, ...] = (
    _figure(
        "calibration_intercept",
        _on("stated_log_odds", logistic.calibration_intercept),
        title="calibration intercept (slope 1)",
    ),
    _figure("calibration_slope", partial(_of_line, logistic.calibration_slope)),
    _figure(
        "intercept_beside_slope",
        partial(_of_line, logistic.intercept_beside_slope),
        title="intercept with a fitted slope",
    ),
    _figure(
        "observed_over_expected",
        _on("predicted", logistic.observed_over_expected),
        figures.POSITIVE_RATIO,
        "observed / expected",
    ),
    Entry(
        smooth_calibration.NAMES,
        lambda view, _: smooth_calibration.distance_measures(view),
        (
            "integrated calibration index (ICI)",
            *(f"{name} of the smooth calibration curve" for name in ("E50", "E90", "Emax")),
        ),
    ),
    _figure("brier", _on("predicted", functional.brier), SHARE, "Brier score"),
    _figure(
        "scaled_brier", _on("predicted", functional.scaled_brier), SCALED, "scaled Brier score"
    ),
    _figure("net_benefit", benefit_at, figures.BENEFIT, of_decisions=True),
    _figure("net_benefit_of_all", benefit_of_all, figures.BENEFIT, of_decisions=True),
    *map(_rate, functional.RATES.values()),
    _figure("prevalence", lambda view, _: prevalence(view.counts), SHARE, stated=False),
    _figure(
        "partial_auc",
        lambda view, _: operating_points.partial_auc(view.counts, PARTIAL),
        Kind((0.0, PARTIAL)),
        "partial AUC (specificity 0.9 to 1)",
        stated=False,
    ),
    _figure(
        "standardised_partial_auc",
        lambda view, _: operating_points.standardised_partial_auc(view.counts, PARTIAL),
        SHARE,
        "standardised partial AUC (specificity 0.9 to 1)",
        stated=False,
    ),
    _figure(
        "sensitivity_at_specificity", _sensitivity_at, figures.RATE, at=RATES_GIVEN, stated=False
    ),
    _figure(
        "specificity_at_sensitivity", _specificity_at, figures.RATE, at=RATES_GIVEN, stated=False
    ),
    _threshold_for("specificity", NEGATIVES, RATES_GIVEN, high=True),
    _threshold_for("sensitivity", POSITIVES, RATES_GIVEN, high=False),
    _figure("log_loss", _on("log_odds", functional.log_loss), title="log loss (nats)"),
    _figure("normalised_entropy", _on("log_odds", functional.normalised_entropy)),
    _figure(
        "recalibrated_log_loss",
        partial(_of_line, partial(_after_line, functional.log_loss)),
        title="log loss after recalibration (nats)",
    ),
    _figure(
        "recalibrated_normalised_entropy",
        partial(_of_line, partial(_after_line, functional.normalised_entropy)),
        title="normalised entropy after recalibration",
    ),
    _figure(
        "calibration_ratio",
        lambda view, _: calibration_ratio(view.counts, view.predicted, np.ones((1, view.size))),
        figures.POSITIVE_RATIO,
        "calibration ratio (expected / observed)",
    ),
    _figure(
        "calibration_ratio_of_decile",
        _decile_ratios,
        figures.RATIO_AT_THRESHOLD,
        at=tuple(range(1, DECILES + 1)),
    ),
    Entry(
        (SEPARATION,),
        lambda view, _: [class_separation(view)],
        ("Kolmogorov-Smirnov distance of the classes",),
        stated=False,
    ),
    _figure("gain_of_top", gain_at, figures.RATE, at=SHARES, stated=False),
    _figure("lift_of_top", lift_at, Kind(at_threshold=True), at=SHARES, stated=False),
    _threshold_for("share", ALL, SHARES, high=False),
)
"""Every figure, in the order of a file."""

TITLES = {
    name: title
    for entry in CATALOGUE
    if entry.titles
    for name, title in zip(entry.names, entry.titles, strict=True)
}
"""What texts call a figure where that is not its name with spaces."""

SHORT = {"ks": SEPARATION}
"""Short names in wide use."""

ESSENTIAL = ("calibration_intercept", "calibration_slope", "brier")
"""What is printed by default, besides net benefits."""


def names(thresholds: Sequence[float]) -> tuple[str, ...]:
    """The names of all measures with these thresholds, in the order of a file."""
    return tuple(name for entry in CATALOGUE for name in entry.listed(thresholds))


def named(text: str) -> tuple[str, tuple[float, ...]] | None:
    """The measure that a text names, with the threshold of its decision; None for no measure.

    Parameters
    ----------
    text : the name in a file, or its words with spaces, in any case.

    Examples
    --------
    >>> named("net benefit at 0.20"), named("Calibration slope"), named("charm")
    (('net_benefit_at_0.2', (0.2,)), ('calibration_slope', ()), None)
    >>> named("KS")
    ('kolmogorov_smirnov', ())
    """
    words = functional.normalised(text)
    name = SHORT.get(words, words)
    if name in names(()):
        return name, ()
    figure, _, at = name.rpartition("_at_")
    figure = functional.OTHER_NAMES.get(figure, figure)
    try:
        threshold = float(at)
    except ValueError:
        return None
    if f"{figure}_at_{threshold:g}" not in names((threshold,)) or not 0 < threshold < 1:
        return None
    return f"{figure}_at_{threshold:g}", (threshold,)


def nearest(text: str) -> str:
    """The measure whose name or title is nearest to a text that names none; empty for none.

    Examples
    --------
    >>> nearest("Brier score"), nearest("F1 at probability 0.3"), nearest("charm")
    ('brier', 'f1_at_0.3', '')
    """
    words = functional.normalised(text)
    at = words.rpartition("_")[2]
    thresholds = (float(at),) if re.fullmatch(r"0?\.\d+", at) else ()
    known = {
        functional.normalised(written): name
        for name in names(thresholds)
        for written in (name, label(name))
    }
    near = get_close_matches(words, known, 1, cutoff=0.85)
    return known[near[0]] if near else ""


def label(name: str) -> str:
    """What a measure is called in texts.

    Examples
    --------
    >>> label("net_benefit_at_0.2"), label("brier"), label("f1_at_0.5")
    ('net benefit at probability 0.2', 'Brier score', 'F1 at probability 0.5')
    """
    figure, at, probability = name.rpartition("_at_")
    if at and probability[0].isdigit():
        return f"{label(figure)} at probability {probability}"
    return TITLES.get(name, name.replace("_", " "))
