"""The catalogue of figures that follow from the counts in cells, one entry each.

An entry says what a figure is called in files and texts, how it is computed with its errors, and
whether scores have to state probabilities for it. Files, tables, pages, wishes of a plan and
studies of coverage read it. Rates at a threshold have their own table, ``metrics.functional``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tacit.arrays import Floats
from tacit.metrics import functional, logistic, operating_points
from tacit.metrics.functional import Functional, prevalence
from tacit.metrics.logistic import calibration_ratio, line_fit
from tacit.results.estimate import REACH, Estimate, Interval
from tacit.results.measures import figures, smooth_calibration
from tacit.results.measures.distances import class_separation
from tacit.results.measures.figures import CellView, Kind, Make

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

SEPARATION = "kolmogorov_smirnov"
"""The largest difference of sensitivity and false-positive rate."""

Loss = Callable[[Floats, Floats], Functional]
"""A figure of counts, by the probability or the log-odds that each cell states."""

MakeAt = Callable[[Floats, CellView], Functional]
"""A figure at several places."""


def benefit_at(points: Floats, view: CellView) -> Functional:
    """Net benefit of treating from these probabilities on."""
    return functional.net_benefit(view.counts, view.reaching(view.stating(points)), points)


def benefit_of_all(points: Floats, view: CellView) -> Functional:
    """Net benefit of treating everybody, at these probabilities."""
    return functional.treat_all(view.counts, points)


def _at_threshold(rate: functional.Rate, points: Floats, view: CellView) -> Functional:
    return rate(view.counts, view.reaching(view.stating(points)))


def _partial_auc(view: CellView) -> Functional:
    return operating_points.partial_auc(view.counts, PARTIAL)


def _of_predicted(figure: Loss, view: CellView) -> Functional:
    """A figure of the probabilities that cells state."""
    return figure(view.counts, view.predicted)


def _of_log_odds(figure: Loss, view: CellView) -> Functional:
    """A figure of the log-odds that cells state."""
    return figure(view.counts, view.log_odds)


def _of_line(
    figure: Callable[[Floats, Floats], Functional | None], view: CellView
) -> Functional | None:
    """A figure of the logistic line; None where noise hides the ends that its slope depends on."""
    return figure(view.counts, view.log_odds) if view.ends_known else None


def gain_at(shares: Floats, view: CellView) -> Functional:
    """The part of all positives among these parts of the records, from the highest score down."""
    return _rate_at_rate(view, ALL, POSITIVES, shares)


def lift_at(shares: Floats, view: CellView) -> Functional:
    """The share of positives among these parts over that among all: the gain over the part."""
    gain = gain_at(shares, view)
    by_share = shares[:, np.newaxis, np.newaxis]
    rough = None if gain.rough is None else gain.rough / shares
    return replace(gain, value=gain.value / shares, gradient=gain.gradient / by_share, rough=rough)


def _decile_ratios(_: Floats, view: CellView) -> Functional:
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


def _after_line(loss: Loss, view: CellView) -> Functional | None:
    """A loss after logistic recalibration on the same counts; None where no line exists.

    At the fitted line the loss is least, so its gradient is that at fixed coefficients. The line
    needs the part of the curvature that its slope divides by.
    """
    fit = line_fit(view.counts, view.log_odds) if view.ends_known else None
    if fit is None:
        return None
    stated = fit.coefficients[0] + fit.coefficients[1] * view.log_odds
    return replace(loss(view.counts, stated), base=fit.base[1:])


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
    errors = [
        float(error[0])
        for error in (
            view.privacy_error(figure),
            np.hypot(*view.cut_errors(figure)),
            figure.sampling_error(view.counts),
        )
    ]
    within = [
        _scores_within(view, weights, share, math.hypot(*errors[:last])) for last in (1, 2, 3)
    ]
    widths = np.array([bounds.high - bounds.low for bounds in within]) / (2 * REACH)
    parts = _added(widths)
    return Estimate(
        float(view.scores_of(place)[0]),
        privacy_error=float(parts[0]),
        sampling_error=float(parts[2]),
        approximation_error=float(parts[1]),
        intervals=(within[1], within[2]),
    )


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


def _sensitivity_at(specificities: Floats, view: CellView) -> Functional:
    return _rate_at_rate(view, NEGATIVES, POSITIVES, 1 - specificities)


def _specificity_at(sensitivities: Floats, view: CellView) -> Functional:
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
        if not self.of_decisions:
            return self.names
        return tuple(f"{name}_at_{each:g}" for name in self.names for each in thresholds)


def _figure(
    name: str, make: Make, kind: Kind = figures.SMOOTH, title: str = "", stated: bool = True
) -> Entry:
    """One figure; its title is its name with spaces where none is given."""
    titles = (title,) if title else ()
    return Entry((name,), lambda view, _: figures.measured(view, make, kind), titles, stated)


def _at_decisions(name: str, make: MakeAt, kind: Kind, title: str = "") -> Entry:
    """A figure at every probability of a decision."""
    return Entry(
        (name,),
        lambda view, at: figures.measured(view, partial(make, np.array(at)), kind, at),
        (title,) if title else (),
        of_decisions=True,
    )


def _at(
    name: str, make: MakeAt, kind: Kind, places: tuple[float, ...], stated: bool = False
) -> Entry:
    """A figure at places that are settled."""
    none = (None,) * len(places)
    return Entry(
        tuple(f"{name}_{place:g}" for place in places),
        lambda view, _: figures.measured(view, partial(make, np.array(places)), kind, none),
        stated=stated,
    )


def _threshold_for(name: str, weights: Floats, given: tuple[float, ...], high: bool) -> Entry:
    """The score that a part of some records reaches; ``high`` where the rest is what is given."""
    shares = tuple(1.0 - each if high else each for each in given)
    return Entry(
        tuple(f"threshold_for_{name}_{each:g}" for each in given),
        lambda view, _: [threshold_of_share(view, weights, share) for share in shares],
        stated=False,
    )


CATALOGUE: tuple[Entry, ...] = (
    _figure(
        "calibration_intercept",
        lambda view: logistic.calibration_intercept(view.counts, view.stated_log_odds),
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
        partial(_of_predicted, logistic.observed_over_expected),
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
    _figure("brier", partial(_of_predicted, functional.brier), SHARE, "Brier score"),
    _figure(
        "scaled_brier",
        partial(_of_predicted, functional.scaled_brier),
        Kind((-np.inf, 1.0)),
        "scaled Brier score",
    ),
    _at_decisions("net_benefit", benefit_at, figures.BENEFIT),
    _at_decisions("net_benefit_of_all", benefit_of_all, figures.BENEFIT),
    *(
        _at_decisions(
            name,
            partial(_at_threshold, rate),
            figures.RATIO_AT_THRESHOLD if name in functional.LIKELIHOOD_RATIOS else figures.RATE,
            functional.RATE_TITLES.get(name, ""),
        )
        for name, rate in functional.RATES.items()
    ),
    _figure("prevalence", lambda view: prevalence(view.counts), SHARE, stated=False),
    _figure(
        "partial_auc",
        _partial_auc,
        Kind((0.0, PARTIAL)),
        "partial AUC (specificity 0.9 to 1)",
        stated=False,
    ),
    _figure(
        "standardised_partial_auc",
        lambda view: operating_points.standardised(_partial_auc(view), PARTIAL),
        SHARE,
        "standardised partial AUC (specificity 0.9 to 1)",
        stated=False,
    ),
    _at("sensitivity_at_specificity", _sensitivity_at, figures.RATE, RATES_GIVEN),
    _at("specificity_at_sensitivity", _specificity_at, figures.RATE, RATES_GIVEN),
    _threshold_for("specificity", NEGATIVES, RATES_GIVEN, high=True),
    _threshold_for("sensitivity", POSITIVES, RATES_GIVEN, high=False),
    _figure("log_loss", partial(_of_log_odds, functional.log_loss), title="log loss (nats)"),
    _figure("normalised_entropy", partial(_of_log_odds, functional.normalised_entropy)),
    _figure(
        "recalibrated_log_loss",
        partial(_after_line, functional.log_loss),
        title="log loss after recalibration (nats)",
    ),
    _figure(
        "recalibrated_normalised_entropy",
        partial(_after_line, functional.normalised_entropy),
        title="normalised entropy after recalibration",
    ),
    _figure(
        "calibration_ratio",
        lambda view: calibration_ratio(view.counts, view.predicted, np.ones((1, view.size))),
        figures.POSITIVE_RATIO,
        "calibration ratio (expected / observed)",
    ),
    _at(
        "calibration_ratio_of_decile",
        _decile_ratios,
        figures.RATIO_AT_THRESHOLD,
        tuple(range(1, DECILES + 1)),
        stated=True,
    ),
    Entry(
        (SEPARATION,),
        lambda view, _: [class_separation(view)],
        ("Kolmogorov-Smirnov distance of the classes",),
        stated=False,
    ),
    _at("gain_of_top", gain_at, figures.RATE, SHARES),
    _at("lift_of_top", lift_at, Kind(at_threshold=True), SHARES),
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
"""What is printed by default, beside net benefits."""


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
