"""Classes, private groups and sites on a page and in tables: all of them, and nothing else."""

from __future__ import annotations

import csv
import io
import json
from functools import cache
from typing import Any

import pytest

import tacit
from tacit.protocols.multiclass.protocol import PUBLISHED
from tacit.reporting.page import report
from tacit.reporting.tables import as_csv, as_markdown
from tacit.results.saved.reading import Result
from tests.classified import CLASSES, GROUPS, class_clients, group_clients
from tests.federations import binormal_clients


def made(name: str, evaluation: tacit.Evaluation) -> Result:
    content: dict[str, Any] = json.loads(json.dumps(evaluation.to_dict()))
    return Result.of(content, name)


@cache
def of_classes() -> Result:
    protocol = tacit.MulticlassHistogram(epsilon=4.0, classes=CLASSES)
    return made("classes", tacit.evaluate(class_clients(4000), protocol, seed=1))


@cache
def of_groups() -> Result:
    protocol = tacit.GroupedHistogram(epsilon=4.0, group_names=GROUPS, thresholds=(0.4,))
    return made("groups", tacit.evaluate(group_clients(4000), protocol, seed=1))


@cache
def of_sites() -> Result:
    clients = binormal_clients(3000, 3000, 4)
    return made("sites", tacit.evaluate(clients, tacit.DPAUC(4.0, 100), seed=1))


def test_classes_stand_before_the_cost_with_their_averages() -> None:
    page = report([of_classes()])
    texts = (
        "Macro AUC</h2>",
        "Classes</h2>",
        "top-1 accuracy",
        "Records, as estimated",
        "Who took",
    )
    places = [page.index(text) for text in texts]
    assert places == sorted(places)
    assert "For a reviewer" not in page


@pytest.mark.parametrize("make", [of_classes, of_groups, of_sites])
def test_the_checklist_names_only_sections_of_the_page(make: Any) -> None:
    page = report([make()])
    checklist = page[page.index("Items of the checklist") :].split("</table>")[0]
    for heading in ("For a reviewer", "Choose a threshold", "Classes", "Private groups", "Sites"):
        named = f"under {heading}" in checklist
        assert named == (f">{heading}</h2>" in page), heading


def test_rates_of_groups_state_their_threshold() -> None:
    page = report([of_groups()])
    threshold = of_groups().content["groups"][0]["measures"]["true positive rate"]["threshold"]
    assert f"<caption>true positive rate at {threshold:g}</caption>" in page


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (of_classes, ["top-1 accuracy", *(f"AUC, class {name}" for name in CLASSES)]),
        (of_groups, [*(f"AUC, group {name}" for name in GROUPS), "AUC, y less x"]),
        (of_sites, ["AUC, site 1", "calibration slope, mean of sites", "AUC, a new site"]),
    ],
)
def test_tables_have_the_figures_of_all_parts(make: Any, names: list[str]) -> None:
    result = make()
    rows = list(csv.DictReader(io.StringIO(as_csv([result]))))
    shown = [row["figure"] for row in rows]
    assert len(shown) == len(set(shown))
    assert set(names) <= set(shown)
    assert all(row["estimate"] or row["absent"] for row in rows)
    assert as_markdown([result]).count("\n") == len(rows) + 2


def test_a_table_has_the_numbers_of_the_file() -> None:
    rows = {row["figure"]: row for row in csv.DictReader(io.StringIO(as_csv([of_groups()])))}
    entry = of_groups().content["differences"][0]
    row = rows[f"{entry['measure']}, {entry['first']} less {entry['second']}"]
    assert float(row["estimate"]) == entry["value"]
    assert [float(row["low"]), float(row["high"])] == entry["interval"]


def test_clients_of_two_rounds_see_what_the_first_one_published() -> None:
    assert PUBLISHED in report([of_classes()])
    protocol = tacit.MulticlassHistogram("each", 4.0, classes=CLASSES)
    alone = made("one", tacit.evaluate(class_clients(4000), protocol, seed=1))
    assert PUBLISHED not in report([alone])


def test_commands_are_set_as_code() -> None:
    page = report([of_classes()])
    assert "<code>tacit evaluate</code>" in page
    assert "`" not in page.split("<script")[0]
