"""The library's own tests, its bundle in Node against the estimator, and the page in Chromium."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tacit.collecting.campaign import Terms, evaluation_of
from tacit.collecting.folder import Folder
from tacit.metrics.ranking import auc
from tacit.privacy.mechanisms.response import flip_probability
from tests.collecting import node
from tests.collecting.support import LOCAL_TREE, new_folder, records_of, stored_payloads, terms_of
from tests.reporting import browser

needs_node = pytest.mark.skipif(not node.available(), reason=node.MISSING)
needs_chromium = pytest.mark.skipif(not browser.available(), reason=browser.MISSING)

BATCH, HERE = 1000, "http://127.0.0.1"


driver = browser.driver
"""A fixture; each page has an address of its own, and so a memory of its own."""


@needs_node
def test_the_bundle_is_small_enough() -> None:
    assert int(node.built().split()[1]) < 15_000


@needs_node
@pytest.mark.parametrize("reports", [50_000, pytest.param(10**6, marks=pytest.mark.thorough)])
def test_the_library_passes_its_own_tests(reports: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statistical ones state their false alarm: below 1e-5 together."""
    node.built()
    monkeypatch.setenv("TACIT_REPORTS", str(reports))
    tests = [str(path) for path in sorted((node.LIBRARY / "build" / "test").glob("*.test.js"))]
    ended = subprocess.run(
        ["node", "--test", *tests], cwd=node.LIBRARY, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout[-4000:]


@needs_node
@pytest.mark.parametrize("count", [4000, pytest.param(10**5, marks=pytest.mark.thorough)])
def test_reports_of_the_bundle_give_the_estimate(tmp_path: Path, count: int) -> None:
    """Within five errors, false alarm 6e-7 each; a noise 30 % off is 30 away, and must be 10."""
    node.built()
    folder = new_folder(tmp_path, terms_of(devices=count))
    clients = records_of(count, seed=3)
    sent = node.sent_by_node(folder, clients)
    with (
        node.running(folder) as port,
        httpx.Client(base_url=f"{HERE}:{port}", timeout=60) as client,
    ):
        size = len(sent) // count
        for start in range(0, len(sent), size * BATCH):
            answer = client.post("reports", content=sent[start : start + size * BATCH])
            assert answer.json()["accepted"] == min(BATCH, (len(sent) - start) // size)
    payloads = stored_payloads(folder)
    estimate = evaluation_of(folder.campaign, folder.stages(), size).estimate
    error = np.hypot(estimate.privacy_error, estimate.approximation_error)
    assert abs(estimate.value - auc(clients.scores, clients.labels)) < 5 * error
    assert abs(node.set_bits_score(payloads[0], flip_probability(2.0))) < 5
    for epsilon in (2.0 * 0.7, 2.0 / 0.7):
        assert abs(node.set_bits_score(payloads[0], flip_probability(epsilon))) > 10


def opened(driver: Any, address: str, token: bytes) -> None:
    """The page as a device that never answered opens it, with its invitation."""
    driver.get(f"{address}messages.json")
    driver.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "const gone = indexedDB.deleteDatabase('tacit-device');"
        "gone.onsuccess = done; gone.onerror = done;"
    )
    driver.get(f"{address}#{token.hex()}")
    waiting(driver, "return !document.getElementById('ham').disabled")


def waiting(driver: Any, condition: str) -> None:
    """Wait until a script gives something true."""
    from selenium.webdriver.support.wait import WebDriverWait

    WebDriverWait(driver, 60, poll_frequency=0.02).until(lambda _: driver.execute_script(condition))


def answered(driver: Any, messages: list[dict[str, Any]]) -> tuple[float, int]:
    """Say what the message is, and send the report; its score and label."""
    from selenium.webdriver.common.by import By

    shown = driver.find_element(By.ID, "message")
    label = int(messages[int(shown.get_attribute("data-index"))]["spam"])
    score = float(driver.find_element(By.ID, "score").text)
    driver.find_element(By.ID, "spam" if label else "ham").click()
    waiting(driver, "return !document.getElementById('report').hidden")
    driver.find_element(By.ID, "send").click()
    waiting(driver, "return document.getElementById('status').textContent !== ''")
    assert driver.find_element(By.ID, "status").text == "Your report is stored. Thank you."
    return score, label


def phone_folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path / "campaign")
    folder.signed(Terms.from_toml(node.PHONE / "campaign.toml"))
    return folder


def few_devices(tmp_path: Path) -> Folder:
    """A campaign whose estimate has a signal with 200 reports."""
    name, settings = LOCAL_TREE
    return new_folder(tmp_path, terms_of((name, {**settings, "epsilon": 4.0})))


@needs_node
@needs_chromium
@pytest.mark.parametrize("loads", [3, pytest.param(200, marks=pytest.mark.thorough)])
def test_the_page_sends_reports(driver: Any, tmp_path: Path, loads: int) -> None:
    """Of 200 reports the estimate is within five errors, false alarm 6e-7."""
    node.built()
    folder = few_devices(tmp_path) if loads == 200 else phone_folder(tmp_path)
    messages = json.loads((node.PHONE / "page" / "messages.json").read_text(encoding="utf-8"))
    tokens = list(folder.tokens.tokens(folder.reserve_tokens(loads), loads))
    records = []
    with node.running(folder, node.PHONE / "page") as port:
        for token in tokens:
            opened(driver, f"{HERE}:{port}/", token)
            records.append(answered(driver, messages))
        assert not [
            entry for entry in driver.get_log("browser") if "favicon" not in entry["message"]
        ]
    payloads = stored_payloads(folder)
    assert payloads[0].shape[0] == loads
    if loads == 200:
        estimate = evaluation_of(folder.campaign, folder.stages(), 39).estimate
        exact = auc(*(np.array(column) for column in zip(*records, strict=True)))
        error = np.hypot(estimate.privacy_error, estimate.approximation_error)
        assert abs(estimate.value - exact) < 5 * error


@needs_node
@needs_chromium
def test_the_page_answers_once_and_is_accessible(driver: Any, tmp_path: Path) -> None:
    node.built()
    folder = phone_folder(tmp_path)
    messages = json.loads((node.PHONE / "page" / "messages.json").read_text(encoding="utf-8"))
    first, second = folder.tokens.tokens(folder.reserve_tokens(2), 2)
    with node.running(folder, node.PHONE / "page") as port:
        opened(driver, f"{HERE}:{port}/", first)
        answered(driver, messages)
        assert not browser.accessibility_result(driver)
        # the same device with another invitation: it has answered, and no button works
        driver.get("about:blank")
        driver.get(f"{HERE}:{port}/#{second.hex()}")
        waiting(driver, "return document.getElementById('status').textContent !== ''")
        told = driver.execute_script("return document.getElementById('status').textContent")
        assert told.startswith("This browser has answered")
        assert driver.execute_script("return document.getElementById('ham').disabled")
    assert stored_payloads(folder)[0].shape[0] == 1


AT_ONCE = """
const done = arguments[arguments.length - 1];
Promise.all([import('./tacit-device.js'), fetch('campaign')]).then(async ([library, response]) => {
  const text = await response.text();
  const key = Uint8Array.from(atob(JSON.parse(text).key), (letter) => letter.charCodeAt(0));
  const campaign = await library.openCampaign(text, library.toHex(key));
  const ask = (label) => new library.Device(new library.BrowserStore(), { epsilon: 4, days: 90 })
    .answer(campaign, [{ score: 0.3, label }], new Uint8Array(16).fill(label));
  const answers = await Promise.all(Array.from({ length: 20 }, (_, tab) => ask(tab % 2)));
  const reports = new Set(answers.map((answer) => library.toHex(answer.report)));
  done([reports.size, answers.filter((answer) => !answer.again).length]);
}).catch((error) => done(String(error)));
"""
"""The reports, and the first answers, of twenty askers with a connection to the memory each."""


@needs_node
@needs_chromium
def test_tabs_that_ask_at_once_get_one_report(driver: Any, tmp_path: Path) -> None:
    """Also with other records and tokens: a second report would cost epsilon again."""
    node.built()
    folder = phone_folder(tmp_path)
    (token,) = folder.tokens.tokens(folder.reserve_tokens(1), 1)
    with node.running(folder, node.PHONE / "page") as port:
        opened(driver, f"{HERE}:{port}/", token)
        assert driver.execute_async_script(AT_ONCE) == [1, 1]
