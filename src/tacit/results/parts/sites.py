"""Figures of every site beside each other, from what each site released by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from tacit.metrics import sites as random_effects
from tacit.metrics.sites import LEAST_SITES
from tacit.results.equality import is_same
from tacit.results.estimate import Estimate, bounds_line, decimals, finite, measure_of, numbers

Scale = Literal["log-odds", "as it is"]
"""On which scale sites are taken to differ normally."""

LARGEST_ERROR = 0.7
"""Largest error of a site on the scale of log-odds at which it enters the model: with a larger one
the map to that scale is no line within the error."""

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
    shrunk, interval : its true figure and the 95 % interval, as all sites together tell.
    false_alarm : the probability with which one of all sites lies as far from the others by chance.
    """

    index: int
    estimate: Estimate
    shrunk: float = math.nan
    interval: tuple[float, float] = (math.nan, math.nan)
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
    between : the standard deviation between sites on ``scale``, and its 95 % interval.
    prediction_interval : 95 %, of the true figure of a new site.
    reason : why there is no model; empty where there is one.
    """

    figure: str
    scale: Scale
    sites: tuple[Site, ...]
    mean: float = math.nan
    mean_interval: tuple[float, float] = (math.nan, math.nan)
    between: tuple[float, float, float] = (math.nan, math.nan, math.nan)
    prediction_interval: tuple[float, float] = (math.nan, math.nan)
    reason: str = ""

    @classmethod
    def of(cls, figure: str, scale: Scale, estimates: Sequence[Estimate]) -> SiteFigure:
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
            sites[index] = Site(
                index,
                estimates[index],
                _back(own.mean, scale),
                _both_back(own.interval(), scale),
                float(alarms[place]),
            )
        pooled, new_site = fitted.mixture(), fitted.mixture(fitted.squares)
        between = random_effects.between_variance(values, variances)
        low, high = random_effects.between_interval(values, variances)
        return cls(
            figure,
            scale,
            tuple(sites),
            _back(pooled.mean, scale),
            _both_back(pooled.interval(), scale),
            (math.sqrt(between), math.sqrt(low), math.sqrt(high)),
            _both_back(new_site.interval(), scale),
        )

    def to_dict(self) -> dict[str, Any]:
        """What the JSON says of all sites together."""
        if self.reason:
            return {"scale": self.scale, "reason": self.reason}
        deviation, low, high = self.between
        return {
            "scale": self.scale,
            "mean": finite(self.mean),
            "mean_interval": numbers(self.mean_interval),
            "deviation": finite(deviation),
            "deviation_interval": numbers((low, high)),
            "prediction_interval": numbers(self.prediction_interval),
        }

    def to_rows(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """The figure as labelled lines for a person."""
        called = f"sites: {self.figure}"
        if self.reason:
            return [(called, self.reason)]
        digits = decimals(self.mean_interval)
        rows = [
            (called, f"{self.mean:.{digits}f}, 95 % interval {bounds_line(self.mean_interval)}"),
            (
                f"{called}, new site",
                f"95 % interval {bounds_line(self.prediction_interval, digits=digits)}",
            ),
            (
                f"{called}, between",
                f"standard deviation {self.between[0]:.{digits}f} ({self.scale}), 95 % interval "
                f"{bounds_line(self.between[1:], digits=digits)}",
            ),
        ]
        rows += [
            (
                f"{called}, {name_of(site.index, names)}",
                f"an outlier: {site.estimate.value:.4f}, false alarm {site.false_alarm:.2g}",
            )
            for site in self.sites
            if site.is_outlier
        ]
        return rows


class Sites:
    """Several figures of all sites, computed when they are first asked for.

    The models of many sites take longer than all else of a result, and whoever repeats a
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
        return is_same(self.figures, other.figures) if isinstance(other, Sites) else NotImplemented

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
        for each in self.figures:
            if each.figure == figure:
                return each
        raise KeyError(figure)

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
    return measure_of(site.estimate) | {
        "shrunk": finite(site.shrunk),
        "shrunk_interval": numbers(site.interval),
        "false_alarm": finite(site.false_alarm),
        "outlier": site.is_outlier,
    }


def _with_reason(estimate: Estimate, figure: str, known: bool) -> Estimate:
    """The estimate with the reason why it does not enter the model, where it does not."""
    if known or estimate.reason:
        return estimate
    return replace(estimate, reason=f"the error of this {figure} is too large")


def _on_scale(estimate: Estimate, scale: Scale) -> tuple[float, float] | None:
    """The value and the variance of its error on a scale; None where there is none."""
    value = estimate.value - estimate.bias
    variance = estimate.standard_error**2 + estimate.sampling_error**2
    if not (math.isfinite(value) and math.isfinite(variance) and variance > 0):
        return None
    if scale == "as it is":
        return value, variance
    if not 0 < value < 1:
        return None
    stretched = variance / (value * (1 - value)) ** 2
    return (math.log(value / (1 - value)), stretched) if stretched <= LARGEST_ERROR**2 else None


def _back(value: float, scale: Scale) -> float:
    if scale == "as it is":
        return value
    return 1 / (1 + math.exp(-value)) if value > -700 else 0.0


def _both_back(ends: tuple[float, float], scale: Scale) -> tuple[float, float]:
    return _back(ends[0], scale), _back(ends[1], scale)
