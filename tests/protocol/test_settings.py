"""Settings as protocols declare them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from tacit.protocol.registry import kind_of, protocol_names
from tacit.protocol.settings import check_choices, known_settings, setting, settings_of


@dataclass(frozen=True)
class Lamp:
    """Enough of a protocol for its settings."""

    power: float = setting(help="in watts")
    colour: Literal["red", "blue"] | None = setting(default=None, help="of the light")
    socket: str = setting(default="screw", choices=("screw", "bayonet"), help="how it is held")
    ends: tuple[int, int] = setting(default=(0, 1), help=None)
    plain: float = 0.5

    setting_order = ("socket", "power")


def test_results_write_what_applies_in_the_order_that_is_declared() -> None:
    written = settings_of(Lamp(3.0))
    assert written == {"socket": "screw", "power": 3.0, "ends": [0, 1], "plain": 0.5}
    assert list(written) == ["socket", "power", "ends", "plain"]
    assert settings_of(Lamp(3.0, "red"))["colour"] == "red"


def test_a_value_is_written_as_it_is_declared() -> None:
    @dataclass(frozen=True)
    class Shown(Lamp):
        plain: float = setting(default=0.5, shown=lambda lamp: lamp.plain * lamp.power, help="")

    assert settings_of(Shown(4.0))["plain"] == 2.0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"colour": "green"}, r"colour must be one of \('red', 'blue'\), got 'green'"),
        ({"socket": "glue"}, r"socket must be one of \('screw', 'bayonet'\), got 'glue'"),
        ({"socket": 3}, r"socket must be one of .*, got 3"),
        ({"socket": None}, "socket must be one of .*, got None"),
    ],
)
def test_unknown_choices_are_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        check_choices(Lamp(1.0, **change))


def test_a_plain_choice_is_spelled_in_any_way() -> None:
    lamp = Lamp(1.0, socket="Bayonet", colour="RED")  # type: ignore[arg-type]
    check_choices(lamp)
    assert (lamp.socket, lamp.colour) == ("bayonet", "red")


def test_a_class_knows_its_settings() -> None:
    known = known_settings(Lamp)
    assert list(known) == ["power", "colour", "socket", "ends", "plain"]
    assert [name for name in known if known[name].needed] == ["power"]
    assert known["colour"].choices == ("red", "blue")
    assert known["colour"].optional
    assert known["plain"].forms == (float,)
    assert known_settings(int) == {}


@pytest.mark.parametrize("name", protocol_names())
def test_every_setting_of_a_protocol_is_declared_in_words(name: str) -> None:
    """A help text is part of a sentence: the command adds the protocol and the full stop."""
    for known in known_settings(kind_of(name)).values():
        text = known.declared.help
        assert text is None or (text and not text.endswith(".") and text[0] == text[0].lower())
