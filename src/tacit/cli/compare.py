"""``tacit compare``: two models on the same records, in one spend of privacy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import click
import numpy as np

import tacit
from tacit.cli import record_options, sources
from tacit.cli.setting_options import COMPARISONS, Normalised, SettingsCommand, chosen_protocol
from tacit.cli.shell import JsonOutput, PictureFile, check_signal, terminable
from tacit.data.clients import Clients
from tacit.data.reading import FileColumns
from tacit.data.scales import ByFile, by_file
from tacit.protocol.registry import comparison_names
from tacit.results.displays import draw_comparison
from tacit.results.text import as_lines


@click.command(cls=SettingsCommand, source=COMPARISONS)
@record_options.FILES
@record_options.column_option("score", "the first model's scores", required=True)
@record_options.column_option("versus", "the second model's scores", required=True)
@record_options.column_option("label", "labels")
@record_options.database_options
@record_options.record_options
@record_options.per_person_option
@click.option(
    "--protocol",
    default=next(iter(comparison_names()), None),
    type=Normalised(comparison_names()),
    help="What to run: fedauc, where the server may know scores, or score-histogram, where scores "
    "are private, too.",
)
@record_options.run_options
@click.option("--ledger", metavar="FILE", help=record_options.LEDGER)
@terminable()
@record_options.gathered_columns(score=None, versus=None)
def compare(
    columns: FileColumns, settings: dict[str, Any], output: JsonOutput, **options: Any
) -> None:
    """Compare two models by AUC on the records in FILES, a client each.

    FILES are CSV or Parquet, or a database's address. Both AUCs and their difference together spend
    epsilon once. The noise is exact and comes from the operating system, unless --split or --seed
    ask for a simulation.

    Examples:
      tacit compare models.parquet --client site --score new --versus old --epsilon 1
      tacit compare models.parquet --score new --versus old --split 20 --seed 7 --epsilon 1 --json
      tacit compare models.parquet --score new --versus old --protocol score-histogram --epsilon 1

    Exit status:
      0    there is an estimate of the difference
      2    an error; one sentence says which
      3    the noise left no signal: the result is printed without an estimate
      130  interrupted
    """
    asked = SimpleNamespace(**options)
    chosen = chosen_protocol(asked.protocol, settings, COMPARISONS)
    record_options.check_runs(vars(columns) | options)
    sources.check_places(vars(columns) | options)
    models = _models(record_options.read_files(asked.files), columns.score, asked.versus)
    picture = None if asked.plot is None else PictureFile(asked.plot)
    with record_options.printed_doubts(asked.files):
        clients = _read(asked, columns, asked.versus)
    if asked.split is not None:
        clients = record_options.split_clients(clients, asked)
    comparison = tacit.compare(
        clients,
        None,
        chosen,
        asked.seed,
        names=models,
        exact=asked.split is not None if asked.exact is None else asked.exact,
        federation=asked.federation,
        per_person=asked.per_person,
        ledger=asked.ledger,
    )
    if not asked.names:
        comparison = replace(comparison, run=replace(comparison.run, participants=()))
    rows = [*comparison.to_rows(), *record_options.ledger_rows(asked)]
    warnings = comparison.run.warnings
    output.show(comparison.to_dict(), lambda: as_lines(rows, warnings))
    if picture is not None:
        picture.save(draw_comparison(comparison))
    check_signal(comparison.has_signal)


def _models(paths: Sequence[str], score: ByFile, versus: ByFile) -> tuple[str, str]:
    """What both models are called: their columns in the first file, or in the database.

    Raises
    ------
    click.UsageError : for one column of both models, naming it.
    """
    columns = [by_file(paths or [""], each, "score", "a column") for each in (score, versus)]
    pairs = list(zip(*columns, strict=True))
    for first, second in pairs:
        if first == second:
            raise click.UsageError(f"--versus names the same column as --score, {first!r}")
    return pairs[0]


def _read(asked: SimpleNamespace, columns: FileColumns, versus: ByFile) -> Clients:
    """Both models' scores; where files differ in units or columns, two passes read them."""
    one_unit = columns.unit is None or isinstance(columns.unit, str)
    second = versus if isinstance(versus, str) and one_unit else None
    together = replace(columns, second=second)
    stored = None if second is None else sources.stored_source(asked, together, only_counts=True)
    if stored is not None:
        return stored
    files = sources.files_in_memory(asked.files)
    clients = tacit.read(files, **vars(together))
    if second is not None:
        return clients
    other = tacit.read(files, **vars(replace(columns, score=versus, person=None)))
    if not np.array_equal(clients.labels, other.labels):
        raise tacit.DataError("the files changed while they were being read")
    return replace(clients, second=other.scores)
