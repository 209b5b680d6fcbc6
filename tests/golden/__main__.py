"""Compare what protocols do now with what they did: ``python -m tests.golden [--write]``.

Says how many lines differ, and names the first of every configuration. ``--write`` takes what they
do now as what they have to do.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.golden.tracing import VARIES, golden_lines

VALUES = Path(__file__).parent / "values.json"


def _nested(lines: Mapping[str, str]) -> dict[str, Any]:
    """Lines by the parts of their places, as the file has them."""
    tree: dict[str, Any] = {}
    for place, value in lines.items():
        *folders, name = place.split("/")
        branch = tree
        for folder in folders:
            branch = branch.setdefault(folder, {})
        branch[name] = value
    return tree


def _flat(tree: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, str]]:
    """Places and values of a nested file."""
    for name, value in tree.items():
        if isinstance(value, str):
            yield place + name, value
        else:
            yield from _flat(value, f"{place}{name}/")


def _case(name: str) -> str:
    """The configuration of a place."""
    return name.split("/", maxsplit=1)[0]


def main() -> None:
    """Compare, or write."""
    lines = golden_lines()
    if sys.argv[1:] == ["--write"]:
        VALUES.write_text(json.dumps(_nested(lines), indent=0) + "\n", encoding="utf-8")
        print(f"{len(lines)} values written")
        return
    expected = dict(_flat(json.loads(VALUES.read_text(encoding="utf-8"))))
    # two runs with fresh keys may agree by chance, about a value of a case that varies
    varying = {_case(name) for name, value in expected.items() if value == VARIES}
    names = [
        name
        for name in (expected | lines)
        if expected.get(name) != lines.get(name)
        and not (_case(name) in varying and VARIES in (expected.get(name), lines.get(name)))
    ]
    shown: set[str] = set()
    for name in names:
        case = _case(name)
        if case not in shown:
            shown.add(case)
            print(f"{name}\n  was {expected.get(name)}\n  is  {lines.get(name)}")
    print(f"{len(lines)} values, {len(names)} differ")
    sys.exit(bool(names))


if __name__ == "__main__":
    main()
