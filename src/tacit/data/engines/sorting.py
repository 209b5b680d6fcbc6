"""Records sorted by DuckDB, whatever made them: in bounded memory, with temporary files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from tacit.data.engines.duckdb_engine import DuckDBEngine
from tacit.data.engines.ranking import Ascending
from tacit.data.errors import DataError

SCHEMA = pa.schema([("score", pa.float64()), ("code", pa.int64())])


def sorted_by_score(records: Iterable[Ascending]) -> Iterator[Ascending]:
    """Scores and codes in ascending order of the scores; equal scores in any order.

    Parameters
    ----------
    records : scores and codes of records in batches, in any order.

    Raises
    ------
    DataError : where there is no space for temporary files; and what the batches raise.
    """
    errors = list[BaseException]()

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            for scores, codes in records:
                yield pa.record_batch([pa.array(scores), pa.array(codes)], SCHEMA)
        except BaseException as error:
            # the engine would make a text of it
            errors.append(error)
            raise

    engine = DuckDBEngine("the records' temporary copy")
    reader = pa.RecordBatchReader.from_batches(SCHEMA, batches())
    try:
        for batch in engine.sorted(reader, "score"):
            yield batch.column("score").to_numpy(), batch.column("code").to_numpy()
    except DataError:
        if errors:
            raise errors[0] from None
        raise
