"""``tacit collect``: campaigns of devices.

``serve`` signs a campaign, serves it, and takes the reports of devices; ``tokens`` makes tokens
that devices spend with their reports; ``stage`` ends a campaign's stage and signs the next one;
``estimate`` gives the result of what was collected so far.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
import numpy as np

from tacit import operating
from tacit.cli.shell import (
    JsonOutput,
    OutputFile,
    check_signal,
    json_option,
    operator_options,
    show,
)
from tacit.collecting.campaign import HONEST, Campaign, Terms, evaluation_of, shuffled_of
from tacit.collecting.folder import Folder, stages_of
from tacit.collecting.intake import SEAL_EVERY, Intake
from tacit.privacy.exact import words
from tacit.results.text import as_lines

MAX_RATE = 5000
"""Reports that are taken a second, by default."""

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group()
def collect() -> None:
    """Collect reports from devices: campaigns, tokens, stages and estimates."""


@collect.command("serve")
@click.argument("campaign", type=FILE)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where documents, keys and reports are; CAMPAIGN without its ending by default.",
)
@click.option("--host", default="127.0.0.1", help="The address to listen on.")
@click.option("--port", default=8000, help="The port.")
@click.option("--page", type=FOLDER, help="A folder of files to serve, such as a page for devices.")
@click.option("--certificate", type=FILE, help="TLS: the server's certificates, in PEM.")
@click.option("--key", type=FILE, help="TLS: their private key.")
@click.option(
    "--seal-every",
    default=SEAL_EVERY,
    type=click.IntRange(min=2),
    help="How many reports a sealed batch has.",
)
@click.option(
    "--rate",
    default=MAX_RATE,
    type=click.IntRange(min=1),
    help="How many reports are taken a second; more are asked to come again.",
)
@operator_options
def serve_campaign(
    campaign: Path,
    folder: Path | None,
    host: str,
    port: int,
    page: Path | None,
    certificate: Path | None,
    key: Path | None,
    seal_every: int,
    rate: int,
    metrics: tuple[str, int] | None,
) -> None:
    """Serve CAMPAIGN (a TOML file) to devices, and take their reports until interrupted.

    The first start signs the campaign, with a key that it makes. A report is acknowledged once it
    is on disk. No address and no other trace of a sender is kept.

    Examples:
      tacit collect serve campaign.toml
      tacit collect serve campaign.toml --page examples/phone/page --port 8000
      tacit collect serve campaign.toml --host 0.0.0.0 --certificate server.pem --key server.key
      tacit collect serve campaign.toml --metrics 127.0.0.1:9464 --log-format json
    """
    if (certificate is None) != (key is None):
        raise click.UsageError("--certificate and --key belong together")
    from tacit.collecting.service import Collector, application, serve  # noqa: PLC0415 -- an extra

    place = Folder(folder or campaign.with_suffix(""))
    signed = place.signed(Terms.from_toml(campaign))
    scheme = "http" if certificate is None else "https"
    rows = [*_rows(signed), ("folder", str(place.path)), ("address", f"{scheme}://{host}:{port}")]
    with place.owned():
        intake = Intake(place, seal_every)
        collector = Collector(place, intake, rate)
        app = application(collector, page)
        show(as_lines(rows, intake.warnings))
        with operating.telling(metrics, collector.operated()):
            serve(app, host, port, certificate, key)


def _rows(campaign: Campaign) -> list[tuple[str, str]]:
    terms = campaign.terms
    return [
        ("campaign", terms.name),
        ("digest", campaign.digest.hex()),
        ("coordinator", campaign.signed.key.hex()),
        ("epsilon", f"{terms.protocol.guarantee.epsilon:g} a report"),
        ("open", f"{terms.opens:%Y-%m-%d %H:%M} to {terms.closes:%Y-%m-%d %H:%M}"),
    ]


@collect.command()
@click.argument("folder", type=FOLDER)
@click.argument("count", type=click.IntRange(1, 10**7))
@click.option("--page", help="Print links to this page instead, which hold the token.")
def tokens(folder: Path, count: int, page: str | None) -> None:
    """Make COUNT tokens of the campaign in FOLDER, which no earlier call made.

    Each lets one device send one report. They come in an order that is drawn, so that their numbers
    say nothing about when or to whom they are given. Anyone who notes who got which token can tell,
    together with the collector, who sent which report.

    Examples:
      tacit collect tokens campaign 1000 > tokens.txt
      tacit collect tokens campaign 50 --page https://study.example.org/
    """
    place = Folder(folder)
    start = place.reserve_tokens(count)
    made = list(place.tokens.tokens(start, count))
    prefix = "" if page is None else f"{page}#"
    order = np.argsort(words(count), kind="stable")
    show("\n".join(prefix + made[index].hex() for index in order))


@collect.command()
@click.argument("folder", type=FOLDER)
def stage(folder: Path) -> None:
    """End the open stage of the campaign in FOLDER, and sign what devices compute in the next one.

    It follows from the reports of the stages before, as in a simulation. Reports of the stage that
    ended are refused from then on. The collector may run meanwhile.
    """
    signed = Folder(folder).next_stage()
    show(f"Stage {signed.content['stage']} is open.")


@collect.command()
@click.argument("folders", metavar="FOLDER...", nargs=-1, required=True, type=FOLDER)
@json_option
@click.option("--report", metavar="FILE", help="Also write a page that works offline.")
@click.option(
    "--honest",
    metavar="FRACTION",
    default=HONEST,
    type=click.FloatRange(0, 1, min_open=True),
    help="Part of every sealed batch's reports that is taken to be honest.",
)
def estimate(
    folders: tuple[Path, ...], output: JsonOutput, report: str | None, honest: float
) -> None:
    """Estimate what the campaign in FOLDER asks for, from the reports collected so far.

    Of several collectors all folders are given. They may run meanwhile. The estimator is the
    protocol's own, as in `tacit evaluate`. The guarantee of sealed batches follows that of one
    report, where a bound is known.

    Examples:
      tacit collect estimate campaign
      tacit collect estimate north south
      tacit collect estimate campaign --json > result.json
      tacit collect estimate campaign --report result.html
      tacit collect estimate campaign --honest 0.5
    """
    file = None if report is None else OutputFile(report)
    place, stages = Folder(folders[0]), stages_of(list(map(Folder, folders)))
    result = replace(
        evaluation_of(place.campaign, stages, place.open_stage().size),
        shuffled=shuffled_of(place.campaign.terms, stages[0].sealed, honest),
    )
    if file is not None:
        file.write(result.to_html().encode())
    output.show(result.to_dict(), lambda: str(result))
    check_signal(result.has_signal)
