"""All measures of one histogram, and what a result's file says of them.

Curves of measures with pointwise bands, for pictures and files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy

from tacit.arrays import Floats
from tacit.data import units
from tacit.metrics import functional, operating_points
from tacit.results import estimate as est
from tacit.results.curves.curve import UNIT, WRITTEN_RATES, RatesAt
from tacit.results.curves.histogram import Histogram
from tacit.results.measures import catalogue, figures
from tacit.results.measures.smooth_calibration import smooth_calibration
from tacit.results.text import ruled

BENEFIT_POINTS = np.linspace(0.01, 0.99, 99)
GAIN_POINTS = np.linspace(0.0, 1.0, 21)
CURVE_POINTS = 61
ENDS = (0.005, 0.995)
"""Quantiles of the scores between which the smooth calibration curve is drawn."""
BINS = 20
"""Number of groups of the distribution of scores."""
PRINTED_RATES = {"precision": "precision", "recall": "recall", "accuracy": "accuracy", "f1": "F1"}
"""The rates that texts show at the probability 1/2, with their titles."""
NO_CALIBRATION_ERROR = "none, for real numbers state no probabilities"


Columns = dict[str, Floats]
"""A curve's numbers by the name of their column."""


def decision_curve(view: figures.CellView) -> Columns:
    """Net benefit of the scores and of treating everybody, at probabilities from 0.01 to 0.99.

    A net benefit is at most the prevalence, that of treating just the positives. Where a band is
    wider than that, it says nothing, and its points are absent.
    """
    makers = {"net_benefit": catalogue.benefit_at, "treat_all": catalogue.benefit_of_all}
    of_scores, of_all = (
        _banded(view, name, partial(make, points=BENEFIT_POINTS), figures.BENEFIT)
        for name, make in makers.items()
    )
    share = np.asarray(functional.prevalence(view.counts).value).item()
    shown = of_scores["net_benefit_high"] - of_scores["net_benefit_low"] <= share
    for name, curve in of_scores.items():
        of_scores[name] = np.where(shown, np.minimum(curve, share), np.nan)
    return {"thresholds": BENEFIT_POINTS, **of_scores, **of_all}


def calibration_curve(view: figures.CellView) -> Columns:
    """The smooth share of positives at stated probabilities; empty where none could be fitted.

    The band is that of the log-odds, which are linear in the coefficients, as probabilities: a
    probability's own error would shrink wherever noise brings it near 0.
    """
    if not view.ends_known or smooth_calibration(view.counts, view.log_odds) is None:
        return {}
    ends = operating_points.quantiles(view.counts.sum(axis=0), 1.0 - np.array(ENDS))
    low, high = np.interp(ends - 0.5, np.arange(view.size), view.log_odds)
    log_odds = np.linspace(low, high, CURVE_POINTS)
    observed = _banded(view, "observed", partial(_smooth, log_odds), figures.SMOOTH)
    curves = {"predicted": log_odds, **observed}
    return {name: scipy.special.expit(curve) for name, curve in curves.items()}


def score_distribution(view: figures.CellView) -> Columns:
    """The part of each class's records in groups of neighbouring scores."""
    inner = _inner_borders(view)
    ends = view.scores_of(np.array([0.0, float(view.size)]))
    edges = np.concatenate([ends[:1], inner, ends[1:]])
    made = {"low": edges[:-1], "high": edges[1:]}
    for name, weights in (("positives", catalogue.POSITIVES), ("negatives", catalogue.NEGATIVES)):
        made |= _banded(view, name, partial(_class_parts, inner, weights), figures.RATE)
    return made


def _inner_borders(view: figures.CellView) -> Floats:
    """Scores that part the groups: equal widths of probabilities, else of positions."""
    if view.axis.unit == units.PROBABILITY:
        return np.linspace(0.0, 1.0, BINS + 1)[1:-1]
    ends = operating_points.quantiles(view.counts.sum(axis=0), 1.0 - np.array(ENDS))
    return view.scores_of(np.linspace(ends[0], ends[1], BINS - 1))


def gain_curve(view: figures.CellView) -> Columns:
    """The part of the positives among parts of the records, from the highest score down."""
    made = partial(catalogue.gain_at, shares=GAIN_POINTS)
    return {"shares": GAIN_POINTS, **_banded(view, "gain", made, figures.RATE)}


def _smooth(log_odds: Floats, view: figures.CellView) -> functional.Functional | None:
    fitted = smooth_calibration(view.counts, view.log_odds)
    return None if fitted is None else fitted.observed_log_odds(log_odds)


def _class_parts(borders: Floats, weights: Floats, view: figures.CellView) -> functional.Functional:
    """The part of a class's records in each group of scores."""
    above = np.vstack([np.ones(view.size), view.reaching(borders), np.zeros(view.size)])
    cells = above[:-1] - above[1:]
    inside, whole = (
        operating_points.by_class(weights, each) for each in (cells, np.ones_like(cells[:1]))
    )
    return functional.ratio(view.counts, inside, whole, cells)


def _banded(view: figures.CellView, name: str, make: figures.Make, kind: figures.Kind) -> Columns:
    """A curve's values with pointwise 95 % bands about the population, absent numbers NaN."""
    figure = make(view)
    if figure is None:
        raise ValueError("a curve is drawn where it could be fitted")
    error = np.sqrt(
        view.privacy_error(figure) ** 2
        + np.hypot(*figures.cell_errors(view, figure, make, kind)) ** 2
        + figure.sampling_error(view.counts) ** 2
    )
    value = np.where(figures.stands_out(view, figure), figure.value, np.nan)
    return {
        f"{name}{end}": np.clip(value + steps * est.REACH * error, *kind.limits)
        for end, steps in (("", 0), ("_low", -1), ("_high", 1))
    }


CURVE_CELLS = 2**11
"""Largest number of cells that curves with bands are computed from."""


@dataclass(frozen=True, eq=False)
class Measures(Mapping[str, est.Estimate]):
    """What follows from a histogram beyond its own figures.

    Everything is computed from the published counts, and costs no further privacy.

    Parameters
    ----------
    histogram : both classes' counts.
    thresholds : the probabilities at which figures of a decision are given.

    Raises
    ------
    ValueError : for a threshold outside (0, 1).
    """

    histogram: Histogram
    thresholds: tuple[float, ...] = catalogue.THRESHOLDS

    def __post_init__(self) -> None:
        for threshold in self.thresholds:
            if not 0 < threshold < 1:
                raise ValueError(f"a threshold must be between 0 and 1, got {threshold}")

    @cached_property
    def view(self) -> figures.CellView:
        """The counts, at the resolution that figures are computed at."""
        return figures.CellView.of(self.histogram)

    @cached_property
    def at_half(self) -> RatesAt:
        """The rates where scores state the probability 1/2; none where they state none."""
        half = self.histogram.axis.half
        return RatesAt() if half is None else catalogue.rates_at(self.histogram, half)

    @cached_property
    def by_name(self) -> Mapping[str, est.Estimate]:
        """Every figure by its name, absent ones with the reason."""
        made: dict[str, est.Estimate] = {}
        for entry in catalogue.CATALOGUE:
            made |= self._of_entry(entry)
        return made

    @cached_property
    def _too_few(self) -> str | None:
        """Why there is no figure at all; None where both classes have enough records."""
        return figures.too_few_records(self.view)

    def _of_entry(self, entry: catalogue.Entry) -> dict[str, est.Estimate]:
        """The figures of an entry of the catalogue."""
        listed, reason = entry.listed(self.thresholds), self._too_few
        if reason is None and entry.stated and not self.histogram.states_probabilities:
            reason = figures.NO_PROBABILITIES
        if reason is not None or not listed:
            return {name: est.Estimate.absent(reason or "") for name in listed}
        return dict(zip(listed, entry.measures(self.view, self.thresholds), strict=True))

    def __getitem__(self, text: str) -> est.Estimate:
        """One figure by its name or its words, such as ``"net benefit at 0.2"``.

        Raises
        ------
        KeyError : for a figure that there is not; the message lists those that there are.
        """
        known = catalogue.named(text) if isinstance(text, str) else None
        if known is None:
            raise KeyError(
                f"{text!r} is no measure; known are {', '.join(catalogue.names(self.thresholds))}"
            )
        name, thresholds = known
        if set(thresholds) <= set(self.thresholds):
            return self.named(name)
        return replace(self, thresholds=thresholds).named(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_name)

    def __len__(self) -> int:
        return len(self.by_name)

    def __str__(self) -> str:
        """A table of all figures with their intervals, about these records and the population."""
        rows = [("figure", "value", est.RECORDS_INTERVAL, est.POPULATION_INTERVAL)]
        rows += [(catalogue.label(name), *_cells(each)) for name, each in self.by_name.items()]
        return "\n".join(ruled(rows))

    __repr__ = __str__

    def named(self, name: str) -> est.Estimate:
        """One figure by its name, without the time that others take.

        Raises
        ------
        KeyError : for a name that is not among ``names(thresholds)``.
        """
        if "by_name" in vars(self):  # all were computed already
            return self.by_name[name]
        for entry in catalogue.CATALOGUE:
            if name in entry.listed(self.thresholds):
                return self._of_entry(entry)[name]
        raise KeyError(name)

    @cached_property
    def curves(self) -> Mapping[str, Mapping[str, est.Numbers]]:
        """Curves with their bands by name; without those that do not exist."""
        if self._too_few is not None:
            return {}
        view = self.view.merged(CURVE_CELLS)
        made = {"score_distribution": score_distribution(view), "gain_curve": gain_curve(view)}
        if self.histogram.states_probabilities:
            made |= {"decision_curve": decision_curve(view)}
            made |= {"calibration_curve": calibration_curve(view)}
        return {
            name: {column: est.numbers(values) for column, values in curve.items()}
            for name, curve in made.items()
            if curve
        }

    def to_rows(self) -> list[tuple[str, str]]:
        """The essential figures as labelled lines for a person."""
        half, measures = self.histogram.axis.half, self.by_name
        average = ("average precision", est.estimate_line(self.histogram.average_precision()))
        if half is None:
            return [average, ("calibration error (ECE)", NO_CALIBRATION_ERROR)]
        rates = [
            (f"{title} at {half:g}", est.estimate_line(self.at_half[name]))
            for name, title in PRINTED_RATES.items()
        ]
        shown = [*catalogue.ESSENTIAL, *self._shown_of_decisions()]
        further = [(catalogue.label(name), est.estimate_line(measures[name])) for name in shown]
        return [average, *rates, self._calibration_error(), *further]

    def _calibration_error(self) -> tuple[str, str]:
        """The expected calibration error over the buckets, as a labelled line."""
        ece, buckets = self.histogram.debiased_ece(), self.histogram.starts.size
        bounds = est.Estimate(ece.value, ece.standard_error, 0.0, limits=UNIT).interval()
        around = f"{est.POPULATION_INTERVAL} {est.bounds_line(bounds)}"
        line = f"{ece.value:.{est.decimals(bounds)}f}, {around}, {buckets} buckets"
        return "calibration error (ECE)", line

    def _shown_of_decisions(self) -> list[str]:
        """All figures at chosen probabilities; else the net benefit nearest to the prevalence."""
        if self.thresholds != catalogue.THRESHOLDS:
            of_decisions = (each for each in catalogue.CATALOGUE if each.of_decisions)
            return [name for each in of_decisions for name in each.listed(self.thresholds)]
        share = self.by_name["prevalence"].value
        nearest = min(self.thresholds, key=lambda threshold: abs(threshold - share))
        return [f"net_benefit_at_{nearest:g}"]

    def to_dict(self) -> dict[str, Any]:
        """The entries of a result."""
        half = self.at_half
        return {
            "at_half": half and {name: half[name].to_dict() for name in WRITTEN_RATES},
            "measures": {name: est.measure_of(measure) for name, measure in self.by_name.items()},
            **self.curves,
        }


def _cells(measure: est.Estimate) -> tuple[str, str, str]:
    """A figure and its intervals about these records and the population, for a table."""
    if not measure.given:
        return "none", measure.reason, ""
    around = measure.interval(), measure.interval(about="population")
    value = f"{measure.value:.{est.decimals(around[0])}f}"
    return value, est.bounds_line(around[0]), est.bounds_line(around[1])
