"""The options of protocols' settings, made of what the protocols declare.

Types of options whose words are taken in any case, with or without dashes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args, get_origin

import click

from tacit.protocol import registry
from tacit.protocol.conversation import Protocol
from tacit.protocol.settings import Setting, known_settings, listed_name, suggestion

CHOSEN = "tacit.cli.setting_options.chosen"
"""Key under which a command's context names the protocols whose options it shows."""

WHOLE = "tacit.cli.setting_options.whole"
"""Key under which a command's context says that its help is to list every option."""

CHOICE, HELP_ALL = "--protocol", "--help-all"
COMMON = (
    CHOICE,
    "--epsilon",
    "--trust",
    "--score",
    "--label",
    "--client",
    "--unit",
    "--groups",
    "--seed",
    "--json",
    "--plot",
    "--help",
    HELP_ALL,
)
"""Options that the help lists first: those that most calls use."""

LONGEST_FORM = 60
"""Most characters of an option with its choices."""

PUBLISHED = "published-"
"""How the names of the papers' own forms begin."""

SHOWN_EXAMPLES = 4
"""How many examples a short help has."""

Record = tuple[str, str]
"""An option as the help writes it, and what it means."""

Labelled = tuple[str, Setting]
"""A setting with the name of its protocol."""


@dataclass(frozen=True)
class Source:
    """The origin of a command's protocols.

    Parameters
    ----------
    names : of the protocols.
    kind_of : the class of a name.
    """

    names: Callable[[], Sequence[str]]
    kind_of: Callable[[str], Any]


PROTOCOLS = Source(registry.protocol_names, registry.kind_of)
COMPARISONS = Source(registry.comparison_names, registry.comparison_kind_of)


class SettingsCommand(click.Command):
    """A command that takes the settings of the protocol that ``--protocol`` names.

    Only that protocol is imported. All protocols are imported for the help, and where an option
    is not that protocol's, so that the error can name it.

    Parameters
    ----------
    source : where the protocols are from.
    """

    def __init__(self, *args: Any, source: Source = PROTOCOLS, **extra: Any) -> None:
        super().__init__(*args, **extra)
        self.params.append(
            click.Option(
                [HELP_ALL],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_show_all,
                help="Show all options, and the settings of all protocols.",
            )
        )
        self._source = source

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; the command gets those of the protocol that are given as one."""
        ctx.meta[CHOSEN] = self._wanted(args)
        rest = super().parse_args(ctx, args)
        declared = {each.name for each in super().get_params(ctx)}
        settings = {name: ctx.params.pop(name) for name in list(ctx.params) if name not in declared}
        ctx.params["settings"] = {k: v for k, v in settings.items() if v is not None}
        return rest

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The parameters, with the settings among them.

        A setting that has the name of a parameter of the command itself has no option.
        """
        parameters = super().get_params(ctx)
        taken = {name for parameter in parameters for name in (*parameter.opts, parameter.name)}
        names = ctx.meta.get(CHOSEN) or tuple(self._source.names())
        options = _options_of(self._source, names)
        added = [each for each in options if taken.isdisjoint((*each.opts, each.name))]
        return [*parameters, *added]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the common options and the settings of the protocol that is named.

        With ``--help-all`` the settings of all protocols and all other options as well.
        """
        names, whole = ctx.meta.get(CHOSEN), ctx.meta.get(WHOLE, False)
        parameters = self.get_params(ctx)
        of_command = {id(each) for each in super().get_params(ctx)}
        order = {name: position for position, name in enumerate(COMMON)}
        first = {id(each): min(order.get(o, len(order)) for o in each.opts) for each in parameters}
        options = [each for each in parameters if isinstance(each, click.Option)]
        common, settings, others = list[Record](), list[Record](), list[Record]()
        for each in sorted(options, key=lambda each: first[id(each)]):
            record = each.get_help_record(ctx)
            record = record if whole else _short_record(record, each)
            if record is not None:
                chosen = settings if id(each) not in of_command else others
                (common if first[id(each)] < len(order) else chosen).append(record)
        called = f"Settings of {names[0]}" if names else "Settings of protocols"
        sections = {"Common options": common}
        if names or whole:
            sections[called] = settings
        if whole:
            sections["Other options"] = others
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
        if not whole:
            formatter.write_paragraph()
            hint = f"Settings of a protocol: {ctx.command_path} {CHOICE} NAME --help."
            formatter.write_text(f"{'' if names else f'{hint} '}All options: {HELP_ALL}.")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write examples and exit status; of the examples a few where the help is short."""
        if ctx.meta.get(WHOLE, False) or not self.epilog:
            return super().format_epilog(ctx, formatter)
        head, *paragraphs = self.epilog.split("\n\n")
        lines = head.split("\n")
        few = "\n".join(lines[: SHOWN_EXAMPLES + 2])
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text("\n\n".join([few, *paragraphs]))
        return None

    def _wanted(self, args: Sequence[str]) -> tuple[str, ...] | None:
        """The protocol whose options suffice for these arguments; None where none does."""
        word = self._chosen(args)
        name = None if word is None else listed_name(word, self._source.names())
        if name is None:
            return None
        used = {arg.partition("=")[0] for arg in args if arg.startswith("--")}
        used -= {"--help"}
        parameters = [*self.params, *_options_of(self._source, (name,))]
        known = {each for option in parameters for each in (*option.opts, *option.secondary_opts)}
        return (name,) if used <= known else None

    def _chosen(self, args: Sequence[str]) -> str | None:
        """The protocol that the arguments name, or the option's default."""
        option = next(each for each in self.params if CHOICE in each.opts)
        chosen = option.default if isinstance(option.default, str) else None
        for position, arg in enumerate(args):
            if arg == CHOICE and position + 1 < len(args):
                chosen = args[position + 1]
            elif arg.startswith(f"{CHOICE}="):
                chosen = arg.partition("=")[2]
        return chosen


@cache
def _options_of(source: Source, names: tuple[str, ...]) -> list[click.Option]:
    """The options of these protocols' settings, made once: click distinguishes them as objects."""
    labelled: dict[str, list[Labelled]] = {}
    for name in names:
        for key, setting in known_settings(source.kind_of(name)).items():
            if setting.declared.help is not None and option_type(setting) is not None:
                labelled.setdefault(key, []).append((name, setting))
    return [option_of(settings, len(names)) for settings in labelled.values()]


def _short_record(record: Record | None, option: click.Option) -> Record | None:
    """The record of an option; choices that fill lines are in its text, where lines break."""
    if (
        record is None
        or len(record[0]) <= LONGEST_FORM
        or not isinstance(option.type, click.Choice)
    ):
        return record
    names = [name for name in map(str, option.type.choices) if not name.startswith(PUBLISHED)]
    left_out = len(names) < len(option.type.choices)
    published = f", and the papers' own forms, {PUBLISHED}NAME" if left_out else ""
    return f"{option.opts[-1]} NAME", f"{record[1]} One of {', '.join(names)}{published}."


def _show_all(context: click.Context, option: click.Parameter, value: bool) -> None:
    """Print the help with every option, and end."""
    if value and not context.resilient_parsing:
        context.meta[WHOLE], context.meta[CHOSEN] = True, None
        click.echo(context.get_help(), color=context.color)
        context.exit()


def option_of(settings: Sequence[Labelled], protocols: int) -> click.Option:
    """One option for a setting of several protocols.

    Parameters
    ----------
    settings : with their protocols' names; the first decides the type.
    protocols : how many there are in all.
    """
    first = settings[0][1]
    kind, flag = option_type(first), first.name.replace("_", "-")
    flags = f"--{flag}/--no-{flag}" if kind is bool else f"--{flag}"
    choices = [choice for _, setting in settings for choice in setting.choices]
    if isinstance(kind, Normalised):
        kind = Normalised(tuple(dict.fromkeys(choices)))
    listing = [name for name, setting in settings if option_type(setting) is as_numbers]
    if kind is int and listing:
        kind = NumberOrNumbers(listing)
    return click.Option(
        [flags, first.name],
        type=kind,
        default=None,
        metavar=_metavar(kind),
        help=help_of(settings, protocols),
    )


def option_type(setting: Setting) -> Any:
    """The type of a setting's option; None where a command line cannot express its value."""
    if setting.declared.type is not None:
        return setting.declared.type
    if setting.choices:
        return Normalised(setting.choices)
    listed = any(get_origin(form) is tuple for form in setting.forms)
    for form in setting.forms:
        if form in (bool, int, float, str):
            return as_number_or_numbers if form is int and listed else form
        if get_origin(form) is tuple and get_args(form)[-1] is not Ellipsis:
            return click.Tuple(get_args(form))
        if get_origin(form) in (tuple, Sequence):
            return as_names if get_args(form)[0] is str else as_numbers
    return None


def as_numbers(text: str) -> tuple[float, ...]:
    """Numbers separated by commas."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not numbers separated by commas") from None


def as_number_or_numbers(text: str) -> Any:
    """A whole number, or numbers separated by commas."""
    return as_numbers(text) if "," in text else click.types.convert_type(int)(text)


def as_names(text: str) -> tuple[str, ...]:
    """Names separated by commas."""
    parts = tuple(part.strip() for part in text.split(","))
    if not all(parts):
        raise click.BadParameter(f"{text!r} is not names separated by commas")
    return parts


def _metavar(kind: Any) -> str | None:
    if kind is as_number_or_numbers or isinstance(kind, NumberOrNumbers):
        return "N|A,B,..."
    if kind in (as_numbers, as_names):
        return "A,B,..."
    is_range = isinstance(kind, click.Tuple) and len(kind.types) == 2
    return "LOW HIGH" if is_range else None


def help_of(settings: Sequence[Labelled], protocols: int) -> str:
    """What protocols say of a setting: each text once, after the protocols that say it.

    A text that most of the protocols share is shown without their names.
    """
    labels: dict[str, list[str]] = {}
    for name, setting in settings:
        labels.setdefault(setting.declared.help or "", []).append(name)
    return " ".join(_sentence(text, each, protocols) for text, each in labels.items())


def _sentence(text: str, labels: list[str], protocols: int) -> str:
    if 2 * len(labels) > protocols:
        return f"{text[:1].upper()}{text[1:]}."
    names = ", ".join(labels)
    return f"{names}: {text}." if text else f"{names}."


def chosen_protocol(name: str, settings: Mapping[str, Any], source: Source = PROTOCOLS) -> Protocol:
    """The protocol with the settings that were given, all of which it must use."""
    try:
        return registry.with_settings(source.kind_of(name), name, settings)
    except registry.SettingError as error:
        flag, choice = f"--{error.name.replace('_', '-')}", f"{CHOICE} {name}"
        if error.missing:
            raise click.UsageError(f"{choice} needs {flag}") from None
        elsewhere = f"; {registry.has_it(error.holders)}" if error.holders else ""
        raise click.UsageError(f"{flag} cannot be used with {choice}{elsewhere}") from None


class NumberOrNumbers(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """A whole number; some protocols take numbers separated by commas, once they are named."""

    name = "integer"

    def __init__(self, listing: Sequence[str]) -> None:
        self._listing = tuple(listing)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The whole number; the refusal of another one names the protocols that take it."""
        try:
            return click.INT.convert(value, param, ctx)
        except click.BadParameter:
            names = [name for name in self._listing if not name.startswith(PUBLISHED)]
            known = " or ".join(names or self._listing)
            self.fail(f"{value!r} is not a whole number; others need {CHOICE} {known}", param, ctx)


class Normalised(click.Choice):  # type: ignore[type-arg]  # generic from click 8.2 on
    """One of some words; an unknown one is refused with the nearest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The word of a spelling of it, with what follows in brackets."""
        names = tuple(map(str, self.choices))
        word, bracket, parameters = value.partition("(")
        name = listed_name(word, names)
        if name is None:
            listed = ", ".join(names)
            self.fail(f"{value!r} is not one of {listed}{suggestion(value, names)}", param, ctx)
        return f"{name}{bracket}{parameters}"
