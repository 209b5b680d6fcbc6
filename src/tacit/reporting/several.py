"""The parts of a report about two compared models, and about public groups of records."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from typing import Any

from tacit.privacy.cost import cost_line
from tacit.reporting.charts import interval_bar, with_legend
from tacit.reporting.comparing import pooled_bounds
from tacit.reporting.parts import PagePosition, datum, named, paragraphs, table
from tacit.reporting.sections import result_sections, sentence_of
from tacit.reporting.words import WITHOUT_LIMIT, between, decimal, left_out_sentence, signed
from tacit.results.estimate import decimals
from tacit.results.saved.reading import Bounds, Estimated, number
from tacit.results.saved.reading_parts import ComparedModels, GroupedResult, Model, PublicGroup

MOST_WHOLE = 12
"""Most groups of which the page shows everything; of more it shows the table."""
DRAWN = 40
"""Most groups in a forest plot."""
INTERVALS = ("95 % interval (these records)", "95 % interval (population)")
EXACT_LEFT_OUT = (
    "this report says exactly how many records were left out, which is outside every guarantee: it "
    "must not leave the place it was computed in"
)
EXACT_MODELS = (
    "This report holds the exact AUCs, which are outside every guarantee: it must not leave the "
    "place they were computed in. Compare without --exact for a report to pass on."
)


def compared_sections(compared: ComparedModels, position: PagePosition) -> str:
    """Both models, their difference, and everything about the run."""
    rows = [(model.name, model.estimate) for model in compared.models]
    bar = interval_bar(
        f"{position.prefix}-models",
        "AUC of both models",
        rows,
        math.nan,
        pooled_bounds([estimate for _, estimate in rows]),
    )
    headings = ("Model", "AUC", *INTERVALS)
    listed = [_model_row(model) for model in compared.models]
    listed.append(_difference_row(compared))
    body = with_legend(bar) + table("Both models", headings, listed)
    body += paragraphs([_verdict(compared), *_exact_caution(compared)])
    made = position.section("models", "Two models on the same records", body, "card first")
    return made + result_sections(compared.difference, position)


def _model_row(model: Model) -> list[str]:
    name = named(model.name)
    if math.isfinite(model.exact):
        name += f" <small>(exact {datum(model.exact)})</small>"
    return [name, *_cells(model.estimate)]


def _cells(estimate: Estimated) -> list[str]:
    digits = decimals(estimate.interval)
    shown = decimal(estimate.value, digits) if estimate.has_signal else "no signal"
    return [
        datum(estimate.value, shown),
        escape(between(estimate.interval, digits)),
        escape(between(estimate.population_interval, digits)),
    ]


def _difference_row(compared: ComparedModels) -> list[str]:
    first, second = compared.models
    estimate = compared.difference.estimate
    digits = decimals(estimate.interval)

    def ends(bounds: Bounds) -> str:
        return " to ".join(signed(bound, digits) for bound in bounds)

    return [
        f"{named(first.name)} less {named(second.name)}",
        datum(estimate.value, signed(estimate.value, digits)),
        escape(ends(estimate.interval)),
        escape(ends(estimate.population_interval)),
    ]


def _verdict(compared: ComparedModels) -> str:
    """Which model is better, as far as the intervals tell."""
    estimate = compared.difference.estimate
    here = _better(compared, estimate.interval)
    if not here:
        return "The interval of the difference holds 0: neither model is shown to be better."
    if _better(compared, estimate.population_interval):
        return f"{here} has the higher AUC, on these records and in the population."
    return f"{here} has the higher AUC on these records; in the population, neither is shown to."


def _better(compared: ComparedModels, bounds: Bounds) -> str:
    low, high = bounds
    if not low <= high or low <= 0 <= high:
        return ""
    return compared.models[0 if low > 0 else 1].name


def _exact_caution(compared: ComparedModels) -> Iterator[str]:
    if any(math.isfinite(model.exact) for model in compared.models):
        yield EXACT_MODELS


def grouped_sections(grouped: GroupedResult, position: PagePosition) -> str:
    """All groups side by side, how far they lie apart, and each of them, if they are few."""
    rows = [
        (group.name, group.result.estimate) for group in grouped.groups if group.result is not None
    ]
    body = ""
    if 0 < len(rows) <= DRAWN:
        bounds = pooled_bounds([estimate for _, estimate in rows])
        title = f"{grouped.figure} of each group"
        bar = interval_bar(f"{position.prefix}-groups", title, rows, math.nan, bounds)
        body += with_legend(bar)
    headings = ("Group", "Records", grouped.figure, *INTERVALS)
    body += table(f"{grouped.figure} of each group", headings, map(_group_row, grouped.groups))
    body += paragraphs([*_apart(grouped), *_spent(grouped), *_left_out(grouped)])
    made = position.section("groups", "Groups of records", body, "card first")
    made += _cautions(grouped, position)
    if len(rows) > MOST_WHOLE:
        return made
    return made + "".join(
        _group_article(group, PagePosition(f"{position.prefix}g{index}", position.level + 1))
        for index, group in enumerate(grouped.groups)
    )


def _group_row(group: PublicGroup) -> list[str]:
    size = "not told"
    if math.isfinite(group.records):
        size = f"{'' if group.exact_size else 'about '}{max(group.records, 0):,.0f}"
    name = named(group.name)
    if group.result is None:
        return [name, size, "none", escape(group.reason), ""]
    return [name, size, *_cells(group.result.estimate)]


def _apart(grouped: GroupedResult) -> Iterator[str]:
    """How far the groups lie apart, about these records and about the population."""
    for entry, about in (("spread", "these records"), ("population_spread", "the population")):
        spread = grouped.content[entry]
        if spread is None:
            continue
        low, high = (number(bound) for bound in spread["interval"])
        if entry == "spread":
            yield (
                f"The highest estimate, of {spread['highest']}, and the lowest, of "
                f"{spread['lowest']}, are {decimal(number(spread['value']))} apart; noise makes "
                "that too large on average."
            )
        yield (
            f"The highest and the lowest figure of {about} are {between((low, high))} apart, with "
            "95 % for all groups together."
        )


def _spent(grouped: GroupedResult) -> Iterator[str]:
    yield f"Spent in all: {cost_line(grouped.content['spent'], unlimited=WITHOUT_LIMIT)}."
    if sum(group.result is not None for group in grouped.groups) > MOST_WHOLE:
        yield f"The page shows more than {MOST_WHOLE} groups in this table only."


def _left_out(grouped: GroupedResult) -> Iterator[str]:
    """How many incomplete records were left out of all groups, where the file says it."""
    missing = grouped.content.get("missing")
    if missing is not None:
        yield left_out_sentence(missing)


def _cautions(grouped: GroupedResult, position: PagePosition) -> str:
    warnings: list[Any] = list(grouped.content["warnings"])
    if grouped.content.get("missing", {}).get("private") is False:
        warnings.append(EXACT_LEFT_OUT)
    if not warnings:
        return ""
    listed = "".join(f"<li>{escape(sentence_of(str(warning)))}</li>" for warning in warnings)
    return position.section("warnings", "Warnings", f"<ul>{listed}</ul>", "card warning")


def _group_article(group: PublicGroup, position: PagePosition) -> str:
    """Everything about one group, folded."""
    if group.result is None:
        return ""
    body = result_sections(group.result, position)
    return f"<details><summary>Group {named(group.name)}</summary>{body}</details>"
