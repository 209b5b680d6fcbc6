"""``tacit tokens``: makes tokens that devices spend with their reports."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from tacit.cli.shell import show
from tacit.collecting.folder import Folder
from tacit.privacy.sampling.exact import words

TOKENS_EXAMPLES = """\b
Examples:
  tacit tokens campaign --count 1000 > tokens.txt
  tacit tokens campaign --count 50 --page https://study.example.org/
"""


@click.command(epilog=TOKENS_EXAMPLES)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--count", required=True, type=click.IntRange(1, 10**7), help="How many.")
@click.option("--page", help="Print links to this page instead, which hold the token.")
def tokens(folder: Path, count: int, page: str | None) -> None:
    """Make COUNT tokens of the campaign in FOLDER, which no earlier call made.

    Each lets one device send one report. They come in an order that is drawn, so that their numbers
    say nothing about when or to whom they are given. Whoever notes who got which token can tell,
    together with the collector, who sent which report.
    """
    place = Folder(folder)
    start = place.reserve_tokens(count)
    made = list(place.tokens.tokens(start, count))
    prefix = "" if page is None else f"{page}#"
    order = np.argsort(words(count), kind="stable")
    show("\n".join(prefix + made[index].hex() for index in order))
