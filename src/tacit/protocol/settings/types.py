"""Types of settings' values, and names in any spelling.

Whether a setting that was read from a file has the type that its protocol declares. Names in any
case and with any dashes, and the name that a misspelled one is nearest to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from numbers import Real
from types import MappingProxyType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

WORDS: dict[Any, str] = {
    float: "a number",
    int: "a whole number",
    bool: "true or false",
    str: "a text",
    type(None): "none",
}


def field_types(kind: type) -> Mapping[str, Any]:
    """The types of a class's annotated fields by name; they are evaluated once for each class."""
    return _evaluated(kind)


@cache
def _evaluated(kind: type) -> Mapping[str, Any]:
    return MappingProxyType(get_type_hints(kind))


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
        return isinstance(value, tuple) and _all_fit(parts, value, origin is Sequence)
    if _is_array(hint):
        return isinstance(value, tuple | list) and all(
            _fits(float, entry) or _fits(hint, entry) for entry in value
        )
    kind = str if origin is Literal else Real if hint is float else hint
    if isinstance(value, bool):
        return kind is bool
    return isinstance(kind, type) and isinstance(value, kind)


def _all_fit(hints: tuple[Any, ...], values: tuple[Any, ...], repeated: bool) -> bool:
    """Whether the values of a tuple fit; ``...`` repeats the hint before it, as a sequence does."""
    if repeated or hints[-1] is ...:
        return all(_fits(hints[0], value) for value in values)
    return len(hints) == len(values) and all(map(_fits, hints, values))


def _words(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return WORDS[str]
    if get_origin(hint) is tuple:
        parts = get_args(hint)
        return "a list of numbers" if parts[-1] is ... else f"{len(parts)} numbers"
    if _is_array(hint) or get_origin(hint) is Sequence:
        return "a list of numbers"
    return WORDS.get(hint, "")


def spelled(word: str, names: Sequence[str]) -> str | None:
    """The name of which a word is a spelling: case, dashes, underscores and spaces do not count.

    None where it is a spelling of none, or of several.

    Examples
    --------
    >>> spelled("Score_Histogram", ("fedauc", "score-histogram"))
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
