"""A table of a database as a party reads it."""

from __future__ import annotations

from pathlib import Path

import duckdb

from tacit.data.columns import Columns
from tacit.data.engines.opening import DatabaseTable


def read_in_order(folder: Path, order: str) -> list[tuple[float, int]]:
    file = folder / f"{len(order)}.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(
            "CREATE TABLE scored AS SELECT * FROM (VALUES (0.5, 1), (0.25, 0), (0.5, 0), (0.0, 1)) "
            f"AS made(score, label) ORDER BY {order}"
        )
    records = DatabaseTable(f"duckdb://{file}", "scored").read(Columns(("score",), "label"), "a")
    assert records.names == ("a",)
    return list(zip(records.scores.tolist(), records.labels.tolist(), strict=True))


def test_records_have_the_same_places_however_a_table_orders_them(tmp_path: Path) -> None:
    expected = [(0.0, 1), (0.25, 0), (0.5, 0), (0.5, 1)]
    assert read_in_order(tmp_path, "score, label") == expected
    assert read_in_order(tmp_path, "label DESC, score DESC") == expected
