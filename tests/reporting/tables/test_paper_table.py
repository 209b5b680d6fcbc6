"""Tables for papers, and the page that reviewers read first."""

from __future__ import annotations

import csv
import io

import pytest

from tacit.reporting.page import report
from tacit.reporting.tables import COLUMNS, as_csv, as_markdown
from tacit.results.saved.reading import Result
from tests.reporting.examples import changed, content, result


def test_values_have_a_line_for_every_figure() -> None:
    shown = result("exact-histogram")
    rows = list(csv.reader(io.StringIO(as_csv([shown]))))
    assert tuple(rows[0]) == COLUMNS
    assert [row[1] for row in rows[1:]] == ["AUC", *shown.content["measures"]]
    assert all(len(row) == len(COLUMNS) for row in rows)


def test_a_name_is_no_formula_and_no_link_and_ends_no_cell() -> None:
    named = Result.of(content("exact-histogram"), "=1+1|[x](y)\n")
    assert "'=1+1|[x](y)" in as_csv([named])
    lines = as_markdown([named]).splitlines()
    assert lines[2].startswith("| =1+1\\|\\[x](y) | AUC | ")


@pytest.mark.parametrize("name", ["=1", " =1", "+1", "-1", "@a", "\t=1", "\n=1", "\uff1d1"])
def test_no_kind_of_formula_passes(name: str) -> None:
    rows = list(csv.reader(io.StringIO(as_csv([Result.of(content("exact-histogram"), name)]))))
    assert {row[0] for row in rows[1:]} == {f"'{name}"}


def test_a_figure_that_exists_has_no_reason() -> None:
    rows = list(csv.reader(io.StringIO(as_csv([result("exact-histogram")]))))
    assert {row[-1] for row in rows[1:] if row[2]} == {""}


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
    assert len(page) < 5 * 2**20


def test_a_result_without_measures_has_no_reviewers_page() -> None:
    page = report([result("fedauc")])
    assert "For a reviewer" not in page
    assert "TRIPOD" not in page


def test_real_numbers_have_only_their_distribution() -> None:
    page = report([result("real")])
    assert "r0-distribution-title" in page
    assert "r0-smooth-title" not in page
