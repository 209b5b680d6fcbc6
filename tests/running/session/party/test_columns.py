"""Parties with classes and with private groups: columns by name, refusals, ledger, databases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.crypto.identities import Identity
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.ledger.ledger import Ledger
from tacit.privacy.noise import NoNoise
from tacit.protocol.conversation import Protocol
from tacit.protocol.registry import protocol_of
from tacit.protocol.trust import SecureSum
from tacit.protocols.histogram.grouped import GroupedHistogram
from tacit.protocols.multiclass.protocol import MulticlassHistogram
from tacit.running.deployment.preview import check_records, doubts
from tacit.running.session.coordinator import RunError
from tacit.running.session.party.debits import fingerprint
from tacit.running.session.party.party_file import (
    NO_GROUP_COLUMN,
    PartyFile,
    columns_misfit,
    read_records,
)
from tacit.running.session.party.service import PartyDesk
from tacit.running.session.toml_source import PlanError
from tacit.running.simulation import simulate
from tacit.testing.rehearsal import Fault, rehearse
from tests import classified
from tests.running.deployment.federation_files import federation
from tests.running.session.party.test_service import carried, desk_of, desks_of

EXAMPLE = Path(__file__).parents[4] / "examples" / "classes-and-groups"
CLASSES = (
    'name = "multiclass-histogram"\nepsilon = 1.0\nclasses = ["bacterial", "viral", "healthy"]'
)
ROWS = 150
"""Records of each party."""

GROUPS = 'name = "grouped-histogram"\nepsilon = 1.0\ngroup_names = ["day", "night"]'
COLUMNS = (
    'unit = "probability"\nscores = ["p_bacterial", "p_viral", "p_healthy"]\n'
    'class = "diagnosis"\ngroup = "ward"\n'
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder for a federation with the records of the example."""
    return tmp_path


def federated(home: Path, protocol: str, columns: str = COLUMNS) -> Identity:
    """A federation whose parties have the example's records, and name these columns."""
    identity = federation(home, protocol, limit="epsilon = 5.0")
    for name in "abc":
        lines = (EXAMPLE / name / "records.csv").read_text().splitlines()
        (home / name / "records.csv").write_text("\n".join(lines[: ROWS + 1]) + "\n")
        file = home / name / "party.toml"
        file.write_text(file.read_text().replace("[limit]", f"{columns}[limit]"))
    return identity


def changed_file(home: Path, old: str, new: str, rows: int = 1) -> None:
    """Replace a text in party a's records."""
    file = home / "a" / "records.csv"
    file.write_text(file.read_text().replace(old, new, rows))


@pytest.mark.parametrize("protocol", [CLASSES, GROUPS])
def test_parties_find_what_one_process_finds(home: Path, protocol: str) -> None:
    found = carried(home, federated(home, protocol), NoNoise()).server_result
    desks = desks_of(home)
    parts = [replace(desk.records, names=()) for desk in desks]
    pooled = Clients.concatenate(parts)
    alone = simulate(pooled, desks[0].plan.protocol, NoNoise()).server_result
    assert found is not None
    assert found.value == pytest.approx(float(alone.value))
    assert found.breakdown is not None
    assert alone.breakdown is not None
    for mine, other in zip(found.breakdown.parts, alone.breakdown.parts, strict=True):
        assert (mine.name, mine.positives) == (other.name, other.positives)
        for figure, estimate in mine.figures.items():
            assert estimate.value == pytest.approx(other.figures[figure].value)
    with Ledger(home / "a" / "ledger.db") as ledger:
        ledger.verify()
        paid = [line.epsilon or 0.0 for line in ledger.lines() if line.step is not None]
    assert sum(paid) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("protocol", "value"),
    [(CLASSES, "'fungal' in row 1 is none of"), (GROUPS, "none of day, night")],
)
def test_a_value_that_the_plan_does_not_name_costs_nothing(
    home: Path, protocol: str, value: str
) -> None:
    """It is refused on the own screen before the party joins, and in a run before any debit."""
    federated(home, protocol)
    changed_file(home, ",healthy,", ",fungal,")
    changed_file(home, ",day", ",dusk")
    desk = desk_of(home, 0)
    with pytest.raises(DataError, match=value):
        check_records(desk)
    with Ledger(home / "a" / "ledger.db") as ledger:
        assert not [line for line in ledger.lines() if line.step is not None]


@pytest.mark.parametrize(
    ("protocol", "columns", "sentence"),
    [
        (CLASSES, 'scores = ["p_viral", "p_healthy"]\n', "names 2 columns of scores"),
        (CLASSES, "", "name one for each class, in the plan's order, as scores"),
        (CLASSES, 'scores = ["viral", "bacterial", "healthy"]\n', "in the plan's order"),
        (GROUPS, "", "has the groups day, night, and the file of 'a' names no column of them"),
    ],
)
def test_columns_that_do_not_suit_the_plan_are_refused_by_words_alone(
    home: Path, protocol: str, columns: str, sentence: str
) -> None:
    federated(home, protocol, columns)
    (home / "a" / "records.csv").unlink()  # no record is read
    with pytest.raises(PlanError, match=sentence):
        check_records(PartyDesk.open(home / "a" / "party.toml"))


def test_a_party_without_columns_declines_for_a_reason_without_records(home: Path) -> None:
    identity = federated(home, GROUPS, "")
    with pytest.raises(RunError, match=NO_GROUP_COLUMN):
        carried(home, identity)


def test_two_classes_or_one_group_need_no_column(home: Path) -> None:
    federated(home, GROUPS, "")
    file = PartyFile.read(home / "a" / "party.toml")
    for settings in ({"name": "multiclass-histogram"}, {"name": "grouped-histogram"}):
        protocol = protocol_of(settings["name"], {"epsilon": 1.0})
        assert not columns_misfit(file, protocol)
        assert read_records(file, protocol).categories is None


@pytest.mark.parametrize(
    ("protocol", "old", "new"),
    [(CLASSES, ",healthy,", ",viral,"), (CLASSES, "0.1356,", "0.1357,"), (GROUPS, "day", "night")],
)
def test_the_mark_of_records_holds_classes_scores_and_groups(
    home: Path, protocol: str, old: str, new: str
) -> None:
    """Records that differ in one of them are others: a run that began with these is declined."""
    federated(home, protocol)
    with Ledger(home / "a" / "ledger.db") as ledger:
        before = fingerprint(ledger, desk_of(home, 0).records)
        changed_file(home, old, new)
        assert fingerprint(ledger, desk_of(home, 0).records) != before


def test_scores_of_every_class_are_checked_for_their_unit(home: Path) -> None:
    federated(home, CLASSES)
    changed_file(home, "0.5707", "57.07")
    said = doubts(desk_of(home, 0))
    assert said[0].startswith("1 of 450 scores are outside of what the plan takes")


def _values(home: Path, protocol: str) -> NDArray[np.float64]:
    """Party a's records as sorted rows."""
    desk = desk_of(home, 0)
    known = desk.records.categories
    assert known is not None
    columns: list[NDArray[Any]] = [desk.records.scores, desk.records.labels, known.of_record]
    if known.scores is not None:
        columns += [*known.scores.T]
    rows = np.stack([column.astype(np.float64) for column in columns], axis=1)
    return rows[np.lexsort(rows.T)]


@pytest.mark.parametrize("protocol", [CLASSES, GROUPS])
def test_a_database_gives_the_records_of_a_file(home: Path, protocol: str) -> None:
    federated(home, protocol)
    from_file = _values(home, protocol)
    csv = home / "a" / "records.csv"
    with duckdb.connect(str(home / "a" / "clinic.duckdb")) as connection:
        connection.execute(f"CREATE TABLE scored AS FROM read_csv('{csv}')")
    file = home / "a" / "party.toml"
    named = 'records = "duckdb://clinic.duckdb"\ntable = "scored"'
    file.write_text(file.read_text().replace('file = "records.csv"', named))
    np.testing.assert_array_equal(_values(home, protocol), from_file)
    with duckdb.connect(str(home / "a" / "clinic.duckdb")) as connection:
        connection.execute("UPDATE scored SET diagnosis = NULL, ward = NULL WHERE score > 0.9")
    with pytest.raises(DataError, match=r"has no value in .*, row"):
        _values(home, protocol)


@pytest.mark.parametrize(
    ("clients", "protocol"),
    [
        (
            classified.class_clients(240, 5),
            MulticlassHistogram(SecureSum(0.2), 2.0, classes=classified.CLASSES, height=3),
        ),
        (
            classified.group_clients(240, 5),
            GroupedHistogram(SecureSum(0.2), 2.0, group_names=classified.GROUPS, height=3),
        ),
    ],
    ids=["classes", "groups"],
)
def test_a_party_that_vanishes_is_left_out_with_its_classes(
    clients: Clients, protocol: Protocol
) -> None:
    """The counts of the other four are exact without noise, also when messages come twice."""
    faults = [Fault("drop", 4, 0), Fault("duplicate", 1, 2)]
    found = rehearse(
        clients, protocol, faults, noise=lambda party: NoNoise(), min_clients=4
    ).server_result
    alone = simulate(clients.part(0, 4), protocol, NoNoise()).server_result
    assert found is not None
    assert found.value == pytest.approx(float(alone.value))


def test_incomplete_records_are_not_left_out_beside_classes(home: Path) -> None:
    federated(home, CLASSES)
    party_file = replace(PartyFile.read(home / "a" / "party.toml"), missing="drop")
    classes = {"epsilon": 1.0, "classes": ("bacterial", "viral", "healthy")}
    protocol = protocol_of("multiclass-histogram", classes)
    with pytest.raises(
        DataError, match="cannot be left out together with several classes or groups"
    ):
        read_records(party_file, protocol)
