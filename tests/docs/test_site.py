"""The site of the documentation builds without a warning, is complete, and works offline.

The site lists every package of the layers, with the first line of its docstring.

The report that the first page shows is what the package writes today.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import tacit
from tests.docs import generator

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""Tags and the attribute that says what a browser fetches for them without being asked."""
ELSEWHERE = re.compile(r"(?:https?:)?//")
STYLED = re.compile(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//")
IMPORTED = re.compile(r"\bimport\s*\(?\s*['\"]https?:")
DIRECTIVE = re.compile(r"^::: tacit\.(\w+)$", re.MULTILINE)


class Fetched(HTMLParser):
    """Collects from a page what comes from other hosts."""

    def __init__(self) -> None:
        super().__init__()
        self.elsewhere: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get(LOADED.get(tag, ""))
        if address is not None and ELSEWHERE.match(address):
            self.elsewhere.append(address)

    def handle_data(self, data: str) -> None:
        if self.cdata_elem is not None:
            self.elsewhere += STYLED.findall(data) + IMPORTED.findall(data)


def fetched_from_elsewhere(html: str) -> list[str]:
    """Scripts, styles, fonts and pictures that a page takes from other hosts."""
    parser = Fetched()
    parser.feed(html)
    return parser.elsewhere


@pytest.mark.thorough  # `make check` builds it strictly too
def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        assert fetched_from_elsewhere(page.read_text(encoding="utf-8")) == [], page
    for style in (tmp_path / "site").rglob("*.css"):
        assert STYLED.findall(style.read_text(encoding="utf-8")) == [], style
    named = (tmp_path / "site" / "reference" / "data.html").read_text(encoding="utf-8")
    assert 'id="tacit.Clients.from_frame"' in named


@pytest.mark.parametrize(
    ("html", "elsewhere"),
    [
        ('<script src="https://cdn.example.org/a.js"></script>', True),
        ('<link rel="stylesheet" href="//fonts.example.org/a.css">', True),
        ('<img src="http://example.org/a.png">', True),
        ("<style>@import 'https://example.org/a.css';</style>", True),
        ("<style>a { background: url(https://example.org/a.png) }</style>", True),
        ('<script type="module">import("https://example.org/a.mjs")</script>', True),
        ('<a href="https://x.org">there</a><script src="a.js">"https://x.org"</script>', False),
    ],
)
def test_what_is_fetched_from_elsewhere_is_noticed(html: str, elsewhere: bool) -> None:
    """Links that are only followed may lead anywhere."""
    assert bool(fetched_from_elsewhere(html)) == elsewhere


def test_every_public_name_is_on_exactly_one_reference_page() -> None:
    pages = [page.read_text(encoding="utf-8") for page in sorted(REFERENCE.glob("*.md"))]
    results = [name for page in pages for name in DIRECTIVE.findall(page)]
    assert sorted(results) == sorted(tacit.__all__)


def test_the_page_of_the_command_line_has_every_command_and_the_settings_once() -> None:
    page = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    shown = generator("cli_page").on_page_markdown(page)
    for name in ("evaluate", "plan", "ledger limit", "collect serve"):
        assert f"\n## tacit {name}\n" in shown
    assert shown.count("- `--most-records INTEGER`: encrypted-auc") == 1
    assert shown.count("(#settings-of-the-protocols)") > 2


def test_the_page_of_privacy_draws_a_run_of_each_kind() -> None:
    page = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
    shown = generator("runs").on_page_content(page)
    marks = re.findall(r' id="(run-\d+)-title"', shown)
    assert shown.count('<figure class="run">') == len(set(marks)) == 6
    drawn = ("staircase", "a share of", "the sum over", "record draws", "masked", "together draw")
    assert all(said in shown for said in drawn)
    assert "<!-- run" not in shown


def test_a_run_that_cannot_be_drawn_ends_the_build() -> None:
    with pytest.raises(ValueError, match="no run can be drawn"):
        generator("runs").on_page_content('<!-- run: score-histogram {"height": 99} -->')


@pytest.mark.parametrize("name", ["docstrings", "hooks"])
def test_the_examples_of_the_generators_run(name: str) -> None:
    result = doctest.testmod(generator(name))
    assert (result.failed, result.attempted > 0) == (0, True)


@pytest.mark.parametrize(
    ("link", "rewritten"),
    [
        ("[a](privacy.md#b)", "[a](../privacy.md#b)"),
        ("[`b.json`](../src/tacit/b.json)", "`src/tacit/b.json`"),
        ("[a](../CONTRIBUTING.md#checks)", "[a](../contributing.md#checks)"),
        ("[a](#here)", "[a](#here)"),
        ("```\n[a](../LICENSE)\n```", "```\n[a](../LICENSE)\n```"),
    ],
)
def test_links_hold_in_the_site(link: str, rewritten: str) -> None:
    """As from a page of ``docs`` that is shown one folder further down."""
    assert generator("hooks").with_site_links(link, "docs", "start", None) == rewritten


def test_links_lead_to_the_repository_where_there_is_one() -> None:
    reported = generator("hooks").with_site_links("[a](../LICENSE)", "docs", "", "https://x.org/t/")
    assert reported == "[a](https://x.org/t/blob/main/LICENSE)"


SOURCES = ROOT / "src" / "tacit"


def rows() -> list[list[str]]:
    """The cells of the table of packages, without its head."""
    lines = generator("hooks").packages_table().splitlines()[2:]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]


def test_every_package_has_its_line_from_the_highest_layer_down() -> None:
    packages = {
        path.parent.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("__init__.py")
    }
    numbers, listed, contents = zip(*rows(), strict=True)
    assert packages - {"."} <= set(listed)
    assert all(content.endswith(".") for content in contents)
    assert list(numbers) == sorted(numbers, key=int, reverse=True)
    assert (listed[0], listed[-1]) == ("cli", "wire")
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert generator("hooks").PACKAGES in page


SHOWN = Path(__file__).parents[2] / "docs" / "assets" / "example-report.html"

VOLATILE = re.compile(
    r'<tr><th scope="row">(numpy|python|tacit|Fingerprint.*?)</th>.*?</tr>|sha256-\S+'
)
"""Versions, and digests of a result that has them."""


def lines(page: str) -> list[str]:
    """A page without what differs between machines; numbers to six digits."""
    text = VOLATILE.sub("", page)
    return re.sub(r"\d+\.\d{6,}(e-\d+)?", lambda found: f"{float(found[0]):.5g}", text).split("\n")


def test_the_example_is_today_s_report() -> None:
    scores, labels = tacit.binormal_scores(3000, 7000, 0.8, seed=0)
    clients = tacit.Clients.split(scores, labels, clients=10, seed=0)
    result = tacit.evaluate(clients, tacit.ScoreHistogram(epsilon=1.0), seed=1)
    assert lines(result.to_html()) == lines(SHOWN.read_text(encoding="utf-8"))
