"""The commands of this distribution. A command's module is imported where the command is used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import click

MODULES: Mapping[str, str] = {
    "audit": "tacit.cli.audit",
    "compare": "tacit.cli.compare",
    "demo": "tacit.cli.demo",
    "evaluate": "tacit.cli.evaluate",
    "init": "tacit.cli.federation.init",
    "join": "tacit.cli.federation.join",
    "keys": "tacit.cli.federation.keys",
    "ledger": "tacit.cli.ledger",
    "plan": "tacit.cli.plan",
    "report": "tacit.cli.report",
    "run": "tacit.cli.federation.run",
    "serve": "tacit.cli.federation.serve",
    "status": "tacit.cli.federation.status",
}
"""The module of every command; the command has the same name there."""

SUMMARIES: Mapping[str, str] = {
    "audit": "Attack a protocol: what epsilon do its replies show, and which labels do they "
    "reveal?",
    "compare": "Compare two models by AUC on the records in FILES (CSV or Parquet), a client each.",
    "demo": "Compare all protocols on five small hospitals and on a thousand synthetic clients.",
    "evaluate": "Estimate the AUC, or another figure, of the records in FILES (CSV or Parquet), a "
    "client each.",
    "init": "Write commented files to begin a federation with into FOLDER: a plan, or a party's "
    "file.",
    "join": "Take part with the records that PARTY names, until interrupted.",
    "keys": "Make the keys that are missing in FOLDER, and show what others have to be given.",
    "ledger": "Look at a client's ledger, set its limits, check it, hand it on.",
    "plan": "Predict every fitting protocol's error and traffic, and recommend one.",
    "report": "Turn RESULTS, as `tacit evaluate --json` prints them, into one page that works "
    "offline.",
    "run": "Run PLAN once, with the parties that are connected, and print the result.",
    "serve": "Start the server of PLAN, and keep it running until interrupted.",
    "status": "Show PLAN's server: who is connected, and how the latest runs ended.",
}
"""The first sentence of every command's help, for a list that imports none of them."""


def built_in(name: str) -> click.Command | None:
    """The command of a name, imported now, or None."""
    if name not in MODULES:
        return None
    command: click.Command = getattr(import_module(MODULES[name]), name)
    return command
