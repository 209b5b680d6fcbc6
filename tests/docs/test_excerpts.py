"""Documents quote sources as they are: a fence ``python excerpt FILE`` is found in that file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*/README.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *EXAMPLES]
EXCERPT = re.compile(r"^```\w+ excerpt (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LEFT_OUT = "..."
"""A line that stands for any lines."""


def lines_of(text: str) -> list[str]:
    """The lines that are not empty."""
    return [line for line in text.splitlines() if line.strip()]


def excerpts(page: str, path: str) -> list[list[str]]:
    """The lines of every excerpt from a file, in order."""
    return [lines_of(text) for source, text in EXCERPT.findall(page) if source == path]


def unlike(page: str) -> list[str]:
    """The parts of excerpts that their files do not have, each by its first line."""
    wrong = []
    for source, text in EXCERPT.findall(page):
        whole = "\n" + "\n".join(lines_of((ROOT / source).read_text(encoding="utf-8"))) + "\n"
        for part in re.split(rf"^\s*{re.escape(LEFT_OUT)}\n", text, flags=re.MULTILINE):
            quoted = lines_of(part)
            if quoted and "\n" + "\n".join(quoted) + "\n" not in whole:
                wrong.append(f"{source}: {quoted[0]}")
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_excerpts_are_what_their_files_say(page: Path) -> None:
    assert unlike(page.read_text(encoding="utf-8")) == []


def test_there_are_excerpts() -> None:
    quoting = [page.stem for page in PAGES if EXCERPT.search(page.read_text(encoding="utf-8"))]
    assert {"architecture", "write-a-protocol", "README"} <= set(quoting)


def test_another_line_is_noticed() -> None:
    head = "```python excerpt tests/docs/test_excerpts.py\n"
    good = f"{head}def lines_of(text: str) -> list[str]:\n    ...\n    return [line for"
    good += " line in text.splitlines() if line.strip()]\n```"
    assert EXCERPT.search(good)
    assert unlike(good) == []
    assert unlike(good.replace("strip", "lstrip")) == [
        "tests/docs/test_excerpts.py:     return [line for line in text.splitlines()"
        " if line.lstrip()]"
    ]
