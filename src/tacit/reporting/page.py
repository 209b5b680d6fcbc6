"""A report: one HTML page of one or several results, which needs no network and no other file."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from tacit.reporting.charts import interval_bar
from tacit.reporting.comparing import Difference, differences, pooled_bounds
from tacit.reporting.sections import (
    PagePosition,
    datum,
    named,
    paragraphs,
    result_sections,
    table,
    with_legend,
)
from tacit.reporting.words import (
    decimals,
    difference_sentence,
    pairing_sentence,
    signed,
    threshold_text,
)
from tacit.results.reading import Result

SAFE = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)
"""What must not stand in a script's JSON as it is."""


def report(results: Sequence[Result], title: str | None = None) -> str:
    """The page of one result, or of several with their differences from the first.

    Nothing is loaded: style and script stand in the page, and its content-security policy allows
    these two alone. Every value is escaped.

    Parameters
    ----------
    results : at least one.
    title : the page's heading; None for the federation's name, or else that of the first result.

    Raises
    ------
    ValueError : for no result, and for several that cannot be compared.
    """
    if not results:
        raise ValueError("a report needs at least one result, got none")
    heading = title or _default_title(results)
    several = len(results) > 1
    body = _comparison(results) if several else ""
    for index, result in enumerate(results):
        body += (
            _article(result, index) if several else result_sections(result, PagePosition("r0", 2))
        )
    return _document(heading, _banner(results) + body, _data(results))


def _default_title(results: Sequence[Result]) -> str:
    name = results[0].content["federation"]["name"]
    return str(name) if name else f"{results[0].figure} by {results[0].content['protocol']['name']}"


def _banner(results: Sequence[Result]) -> str:
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


def _article(result: Result, index: int) -> str:
    mark = f"r{index}"
    protocol = escape(str(result.content["protocol"]["name"]))
    return (
        f'<article id="{mark}" aria-labelledby="{mark}-heading"><h2 id="{mark}-heading">'
        f"{named(result.label)} <small>{protocol}</small></h2>"
        f"{result_sections(result, PagePosition(mark, 3))}</article>"
    )


def _comparison(results: Sequence[Result]) -> str:
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
        f'<li><a href="#r{index}">{named(result.label)}</a></li>'
        for index, result in enumerate(results)
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


def _cautions(results: Sequence[Result]) -> list[str]:
    made = []
    if len(results) > 2:
        made.append("Each interval holds with 95 % by itself, not all of them together.")
    if sum(result.content["simulation"] for result in results) > 1:
        made.append(
            "Simulations that were run with one seed may share their noise, which these intervals "
            "do not know."
        )
    return made


def _data(results: Sequence[Result]) -> str:
    """The rates that the slider moves through, as JSON that cannot end its script.

    Thresholds are there as they are read, too.
    """
    rates: dict[str, Any] = {
        f"r{index}": result.content["rates"]
        | {"shown": list(map(threshold_text, result.content["rates"]["thresholds"]))}
        for index, result in enumerate(results)
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
