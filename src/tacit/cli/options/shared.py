"""Options that several commands share."""

from __future__ import annotations

import click

split_option = click.option(
    "--split",
    type=click.IntRange(min=1),
    metavar="K",
    help="Simulate: pool all records and deal them out to K clients.",
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="Simulate: fix the noise and the split. Without it, noise comes from the system, or "
    "with --split from fresh entropy.",
)
names_option = click.option(
    "--names/--no-names", default=True, help="Write the clients' names into the JSON, up to 200."
)
json_option = click.option("--json", "print_json", is_flag=True, help="Print the result as JSON.")
