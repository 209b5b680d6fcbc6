"""``tacit simulate``: every record a client of the local model, however many there are."""

from __future__ import annotations

import os
from typing import Any

import click

from tacit.cli.evaluating.sources import files_in_memory
from tacit.cli.json_output import JsonOutput, json_option
from tacit.cli.setting_options import SettingsCommand, chosen_protocol
from tacit.cli.shell import check_signal, progress_of, terminable
from tacit.data import units
from tacit.data.row_groups import RecordFiles
from tacit.local import drawing, summing
from tacit.protocol.registry import protocol_names
from tacit.running.units import suited_to_scores

SIMULATE_EXAMPLES = """\b
Examples:
  tacit simulate phones.parquet --protocol two-round-auc --epsilon 2
  tacit simulate phones.parquet --protocol ustatistic --kernel auc --epsilon 4 --seed 7 --json

\b
Nothing is protected: the records are read here. A report is drawn for each as its own device
would draw it, and only sums of reports are kept. With a seed the result is the same to the
last bit for any number of workers.

\b
Exit status:
  0    there is an estimate
  2    an error; one sentence says which
  3    the noise left no signal: the result is printed without an estimate
  130  interrupted
"""


@click.command(cls=SettingsCommand, settings_after="protocol", epilog=SIMULATE_EXAMPLES)
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--protocol", required=True, type=click.Choice(protocol_names()), help="What to run.")
@click.option("--score", default="score", show_default=True, help="The column of scores.")
@click.option("--label", default="label", show_default=True, help="The column of labels.")
@click.option("--unit", type=click.Choice(units.UNITS), help="What the scores are, in all files.")
@click.option("--seed", type=click.IntRange(min=0), help="Fix the reports.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes that draw reports, by default one a core.",
)
@click.option("--federation", metavar="NAME", help="What these records are called.")
@json_option
@terminable()
def simulate(
    files: tuple[str, ...],
    protocol: str,
    score: str,
    label: str,
    unit: str | None,
    seed: int | None,
    workers: int | None,
    federation: str | None,
    output: JsonOutput,
    **settings: Any,
) -> None:
    """Simulate a report of the local model for every record in FILES (Parquet), a client each.

    Memory stays small, whatever the number of records.
    """
    given = frozenset(name for name, value in settings.items() if value is not None)
    chosen = chosen_protocol(protocol, settings)
    if chosen.needs_second_values:
        raise click.UsageError(f"--protocol {chosen.name} with these settings needs second values")
    if unit is not None:
        chosen = suited_to_scores(chosen, unit, given)
    paths = files_in_memory(files, "tacit simulate")
    column = label if chosen.needs_labels else None
    records = RecordFiles.of(paths, score, column, unit or chosen.unit, chosen.unit)
    reports = records.records * chosen.device_reports(records.records).stages
    with progress_of(reports, "reports") as advance:
        result = drawing.evaluate_one_record_clients(
            records,
            chosen,
            seed,
            summing=_summing(records, workers),
            federation=federation,
            progress=lambda blocks: advance(blocks * drawing.BLOCK_RECORDS),
        )
    output.show(result.to_dict(), lambda: str(result))
    check_signal(result.has_signal)


def _summing(records: RecordFiles, workers: int | None) -> summing.Summing:
    """The processes that add up the reports; one block is drawn faster than processes start."""
    number = workers or os.cpu_count() or 1
    if number == 1 or records.records <= drawing.BLOCK_RECORDS:
        return summing.in_one_process
    return summing.in_processes(number)
