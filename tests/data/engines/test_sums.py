"""Sums over records in an engine: the influences of the second round, as in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.arrays import Floats
from tacit.counts.influence import Influences
from tacit.data.engines.counts_file import CountedRecords
from tacit.data.engines.opening import from_database, from_files
from tacit.data.engines.pieces import ScorePieces, counting, summing
from tacit.data.engines.relations import DIALECTS, DUCKDB, NUMBER, Relation
from tacit.data.engines.stored import StoredClients
from tacit.data.units import LinearMap, conversion
from tacit.metrics.cells.score_distribution import ScoreDistribution
from tacit.metrics.cells.score_scale import SCALES, CentredScale, ScoreScale, named_scale
from tacit.protocol import Adjacency, Clients, DataError
from tests.data.engines.conftest import Server

CONNECTION = duckdb.connect()
GOLDEN = Path(__file__).parent / "golden"


def small_pieces(open_ends: bool) -> ScorePieces:
    coefficients = np.arange(16.0).reshape(2, 4, 2) / 8
    ends = ((0.25, 0.125), (0.75, 0.5)) if open_ends else (None, None)
    return ScorePieces(np.array([0.5]), np.array([0.0, 0.5]), coefficients, -9, 9, ends)


@pytest.mark.parametrize("name", ["duckdb", "postgres"])
def test_the_text_for_every_engine_is_held_by_a_file(name: str) -> None:
    dialect = DIALECTS[name]
    relation = Relation(dialect, dialect.table("clinic.scored"), "score", "label", "si te")
    texts = [summing(relation, small_pieces(each), (0.0, 1.0), 0)[0] for each in (False, True)]
    expected = (GOLDEN / f"{name}-sum.sql").read_text(encoding="utf-8")
    assert ";\n\n".join(texts) + ";\n" == expected


def influences(seed: int, cells: int) -> Influences:
    random = np.random.default_rng(seed)
    edges = np.arange(1, cells) / cells
    functions = [ScoreDistribution(edges, np.sort(random.random(cells - 1))) for _ in range(2)]
    return Influences.of(functions[0], functions[1], np.array([300.0, 1000.0]))


def zoomed_scale() -> ScoreScale:
    """Cells of single doubles, and cells that crowd in few bins."""
    numbers = np.array([0.25, 0.5])
    single = np.union1d(numbers, np.nextafter(numbers, 1.0))
    spike = 0.5 + np.arange(1, 28) * 1e-7
    return CentredScale(np.concatenate((single, spike)), 0.0, 1.0)


def some_records(kind: str, records: int = 3000) -> pa.Table:
    random = np.random.default_rng(5)
    scores = random.normal(0.0, 4.0, records)
    if kind not in ("log-odds", "real"):
        scores = 1 / (1 + np.exp(-scores))
    if kind == "zoomed":
        scores[: records // 2] = 0.5 + random.integers(0, 40, records // 2) * 1e-7
        scores[:500] = np.repeat([0.25, 0.5], 250)
    if kind == "real":
        scores[:4] = [-1e300, 1e300, 0.0, -1e-300]
    labels = random.integers(0, 2, records)
    sites = random.choice(["b", "a", "c"], records)
    return pa.table({"score": scores, "label": labels, "site": sites})


def check_sums(stored: Clients, memory: Clients, scale: ScoreScale, cells: int) -> None:
    """A sum in an engine is that in memory but for 1e-12 of what is added up."""
    wanted = influences(7, cells)
    engine, records = (wanted.totals(each.rescored(scale)) for each in (stored, memory))
    assert stored.rescored(scale).summed(wanted._functions()) is not None
    reach = int(wanted.sensitivity(Adjacency.RECORD))
    assert np.all(np.abs(engine - records) <= 1e-12 * reach * memory.sizes)


@pytest.mark.parametrize(
    ("kind", "cells"),
    [*((kind, cells) for kind in (*SCALES, "zoomed") for cells in (2, 64)), ("zoomed", 2048)],
)
def test_sums_are_those_of_records_in_memory(kind: str, cells: int, tmp_path: Path) -> None:
    records = some_records(kind)
    pq.write_table(records, tmp_path / "a.parquet")
    stored = from_files([str(tmp_path / "*.parquet")], client="site")
    scale = zoomed_scale() if kind == "zoomed" else named_scale(kind)
    check_sums(stored, Clients.from_frame(records, client="site"), scale, cells)


MAPS: dict[str, tuple[Callable[[Floats], Floats], ...]] = {
    "percent": (conversion("percent", "probability"),),
    "clipped": (LinearMap(low=10.0, high=60.0), LinearMap(10.0, 50.0)),
}


@pytest.mark.parametrize("name", MAPS)
def test_sums_of_mapped_scores_are_those_in_memory(name: str, tmp_path: Path) -> None:
    records = some_records("probability")
    records = records.set_column(0, "score", pa.array(records["score"].to_numpy() * 100))
    pq.write_table(records, tmp_path / "a.parquet")
    stored: Clients = from_files([str(tmp_path)], client="site")
    memory = Clients.from_frame(records, client="site")
    for each in MAPS[name]:
        stored, memory = stored.rescored(each), memory.rescored(each)
    check_sums(stored, memory, named_scale("even"), 64)


def test_the_image_of_no_number_is_none() -> None:
    relation = Relation(DUCKDB, "wrong", "s", None, maps=(LinearMap(0.0, 2.0, 0.0, 1.0),))
    CONNECTION.register("wrong", pa.table({"s": [np.nan, np.inf, None, 3.0, -1.0, 1.0]}))
    rows = CONNECTION.execute(f"SELECT {relation.score_value} FROM wrong").fetchall()
    assert [row[0] for row in rows] == [None, None, None, 1.0, 0.0, 0.5]


@pytest.mark.parametrize("linear", [LinearMap(0.0, 100.0, 0.0, 1.0), LinearMap(-3.7, 11.3)])
def test_an_engine_maps_scores_to_the_last_bit(linear: LinearMap) -> None:
    scores = np.random.default_rng(2).normal(30.0, 50.0, 5000)
    CONNECTION.register("listed", pa.table({"s": scores}))
    value = Relation(DUCKDB, "listed", "s", None, maps=(linear,)).score_value
    made = CONNECTION.execute(f"SELECT {value} AS x FROM listed").fetchnumpy()["x"]
    assert np.array_equal(made, linear(scores))


def test_a_real_postgres_gives_the_same_sums(postgres: Server) -> None:
    records = some_records("probability", 300)
    postgres.fill("scored", records)
    stored = from_database(postgres.address, "scored", client="site")
    memory = Clients.from_frame(records, client="site")
    for scale in (named_scale("probability"), named_scale("real")):
        check_sums(stored, memory, scale, 16)
    half = LinearMap(0.25, 0.5, 0.0, 1.0)
    check_sums(stored.rescored(half), memory.rescored(half), named_scale("even"), 16)


def test_a_file_that_changed_is_declined_and_no_table_stays(tmp_path: Path) -> None:
    pq.write_table(some_records("even"), tmp_path / "a.parquet")
    stored = from_files([str(tmp_path)], client="site").rescored(named_scale("even"))
    wanted = influences(1, 8)
    for _ in range(2):
        wanted.totals(stored)
    pq.write_table(some_records("even", 2999), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="changed"):
        wanted.totals(stored)


def test_sums_of_other_records_of_a_table_are_declined(tmp_path: Path) -> None:
    pq.write_table(some_records("even"), tmp_path / "a.parquet")
    stored = from_files([str(tmp_path)], client="site").rescored(named_scale("even"))
    relation = stored.stored._relation  # type: ignore[attr-defined]
    for other in ("FROM {0} UNION ALL FROM {0}", "SELECT * REPLACE (0.5 AS score) FROM {0}"):
        table = f"({other.format(relation.table)}) AS other"
        stored.stored._relation = replace(relation, table=table)  # type: ignore[attr-defined]
        with pytest.raises(DataError, match="changed between two steps of a run"):
            influences(1, 8).totals(stored)


def test_influences_are_clipped_to_their_ends(tmp_path: Path) -> None:
    """Whatever a cubic says, a record adds no more than the sensitivity assumes."""
    pq.write_table(pa.table({"score": [0.0, 1.0], "label": [0, 1]}), tmp_path / "a.parquet")
    stored = from_files([str(tmp_path)])
    steep = np.array([[[0.0], [0.0], [0.0], [-1e12]], [[0.0], [0.0], [0.0], [1e12]]])
    pieces = ScorePieces(np.zeros(0), np.zeros(1), steep, -7, 9)
    assert np.array_equal(stored.stored.sums(pieces), [2])  # type: ignore[arg-type]


class Noted(CountedRecords):
    """Counted records that note the pieces of which they are asked a sum."""

    def sums(self, pieces: ScorePieces, maps: Sequence[LinearMap] = ()) -> None:
        self.asked = pieces


@pytest.mark.parametrize("kind", [*SCALES, "zoomed"])
def test_a_records_number_does_not_depend_on_other_records(kind: str) -> None:
    """Else one record that is the least would change how all others are rounded."""
    scale = zoomed_scale() if kind == "zoomed" else named_scale(kind)
    pieces = []
    for ends in ((0.1, 0.9), (0.12, 0.4)):
        stored = Noted(np.zeros(0), np.array([[[5]], [[9]]]), ("a",), ends)
        assert StoredClients(stored).rescored(scale).summed(influences(3, 16)._functions()) is None
        pieces.append(stored.asked)
    for name in ("edges", "origins", "coefficients"):
        assert np.array_equal(*(getattr(each, name) for each in pieces))


EDGES = st.lists(
    st.one_of(
        st.floats(-10, 10, allow_nan=False),
        st.sampled_from([-np.inf, np.inf, 0.0, 1.0, np.nextafter(1.0, 2.0), 1.0 + 1e-9]),
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=40)
@given(EDGES, st.lists(st.floats(-10, 10, allow_nan=False), min_size=2, max_size=30))
def test_bins_find_the_cells_of_a_search(edges: list[float], scores: list[float]) -> None:
    ascending = np.sort(np.array(edges))
    inside = ascending[np.abs(ascending) <= 10]
    tried = np.unique([*scores, *inside])
    ends = float(tried.min()), float(tried.max())
    # one row a score, by the statement that counts
    CONNECTION.register("given", pa.table({"s": tried, "row": np.arange(tried.size)}))
    table = "(SELECT s, row, 1 AS label FROM given)"
    relation = Relation(DUCKDB, table, "s", "label", "row", NUMBER)
    statement, tables = counting(relation, ascending, ends, 0)
    if tables:
        CONNECTION.register("tacit_bins", pa.table(tables[0].columns))
    else:
        assert np.ptp(tried) * 1e300 < 1e5  # too narrow for bins
    rows = CONNECTION.execute(statement).fetchall()
    cells = [cell for _, cell in sorted((int(row[0]), row[2]) for row in rows)]
    assert cells == np.searchsorted(ascending, tried, side="right").tolist()
