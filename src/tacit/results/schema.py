"""Checks a result against the published JSON schema.

The schema is the one description of a result's JSON, and the check reads it. Of JSON Schema (draft
2020-12) it understands the keywords that the file uses, and refuses a schema that uses others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from tacit.results.integrity import SCHEMA

SCHEMA_FILES: Mapping[str, str] = {
    SCHEMA: "result.schema.json",
    "tacit-result/1": "result-1.schema.json",
}
"""The file of every version that is read, today's first."""

SHOWN = 60
"""Largest number of characters that are shown of a wrong value."""

TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool))
        or (isinstance(value, float) and value.is_integer())
    ),
}
NOTES = {"$schema", "$id", "$defs", "title", "description"}


@cache
def result_schema(version: str = SCHEMA) -> dict[str, Any]:
    """The schema of a result, as a dictionary.

    Parameters
    ----------
    version : one of ``SCHEMA_FILES``; today's by default.

    Examples
    --------
    >>> result_schema()["properties"]["schema"]["const"]
    'tacit-result/2'
    """
    text = files("tacit.results").joinpath(SCHEMA_FILES[version]).read_text(encoding="utf-8")
    made: dict[str, Any] = json.loads(text)
    return made


def check_result(content: Any) -> None:
    """Refuse content that does not fit the schema of the version that it names.

    Content that names no version that is read is checked against today's.

    Raises
    ------
    ValueError : naming the place, what is wanted there and what was found.

    Examples
    --------
    >>> check_result([])
    Traceback (most recent call last):
    ...
    ValueError: the result must be of type object, got []
    """
    named = content.get("schema") if isinstance(content, dict) else None
    schema = result_schema(named if named in list(SCHEMA_FILES) else SCHEMA)
    problem = find_problem(content, schema, schema)
    if problem is not None:
        place, sentence = problem
        raise ValueError(f"{place or 'the result'} {sentence}")


def find_problem(
    value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], place: str = ""
) -> tuple[str, str] | None:
    """The first place where a value does not fit a schema, and why; None where it fits.

    Raises
    ------
    NotImplementedError : for a keyword that this check does not know.
    """
    for keyword, wanted in schema.items():
        if keyword in NOTES or keyword in ("properties", "additionalProperties"):
            continue
        if keyword not in KEYWORDS:
            raise NotImplementedError(f"schema keyword {keyword}")
        problem = KEYWORDS[keyword](value, wanted, root, place)
        if problem is not None:
            return problem
    return _problem_of_entries(value, schema, root, place)


Problem = tuple[str, str] | None
Check = Callable[[Any, Any, Mapping[str, Any], str], Problem]


def _problem_of_entries(
    value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], place: str
) -> Problem:
    if not isinstance(value, dict):
        return None
    named = schema.get("properties", {})
    others = schema.get("additionalProperties", {})
    for key, entry in value.items():
        inside = f"{place}.{key}" if place else key
        problem = find_problem(entry, named.get(key, others), root, inside)
        if problem is not None:
            return problem
    return None


def _type(value: Any, wanted: Any, root: Mapping[str, Any], place: str) -> Problem:
    kinds = [wanted] if isinstance(wanted, str) else wanted
    if any(TYPES[kind](value) for kind in kinds):
        return None
    return place, f"must be of type {' or '.join(kinds)}, got {_shown(value)}"


def _reference(value: Any, wanted: str, root: Mapping[str, Any], place: str) -> Problem:
    return find_problem(value, root["$defs"][wanted.removeprefix("#/$defs/")], root, place)


def _any_of(value: Any, wanted: Any, root: Mapping[str, Any], place: str) -> Problem:
    problems = [find_problem(value, option, root, place) for option in wanted]
    return None if None in problems else problems[0]


def _items(value: Any, wanted: Any, root: Mapping[str, Any], place: str) -> Problem:
    if not isinstance(value, list):
        return None
    problems = (
        find_problem(entry, wanted, root, f"{place}[{index}]") for index, entry in enumerate(value)
    )
    return next((problem for problem in problems if problem is not None), None)


def _required(value: Any, wanted: Any, root: Mapping[str, Any], place: str) -> Problem:
    missing = [key for key in wanted if isinstance(value, dict) and key not in value]
    return (place, f"must have {', '.join(missing)}") if missing else None


def _condition(
    applies: Callable[[Any], bool], holds: Callable[[Any, Any], bool], sentence: str
) -> Check:
    """A keyword about one kind of value."""

    def check(value: Any, wanted: Any, root: Mapping[str, Any], place: str) -> Problem:
        if not applies(value) or holds(value, wanted):
            return None
        return place, f"must {sentence} {wanted}, got {_shown(value)}"

    return check


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


KEYWORDS: Mapping[str, Check] = {
    "type": _type,
    "$ref": _reference,
    "anyOf": _any_of,
    "items": _items,
    "required": _required,
    "const": _condition(lambda value: True, lambda value, wanted: value == wanted, "be"),
    "enum": _condition(lambda value: True, lambda value, wanted: value in wanted, "be one of"),
    "minimum": _condition(TYPES["number"], lambda value, least: value >= least, "be at least"),
    "maximum": _condition(TYPES["number"], lambda value, most: value <= most, "be at most"),
    "minItems": _condition(
        TYPES["array"], lambda value, least: len(value) >= least, "have at least so many items:"
    ),
    "maxItems": _condition(
        TYPES["array"], lambda value, most: len(value) <= most, "have at most so many items:"
    ),
    "maxLength": _condition(
        TYPES["string"], lambda value, most: len(value) <= most, "be no longer than"
    ),
    "pattern": _condition(
        TYPES["string"], lambda value, form: re.search(form, value) is not None, "match"
    ),
}
