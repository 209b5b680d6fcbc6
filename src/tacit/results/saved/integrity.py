"""What computed a published result, its fingerprint, and that of the federation it is about."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

SCHEMA = "tacit-result/2"
"""The version of a result's JSON; ``result.schema.json`` next to this file says what it holds."""
COMPARISON_SCHEMA, GROUPS_SCHEMA = "tacit-comparison/1", "tacit-groups/1"
"""The versions of the JSON of a comparison, and of evaluations by group."""

EXACT_INTEGERS = 2.0**53
"""Whole numbers below this are the same as integers and as floats."""


def software_entry() -> dict[str, str]:
    """The versions that computed a result."""
    try:
        tacit_version = version("tacit")
    except PackageNotFoundError:
        tacit_version = "not installed"
    return {"tacit": tacit_version, "python": platform.python_version(), "numpy": np.__version__}


def canonical(content: Any) -> bytes:
    """JSON content as bytes that do not depend on how it was laid out.

    Keys are sorted, nothing is indented, and a whole number is written as an integer, so a file
    that another program read and wrote again keeps its fingerprint.

    Raises
    ------
    ValueError : for a number that is not finite.

    Examples
    --------
    >>> canonical({"b": 1.0, "a": [None, "x"]})
    b'{"a":[null,"x"],"b":1}'
    """
    text = json.dumps(_plain(content), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def fingerprint(content: Mapping[str, Any]) -> str:
    """SHA-256 over all of a result except its ``fingerprint`` entry.

    It detects accidental changes. It is no signature: anyone who changes a result on purpose can
    compute it again.

    Raises
    ------
    ValueError : for a number that is not finite.
    """
    rest = {key: value for key, value in content.items() if key != "fingerprint"}
    return f"sha256:{hashlib.sha256(canonical(rest)).hexdigest()}"


def with_fingerprint(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content with its fingerprint, which replaces any earlier one.

    Examples
    --------
    >>> result = with_fingerprint({"schema": SCHEMA, "clients": 5})
    >>> result["fingerprint"] == fingerprint(result)
    True
    """
    return {**content, "fingerprint": fingerprint(content)}


def federation_entry(
    name: str | None, clients: int, participants: Sequence[str] = ()
) -> dict[str, Any]:
    """The ``federation`` entry of a result: what was said of the records, and a digest of that.

    The digest is made of released facts only: the name that somebody gave to the federation and
    its records, and the number of clients; without a name, the number and names of the clients.
    No record enters it, because a hash of few records can be guessed by trying them all. So equal
    fingerprints mean that the same was *said*.

    Examples
    --------
    >>> one = federation_entry("five hospitals, test set 3", 5)
    >>> one == federation_entry("five hospitals, test set 3", 5, ("north", "south"))
    True
    """
    said = ["tacit-federation/1", name, clients, list(participants) if name is None else None]
    digest = hashlib.sha256(canonical(said)).hexdigest()
    return {"name": name, "clients": clients, "fingerprint": f"sha256:{digest}"}


def _plain(value: Any) -> Any:
    """The value with whole floats as integers."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT_INTEGERS:
        return int(value)
    return value
