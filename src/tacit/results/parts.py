"""Figures of parts of the records: of classes and private groups, and of sites compared with each
other.

Of classes or groups there is one release. Each site released its own counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy

from tacit.arrays import Floats
from tacit.metrics import sites as random_effects
from tacit.metrics.sites import LEAST_SITES
from tacit.results import estimate as est

ENTRIES = {"class": "classes", "group": "groups"}
"""The entry of the JSON that holds the parts."""


@dataclass(frozen=True, eq=False)
class Part:
    """The figures of one class or group.

    Parameters
    ----------
    name : the part.
    positives, negatives : the estimated numbers of its records; NaN where they are not known.
    figures : estimates by the figure's name.
    reason : why figures are missing; empty where none is.
    """

    name: str
    positives: float
    negatives: float
    figures: Mapping[str, est.Estimate]
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The part's entry in the JSON."""
        sizes = est.entry_of(self, ("positives", "negatives"))
        records = {"records": est.finite(self.positives + self.negatives), **sizes}
        made = {"name": self.name, **records, "measures": measures_of(self.figures)}
        return made | ({"reason": self.reason} if self.reason else {})


@dataclass(frozen=True, eq=False)
class Difference:
    """A figure of one part less that of another.

    Parameters
    ----------
    figure : what is compared.
    first, second : the names of the parts.
    estimate : the first's figure less the second's.
    called : what such a difference is called in the field; empty for no name.
    """

    figure: str
    first: str
    second: str
    estimate: est.Estimate
    called: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The difference's entry in the JSON."""
        return {
            "measure": self.figure,
            "called": self.called,
            "first": self.first,
            "second": self.second,
            **est.measure_of(self.estimate),
        }


@dataclass(frozen=True, eq=False)
class BandedCurve:
    """A curve of the records with a pointwise 95 % band about the population.

    Parameters
    ----------
    across, up : what its axes are called.
    places, value, low, high : ascending places, the curve there and the band, shape (n,).
    """

    across: str
    up: str
    places: Floats
    value: Floats
    low: Floats
    high: Floats

    def to_dict(self) -> dict[str, Any]:
        """The curve's entry in the JSON."""
        columns = {name: est.numbers(getattr(self, name)) for name in COLUMNS}
        return {"across": self.across, "up": self.up, **columns}

    @classmethod
    def restored(cls, entry: Mapping[str, Any]) -> BandedCurve:
        """The curve of an entry; null is NaN."""
        columns = (np.array(entry[name], dtype=np.float64) for name in COLUMNS)
        return cls(str(entry["across"]), str(entry["up"]), *columns)


COLUMNS = ("places", "value", "low", "high")
"""The columns of a curve's entry."""


@dataclass(frozen=True, eq=False)
class Breakdown:
    """Figures of parts of the records, of all parts together, and of their differences.

    Parameters
    ----------
    by : what the parts are: ``"class"`` or ``"group"``; empty where there are none, and all figures
        are about all records.
    parts : their figures.
    overall : figures about all parts, by name.
    differences : between parts.
    curves : of all records or of parts, by name.
    """

    by: str
    parts: tuple[Part, ...]
    overall: Mapping[str, est.Estimate] = field(default_factory=dict)
    differences: tuple[Difference, ...] = ()
    curves: Mapping[str, BandedCurve] = field(default_factory=dict)

    def with_differences(
        self, called: Mapping[str, str], limits: tuple[float, float] = (-1.0, 1.0)
    ) -> Breakdown:
        """The breakdown with every part's figures less those of the first part that has some.

        Parameters
        ----------
        called : the figures, and what the difference of each is called.
        limits : the least and the largest difference that there can be.
        """
        known, made = [part for part in self.parts if part.figures], []
        for other in known[1:]:
            for figure, title in called.items():
                apart = difference(other.figures[figure], known[0].figures[figure], limits)
                made.append(Difference(figure, other.name, known[0].name, apart, title))
        return replace(self, differences=tuple(made))

    def __getitem__(self, name: str) -> Part:
        """The part of this name.

        Raises
        ------
        KeyError : where there is none.
        """
        return {part.name: part for part in self.parts}[name]

    def to_dict(self) -> dict[str, Any]:
        """The entries of a result about its classes or groups."""
        made = dict[str, Any]()
        if self.by:
            made[ENTRIES[self.by]] = [part.to_dict() for part in self.parts]
        if self.overall:
            made["measures"] = measures_of(self.overall)
        if self.differences:
            made["differences"] = [each.to_dict() for each in self.differences]
        if self.curves:
            made["curves"] = {name: each.to_dict() for name, each in self.curves.items()}
        return made

    def to_rows(self) -> list[tuple[str, str]]:
        """The figures as labelled lines for a person."""
        rows = [(name, est.estimate_line(figure)) for name, figure in self.overall.items()]
        figures = [figure for part in self.parts for figure in part.figures.values()]
        values = sorted({each.threshold for each in figures if each.threshold is not None})
        if values:
            rows.append((f"threshold of {self.by}s", ", ".join(f"{each:.6g}" for each in values)))
        for part in self.parts:
            called = f"{self.by} {part.name}"
            rows += [
                (f"{called}: {name}", est.estimate_line(figure))
                for name, figure in part.figures.items()
            ]
            if part.reason:
                rows.append((called, part.reason))
        for each in self.differences:
            called = each.called or f"difference of {each.figure}"
            # chance is judged in the interval about the population
            line = est.estimate_line(each.estimate, "+", about="population")
            rows.append((f"{called}: {each.first} - {each.second}", line))
        return rows


def measures_of(figures: Mapping[str, est.Estimate]) -> dict[str, Any]:
    """Estimates as measures by name."""
    return {name: est.measure_of(figure) for name, figure in figures.items()}


def difference(
    first: est.Estimate, second: est.Estimate, limits: tuple[float, float] = (-1.0, 1.0)
) -> est.Estimate:
    """The difference of figures about different records, whose errors are independent.

    Approximation errors add up: what cells hide may have either sign.

    Examples
    --------
    >>> from tacit.results.estimate import Estimate
    >>> apart = difference(Estimate(1.25, 0.2, 0.0), Estimate(0.0, 0.2, 0.0))
    >>> apart.value, apart.bias
    (1.0, -0.25)
    """
    return est.Estimate(
        first.centre - second.centre,
        math.hypot(first.privacy_error, second.privacy_error),
        math.hypot(first.sampling_error, second.sampling_error),
        first.approximation_error + second.approximation_error,
    ).within(limits)


Scale = Literal["log-odds", "as it is"]
"""On which scale sites are taken to differ normally."""

LARGEST_ERROR = 0.7
"""Largest error of a site on the scale of log-odds at which it enters the model: with a larger one
the map to that scale is no line within the error."""

UNKNOWN = (math.nan, math.nan)
OF_ONE = ("shrunk", "shrunk_interval", "false_alarm")
"""What all sites together tell of one, in its fields and in files."""
TOGETHER = ("mean", "mean_interval", "deviation", "deviation_interval", "prediction_interval")
"""What they tell of all, in the same way."""

OUTLIER = 0.05
"""A site is called an outlier below this probability of a false alarm among all sites."""


@dataclass(frozen=True, eq=False)
class Site:
    """One site's estimate of a figure.

    Parameters
    ----------
    index : its place among the clients.
    estimate : from its own release; the value is NaN where there is none. Its reason says why, or
        why the model of all sites leaves this one out.
    shrunk, shrunk_interval : its true figure and the 95 % interval, as all sites together tell.
    false_alarm : the probability with which one of all sites lies as far from the others by chance.
    """

    index: int
    estimate: est.Estimate
    shrunk: float = math.nan
    shrunk_interval: tuple[float, float] = UNKNOWN
    false_alarm: float = math.nan

    @property
    def is_outlier(self) -> bool:
        """Whether the site differs from the others by more than chance explains."""
        return self.false_alarm < OUTLIER


@dataclass(frozen=True, eq=False)
class SiteFigure:
    """One figure of all sites.

    Parameters
    ----------
    figure : its name.
    scale : on which it was modelled.
    sites : in the order of the clients.
    mean, mean_interval : over sites.
    deviation, deviation_interval : the standard deviation between sites on ``scale``, and its 95 %
        interval.
    prediction_interval : 95 %, of the true figure of a new site.
    reason : why there is no model; empty where there is one.
    """

    figure: str
    scale: Scale
    sites: tuple[Site, ...]
    mean: float = math.nan
    mean_interval: tuple[float, float] = UNKNOWN
    deviation: float = math.nan
    deviation_interval: tuple[float, float] = UNKNOWN
    prediction_interval: tuple[float, float] = UNKNOWN
    reason: str = ""

    @classmethod
    def of(cls, figure: str, scale: Scale, estimates: Sequence[est.Estimate]) -> SiteFigure:
        """The figure of sites with these estimates, modelled where enough of them have one.

        An error's variance holds privacy, sampling and approximation; on the scale of log-odds a
        figure A has the variance ``v / (A (1 - A))^2``.
        """
        usable = [_on_scale(estimate, scale) for estimate in estimates]
        known = [index for index, pair in enumerate(usable) if pair is not None]
        sites = [
            Site(index, _with_reason(estimate, figure, index in known))
            for index, estimate in enumerate(estimates)
        ]
        if len(known) < LEAST_SITES:
            reason = f"{LEAST_SITES} sites with an estimate are needed, got {len(known)}"
            return cls(figure, scale, tuple(sites), reason=reason)
        values, variances = np.array([usable[index] for index in known], dtype=np.float64).T
        fitted = random_effects.posterior(values, variances)
        alarms = random_effects.outlier_probabilities(values, variances)
        for place, index in enumerate(known):
            own = fitted.site(float(values[place]), float(variances[place]))
            alarm = float(alarms[place])
            sites[index] = Site(index, estimates[index], *_told(own, scale), alarm)
        pooled, (_, new_site) = fitted.mixture(), _told(fitted.mixture(fitted.squares), scale)
        deviation = math.sqrt(random_effects.between_variance(values, variances))
        low, high = map(math.sqrt, random_effects.between_interval(values, variances))
        told = *_told(pooled, scale), deviation, (low, high), new_site
        return cls(figure, scale, tuple(sites), *told)

    def to_dict(self) -> dict[str, Any]:
        """What the JSON says of all sites together."""
        if self.reason:
            return {"scale": self.scale, "reason": self.reason}
        return {"scale": self.scale, **est.entry_of(self, TOGETHER)}

    def to_rows(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """The figure as labelled lines for a person."""
        called = f"sites: {self.figure}"
        if self.reason:
            return [(called, self.reason)]
        digits = est.decimals(self.mean_interval)
        mean, new_site, deviation = (
            f"95 % interval {est.bounds_line(ends, digits=digits)}"
            for ends in (self.mean_interval, self.prediction_interval, self.deviation_interval)
        )
        apart = f"standard deviation {self.deviation:.{digits}f} ({self.scale})"
        rows = [
            (called, f"{self.mean:.{digits}f}, {mean}"),
            (f"{called}, new site", new_site),
            (f"{called}, between", f"{apart}, {deviation}"),
        ]
        for site in self.sites:
            if site.is_outlier:
                line = f"an outlier: {site.estimate.value:.4f}, false alarm {site.false_alarm:.2g}"
                rows.append((f"{called}, {name_of(site.index, names)}", line))
        return rows


class Sites:
    """Several figures of all sites, computed when they are first asked for.

    The models of many sites take longer than all else of a result, and anyone who repeats a
    simulation reads few of them. Pickling computes them.

    Parameters
    ----------
    make : gives the figures: AUC, and calibration where scores are probabilities.
    """

    def __init__(self, make: Callable[[], tuple[SiteFigure, ...]]) -> None:
        self._make = make

    @cached_property
    def figures(self) -> tuple[SiteFigure, ...]:
        """AUC, and calibration where scores are probabilities."""
        return self._make()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sites) and est.is_same(self.figures, other.figures)

    def __hash__(self) -> int:
        return hash(len(self.figures))

    @classmethod
    def of(cls, figures: tuple[SiteFigure, ...]) -> Sites:
        """Figures that are there already."""
        return cls(lambda: figures)

    def __reduce__(self) -> tuple[Callable[..., Sites], tuple[tuple[SiteFigure, ...]]]:
        return Sites.of, (self.figures,)

    def __getitem__(self, figure: str) -> SiteFigure:
        """The figure of this name.

        Raises
        ------
        KeyError : where there is none.
        """
        return {each.figure: each for each in self.figures}[figure]

    def to_dict(self, names: Sequence[str] = ()) -> dict[str, Any]:
        """The entries of a result about sites; without names they are numbered."""
        count = len(self.figures[0].sites)
        parts = [
            {
                "name": name_of(index, names),
                "measures": {each.figure: _measure(each.sites[index]) for each in self.figures},
            }
            for index in range(count)
        ]
        together = {each.figure: each.to_dict() for each in self.figures}
        return {"sites": parts, "between_sites": together}

    def to_rows(self, names: Sequence[str] = ()) -> list[tuple[str, str]]:
        """The figures as labelled lines for a person."""
        return [row for each in self.figures for row in each.to_rows(names)]


def name_of(index: int, names: Sequence[str]) -> str:
    """What a site is called: its name, or its number from 1."""
    return names[index] if names else f"site {index + 1}"


def _measure(site: Site) -> dict[str, Any]:
    """A site's measure in the JSON, with what all sites together say of it."""
    told = est.entry_of(site, OF_ONE) | {"outlier": site.is_outlier}
    return est.measure_of(site.estimate) | told


def _with_reason(estimate: est.Estimate, figure: str, known: bool) -> est.Estimate:
    """The estimate with the reason why it does not enter the model, where it does not."""
    if known or estimate.reason:
        return estimate
    return replace(estimate, reason=f"the error of this {figure} is too large")


def _on_scale(estimate: est.Estimate, scale: Scale) -> tuple[float, float] | None:
    """The value and the variance of its error on a scale; None where there is none."""
    value = estimate.centre
    variance = estimate.standard_error**2 + estimate.sampling_error**2
    if not (math.isfinite(value) and math.isfinite(variance) and variance > 0):
        return None
    if scale == "as it is":
        return value, variance
    if not 0 < value < 1:
        return None
    stretched = variance / (value * (1 - value)) ** 2
    return (math.log(value / (1 - value)), stretched) if stretched <= LARGEST_ERROR**2 else None


def _told(mixture: random_effects.Mixture, scale: Scale) -> tuple[float, tuple[float, float]]:
    """The mean of a distribution on this scale, and its interval, as figures."""
    told = np.array([mixture.mean, *mixture.interval()])
    mean, low, high = (told if scale == "as it is" else scipy.special.expit(told)).tolist()
    return mean, (low, high)
