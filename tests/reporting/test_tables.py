"""Tables for papers, the page that reviewers read first, and the parts: all of them, no more."""

from __future__ import annotations

import csv
import io

import pytest

import tacit
from tacit.protocols.multiclass.protocol import PUBLISHED
from tacit.reporting.page import report
from tacit.reporting.tables import COLUMNS, as_csv, as_markdown
from tacit.results.saved.reading import Result
from tests.classified import CLASSES, GROUPS, class_clients
from tests.reporting.examples import changed, content, result
from tests.reporting.hostile import document


def test_values_have_a_line_for_every_figure() -> None:
    shown = result("exact-histogram")
    rows = list(csv.reader(io.StringIO(as_csv([shown]))))
    assert tuple(rows[0]) == COLUMNS
    assert [row[1] for row in rows[1:]] == ["AUC", *shown.content["measures"]]
    assert all(len(row) == len(COLUMNS) for row in rows)
    assert {row[-1] for row in rows[1:] if row[2]} == {""}


@pytest.mark.parametrize("name", ["=1", " =1", "+1", "-1", "@a", "\t=1", "\n=1", "\uff1d1"])
def test_no_kind_of_formula_passes(name: str) -> None:
    rows = list(csv.reader(io.StringIO(as_csv([Result.of(content("exact-histogram"), name)]))))
    assert {row[0] for row in rows[1:]} == {f"'{name}"}
    named = Result.of(content("exact-histogram"), "=1+1|[x](y)\n")
    assert as_markdown([named]).splitlines()[2].startswith("| =1+1\\|\\[x](y) | AUC | ")


def test_a_model_that_only_harms_has_a_page() -> None:
    """Where treating nobody is best at every threshold, all net benefits are below 0."""
    made = content("exact-histogram")
    curve = {
        name: values if name == "thresholds" else [-1.0] * len(values)
        for name, values in made["decision_curve"].items()
    }
    page = report([Result.of(changed(made, decision_curve=curve), "harmful")])
    assert 'id="r0-decision-title"' in page


def test_an_absent_figure_says_why() -> None:
    made = content("exact-histogram")
    measures = {**made["measures"], "brier": {**made["measures"]["brier"], "value": None}}
    measures["brier"]["reason"] = "no <b> reason"
    odd = Result.of(changed(made, measures=measures), "odd")
    assert r"none: no \<b> reason" in as_markdown([odd])
    assert "no &lt;b&gt; reason" in report([odd])


def test_a_page_begins_with_what_reviewers_ask_for() -> None:
    page = report([result("exact-histogram")])
    headings = ["AUC</h2>", "For a reviewer", "Who took part", "TRIPOD+AI", "Curves</h2>"]
    places = [page.index(text) for text in headings]
    assert places == sorted(places)
    for graph in ("smooth", "decision", "distribution"):
        assert f'id="r0-{graph}-title"' in page
    for said in ('With trust = "each" in the plan', "justify the sample size in the paper"):
        assert said in page
    assert len(page) < 5 * 2**20
    without = report([result("fedauc")])
    assert "For a reviewer" not in without
    assert "TRIPOD" not in without


def test_real_numbers_have_only_their_distribution() -> None:
    page = report([result("real")])
    assert "r0-distribution-title" in page
    assert "r0-smooth-title" not in page


def test_classes_stand_before_the_cost_with_their_averages() -> None:
    page = report([document("classes")])
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


@pytest.mark.parametrize("name", ["classes", "private groups", "sites"])
def test_the_checklist_names_only_sections_of_the_page(name: str) -> None:
    page = report([document(name)])
    checklist = page[page.index("Items of the checklist") :].split("</table>")[0]
    for heading in ("For a reviewer", "Choose a threshold", "Classes", "Private groups", "Sites"):
        named = f"under {heading}" in checklist
        assert named == (f">{heading}</h2>" in page), heading


def test_rates_of_groups_state_their_threshold() -> None:
    groups = document("private groups")
    page, measures = report([groups]), groups.content["groups"][0]["measures"]
    threshold = measures["true positive rate"]["threshold"]
    assert f"<caption>true positive rate at {threshold:g}</caption>" in page


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("classes", ["top-1 accuracy", *(f"AUC, class {name}" for name in CLASSES)]),
        ("private groups", [*(f"AUC, group {name}" for name in GROUPS), "AUC, y less x"]),
        ("sites", ["AUC, site 1", "calibration slope, mean of sites", "AUC, a new site"]),
    ],
)
def test_tables_have_the_figures_of_all_parts(name: str, names: list[str]) -> None:
    result = document(name)
    rows = list(csv.DictReader(io.StringIO(as_csv([result]))))
    shown = [row["figure"] for row in rows]
    assert len(shown) == len(set(shown))
    assert set(names) <= set(shown)
    assert all(row["estimate"] or row["absent"] for row in rows)
    assert as_markdown([result]).count("\n") == len(rows) + 2


def test_a_table_has_the_numbers_of_the_file() -> None:
    groups = document("private groups")
    rows = {row["figure"]: row for row in csv.DictReader(io.StringIO(as_csv([groups])))}
    entry = groups.content["differences"][0]
    row = rows[f"{entry['measure']}, {entry['first']} less {entry['second']}"]
    assert float(row["estimate"]) == entry["value"]
    assert [float(row["low"]), float(row["high"])] == entry["interval"]


def test_clients_of_two_rounds_see_what_the_first_one_published() -> None:
    page = report([document("classes")])
    assert PUBLISHED in page
    assert "<code>tacit evaluate</code>" in page
    assert "`" not in page.split("<script")[0]
    protocol = tacit.MulticlassHistogram("each", 4.0, classes=CLASSES)
    alone = tacit.evaluate(class_clients(400), protocol, seed=1)
    assert PUBLISHED not in report([Result.of(alone.to_dict(), "one")])
