"""How a protocol declares its settings, and what follows from the declaration.

A protocol is a frozen dataclass whose fields are its settings. ``setting`` makes such a field, with
what the rest of the system needs of it: the words of ``tacit evaluate --help``, the choices there
are, and how a result writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin

from tacit.protocol.choices import Choice, alternatives, choice_kinds, chosen, field_types, spelled

METADATA = "tacit.setting"
"""Under which key a field's metadata has its declaration."""

PLAIN = (str, int, float, tuple, list, Choice)
"""Types of settings that are compared by their values."""

EPSILON = "privacy budget; every private protocol needs it"
"""The help of every protocol's epsilon."""


@dataclass(frozen=True)
class Declaration:
    """What a protocol says of one of its settings; the parameters are those of ``setting``."""

    help: str | None = ""
    choices: tuple[str, ...] = ()
    shown: Callable[[Any], Any] | None = None
    type: Any = None


@dataclass(frozen=True)
class Setting:
    """A setting of a protocol's class.

    Parameters
    ----------
    name : the field.
    declared : what the protocol says of it.
    choices : the texts that it takes, declared or those of a ``Literal``; empty where any will do.
    forms : the types that its annotation allows, without None.
    needed : whether it has no default.
    optional : whether None is its default, and leaves it open.
    default : the field's default; missing where a factory makes it.
    """

    name: str
    declared: Declaration
    choices: tuple[str, ...]
    forms: tuple[Any, ...]
    needed: bool
    optional: bool
    default: Any = MISSING

    def written(self, protocol: Any) -> Any:
        """The setting's value as a result writes it."""
        if self.declared.shown is not None:
            return self.declared.shown(protocol)
        value = getattr(protocol, self.name)
        if isinstance(value, Choice):
            return str(value)
        return list(value) if isinstance(value, tuple) else value

    def differs(self, protocol: Any) -> bool:
        """Whether this protocol's value is another than the default."""
        return not _is_same(getattr(protocol, self.name), self.default)

    def chosen(self, value: Any) -> Any:
        """The value: of a choice with its own parameters the object, of another choice its word.

        Case, dashes, underscores and spaces of a word do not count.

        Raises
        ------
        ValueError : for a choice that there is not.
        """
        left_open = self.optional and value is None
        kinds = choice_kinds(self.forms)
        if kinds and not left_open:
            return chosen(self.name, value, kinds)
        if not self.choices or left_open or value in self.choices:
            return value
        word = spelled(value, self.choices) if isinstance(value, str) else None
        if word is None:
            raise ValueError(f"{self.name} must be one of {self.choices}, got {value!r:.60}")
        return word


def setting(
    *,
    default: Any = MISSING,
    help: str | None,  # noqa: A002  # the word of the command's options
    choices: tuple[str, ...] = (),
    shown: Callable[[Any], Any] | None = None,
    type: Any = None,  # noqa: A002  # likewise
) -> Any:
    """Declare a field of a protocol, which is a frozen dataclass.

    Parameters
    ----------
    default : of the field; without one the setting is needed.
    help : what ``--help`` says of it, in lower case and without a full stop; None makes no option.
    choices : the texts that it takes; a ``Literal`` annotation says the same. Other values are
        refused by ``check_choices``.
    shown : how a result writes it, from the protocol. By default as it is; tuples as lists.
    type : the type of the command's option, where the annotation does not say it.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Coin:
    ...     sides: int = setting(default=2, help="how many sides; 2 by default")
    ...     metal: str = setting(default="tin", help="of what", choices=("tin", "zinc"))
    ...     setting_order = ("metal",)
    >>> settings_of(Coin())
    {'metal': 'tin', 'sides': 2}
    >>> check_choices(Coin(metal="gold"))
    Traceback (most recent call last):
    ValueError: metal must be one of ('tin', 'zinc'), got 'gold'
    """
    return field(default=default, metadata={METADATA: Declaration(help, choices, shown, type)})


@cache
def known_settings(kind: type) -> Mapping[str, Setting]:
    """The settings of a protocol's class by name; a field without ``setting`` is one, too."""
    if not is_dataclass(kind):
        return MappingProxyType({})
    hints = field_types(kind)
    return MappingProxyType({each.name: _known(each, hints[each.name]) for each in fields(kind)})


def _known(each: Field[Any], hint: Any) -> Setting:
    declared: Declaration = each.metadata.get(METADATA, Declaration())
    forms = tuple(form for form in alternatives(hint) if form is not type(None))
    texts = [text for form in forms if get_origin(form) is Literal for text in get_args(form)]
    needed = each.default is MISSING and each.default_factory is MISSING
    choices = declared.choices or tuple(texts) or tuple(kind.word for kind in choice_kinds(forms))
    optional = each.default is None
    return Setting(each.name, declared, choices, forms, needed, optional, each.default)


def settings_of(protocol: Any) -> dict[str, Any]:
    """The settings of a protocol that are not left open, as results write them.

    Those of ``setting_order`` come first, then the others in the order of their fields.
    """
    known = known_settings(protocol.__class__)
    names = dict.fromkeys((*protocol.setting_order, *known))
    return {
        name: known[name].written(protocol) for name in names if getattr(protocol, name) is not None
    }


def changed_settings(protocol: Any, other: Any) -> frozenset[str]:
    """The settings in which two protocols of one class differ, by name."""
    return frozenset(
        name
        for name in known_settings(protocol.__class__)
        if not _is_same(getattr(protocol, name), getattr(other, name))
    )


def _is_same(value: Any, other: Any) -> bool:
    """Whether two values are one; objects, such as earlier results, are compared by identity."""
    return value is other or (isinstance(value, PLAIN) and bool(value == other))


def check_choices(protocol: Any) -> None:
    """Refuse choices that there are not, and put the choices themselves in place of their texts.

    Raises
    ------
    ValueError : for an unknown choice; the message names the setting, the choices and the value.
    """
    for name, known in known_settings(protocol.__class__).items():
        value = getattr(protocol, name)
        choice = known.chosen(value)
        if choice is not value:
            object.__setattr__(protocol, name, choice)
