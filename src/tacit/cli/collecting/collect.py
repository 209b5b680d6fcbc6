"""``tacit collect``: signs a campaign, serves it, and takes the reports of devices."""

from __future__ import annotations

from pathlib import Path

import click

from tacit.cli.shell import show
from tacit.collecting.campaign import Campaign, Terms
from tacit.collecting.folder import Folder
from tacit.collecting.intake import SEAL_EVERY, Intake
from tacit.results.text import as_lines

COLLECT_EXAMPLES = """\b
Examples:
  tacit collect campaign.toml
  tacit collect campaign.toml --page examples/phone/page --port 8000
  tacit collect campaign.toml --host 0.0.0.0 --certificate server.pem --key server.key
"""

MAX_RATE = 5000
"""Reports that are taken a second, by default."""

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(epilog=COLLECT_EXAMPLES)
@click.argument("campaign", type=FILE)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where documents, keys and reports are; CAMPAIGN without its ending by default.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8000, show_default=True, help="The port.")
@click.option(
    "--page",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder of files to serve beside, such as a page for devices.",
)
@click.option("--certificate", type=FILE, help="TLS: the server's certificates, in PEM.")
@click.option("--key", type=FILE, help="TLS: their private key.")
@click.option(
    "--seal-every",
    default=SEAL_EVERY,
    show_default=True,
    type=click.IntRange(min=2),
    help="How many reports a sealed batch has.",
)
@click.option(
    "--rate",
    default=MAX_RATE,
    show_default=True,
    type=click.IntRange(min=1),
    help="How many reports are taken a second; more are asked to come again.",
)
def collect(
    campaign: Path,
    folder: Path | None,
    host: str,
    port: int,
    page: Path | None,
    certificate: Path | None,
    key: Path | None,
    seal_every: int,
    rate: int,
) -> None:
    """Serve CAMPAIGN (a TOML file) to devices, and take their reports until interrupted.

    The first start signs the campaign, with a key that it makes. A report is acknowledged once it
    is on disk. No address and no other trace of a sender is kept.
    """
    if (certificate is None) != (key is None):
        raise click.UsageError("--certificate and --key belong together")
    from tacit.collecting.service import application, serve  # noqa: PLC0415 -- an extra

    place = Folder(folder or campaign.with_suffix(""))
    signed = place.signed(Terms.from_toml(campaign))
    scheme = "http" if certificate is None else "https"
    rows = [*_rows(signed), ("folder", str(place.path)), ("address", f"{scheme}://{host}:{port}")]
    with place.owned():
        intake = Intake(place, seal_every)
        app = application(place, intake, rate, page)
        show(as_lines(rows, intake.warnings))
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
