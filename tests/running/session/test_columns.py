"""Parties with classes and with private groups: columns by name, refusals, ledger, databases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

import tacit
import tacit.protocol as tp
from tacit.crypto.identities import Identity
from tacit.running import simulation
from tacit.running.deployment.preview import check_records, doubts
from tacit.running.session import coordinator, service, toml_source
from tacit.running.session.party_file import (
    NO_GROUP_COLUMN,
    PartyFile,
    columns_misfit,
    read_records,
)
from tests import known
from tests.running.desks import carried, desk_of, desks_of, edited, federation, messages_in

EXAMPLE = Path(__file__).parents[3] / "examples" / "classes-and-groups"
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


def federated(home: Path, protocol: str, columns: str = COLUMNS) -> Identity:
    """A federation whose parties have the example's records, and name these columns."""
    identity = federation(home, protocol, limit="epsilon = 5.0")
    for name in "abc":
        lines = (EXAMPLE / name / "records.csv").read_text().splitlines()
        (home / name / "records.csv").write_text("\n".join(lines[: ROWS + 1]) + "\n")
        edited(home / name / "party.toml", ("[limit]", f"{columns}[limit]"))
    return identity


def records_of(home: Path) -> Path:
    return home / "a" / "records.csv"


@pytest.mark.parametrize("place", ["file", "database"])
@pytest.mark.parametrize("protocol", [CLASSES, GROUPS])
def test_parties_find_what_one_process_finds(tmp_path: Path, protocol: str, place: str) -> None:
    """Also where classes and groups are counted in a database."""
    identity, desks = federated(tmp_path, protocol), desks_of(tmp_path)
    pooled = tacit.Clients.concatenate([replace(desk.records, names=()) for desk in desks])
    if place == "database":
        with duckdb.connect(str(tmp_path / "a" / "clinic.duckdb")) as connection:
            connection.execute(f"CREATE TABLE scored AS FROM read_csv('{records_of(tmp_path)}')")
        named = 'records = "duckdb://clinic.duckdb"\ntable = "scored"'
        edited(tmp_path / "a" / "party.toml", ('file = "records.csv"', named))
    found = carried(tmp_path, identity, tp.NoNoise()).server_result
    alone = simulation.simulate(pooled, desks[0].plan.protocol, tp.NoNoise()).server_result
    assert found.value == pytest.approx(float(alone.value))
    for mine, other in zip(known(found.breakdown).parts, known(alone.breakdown).parts, strict=True):
        assert (mine.name, mine.positives) == (other.name, other.positives)
        for figure, estimate in mine.figures.items():
            assert estimate.value == pytest.approx(other.figures[figure].value)
    assert sum(line.epsilon for line in messages_in(tmp_path)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("protocol", "value"),
    [(CLASSES, "'fungal' in row 1 is none of"), (GROUPS, "none of day, night")],
)
def test_a_value_outside_the_plan_costs_nothing(tmp_path: Path, protocol: str, value: str) -> None:
    """It is refused on the own screen before the party joins, and in a run before any debit."""
    federated(tmp_path, protocol)
    edited(records_of(tmp_path), (",healthy,", ",fungal,"))
    edited(records_of(tmp_path), (",day", ",dusk"))
    desk = desk_of(tmp_path, 0)
    with pytest.raises(tacit.DataError, match=value):
        check_records(desk)
    assert not messages_in(tmp_path)


@pytest.mark.parametrize(
    ("protocol", "columns", "sentence"),
    [
        (CLASSES, 'scores = ["p_viral", "p_healthy"]\n', "names 2 columns of scores"),
        (CLASSES, "", "name one for each class, in the plan's order, as scores"),
        (CLASSES, 'scores = ["viral", "bacterial", "healthy"]\n', "in the plan's order"),
        (GROUPS, "", "has the groups day, night, and the file of 'a' names no column of them"),
    ],
)
def test_unsuitable_columns(tmp_path: Path, protocol: str, columns: str, sentence: str) -> None:
    federated(tmp_path, protocol, columns)
    records_of(tmp_path).unlink()  # no record is read
    with pytest.raises(toml_source.PlanError, match=sentence):
        check_records(service.PartyDesk.open(tmp_path / "a" / "party.toml"))


def test_a_party_without_columns_declines_for_a_reason_without_records(tmp_path: Path) -> None:
    identity = federated(tmp_path, GROUPS, "")
    with pytest.raises(coordinator.RunError, match=NO_GROUP_COLUMN):
        carried(tmp_path, identity)


def test_two_classes_or_one_group_need_no_column(tmp_path: Path) -> None:
    federated(tmp_path, GROUPS, "")
    file = PartyFile.read(tmp_path / "a" / "party.toml")
    for settings in ({"name": "multiclass-histogram"}, {"name": "grouped-histogram"}):
        protocol = tp.protocol_of(settings["name"], {"epsilon": 1.0})
        assert not any(columns_misfit(file, protocol))
        assert read_records(file, protocol).categories is None


@pytest.mark.parametrize(
    ("protocol", "old", "new"),
    [(CLASSES, ",healthy,", ",viral,"), (CLASSES, "0.1356,", "0.1357,"), (GROUPS, "day", "night")],
)
def test_marks_hold_classes_and_groups(tmp_path: Path, protocol: str, old: str, new: str) -> None:
    """Records that differ in one of them are others: a run that began with these is declined."""
    federated(tmp_path, protocol)
    with tacit.Ledger(tmp_path / "a" / "ledger.db") as ledger:
        before, _ = desk_of(tmp_path, 0).records.marks(ledger.record_key)
        edited(records_of(tmp_path), (old, new))
        assert desk_of(tmp_path, 0).records.marks(ledger.record_key)[0] != before


def test_scores_of_every_class_are_checked_for_their_unit(tmp_path: Path) -> None:
    federated(tmp_path, CLASSES)
    edited(records_of(tmp_path), ("0.5707", "57.07"))
    said = doubts(desk_of(tmp_path, 0))
    assert said[0].startswith("1 of 450 scores are outside of what the plan takes")


def test_incomplete_records_are_not_left_out_beside_classes(tmp_path: Path) -> None:
    federated(tmp_path, CLASSES)
    party_file = PartyFile.read(tmp_path / "a" / "party.toml")
    party_file = replace(party_file, columns=replace(party_file.columns, drop=True))
    classes = {"epsilon": 1.0, "classes": ("bacterial", "viral", "healthy")}
    protocol = tp.protocol_of("multiclass-histogram", classes)
    with pytest.raises(tacit.DataError, match="cannot be left out together with several classes"):
        read_records(party_file, protocol)
