"""Pictures of runs say what the steps declare: who sends, who draws noise, what the server sees."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import tacit
from tacit.protocol import Adjacency, Cost, Protocol
from tacit.protocol.registry import protocol_kinds
from tacit.reporting.page import report
from tacit.reporting.runs import LINE_CHARACTERS, RunPicture, run_picture
from tacit.results.saved.reading import Result
from tests import known
from tests.reporting.examples import changed, content, result

CASES: dict[str, Protocol] = {
    name: case for kind in protocol_kinds().values() for name, case in kind.law_cases().items()
}
EVERY = "The server sees the reply of each client."
SUM = "The server sees the sum over clients only."
NOTHING = "No noise. No differential privacy."


def entry(protocol: Protocol) -> dict[str, Any]:
    return json.loads(json.dumps({"name": protocol.name, **protocol.settings}))


def drawn(protocol: Protocol, **sizes: Any) -> RunPicture:
    return known(run_picture(entry(protocol), "mark", **sizes))


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
    for step in CASES[name].steps:
        assert not re.search(r"\w_\w|`", step.summary)


@pytest.mark.parametrize(
    ("protocol", "noise", "arrow", "seen"),
    [
        (tacit.FedAUC(1.0), "Each client draws staircase noise: epsilon 0.955.", "each", EVERY),
        (
            tacit.ScoreHistogram("secure-sum", 1.0, height=6),
            *("Each client draws a share of discrete Laplace noise: epsilon 1.", "sum", SUM),
        ),
        (tacit.ScoreHistogram("exact-sum"), NOTHING, "sum", SUM),
        (
            tacit.HierarchicalAUC(4.0),
            *("Each record draws randomised response: epsilon 4.", "each", EVERY),
        ),
        (tacit.EncryptedAUC(most_records=1000), NOTHING, "each", EVERY),
        (
            tacit.PairedUStatistic("gini", 4.0),
            *("All clients together draw discrete Laplace noise: epsilon 4.", "joint"),
            "The server sees the joint outcome only.",
        ),
    ],
    ids=["each", "secure-sum", "exact-sum", "local", "encrypted", "mpc"],
)
def test_the_last_round_of_a_trust(protocol: Protocol, noise: str, arrow: str, seen: str) -> None:
    parts = drawn(protocol).parts
    assert [kind for kind, _, _ in parts][-5:] == ["text", parts[-4][0], arrow, "seen", "result"]
    assert texts(drawn(protocol), "noise", "exact")[-1] == noise
    assert parts[-2][1] == seen
    assert parts[-3][2] == ("line" if "epsilon" in noise else "second")


@pytest.mark.parametrize("clients", [2, 10])
@pytest.mark.parametrize(("records", "bound"), [(1000.0, 1200), (50000.0, 100000), (1e6, 2**20)])
@pytest.mark.parametrize("name", ["encrypted-auc", "encrypted-class-auc"])
def test_encrypted_runs_of_any_size_and_number_of_classes_are_drawn(
    name: str, records: float, bound: int, clients: int
) -> None:
    classes = {} if name == "encrypted-auc" else {"classes": ["bird", "cat", "dog"]}
    settings = {"name": name, "most_records": bound, **classes}
    picture = known(run_picture(settings, "mark", clients=clients, records=records))
    assert picture.rounds == 4


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


@pytest.mark.parametrize("name", ["fedauc", "gini"])
def test_a_run_is_drawn_once_for_a_result(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the number of records is not known."""
    made = report([result(name)])
    monkeypatch.setattr("tacit.reporting.runs.small_run", None)
    assert report([result(name)]) == made
    assert 'class="run"' in made


def test_the_epsilon_of_a_record_is_drawn_where_a_persons_is_spent() -> None:
    made = content("dpauc")
    spent = Cost(1.0, adjacency=Adjacency.PERSON).to_dict()
    person = {"records": 4, "epsilon_of_a_record": 0.25}
    page = report([Result.of(changed(made, spent=spent, person=person), "dpauc")])
    (description,) = re.findall(r'<desc id="r0-run-desc">(.*?)</desc>', page)
    described = description.replace("\u00a0", " ")
    assert "Each client draws discrete Laplace noise: epsilon 0.25." in described
    assert "All rounds together: epsilon 0.25, record adjacency. A person has" in described
    assert "up to 4: epsilon 1." in described
    odd = changed(made, spent=spent, person=person, protocol={**made["protocol"], "epsilon": "x"})
    assert run_picture(odd["protocol"], "mark", person=person) is None


def test_the_round_of_incomplete_records_is_said_to_be_one_more() -> None:
    made = content("dpauc")
    spent = Cost(0.25, adjacency=Adjacency.RECORD).to_dict()
    missing = {"private": True, "records": 31.0, "privacy_error": 5.7, "interval": [20, 42]}
    traffic = {**made["traffic"], "rounds": made["traffic"]["rounds"] + 1}
    counted = changed(made, missing={**missing, "spent": spent}, traffic=traffic)
    page = report([Result.of(counted, "dpauc")])
    assert "One more round counts incomplete records: epsilon 0.25, record adjacency." in page
    assert "This evaluation took" not in page
    assert "The fraction of epsilon of a round" not in page


def test_fractions_of_epsilon_may_be_those_of_other_records() -> None:
    said = "The fraction of epsilon of a round may depend on the records."
    looking = {"name": "score-histogram", "trust": "secure-sum", "epsilon": 1.0}
    assert said in report([Result.of(changed(content("histogram"), protocol=looking), "looking")])
    assert said not in report([result("histogram")])
    assert said not in report([result("exact-histogram")])
    assert not drawn(tacit.HierarchicalAUC(4.0)).divided
    made = content("fedauc")
    other = changed(made, traffic={**made["traffic"], "rounds": 3})
    assert "This evaluation took 3 rounds: their number" in report([Result.of(other, "fedauc")])
