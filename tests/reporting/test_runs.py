"""Pictures of runs say what the steps declare: who sends, who draws noise, what the server sees."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import tacit
from tacit.protocol.conversation import Protocol
from tacit.protocol.registry import protocol_kinds
from tacit.reporting.page import report
from tacit.reporting.runs import LINE_CHARACTERS, RunPicture, run_picture
from tacit.results.saved.reading import Result
from tests.reporting.examples import changed, content, result

CASES: dict[str, Protocol] = {
    name: case for kind in protocol_kinds().values() for name, case in kind.law_cases().items()
}
EVERY = "The server sees the reply of each client."


def entry(protocol: Protocol) -> dict[str, Any]:
    written: dict[str, Any] = json.loads(json.dumps({"name": protocol.name, **protocol.settings}))
    return written


def drawn(protocol: Protocol, **sizes: Any) -> RunPicture:
    picture = run_picture(entry(protocol), "mark", **sizes)
    assert picture is not None
    return picture


def texts(picture: RunPicture, *kinds: str) -> list[str]:
    return [text.replace("\u00a0", " ") for kind, text, _ in picture.parts if kind in kinds]


@pytest.mark.parametrize("name", CASES)
def test_every_protocol_is_drawn_row_below_row(name: str) -> None:
    picture = drawn(CASES[name], clients=4, records=400)
    assert picture.rounds >= 1
    below = 0
    for row in picture.rows:
        assert row.y >= below
        assert all(len(line) <= LINE_CHARACTERS for line in row.lines)
        below = row.y + row.height
    assert picture.height > below
    assert "<" not in picture.title


@pytest.mark.parametrize(
    ("protocol", "noise", "arrow", "seen"),
    [
        (tacit.FedAUC(1.0), "Each client draws staircase noise: epsilon 0.955.", "each", EVERY),
        (
            tacit.ScoreHistogram("secure-sum", 1.0, height=6),
            "Each client draws a share of discrete Laplace noise: epsilon 1.",
            "sum",
            "The server sees the sum over clients only.",
        ),
        (
            tacit.ScoreHistogram("exact-sum"),
            "No noise. No differential privacy.",
            "sum",
            "The server sees the sum over clients only.",
        ),
        (
            tacit.HierarchicalAUC(4.0),
            "Each record draws randomised response: epsilon 4.",
            "each",
            EVERY,
        ),
        (
            tacit.EncryptedAUC(most_records=1000),
            "No noise. No differential privacy.",
            "each",
            EVERY,
        ),
        (
            tacit.PairedUStatistic("gini", 4.0),
            "All clients together draw discrete Laplace noise: epsilon 4.",
            "joint",
            "The server sees the joint outcome only.",
        ),
    ],
    ids=["each", "secure-sum", "exact-sum", "local", "encrypted", "mpc"],
)
def test_the_last_round_of_each_trust(
    protocol: Protocol, noise: str, arrow: str, seen: str
) -> None:
    parts = drawn(protocol).parts
    assert [kind for kind, _, _ in parts][-5:] == ["text", parts[-4][0], arrow, "seen", "result"]
    assert texts(drawn(protocol), "noise", "exact")[-1] == noise
    assert parts[-2][1] == seen
    assert parts[-3][2] == ("line" if "epsilon" in noise else "second")


def test_public_answers_are_told_from_noisy_ones() -> None:
    picture = drawn(tacit.FedAUC(1.0), clients=5, records=1000)
    assert [style for kind, _, style in picture.parts if kind == "each"] == ["axis", "line"]
    assert texts(picture, "exact") == ["No noise. No epsilon is spent."]
    assert texts(picture, "text")[2:] == [
        "The server asks. To all: noise, sensitivity. "
        "To each its own: ranks, pivot, share, respond.",
        "Answer: Send a noisy count of positives and a noisy residual rank sum.",
    ]
    (last,) = texts(picture, "result")
    assert last == "Result: AUC. All rounds together: epsilon 1, label adjacency."


def test_the_epsilons_of_rounds_add_up_to_the_guarantee() -> None:
    noises = texts(drawn(tacit.ScoreHistogram("secure-sum", 2.0), records=1000), "noise")
    spent = [float(re.findall(r"epsilon ([\d.]+)\.", text)[0]) for text in noises]
    assert len(spent) == 3
    assert sum(spent) == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize(
    "protocol",
    [
        {"name": "of-another-package"},
        {"name": "dpauc", "epsilon": 1.0, "colour": "red"},
        {"name": "dpauc", "epsilon": 1.0, "thresholds": 2**20},
        {"name": "dpauc", "epsilon": -1.0},
    ],
    ids=["unknown", "setting", "large", "range"],
)
def test_what_cannot_be_run_here_is_not_drawn(protocol: dict[str, Any]) -> None:
    assert run_picture(protocol, "mark") is None


def test_the_page_has_the_picture_with_its_text() -> None:
    page = report([result("fedauc")])
    (figure,) = re.findall(r'<figure class="run">.*?</figure>', page, re.DOTALL)
    assert 'role="img" aria-labelledby="r0-run-title r0-run-desc"' in figure
    (description,) = re.findall(r"<desc[^>]*>(.*?)</desc>", figure)
    shown = "".join(re.findall(r"<text[^>]*>(.*?)</text>", figure))
    assert "Round 2: The server asks." in description
    for text in re.split(r"(?<=[.:]) ", description):
        assert re.sub(r"\s", "", text) in re.sub(r"\s", "", shown)
    assert "This evaluation took" not in figure


def test_a_run_of_other_rounds_says_so() -> None:
    made = content("fedauc")
    other = changed(made, traffic={**made["traffic"], "rounds": 3})
    assert "This evaluation took 3 rounds: their number" in report([Result.of(other, "fedauc")])


def test_pages_of_protocols_that_are_not_installed_have_no_picture() -> None:
    made = content("fedauc")
    other = changed(made, protocol={**made["protocol"], "name": "of-another-package"})
    assert 'class="run"' not in report([Result.of(other, "fedauc")])
