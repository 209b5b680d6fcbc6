"""A headless Chromium for tests, which asks the network for nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
MISSING = (
    f"needs {CHROMIUM} and {DRIVER}; install them with: apt-get install chromium chromium-driver"
)
SECONDS = 600.0
"""After which a script that hangs is ended; axe takes half a minute on a busy machine."""
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def available() -> bool:
    """Whether there is a browser with its driver."""
    return CHROMIUM.exists() and DRIVER.exists()


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    """A driver of a fresh browser, whose path is given: Selenium looks for none."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ChromeOptions()
        options.binary_location = str(CHROMIUM)
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        chrome: Any = Chrome(options=options, service=Service(str(DRIVER)))
        chrome.command_executor.client_config.timeout = SECONDS
        chrome.set_script_timeout(SECONDS)
        chrome.set_page_load_timeout(SECONDS)
        try:
            yield chrome
        finally:
            chrome.quit()


def show(driver: Any, page: Path, width: int = 1200, dark: bool = False) -> None:
    """Open a page on a screen of this width, in the light or the dark theme."""
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    driver.get(page.as_uri())


def accessibility_result(driver: Any, *only: str) -> list[tuple[str, str, list[str]]]:
    """What axe-core finds, by these rules or all: the rule, how grave it is, and the places."""
    spec = find_spec("selenium_axe_python")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("axe-core comes with: pip install selenium-axe-python")
    source = Path(spec.submodule_search_locations[0]) / "axe-core" / "axe.min.js"
    driver.execute_script(source.read_text(encoding="utf-8"))
    result = driver.execute_async_script(
        "axe.run(arguments[0]).then(arguments[1])", {"runOnly": list(only)} if only else {}
    )
    return [
        (one["id"], one["impact"], [node["html"] for node in one["nodes"]])
        for one in result["violations"]
    ]
