"""The page in a browser: it opens quietly, moves, reads and prints."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tacit.reporting.page import report
from tacit.reporting.words import threshold_text
from tests.reporting.browser import MISSING, accessibility_result, available, driver, show
from tests.reporting.examples import content, result
from tests.reporting.hostile import document
from tests.reporting.test_page import nasty

__all__ = ["driver"]  # a fixture of every test here

pytestmark = pytest.mark.skipif(not available(), reason=MISSING)
RATES = ("precision", "recall", "f1", "specificity", "accuracy")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {
        "histogram": report([result("histogram", exact=True)]),
        "dpauc": report([result("dpauc")]),
        "everything": report([document("everything")]),
        "several": report([document(name) for name in SEVERAL]),
        "nasty": report([nasty()]),
    }
    for name, text in made.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in made}


MOST_PAGES = 7
"""Of one printed result: more means pages that are half empty."""
NAMES = ("histogram", "dpauc", "everything", "several", "nasty")
SEVERAL = ("local", "curve", "staircase", "models", "public groups")


def text_of(driver: Any, selector: str) -> str:
    return str(
        driver.execute_script("return document.querySelector(arguments[0]).textContent", selector)
    )


def shown(value: float | None) -> str:
    return "not known" if value is None else f"{value:.4f}"


@pytest.mark.parametrize("name", NAMES)
def test_it_opens_without_a_word_on_the_console_and_loads_nothing(
    driver: Any, pages: dict[str, Path], name: str
) -> None:
    driver.get_log("browser")
    show(driver, pages[name])
    assert name != "nasty" or "</script><script>alert(1)" in text_of(driver, "h1")
    assert driver.execute_script("return document.images.length") == 0
    assert driver.get_log("browser") == []
    assert driver.execute_script("return document.documentElement.dataset.ready") == "yes"
    loaded = driver.execute_script(
        "return performance.getEntriesByType('resource').map((entry) => entry.name)"
    )
    assert [entry for entry in loaded if not entry.startswith("data:")] == []


@pytest.mark.parametrize(("name", "screen"), [("several", "phone"), ("everything", "dark")])
def test_axe_finds_nothing(driver: Any, pages: dict[str, Path], name: str, screen: str) -> None:
    """These pages have every element: of single results, of comparisons and of groups."""
    show(driver, pages[name], 390 if screen == "phone" else 1200, dark=screen == "dark")
    assert accessibility_result(driver) == []


def test_axe_would_find_something(driver: Any, pages: dict[str, Path]) -> None:
    show(driver, pages["dpauc"])
    driver.execute_script(
        "document.querySelector('label').remove();document.querySelector('h1').style.color = '#eee'"
    )
    assert {rule for rule, _, _ in accessibility_result(driver)} == {"color-contrast", "label"}


@pytest.mark.parametrize("name", ["histogram", "dpauc"])
def test_the_slider_moves_the_rates_of_json(driver: Any, pages: dict[str, Path], name: str) -> None:
    rates = content(name, exact=name == "histogram")["rates"]
    show(driver, pages[name])
    last = len(rates["thresholds"]) - 1
    for index in (0, last // 3, last):
        driver.execute_script(
            "const slider = document.querySelector('input[type=range]');"
            "slider.value = arguments[0]; slider.dispatchEvent(new Event('input'))",
            index,
        )
        assert text_of(driver, "output") == threshold_text(rates["thresholds"][index])
        for rate in RATES:
            assert text_of(driver, f"[data-rate={rate}]") == shown(rates[rate][index])
            low, high = (rates[f"{rate}_{end}"][index] for end in ("low", "high"))
            expected = "not known" if None in (low, high) else f"{shown(low)} to {shown(high)}"
            assert text_of(driver, f"[data-interval={rate}]") == expected


def test_the_slider_moves_by_keyboard_and_says_so(driver: Any, pages: dict[str, Path]) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    rates = content("histogram", exact=True)["rates"]
    show(driver, pages["histogram"])
    for _ in range(20):
        driver.switch_to.active_element.send_keys(Keys.TAB)
        if driver.switch_to.active_element.get_attribute("type") == "range":
            break
    slider = driver.switch_to.active_element
    before = int(slider.get_attribute("value"))
    outline = driver.execute_script("return getComputedStyle(arguments[0]).outlineStyle", slider)
    assert outline == "solid"
    slider.send_keys(Keys.ARROW_LEFT)
    slider.send_keys(Keys.ARROW_LEFT)
    index = before - 2
    assert int(slider.get_attribute("value")) == index
    assert text_of(driver, "[data-rate=recall]") == shown(rates["recall"][index])
    spoken = slider.get_attribute("aria-valuetext")
    assert threshold_text(rates["thresholds"][index]) in spoken
    assert f"precision {shown(rates['precision'][index])}" in spoken
    chosen = driver.find_element(By.CSS_SELECTOR, "#r0-roc .chosen")
    position = 54 + 300 * (1 - rates["specificity"][index])
    assert float(chosen.get_attribute("cx")) == pytest.approx(position)


def test_pointing_at_a_curve_reads_it(driver: Any, pages: dict[str, Path]) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    roc = content("histogram", exact=True)["roc"]
    show(driver, pages["histogram"])
    picture = driver.find_element(By.CSS_SELECTOR, "#r0-roc")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", picture)
    ActionChains(driver).move_to_element(picture).perform()
    said = text_of(driver, ".readout")
    points = list(zip(roc["false_positive_rate"], roc["true_positive_rate"], strict=True))
    assert any(
        f"False-positive rate {across:.4f}, True-positive rate {up:.4f}" in said
        for across, up in points
    )
    assert "(band " in said
    assert "Threshold" in said


@pytest.mark.parametrize("name", ["several", "nasty"])
def test_a_phone_needs_no_scrolling_sideways(
    driver: Any, pages: dict[str, Path], name: str
) -> None:
    show(driver, pages[name], width=390)
    width = driver.execute_script("return document.documentElement.scrollWidth")
    assert width <= 390


def test_it_prints(driver: Any, pages: dict[str, Path]) -> None:
    show(driver, pages["histogram"], dark=True)
    script = "return document.querySelector('.slider').parentNode.innerText"
    assert "mouse" in driver.execute_script(script)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert "mouse" not in driver.execute_script(script)
    ground = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"
    assert not driver.execute_script(
        "return document.querySelector('input[type=range]').checkVisibility()"
    )
    printed = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {})["data"])
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert printed.startswith(b"%PDF")
    assert len(printed) > 20_000
    assert 1 <= printed.count(b"/Type /Page\n") <= MOST_PAGES


def test_it_says_the_same_without_its_script(driver: Any, pages: dict[str, Path]) -> None:
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    show(driver, pages["histogram"])
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    made = content("histogram", exact=True)
    figure = text_of(driver, ".figure data")
    assert figure == f"{made['auc']['value']:.{len(figure) - 2}f}"
    best = max(value for value in made["rates"]["f1"] if value is not None)
    assert text_of(driver, "[data-rate=f1]") == shown(best)
