"""The command ``tacit``: evaluate files, plan, run a federation, see a demonstration."""

from __future__ import annotations

import click

import tacit
from tacit import demonstration
from tacit.cli.audit import audit
from tacit.cli.compare import compare
from tacit.cli.evaluate import evaluate
from tacit.cli.federation import COMMANDS
from tacit.cli.ledger import ledger
from tacit.cli.plan import plan
from tacit.cli.plugins import Extensible
from tacit.cli.report import report
from tacit.cli.shell import HELP_NAMES, show
from tacit.output import PictureFile

DEMO_EXAMPLES = """\b
Examples:
  tacit demo
  tacit demo --seed 7 --plot comparison.pdf
"""
MAIN_EXAMPLES = """\b
Examples:
  tacit demo
  tacit evaluate north.csv south.csv --protocol fedauc --epsilon 1
  tacit plan --records 40000 --positives 4000 --clients 10 --epsilon 1 --trust secure-sum
"""


@click.group(
    cls=Extensible,
    context_settings={"help_option_names": HELP_NAMES},
    invoke_without_command=True,
    epilog=MAIN_EXAMPLES,
)
@click.version_option(tacit.__version__, prog_name="tacit")
@click.pass_context
def main(context: click.Context) -> None:
    """Measure a classifier's AUC on data that several parties may not show each other."""
    if context.invoked_subcommand is None:
        show(context.get_help())


main.add_command(compare)
main.add_command(audit)
main.add_command(evaluate)
main.add_command(ledger)
main.add_command(plan)
main.add_command(report)
for command in COMMANDS:
    main.add_command(command)


@main.command(epilog=DEMO_EXAMPLES)
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
