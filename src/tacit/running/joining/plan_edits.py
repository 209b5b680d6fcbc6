"""Writes keys into the text of a plan, and leaves its comments as they are."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from tacit.running.session.toml_source import PlanError

PLAN, PARTY = "[plan]", "[[party]]"


def with_coordinator(text: str, key: bytes) -> str:
    """A plan with its coordinator's public key.

    Raises
    ------
    PlanError : for a text whose lines are not understood.

    Examples
    --------
    >>> print(with_coordinator('[plan]\\nname = "x"\\n', b"1" * 32), end="")
    [plan]
    coordinator = "3131313131313131313131313131313131313131313131313131313131313131"
    name = "x"
    """
    before = tomllib.loads(text)
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if _header(line) == PLAN), None)
    if start is None:
        raise PlanError("the plan has no line [plan]")
    _set(lines, start, "coordinator", key)
    before["plan"]["coordinator"] = key.hex()
    return _checked(lines, before)


def with_party(text: str, name: str, key: bytes) -> str:
    """A plan with a party's public key; a party that it does not name is added at its end.

    Raises
    ------
    PlanError : for a text whose lines are not understood.

    Examples
    --------
    >>> plan = '[[party]]\\nname = "a"  # north\\n# key = "..."\\n'
    >>> print(with_party(plan, "a", b"1" * 32), end="")
    [[party]]
    name = "a"  # north
    key = "3131313131313131313131313131313131313131313131313131313131313131"
    """
    wanted = tomllib.loads(text)
    parties = wanted.setdefault("party", [])
    entry = next((party for party in parties if party.get("name") == name), None)
    lines = text.splitlines()
    if entry is None:
        entry = {"name": name}
        parties.append(entry)
        lines += ["", PARTY, f"name = {json.dumps(name)}"]
    entry["key"] = key.hex()
    for start in [i for i, line in enumerate(lines) if _header(line) == PARTY]:
        named = [i for i in _block(lines, start) if _value(lines[i], "name") == name]
        if named:
            _set(lines, named[0], "key", key, start)
    return _checked(lines, wanted)


def _set(lines: list[str], after: int, name: str, key: bytes, start: int | None = None) -> None:
    """Replace the line of a key, or its comment, in a table; or add it after a line."""
    new = f'{name} = "{key.hex()}"'
    block = _block(lines, after if start is None else start)
    for pattern in (rf"\s*{name}\s*=", rf"\s*#\s*{name}\s*="):
        for i in block:
            if re.match(pattern, lines[i]):
                lines[i] = new
                return
    lines.insert(after + 1, new)


def _block(lines: list[str], start: int) -> range:
    """The lines of a table after its header."""
    ends = (i for i in range(start + 1, len(lines)) if lines[i].lstrip().startswith("["))
    return range(start + 1, next(ends, len(lines)))


def _header(line: str) -> str:
    return line.partition("#")[0].strip()


def _value(line: str, name: str) -> Any:
    if not re.match(rf"\s*{name}\s*=", line):
        return None
    try:
        return tomllib.loads(line)[name]
    except tomllib.TOMLDecodeError:
        return None


def _checked(lines: list[str], wanted: dict[str, Any]) -> str:
    """The text, if it says what it should.

    Raises
    ------
    PlanError : otherwise; nothing was written.
    """
    text = "\n".join(lines) + "\n"
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        content = {}
    if content != wanted:
        raise PlanError(
            "the plan's lines are not as `tacit init` writes them: write the key into it by hand"
        )
    return text
