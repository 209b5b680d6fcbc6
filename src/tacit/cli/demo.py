"""``tacit demo``: all protocols on synthetic data, with a picture."""

from __future__ import annotations

import click

from tacit import demonstration
from tacit.cli.shell import show
from tacit.output import PictureFile

DEMO_EXAMPLES = """\b
Examples:
  tacit demo
  tacit demo --seed 7 --plot comparison.pdf
"""


@click.command(epilog=DEMO_EXAMPLES)
@click.option("--seed", type=click.IntRange(min=0), help="Make the noise repeatable.")
@click.option(
    "--plot",
    metavar="FILE",
    default="tacit-demo.png",
    show_default=True,
    help="Where to save the picture (.png, .svg or .pdf).",
)
def demo(seed: int | None, plot: str) -> None:
    """Compare all protocols on five small hospitals and on a thousand synthetic clients.

    Takes less than a minute. All noise is simulated.
    """
    demonstration.require_matplotlib()
    picture = PictureFile(plot)
    comparisons = demonstration.demonstrate(seed)
    show(demonstration.report(comparisons))
    picture.save(demonstration.draw(comparisons))
    show(f"\nPicture: {picture.path}")
