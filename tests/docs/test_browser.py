"""The site's pages in a browser: nobody is shut out by a colour, a keyboard or a narrow screen."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reporting.browser import MISSING, accessibility_result, available, chromium, show

pytestmark = [pytest.mark.thorough, pytest.mark.skipif(not available(), reason=MISSING)]
ROOT = Path(__file__).parents[2]
GRAVE = {"serious", "critical"}
PAGES = (
    "index.html",
    "start/hospitals.html",
    "choosing.html",
    "protocols.html",
    "reference/cli.html",
)
WIDTHS = (400, 1280)


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


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with chromium() as driver:
        yield driver


def settled(driver: Any) -> None:
    """Wait for the page's own script, which runs after the theme's."""
    driver.execute_async_script(
        "const done = arguments[0];"
        "const look = () => document.documentElement.dataset.scrolling === 'reachable'"
        " ? done() : setTimeout(look, 50); look()"
    )


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_grave(driver: Any, site: Path, page: str, dark: bool) -> None:
    show(driver, site / page, 1280, dark)
    settled(driver)
    found = accessibility_result(driver)
    assert [one for one in found if one[1] in GRAVE] == []


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_scrolls_sideways(driver: Any, site: Path, page: str, width: int) -> None:
    show(driver, site / page, width)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
