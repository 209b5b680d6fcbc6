"""Choices with parameters: a setting's value that brings the parameters that belong to it alone.

A parameter that means something under one choice only, such as the delta of Gaussian noise, is a
field of the chosen object. Commands, plans and results write such a choice as a text, its word with
the parameters that differ from their defaults: ``secure-sum(dropouts=0.2)``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, ClassVar, get_type_hints

from tacit.protocol.settings.types import alternatives, spelled

WRITTEN = re.compile(r"\s*([^()\s]+)\s*(?:\(\s*(.*?)\s*\)\s*)?")
"""A choice as a text: its word, and its parameters in brackets."""

BETWEEN = re.compile(r"\s*,(?![^()]*\))\s*")
"""A comma between parameters, outside the brackets of a parameter that is a choice itself."""


@dataclass(frozen=True)
class Choice:
    """One of the values of a setting, with its parameters; a subclass is a frozen dataclass.

    A parameter is a number, a text or a choice without choices of its own. A subclass checks them
    in ``__post_init__``.
    """

    word: ClassVar[str]
    """How commands, plans and results call the choice."""

    def __str__(self) -> str:
        """The word, with the parameters that differ from their defaults."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        changed = [
            f"{each.name}={given[each.name]}"
            for each in fields(self)
            if given[each.name] != each.default
        ]
        return f"{self.word}({', '.join(changed)})" if changed else self.word


def chosen(name: str, value: Any, kinds: Sequence[type[Choice]]) -> Choice:
    """The choice that a value is, or that a text writes.

    Parameters
    ----------
    name : the setting, for errors.
    value : a choice or its text.
    kinds : the classes of the choices that there are.

    Raises
    ------
    ValueError : for another value, or parameters that the choice does not have.

    Examples
    --------
    >>> from tacit.protocol.declarations.trust import Each, SecureSum
    >>> chosen("trust", "secure-sum(dropouts=0.2)", (SecureSum, Each))
    SecureSum(dropouts=0.2)
    >>> chosen("trust", "each(dropouts=0.2)", (SecureSum, Each))
    Traceback (most recent call last):
    ValueError: trust: each has no parameter 'dropouts'
    """
    if isinstance(value, Choice) and isinstance(value, tuple(kinds)):
        return _checked(name, value)
    by_word = {kind.word: kind for kind in kinds}
    written = WRITTEN.fullmatch(value) if isinstance(value, str) else None
    word = None if written is None else spelled(written[1], tuple(by_word))
    if written is None or word is None:
        raise ValueError(f"{name} must be one of {', '.join(by_word)}, got {value!r}")
    kind = by_word[word]
    types, parameters = get_type_hints(kind), {}
    known = {each.name for each in fields(kind)}
    for part in filter(None, BETWEEN.split(written[2] or "")):
        key, _, text = (side.strip() for side in part.partition("="))
        if key not in known:
            raise ValueError(f"{name}: {word} has no parameter {key!r}")
        parameters[key] = _parsed(f"{name}: {key}", text, types[key])
    for each in fields(kind):
        if each.default is MISSING and each.name not in parameters:
            raise ValueError(f"{name}: {word} needs {each.name}")
    return kind(**parameters)


def choice_kinds(forms: Sequence[Any]) -> tuple[type[Choice], ...]:
    """The classes of choices among the types of a setting or a parameter."""
    return tuple(form for form in forms if isinstance(form, type) and issubclass(form, Choice))


def _checked(name: str, choice: Choice) -> Choice:
    """A choice whose parameters that are choices are among those that it takes."""
    types, changed = get_type_hints(type(choice)), {}
    for each in fields(choice):
        value, kinds = getattr(choice, each.name), choice_kinds(alternatives(types[each.name]))
        checked = chosen(f"{name}: {each.name}", value, kinds) if kinds else value
        if checked is not value:
            changed[each.name] = checked
    return replace(choice, **changed) if changed else choice


def _parsed(name: str, text: str, kind: Any) -> Any:
    """A parameter of this type from its text; of several types the first reads it."""
    kinds = choice_kinds(alternatives(kind))
    if kinds:
        return chosen(name, text, kinds)
    made = alternatives(kind)[0]
    if not isinstance(made, type):
        raise ValueError(f"{name} cannot be written as a text")
    try:
        return made(text)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {text!r}") from None
