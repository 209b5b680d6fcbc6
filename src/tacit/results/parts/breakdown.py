"""Figures of parts of the records, such as classes or private groups, from one release."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tacit.results.estimate import Estimate, estimate_line, finite, measure_of

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
    figures: Mapping[str, Estimate]
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The part's entry in the JSON."""
        made: dict[str, Any] = {
            "name": self.name,
            "records": finite(self.positives + self.negatives),
            "positives": finite(self.positives),
            "negatives": finite(self.negatives),
            "measures": measures_of(self.figures),
        }
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
    estimate: Estimate
    called: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The difference's entry in the JSON."""
        return {
            "measure": self.figure,
            "called": self.called,
            "first": self.first,
            "second": self.second,
            **measure_of(self.estimate),
        }


@dataclass(frozen=True, eq=False)
class Breakdown:
    """Figures of parts of the records, of all parts together, and of their differences.

    Parameters
    ----------
    by : what the parts are: ``"class"`` or ``"group"``.
    parts : their figures.
    overall : figures about all parts, by name.
    differences : between parts.
    """

    by: str
    parts: tuple[Part, ...]
    overall: Mapping[str, Estimate] = field(default_factory=dict)
    differences: tuple[Difference, ...] = ()

    def __getitem__(self, name: str) -> Part:
        """The part of this name.

        Raises
        ------
        KeyError : where there is none.
        """
        for part in self.parts:
            if part.name == name:
                return part
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """The entries of a result about its classes or groups."""
        made: dict[str, Any] = {ENTRIES[self.by]: [part.to_dict() for part in self.parts]}
        if self.overall:
            made["measures"] = measures_of(self.overall)
        if self.differences:
            made["differences"] = [each.to_dict() for each in self.differences]
        return made

    def to_rows(self) -> list[tuple[str, str]]:
        """The figures as labelled lines for a person."""
        rows = [(name, estimate_line(figure)) for name, figure in self.overall.items()]
        figures = [figure for part in self.parts for figure in part.figures.values()]
        values = sorted({each.threshold for each in figures if each.threshold is not None})
        if values:
            rows.append((f"threshold of {self.by}s", ", ".join(f"{each:.6g}" for each in values)))
        for part in self.parts:
            called = f"{self.by} {part.name}"
            rows += [
                (f"{called}: {name}", estimate_line(figure))
                for name, figure in part.figures.items()
            ]
            if part.reason:
                rows.append((called, part.reason))
        for each in self.differences:
            called = each.called or f"difference of {each.figure}"
            # chance is judged in the interval about the population
            line = estimate_line(each.estimate, "+", about="population")
            rows.append((f"{called}: {each.first} - {each.second}", line))
        return rows


def measures_of(figures: Mapping[str, Estimate]) -> dict[str, Any]:
    """Estimates as measures by name."""
    return {name: measure_of(figure) for name, figure in figures.items()}


def difference(first: Estimate, second: Estimate) -> Estimate:
    """The difference of figures about different records, whose errors are independent.

    Approximation errors add up: what cells hide may have either sign.
    """
    return Estimate(
        (first.value - first.bias) - (second.value - second.bias),
        math.hypot(first.privacy_error, second.privacy_error),
        math.hypot(first.sampling_error, second.sampling_error),
        first.approximation_error + second.approximation_error,
        limits=(-1.0, 1.0),
    )
