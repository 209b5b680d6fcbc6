"""Small tables of numbers beside a statement, or written into it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from tacit.data.engines.sql.dialects import Dialect


@dataclass(frozen=True, eq=False)
class ConstantTable:
    """Columns of whole numbers and doubles under a name.

    Parameters
    ----------
    name : of the table.
    columns : arrays of one length, by name.
    """

    name: str
    columns: dict[str, NDArray[Any]]

    def source(self, dialect: Dialect) -> str:
        """The table as a statement reads it: its name, where the engine is given it, or its rows.

        Examples
        --------
        >>> import numpy as np
        >>> from tacit.data.engines.sql.dialects import DUCKDB, POSTGRES
        >>> table = ConstantTable("t", {"i": np.array([0]), "x": np.array([0.5])})
        >>> table.source(DUCKDB)
        't'
        >>> print(table.source(POSTGRES))
        (SELECT i, CAST(x AS double precision) AS x FROM (VALUES
          (0, 0.5e0)
        ) AS listed(i, x)) AS t
        """
        if dialect.given_tables:
            return self.name
        written = [_written(column, dialect) for column in self.columns.values()]
        rows = ",\n  ".join(f"({', '.join(row)})" for row in zip(*written, strict=True))
        if dialect.typed_rows is not None:
            typed = ", ".join(
                f"{name} {dialect.typed_rows if _whole(column) else dialect.number}"
                for name, column in self.columns.items()
            )
            return f"UNNEST(ARRAY<STRUCT<{typed}>>[\n  {rows}\n]) AS {self.name}"
        cast = ", ".join(
            name if _whole(column) else f"CAST({name} AS {dialect.number}) AS {name}"
            for name, column in self.columns.items()
        )
        listed = ", ".join(self.columns)
        return f"(SELECT {cast} FROM (VALUES\n  {rows}\n) AS listed({listed})) AS {self.name}"


def _whole(column: NDArray[Any]) -> bool:
    return column.dtype.kind == "i"


def _written(column: NDArray[Any], dialect: Dialect) -> list[str]:
    """The numbers of a column as they are written."""
    if _whole(column):
        return [str(number) for number in column.tolist()]
    return [dialect.literal(number) for number in column.tolist()]
