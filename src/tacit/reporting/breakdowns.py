"""The parts of a report about classes, private groups and sites: tables and forest plots."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from tacit.reporting.charts import interval_bar, with_legend
from tacit.reporting.comparing import pooled_bounds
from tacit.reporting.parts import PagePosition, datum, named, paragraphs, table
from tacit.reporting.review import measures_table
from tacit.results.estimate import decimals
from tacit.results.saved.reading import Estimated, Result, number

Part = Mapping[str, Any]

HEADINGS = {"classes": "Classes", "groups": "Private groups", "sites": "Sites"}
"""The entries of a result about parts, with the headings of their sections."""

ONE_OF = {"classes": "Class", "groups": "Group", "sites": "Site"}
"""What one of these parts is called."""

DRAWN = 40
"""Most parts in a forest plot; a table has all of them."""

UNKNOWN = (None, None)
"""The interval of a measure that states none."""

OUTLIER = "Sites marked * lie further from the others than chance explains at 5 % for all of them."


def part_sections(result: Result, position: PagePosition) -> str:
    """The sections about classes, groups and sites, as far as a result has them."""
    return "".join(
        position.section(entry, heading, _body(result, entry, f"{position.prefix}-{entry}"))
        for entry, heading in HEADINGS.items()
        if result.content.get(entry)
    )


def _body(result: Result, entry: str, mark: str) -> str:
    parts: Sequence[Part] = result.content[entry]
    names = list(dict.fromkeys(name for part in parts for name in part["measures"]))
    made = _overall(result, entry)
    made += _forest(parts, names[0], mark) if names else ""
    made += _sizes(parts, ONE_OF[entry])
    made += "".join(_measure_table(parts, name, ONE_OF[entry]) for name in names)
    if entry == "sites":
        made += _between_table(result.content.get("between_sites", {}))
        made += paragraphs([OUTLIER] * _has_outlier(parts))
    if entry == "groups" and result.content.get("differences"):
        made += _difference_table(result.content["differences"])
    return made + _reasons(parts)


def _has_outlier(parts: Sequence[Part]) -> bool:
    return any(each.get("outlier") for part in parts for each in part["measures"].values())


def _overall(result: Result, entry: str) -> str:
    """What is stated of all classes together."""
    measures = result.content.get("measures", {}) if entry == "classes" else {}
    return measures_table("All classes", measures, list(measures)) if measures else ""


def _sizes(parts: Sequence[Part], called: str) -> str:
    """How many records there are of each part, as far as the release tells."""
    known = [part for part in parts if all(map(math.isfinite, _sides(part)))]
    if not known:
        return ""
    sides = ("Of the class", "Of the others") if called == "Class" else ("Positive", "Negative")
    rows = [
        [
            named(str(part["name"])),
            *(datum(size, f"{size:,.0f}") for size in _sides(part)),
        ]
        for part in known
    ]
    return table("Records, as estimated", (called, *sides), rows)


def _sides(part: Part) -> tuple[float, float]:
    """Its estimated numbers of positive and of negative records, NaN where they are not known."""
    return number(part.get("positives")), number(part.get("negatives"))


def _forest(parts: Sequence[Part], name: str, mark: str) -> str:
    """The estimates of one measure on one scale; none where parts are too many to draw."""
    rows = [
        (str(part["name"]), _estimated(part["measures"][name]))
        for part in parts
        if name in part["measures"]
    ]
    if len(rows) > DRAWN:
        return ""
    bounds = pooled_bounds([estimate for _, estimate in rows])
    return with_legend(interval_bar(mark, f"{name} of each", rows, math.nan, bounds))


def _measure_table(parts: Sequence[Part], name: str, called: str) -> str:
    """One measure of all parts; of sites also what all of them together say."""
    known = [part for part in parts if name in part["measures"]]
    of_sites = any("shrunk" in part["measures"][name] for part in known)
    headings = [called, "Estimate", "95 % interval (these records)", "95 % interval (population)"]
    headings += ["With the other sites", "False alarm"] * of_sites
    rows = [_measure_row(part, name, of_sites) for part in known]
    return table(at_threshold(name, known[0]["measures"][name]), headings, rows)


def at_threshold(name: str, measure: Mapping[str, Any]) -> str:
    """A measure's name with the score from which a record counts as positive, where it has one.

    Examples
    --------
    >>> at_threshold("AUC", {}), at_threshold("true positive rate", {"threshold": 0.5})
    ('AUC', 'true positive rate at 0.5')
    """
    threshold = number(measure.get("threshold"))
    return f"{name} at {threshold:g}" if math.isfinite(threshold) else name


def _measure_row(part: Part, name: str, of_sites: bool) -> list[str]:
    measure = part["measures"][name]
    digits = decimals(_bounds(measure.get("interval", UNKNOWN)))
    marked = " *" if measure.get("outlier") else ""
    row = [
        f"{named(str(part['name']))}{marked}",
        _shown(number(measure["value"]), digits),
        _range(measure.get("interval", UNKNOWN), digits),
        _range(measure.get("population_interval", UNKNOWN), digits),
    ]
    if not of_sites:
        return row
    shrunk = _shown(number(measure.get("shrunk")), digits)
    within = _range(measure.get("shrunk_interval", UNKNOWN), digits)
    return [*row, f"{shrunk} ({within})", _shown(number(measure.get("false_alarm")), 3)]


def _between_table(between: Mapping[str, Any]) -> str:
    headings = ("Figure", "Mean", "95 % interval", "New site, 95 %", "Deviation between, 95 %")
    rows = [
        [
            escape(name),
            _shown(number(entry["mean"]), 4),
            _range(entry["mean_interval"], 4),
            _range(entry["prediction_interval"], 4),
            f"{_shown(number(entry['deviation']), 4)} "
            f"({_range(entry['deviation_interval'], 4)}; {escape(entry['scale'])})",
        ]
        for name, entry in between.items()
        if "reason" not in entry
    ]
    return table("All sites", headings, rows) if rows else ""


def _difference_table(differences: Sequence[Mapping[str, Any]]) -> str:
    headings = (
        *("Difference", "Measure", "Estimate"),
        *("95 % interval (these records)", "95 % interval (population)"),
    )
    rows = [
        [
            f"{named(each['first'])} less {named(each['second'])}",
            escape(f"{each['measure']} ({each['called']})" if each["called"] else each["measure"]),
            _shown(number(each["value"]), 4),
            _range(each["interval"], 4),
            _range(each["population_interval"], 4),
        ]
        for each in differences
    ]
    return table("Differences between groups", headings, rows)


def _reasons(parts: Sequence[Part]) -> str:
    """Why figures are missing, for each part."""
    lines = []
    for part in parts:
        measures = part["measures"].items()
        reasons = {part.get("reason", "")} | {each.get("reason", "") for _, each in measures}
        lines += [f"<li>{named(str(part['name']))}: {escape(why)}</li>" for why in reasons if why]
    return f"<p>Not given:</p><ul>{''.join(sorted(lines))}</ul>" if lines else ""


def _estimated(measure: Mapping[str, Any]) -> Estimated:
    return Estimated(
        number(measure["value"]),
        number(measure["privacy_error"]),
        number(measure["sampling_error"]),
        number(measure["cell_error"]),
        number(measure.get("bias", 0.0)),
        _bounds(measure.get("interval", UNKNOWN)),
        _bounds(measure.get("population_interval", UNKNOWN)),
    )


def _bounds(interval: Sequence[float | None]) -> tuple[float, float]:
    return number(interval[0]), number(interval[1])


def _shown(value: float, digits: int) -> str:
    return datum(value, f"{value:.{digits}f}" if math.isfinite(value) else None)


def _range(interval: Sequence[float | None], digits: int) -> str:
    return " to ".join(_shown(bound, digits) for bound in _bounds(interval))
