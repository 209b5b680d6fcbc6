"""Figures of classes, private groups and sites, one table a measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tacit.reporting.charts import IntervalBar
from tacit.results.saved.reading import estimate_of, number

Part = Mapping[str, Any]

PARTS = (
    ("classes", "Classes", "Class"),
    ("groups", "Private groups", "Group"),
    ("sites", "Sites", "Site"),
)
"""The entries of a result about parts, their headings, and what one of the parts is called."""


@dataclass(frozen=True)
class MeasureTable:
    """One measure of all parts.

    Parameters
    ----------
    name : the measure.
    title : with the score from which a record counts as positive, where it has one.
    rows : the name of each part that has the measure, and its entry.
    """

    name: str
    title: str
    rows: list[tuple[str, Mapping[str, Any]]]

    @property
    def of_sites(self) -> bool:
        """Whether entries also say what all sites together tell of one."""
        return any("shrunk" in entry for _, entry in self.rows)

    @property
    def has_outlier(self) -> bool:
        """Whether a part lies further from the others than chance explains."""
        return any(entry.get("outlier") for _, entry in self.rows)

    def bar(self, mark: str) -> IntervalBar:
        """The estimates on one scale."""
        rows = [(name, estimate_of(entry)) for name, entry in self.rows]
        return IntervalBar(mark, f"{self.name} of each", rows)


def measure_tables(parts: Sequence[Part]) -> list[MeasureTable]:
    """The tables of parts, in the order in which measures first appear."""
    made = []
    for measure in dict.fromkeys(name for part in parts for name in part["measures"]):
        known = [part for part in parts if measure in part["measures"]]
        rows = [(str(part["name"]), part["measures"][measure]) for part in known]
        made.append(MeasureTable(measure, at_threshold(measure, rows[0][1]), rows))
    return made


def at_threshold(name: str, measure: Mapping[str, Any]) -> str:
    """A measure's name with the score from which a record counts as positive, where it has one.

    Examples
    --------
    >>> at_threshold("AUC", {}), at_threshold("true positive rate", {"threshold": 0.5})
    ('AUC', 'true positive rate at 0.5')
    """
    threshold = measure.get("threshold")
    return name if threshold is None else f"{name} at {number(threshold):g}"


def reasons_of(parts: Sequence[Part]) -> list[tuple[str, str]]:
    """Why figures are missing: the part, and the reason."""
    made = {
        (str(part["name"]), each.get("reason", ""))
        for part in parts
        for each in (part, *part["measures"].values())
    }
    return sorted((name, why) for name, why in made if why)
