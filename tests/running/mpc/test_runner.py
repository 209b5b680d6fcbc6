"""Pairs computed between processes give what the ideal functionality gives."""

import os
import signal
import sys
from dataclasses import replace
from importlib.util import find_spec
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.local.paired.kernels import kernel_codes
from tacit.local.paired.protocol import compute_pairs
from tacit.privacy.noise import NoNoise, SimulatedNoise
from tacit.protocol.mpc import MPCError
from tacit.running.deployment.flower_programs.programs import Program
from tacit.running.mpc.party_program import reason_of
from tacit.running.mpc.runner import Parties, run_mpc
from tacit.running.session.coordinator import Coordinator
from tacit.running.session.messages import MalformedMessageError
from tacit.running.simulation import Run
from tacit.testing.recording import values_of
from tests.running.mpc.federations import answer_mpc, pairs_query, tied_clients

pytestmark = pytest.mark.skipif(find_spec("spu") is None, reason="two-party computations need SPU")

TIMEOUT = 120.0
KENDALL = tacit.PairedUStatistic("kendall", 4.0, matchings=1)
GINI = tacit.PairedUStatistic("gini", 1.0)


def linked() -> Parties:
    """North and south, ready to be introduced."""
    owners = ["north"] * 10 + ["south"] * 10
    clients = tacit.Clients.from_values(np.linspace(0, 1, 20), client_ids=owners)
    return Parties(replace(clients, simulated=True), GINI, TIMEOUT)


def begin(parties: Parties) -> Coordinator:
    """Let north alone compute with south, which has announced that it would."""
    coordinator = Coordinator(parties.agreement, parties.coordinator)
    messages = coordinator.open()
    for _ in range(2):
        for index, reply in parties.deliver(messages).items():
            coordinator.receive(index, reply)
        messages = coordinator.close()
    parties.order(0, messages[0])
    return coordinator


def test_without_noise_three_processes_give_the_ideal_values() -> None:
    """Clients meet two by two, pairs of one client stay with it."""
    clients = tied_clients(120, 3)
    query = pairs_query(clients, tacit.PairedUStatistic("auc", 1.0, matchings=2))
    reply, sessions = answer_mpc(clients, query, TIMEOUT)
    ideal = compute_pairs.answer(clients, query, NoNoise(), tacit.ClientState())
    expected = values_of(ideal["values"])
    values = values_of(reply["values"])
    np.testing.assert_array_equal(values, expected)
    assert values.dtype == expected.dtype
    met = [session.parties for session in sessions]
    assert sorted(met) == [(0, 1), (0, 2), (1, 2)]
    assert 0 < sum(session.items for session in sessions) < expected.size


@pytest.fixture(scope="session")
def noisy_run() -> Run:
    """One whole conversation with the noise of a release."""
    return run_mpc(tied_clients(400, 2, seed=1), KENDALL, timeout=TIMEOUT)


def test_a_noisy_estimate_lies_within_five_errors(noisy_run: Run) -> None:
    """A false alarm in fewer than 1 of 100,000 runs, by the normal approximation."""
    server_result = noisy_run.server_result
    exact = KENDALL.exact(tied_clients(400, 2, seed=1))
    error = float(np.hypot(server_result.privacy_error, server_result.sampling_error))
    assert abs(float(server_result.value) - exact) < 5 * error
    assert noisy_run.spent.epsilon == pytest.approx(4.0)
    assert noisy_run.mpc


def test_a_run_tells_its_bytes_and_seconds(noisy_run: Run) -> None:
    (between,) = noisy_run.sessions
    assert between.parties == (0, 1)
    assert 50 < between.items < 150
    assert between.seconds > 0
    assert 100_000 < between.bytes_sent < noisy_run.bytes_sent.sum() < between.bytes_sent + 20_000


def test_a_dead_party_ends_the_run_at_once() -> None:
    with linked() as parties:
        begin(parties)
        os.kill(parties._programs[1].pid, signal.SIGKILL)
        south = r"process of south ended with exit status -9|north: no connection to party 1"
        with pytest.raises(MPCError, match=south):
            parties.answer((0, 1), TIMEOUT)


def test_a_party_waits_no_longer_than_agreed_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """South announced itself, and is never told to compute: north gives up by itself.

    Only the parties are hurried: their processes may start as late as a busy machine lets them.
    There the time may end while north still waits for the connection, and not for an answer by it.
    """
    parties = linked()
    beginning = parties._beginning

    def hurried(index: int) -> dict[str, Any]:
        return {**beginning(index), "timeout": 0.5, "setup_timeout": 0.5}

    monkeypatch.setattr(parties, "_beginning", hurried)
    with parties:
        begin(parties)
        with pytest.raises(MPCError, match=r"north: .*(party 1|did not answer in time)"):
            parties.answer((0, 1), TIMEOUT)


HALF_AN_ANSWER = """
import os, sys, time
os.write(int(sys.argv[1]), (100).to_bytes(4, "big") + b"half")
time.sleep(600)
"""


def test_a_party_that_stops_within_an_answer_is_ended(tmp_path: Path) -> None:
    with linked() as parties:
        here, there = Pipe()
        with there:
            command = [sys.executable, "-c", HALF_AN_ANSWER, str(there.fileno())]
            log = tmp_path / "stalling.log"
            stalling = Program(command, dict(os.environ), log, files=(there.fileno(),))
        parties._programs[1].stop()
        parties._connections[1].close()
        parties._connections[1], parties._programs[1] = here, stalling
        assert here.poll(TIMEOUT)
        with pytest.raises(MPCError, match=r"process of south ended with exit status -15"):
            parties.answer((1,), 0.5)


def test_a_silent_party_is_given_up_and_one_refuses_what_it_did_not_agree_to() -> None:
    with linked() as parties:
        with pytest.raises(MPCError, match=r"no answer from south within 0\.2 s"):
            parties.answer((1,), 0.2)
        parties.order(1, b"other bytes")
        with pytest.raises(MPCError, match=r"south: .*MalformedMessageError"):
            parties.answer((1,), TIMEOUT)


def test_three_processes_rank_as_one_would() -> None:
    """Without noise the AUC is exact, ties counted one half; the server received no score."""
    clients, protocol = tied_clients(24, 3), tacit.FedAUC(1.0, trust="mpc")
    run = run_mpc(clients, protocol, NoNoise(), TIMEOUT)
    assert float(run.server_result.value) == pytest.approx(protocol.exact(clients), abs=1e-12)
    assert run.spent == protocol.guarantee
    assert [session.parties for session in run.sessions] == [(0, 1, 2)]


def test_a_process_of_a_real_client_does_not_start_without_its_ledger() -> None:
    """Whatever the calling process forgot to check."""
    clients = replace(tied_clients(20, 2), simulated=False)
    with (
        pytest.raises(MPCError, match="answers only with a ledger, and none was given"),
        Parties(clients, GINI, TIMEOUT),
    ):
        raise AssertionError


def test_what_cannot_be_run_is_refused_before_anything_starts() -> None:
    clients = tied_clients(40, 2)
    with pytest.raises(ValueError, match="no seed"):
        run_mpc(clients, KENDALL, SimulatedNoise(1))
    with pytest.raises(ValueError, match="computes nothing between clients"):
        run_mpc(clients, tacit.DPAUC(1.0))
    with pytest.raises(tacit.DataError, match="2 to 32 clients"):
        run_mpc(clients.part(0, 1), KENDALL)
    wide = replace(clients, scores=clients.scores * 3)
    with pytest.raises(tacit.DataError, match=r"scores must be in \[0, 1\], got"):
        run_mpc(wide, GINI)


def test_why_a_party_failed_tells_nothing_of_its_records(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The aggregator reads the reason; what is wrong with a record is for the party's own log."""
    with pytest.raises(tacit.DataError, match=r"1\.2345678") as failed:
        kernel_codes("auc", np.array([[1.2345678], [1.0]]), np.array([True]))
    assert reason_of(failed.value) == "its records do not fit the protocol"
    assert "1.2345678" in capsys.readouterr().err
    quoting = MalformedMessageError("this message cannot be answered: score 0.512 in row 17")
    quoting.__cause__ = ValueError("score 0.512 in row 17")
    assert reason_of(quoting) == "it cannot answer a message; its own log says why"
    assert "row 17" in capsys.readouterr().err
    assert reason_of(MPCError("the link broke")) == "the link broke"
    assert reason_of(KeyError("rank")) == "KeyError: 'rank'"
