"""The commands of this distribution. A command's module is imported where the command is used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import click

MODULES: Mapping[str, str] = {
    "accept": "tacit.cli.federation.accept",
    "admit": "tacit.cli.federation.admit",
    "audit": "tacit.cli.audit",
    "check": "tacit.cli.check",
    "collect": "tacit.cli.collecting.collect",
    "compare": "tacit.cli.compare",
    "demo": "tacit.cli.demo",
    "estimate": "tacit.cli.collecting.estimate",
    "evaluate": "tacit.cli.evaluating.evaluate",
    "init": "tacit.cli.federation.init",
    "invite": "tacit.cli.federation.invite",
    "join": "tacit.cli.federation.join",
    "keys": "tacit.cli.federation.keys",
    "ledger": "tacit.cli.ledger",
    "plan": "tacit.cli.plan",
    "report": "tacit.cli.report",
    "run": "tacit.cli.federation.run",
    "serve": "tacit.cli.federation.serve",
    "simulate": "tacit.cli.evaluating.simulate",
    "sql": "tacit.cli.sql",
    "stage": "tacit.cli.collecting.stage",
    "status": "tacit.cli.federation.status",
    "tokens": "tacit.cli.collecting.tokens",
}
"""The module of every command; the command has the same name there."""

SUMMARIES: Mapping[str, str] = {
    "accept": "Make a site's folder and keys from INVITATION, and the answer that goes back.",
    "admit": "Take sites into PLAN by the ANSWERS that they sent.",
    "audit": "Attack a protocol: what epsilon do its replies show, and which labels do they "
    "reveal?",
    "check": "Look for every problem of FILES (CSV, Parquet or Feather) at once, and say what to "
    "do.",
    "collect": "Serve CAMPAIGN (a TOML file) to devices, and take their reports until interrupted.",
    "compare": "Compare two models by AUC on the records in FILES (CSV or Parquet), a client each.",
    "demo": "Measure a classifier at ten hospitals, a thousand advertisers and 100,000 phones.",
    "estimate": "Estimate what the campaign in FOLDER asks for, from the reports collected so far.",
    "evaluate": "Estimate the AUC, or another figure, of the records in FILES (CSV or Parquet), a "
    "client each.",
    "init": "Write commented files to begin a federation with into FOLDER: a plan, or a party's "
    "file.",
    "invite": "Write an invitation to PLAN for each of SITES, one file to send to each.",
    "join": "Take part with the records that PARTY names, until interrupted.",
    "keys": "Make the keys that are missing in FOLDER, and show what others have to be given.",
    "ledger": "Look at a client's ledger, set its limits, check it, hand it on.",
    "plan": "Predict every fitting protocol's error and traffic, and recommend one.",
    "report": "Turn RESULTS, as `tacit evaluate --json` prints them, into one page that works "
    "offline.",
    "run": "Run PLAN once, with the parties that are connected, and print the result.",
    "serve": "Start the server of PLAN, and keep it running until interrupted.",
    "simulate": "Simulate a report of the local model for every record in FILES (Parquet), a "
    "client each.",
    "sql": "Print the statement by which a site's administrator counts the records of a table.",
    "stage": "End the open stage of the campaign in FOLDER, and sign what devices compute in the "
    "next one.",
    "status": "Show PLAN's server: who is connected, and how the latest runs ended.",
    "tokens": "Make COUNT tokens of the campaign in FOLDER, which no earlier call made.",
}
"""The first sentence of every command's help, for a list that imports none of them."""


GROUPS: Mapping[str, tuple[str, ...]] = {
    "Measure": ("demo", "check", "evaluate", "compare", "plan", "report", "simulate", "sql"),
    "Run a federation, as coordinator": ("init", "invite", "admit", "serve", "run", "status"),
    "Take part in one": ("accept", "join", "keys", "ledger"),
    "Collect from devices": ("collect", "tokens", "stage", "estimate"),
    "Check a protocol": ("audit",),
}
"""The commands in the order in which the help lists them."""


def built_in(name: str) -> click.Command | None:
    """The command of a name, imported now, or None."""
    if name not in MODULES:
        return None
    command: click.Command = getattr(import_module(MODULES[name]), name)
    return command
