"""Commands: those of this distribution, and other distributions' by entry points.

The commands of this distribution. A command's module is imported where the command is used.

A distribution adds a command by an entry point whose name is the command's and whose value is a
``click.Command``::

    [project.entry-points."tacit.commands"]
    reproduce = "tacit_studies.command:reproduce"

Entry points are read only where a command is not built in, or where all commands are listed;
a command's module is imported only where the command is shown or run.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

import click

from tacit.cli.shell import Tacit, prepare_help, with_json_value

COMMANDS: Mapping[str, Mapping[str, str]] = {
    "Measure": {
        "demo": "Measure a classifier at hospitals, advertisers and phones, all simulated.",
        "check": "Find every problem of FILES at once, and say what to do.",
        "evaluate": "Estimate the AUC, or another figure, of the records in FILES, a client each.",
        "compare": "Compare two models by AUC on the records in FILES, a client each.",
        "drift": "Print how far a model moved from the result EARLIER to LATER, with intervals.",
        "plan": "Predict every fitting protocol's error and traffic, and recommend one.",
        "report": "Turn RESULTS into one page that works offline, or into a table.",
        "simulate": "Simulate a report of the local model for every record in FILES (Parquet).",
        "sql": "Print the SQL statement by which a site counts the records of a table.",
    },
    "Run a federation, as coordinator": {
        "init": "Write a commented plan, or a party's own file, into FOLDER to begin with.",
        "invite": "Write an invitation to PLAN for each of SITES, one file to send to each.",
        "admit": "Take sites into PLAN by the ANSWERS that they sent.",
        "renew": "Renew certificates or an identity key while the old ones still work.",
        "serve": "Start the server of PLAN, and keep it running until interrupted.",
        "run": "Run PLAN once, with the parties that are connected, and print the result.",
        "status": "Show PLAN's server: who is connected, and how the latest runs ended.",
        "doctor": "Find what is wrong in FOLDER or on the way to the server, and who mends it.",
    },
    "Take part in one": {
        "accept": "Make a site's folder and keys from INVITATION, and the answer that goes back.",
        "approve": "Show on one page what a plan asks of a site, and approve or revoke it.",
        "join": "Take part with the records that PARTY names, until interrupted.",
        "keys": "Make the keys that are missing in FOLDER, and show their public parts.",
        "ledger": "Show a client's ledger, set its limits, check it, hand it on.",
    },
    "Collect from devices": {
        "collect": "Collect reports from devices: campaigns, tokens, stages and estimates.",
    },
    "Check a protocol": {
        "audit": "Attack a protocol: what epsilon do its replies show, and which labels?",
    },
}
"""The built-in commands as the help lists them, in groups, with the first sentences of their help.

The list imports none of them.
"""
SUMMARIES = {name: sentence for group in COMMANDS.values() for name, sentence in group.items()}
MODULES: Mapping[str, str] = {
    **dict.fromkeys(("check", "sql", "plan"), "preparing"),
    **dict.fromkeys(("demo", "simulate"), "simulating"),
    "collect": "collecting",
    **dict.fromkeys(("init", "invite", "admit", "keys", "renew"), "federation.inviting"),
    **dict.fromkeys(("serve", "run", "status", "doctor"), "federation.serving"),
    **dict.fromkeys(("accept", "approve", "join"), "federation.site"),
    "drift": "report",
}
"""The modules of commands that are in no module of their own name."""


GROUP = "tacit.commands"
SUMMARY_LENGTH = 200
"""Most characters of a summary of another distribution's command."""
INSTALLABLE = {"reproduce": ("tacit-studies", "./studies")}
"""Commands of this project's other distributions, with the distribution that has each, and where
that is in a clone: no index has it, and one may have a stranger's of the same name."""


class Extensible(Tacit):
    """A group of built-in commands, and after them those of other distributions."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands that are installed."""
        return sorted({*SUMMARIES, *super().list_commands(ctx), *plugin_names()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by name, or None."""
        return (
            super().get_command(ctx, cmd_name)
            or self._import_built_in(cmd_name)
            or plugin_command(cmd_name)
        )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command and its arguments, in which ``--json`` has a value.

        Raises
        ------
        click.UsageError : for an option given twice that takes one value.
        """
        name, command, rest = super().resolve_command(ctx, args)
        if command is None:
            return name, command, rest
        return name, command, _prepared(command, rest, ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List all commands in groups; no built-in one is imported for it."""
        summaries = dict(SUMMARIES)
        for name in self.list_commands(ctx):
            command = None if name in summaries else self.get_command(ctx, name)
            if command is not None and not command.hidden:
                summaries[name] = command.get_short_help_str(SUMMARY_LENGTH)
        for title, names in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, summaries.pop(name)) for name in names])
        if summaries:
            with formatter.section("Other commands"):
                formatter.write_dl(sorted(summaries.items()))

    def _import_built_in(self, name: str) -> click.Command | None:
        """A built-in command, imported now, which the group then has; or None."""
        if name not in SUMMARIES:
            return None
        module = import_module(f"tacit.cli.{MODULES.get(name, name)}")
        command: click.Command = getattr(module, name)
        self.add_command(command)
        return command


def _prepared(command: click.Command, args: list[str], ctx: click.Context) -> list[str]:
    """A command's arguments, in which ``--json`` has a value; those of a group's subcommand alike.

    Raises
    ------
    click.UsageError : for an option given twice that takes one value.
    """
    if isinstance(command, click.Group):
        below = command.commands.get(args[0]) if args else None
        return args if below is None else [args[0], *_prepared(below, args[1:], ctx)]
    _refuse_repeats(command, args, ctx)
    return with_json_value(command, args)


def _refuse_repeats(command: click.Command, args: list[str], ctx: click.Context) -> None:
    """Refuse an option that is given twice and takes one value, of which click takes the last."""
    options = [each for each in command.params if isinstance(each, click.Option)]
    many = {
        name
        for each in options
        if each.multiple or each.is_flag
        for name in (*each.opts, *each.secondary_opts)
    }
    before = args[: args.index("--")] if "--" in args else args
    names = [arg.partition("=")[0] for arg in before if arg.startswith("--")]
    for name in names:
        if names.count(name) > 1 and name not in many:
            raise click.UsageError(f"{name} is given twice, and takes one value", ctx)


def _unavailable(name: str, reason: str, hidden: bool = False) -> click.Command:
    """A command that cannot be run. It accepts every argument and answers with the reason."""

    def refuse() -> None:
        raise click.ClickException(reason)

    return click.Command(
        name,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        callback=refuse,
        help=f"Not available: {reason}.",
        add_help_option=False,
        hidden=hidden,
    )


def plugin_names() -> list[str]:
    """The names of the commands that installed distributions add."""
    return sorted(entry_points(group=GROUP).names)


def plugin_command(name: str) -> click.Command | None:
    """The command that a distribution adds under a name.

    Returns
    -------
    The command; one that says what is wrong, where it is not installed, cannot be imported, or
    is added by two distributions; None where there is no command of this name.
    """
    points = tuple(entry_points(group=GROUP, name=name))
    if not points:
        return _not_installed(name)
    if len(points) > 1:
        names = " and ".join(sorted(map(_distribution, points)))
        return _unavailable(name, f"the command {name} is added by two distributions: {names}")
    return _loaded(points[0])


def _not_installed(name: str) -> click.Command | None:
    if name not in INSTALLABLE:
        return None
    distribution, folder = INSTALLABLE[name]
    reason = (
        f"the command {name} is not installed; it is in {distribution}. In a clone of tacit: "
        f"pip install {folder}"
    )
    return _unavailable(name, reason, hidden=True)


def _loaded(point: EntryPoint) -> click.Command:
    source = f"the command {point.name} of {_distribution(point)}"
    try:
        command = point.load()
    except Exception as error:  # any error of another distribution's module at its import
        return _unavailable(point.name, f"{source} cannot be loaded: {_summary(error)}")
    if not isinstance(command, click.Command):
        return _unavailable(point.name, f"{source} is no click.Command but {command!r}")
    prepare_help(command)
    return command


def _distribution(point: EntryPoint) -> str:
    return "an unknown distribution" if point.dist is None else point.dist.name


def _summary(error: Exception) -> str:
    """An error in one line, by its message or else by its class."""
    return " ".join(str(error).split()) or type(error).__name__
