"""Statements: each text is held by a file, and trees and arrays find the cells that NumPy finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tacit.data.engines.pieces import LARGEST, least_scores
from tacit.data.engines.relations import DIALECTS, DUCKDB, SPARK, Dialect, Relation
from tacit.data.engines.statements import counting_statement, searched
from tacit.data.errors import DataError
from tacit.metrics.cells.score_scale import SCALES, named_scale

GOLDEN = Path(__file__).parent / "golden"
CONNECTION = duckdb.connect()
EDGES = np.array([0.001, 0.25, 0.5])
NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


@pytest.mark.parametrize("name", DIALECTS)
def test_the_text_of_every_dialect_is_held_by_a_file(name: str) -> None:
    dialect = DIALECTS[name]
    relation = Relation(dialect, dialect.table("clinic.scored"), "score", "label", "si te")
    made = counting_statement(relation, EDGES, 0.0, 1.0, "4-0123abcd") + ";\n"
    assert made == (GOLDEN / f"{name}.sql").read_text(encoding="utf-8")


@pytest.mark.parametrize("dialect", [DUCKDB, replace(DUCKDB, array="[{numbers}][1 + {place}]")])
@given(
    st.lists(
        st.one_of(st.sampled_from([-1e308, 1e308, 5e-324, -np.inf, np.inf]), NUMBERS), min_size=1
    ),
    st.lists(NUMBERS, min_size=1, max_size=50),
)
@example([edge / 256 for edge in range(1, 256)], [0.0])
@example([edge / 100 for edge in range(1, 100)], [0.0])
@example([edge / 49 for edge in range(1, 49)], [0.0])
def test_trees_and_arrays_find_the_cells_of_a_search(
    dialect: Dialect, edges: list[float], scores: list[float]
) -> None:
    ascending = np.sort(np.array(edges))
    ends = ascending[np.isfinite(ascending)]
    tried = np.array([*scores, *ends, *np.nextafter(ends, -np.inf), *np.nextafter(ends, np.inf)])
    tried = tried[np.isfinite(tried)]
    listed = ", ".join(f"({DUCKDB.literal(score)})" for score in tried)
    source, cell = searched(f"(VALUES {listed}) AS t(score)", ascending, dialect, "1")
    found = CONNECTION.execute(f"SELECT {cell} FROM {source}").fetchall()
    assert [row[0] for row in found] == np.searchsorted(ascending, tried, side="right").tolist()


@pytest.mark.parametrize(("cells", "compared"), [(256, 0), (100, 1)])
def test_edges_at_the_ends_of_equal_bins_are_not_compared(cells: int, compared: int) -> None:
    source, _ = searched("scored", np.arange(1, cells) / cells, SPARK)
    assert source.count("ARRAY(") == compared


@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize("cells", [2, 64, 2048])
def test_edges_of_scores_are_those_of_positions_to_the_last_bit(name: str, cells: int) -> None:
    scale, levels = named_scale(name), np.arange(1, cells) / cells
    ends = (0.0, 1.0) if name in ("probability", "even") else (-LARGEST, LARGEST)
    edges = least_scores(scale.positions, levels, *ends)
    assert np.all(scale.positions(edges) >= levels)
    below = np.nextafter(edges, -np.inf)
    assert np.all(scale.positions(below[edges > ends[0]]) < levels[edges > ends[0]])


def test_least_scores_that_all_or_no_score_reaches() -> None:
    found = least_scores(lambda score: score, np.array([-5.0, 0.0, 1.0, 1.5]), 0.0, 1.0)
    assert found.tolist() == [0.0, 0.0, 1.0, np.inf]


@pytest.mark.parametrize(
    ("kind", "values", "classes"),
    [
        ("DECIMAL(10, 2)", ["0", "1", "10", "0.5"], [0, 1, -1, -1]),
        ("DOUBLE", ["-0.0", "1.0", "1.5"], [0, 1, -1]),
        ("BOOLEAN", ["false", "true"], [0, 1]),
        ("VARCHAR", ["'0.0E0'", "' True'", "'1.0E0'", "'1.0E1'", "'1.05'"], [0, 1, 1, -1, -1]),
    ],
)
def test_labels_of_any_type_are_found(kind: str, values: list[str], classes: list[int]) -> None:
    """A statement that is printed for a table of unknown types compares labels as texts."""
    listed = ", ".join(f"({n}, CAST({value} AS {kind}))" for n, value in enumerate(values))
    relation = Relation(DUCKDB, f"(VALUES {listed}) AS t(n, label)", "n", "label")
    statement = f"SELECT {relation.class_value} FROM {relation.table} ORDER BY n"
    assert [row[0] for row in CONNECTION.execute(statement).fetchall()] == classes


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_a_name_that_cannot_be_quoted_is_refused(name: str) -> None:
    with pytest.raises(DataError, match="a name in SQL must be a text"):
        DUCKDB.quoted(name)
