"""The command ``tacit reproduce``, which this distribution adds to ``tacit``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

import tacit_studies as studies
from tacit.cli.shell import JsonOutput, json_option, prompt_interrupt, show

if TYPE_CHECKING:
    from tacit_studies import Measured, Scores, Table


@click.command()
@click.argument("table", metavar="list|TABLE")
@click.option("--scores", metavar="FILE", help="Real scores (CSV or Parquet) to resample.")
@click.option("--score", default="score", show_default=True, help="The column of scores.")
@click.option("--label", default="label", show_default=True, help="The column of labels.")
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    help="How often each setting is measured; the table's own number by default.",
)
@click.option(
    "--only",
    metavar="TEXT",
    default="",
    help="Measure only parts whose names hold TEXT, in tables whose parts have names.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The seed.")
@json_option
def reproduce(
    table: str,
    scores: str | None,
    score: str,
    label: str,
    repeats: int | None,
    only: str,
    seed: int,
    output: JsonOutput,
) -> None:
    """Measure a table or figure of the papers again, beside the printed numbers.

    `list` prints the names of all tables. Without --scores, the records are synthetic: binormal
    scores of the papers' numbers of records and AUCs. All noise is simulated.

    Examples:
      tacit reproduce list
      tacit reproduce fedauc-figure-8
      tacit reproduce fedauc-table-3 --repeats 2 --json out/table-3.json
    """
    if table == "list":
        show(_list_of_tables())
        return
    if table not in studies.TABLES:
        raise click.UsageError(f"there is no table {table!r}; see: tacit reproduce list")
    study = studies.TABLES[table]
    if only and not any(only in job.name for job in study.jobs()):
        raise click.UsageError(f"no row of {table} has a name with {only!r} in it")
    if scores is None:
        source, origin = studies.Scores(), "synthetic scores"
    else:
        source = studies.Scores.from_file(scores, score, label)
        origin = f"scores from {scores}"
    rows = _measure(study, source, repeats, seed, only)
    heading = f"{table}: {study.description}"
    summary = studies.summary_lines(rows)
    text = "\n".join([heading, origin, "", studies.format_rows(rows), "", *summary])
    output.show([row.to_dict() for row in rows], lambda: text)


def _measure(
    table: Table, source: Scores, repeats: int | None, seed: int, only: str
) -> list[Measured]:
    """The table's rows, with a progress bar on a terminal."""
    with prompt_interrupt():
        if not sys.stderr.isatty():
            return table.measure(source, repeats, seed, only=only)
        steps = 1000
        with click.progressbar(length=steps, label=table.name, file=sys.stderr) as bar:
            return table.measure(
                source,
                repeats,
                seed,
                lambda fraction: bar.update(round(fraction * steps) - bar.pos),
                only,
            )


def _list_of_tables() -> str:
    tables = studies.TABLES
    width = max(map(len, tables))
    return "\n".join(f"{name:{width}}  {table.description}" for name, table in tables.items())
