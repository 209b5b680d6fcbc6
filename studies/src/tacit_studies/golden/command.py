"""``python -m studies.golden_r``: compare with R's recorded numbers, or record them again."""

from __future__ import annotations

import json
from pathlib import Path

import click

from tacit_studies.golden.comparing import compared, golden_numbers
from tacit_studies.golden.records import RECORDS, figures_by_r

FILE = Path(__file__).parent / "golden.json"


@click.command()
@click.option("--check", "checks", is_flag=True, help="Compare tacit with the recorded numbers.")
@click.option("--record", "records", is_flag=True, help="Compute the numbers again; needs R.")
def golden(checks: bool, records: bool) -> None:
    """Golden numbers by R's packages pROC and rms, beside those of tacit."""
    if checks == records:
        raise click.UsageError("give --check or --record")
    if records:
        _record()
        return
    fits = [_check(name) for name in golden_numbers()]
    if not all(fits):
        raise SystemExit(1)


def _record() -> None:
    made = {name: figures_by_r(read()) for name, read in RECORDS.items()}
    FILE.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    click.echo(f"Recorded: {FILE.name}")


def _check(name: str) -> bool:
    """Print one data set's comparison; whether all figures fit. Without R, aSAH cannot be read."""
    try:
        records = RECORDS[name]()
    except FileNotFoundError as error:
        click.echo(f"{name}: not checked, {error}")
        return True
    except RuntimeError as error:
        click.echo(f"{name}: not checked, {error}")
        return False
    known = golden_numbers()[name]
    versions = ", ".join(f"{part} {known[part]}" for part in ("R", "pROC", "rms"))
    click.echo(f"{name}: {known['records']} records, {known['positives']} positive; {versions}")
    click.echo(f"  {'figure':<24}{'R':>16}{'tacit':>16}{'difference':>12}{'allowed':>10}")
    rows = list(compared(records, known))
    for row in rows:
        verdict = "" if row.fits else "  MISSED"
        click.echo(
            f"  {row.name:<24}{row.by_r:16.10f}{row.by_tacit:16.10f}"
            f"{abs(row.by_r - row.by_tacit):12.1e}{row.allowed:10.0e}{verdict}"
        )
    return all(row.fits for row in rows)
