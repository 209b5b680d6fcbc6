"""Where items of TRIPOD+AI stand in a report, or that they are outside of it.

Items of the checklist of Collins et al., BMJ 2024;385:e078378. Items 23a and 23b were read in
transcriptions of the checklist; items 10 and 11 are known to us by their topics only, the study's
size and missing data. Compare them with the paper before you cite this table. Other items are not
claimed. The wording is ours.
"""

from __future__ import annotations

import math
from html import escape

from tacit.reporting.parts import PagePosition, paragraphs, table
from tacit.reporting.review import has_essentials
from tacit.reporting.words import left_out_sentence
from tacit.results.saved import reading

PLACES = ("classes", "groups", "sites")
"""The entries of a result about parts of the records."""
INTERVALS = "each with its interval where it does not say that none is known"
PERFORMANCE = "performance with confidence intervals, and in subgroups"
NOTE = (
    "Only these items of the checklist are spoken of. The others, such as the source of the data, "
    "eligibility and the model itself, are outside what an evaluation knows."
)


def tripod_section(result: reading.Result, position: PagePosition) -> str:
    """The items, where the result has more than one figure."""
    if not any(entry in result.content for entry in ("measures", *PLACES)):
        return ""
    rows = [
        [escape(item), escape(asked), escape(answer)]
        for item, asked, answer in (
            ("10", "how the study size was arrived at", _size(result)),
            ("11", "how missing data were handled", _missing(result)),
            ("23a", PERFORMANCE, _performance(result)),
            ("23b", "heterogeneity of performance across clusters", _heterogeneity(result)),
        )
    ]
    made = table("Items of the checklist", ("Item", "What it asks for", "Where it stands"), rows)
    return position.section("tripod", "TRIPOD+AI", made + paragraphs([NOTE]))


def _size(result: reading.Result) -> str:
    positives, negatives = (
        reading.number(result.content.get(name)) for name in ("positives", "negatives")
    )
    if not (math.isfinite(positives) and math.isfinite(negatives)):
        return "Outside: neither the sizes nor their reason are known here."
    return (
        f"In part: {positives:,.0f} positive and {negatives:,.0f} negative records, as estimated, "
        "under Who took part. Why it is that many is outside; tacit plan states the error of a "
        "size before anything is spent."
    )


def _missing(result: reading.Result) -> str:
    missing = result.content.get("missing")
    if missing is None:
        return (
            "Outside: every record that was evaluated has a score and a label, because records "
            "without them are refused. How many were left out before is not known here."
        )
    return f"In this report: {left_out_sentence(missing)}"


def _performance(result: reading.Result) -> str:
    """The figures that this very report has, and where."""
    listed = [f"the {result.figure} above"]
    if has_essentials(result):
        listed.append("calibration and net benefit under For a reviewer")
    if "rates" in result.content:
        listed.append("rates under Choose a threshold")
    if "classes" in result.content:
        listed.append("those of single classes under Classes")
    if "groups" in result.content:
        listed.append("those of subgroups under Private groups")
        return f"In this report, {INTERVALS}: {_joined(listed)}."
    return (
        f"In part. In this report, {INTERVALS}: {_joined(listed)}. Subgroups are outside; tacit "
        "evaluate has options for them, --groups and --private-group."
    )


def _joined(listed: list[str]) -> str:
    *first, last = listed
    return f"{', '.join(first)} and {last}" if first else last


def _heterogeneity(result: reading.Result) -> str:
    if result.content.get("sites"):
        return (
            "In this report: the figures of single sites under Sites and, where there are enough, "
            "how far sites truly differ."
        )
    return (
        "Outside: figures are of all clients' records together, and say nothing about how clients "
        "differ."
    )
