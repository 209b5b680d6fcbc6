"""Files that the examples in the help of commands name."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tacit.collecting.intake import Intake
from tests import known
from tests.classified import class_clients
from tests.collecting.support import messages_of, new_folder
from tests.terminal import run

ANIMALS = ("cat", "dog", "bird")


def example_files(folder: Path, records: Path) -> None:
    """Write a file of classes, counts of these records, a campaign with reports, and a study."""
    _photos(folder / "pets.parquet")
    counts_file(records, folder / "counts.csv")
    _campaign(folder)
    _study(folder)


def _photos(file: Path) -> None:
    """Records with a label of three classes and a score of each."""
    made = known(class_clients(3000, 1, ANIMALS).categories)
    scores = dict(zip(ANIMALS, known(made.scores).T, strict=True))
    pq.write_table(pa.table(scores | {"label": np.array(ANIMALS)[made.of_record]}), file)


def counts_file(records: Path, file: Path) -> None:
    """Counts of a file's records in the cells of a score histogram."""
    options = ("--table", "scored", "--protocol", "score-histogram", "--engine", "duckdb")
    statement = run("sql", *options).stdout
    with duckdb.connect() as engine:
        engine.read_parquet(str(records)).create_view("scored")
        engine.sql(statement).write_csv(str(file))


def _campaign(folder: Path) -> None:
    """A campaign with reports of 2000 devices."""
    campaign = new_folder(folder)
    intake = Intake(campaign)
    messages = messages_of(campaign, 2000)
    for message in messages:
        intake.check(message)
    intake.store(messages)


def _study(folder: Path) -> None:
    """A plan whose sites are invited."""
    study = folder / "study"
    run("init", "--coordinator", "--parties", "north,west", study)
    run("invite", study / "plan.toml", "--server", "study.example.org:8443")
    shutil.copy(study / "invitations" / "north.json", folder / "north.json")
