"""Records in every accepted form are the same clients; what is likely a mistake is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

import tacit
from tacit.api import clients_of

SCORES, LABELS = [0.25, 0.5, 0.75, 1.0], [0, 1, 0, 1]
SITES = ["north", "north", "south", "south"]
COLUMNS: dict[str, Any] = {"score": SCORES, "label": LABELS, "site": SITES}
WHOLE = tacit.Clients.from_arrays(SCORES, LABELS)
BY_SITE = tacit.Clients.from_arrays(SCORES, LABELS, SITES)


def same(one: tacit.Clients, other: tacit.Clients) -> bool:
    return (
        np.array_equal(one.scores, other.scores)
        and np.array_equal(one.labels, other.labels)
        and np.array_equal(one.offsets, other.offsets)
        and one.names == other.names
    )


@pytest.mark.parametrize(
    "records",
    [
        WHOLE,
        pd.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS),
        pa.table(COLUMNS),
        (SCORES, LABELS),
        (np.array(SCORES), np.array(LABELS, dtype=bool)),
        {"score": SCORES, "label": LABELS},
        (pd.Series(SCORES), pd.Series(LABELS)),
        (pl.Series(SCORES), pl.Series(LABELS)),
        {"score": pd.Series(SCORES), "label": pd.Series(LABELS)},
        {"score": pl.Series(SCORES), "label": pl.Series(LABELS)},
    ],
)
def test_every_form_of_one_client_is_the_same(records: Any) -> None:
    assert same(clients_of(records), WHOLE)


@pytest.mark.parametrize("frame", [pd.DataFrame(COLUMNS), COLUMNS])
def test_a_column_names_the_clients(frame: Any) -> None:
    assert same(clients_of(frame, client="site"), BY_SITE)


def test_other_forms_of_several_clients() -> None:
    halves = [pd.DataFrame(COLUMNS)[:2], pd.DataFrame(COLUMNS)[2:]]
    assert same(clients_of((SCORES, LABELS, SITES)), BY_SITE)
    assert same(clients_of(tuple(pd.DataFrame(COLUMNS)[name] for name in COLUMNS)), BY_SITE)
    by_name = dict(zip(("north", "south"), halves, strict=True))
    assert same(clients_of(by_name), BY_SITE)
    assert clients_of(halves).names == ("0", "1")


def test_files_are_clients(tmp_path: Path) -> None:
    for name, part in (("north", slice(0, 2)), ("south", slice(2, 4))):
        table = pa.table({"score": SCORES[part], "label": LABELS[part]})
        pa_csv.write_csv(table, tmp_path / f"{name}.csv")
    files = sorted(tmp_path.iterdir())
    assert clients_of(files).sizes.tolist() == [2, 2]
    assert clients_of(str(files[0])).records == 2


@pytest.mark.parametrize(
    "records", [None, 3, [SCORES, LABELS], np.array(SCORES), [], (SCORES,), b"no-such-file.csv"]
)
def test_what_is_no_record_is_refused_with_what_is(records: Any) -> None:
    with pytest.raises(TypeError, match="records must be Clients, a data frame"):
        clients_of(records)


def test_labels_before_scores_are_noticed() -> None:
    with pytest.raises(tacit.DataError, match=r"the order is \(scores, labels\)"):
        clients_of((LABELS, SCORES))


def test_scores_of_0_and_1_are_scores() -> None:
    assert clients_of(([0, 1, 1], [0, 1, 0])).records == 3


def test_frames_that_are_clients_have_no_column_of_clients() -> None:
    with pytest.raises(tacit.DataError, match="each table is a client"):
        clients_of({"a": pd.DataFrame(COLUMNS)}, client="site")
