"""A report: one HTML page of one or several results, which needs no network and no other file."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from tacit.reporting.charts import interval_bar, with_legend
from tacit.reporting.comparing import Difference, differences, pooled_bounds
from tacit.reporting.parts import PagePosition, datum, named, paragraphs, table
from tacit.reporting.sections import result_sections
from tacit.reporting.several import compared_sections, grouped_sections
from tacit.reporting.words import difference_sentence, pairing_sentence, signed, threshold_text
from tacit.results.estimate import decimals
from tacit.results.saved import reading, reading_parts

SAFE = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)
"""What must not stand in a script's JSON as it is."""


def report(documents: Sequence[reading_parts.Document], title: str | None = None) -> str:
    """The page of one result, or of several with their differences from the first.

    Comparisons of two models and results of groups are sections of the same page. Nothing is
    loaded: style and script stand in the page, and its content-security policy allows these two
    alone. Every value is escaped.

    Parameters
    ----------
    documents : at least one result, comparison of models or result of groups.
    title : the page's heading; None for the federation's name, or else that of the first document.

    Raises
    ------
    ValueError : for no document, and for several results that cannot be compared.
    """
    if not documents:
        raise ValueError("a report needs at least one result, got none")
    results = [each for each in documents if isinstance(each, reading.Result)]
    body = _comparison(documents, results) if len(results) > 1 else ""
    for index, document in enumerate(documents):
        several = len(documents) > 1
        body += _article(document, index) if several else _sections(document, PagePosition("r0", 2))
    shown = dict(_shown_results(documents))
    heading = title or _default_title(documents[0])
    return _document(heading, _banner(list(shown.values())) + body, _data(shown))


def _shown_results(
    documents: Sequence[reading_parts.Document],
) -> Iterator[tuple[str, reading.Result]]:
    """Every result of the page with the prefix of its parts."""
    for index, document in enumerate(documents):
        if isinstance(document, reading.Result):
            yield f"r{index}", document
        elif isinstance(document, reading_parts.ComparedModels):
            yield f"r{index}", document.difference
        else:
            for place, group in enumerate(document.groups):
                if group.result is not None:
                    yield f"r{index}g{place}", group.result


def _default_title(first: reading_parts.Document) -> str:
    if isinstance(first, reading_parts.GroupedResult):
        return f"{first.figure} of groups of records"
    if isinstance(first, reading_parts.ComparedModels):
        return f"{first.models[0].name} and {first.models[1].name} compared"
    name = first.content["federation"]["name"]
    return str(name) if name else f"{first.figure} by {first.content['protocol']['name']}"


def _banner(results: Sequence[reading.Result]) -> str:
    """What must be seen before anything else."""
    simulated = [result for result in results if result.content["simulation"]]
    if not simulated:
        return ""
    which = (
        "This report is"
        if len(simulated) == len(results)
        else f"{', '.join(result.label for result in simulated)}: this is"
    )
    return (
        f'<aside class="banner" aria-label="Simulation"><strong>Simulation</strong> '
        f"{escape(which)} a simulation. It protects nobody, and is no measurement of a federation."
        "</aside>"
    )


def _article(document: reading_parts.Document, index: int) -> str:
    mark = f"r{index}"
    return (
        f'<article id="{mark}" aria-labelledby="{mark}-heading"><h2 id="{mark}-heading">'
        f"{named(document.label)} <small>{escape(_kind(document))}</small></h2>"
        f"{_sections(document, PagePosition(mark, 3))}</article>"
    )


def _kind(document: reading_parts.Document) -> str:
    """What a document is, beside its name."""
    if isinstance(document, reading_parts.ComparedModels):
        return "two models"
    if isinstance(document, reading_parts.GroupedResult):
        return f"{len(document.groups)} groups"
    return str(document.content["protocol"]["name"])


def _sections(document: reading_parts.Document, position: PagePosition) -> str:
    """Everything about one document."""
    if isinstance(document, reading_parts.ComparedModels):
        return compared_sections(document, position)
    if isinstance(document, reading_parts.GroupedResult):
        return grouped_sections(document, position)
    return result_sections(document, position)


def _comparison(
    documents: Sequence[reading_parts.Document], results: Sequence[reading.Result]
) -> str:
    all_differences = differences(results)
    figure = results[0].figure
    rows = [(result.label, result.estimate) for result in results]
    bounds = pooled_bounds([estimate for _, estimate in rows])
    bar = interval_bar("compared", f"{figure} of all results", rows, math.nan, bounds)
    sentences = "".join(
        f"<li>{escape(difference_sentence(difference, figure))}</li>"
        for difference in all_differences
    )
    links = "".join(
        f'<li><a href="#r{index}">{named(document.label)}</a></li>'
        for index, document in enumerate(documents)
    )
    body = (
        f"{with_legend(bar)}<ul>{sentences}</ul>"
        f"{_difference_table(all_differences)}"
        f"{paragraphs([pairing_sentence(all_differences), *_cautions(results)])}"
        f'<nav aria-label="Results"><ul class="links">{links}</ul></nav>'
    )
    return PagePosition("all", 2).section("comparison", f"{figure} compared", body, "card first")


def _difference_table(all_differences: Sequence[Difference]) -> str:
    rows = [_difference_row(difference) for difference in all_differences]
    headings = (
        "Difference",
        "Estimate",
        "95 % interval (these records)",
        "95 % interval (population)",
        "Paired",
    )
    return table("Differences from the first result", headings, rows)


def _difference_row(difference: Difference) -> list[str]:
    digits = decimals(difference.interval)

    def shown(value: float) -> str:
        return datum(value, signed(value, digits))

    return [
        f"{named(difference.second)} less {named(difference.first)}",
        shown(difference.value),
        " to ".join(map(shown, difference.interval)),
        " to ".join(map(shown, difference.population_interval)),
        "yes" if difference.paired else "no",
    ]


def _cautions(results: Sequence[reading.Result]) -> list[str]:
    made = []
    if len(results) > 2:
        made.append("Each interval holds with 95 % by itself, not all of them together.")
    if sum(result.content["simulation"] for result in results) > 1:
        made.append(
            "Simulations that were run with one seed may share their noise, which these intervals "
            "do not know."
        )
    return made


def _data(results: Mapping[str, reading.Result]) -> str:
    """The rates that the slider moves through, as JSON that cannot end its script.

    Thresholds are there as they are read, too.
    """
    rates: dict[str, Any] = {
        prefix: result.content["rates"]
        | {"shown": list(map(threshold_text, result.content["rates"]["thresholds"]))}
        for prefix, result in results.items()
        if "rates" in result.content
    }
    return json.dumps(rates, separators=(",", ":"), allow_nan=False).translate(SAFE)


def _document(title: str, body: str, data: str) -> str:
    style, script = (
        files("tacit.reporting").joinpath(name).read_text(encoding="utf-8")
        for name in ("page.css", "page.js")
    )
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; "
        f"script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        '<meta name="referrer" content="no-referrer">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title><style>{style}</style>'
        '</head>\n<body><a class="skip" href="#main">To the result</a><header>'
        f'<p class="brand">tacit report</p><h1>{named(title)}</h1></header>\n'
        f'<main id="main">{body}</main>\n<footer><p>Made by tacit. This file works offline and '
        "loads nothing.</p></footer>"
        f'<script type="application/json" id="rates">{data}</script>'
        f"<script>{script}</script></body></html>\n"
    )


def _hash(text: str) -> str:
    """The digest by which a content-security policy knows a style or a script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
