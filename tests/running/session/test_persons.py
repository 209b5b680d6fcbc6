"""Federations whose unit of privacy is a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from tacit import DPAUC, Clients, FedAUC, ScoreHistogram, TwoRoundAUC
from tacit.crypto.identities import Identity
from tacit.data.persons import as_persons
from tacit.protocol import ClientState, DataError, NoNoise, Protocol
from tacit.protocol.values import decode_values
from tacit.running.session.coordinator import RunError, concluded
from tacit.running.session.messages import Agreement
from tacit.running.session.party import state_kinds
from tacit.running.session.plan_file import Plan
from tacit.running.session.run_records import CHANGED_RECORDS
from tacit.running.session.service import CLIENT_STATE_FILE, PartyDesk
from tacit.running.session.toml_source import PlanError
from tacit.running.simulation import simulate
from tacit.running.spending import NO_PERSONS, NOTE, PERSONS_UNUSED, counted_clients, per_record
from tacit.testing.rehearsal import Keys, rehearse
from tests.running import desks
from tests.running.session.test_stored_records import moved

PROTOCOLS = (FedAUC(1.0), DPAUC(1.0), ScoreHistogram("secure-sum", 1.0), TwoRoundAUC(2.0))


def visits(clients: int = 4, records: int = 200) -> Clients:
    """Records of persons with one to nine visits to one client."""
    rng = np.random.default_rng(3)
    client = np.repeat(np.arange(clients), records)
    persons = client * 1000 + rng.integers(0, records // 4, client.size)
    labels = rng.integers(0, 2, client.size)
    scores = np.clip(rng.normal(0.4 + 0.2 * labels, 0.2), 0, 1)
    return Clients.from_arrays(scores, labels, client, persons=persons)


def with_persons(home: Path, protocol: str, per_person: int = 2) -> Identity:
    """A federation's files in which every three rows are one person's."""
    coordinator = desks.federation(home, protocol)
    desks.edited(home / "plan.toml", ("[plan]", f"[plan]\nper_person = {per_person}"))
    for party in home.glob("*/party.toml"):
        desks.edited(party, ("[data]", '[data]\nperson = "who"'))
        records = party.parent / "records.csv"
        header, *rows = records.read_text().splitlines()
        named = [f"{row},{index // 3}" for index, row in enumerate(sorted(rows))]
        records.write_text("\n".join([f"{header},who", *named]) + "\n")
    return coordinator


def limit_at(home: Path, adjacency: str) -> None:
    for party in home.glob("*/party.toml"):
        desks.edited(party, ('adjacency = "label"', f'adjacency = "{adjacency}"'))


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_a_party_that_restarts_counts_the_same_records_in_every_round(protocol: Protocol) -> None:
    """Without noise the run gives what the simulation finds about these counted records."""
    clients, states = visits(), [ClientState() for _ in range(4)]
    kept: dict[str, Any] = {"state": states, "restarts": True, "per_person": 2}
    run = rehearse(clients, protocol, noise=lambda _: NoNoise(), **kept)
    parts = [clients.part(k, k + 1) for k in range(4)]
    alone = [counted_clients(part, 2, ClientState(), NoNoise())[0] for part in parts]
    together = Clients.concatenate(alone)
    assert together.records < clients.records
    found = simulate(together, per_record(protocol, 2), NoNoise())
    if not isinstance(protocol, TwoRoundAUC):  # draws its records' rounds
        assert run.server_result.value == pytest.approx(float(found.server_result.value))
    assert run.spent.epsilon == pytest.approx(protocol.guarantee.epsilon)
    assert run.spent.adjacency is not None
    assert run.spent.adjacency.value.startswith("person")


def test_a_party_has_one_draw_of_its_own_in_all_runs(tmp_path: Path) -> None:
    """Neither the plan nor another party knows it: it comes from the operating system."""
    identity = with_persons(tmp_path, desks.ONE_SUM)
    limit_at(tmp_path, "person")
    seeds = []
    for _ in range(2):
        desks.carried(tmp_path, identity)
        files = [desk.party_file.state / CLIENT_STATE_FILE for desk in desks.desks_of(tmp_path)]
        kinds = state_kinds(Plan.read(tmp_path / "plan.toml").protocol)
        notes = [decode_values(file.read_bytes(), kinds, opaque=True)["notes"] for file in files]
        seeds.append([each[NOTE].seed for each in notes])
    assert seeds[0] == seeds[1]
    assert len(set(seeds[0])) == 3


def test_who_has_not_said_whose_the_records_are_declines() -> None:
    clients = visits()
    silent = Clients(clients.scores, clients.labels, clients.offsets, clients.names)
    with pytest.raises(RunError, match=NO_PERSONS):
        rehearse(silent, DPAUC(1.0), per_person=2)
    with pytest.raises(RunError, match=PERSONS_UNUSED):
        rehearse(clients, DPAUC(1.0))


def test_the_agreement_covers_how_many_count() -> None:
    keys = Keys.generate(2)
    agreements = [keys.agreement(DPAUC(1.0), per_person=k) for k in (0, 1)]
    assert agreements[0].protocol == agreements[1].protocol
    assert agreements[0].digest != agreements[1].digest
    public = tuple(identity.public for identity in keys.parties)
    with pytest.raises(ValueError, match="per_person must be from 1"):
        Agreement(DPAUC(1.0), public, keys.coordinator.public, per_person=-1)


@pytest.mark.parametrize(
    ("protocol", "unit"), [(desks.ONE_SUM, "person"), (desks.FEDAUC, "person-label")]
)
def test_ledgers_hold_persons_costs(tmp_path: Path, protocol: str, unit: str) -> None:
    """No digest of a person is in any file that a party writes: what is read stays in memory."""
    identity = with_persons(tmp_path, protocol)
    limit_at(tmp_path, unit)
    coordinator = desks.carried(tmp_path, identity)
    lines = desks.messages_in(tmp_path)
    assert {line.adjacency for line in lines} == {unit}
    assert sum(line.epsilon for line in lines) == pytest.approx(1.0)
    result = concluded(Plan.read(tmp_path / "plan.toml"), coordinator, {})
    content = result.to_dict()
    assert content["protocol"]["epsilon"] == 1.0
    assert content["spent"]["adjacency"] == unit
    assert content["person"] == {"records": 2, "epsilon_of_a_record": 0.5}
    digests = {bytes(digest) for digest in as_persons(np.arange(50))}
    written = [path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert not any(digest in file for digest in digests for file in written)


@pytest.mark.parametrize("source", ["duckdb", "pattern"])
def test_persons_records_count_where_they_are_as_in_memory(source: str, tmp_path: Path) -> None:
    results = []
    for where in ("", source):
        home = tmp_path / f"in {where}"
        identity = with_persons(home, desks.HISTOGRAM)
        limit_at(home, "person")
        if where:
            moved(home, where)
        results.append(repr(desks.carried(home, identity, NoNoise()).server_result))
    assert results[0] == results[1]


def test_records_that_became_another_persons_within_a_run_are_declined(tmp_path: Path) -> None:
    """Other records of a person would count in the second round than in the first."""
    identity = with_persons(tmp_path, desks.FEDAUC)
    limit_at(tmp_path, "person-label")
    moved(tmp_path, "duckdb")
    coordinator = desks.coordinated(tmp_path, identity)
    messages = desks.advanced(tmp_path, coordinator, rounds=1)
    with duckdb.connect(str(tmp_path / "a" / "clinic.duckdb")) as connection:
        connection.execute("UPDATE scored SET who = 1 - who WHERE rowid IN (0, 3)")
    coordinator.receive(0, desks.desk_of(tmp_path, 0).answer(messages[0]))
    assert coordinator.declined == {0: CHANGED_RECORDS}


def test_a_file_that_names_no_person_is_refused_on_the_partys_screen(tmp_path: Path) -> None:
    with_persons(tmp_path, desks.ONE_SUM)
    party, one_each = tmp_path / "a" / "party.toml", "every_record_another_person = true"
    desks.edited(party, ('person = "who"\n', ""))
    desk = PartyDesk.open(party)
    assert any(desk.misfit)
    with pytest.raises(PlanError, match=one_each):
        desk.check_unit()
    desks.edited(party, ("[data]", f"[data]\n{one_each}"))
    assert not any(PartyDesk.open(party).misfit)
    desks.edited(party, ("[data]", '[data]\nperson = "who"'))
    with pytest.raises(PlanError, match="cannot both be given"):
        PartyDesk.open(party)


def test_a_file_with_persons_is_refused_where_the_plan_protects_records(tmp_path: Path) -> None:
    with_persons(tmp_path, desks.ONE_SUM)
    desks.edited(tmp_path / "plan.toml", ("per_person = 2\n", ""))
    with pytest.raises(PlanError, match="the plan needs per_person"):
        desks.reopened(tmp_path, 0).check_unit()


def test_counts_say_of_how_many_records_of_a_person_they_are(tmp_path: Path) -> None:
    with_persons(tmp_path, desks.ONE_SUM)
    desks.edited(tmp_path / "a" / "party.toml", ('person = "who"\n', ""))
    moved(tmp_path, "counts")
    with pytest.raises(DataError, match="has counts in the cells"):
        _ = desks.reopened(tmp_path, 0).records
    once, counts = Plan.read(tmp_path / "plan.toml").protocol.one_count, tmp_path / "a/counts.csv"
    assert once is not None
    counts.write_text(counts.read_text().replace(once.mark(), once.mark(2)))
    assert desks.reopened(tmp_path, 0).records.knows_persons


def test_every_record_another_person_takes_part(tmp_path: Path) -> None:
    identity = with_persons(tmp_path, desks.ONE_SUM)
    for party in tmp_path.glob("*/party.toml"):
        desks.edited(party, ('person = "who"', "every_record_another_person = true"))
    limit_at(tmp_path, "person")
    assert desks.carried(tmp_path, identity).server_result


def test_a_plan_without_a_budget_for_each_record_is_refused(tmp_path: Path) -> None:
    with_persons(tmp_path, 'name = "exact"')
    with pytest.raises(PlanError, match="protects no person"):
        Plan.read(tmp_path / "plan.toml")
