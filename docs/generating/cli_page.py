"""The reference of the command line in the site, from the commands' own help."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import click

from tacit.cli import main

PLACE = "<!-- commands -->"
"""Where ``docs/reference/cli.md`` gets every command and option."""

SETTINGS = """\
## Settings of the protocols

Settings that several commands take, each with the protocols that have it.
"""
VERBATIM = "\b"
"""Before a paragraph whose lines are kept as they are: click's own mark."""
TITLED = re.compile(r"(?P<title>[^\n]+):\n(?P<lines>.+)", re.DOTALL)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Rewrite one page of mkdocs."""
    return markdown.replace(PLACE, sections()) if PLACE in markdown else markdown


def sections() -> str:
    """The settings of the protocols and all commands, as Markdown."""
    contexts = list(commands(click.Context(main, info_name="tacit")))
    counts = Counter(item for each in contexts for item in _settings(each))
    settings = [item for item, count in counts.items() if count > 1]
    once = [SETTINGS, "\n".join(settings) + "\n"]
    return "\n".join([*once, *(_section(each, settings) for each in contexts)])


def commands(context: click.Context) -> Iterator[click.Context]:
    """A command and all those below it, each in the context that its help needs."""
    yield context
    for below in commands_below(context):
        yield from commands(below)


def commands_below(context: click.Context) -> Iterator[click.Context]:
    """A group's own commands, hidden ones left out; none of a command that is no group."""
    group = context.command
    if not isinstance(group, click.Group):
        return
    for name in group.list_commands(context):
        below = group.get_command(context, name)
        if below is not None and not below.hidden:
            yield click.Context(below, info_name=name, parent=context, **below.context_settings)


def _settings(context: click.Context) -> list[str]:
    """The options that a command takes from the protocols."""
    own = context.command.params
    return list(_items(context, [each for each in _parameters(context) if each not in own]))


def _section(context: click.Context, settings: list[str]) -> str:
    """What one command does, how it is called, its own options, examples and exit status."""
    usage = " ".join([context.command_path, *context.command.collect_usage_pieces(context)])
    parts = [f"## {context.command_path}", *_paragraphs(context.command.help)]
    parts += [f"```text\n{usage}\n```", *_listed(context, settings)]
    parts += _paragraphs(context.command.epilog)
    return "\n\n".join(parts) + "\n"


def _paragraphs(text: str | None) -> Iterator[str]:
    """Paragraphs of a help text; those that click keeps as they are become blocks with a title."""
    for paragraph in inspect.cleandoc(text or "").split("\n\n"):
        if not paragraph.startswith(VERBATIM):
            yield from filter(None, [" ".join(paragraph.split())])
            continue
        kept = paragraph.removeprefix(VERBATIM).strip("\n")
        titled = TITLED.fullmatch(kept)
        if titled is not None:
            yield f"{titled['title']}:"
            kept = titled["lines"]
        yield f"```text\n{inspect.cleandoc(kept)}\n```"


def _listed(context: click.Context, settings: list[str]) -> Iterator[str]:
    """The options but for the protocols' settings, and a group's commands."""
    options = [item for item in _items(context, _parameters(context)) if item not in settings]
    if not set(settings).isdisjoint(_settings(context)):
        options.append("- the [settings of the protocol](#settings-of-the-protocols)")
    if options:
        yield "\n".join(options)
    below = [f"- {_link(one)}" for one in commands_below(context)]
    if below:
        yield "\n".join(below)


def _parameters(context: click.Context) -> list[click.Parameter]:
    return context.command.get_params(context)


def _items(context: click.Context, parameters: list[click.Parameter]) -> Iterator[str]:
    """A line for each option with help, but for ``--help``."""
    for option in parameters:
        record = None if "--help" in option.opts else option.get_help_record(context)
        if record is not None and record[0][0] == "-":
            yield _item(*record)


def _link(context: click.Context) -> str:
    """A command's name, which leads to its section, with its first sentence."""
    anchor = context.command_path.replace(" ", "-")
    return f"[`{context.info_name}`](#{anchor}): {context.command.get_short_help_str(200)}"


def _item(names: str, text: str) -> str:
    """One option, with what it means."""
    return f"- `{names}`: {' '.join(text.split())}".replace("**", r"\*\*").rstrip(": ")
