"""``tacit drift``: how a model's figures moved between two results."""

from __future__ import annotations

import click

from tacit.cli.shell import JsonOutput, check_signal, json_option
from tacit.reporting.drift import drift as drift_of
from tacit.results.estimate import MEANING, bounds_line, estimate_line, measure_of
from tacit.results.measures.catalogue import label
from tacit.results.saved import reading
from tacit.results.text import as_lines

SHIFTS = {
    "population_stability": "shift of scores (population stability index)",
    "kolmogorov_smirnov": "shift of scores (Kolmogorov-Smirnov)",
}
"""Distances between both releases' scores, which are never below 0."""


@click.command()
@click.argument("earlier", type=click.Path())
@click.argument("later", type=click.Path())
@json_option
def drift(earlier: str, later: str, output: JsonOutput) -> None:
    """Print how far a model moved from the result EARLIER to LATER, with intervals.

    Both are what `tacit evaluate --json` or `tacit run --json` wrote, of one model in two periods.
    Nothing is spent. Where both have score histograms, calibration and the shift of the scores
    (population stability index, Kolmogorov-Smirnov distance) are there, too. An interval about
    the population that holds zero shows no drift.

    Examples:
      tacit drift old.json new.json

    Exit status:
      0  the drift of the figure has an estimate
      2  an error; one sentence says which
      3  it has none
    """
    results = reading.read_documents((earlier, later), reading.Result.of)
    moved = drift_of(*results)
    rows = []
    for name, estimate in moved.items():
        sign = "" if name in SHIFTS else "+"
        line = estimate_line(estimate, sign)
        if estimate.given:
            bounds = estimate.interval(about="population")
            line += f", (population) {bounds_line(bounds, sign)}"
        rows.append((SHIFTS.get(name, f"drift of {label(name)}"), line))
    content = {"figure": str(results[0].figure)}
    entries = {name: measure_of(estimate) for name, estimate in moved.items()}
    output.show(
        content | {"drift": entries},
        lambda: as_lines([*rows, ("intervals", f"these records: {MEANING}")], []),
    )
    check_signal(moved[content["figure"]].given)
