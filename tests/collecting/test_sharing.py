"""Threads share the files of batches: each file is counted once, errors are raised, none stays."""

import threading
from pathlib import Path

import numpy as np
import pytest

from tacit.collecting.campaign import stage_query
from tacit.collecting.folder import StoredReports, parts_of_batch, write_batch
from tacit.privacy.noise import SimulatedNoise
from tests.collecting.support import all_payloads, records_of, terms_of

SIZES = (0, 1, 40, 3, 7, 1, 90, 12)


def test_every_file_is_counted_once(tmp_path: Path) -> None:
    """Whether fewer or more than there are processors, with reports in logs or without."""
    terms = terms_of()
    (payloads,) = all_payloads(terms, records_of(sum(SIZES)), SimulatedNoise(0))
    query, serials = stage_query(terms, []), np.zeros(0, dtype=np.uint64)
    opened, *sealed = np.split(payloads, np.cumsum(SIZES[1:])[:-1])
    for number, part in enumerate(sealed):
        write_batch(tmp_path, tmp_path, number, [part], serials)
    files = tuple(sorted(tmp_path.glob("batch-*-0.parquet")))
    assert len(files) == len(sealed)
    for count in range(len(files) + 1):
        read = [part for file in files[:count] for part in parts_of_batch(file)]
        for there in (opened, opened[:0]):
            stored = StoredReports(files[:count], there)
            expected = terms.reports.counts(query, np.concatenate([there, *read]))
            np.testing.assert_array_equal(stored.counts(terms.reports, query), expected)
            assert len(stored) == len(there) + sum(map(len, read))


def test_an_error_of_reading_is_raised_and_no_thread_stays(tmp_path: Path) -> None:
    damaged = tmp_path / "batch-1-0.parquet"
    damaged.write_bytes(b"PAR1 no batch PAR1")
    terms = terms_of()
    stored = StoredReports((damaged,), np.zeros((0, 1), dtype=np.uint8))
    with pytest.raises(ValueError, match="Parquet"):
        stored.counts(terms.reports, stage_query(terms, []))
    assert not [each for each in threading.enumerate() if each.name.startswith("tacit-counting")]
