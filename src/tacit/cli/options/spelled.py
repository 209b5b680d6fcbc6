"""Types of options whose words are taken in any case, with or without dashes."""

from __future__ import annotations

from typing import Any

import click

from tacit.protocol.settings.spelling import spelled, suggestion


class Spelled(click.Choice):  # type: ignore[type-arg]  # generic from click 8.2 on
    """One of some words; an unknown one is refused with the nearest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The word of a spelling of it, with what follows in brackets."""
        names = tuple(map(str, self.choices))
        word, bracket, parameters = value.partition("(")
        name = spelled(word, names)
        if name is None:
            listed = ", ".join(names)
            self.fail(f"{value!r} is not one of {listed}{suggestion(value, names)}", param, ctx)
        return f"{name}{bracket}{parameters}"
