"""``tacit check``: every problem of files of records at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click

from tacit.cli.evaluating.sources import files_in_memory
from tacit.cli.json_output import JsonOutput, json_option
from tacit.cli.record_options import form_options, score_and_label, unit_option
from tacit.cli.shell import complain
from tacit.data.check import check_files
from tacit.data.columns import RULES
from tacit.data.form import FileForm
from tacit.data.scales import ByFile, Units

PROBLEMS = 1
"""The exit status where a file cannot be read as it is."""

EXAMPLES = """\b
Examples:
  tacit check north.csv south.csv
  tacit check north.csv --positive 1 --decimal , --unit probability
  tacit check phones.parquet --client phone --json

\b
Exit status:
  0    all files can be read, with these options
  1    there are problems; all are printed
  2    an error; one sentence says which
"""


@click.command(epilog=EXAMPLES)
@click.argument("files", nargs=-1, required=True, type=click.Path())
@score_and_label
@click.option("--second", help="The column of second values.")
@click.option("--client", help="The column of client ids; without it each file is a client.")
@click.option("--person", metavar="COL", help="The column that says whose record it is.")
@unit_option
@form_options
@click.option(
    "--missing",
    type=click.Choice(RULES),
    default=RULES[0],
    show_default=True,
    help="Whether records without a score or a label are a problem, or left out and noted.",
)
@json_option
@click.pass_context
def check(
    context: click.Context,
    files: tuple[str, ...],
    score: ByFile,
    label: ByFile,
    second: str | None,
    client: str | None,
    person: str | None,
    unit: Units,
    form: FileForm | Mapping[str, FileForm],
    missing: Any,
    output: JsonOutput,
) -> None:
    """Look for every problem of FILES (CSV, Parquet or Feather) at once, and say what to do.

    Nothing is sent or spent. The output describes single records: it is for their owner.
    """
    paths = files_in_memory(files, "tacit check")
    checked = check_files(paths, score, label, client, second, unit, person, missing, form=form)
    output.show(asdict(checked), lambda: "\n".join(checked.lines))
    if checked.number:
        complain(f"tacit: {checked.number} problem{'s' * (checked.number > 1)}")
        context.exit(PROBLEMS)
