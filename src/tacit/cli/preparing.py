"""A site's commands before an evaluation: ``tacit check`` and ``tacit sql``.

``tacit check``: every problem of files of records at once.

``tacit sql``: the statement that counts the records of a table.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click
from click.exceptions import Exit

from tacit.cli import record_options
from tacit.cli.record_options import unit_option
from tacit.cli.setting_options import SettingsCommand, Spelled, chosen_protocol
from tacit.cli.shell import JsonOutput, complain, json_option, show
from tacit.cli.sources import counted_once, files_in_memory
from tacit.data.check import check_files
from tacit.data.columns import RULES
from tacit.data.engines.dialects import DIALECTS
from tacit.data.engines.statements import Relation, counting_statement
from tacit.data.reading import FileColumns
from tacit.data.scales import Units
from tacit.data.units import PERCENT
from tacit.protocol.registry import kind_of, protocol_names
from tacit.running.units import suited_to_scores

PROBLEMS = 1
"""The exit status where a file cannot be read as it is."""


@click.command()
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
    """Find every problem of FILES at once, and say what to do.

    FILES are CSV, Parquet or Feather. Nothing is sent or spent. The output describes single
    records: it is for their owner.

    Examples:
      tacit check north.csv south.csv
      tacit check north.csv --positive 1 --decimal , --unit probability
      tacit check phones.parquet --client phone --json

    Exit status:
      0    all files can be read, with these options
      1    there are problems; all are printed
      2    an error; one sentence says which
    """
    paths = files_in_memory(files, "tacit check")
    checked = check_files(paths, **vars(columns))
    output.show(asdict(checked), lambda: "\n".join(checked.lines))
    if checked.number:
        complain(f"tacit: {checked.number} problem{'s' * (checked.number > 1)}")
        raise Exit(PROBLEMS)


@click.command(cls=SettingsCommand, settings_after="protocol")
@click.option("--protocol", required=True, type=Spelled(protocol_names()), help="What to run.")
@click.option("--table", metavar="NAME", help="The table of records, with its schema before a dot.")
@click.option("--query", metavar="SQL", help="A query of the records, instead of a table.")
@click.option(
    "--engine",
    type=click.Choice(tuple(DIALECTS)),
    default="postgres",
    show_default=True,
    help="Whose SQL.",
)
@click.option("--score", default="score", show_default=True, help="The column of scores.")
@click.option("--label", default="label", show_default=True, help="The column of labels.")
@click.option("--client", help="The column of client ids; without it all records are one client's.")
@click.option("--private-group", metavar="COL", help="The column of private groups.")
@unit_option
def sql(
    protocol: str,
    table: str | None,
    query: str | None,
    engine: str,
    score: str,
    label: str,
    client: str | None,
    private_group: str | None,
    unit: Units,
    **settings: Any,
) -> None:
    """Print the SQL statement by which a site counts the records of a table.

    The cells follow from the protocol's settings alone. Give the same settings to
    `tacit evaluate --counts`; a budget is not needed here.

    Examples:
      tacit sql --table scored --protocol score-histogram --engine postgres > count.sql
      psql -h db.example clinic --csv -f count.sql > counts.csv
      tacit evaluate --counts counts.csv --protocol score-histogram --epsilon 1

    The statement only counts. Its answer has exact counts and no noise: it stays at the
    site. `tacit evaluate --counts` adds the noise, on a computer of the same site.
    """
    if (table is None) == (query is None):
        raise click.UsageError("give --table or --query, one of them")
    given = frozenset(name for name, value in settings.items() if value is not None)
    # epsilon changes no cell, and who counts need not know it
    chosen = chosen_protocol(protocol, _with_budget(protocol, settings))
    if unit == PERCENT:
        raise click.UsageError("cells are of probabilities: give a --query that divides by 100")
    if isinstance(unit, str):
        chosen = suited_to_scores(chosen, unit, given)
    once = counted_once(chosen)
    dialect = DIALECTS[engine]
    if (private_group is None) != (not once.groups):
        needed = "needs" if once.groups else "takes no"
        raise click.UsageError(f"--protocol {protocol} {needed} --private-group")
    source = dialect.source(table, query)
    relation = Relation(
        dialect, source, score, label, client, group=private_group, groups=once.groups
    )
    statement = counting_statement(relation, once.edges, *once.ends, once.mark)
    show(f"{_head(chosen.name)}\n{statement};")


def _head(name: str) -> str:
    return (
        f"-- Counts of records by client, class and cell of scores, for the protocol {name} of\n"
        "-- tacit. Class or cell -1: a label other than 0 and 1, or a score that is missing, not\n"
        "-- finite or out of range; tacit declines these. Class 2 and 3: labels 0 and 1 of the\n"
        "-- second private group, and so on. The counts are exact: they stay at the site, where\n"
        "-- tacit adds noise."
    )


def _with_budget(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings, with some epsilon where the protocol has one and none was given."""
    given = {key: value for key, value in settings.items() if value is not None}
    if settings.get("epsilon") is None and kind_of(name).takes_epsilon(given):
        return {**settings, "epsilon": 1.0}
    return settings
