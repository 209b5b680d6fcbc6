"""Pages, help, messages and docstrings use the field's terms: coined words do not come back.

Code is left out: fenced blocks and words between backquotes, examples, and names of parameters.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.stem != "reproduction"),
    *sorted((ROOT / "examples").glob("*/README.md")),
]
SOURCES = sorted((ROOT / "src" / "tacit").rglob("*.py"))
TEMPLATES = sorted((ROOT / "src" / "tacit" / "reporting" / "templates").glob("*.html"))

COINED = {
    r"knots?": "cell edges",
    r"crowd\w*": "concentrated, tied",
    r"straight": "linear, piecewise linear",
    r"anew": "again",
    r"nobody": "no party, no one",
    r"whoever": "anyone who",
    r"told apart": "distinguished",
    r"by itself": "separately, alone",
    r"parts? of epsilon": "fraction of epsilon",
    r"errs?": "has an error of",
    r"beside": "compared with, next to",
}
"""Words that must not come back, and what to write instead."""

WORDS = re.compile(rf"\b(?:{'|'.join(COINED)})\b", re.IGNORECASE)
JOINT = re.compile(r"""["']\s+[rf]?["']""")
"""What stands between texts that Python joins: without it a whole source is searched at once."""
CODE = re.compile(r"^(```|~~~).*?^\1[ \t]*$|`[^`\n]*`", re.DOTALL | re.MULTILINE)


EXAMPLE = re.compile(r"^ *>>>.*(?:\n *\S.*)*", re.MULTILINE)
NAMED = re.compile(r"^ *[a-z_]\w*(?:, [a-z_]\w*)* : ", re.MULTILINE)


def coined(text: str) -> list[str]:
    """The coined words of a text, in order."""
    return WORDS.findall(text)


def docstrings(source: str) -> list[str]:
    """The docstrings of a source, of its constants too."""
    return [
        node.value.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]


def prose(docstring: str) -> str:
    """A docstring without examples, names of parameters and code."""
    return CODE.sub("", NAMED.sub("", EXAMPLE.sub("", docstring)).replace("``", "`"))


def messages(source: str) -> Iterator[str]:
    """The texts in a source that have a blank, docstrings left out."""
    documentation = set(docstrings(source))
    for node in ast.walk(ast.parse(source)):
        text = node.value if isinstance(node, ast.Constant) else ""
        if isinstance(text, str) and " " in text and text not in documentation:
            yield text


def texts(path: Path) -> Iterator[str]:
    """The texts of a page or a template, or those of a source that people read."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from map(prose, docstrings(text))
        yield CODE.sub("", "\n".join(messages(text)))
    else:
        yield CODE.sub("", text) if path.suffix == ".md" else text


@pytest.mark.parametrize("paths", [PAGES, SOURCES, TEMPLATES], ids=["pages", "sources", "html"])
def test_texts_use_the_terms_of_the_field(paths: list[Path]) -> None:
    suspected = [path for path in paths if coined(JOINT.sub("", path.read_text(encoding="utf-8")))]
    found = {path.relative_to(ROOT): coined("\n".join(texts(path))) for path in suspected}
    assert {path: words for path, words in found.items() if words} == {}


NAMED_ELSEWHERE = (
    "results/curves/calibrator.py",
    "metrics/calibration.py",
    "results/measures/smooth_calibration.py",
)
"""Modules of isotonic fits and splines, whose points the literature calls knots."""
WORD = re.compile(r"knots?|crowd\w*|straight|look(?:s|ed)?|spelled|nobodys?|anew", re.IGNORECASE)


def identifiers(source: str) -> Iterator[str]:
    """The names that a source defines: of functions, classes, parameters, fields and variables."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_identifiers_use_the_terms_of_the_field() -> None:
    assert [*identifiers("def crowded(x):\n    knots = x")] == ["crowded", "x", "knots"]
    found = {
        (path.name, name)
        for path in SOURCES
        if not path.as_posix().endswith(NAMED_ELSEWHERE)
        for name in identifiers(path.read_text(encoding="utf-8"))
        if any(map(WORD.fullmatch, name.split("_")))
    }
    assert found == set()


def test_a_coined_word_is_found() -> None:
    assert coined("Scores crowd beside knots; `beside`") == ["crowd", "beside", "knots", "beside"]
    assert coined(CODE.sub("", "`beside`\n\n```text\nknots\n```\n")) == []
    assert list(messages('"""Beside."""\nx = "a knot"\ny = "knot"')) == ["a knot"]


def test_a_coined_word_of_a_docstring_is_found_outside_code() -> None:
    text = '"""Beside it.\n\nknots : straight, ``anew``.\n\n>>> knots\n1 beside\n"""'
    assert coined("".join(map(prose, docstrings(text)))) == ["Beside", "straight"]
    assert docstrings('x = 1\n"""A knot."""\ndef f():\n    """Nobody."""') == ["A knot.", "Nobody."]
