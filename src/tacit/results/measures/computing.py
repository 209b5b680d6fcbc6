"""All measures of one histogram, and what a result's file says of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tacit.results.curves.bands import Numbers
from tacit.results.curves.histogram import Histogram
from tacit.results.measures import clinic, lines, operating, smooth, traffic
from tacit.results.measures.figures import NO_PROBABILITIES, too_few_records
from tacit.results.measures.measure import Measure, absent, measure_line
from tacit.results.measures.names import ESSENTIAL, label, names
from tacit.results.measures.separation import class_separation
from tacit.results.measures.view import CellView

CURVE_CELLS = 2**11
"""Largest number of cells that curves with bands are computed from."""


@dataclass(frozen=True, eq=False)
class Measures:
    """What follows from a histogram beyond its own figures.

    Everything is computed from the published counts, and costs no further privacy.

    Parameters
    ----------
    view : the counts, at the resolution that figures are computed at.
    thresholds : the probabilities at which figures of a decision are given.
    """

    view: CellView
    thresholds: tuple[float, ...] = clinic.THRESHOLDS

    @classmethod
    def of(
        cls, histogram: Histogram, thresholds: tuple[float, ...] = clinic.THRESHOLDS
    ) -> Measures:
        """The measures of a histogram.

        Raises
        ------
        ValueError : for a threshold outside (0, 1).
        """
        for threshold in thresholds:
            if not 0 < threshold < 1:
                raise ValueError(f"a threshold must be between 0 and 1, got {threshold}")
        return cls(CellView.of(histogram), thresholds)

    @cached_property
    def by_name(self) -> Mapping[str, Measure]:
        """Every figure by its name, absent ones with the reason."""
        reason = too_few_records(self.view)
        if reason is not None:
            return {name: absent(reason) for name in names(self.thresholds)}
        made = dict(self._all_measures())
        return {name: made.get(name) or absent(NO_PROBABILITIES) for name in names(self.thresholds)}

    def named(self, name: str) -> Measure:
        """One figure by its name, without the time that others take.

        Raises
        ------
        KeyError : for a name that is not among ``names(thresholds)``.
        """
        if name not in names(self.thresholds):
            raise KeyError(name)
        reason = too_few_records(self.view)
        if reason is not None:
            return absent(reason)
        slow = name in smooth.NAMES.values()
        groups = [smooth.distance_measures] if slow else self._quick_groups()
        if slow and not self.view.states_probabilities:
            return absent(NO_PROBABILITIES)
        matches = (
            measure for group in groups for called, measure in group(self.view) if called == name
        )
        return next(matches, absent(NO_PROBABILITIES))

    def _quick_groups(self) -> list[Callable[[CellView], Iterator[tuple[str, Measure]]]]:
        """The groups of figures without a simulation."""
        made: list[Callable[[CellView], Iterator[tuple[str, Measure]]]] = [
            clinic.ranking_measures,
            operating.operating_measures,
            traffic.traffic_measures,
            lambda view: iter([("kolmogorov_smirnov", class_separation(view))]),
        ]
        if self.view.states_probabilities:
            made += [
                clinic.calibration_measures,
                lambda view: clinic.threshold_measures(view, self.thresholds),
                traffic.loss_measures,
            ]
        return made

    def _all_measures(self) -> Iterator[tuple[str, Measure]]:
        view = self.view
        yield from clinic.ranking_measures(view)
        yield from operating.operating_measures(view)
        yield "kolmogorov_smirnov", class_separation(view)
        yield from traffic.traffic_measures(view)
        if view.states_probabilities:
            yield from clinic.calibration_measures(view)
            yield from smooth.distance_measures(view)
            yield from clinic.threshold_measures(view, self.thresholds)
            yield from traffic.loss_measures(view)

    @cached_property
    def curves(self) -> Mapping[str, Mapping[str, Numbers]]:
        """Curves with their bands by name; without those that do not exist."""
        if too_few_records(self.view) is not None:
            return {}
        view = self.view.merged(CURVE_CELLS)
        made: dict[str, Mapping[str, Numbers] | None] = {
            "score_distribution": lines.score_distribution(view),
            "gain_curve": lines.gain_curve(view),
        }
        if view.states_probabilities:
            made["decision_curve"] = lines.decision_curve(view)
            made["calibration_curve"] = lines.calibration_curve(view)
        return {name: curve for name, curve in made.items() if curve is not None}

    def to_rows(self) -> list[tuple[str, str]]:
        """The essential figures as labelled lines for a person."""
        measures = self.by_name
        shown = [name for name in ESSENTIAL if measures[name].reason != NO_PROBABILITIES]
        if not shown:
            return []
        shown += [f"net_benefit_at_{threshold:g}" for threshold in self._shown_thresholds()]
        return [(label(name), measure_line(measures[name])) for name in shown]

    def _shown_thresholds(self) -> tuple[float, ...]:
        """Those that were chosen; of the default ones the nearest to the prevalence."""
        share = self.by_name["prevalence"].value
        if self.thresholds != clinic.THRESHOLDS or not math.isfinite(share):
            return self.thresholds
        return (min(self.thresholds, key=lambda threshold: abs(threshold - share)),)

    def to_dict(self) -> dict[str, Any]:
        """The entries of a result."""
        return {
            "measures": {name: measure.to_dict() for name, measure in self.by_name.items()},
            **self.curves,
        }
