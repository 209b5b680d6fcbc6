"""The site's pages in a browser: no colour, keyboard or narrow screen shuts anyone out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.reporting.browser import MISSING, accessibility_result, available, driver, show

__all__ = ["driver"]  # a fixture of every test here

pytestmark = [pytest.mark.thorough, pytest.mark.skipif(not available(), reason=MISSING)]
ROOT = Path(__file__).parents[2]
WIDTHS = (400, 1280)
LEAST_PAGES = 60


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        check=True,
    )
    return folder


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def addresses(site: Path) -> Iterator[list[str]]:
    """Every page on a server: the search and the page for what is not found need one."""
    handler = partial(Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        pages = sorted(page.relative_to(site).as_posix() for page in site.rglob("*.html"))
        assert len(pages) >= LEAST_PAGES
        yield [f"http://127.0.0.1:{server.server_port}/{page}" for page in pages]
        server.shutdown()


def settled(driver: Any) -> None:
    """Wait for the page's own script, which runs after the theme's; a report has none."""
    driver.execute_async_script(
        "const done = arguments[0];"
        "const ready = () => document.documentElement.dataset.scrolling === 'reachable';"
        "const wait = () => (ready() ? done() : setTimeout(wait, 50));"
        "document.querySelector('.md-main') ? wait() : done()"
    )


@pytest.mark.parametrize(
    ("dark", "rules"), [(False, ()), (True, ("color-contrast",))], ids=["light", "dark"]
)
def test_axe_finds_nothing(
    driver: Any, addresses: list[str], site: Path, dark: bool, rules: tuple[str, ...]
) -> None:
    """The dark scheme has other colours and nothing else."""
    show(driver, site / "index.html", 1280, dark)
    found = {}
    for address in addresses:
        driver.get(address)
        settled(driver)
        found[address.split("/", 3)[3]] = accessibility_result(driver, *rules)
    assert {page: violations for page, violations in found.items() if violations} == {}


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_is_too_wide(driver: Any, addresses: list[str], site: Path, width: int) -> None:
    show(driver, site / "index.html", width)
    wide = []
    for address in addresses:
        driver.get(address)
        if driver.execute_script("return document.documentElement.scrollWidth") > width:
            wide.append(address)
    assert wide == []
