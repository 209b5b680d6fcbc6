"""The page: self-contained, escaped, and with the result's own figures."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

import tacit
from tacit.protocol.declared import NONE_WRITTEN
from tacit.protocol.registry import protocol_kinds
from tacit.reporting.page import report, threats_of
from tacit.reporting.words import threshold_text
from tacit.results.saved.reading import Result
from tests.reporting.examples import FEDERATION, PROTOCOLS, changed, content, evaluation, result

DOCS = Path(__file__).parents[2] / "docs"

NASTY = "</script><script>alert(1)</script><!-- \"'&\u2028 <img src=x onerror=alert(2)>"
VOID = {"meta", "link", "input", "br", "img", "hr"}


class Page(HTMLParser):
    """The tags, attributes and texts of a page; refuses tags that do not close."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(markup)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self._open[-1] if self._open else "", data))

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def inside(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag]

    @property
    def text(self) -> str:
        return " ".join(text for name, text in self.texts if name not in ("script", "style"))


def nasty() -> Result:
    """A result in which every name that a user may give is an attack."""
    made = copy.deepcopy(content("dpauc"))
    made["participants"] = [{**one, "name": NASTY} for one in made["participants"]]
    made["federation"]["name"] = NASTY
    made["protocol"] |= {"name": NASTY, NASTY: NASTY, "more": [NASTY], "other": {"a": NASTY}}
    made["software"]["python"] = NASTY
    made["spent"]["adjacency"] = NASTY
    made["warnings"] = [NASTY]
    return Result.of(changed(made), NASTY)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_result_makes_a_page(name: str) -> None:
    made = result(name, exact=True)
    page = Page(report([made]))
    assert page.named("h1")
    assert ("must not leave the place" in page.text) == ("exact" in made.content)
    assert made.figure in page.text
    assert str(made.content["fingerprint"]) in page.text


def test_ids_are_unique_and_references_lead_somewhere() -> None:
    page = Page(report([result("histogram"), result("dpauc"), result("fedauc")]))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.tags:
        for key in ("aria-labelledby", "for"):
            for name in (attributes.get(key) or "").split():
                assert name in ids
    for link in page.named("a"):
        assert str(link["href"]).removeprefix("#") in ids


def test_nothing_is_loaded_from_anywhere() -> None:
    markup = report([result("histogram", exact=True), result("dpauc", exact=True)])
    page = Page(markup)
    for tag, attributes in page.tags:
        assert not {"src", "srcset", "action", "style"} & attributes.keys(), tag
        assert str(attributes.get("href", "#")).startswith(("#", "data:,"))
        assert not any(key.startswith("on") for key in attributes)
    assert "http:" not in markup
    assert "https:" not in markup
    assert "url(" not in markup
    assert "@import" not in markup


def test_the_policy_allows_this_style_and_this_script_alone() -> None:
    markup = report([result("dpauc")])
    policy = next(
        str(meta["content"])
        for meta in Page(markup).named("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    )
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives["default-src"] == "'none'"
    for kind, tag in (("style-src", "style"), ("script-src", "script")):
        (body,) = re.findall(f"<{tag}>(.*?)</{tag}>", markup, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert directives[kind] == f"'sha256-{digest}'"


def test_no_name_becomes_markup() -> None:
    plain, hostile = Page(report([result("dpauc")])), Page(report([nasty()], NASTY))
    assert len(hostile.named("script")) == len(plain.named("script")) == 2
    assert hostile.named("img") == []
    assert NASTY in hostile.text


def test_the_figures_are_those_of_the_json() -> None:
    made = content("histogram", exact=True)
    page = Page(report([Result.of(made, "one")]))
    values = [float(str(datum["value"])) for datum in page.named("data")]
    auc = made["auc"]
    assert values[0] == auc["value"]
    assert values[1:3] == auc["interval"]
    assert made["exact"] in values
    assert made["average_precision"]["value"] in values
    rates = json.loads(next(text for text in page.inside("script") if text.startswith("{")))
    shown = [threshold_text(each) for each in made["rates"]["thresholds"]]
    assert rates == {"r0": made["rates"] | {"shown": shown}}


def test_the_tables_have_every_point_of_the_curves() -> None:
    made = content("histogram")
    page = Page(report([Result.of(made, "one")]))
    rows = [
        (float(str(row["data-x"])), float(str(row["data-y"])))
        for row in page.named("tr")
        if "data-x" in row
    ]
    pairs = (
        ("roc", "false_positive_rate", "true_positive_rate"),
        ("precision_recall", "recall", "precision"),
        ("reliability", "predicted", "observed"),
    )
    expected = [
        point
        for curve, x, y in pairs
        for point in zip(made[curve][x], made[curve][y], strict=True)
        if None not in point
    ]
    assert rows == expected


def test_a_simulation_is_announced_first_and_a_release_is_not() -> None:
    assert "Simulation" in report([result("fedauc")]).split("<section")[0]
    clients = tacit.Clients.from_arrays([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1], ["a", "a", "b", "b"])
    real = tacit.evaluate(clients, tacit.FedAUC(1.0), federation="two clinics")
    page = Page(real.to_html())
    assert "Simulation" not in page.text
    assert "two clinics" in page.inside("title")
    assert {"a", "b"} <= set(page.inside("bdi"))
    assert re.search(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", page.text)


def test_no_signal_and_no_interval_are_said_in_words() -> None:
    assert "The noise left no signal" in report([result("silent")])
    assert "no interval is given" in report([result("noisy-scores")])
    errors = {"privacy_error": 1.0, "approximation_error": 0.0, "sampling_error": 0.0}
    intervals = {"interval": [0.0, 1.0], "population_interval": [0.0, 1.0]}
    wide = content("noisy-scores")["auc"] | errors | intervals
    drowned = Result.of(changed(content("fedauc"), auc=wide), "drowned")
    assert "says nothing about the classifier" in report([drowned])


def test_several_results_are_compared() -> None:
    made = [result("histogram", federation=FEDERATION), result("fedauc", federation=FEDERATION)]
    text = Page(report(made)).text
    assert "AUC compared" in text
    assert "Paired" in text
    alone = Page(report([result("histogram"), result("fedauc")])).text
    assert "Not paired" in alone
    assert "share their noise" in alone
    with pytest.raises(ValueError, match="at least one result"):
        report([])


def test_a_curve_of_many_thresholds_is_written_down_thinner_with_both_ends() -> None:
    whole, made = evaluation("many-thresholds").roc, content("many-thresholds")
    assert whole is not None
    assert whole.thresholds.size == 3000
    remaining = made["roc"]["thresholds"]
    assert len(remaining) == len(made["rates"]["f1"]) == 500
    assert (remaining[0], remaining[-1]) == (whole.thresholds[0], whole.thresholds[-1])
    assert set(remaining) <= set(whole.thresholds.tolist())


def test_every_protocol_of_the_command_has_its_threat_model() -> None:
    for name, kind in protocol_kinds().items():
        for protocol in kind.law_cases().values():
            threats = threats_of({"name": name, **protocol.settings})
            assert NONE_WRITTEN not in threats.trust
            assert not threats.page or (DOCS / threats.page).is_file()


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        (tacit.FedAUC(1.0, trust="local"), "flipped at random"),
        (tacit.DPAUC(1.0, adjacency="label"), "up to the width of a cell"),
        (tacit.ScoreHistogram("exact-sum"), "No noise is added"),
        (tacit.ScoreHistogram("local", 1.0), "every record randomises"),
        (tacit.TwoRoundAUC(1.0, labels="public"), "Exactly: every label"),
        (tacit.EncryptedAUC(adversary="malicious"), "compute wrongly"),
    ],
)
def test_a_setting_that_changes_who_sees_what_says_so(protocol: tacit.Protocol, said: str) -> None:
    threats = threats_of({"name": protocol.name, **protocol.settings})
    assert said in f"{threats.trust} {threats.server} {threats.left_open}"


def luminance(colour: str) -> float:
    full = colour if len(colour) == 7 else "#" + "".join(2 * digit for digit in colour[1:])
    parts = [int(full[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2.2."""
    low, high = sorted(luminance(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", range(3), ids=["light", "dark", "print"])
def test_text_and_lines_stand_out(theme: int) -> None:
    style = files("tacit.reporting.templates").joinpath("page.css").read_text()
    block = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[theme]
    colours: dict[str, str] = dict(re.findall(r"--([\w-]+): (#\w+)", block))
    texts = [("ink", "page"), ("soft", "page"), ("ink", "card"), ("soft", "card")]
    texts += [("accent", "card"), ("warn-ink", "warn"), ("on-loud", "loud")]
    for ink, ground in texts:
        assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    for line in ("accent", "mark", "soft"):
        assert contrast(colours[line], colours["card"]) >= 3


def test_thresholds_and_their_rates_are_in_the_unit_of_the_scores() -> None:
    """No row says that a threshold is not known, and none calls log-odds of 0 a score of 0.5."""
    log_odds, real = (report([result(name)]) for name in ("log-odds", "real"))
    assert content("log-odds")["rates"]["thresholds"][0] is None
    for page in (log_odds, real):
        assert "no threshold (below every score)" in page
        assert "at 0.5" not in page
    assert "Precision at 0<" in log_odds
    assert "Precision at" not in real
