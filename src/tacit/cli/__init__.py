"""The command ``tacit``: evaluate files, plan, run a federation, see a demonstration."""

from __future__ import annotations

import click

import tacit
from tacit.cli.plugins import Extensible
from tacit.cli.shell import prepare_help, show


@click.group(cls=Extensible, invoke_without_command=True)
@click.version_option(tacit.__version__, prog_name="tacit")
@click.pass_context
def main(context: click.Context) -> None:
    """Measure a classifier's AUC on data that several parties may not show each other.

    Examples:
      tacit demo
      tacit evaluate north.csv south.csv --epsilon 1
      tacit plan --records 40000 --positives 4000 --clients 10 --epsilon 1
    """
    if context.invoked_subcommand is None:
        show(context.get_help())


prepare_help(main)
