"""``tacit check``: every problem of files of records at once."""

from __future__ import annotations

from dataclasses import asdict

import click
from click.exceptions import Exit

from tacit.cli import record_options
from tacit.cli.evaluating.sources import files_in_memory
from tacit.cli.json_output import JsonOutput, json_option
from tacit.cli.shell import complain
from tacit.data.check import check_files
from tacit.data.columns import RULES
from tacit.data.reading import FileColumns

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
@record_options.score_and_label
@click.option("--second", help="The column of second values.")
@click.option("--client", help="The column of client ids; without it each file is a client.")
@click.option("--person", metavar="COL", help="The column that says whose record it is.")
@record_options.unit_option
@record_options.form_options
@click.option(
    "--missing",
    type=click.Choice(RULES),
    default=RULES[0],
    show_default=True,
    help="Whether records without a score or a label are a problem, or left out and noted.",
)
@json_option
@record_options.gathered_columns
def check(
    files: tuple[str, ...],
    columns: FileColumns,
    output: JsonOutput,
) -> None:
    """Find every problem of FILES (CSV, Parquet or Feather) at once, and say what to do.

    Nothing is sent or spent. The output describes single records: it is for their owner.
    """
    paths = files_in_memory(files, "tacit check")
    checked = check_files(paths, **vars(columns))
    output.show(asdict(checked), lambda: "\n".join(checked.lines))
    if checked.number:
        complain(f"tacit: {checked.number} problem{'s' * (checked.number > 1)}")
        raise Exit(PROBLEMS)
