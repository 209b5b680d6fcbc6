"""What documents name exists: linked files and headings, source and test paths, benchmarks."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "tacit"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
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


@pytest.mark.parametrize("page", [*PAGES, ROOT / "SECURITY.md"], ids=_name)
def test_relative_links_lead_to_files_and_headings(page: Path) -> None:
    assert broken_links(page, page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_named_sources_tests_and_benchmarks_exist(page: Path) -> None:
    assert missing_paths(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", [page for page in THREATS if page.stem != "index"], ids=_name)
def test_threat_models_have_one_skeleton(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SKELETON
    assert re.search(r"`src/tacit/[\w/]+\.py`", text)


def test_the_index_links_to_every_threat_model() -> None:
    index = ROOT / "docs" / "threat-models" / "index.md"
    links = LINK.findall(index.read_text(encoding="utf-8"))
    assert {page.name for page in THREATS} - {index.name} <= set(links)


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("[a](privacy.md)", []),
        ("[a](privacy.md#many-evaluations) [b](#here)\n\n## Here\n", []),
        ("[a](https://example.org/nothing.md)", []),
        ("```\n[a](nothing.md)\n```", []),
        ("[a](nothing.md)", ["nothing.md"]),
        ("[a](privacy.md#nothing)", ["privacy.md#nothing"]),
        ("[a](#nothing)", ["#nothing"]),
        ("[a](../docs)", []),
    ],
)
def test_a_broken_link_is_found(text: str, broken: list[str]) -> None:
    assert broken_links(ROOT / "docs" / "page.md", text) == broken


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("`tests/laws.py` and `protocols/baselines.py`", []),
        ("`protocols/encrypted/*.py`, `python -m benchmarks.encrypted`", []),
        ("`tests/nothing.py`", ["tests/nothing.py"]),
        ("see src/tacit/protocols/nothing.py.", ["src/tacit/protocols/nothing.py"]),
        ("`protocols/nothing_*.py`", ["protocols/nothing_*.py"]),
        ("`python -m benchmarks.nothing`", ["benchmarks/nothing"]),
        ("`python -m benchmarks`, `--json out/t7.json`, `my/own.py`", []),
    ],
)
def test_a_missing_path_is_found(text: str, missing: list[str]) -> None:
    assert missing_paths(text) == missing


def test_anchors_are_those_of_github() -> None:
    text = "# 4c A `Paired` one, twice\n## Again\n## Again\n```\n# no heading\n```\n"
    assert heading_anchors(text) == {"4c-a-paired-one-twice", "again", "again-1"}
