"""The parts of a report about one result, as HTML in which every value is escaped.

The threat model of a result's protocol.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from html import escape
from typing import Any

from tacit.privacy.cost import cost_line
from tacit.protocol.declarations.threats import ThreatModel
from tacit.protocol.registry import written_kind
from tacit.reporting.breakdowns import part_sections
from tacit.reporting.charts import interval_bar, with_legend
from tacit.reporting.comparing import pooled_bounds
from tacit.reporting.curves import Panel, panels
from tacit.reporting.parts import PagePosition, datum, named, paragraphs, table
from tacit.reporting.review import has_essentials, measures_table, review_section
from tacit.reporting.tripod import tripod_section
from tacit.reporting.words import (
    NOISE,
    WITHOUT_LIMIT,
    between,
    decimal,
    headline_sentences,
    missing_sentence,
    privacy_sentences,
    records_sentence,
    sent_sentence,
    shown_interval,
    threshold_text,
)
from tacit.results.estimate import decimals
from tacit.results.saved.reading import Estimated, Result, half_of, number

UNKNOWN = ThreatModel(
    "This report has no description of the protocol; see the protocol's documentation.",
    "See the protocol's documentation.",
    "See the protocol's documentation.",
    "See the protocol's documentation.",
)


def threats_of(protocol: Mapping[str, Any]) -> ThreatModel:
    """The threat model of a result's ``protocol`` entry.

    Examples
    --------
    >>> threats_of({"name": "hierarchical-auc", "epsilon": 1.0}).others
    'Nothing.'
    """
    kind = written_kind(protocol["name"])
    if kind is object:
        return UNKNOWN
    settings = {key: value for key, value in protocol.items() if key != "name"}
    threats: ThreatModel = kind.threats(settings)
    return threats


RATES = (
    ("precision", "Precision", "of the records called positive, how many are"),
    ("recall", "Recall", "of the positives, how many are found"),
    ("f1", "F1", "the harmonic mean of both"),
    ("specificity", "Specificity", "of the negatives, how many are left alone"),
    ("accuracy", "Accuracy", "of all records, how many are called right"),
)
CALIBRATION = {
    "debiased_ece": "Calibration error (ECE), less what noise adds",
    "ece": "Calibration error (ECE), as it is",
    "mce": "Largest calibration error (MCE)",
    "brier": "Brier score",
}
GAUGE = '<svg class="gauge" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
COLUMNS = ("Setting", "Value")
MOST_LISTED = 5
"""Longer lists of clients are folded: most of their rows say the same."""


def result_sections(result: Result, position: PagePosition) -> str:
    """Everything about one result; the ROC curve stands in the first row of pictures."""
    figures = [_figure(each, position.level + 1) for each in panels(result, position.prefix)]
    leads = has_essentials(result) and "roc" in result.content
    return "".join(
        [
            _headline(result, position),
            _notices(result, position),
            review_section(result, position, figures[0] if leads else ""),
            part_sections(result, position),
            _privacy(result, position),
            tripod_section(result, position),
            _curves(result, position, figures[1:] if leads else figures),
            _thresholds(result, position),
            _further(result, position),
            _threats(result, position),
            _making(result, position),
        ]
    )


def _headline(result: Result, position: PagePosition) -> str:
    estimate, digits = result.estimate, decimals(result.estimate.interval)
    exact = number(result.content.get("exact"))
    if estimate.has_signal:
        figure = f'<p class="figure">{datum(estimate.value, decimal(estimate.value, digits))}</p>'
    else:
        figure = '<p class="figure">no signal</p>'
    interval, picture = "", ""
    if estimate.has_interval:
        picture = _headline_picture(result, position, estimate, exact)
        shown = shown_interval(estimate, digits)
        low, high = (datum(x, text) for x, text in zip(estimate.interval, shown, strict=True))
        name = estimate.interval_name
        interval = f'<p class="interval">{name} <b>{low}</b> to <b>{high}</b></p>'
    body = (
        f'<div class="headline"><div>{figure}{interval}</div>{picture}</div>'
        f"{paragraphs(headline_sentences(result))}{_exact_line(result, exact, digits)}"
    )
    return position.section("headline", capitalised(result.figure), body, "card first")


def _headline_picture(
    result: Result, position: PagePosition, estimate: Estimated, exact: float
) -> str:
    low, high = pooled_bounds([estimate])
    if math.isfinite(exact):
        low, high = min(low, exact), max(high, exact)
    ends = " to ".join(shown_interval(estimate, 4))
    title = f"{result.figure} with its {estimate.interval_name} {ends}"
    bar = interval_bar(f"{position.prefix}-bar", title, [("", estimate)], exact, (low, high))
    return with_legend(bar, math.isfinite(exact))


def _exact_line(result: Result, exact: float, digits: int) -> str:
    if not math.isfinite(exact):
        return ""
    return (
        f"<p>Exact {escape(result.figure)}: {datum(exact, decimal(exact, digits))} (computed where "
        "all records could be read).</p>"
    )


def _notices(result: Result, position: PagePosition) -> str:
    notices = [str(warning) for warning in result.content["warnings"]]
    if "exact" in result.content:
        notices.append(
            "this report holds the exact figure, which is outside every guarantee: it must not "
            "leave the place it was computed in. Evaluate without --exact for a report to pass on"
        )
    if result.content.get("missing", {}).get("private") is False:
        notices.append(
            "this report says exactly how many records were left out, which is outside every "
            "guarantee. Evaluate with --count-missing for a number to pass on"
        )
    if not notices:
        return ""
    listed = "".join(f"<li>{escape(sentence_of(notice))}</li>" for notice in notices)
    return position.section("warnings", "Warnings", f"<ul>{listed}</ul>", "card warning")


def _privacy(result: Result, position: PagePosition) -> str:
    body = paragraphs(privacy_sentences(result))
    body += paragraphs(
        sentence
        for sentence in (
            _clients_sentence(result),
            sent_sentence(result),
            records_sentence(result),
            missing_sentence(result),
        )
        if sentence is not None
    )
    return position.section(
        "privacy", "Who took part, and what it cost", body + _participants(result)
    )


def _clients_sentence(result: Result) -> str:
    count = result.content["clients"]
    return "One client took part." if count == 1 else f"{count:,} clients took part."


def _participants(result: Result) -> str:
    listed = result.content.get("participants", [])
    if not listed:
        return ""
    spent = escape(cost_line(result.content["spent"], unlimited=WITHOUT_LIMIT))
    rows = [
        (named(entry.get("name", f"client {index}")), f"{entry['bytes_sent']:,}", spent)
        for index, entry in enumerate(listed, start=1)
    ]
    made = table("Clients", ("Client", "Bytes sent", "Spent at most"), rows)
    if len(listed) <= MOST_LISTED:
        return made
    return f"<details><summary>All {len(listed)} clients</summary>{made}</details>"


def _curves(result: Result, position: PagePosition, figures: list[str]) -> str:
    if not figures:
        body = paragraphs(
            ["There is no curve: this protocol gives the figure and its errors only."]
            if result.estimate.has_signal
            else ["The noise left no curve to draw."]
        )
        return position.section("curves", "Curves", body)
    body = f'<div class="plots">{"".join(figures)}</div>'
    return position.section("curves", "Curves", body)


def _figure(panel: Panel, level: int) -> str:
    name, title = panel.plot.name, escape(panel.plot.title)
    headings = [heading for heading, _ in panel.columns]
    rows = "".join(
        f'<tr data-x="{row[0]!r}" data-y="{row[1]!r}">'
        + "".join(f"<td>{text}</td>" for text in panel.texts(row))
        + "</tr>"
        for row in panel.rows
    )
    top = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    return (
        f'<figure class="panel"><h{level}>{title}</h{level}>'
        f'{panel.plot.svg()}<p class="readout" data-for="{name}">'
        "Point at the picture to read it.</p>"
        f"<figcaption>{escape(panel.caption)}</figcaption>"
        f'<details><summary>Table: {title}</summary><div class="scroll" tabindex="0" role="group" '
        f'aria-label="{title}, table"><table id="{name}-table"><caption>{title}</caption><thead>'
        f"<tr>{top}</tr></thead><tbody>{rows}</tbody></table></div></details></figure>"
    )


def _thresholds(result: Result, position: PagePosition) -> str:
    rates = result.content.get("rates")
    if rates is None or not rates["thresholds"]:
        return ""
    start, last = starting_threshold(rates), len(rates["thresholds"]) - 1
    mark = f"{position.prefix}-threshold"
    rows = [
        (
            f"{label} <small>{escape(meaning)}</small>",
            f'<b data-rate="{name}">{decimal(number(rates[name][start]))}</b>',
            f'<span data-interval="{name}">{_rate_interval(rates, name, start)}</span>',
            _gauge(rates, name, start),
        )
        for name, label, meaning in RATES
    ]
    threshold = threshold_text(rates["thresholds"][start])
    sampled = "true_positive_sampling" in result.content.get("roc", {})
    about = "population" if sampled else "these records"
    headings = ("Rate", "Estimate", f"95 % interval ({about})", "Share")
    body = (
        "<p>Records whose score reaches the threshold are called positive. "
        '<span class="screen">Move it, with the mouse or the arrow keys; the pictures show where '
        "it lies.</span></p>"
        f'<div class="slider" data-result="{position.prefix}"><label for="{mark}">Threshold</label>'
        f'<input type="range" id="{mark}" min="0" max="{last}" step="1" value="{start}" '
        f'aria-valuetext="{threshold}"><output for="{mark}" aria-live="off">{threshold}</output>'
        f"{table('Rates at this threshold', headings, rows)}"
        "</div>"
    )
    return position.section("thresholds", "Choose a threshold", body)


def starting_threshold(rates: Mapping[str, Any]) -> int:
    """Where the slider starts: the threshold with the highest F1, or the middle one."""
    known = [(value, -index) for index, value in enumerate(rates["f1"]) if value is not None]
    return -max(known)[1] if known else len(rates["thresholds"]) // 2


def _rate_interval(rates: Mapping[str, Any], name: str, index: int) -> str:
    bounds = (number(rates[f"{name}_low"][index]), number(rates[f"{name}_high"][index]))
    return between(bounds)


def _gauge(rates: Mapping[str, Any], name: str, index: int) -> str:
    value = number(rates[name][index])
    width = 100 * min(max(value, 0.0), 1.0) if math.isfinite(value) else 0.0
    return (
        f'{GAUGE}<rect class="whole" width="100" height="8"/>'
        f'<rect class="part" data-gauge="{name}" width="{width:.2f}" height="8"/></svg>'
    )


def _further(result: Result, position: PagePosition) -> str:
    rows = []
    if "average_precision" in result.content:
        rows.append(_estimate_row("Average precision", result.content["average_precision"]))
    half, middle = result.content.get("at_half", {}), half_of(result.content)
    rows += [
        _estimate_row(f"{label} at {middle:g}", half[name])
        for name, label, _ in RATES
        if name in half and middle is not None
    ]
    calibration = result.content.get("calibration", {})
    rows += [
        (escape(label), datum(number(calibration[name])), "not known")
        for name, label in CALIBRATION.items()
        if name in calibration and name not in result.content.get("measures", {})
    ]
    if not rows:
        return ""
    made = table("Figures", ("Figure", "Estimate", "95 % interval (these records)"), rows)
    return position.section("further", "Further figures", made + _all_measures(result))


def _all_measures(result: Result) -> str:
    """Every measure of the release, folded."""
    measures = result.content.get("measures", {})
    if not measures:
        return ""
    listed = measures_table("All measures", measures, list(measures))
    return f"<details><summary>All {len(measures)} measures</summary>{listed}</details>"


def _estimate_row(label: str, entry: Mapping[str, Any]) -> tuple[str, str, str]:
    estimate = Estimated.of(entry)
    return escape(label), datum(estimate.value), escape(between(estimate.interval))


def _threats(result: Result, position: PagePosition) -> str:
    threats = threats_of(result.content["protocol"])
    entries = (
        ("Whom a client has to trust", threats.trust),
        ("What the server sees", threats.server),
        ("What a client sees of the others", threats.others),
        ("What stays unprotected", threats.left_open),
    )
    listed = "".join(f"<dt>{term}</dt><dd>{_with_code(text)}</dd>" for term, text in entries)
    return position.section("threats", "Who sees what", f"<dl>{listed}</dl>")


def _with_code(text: str) -> str:
    """A text whose commands stand between grave accents."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _making(result: Result, position: PagePosition) -> str:
    content = result.content
    chosen = content["protocol"]
    settings = [(escape(key), _setting(value)) for key, value in chosen.items()]
    said = content["federation"]
    facts = [
        ("Noise", escape(NOISE[content["noise"]])),
        ("Computed", escape(str(content.get("time", "no time: a simulation is repeatable")))),
        *((escape(key), escape(str(value))) for key, value in content["software"].items()),
        ("Schema", escape(content["schema"])),
        ("Federation", named(said["name"]) if said["name"] else "not named"),
        ("Fingerprint of the federation", _digest(said["fingerprint"])),
        ("Fingerprint of this result", _digest(content["fingerprint"])),
    ]
    note = (
        "<p>The fingerprint of a result is a SHA-256 digest of its content: it notices changes by "
        "accident, and is no signature. That of a federation is a digest of what was said of it, "
        "its name and number of clients, and of no record.</p>"
    )
    body = table("Settings", COLUMNS, settings) + table("Provenance", COLUMNS, facts) + note
    return position.section("making", "Settings and provenance", body)


def _digest(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _setting(value: Any) -> str:
    if isinstance(value, Mapping):
        return escape(", ".join(f"{key} {entry}" for key, entry in value.items()))
    if isinstance(value, list):
        return escape(", ".join(map(str, value)))
    return escape(str(value))


def sentence_of(text: str) -> str:
    """A warning as a sentence."""
    return capitalised(text if text.endswith(".") else f"{text}.")


def capitalised(text: str) -> str:
    """A text with its first letter in upper case."""
    return text[:1].upper() + text[1:]
