"""``tacit demo``: three synthetic federations, with a picture and a report."""

from __future__ import annotations

import click

from tacit import demonstration
from tacit.cli.shell import show
from tacit.output import OutputFile, PictureFile

DEMO_EXAMPLES = """\b
Examples:
  tacit demo
  tacit demo --seed 7 --plot comparison.pdf --report hospitals.html
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
@click.option(
    "--report",
    metavar="FILE",
    default="tacit-demo.html",
    show_default=True,
    help="Where to save the hospitals' report.",
)
def demo(seed: int | None, plot: str, report: str) -> None:
    """Measure a classifier at ten hospitals, a thousand advertisers and 100,000 phones.

    Takes less than a minute. All records and all noise are simulated.
    """
    demonstration.require_matplotlib()
    picture, page = PictureFile(plot), OutputFile(report)
    scenes = demonstration.demonstrate(seed)
    show(demonstration.report(scenes))
    picture.draw(demonstration.draw(scenes))
    hospitals = scenes[0].results[0][1]
    page.write(hospitals.to_html("Ten hospitals, a simulation").encode())
    show(f"\nPicture: {picture.path}\nReport:  {page.path} (open it in a browser)")
