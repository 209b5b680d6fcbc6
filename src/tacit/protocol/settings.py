"""How a protocol declares its settings, what follows from the declaration, and their types.

A protocol is a frozen dataclass whose fields are its settings. ``setting`` makes such a field, with
what the rest of the system needs of it: the words of ``tacit evaluate --help``, the choices there
are, and how a result writes it. Whether a setting that was read from a file has the type that its
protocol declares. Names in any case and with any dashes, and the name that a misspelled one is
nearest to.

A parameter that means something under one choice only, such as the delta of Gaussian noise, is a
field of the chosen object. Commands, plans and results write such a choice as a text, its word with
the parameters that differ from their defaults: ``secure-sum(dropouts=0.2)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from difflib import get_close_matches
from functools import cache
from numbers import Real
from types import MappingProxyType, UnionType
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

WORDS: dict[Any, str] = {
    float: "a number",
    int: "a whole number",
    bool: "true or false",
    str: "a text",
    type(None): "none",
}


field_types: Callable[[type], Mapping[str, Any]] = cache(
    lambda kind: MappingProxyType(get_type_hints(kind))
)
"""The types of a class's annotated fields by name; they are evaluated once for each class."""


def problem_with(kind: type, name: str, value: Any) -> str | None:
    """What is wrong with the type of a setting's value, in words; None where it fits.

    Parameters
    ----------
    kind : the protocol's class, a dataclass whose field ``name`` is annotated; which of several
        texts it takes, the class checks itself.
    name : the setting.
    value : as a file of TOML or JSON gives it; lists are given as tuples.

    Examples
    --------
    >>> from tacit import DPAUC
    >>> problem_with(DPAUC, "adjacency", True)
    'adjacency must be a text, got True'
    >>> problem_with(DPAUC, "epsilon", 1)
    """
    hints = alternatives(field_types(kind)[name])
    if any(_fits(hint, value) for hint in hints):
        return None
    words = dict.fromkeys(_words(hint) for hint in hints)
    known = " or ".join(word for word in words if word not in ("", WORDS[type(None)]))
    return f"{name} must be {known}, got {value!r:.60}"


def alternatives(hint: Any) -> tuple[Any, ...]:
    """The forms that a hint allows; a lone number is no array, though ``ArrayLike`` allows it.

    Examples
    --------
    >>> alternatives(int | None)
    (<class 'int'>, <class 'NoneType'>)
    """
    if get_origin(hint) not in (Union, UnionType):
        return (hint,)
    forms = get_args(hint)
    if any(_is_array(form) for form in forms):
        return tuple(form for form in forms if form not in (bool, int, float, complex, bytes))
    return forms


def _is_array(hint: Any) -> bool:
    """Whether this is one of the forms of NumPy's ``ArrayLike``."""
    origin = get_origin(hint) or hint
    return origin is not np.ndarray and getattr(origin, "__module__", "").startswith("numpy")


def _fits(hint: Any, value: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is tuple or origin is Sequence:
        if not isinstance(value, tuple):
            return False
        # a sequence repeats its hint, as ``...`` repeats the hint before it
        is_repeated = origin is Sequence or parts[-1] is ...
        hints = parts[:1] * len(value) if is_repeated else parts
        return len(hints) == len(value) and all(map(_fits, hints, value))
    if _is_array(hint):
        return isinstance(value, tuple | list) and all(
            _fits(float, entry) or _fits(hint, entry) for entry in value
        )
    kind = str if origin is Literal else Real if hint is float else hint
    if isinstance(value, bool):
        return kind is bool
    return isinstance(kind, type) and isinstance(value, kind)


def _words(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return WORDS[str]
    if get_origin(hint) is tuple:
        parts = get_args(hint)
        return "a list of numbers" if parts[-1] is ... else f"{len(parts)} numbers"
    if _is_array(hint) or get_origin(hint) is Sequence:
        return "a list of numbers"
    return WORDS.get(hint, "")


def listed_name(word: str, names: Sequence[str]) -> str | None:
    """The name of which a word is a spelling: case, dashes, underscores and spaces do not count.

    None where it is a spelling of none, or of several.

    Examples
    --------
    >>> listed_name("Score_Histogram", ("fedauc", "score-histogram"))
    'score-histogram'
    """
    if word in names:
        return word
    same = [name for name in names if _plain(name) == _plain(word)]
    return same[0] if len(same) == 1 else None


def suggestion(word: str, names: Sequence[str]) -> str:
    """The end of a sentence about an unknown name: the name that was probably meant, if any.

    Examples
    --------
    >>> suggestion("fed-auk", ("fedauc", "dpauc"))
    "; did you mean 'fedauc'?"
    """
    by_plain = {_plain(name): name for name in names}
    near = get_close_matches(_plain(word), list(by_plain), n=1)
    return f"; did you mean {by_plain[near[0]]!r}?" if near else ""


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())


LONGEST = 1000
"""Largest number of characters of a text that is read as a choice."""


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
        given = {each: getattr(self, each.name) for each in fields(self)}
        changed = [f"{each.name}={value}" for each, value in given.items() if value != each.default]
        return f"{self.word}({', '.join(changed)})" if changed else self.word


@dataclass(frozen=True)
class Between(Choice):
    """A choice with a public range of values, from a lower to a higher end, both included.

    Parameters
    ----------
    low, high : the ends.

    Raises
    ------
    ValueError : for ends that do not ascend.
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        for end in ("low", "high"):
            object.__setattr__(self, end, float(getattr(self, end)))
        if not (math.isfinite(self.high - self.low) and self.low < self.high):
            raise ValueError(
                f"a range must run from a lower to a higher end, got {self.low} to {self.high}"
            )


def chosen(name: str, value: Any, kinds: Sequence[type[Choice]]) -> Choice:
    """The choice that a value is, or that a text writes.

    Parameters
    ----------
    name : the setting, for errors.
    value : a choice or its text; a choice of another setting is read as its text.
    kinds : the classes of the choices that there are.

    Raises
    ------
    ValueError : for another value, brackets that do not match, or parameters that the choice does
        not have, that are written twice or that are missing.

    Examples
    --------
    >>> from tacit.protocol.trust import Each, SecureSum
    >>> chosen("trust", "secure-sum(dropouts=0.2)", (SecureSum, Each))
    SecureSum(dropouts=0.2)
    >>> chosen("trust", "each(dropouts=0.2)", (SecureSum, Each))
    Traceback (most recent call last):
    ValueError: trust: each has no parameter 'dropouts'; it has none
    """
    if type(value) in kinds:
        return _checked(name, value)
    by_word = {kind.word: kind for kind in kinds}
    text = str(value) if isinstance(value, Choice) else value
    if isinstance(text, str) and len(text) > LONGEST:
        raise ValueError(
            f"{name} must be a text of at most {LONGEST} characters, got one of {len(text)}"
        )
    called, parts = _written(name, text) if isinstance(text, str) else ("", [])
    word = listed_name(called, tuple(by_word))
    if word is None:
        raise ValueError(f"{name} must be one of {', '.join(by_word)}, got {value!r:.60}")
    return _made(f"{name}: ", by_word[word], parts)


def choice_kinds(forms: Sequence[Any]) -> tuple[type[Choice], ...]:
    """The classes of choices among the types of a setting or a parameter."""
    return tuple(form for form in forms if isinstance(form, type) and issubclass(form, Choice))


def _written(name: str, text: str) -> tuple[str, list[str]]:
    """The word of a choice's text, and its parameters as texts."""
    word, bracket, rest = text.strip().partition("(")
    if bracket and not rest.endswith(")"):
        raise ValueError(f"{name} must end with the bracket that it opens, got {text!r:.60}")
    parts = _parts(rest[:-1])
    if ")" in word or parts is None:
        raise ValueError(f"{name} must close every bracket that it opens, got {text!r:.60}")
    return word.strip(), parts


def _parts(text: str) -> list[str] | None:
    """The parameters in a text, each as ``key=value``; None where brackets do not match.

    They end at commas outside brackets. What follows such a comma without a key is a further entry
    of the list before it.
    """
    parts, open_brackets, start = list[str](), list[str](), 0
    for place, character in enumerate(f"{text},"):
        if character in "([":
            open_brackets.append(")" if character == "(" else "]")
        elif character in ")]":
            if not open_brackets or open_brackets.pop() != character:
                return None
        elif character == "," and not open_brackets:
            part, start = text[start:place].strip(), place + 1
            if parts and part and not _has_key(part):
                parts[-1] += f", {part}"
            elif part:
                parts.append(part)
    return None if open_brackets else parts


def _has_key(part: str) -> bool:
    """Whether an equals sign comes before any bracket."""
    key, equals, _ = part.partition("=")
    return bool(equals) and not {"(", "["} & set(key)


def _made(prefix: str, kind: type[Choice], parts: Sequence[str]) -> Choice:
    """A choice of a class from its parameters' texts; errors begin with the prefix."""
    types, parameters = field_types(kind), dict[str, Any]()
    known = [each.name for each in fields(kind)]
    for part in parts:
        key, _, text = (side.strip() for side in part.partition("="))
        if not _has_key(part):
            raise ValueError(f"{prefix}a parameter is written as name=value, got {part!r:.60}")
        if key not in known:
            listed = ", ".join(known) or "none"
            raise ValueError(f"{prefix}{kind.word} has no parameter {key!r:.60}; it has {listed}")
        if key in parameters:
            raise ValueError(f"{prefix}{kind.word} has the parameter {key!r} once, got it twice")
        parameters[key] = _parsed(f"{prefix}{key}", text, types[key])
    for each in fields(kind):
        if each.default is MISSING and each.name not in parameters:
            raise ValueError(f"{prefix}{kind.word} needs {each.name}")
    return kind(**parameters)


def _checked(name: str, choice: Choice) -> Choice:
    """A choice whose parameters that are choices are among those that it takes."""
    types, changed = field_types(type(choice)), {}
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
    if not isinstance(made, type) or made is bool:
        raise ValueError(f"{name} cannot be written as a text")
    try:
        return made(text)
    except ValueError:
        wanted = WORDS.get(made, "numbers with commas or spaces between")
        raise ValueError(f"{name} must be {wanted}, got {text!r:.60}") from None


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

    @property
    def has_fixed_length(self) -> bool:
        """Whether its values are so many parts, as the two ends of a range."""
        parts = [get_args(form) for form in self.forms if get_origin(form) is tuple]
        return any(each[-1] is not Ellipsis for each in parts)

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
        word = listed_name(value, self.choices) if isinstance(value, str) else None
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
