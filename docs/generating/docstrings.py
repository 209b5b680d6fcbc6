"""Read this project's docstrings as NumPy's style.

Types are annotated, so a parameter is written ``name : what it is``. Griffe reads NumPy's
style, ``name : type`` with the description below; this extension moves the description there.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import griffe

DESCRIBED = {"Parameters", "Raises", "Returns", "Attributes"}
UNDERLINE = re.compile(r"-{3,}")
ITEM = re.compile(r"(?P<name>\S.*?) : (?P<text>.+)")


class DescribedParameters(griffe.Extension):
    """Rewrites every docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = with_descriptions_below(obj.docstring.value)


def with_descriptions_below(text: str) -> str:
    """A docstring in NumPy's own style.

    Examples
    --------
    >>> text = "Add.\\n\\nParameters\\n---\\nx : one,\\n    a sum.\\n\\nYes."
    >>> print(with_descriptions_below(text))
    Add.
    <BLANKLINE>
    Yes.
    <BLANKLINE>
    Parameters
    ---
    x
        one,
        a sum.
    <BLANKLINE>
    """
    sections = _sections(text.split("\n"))
    written = sections[0]
    for section in sections[1:]:
        if section[0] in DESCRIBED:
            items, prose = _without_prose(section)
            written += prose + [line for item in items for line in _below(item)]
        else:
            written += section
    return "\n".join(written)


def _sections(lines: list[str]) -> list[list[str]]:
    """The opening, and every section with its title."""
    starts = [at - 1 for at, line in enumerate(lines) if at and UNDERLINE.fullmatch(line)]
    bounds = [0, *starts, len(lines)]
    return [lines[a:b] for a, b in pairwise(bounds)]


def _without_prose(section: list[str]) -> tuple[list[str], list[str]]:
    """The section's items, and what is said after them and belongs to none: it goes before."""
    for at in range(3, len(section)):
        line = section[at]
        if line[:1].strip() and not section[at - 1] and not ITEM.fullmatch(line):
            prose = section[at:]
            return section[:at], prose if not prose[-1] else [*prose, ""]
    return section, []


def _below(line: str) -> list[str]:
    """A line, with an item's description on one of its own."""
    item = ITEM.fullmatch(line)
    return [line] if item is None else [item["name"], f"    {item['text']}"]
