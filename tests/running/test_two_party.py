"""Pairs computed between processes give what the ideal functionality gives."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tacit.data.clients import Clients, DataError, Ragged
from tacit.privacy.cost import Adjacency
from tacit.privacy.ledger import Ledger
from tacit.privacy.noise import NoNoise, SimulatedNoise
from tacit.protocols.conversation import Ask, Memory, View
from tacit.protocols.dpauc import DPAUC
from tacit.protocols.fedauc import FedAUC
from tacit.protocols.paired_ustatistic import PairedUStatistic, compute_pairs
from tacit.running.joint_engine import JointError
from tacit.running.joint_frames import Frame
from tacit.running.joint_processes import JointSettings, Parties
from tacit.running.two_party import JointRun, answer_jointly, run_jointly, run_pairs
from tests.running.joint_federations import pairs_ask, tied_clients

pytest.importorskip("spu.libspu", reason="two-party computations need SPU")

TIMEOUT = 120.0
KENDALL = PairedUStatistic("kendall", 4.0, matchings=1)
GINI = PairedUStatistic("gini", 1.0)


def linked(timeout: float = TIMEOUT) -> Parties:
    """North and south, ready to be introduced."""
    owners = ["north"] * 10 + ["south"] * 10
    clients = Clients.from_values(np.linspace(0, 1, 20), client_ids=owners)
    return Parties(replace(clients, simulated=True), GINI, JointSettings(timeout))


def begin(parties: Parties) -> None:
    """Link both, and tell north alone to compute."""
    seats = np.arange(20)[np.newaxis]
    offsets = np.array([0, 10, 20])
    each = {"seats": Ragged(seats, offsets)}
    parties.admit(Ask(compute_pairs, GINI, {"epsilon": 1.0}, each, View.JOINT))
    parties.introduce("session", (0, 1), 10)
    places = {"places": np.arange(10), "leading": np.ones(10, dtype=np.bool_)}
    parties.order(0, Frame.of("pairs", places, chunk=10))


def test_without_noise_three_processes_give_the_ideal_values() -> None:
    """Clients meet two by two, each pair of them in chunks; pairs of one client stay with it."""
    clients = tied_clients(120, 3)
    ask = pairs_ask(clients, PairedUStatistic("auc", 1.0, matchings=2))
    found = answer_jointly(clients, ask, NoNoise(), JointSettings(timeout=TIMEOUT, chunk=20))
    wanted = compute_pairs.answer(clients, ask, NoNoise(), Memory())["values"]
    np.testing.assert_array_equal(found.reply["values"], wanted)
    assert found.reply["values"].dtype == wanted.dtype
    met = [session.parties for session in found.sessions]
    assert sorted(met) == [(0,), (0, 1), (0, 2), (1,), (1, 2), (2,)]
    assert sum(session.items for session in found.sessions) == wanted.size


@pytest.fixture(scope="session")
def noisy_run() -> JointRun:
    """One whole conversation with the noise of a release."""
    return run_pairs(tied_clients(400, 2, seed=1), KENDALL, settings=JointSettings(timeout=TIMEOUT))


def test_a_noisy_estimate_lies_within_five_errors(noisy_run: JointRun) -> None:
    """A false alarm in fewer than 1 of 100,000 runs, by the normal approximation."""
    findings = noisy_run.findings
    exact = KENDALL.exact(tied_clients(400, 2, seed=1))
    error = float(np.hypot(findings.privacy_error, findings.sampling_error))
    assert abs(float(findings.value) - exact) < 5 * error
    assert noisy_run.spent.epsilon == pytest.approx(4.0)
    assert noisy_run.joint


def test_a_run_tells_its_bytes_and_seconds(noisy_run: JointRun) -> None:
    assert [session.parties for session in noisy_run.sessions] == [(0,), (0, 1), (1,)]
    wanted = 200 * KENDALL.pairs_a_record
    assert sum(session.items for session in noisy_run.sessions) == wanted
    between = noisy_run.sessions[1]
    assert between.seconds > 0
    assert 100_000 < between.bytes_sent < noisy_run.bytes_sent.sum() < between.bytes_sent + 20_000


def test_a_dead_party_ends_the_run_at_once() -> None:
    with linked() as parties:
        begin(parties)
        os.kill(parties.processes[1], signal.SIGKILL)
        with pytest.raises(JointError, match="south") as told:
            while True:
                parties.answer((0, 1))
        assert "ended with exit status -9" in str(told.value) or "was lost" in str(told.value)


def test_a_party_waits_no_longer_than_agreed_for_another() -> None:
    """South is linked, but never told to compute: within 3 seconds north gives up by itself."""
    with linked(timeout=3.0) as parties:
        begin(parties)
        with pytest.raises(JointError, match=r"north: the computation stopped: .*timeout"):
            parties.answer((0, 1), timeout=60.0)


def test_a_short_wait_leaves_time_to_set_up() -> None:
    """Processes start, check and connect for longer than they then wait for each other."""
    with linked(timeout=0.5) as parties:
        begin(parties)
        with pytest.raises(JointError, match=r"north: the computation stopped: .*timeout"):
            parties.answer((0, 1), timeout=60.0)


def test_a_silent_party_is_given_up() -> None:
    with (
        linked() as parties,
        pytest.raises(JointError, match=r"no answer from south within 0\.2 s"),
    ):
        parties.answer((1,), timeout=0.2)


@pytest.mark.parametrize(
    ("orders", "said"),
    [
        ([Frame.of("sing")], "unknown order 'sing'"),
        ([Frame({"kind": "alone", "session": "s"}, b"other bytes")], "pairs need an admitted ask"),
        ([Frame({"kind": "answer"}, b"other bytes")], "MessageError"),
    ],
    ids=["unknown order", "too early", "other bytes"],
)
def test_a_party_refuses_what_it_did_not_agree_to(orders: list[Frame], said: str) -> None:
    with linked() as parties:
        for order in orders:
            parties.order(0, order)
        with pytest.raises(JointError, match=f"north: .*{said}"):
            parties.answer((0,))


def test_three_processes_rank_as_one_would() -> None:
    """Without noise the AUC is exact, ties counted one half; the server received no score."""
    clients, protocol = tied_clients(60, 3), FedAUC(1.0, ranks="mpc")
    run = run_jointly(clients, protocol, NoNoise(), JointSettings(timeout=TIMEOUT))
    assert float(run.findings.value) == pytest.approx(protocol.exact(clients), abs=1e-12)
    assert run.spent == protocol.guarantee
    assert [session.parties for session in run.sessions] == [(0, 1, 2)]


def with_ledgers(home: Path, clients: Clients, epsilon: float) -> dict[str, Path]:
    """A ledger of every client, with a limit."""
    ledgers = {clients.name(place): home / f"{place}.db" for place in range(clients.count)}
    for name, path in ledgers.items():
        with Ledger(path) as ledger:
            ledger.limit(name, epsilon, adjacency=Adjacency.REPLACE)
    return ledgers


def test_real_clients_pay_before_they_compute_together(tmp_path: Path) -> None:
    """A limit of 6 bears one run at epsilon 4, and not a second."""
    clients = replace(tied_clients(40, 2), simulated=False)
    ledgers, settings = with_ledgers(tmp_path, clients, 6.0), JointSettings(timeout=TIMEOUT)
    run = run_pairs(clients, KENDALL, settings=settings, ledgers=ledgers)
    assert run.spent.epsilon == pytest.approx(4.0)
    with pytest.raises(JointError, match="declined: the privacy budget does not allow it"):
        run_pairs(clients, KENDALL, settings=settings, ledgers=ledgers)
    for name, path in ledgers.items():
        with Ledger(path) as ledger:
            ledger.verify()
            debits = [line for line in ledger.lines() if line.kind == "debit"]
            assert {line.dataset for line in debits} == {name}
            assert sum(line.epsilon for line in debits) == pytest.approx(4.0)


def test_a_process_of_a_real_client_does_not_start_without_its_ledger() -> None:
    """Whatever the calling process forgot to check."""
    clients = replace(tied_clients(20, 2), simulated=False)
    with (
        pytest.raises(JointError, match="answers only with a ledger, and none was given"),
        Parties(clients, GINI, JointSettings(TIMEOUT)),
    ):
        raise AssertionError


def test_what_cannot_be_run_is_refused_before_anything_starts() -> None:
    clients = tied_clients(40, 2)
    with pytest.raises(ValueError, match="no seed"):
        run_pairs(clients, KENDALL, SimulatedNoise(1))
    with pytest.raises(ValueError, match="computes nothing jointly"):
        run_jointly(clients, DPAUC(1.0))
    with pytest.raises(DataError, match="2 to 32 clients"):
        run_pairs(clients.part(0, 1), KENDALL)
