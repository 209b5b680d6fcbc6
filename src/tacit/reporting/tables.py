"""Tables of a result's figures.

For the page one table per measure, of classes, private groups or sites; for a paper one table of
all figures of a file, as comma-separated values or Markdown; for a model card on the Hugging Face
Hub ``model-index`` metadata, with the fields of
https://github.com/huggingface/hub-docs/blob/main/modelcard.md.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from tacit.extras import extra
from tacit.reporting.pictures import IntervalBar
from tacit.reporting.words import between, cost_text, decimal
from tacit.results import estimate as est
from tacit.results.measures.catalogue import label
from tacit.results.saved import reading
from tacit.results.saved.reading import Result, bounds_of, estimate_of, half_of, number
from tacit.results.text import unformulated

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


AS_IT_IS = "as it is"
NO_SIGNAL = "the noise left no signal"


class Row(NamedTuple):
    """One figure.

    Parameters
    ----------
    name, text : for programs, and for people where they read another name.
    estimate : the figure, or the reason why there is none.
    """

    name: str
    estimate: est.Estimate
    text: str = ""

    @property
    def reason(self) -> str:
        """Why there is no estimate; empty where there is one and nothing is said."""
        return self.estimate.reason or ("" if self.estimate.given else NO_SIGNAL)


def figure_rows(document: reading.Document) -> Iterator[Row]:
    """The figures of a file in its order."""
    if isinstance(document, reading.ComparedModels):
        first, second = document.models
        yield from (Row(f"AUC, {model.label}", model.estimate) for model in document.models)
        yield Row(f"AUC, {first.label} less {second.label}", document.difference.estimate)
    elif isinstance(document, reading.GroupedResult):
        for group in document.groups:
            known = group.result and group.result.estimate
            name = f"{document.figure}, group {group.name}"
            yield Row(name, known or est.Estimate.absent(group.reason))
    else:
        yield from _of_result(document)


def _of_result(result: Result) -> Iterator[Row]:
    yield Row(result.figure, result.estimate)
    for name, entry in result.content.get("measures", {}).items():
        yield Row(name, estimate_of(entry), label(name))
    for entries, _, called in PARTS:
        for part in result.content.get(entries, ()):
            yield from _of_part(part, called.lower())
    for each in result.content.get("differences", ()):
        name = f"{each['measure']}, {each['first']} less {each['second']}"
        yield Row(name, estimate_of(each))
    for name, entry in result.content.get("between_sites", {}).items():
        if "reason" not in entry:
            yield from _of_all_sites(name, entry)


def _of_part(part: Mapping[str, Any], called: str) -> Iterator[Row]:
    """The figures of one class, private group or site."""
    name, why = str(part["name"]), str(part.get("reason", ""))
    of_part = name if name.startswith(called) else f"{called} {name}"
    for measure, entry in part["measures"].items():
        figure = estimate_of({"reason": why, **entry})
        text = f"{at_threshold(measure, entry)}, {of_part}"
        yield Row(f"{measure}, {of_part}", figure, text)
    if not part["measures"]:
        yield Row(of_part, est.Estimate.absent(why))


def _of_all_sites(name: str, entry: Mapping[str, Any]) -> Iterator[Row]:
    """The mean of sites with its interval about their population, a new site, and the deviation."""
    scale = "" if entry["scale"] == AS_IT_IS else f" ({entry['scale']})"
    for text, value, interval in (
        ("mean of sites", "mean", "mean_interval"),
        ("a new site", "mean", "prediction_interval"),
        (f"deviation between sites{scale}", "deviation", "deviation_interval"),
    ):
        around = est.Interval(math.nan, math.nan), bounds_of(entry, interval)
        made = replace(est.Estimate.absent(""), value=number(entry[value]), intervals=around)
        yield Row(f"{name}, {text}", made)


COLUMNS = (
    *("result", "figure", "estimate", "low", "high", "population_low", "population_high"),
    *("privacy_error", "cell_error", "sampling_error", "threshold", "absent"),
)
"""Headings of the values: 95 % intervals about these records, and about the population."""


def as_csv(results: Sequence[reading.Document]) -> str:
    """Every figure of every file in a line, with all digits; what does not exist is empty.

    A name that a spreadsheet would take for a formula is preceded by an apostrophe.
    """
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(COLUMNS)
    for result in results:
        for row in figure_rows(result):
            figure, texts = row.estimate, (result.label, row.name, row.reason)
            ends = *figure.interval(), *figure.interval(about="population")
            errors = figure.privacy_error, figure.approximation_error, figure.sampling_error
            values = figure.value, *ends, *errors, number(figure.threshold)
            called, name, reason = map(unformulated, texts)
            digits = [repr(value) if math.isfinite(value) else "" for value in values]
            writer.writerow([called, name, *digits, reason])
    return made.getvalue()


def as_markdown(results: Sequence[reading.Document]) -> str:
    """A table of estimates with both intervals, rounded to what the intervals support."""
    about = f"{est.RECORDS_INTERVAL} | {est.POPULATION_INTERVAL}"
    lines = [f"| Result | Figure | Estimate | {about} |", "| --- | --- | --- | --- | --- |"]
    for result in results:
        for row in figure_rows(result):
            figure = row.estimate
            digits = est.decimals(figure.interval())
            shown = decimal(figure.value, digits) if figure.given else f"none: {_cell(row.reason)}"
            both = (figure.interval(), figure.interval(about="population"))
            around = " | ".join(between(ends, digits, "") for ends in both)
            named = f"{_cell(result.label)} | {_cell(row.text or row.name)}"
            lines.append(f"| {named} | {shown} | {around} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """A name that cannot end its cell or its line, and is no tag and no link."""
    return " ".join(re.sub(r"[\\|<\[]", r"\\\g<0>", text).split())


TASK = "tabular-classification"
"""The task of a card, unless it is given: one of the Hub's identifiers."""
METRICS = ("precision", "recall", "f1", "accuracy")
"""The rates where scores state the probability 1/2; the Hub's identifiers are the same."""
NEXT_LINE = "\x85"
"""A character that PyYAML writes as it is and reads as a space, unless all but ASCII is escaped."""


def model_index(results: Sequence[Result], model: str | None = None, task: str = TASK) -> str:
    """The metadata as YAML, to stand between the two ``---`` at the top of a model card.

    Parameters
    ----------
    results : each becomes one entry, or where ``model`` is None one model.
    model : the model's name; None for what each result is called.
    task : the Hub's identifier of the task.

    Raises
    ------
    ValueError : for no result, one without an estimate, and for an empty name.
    ImportError : when PyYAML is not installed.

    Examples
    --------
    >>> as_yaml({"model-index": [{"name": "a", "results": []}]})
    'model-index:\\n- name: a\\n  results: []\\n'
    """
    if not results:
        raise ValueError("a model card needs at least one result, got none")
    if model == "" or not task:
        raise ValueError("the names of the model and of its task must not be empty")
    entries = [_entry(result, task) for result in results]
    models = [(model, entries)]
    if model is None:
        models = [(each.label, [entry]) for each, entry in zip(results, entries, strict=True)]
    return as_yaml({"model-index": [{"name": name, "results": made} for name, made in models]})


def _entry(result: Result, task: str) -> dict[str, Any]:
    """One evaluation: its task, its records, its figures."""
    if not result.estimate.given:
        raise ValueError(f"{result.label} has no estimate to put on a model card")
    return {
        "task": {"type": task, "name": "Binary classification"},
        "dataset": _dataset(result),
        "metrics": _metrics(result),
    }


def _dataset(result: Result) -> dict[str, Any]:
    """The records, which are on no hub: their identifier is made of the federation's name."""
    name = result.content["federation"]["name"]
    count = result.content["clients"]
    called = name or f"private records of {count} client{'s' if count > 1 else ''}"
    mark = re.sub(r"[^a-z0-9]+", "-", called.lower()).strip("-")
    return {
        "type": mark or "private-records",
        "name": f"{called} (simulated)" if result.content["simulation"] else called,
    }


def _metrics(result: Result) -> list[dict[str, Any]]:
    content = result.content
    kind = "roc_auc" if result.figure.is_auc else re.sub(r"\W+", "_", result.figure.lower())
    made = [_metric(kind, str(result.figure), result.estimate, _provenance(content))]
    if "average_precision" in content:
        estimate = estimate_of(content["average_precision"])
        made.append(_metric("average_precision", "Average precision", estimate, {}))
    half, middle = content.get("at_half", {}), half_of(content)
    made += [
        _metric(name, f"{name} at {middle:g}", estimate_of(half[name]), {"threshold": middle})
        for name in METRICS
        if name in half and middle is not None
    ]
    brier = est.Estimate(number(content.get("calibration", {}).get("brier")), math.nan, math.nan)
    made.append(_metric("brier_score", "Brier score", brier, {}))
    return [metric for metric in made if math.isfinite(metric["value"])]


def _metric(
    kind: str, name: str, estimate: est.Estimate, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    interval = {"interval_95": list(estimate.interval())} if estimate.has_interval else {}
    made: dict[str, Any] = {"type": kind, "value": estimate.value, "name": name}
    return made | ({"args": {**interval, **arguments}} if interval or arguments else {})


def _provenance(content: Mapping[str, Any]) -> dict[str, Any]:
    """How the figure was obtained."""
    return {
        "protocol": content["protocol"]["name"],
        "spent": cost_text(content["spent"]),
        "simulation": content["simulation"],
        "tacit": content["software"]["tacit"],
        "result": content["fingerprint"],
    }


def as_yaml(value: Mapping[str, Any]) -> str:
    """Nested mappings and lists of plain values as YAML.

    Raises
    ------
    ImportError : with the install command, when PyYAML is not installed.
    """
    yaml = extra("yaml", "metadata of model cards needs PyYAML", "'tacit[model-card]'")
    dump = partial(yaml.safe_dump, value, sort_keys=False, width=math.inf)
    text = str(dump(allow_unicode=True))
    return str(dump()) if NEXT_LINE in text else text
