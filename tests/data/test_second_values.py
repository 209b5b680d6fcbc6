"""Second values of records, read from files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.data.errors import DataError
from tacit.data.form import DROPPED
from tacit.data.reading import read
from tests.data.test_reading import FORMATS, GOOD, refused, save


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working directory, so that messages name files alone."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", FORMATS)
def test_a_second_column_is_read_with_the_records(name: str) -> None:
    save(name, {"site": ["b", "a", "b"], "z": [7, 8, 9], "score": [0.1, 0.2, 0.3]})
    clients = read(name, label=None, client="site", second="z")
    np.testing.assert_array_equal(clients.scores, [0.2, 0.1, 0.3])
    np.testing.assert_array_equal(np.asarray(clients.second), [8.0, 7.0, 9.0])
    assert not clients.labels.any()
    assert read(name, label=None).second is None
    np.testing.assert_array_equal(
        np.asarray(read(name, label=None, second="z").second), [7.0, 8.0, 9.0]
    )


def test_second_values_of_several_files_are_joined() -> None:
    save("a.csv", {"score": [0.1], "label": [0], "z": [1.5]})
    save("b.parquet", {"score": [0.2], "label": [1], "z": [2.5]})
    np.testing.assert_array_equal(
        np.asarray(read(["b.parquet", "a.csv"], second="z").second), [2.5, 1.5]
    )


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("x", "second values must be numbers, got 'x' in a.csv, row 2 (line 3)"),
        ("inf", "second values must be finite, got inf in a.csv, row 2 (line 3)"),
        ("", "column 'z' has no value in a.csv, row 2 (line 3); " + DROPPED),
    ],
)
def test_an_unfit_second_value_is_refused_with_its_place(cell: Any, message: str) -> None:
    Path("a.csv").write_text(f"score,label,z\n0.1,0,1\n0.2,1,{cell}\n")
    with refused(message):
        read("a.csv", second="z")


def test_a_missing_second_column_is_refused() -> None:
    Path("a.csv").write_text(GOOD)
    with refused("a.csv has no column 'z', its columns are 'score', 'label'"):
        read("a.csv", second="z")


def test_a_second_column_of_words_is_refused() -> None:
    save("a.parquet", {"score": [0.1], "label": [0], "z": ["high"]})
    with pytest.raises(DataError, match=r"second values must be numbers, got 'high' in a\.parquet"):
        read("a.parquet", second="z")
