"""Commands that simulate records or parties: ``tacit simulate`` and ``tacit demo``.

``tacit simulate``: every record is a client of the local model, however many there are.

``tacit demo``: three synthetic federations, with a picture and a report.
"""

from __future__ import annotations

import os
from typing import Any

import click

from tacit import demonstration
from tacit.cli import record_options
from tacit.cli.setting_options import SettingsCommand, chosen_protocol
from tacit.cli.shell import (
    JsonOutput,
    OutputFile,
    PictureFile,
    check_signal,
    json_option,
    progress_of,
    show,
    terminable,
)
from tacit.cli.sources import files_in_memory
from tacit.data import units
from tacit.data.reading import RecordFiles
from tacit.local import drawing, summing
from tacit.protocol.registry import protocol_names
from tacit.running.units import suited_to_scores


@click.command()
@click.option("--seed", type=click.IntRange(min=0), help="Make the noise repeatable.")
@click.option(
    "--plot",
    metavar="FILE",
    default="tacit-demo.png",
    help="Where to save the picture (.png, .svg or .pdf).",
)
@click.option(
    "--report",
    metavar="FILE",
    default="tacit-demo.html",
    help="Where to save the hospitals' report.",
)
def demo(seed: int | None, plot: str, report: str) -> None:
    """Measure a classifier at hospitals, advertisers and phones, all simulated.

    Ten hospitals, a thousand advertisers and 100,000 phones are simulated, records and noise. It
    takes less than a minute.

    Examples:
      tacit demo
      tacit demo --seed 7 --plot comparison.pdf --report hospitals.html
    """
    demonstration.require_matplotlib()
    picture, page = PictureFile(plot), OutputFile(report)
    scenes = demonstration.demonstrate(seed)
    show(demonstration.report(scenes))
    picture.draw(demonstration.draw(scenes))
    hospitals = scenes[0].results[0][1]
    page.write(hospitals.to_html("Ten hospitals, a simulation").encode())
    show(f"\nPicture: {picture.path}\nReport:  {page.path} (open it in a browser)")


@click.command(cls=SettingsCommand)
@record_options.FILES
@click.option("--protocol", required=True, type=click.Choice(protocol_names()), help="What to run.")
@record_options.one_score_and_label
@click.option("--unit", type=click.Choice(units.UNITS), help="What the scores are, in all files.")
@click.option("--seed", type=click.IntRange(min=0), help="Fix the reports.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes that draw reports, by default one a core.",
)
@record_options.FEDERATION
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
    settings: dict[str, Any],
) -> None:
    """Simulate a report of the local model for every record in FILES (Parquet).

    Each record is a client. Memory stays small, whatever the number of records.

    Examples:
      tacit simulate phones.parquet --protocol two-round-auc --epsilon 2
      tacit simulate phones.parquet --protocol ustatistic --kernel auc --epsilon 4 --seed 7 --json

    Nothing is protected: the records are read here. A report is drawn for each as its own device
    would draw it, and only sums of reports are kept. With a seed the result is the same to the
    last bit for any number of workers.

    Exit status:
      0    there is an estimate
      2    an error; one sentence says which
      3    the noise left no signal: the result is printed without an estimate
      130  interrupted
    """
    chosen = chosen_protocol(protocol, settings)
    if chosen.needs_second_values:
        raise click.UsageError(f"--protocol {chosen.name} with these settings needs second values")
    if unit is not None:
        chosen = suited_to_scores(chosen, unit, frozenset(settings))
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
