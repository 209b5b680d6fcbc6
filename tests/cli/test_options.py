"""Options made of what protocols declare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import click
import pytest
from click.testing import CliRunner

from tacit.cli import setting_options
from tacit.cli.setting_options import SettingsCommand, Source, help_of, option_of
from tacit.protocol.settings import known_settings, setting


@dataclass(frozen=True)
class Oven:
    """Enough of a protocol for its settings."""

    heat: float = setting(help="how hot")
    mode: Literal["fan", "grill"] = setting(default="fan", help="fan by default")
    steam: bool = setting(default=False, help="with steam")
    window: tuple[float, float] = setting(default=(0.0, 1.0), help="from when to when")
    steps: tuple[float, ...] | None = setting(default=None, help="the times")
    seed: int = setting(default=0, help="of the dough")
    secret: int = setting(default=0, help=None)
    nothing: dict[str, int] | None = setting(default=None, help="no text can say it")


@dataclass(frozen=True)
class Hob:
    """Another one, which shares names with the first."""

    heat: float = setting(help="how hot")
    mode: Literal["gas", "fan"] = setting(default="gas", help="gas by default")
    rings: int = setting(default=4, help="how many rings")


KINDS: dict[str, Any] = {"oven": Oven, "hob": Hob}
asked: list[str] = []


def kind_of(name: str) -> Any:
    asked.append(name)
    return KINDS[name]


SOURCE = Source(lambda: tuple(KINDS), kind_of)


@click.command(cls=SettingsCommand, source=SOURCE)
@click.option("--protocol", type=click.Choice(tuple(KINDS)), required=True)
@click.option("--seed", type=int)
def cook(protocol: str, seed: int | None, settings: dict[str, Any]) -> None:
    """Print what was given."""
    click.echo(f"{protocol} {seed} {settings}")


def cooked(*arguments: str) -> str:
    asked.clear()
    setting_options._options_of.cache_clear()
    result = CliRunner().invoke(cook, arguments)
    return " ".join(result.output.split())


def test_options_have_the_types_of_their_settings() -> None:
    output = cooked(
        *("--protocol", "oven", "--heat", "2", "--mode", "grill", "--no-steam"),
        *("--window", "1", "2", "--steps", "1,2,3", "--seed", "7"),
    )
    assert output == (
        "oven 7 {'heat': 2.0, 'mode': 'grill', 'steam': False, 'window': (1.0, 2.0), "
        "'steps': (1.0, 2.0, 3.0)}"
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--heat", "hot"), "'hot' is not a valid float"),
        (("--mode", "gas"), "'gas' is not one of fan, grill"),
        (("--steps", "1,x"), "'1,x' is not numbers separated by commas"),
        (("--secret", "1"), "No such option '--secret'"),
    ],
)
def test_what_no_setting_takes_is_refused(arguments: tuple[str, ...], sentence: str) -> None:
    assert sentence in cooked("--protocol", "oven", *arguments)


@pytest.mark.parametrize("form", [("--protocol", "hob"), ("--protocol=hob",)])
def test_only_the_protocol_that_is_named_is_looked_at(form: tuple[str, ...]) -> None:
    assert cooked(*form, "--heat", "1", "--rings=2") == "hob None {'heat': 1.0, 'rings': 2}"
    assert asked == ["hob"]


def test_an_option_of_another_protocol_is_known() -> None:
    """The command itself says then that it cannot be used, by the option's name."""
    output = cooked("--protocol", "hob", "--steps", "1,2")
    assert output == "hob None {'steps': (1.0, 2.0)}"


def test_help_shows_the_options_of_all() -> None:
    output = cooked("--protocol", "hob", "--help-all")
    assert "--heat FLOAT How hot." in output
    assert "--mode [fan|grill|gas] oven: fan by default. hob: gas by default." in output
    assert "--steam / --no-steam oven: with steam." in output
    assert "--window LOW HIGH oven: from when to when." in output
    assert "--steps A,B,... oven: the times." in output
    assert "--rings INTEGER hob: how many rings." in output
    assert "secret" not in output
    assert "nothing" not in output


def test_help_shows_the_settings_of_the_protocol_that_is_named() -> None:
    output = cooked("--protocol", "hob", "--help")
    assert "Settings of hob: --heat FLOAT How hot." in output
    assert "--mode [gas|fan] Gas by default." in output
    assert "--steam" not in output
    assert asked == ["hob"]
    assert "Settings of a protocol: cook --protocol NAME --help." in cooked("--help")


def test_an_option_of_the_command_itself_is_not_replaced() -> None:
    assert "of the dough" not in cooked("--help")


def test_texts_that_protocols_share_are_said_once() -> None:
    heat = known_settings(Oven)["heat"]
    shared = [("a", heat), ("b", heat)]
    assert help_of(shared, 4) == "a, b: how hot."
    assert help_of(shared, 3) == "How hot."


def test_a_declared_type_is_taken() -> None:
    @dataclass(frozen=True)
    class Pot:
        lid: str = setting(default="a", choices=("a", "b"), type=str, help="a, b; a by default")

    option = option_of([("pot", known_settings(Pot)["lid"])], 9)
    assert option.type is click.STRING
    assert option.help == "pot: a, b; a by default."
