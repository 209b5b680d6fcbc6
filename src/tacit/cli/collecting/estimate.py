"""``tacit estimate``: the result of what was collected so far."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from tacit.cli.options.shared import json_option
from tacit.cli.shell import NO_SIGNAL, as_json, show
from tacit.collecting.estimating import evaluation_of
from tacit.collecting.folder import Folder
from tacit.collecting.shuffled import HONEST, shuffled_of
from tacit.output import OutputFile
from tacit.results.saved.integrity import with_fingerprint
from tacit.results.text import as_lines

ESTIMATE_EXAMPLES = """\b
Examples:
  tacit estimate campaign
  tacit estimate campaign --json > result.json
  tacit estimate campaign --report result.html
  tacit estimate campaign --honest 0.5
"""


@click.command(epilog=ESTIMATE_EXAMPLES)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
@click.option("--report", metavar="FILE", help="Also write a page that works offline.")
@click.option(
    "--honest",
    metavar="FRACTION",
    default=HONEST,
    show_default=True,
    type=click.FloatRange(0, 1, min_open=True),
    help="Part of every sealed batch's reports that is taken to be honest.",
)
def estimate(folder: Path, print_json: bool, report: str | None, honest: float) -> None:
    """Estimate what the campaign in FOLDER asks for, from the reports collected so far.

    The collector may run meanwhile. The estimator is the protocol's own, as in `tacit evaluate`.
    Beside the guarantee of one report stands that of sealed batches, where a bound is known.
    """
    file = None if report is None else OutputFile(report)
    place = Folder(folder)
    result = replace(
        evaluation_of(place.campaign, place.stages(), place.report_bytes),
        shuffled=shuffled_of(place.campaign.terms, place.sealed_sizes(), honest),
    )
    if file is not None:
        file.write(result.to_html().encode())
    show(
        as_json(with_fingerprint(result.to_dict()))
        if print_json
        else as_lines(result.to_rows(), result.warnings)
    )
    if not result.has_signal:
        sys.exit(NO_SIGNAL)
