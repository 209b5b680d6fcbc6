"""What documents and docstrings name exists: files, headings, tests, modules, quoted lines.

Linked files and headings, source and test paths, and benchmarks.

Documents quote sources as they are: a fence ``python excerpt FILE`` is found in that file.

Each threat model names, claim by claim, the tests and checks that stand behind it.
"""

from __future__ import annotations

import pkgutil
import re
import tomllib
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests import laws

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "tacit"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*/README.md"))
THREATS = sorted((ROOT / "docs" / "threat-models").glob("*.md"))

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
PATH = re.compile(r"(?<![\w./-])((?:[\w*.-]+/)+[\w*.-]+\.(?:py|css|js|json))(?![\w/])")
BENCHMARK = re.compile(r"python -m (benchmarks(?:\.\w+)?)\b")
ELSEWHERE = re.compile(r"https?:|mailto:")

SKELETON = [
    "In one paragraph",
    "Who sees what",
    "What each can break",
    "What is released, and to whom",
    "Residual leakage",
    "What to put in the contract",
    "Where it is tested",
    "Sources",
]


def heading_anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    seen: Counter[str] = Counter()
    anchors = set()
    for heading in HEADING.findall(FENCED.sub("", text)):
        words = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        anchors.add(f"{words}-{seen[words]}" if seen[words] else words)
        seen[words] += 1
    return anchors


def broken_links(page: Path, text: str) -> list[str]:
    """The relative links of a page that lead to no file or to no heading."""
    broken = []
    for link in LINK.findall(FENCED.sub("", text)):
        if ELSEWHERE.match(link):
            continue
        target, _, anchor = link.partition("#")
        file = page.parent / target
        if target and not file.exists():
            broken.append(link)
        elif anchor and (not target or file.suffix == ".md"):
            content = file.read_text(encoding="utf-8") if target else text
            if anchor not in heading_anchors(content):
                broken.append(link)
    return broken


def missing_paths(text: str) -> list[str]:
    """The paths of sources, tests and benchmarks that a text names and that do not exist.

    A path is relative to the repository or, as ``protocols/baselines.py``, to the package; paths in
    directories that neither has are examples. A star stands for any part of a name.
    """
    named = [match for match in PATH.findall(text) if _has(match.split("/")[0])]
    missing = [path for path in named if not _found(path)]
    modules = [name.replace(".", "/") for name in BENCHMARK.findall(text)]
    return missing + [
        name
        for name in modules
        if not (ROOT / f"{name}.py").is_file() and not (ROOT / name / "__main__.py").is_file()
    ]


def _has(directory: str) -> bool:
    if directory in {"..", "out"}:
        return False
    return any((base / directory).is_dir() for base in (ROOT, PACKAGE))


def _found(path: str) -> bool:
    return any(True for base in (ROOT, PACKAGE) for _ in base.glob(path))


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [page for page in THREATS if page.stem != "index"], ids=_name)
def test_threat_models_have_one_skeleton(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SKELETON
    assert re.search(r"`src/tacit/[\w/]+\.py`", text)


def test_the_index_links_to_every_threat_model() -> None:
    index = ROOT / "docs" / "threat-models" / "index.md"
    links = LINK.findall(index.read_text(encoding="utf-8"))
    assert {page.name for page in THREATS} - {index.name} <= set(links)


def test_anchors_are_those_of_github() -> None:
    text = "# 4c A `Paired` one, twice\n## Again\n## Again\n```\n# no heading\n```\n"
    assert heading_anchors(text) == {"4c-a-paired-one-twice", "again", "again-1"}


PACKAGES = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
NAMED = re.compile(r"``((?:tacit\.)?[a-z_]+(?:\.\w+)+)(?:\(\))?``")


def is_there(path: str) -> bool:
    """Whether a path below the package is a module, or what a module holds."""
    try:
        pkgutil.resolve_name(f"tacit.{path}")
    except (ImportError, AttributeError):
        return False
    return True


def wrong_references(text: str) -> list[str]:
    """The paths below one of the package's packages that lead nowhere."""
    named = [path.removeprefix("tacit.") for path in NAMED.findall(text)]
    return [path for path in named if path.split(".")[0] in PACKAGES and not is_there(path)]


def test_what_docstrings_name_is_there() -> None:
    wrong = {
        path.relative_to(PACKAGE).as_posix(): paths
        for path in sorted(PACKAGE.rglob("*.py"))
        if (paths := wrong_references(path.read_text(encoding="utf-8")))
    }
    assert wrong == {}


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


def test_there_are_excerpts() -> None:
    quoting = [
        page.stem
        for page in [*PAGES, *EXAMPLES]
        if EXCERPT.search(page.read_text(encoding="utf-8"))
    ]
    assert {"architecture", "write-a-protocol", "README"} <= set(quoting)


CLAIMS = ROOT / "docs" / "threat-models" / "claims.toml"
TEST = re.compile(r"(?<![\w/])(tests/[\w/]+\.py)::(?:\w+::)?(\w+)(?!\w|::)")
COMMAND = re.compile(r"python -m benchmarks|tacit (?:audit|reproduce) ")


def claims() -> dict[str, dict[str, list[str]]]:
    """For each page, by its name: each claim, and the tests and commands that check it."""
    return tomllib.loads(CLAIMS.read_text(encoding="utf-8"))


def unchecked(stated: dict[str, list[str]]) -> list[str]:
    """The claims that name no test and no command."""
    return [
        claim
        for claim, checks in stated.items()
        if not any(TEST.fullmatch(check) or COMMAND.match(check) for check in checks)
    ]


def missing_tests(text: str) -> list[str]:
    """The tests that a text names, as ``tests/test_x.py::test_y``, and that do not exist."""
    return [f"{file}::{name}" for file, name in TEST.findall(text) if not _is_test(file, name)]


def _is_test(file: str, name: str) -> bool:
    path = ROOT / file
    collected = path.name.startswith("test_") or path.name == "laws.py"
    if not (collected and path.is_file() and name.startswith("test_")):
        return False
    if path.name == "laws.py":
        return hasattr(laws, name)
    return re.search(rf"^ *(?:async )?def {name}\(", _text(path), re.MULTILINE) is not None


@cache
def _text(path: Path) -> str:
    """The text of a file, which many pages name."""
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", THREATS, ids=_name)
def test_every_claim_names_a_test_or_a_check(page: Path) -> None:
    stated = claims()[page.stem]
    assert stated
    assert unchecked(stated) == []


def test_the_claims_of_every_entry_are_linked_from_a_page_of_its_name() -> None:
    linking = {page.stem for page in PAGES if "[claims.toml](" in page.read_text(encoding="utf-8")}
    assert set(claims()) == linking


CHECKS: dict[str, Callable[[str], list[str]]] = {
    "links": lambda text: broken_links(ROOT / "docs" / "page.md", text),
    "paths": missing_paths,
    "docstrings": wrong_references,
    "excerpts": unlike,
    "tests": missing_tests,
}


@pytest.mark.parametrize("page", [CLAIMS, *PAGES, *EXAMPLES], ids=_name)
def test_what_a_page_names_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    wrong = [*broken_links(page, text), *unlike(text), *missing_tests(text)]
    assert wrong + (missing_paths(text) if page not in EXAMPLES else []) == []


HERE = "tests/docs/test_references.py"
QUOTED = f"""```python excerpt {HERE}
def lines_of(text: str) -> list[str]:
    ...
    return [line for line in text.splitlines() if line.strip()]
```
"""
"""An excerpt of this file."""


@pytest.mark.parametrize(
    ("check", "text", "wrong"),
    [
        ("links", "[a](privacy.md#many-evaluations) [b](#here)\n\n## Here\n", []),
        ("links", "[a](https://example.org/x.md) [a](../docs)\n```\n[a](nothing.md)\n```", []),
        ("links", "[a](nothing.md) [a](#nothing)", ["nothing.md", "#nothing"]),
        ("paths", "`tests/laws.py`, `protocols/encrypted/*.py`, `python -m benchmarks`", []),
        ("paths", "`tests/a.py`, `protocols/a_*.py`", ["tests/a.py", "protocols/a_*.py"]),
        ("paths", "`python -m benchmarks.nothing`", ["benchmarks/nothing"]),
        ("docstrings", "``metrics.trees.TreeNoise``, ``metrics.forest``", ["metrics.forest"]),
        ("docstrings", "``metrics.trees.Oak``", ["metrics.trees.Oak"]),
        ("excerpts", QUOTED, []),
        ("excerpts", QUOTED.replace("str]:", "set]:"), [f"{HERE}: def lines_of(text: str) -> lis"]),
        ("tests", f"`{HERE}::test_there_are_excerpts`, `{HERE}::test_no`", [f"{HERE}::test_no"]),
        ("tests", "tests/federations.py::test_it", ["tests/federations.py::test_it"]),
    ],
)
def test_what_is_not_there_is_found(check: str, text: str, wrong: list[str]) -> None:
    found = CHECKS[check](text)
    assert [each[: len(said)] for each, said in zip(found, wrong, strict=True)] == wrong


def test_a_claim_without_a_check_is_found() -> None:
    stated = {
        "it holds": ["tests/test_a.py::test_b"],
        "by a search": ["python -m benchmarks.secure_sum_strategies"],
        "by attacks": ["tacit audit --self-test"],
        "by a file": ["tests/test_a.py"],
        "by nothing": [],
    }
    assert unchecked(stated) == ["by a file", "by nothing"]
