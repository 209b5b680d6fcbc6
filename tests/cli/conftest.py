"""Files of records in many forms, which several tests of commands read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import tacit

NAMES = ("north", "south", "east", "west", "centre")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five clients as CSV and Parquet files, together in one file, and files that are wrong."""
    folder = tmp_path_factory.mktemp("records")
    scores, labels = tacit.binormal_scores(1500, 3500, 0.8, seed=0)
    clients = tacit.Clients.split(scores, labels, clients=5, seed=0)
    for index, name in enumerate(NAMES):
        own = clients.part(index, index + 1)
        table = pa.table({"score": own.scores, "label": own.labels})
        pa_csv.write_csv(table, folder / f"{name}.csv")
        pq.write_table(table, folder / f"{name}.parquet")
    owners = [NAMES[k] for k in clients.client_of_record]
    pooled = pa.table({"score": clients.scores, "label": clients.labels, "phone": owners})
    pq.write_table(pooled, folder / "phones.parquet")
    texts = {
        "nan": "score,label\n0.5,0\nnan,1\n",
        "negatives": "score,label\n0.5,0\n0.7,0\n",
        "first": "score,label,phone\n0.5,0,a\n0.7,1,b\n",
    }
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    patients = np.arange(clients.records) // 3
    visits = pa.table({"score": clients.scores, "label": clients.labels, "patient": patients})
    pa_csv.write_csv(visits, folder / "visits.csv")
    inside = np.clip(clients.scores, 1e-6, 1 - 1e-6)
    logits = pa.table({"score": np.log(inside / (1 - inside)), "label": clients.labels})
    pq.write_table(logits, folder / "odds.parquet")
    for name in ("result", "old", "new"):
        remaining = tacit.evaluate(clients, tacit.DPAUC(1.0))
        (folder / f"{name}.json").write_text(json.dumps(remaining.to_dict()))
    models = {"new": clients.scores, "old": clients.scores**2 % 0.7, "label": clients.labels}
    wards = {"site": owners, "ward": np.resize(["east", "west"], clients.records)}
    pq.write_table(pa.table(models | wards), folder / "models.parquet")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own working directory with links to all files."""
    for path in made.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path
