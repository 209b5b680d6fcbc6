"""Commands before an evaluation: ``tacit check``, ``tacit sql`` and ``tacit plan``.

``tacit check``: every problem of files of records at once.

``tacit sql``: the statement that counts the records of a table.

``tacit plan``: what every protocol would give, before anything is spent.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict, replace
from typing import Any

import click
from click.exceptions import Exit

from tacit.cli import record_options
from tacit.cli.setting_options import Normalised, SettingsCommand, chosen_protocol
from tacit.cli.shell import JsonOutput, check_signal, complain, json_option, show
from tacit.cli.sources import counted_once, files_in_memory
from tacit.data import units
from tacit.data.check import check_files
from tacit.data.engines.persons import counted_relation
from tacit.data.engines.relations import DIALECTS, Relation
from tacit.data.engines.statements import counting_statement
from tacit.data.persons import SEED_BYTES
from tacit.data.reading import FileColumns
from tacit.planning.planner import plan as make_plan
from tacit.protocol import forecast
from tacit.protocol.registry import kind_of, protocol_names
from tacit.protocol.trust import Trust, trust_words
from tacit.running.units import suited_to_scores

HEAD = """\
-- Counts of records by client, class and cell of scores, for the protocol {name} of
-- tacit. Class or cell -1: a label other than 0 and 1, or a score that is missing, not
-- finite or out of range; tacit declines these. Class 2 and 3: labels 0 and 1 of the
-- second private group, and so on. The counts are exact: they stay at the site, where
-- tacit adds noise."""
"""What is above a statement."""

DRAWN = """\
-- A key in this statement draws which records of a person count; one without a person has cell -1.
-- Do not keep it with the answer: delete it, and print a new one for the next count."""
"""What is above a statement that counts so many records of a person."""

PROBLEMS = 1
"""The exit status where a file cannot be read as it is."""


@click.command()
@record_options.FILES
@record_options.score_and_label
@record_options.second_option
@record_options.record_options
@record_options.missing_option
@json_option
@record_options.gathered_columns()
def check(files: tuple[str, ...], columns: FileColumns, output: JsonOutput) -> None:
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


@click.command(cls=SettingsCommand)
@click.option("--protocol", required=True, type=Normalised(protocol_names()), help="What to run.")
@click.option("--table", metavar="NAME", help="The table of records, with its schema before a dot.")
@click.option("--query", metavar="SQL", help="A query of the records, instead of a table.")
@click.option(
    "--engine",
    type=click.Choice(tuple(DIALECTS)),
    default="postgres",
    help="Whose SQL.",
)
@record_options.one_score_and_label
@click.option("--client", help="The column of client ids; without it all records are one client's.")
@click.option("--private-group", metavar="COL", help="The column of private groups.")
@click.option("--unit", type=click.Choice(units.UNITS), help="What the scores are.")
@click.option("--person", metavar="COL", help="The column that says whose record it is.")
@record_options.per_person_option
def sql(
    protocol: str,
    table: str | None,
    query: str | None,
    engine: str,
    score: str,
    label: str,
    client: str | None,
    private_group: str | None,
    unit: str | None,
    person: str | None,
    per_person: int | None,
    settings: dict[str, Any],
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

    With --person it counts at most K records of a person at a client, drawn by a fresh key of
    the operating system: give `tacit evaluate --counts` the same --per-person. The key is in the
    statement: delete it when it has run, and print a new one for the next count.
    """
    if person is None and per_person is not None:
        raise click.UsageError("--per-person needs --person")
    if (table is None) == (query is None):
        raise click.UsageError("give --table or --query, one of them")
    # epsilon changes no cell, and who counts need not know it
    chosen = chosen_protocol(protocol, _with_budget(protocol, settings))
    if unit == units.PERCENT:
        raise click.UsageError("cells are of probabilities: give a --query that divides by 100")
    if unit is not None:
        chosen = suited_to_scores(chosen, unit, frozenset(settings))
    once = counted_once(chosen)
    dialect = DIALECTS[engine]
    if (private_group is None) != (not once.groups):
        needed = "needs" if once.groups else "takes no"
        raise click.UsageError(f"--protocol {protocol} {needed} --private-group")
    source = dialect.source(table, query)
    score, label = dialect.stored(score), dialect.stored(label)
    named = {"client": client, "group": private_group, "person": person}
    named = {option: name and dialect.stored(name) for option, name in named.items()}
    relation = Relation(
        dialect, source, score, label, named["client"], group=named["group"], groups=once.groups
    )
    head, most = HEAD.format(name=chosen.name), 0 if person is None else per_person or 1
    if most:
        drawn = replace(relation, person=named["person"]), most, secrets.token_bytes(SEED_BYTES)
        relation, head = counted_relation(*drawn), f"{head}\n{DRAWN}"
    statement = counting_statement(relation, once.edges, *once.ends, once.mark(most))
    show(f"{head}\n{statement};")


def _with_budget(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings, with some epsilon where the protocol has one and none was given."""
    takes = "epsilon" not in settings and kind_of(name).takes_epsilon(settings)
    return {**settings, "epsilon": 1.0} if takes else settings


@click.command()
@click.option("--records", type=int, required=True, help="All clients' records together.")
@click.option(
    "--positives",
    type=int,
    help="How many are positive; a guess will do. Needed without --classes.",
)
@click.option(
    "--classes",
    type=click.IntRange(min=2),
    metavar="C",
    help="Plan the mean AUC of C classes, each with a score; --positives are then the records of "
    "one class, by default equally many of each.",
)
@click.option("--clients", type=int, required=True, help="How many clients hold them.")
@click.option("--epsilon", type=float, required=True, help="The privacy budget of an evaluation.")
@click.option(
    "--per-person",
    type=record_options.PerPerson(),
    metavar="K",
    help="Epsilon is a person's, of whom at most K records count at a client; --records are those "
    "that count.",
)
@click.option(
    "--trust",
    type=Normalised(trust_words()),
    metavar=f"[{'|'.join(trust.value for trust in Trust)}]",
    help="Who may see what; see below. By default secure-sum for up to 1,000 clients, and "
    "local for more.",
)
@click.option("--auc-guess", type=float, help="The AUC to expect; without one, 0.65 to 0.9.")
@click.option(
    "--want",
    metavar="FIGURE [within X]",
    help="A figure, and how far the ends of its 95 % interval may lie from it, as 'auc within "
    "0.02', 'net benefit at 0.2 within 0.002', 'sensitivity at 0.5 within 0.03' or 'calibration "
    "slope'. By default the AUC, and in a table of its own other figures.",
)
@json_option
def plan(
    positives: int | None,
    classes: int | None,
    per_person: int | None,
    want: str | None,
    output: JsonOutput,
    **asked: Any,
) -> None:
    """Predict every fitting protocol's error and traffic, and recommend one. Nothing is spent.

    Epsilon hides different things in different protocols; the plan says what, and puts protocols
    that hide whole records first.

    Examples:
      tacit plan --records 40000 --positives 4000 --clients 10 --epsilon 1
      tacit plan --records 4000 --positives 400 --clients 4000 --epsilon 1 --want "auc within 0.05"
      tacit plan --records 9000 --positives 900 --clients 9 --epsilon 1 --trust local --want auc
      tacit plan --records 4000 --positives 400 --clients 10 --trust encrypted --epsilon 1 --json
      tacit plan --records 9000 --classes 3 --clients 9 --epsilon 1 --trust encrypted

    Trust:
      each                the server may see each client's counts, with noise that the client
                          itself added; no party adds noise for another
      server-sees-scores  the server may know all scores, and no label
      local               no party is trusted: each record's report is private
      secure-sum          the server sees sums over the clients only
      exact-sum           the same without noise: there is no differential privacy
      encrypted           the aggregator computes on encrypted counts
      mpc                 clients compute together, by cryptography

    Exit status:
      0  a protocol is recommended
      2  an error; one sentence says which
      3  no protocol is feasible
    """
    if positives is None and classes is None:
        raise click.UsageError("Missing option '--positives'.")
    metric, target = (None, None) if want is None else forecast.wanted(want)
    asked |= {"classes": classes, "per_person": per_person or 0, "metric": metric, "target": target}
    made = make_plan(positives=positives, **asked)
    output.show(made.to_dict(), lambda: str(made))
    check_signal(made.recommended is not None)
