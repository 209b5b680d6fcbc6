"""Checks a result against the published JSON schema, with the library jsonschema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tacit.results.saved.integrity import SCHEMA

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

GROUPS_SCHEMA = "tacit-groups/1"
SCHEMA_FILES: Mapping[str, str] = {
    SCHEMA: "result.schema.json",
    GROUPS_SCHEMA: "groups.schema.json",
}
"""The files of the schemas of single results and of several groups."""

MAX_SHOWN = 60
"""Largest number of characters of a wrong value that a sentence shows."""

REQUIREMENTS: Mapping[str, str] = {
    "type": "be of type",
    "const": "be",
    "enum": "be one of",
    "minimum": "be at least",
    "maximum": "be at most",
    "minItems": "have at least so many items:",
    "maxItems": "have at most so many items:",
    "maxLength": "be no longer than",
    "pattern": "match",
}
"""What a keyword of JSON Schema requires, to be followed by its value."""


@cache
def result_schema(version: str = SCHEMA) -> dict[str, Any]:
    """The schema of a result, as a dictionary.

    Parameters
    ----------
    version : one of ``SCHEMA_FILES``; that of a single result by default.

    Examples
    --------
    >>> result_schema()["properties"]["schema"]["const"]
    'tacit-result/2'
    """
    text = files("tacit.results.saved").joinpath(SCHEMA_FILES[version]).read_text(encoding="utf-8")
    made: dict[str, Any] = json.loads(text)
    return made


@cache
def _validator(version: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator  # a tenth of a second to import

    return Draft202012Validator(result_schema(version))


def check_groups(content: Any) -> None:
    """Refuse content that is no result of several groups; their own results are checked apart.

    Raises
    ------
    ValueError : naming the path, the requirement with its bound, and the value.
    """
    _check(content, GROUPS_SCHEMA)


def check_result(content: Any) -> None:
    """Refuse content that does not fit the schema of a result.

    Raises
    ------
    ValueError : naming the path, the requirement with its bound, and the value.

    Examples
    --------
    >>> check_result([])
    Traceback (most recent call last):
    ...
    ValueError: the result must be of type object, got []
    """
    _check(content, SCHEMA)


def _check(content: Any, version: str) -> None:
    from jsonschema.exceptions import best_match  # a tenth of a second to import

    error = best_match(_validator(version).iter_errors(content))
    if error is not None:
        path = error.json_path.removeprefix("$").removeprefix(".")
        raise ValueError(f"{path or 'the result'} {_sentence(error)}")


def _sentence(error: ValidationError) -> str:
    """The requirement that a value does not meet, and the value."""
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        return f"must have {', '.join(missing)}"
    bound = error.validator_value
    wanted = " or ".join(bound) if error.validator == "type" and isinstance(bound, list) else bound
    requirement = REQUIREMENTS.get(str(error.validator), f"fit {error.validator}:")
    return f"must {requirement} {wanted}, got {_shown(error.instance)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
