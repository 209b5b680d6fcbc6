"""A party's desk: messages answered by one process each, and processes that are killed anywhere."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

import tacit
from tacit.crypto.homomorphic import keys as sealed_counts
from tacit.crypto.identities import Identity
from tacit.ledger.entries import DEBIT, RepeatedError
from tacit.protocol import NoNoise, registry, values
from tacit.protocols.encrypted.sessions import NOT_OPENED, REFUSED_BEFORE, SENT, SessionNote
from tacit.protocols.published.fhe.bfv import ExactParty
from tacit.running.session import answers, party, plan_file, run_records, service
from tacit.running.session.coordinator import Coordinator, concluded
from tacit.running.session.messages import (
    COORDINATOR,
    MARK_POSITION,
    SESSION_POSITION,
    Kind,
    SignedMessageError,
    StaleMessageError,
    verified,
)
from tacit.running.session.toml_source import PlanError
from tacit.running.simulation import simulate
from tests.running import desks as disk

FEDAUC_RESPONSE = 'name = "fedauc"\nepsilon = 1.0\ntrust = "local"'


def test_books_hold_what_was_spent_and_nothing_of_the_records(tmp_path: Path) -> None:
    disk.carried(tmp_path, disk.federation(tmp_path, disk.HISTOGRAM))
    messages = disk.messages_in(tmp_path)
    paid = [line for line in messages if line.epsilon]
    assert {(line.adjacency, line.dataset) for line in paid} == {("record", "registry")}
    steps = [str(line.step).split()[1] for line in paid]
    rounds = ["first_round", "second_round", "third_round", "fourth_round"]
    expected = [*rounds[: len(steps) - 1], "summed_influences"]
    assert steps in (rounds[: len(steps)], expected)
    assert paid[0].epsilon == 0.025
    assert sum(line.epsilon for line in paid) == pytest.approx(1.0, abs=1e-9)
    assert [int(str(line.step).split()[0]) for line in messages] == list(range(len(messages)))


def test_drafts_of_processes_that_were_killed_stop_no_answer_and_are_removed(
    tmp_path: Path,
) -> None:
    """Also where this process has the number of the other, as processes in containers have."""
    messages = disk.coordinated(tmp_path, disk.federation(tmp_path, disk.ONE_SUM)).open()
    state = tmp_path / "a" / "ledger-state"
    state.mkdir(mode=0o700)
    session = messages[0][SESSION_POSITION].hex()
    names = (
        service.CLIENT_STATE_FILE,
        f"{session}.{run_records.RUN}",
        f"{session}.{run_records.RECORDS_MARK}",
        f"0.{run_records.RUN}",
    )
    drafts = [state / f".{name}.{os.getpid()}.part" for name in names]
    for draft in drafts:
        draft.write_bytes(b"half")
    assert disk.desk_of(tmp_path, 0).answer(messages[0])
    assert not any(draft.exists() for draft in drafts)
    assert (state / f"{session}.{run_records.RUN}").exists()


def rewritten(home: Path, order: Callable[[list[str]], list[str]]) -> None:
    """Write the rows of party a's file in another order."""
    path = home / "a" / "records.csv"
    head, *rows = path.read_text().splitlines()
    path.write_text("\n".join([head, *order(rows)]) + "\n")


def by_label(rows: list[str]) -> list[str]:
    return sorted(rows, key=lambda row: row[-1])


@pytest.mark.parametrize("protocol", [disk.RESPONSE, FEDAUC_RESPONSE], ids=["dpauc", "fedauc"])
def test_flips_of_records_in_another_order_are_paid(tmp_path: Path, protocol: str) -> None:
    """Sorted by label, and in another order within each: every place keeps its label.

    Taken as the same flips, each run would be an independent response of every record.
    """
    identity = disk.federation(tmp_path, protocol)
    rewritten(tmp_path, by_label)
    spent = []
    for order in (by_label, lambda rows: by_label(rows[::-1]), by_label):
        rewritten(tmp_path, order)
        spent.append([cost.epsilon for cost in disk.carried(tmp_path, identity).spent.values()])
    assert spent == [[1.0] * 3, [1.0, 0.0, 0.0], [0.0] * 3]
    assert sum(line.epsilon for line in disk.messages_in(tmp_path)) == 2.0


@dataclass(frozen=True, eq=False)
class Flipped:
    """What another package might note, with the name and the fields of a class of this one."""

    labels: NDArray[np.int8]
    released: NDArray[np.bool_]
    digest: bytes


@dataclass(frozen=True)
class Namesake(tacit.FedAUC):
    """A protocol whose notes are called as those of FedAUC, and are not meant to last."""

    state_types: ClassVar[Any] = (Flipped,)


def test_a_run_that_does_not_know_flipped_labels_goes_on_and_leaves_them(tmp_path: Path) -> None:
    """It has several rounds, between which the party's process ends."""
    identity = disk.federation(tmp_path, disk.RESPONSE)
    first, path = disk.carried(tmp_path, identity), tmp_path / "plan.toml"
    disk.edited(path, (disk.RESPONSE, disk.ONE_SUM))
    assert disk.carried(tmp_path, identity).server_result
    disk.edited(path, (disk.ONE_SUM, disk.RESPONSE))
    again = disk.carried(tmp_path, identity)
    assert again.server_result.value == first.server_result.value
    assert [cost.epsilon for cost in again.spent.values()] == [0.0] * 3


def test_a_namesake_forgets_no_flips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = disk.federation(tmp_path, disk.RESPONSE)
    disk.carried(tmp_path, identity)
    notebook = tmp_path / "a" / "ledger-state" / service.CLIENT_STATE_FILE
    before = notebook.read_bytes()
    monkeypatch.setattr(registry, "_registered", {"namesake": Namesake})
    disk.edited(tmp_path / "plan.toml", (disk.RESPONSE, 'name = "namesake"\nepsilon = 1.0'))
    messages = disk.coordinated(tmp_path, identity).open()
    disk.desk_of(tmp_path, 0).answer(messages[0])
    assert notebook.read_bytes() == before


def test_notes_of_two_classes_with_one_name_are_refused() -> None:
    protocol = tacit.FedAUC(1.0)
    object.__setattr__(protocol, "state_types", (*tacit.FedAUC.state_types, Flipped))
    with pytest.raises(TypeError, match="fedauc notes values of two classes called Flipped"):
        party.state_kinds(protocol)
    object.__setattr__(protocol, "state_types", (answers.Progress,))
    with pytest.raises(TypeError, match="two classes called Progress"):
        party.state_kinds(protocol)


@pytest.mark.parametrize(
    ("protocol", "rounds"),
    [('name = "two-round-auc"\nepsilon = 1.0', 2), (disk.FEDAUC, 1)],
    ids=["turns", "ranks"],
)
def test_records_in_a_new_order_are_declined(tmp_path: Path, protocol: str, rounds: int) -> None:
    """What a run keeps by the place of a record in the file would be another record's."""
    coordinator, message = asked_last(tmp_path, protocol, rounds)
    rewritten(tmp_path, lambda rows: rows[::-1])
    coordinator.receive(0, disk.desk_of(tmp_path, 0).answer(message))
    assert coordinator.declined == {0: run_records.CHANGED_RECORDS}


def asked_last(home: Path, protocol: str, rounds: int = 1) -> tuple[Coordinator, bytes]:
    """A run after so many rounds, and what party a is asked then."""
    coordinator = disk.coordinated(home, disk.federation(home, protocol, extra="min_clients = 2\n"))
    return coordinator, disk.advanced(home, coordinator, rounds)[0]


@pytest.mark.parametrize("aged", [("records",), ("run",), ("records", "run")], ids="-".join)
def test_a_runs_files_are_removed_together(tmp_path: Path, aged: tuple[str, ...]) -> None:
    """By the younger: a run that goes on for long still knows with which records it began."""
    coordinator, message = asked_last(tmp_path, disk.FEDAUC)
    folder, then = tmp_path / "a" / "ledger-state", time.time() - 31 * 86_400
    files = {path.suffix[1:]: path for path in (*folder.glob("*.run"), *folder.glob("*.records"))}
    for ending in aged:
        os.utime(files[ending], (then, then))
    if len(aged) == 2:
        identity = service.read_identity(tmp_path / "centre" / "identity.key")
        disk.desk_of(tmp_path, 0).answer(disk.coordinated(tmp_path, identity).open()[0])
        assert not any(path.exists() for path in files.values())
        return
    rewritten(tmp_path, lambda rows: [*rows[:-1], f"{rows[-1][:-1]}{1 - int(rows[-1][-1])}"])
    coordinator.receive(0, disk.desk_of(tmp_path, 0).answer(message))
    assert coordinator.declined == {0: run_records.CHANGED_RECORDS}
    assert all(path.exists() for path in files.values())


def test_a_run_that_lost_the_mark_of_its_records_is_declined(tmp_path: Path) -> None:
    """Its records may be others than those that it began with."""
    coordinator, message = asked_last(tmp_path, disk.FEDAUC)
    (mark,) = (tmp_path / "a" / "ledger-state").glob("*.records")
    mark.unlink()
    coordinator.receive(0, disk.desk_of(tmp_path, 0).answer(message))
    assert coordinator.declined == {0: run_records.LOST_MARK}


def test_what_is_kept_is_the_owners_only_and_is_forgotten(tmp_path: Path) -> None:
    """A run's state is kept 30 days after its last message, and what was flipped once for good."""
    identity = disk.federation(tmp_path, disk.RESPONSE)
    disk.carried(tmp_path, identity)
    folder = tmp_path / "a" / "ledger-state"
    (old,), notebook = folder.glob("*.run"), folder / "notebook"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (old, notebook)} == {0o600}
    for days, left in ((29, True), (31, False)):
        then = time.time() - days * 86_400
        for path in (old, old.with_suffix(".records")):
            os.utime(path, (then, then))
        disk.carried(tmp_path, identity)
        assert old.exists() is left
    assert notebook.exists()


def test_a_stranger_is_not_answered(tmp_path: Path) -> None:
    disk.federation(tmp_path, disk.FEDAUC)
    desk = disk.desk_of(tmp_path, 0)
    for message in (b"", b"x" * 40, b"x" * 400):
        with pytest.raises(SignedMessageError):
            desk.answer(message)
    assert not list(desk.party_file.state.glob("*.run"))


FHE = (
    'name = "published-fhe"\nthresholds = 10\nscheme = "bfv(adversary=malicious)"\n'
    "most_records = 1000"
)
MASKED = 'name = "encrypted-auc"\nthresholds = 10\nadversary = "malicious"\nmost_records = 1000'


def first_messages(home: Path) -> tuple[Identity, dict[int, bytes]]:
    """A federation on disk in which all have confirmed an answer, and the honest messages."""
    pytest.importorskip("tenseal")
    identity = disk.federation(home, FHE, limit=disk.UNLIMITED)
    return identity, until_answers(home, disk.coordinated(home, identity))


def until_answers(home: Path, coordinator: Coordinator) -> dict[int, bytes]:
    """The messages with the answers of a session, which everybody has confirmed."""
    messages = disk.advanced(home, coordinator, rounds=4)
    assert coordinator.round == 4
    return messages


def revealed(home: Path, protocol: str) -> tuple[tacit.Evaluation, list[dict[str, Any]]]:
    """The coordinator's result of a run whose figure the parties alone learn, and their files."""
    settings = f'name = "{protocol}"\nthresholds = 5\nmost_records = 1000'
    settings += '\nreveal = "parties"'
    identity = disk.federation(home, settings, limit=disk.UNLIMITED)
    result = concluded(plan_file.Plan.read(home / "plan.toml"), disk.carried(home, identity), {})
    assert not result.has_signal
    assert result.breakdown is None
    return result, disk.told(home)


def test_each_party_is_told_in_a_file_of_its_own(tmp_path: Path) -> None:
    """The coordinator's result, and every message that it had, are without a figure, and without
    the warnings that follow from one: of wide cells, which each party has."""
    result, files = revealed(tmp_path, "encrypted-auc")
    assert any("told to the parties alone" in warning for warning in result.warnings)
    expected = simulate(disk.pooled(tmp_path), tacit.EncryptedAUC(5, most_records=1000), NoNoise())
    assert len({each["value"] for each in files}) == 1
    assert files[0]["value"] == pytest.approx(float(expected.server_result.value), abs=1e-6)
    low, high = files[0]["interval"]
    assert high - low == pytest.approx(2 * files[0]["half_range"])
    assert [each["party"] for each in files] == ["a", "b", "c"]
    warnings = [result.warnings, *(each["warnings"] for each in files)]
    wide = [any("wider than 0.01" in each for each in told) for told in warnings]
    assert wide == [False, True, True, True]


def test_each_party_is_told_the_figures_of_classes(tmp_path: Path) -> None:
    """One score is enough for two classes, of which both have the same AUC."""
    for file in revealed(tmp_path, "encrypted-class-auc")[1]:
        areas = [each["measures"]["AUC"]["value"] for each in file["classes"]]
        assert len(areas) == 2
        assert file["value"] == pytest.approx(sum(areas) / 2)
        assert 0.5 < file["value"] < 1


def test_of_masked_runs_at_one_time_each_stays_known(tmp_path: Path) -> None:
    """After an earlier one, so that both begin with a note of it."""
    settings = 'name = "encrypted-auc"\nthresholds = 5\nmost_records = 1000'
    identity = disk.federation(tmp_path, settings, limit=disk.UNLIMITED)
    disk.carried(tmp_path, identity)
    runs = [disk.coordinated(tmp_path, identity) for _ in range(2)]
    letters = [run.open() for run in runs]
    while all(letters):
        for place, run in enumerate(runs):
            for index, message in letters[place].items():
                run.receive(index, disk.desk_of(tmp_path, index).answer(message))
            letters[place] = run.close()
    desk = disk.desk_of(tmp_path, 0)
    kept = (desk.party_file.state / "notebook").read_bytes()
    notes = values.decode_values(kept, desk._kinds, opaque=True)["notes"]
    assert sum(isinstance(note, SessionNote) and note.kind == SENT for note in notes.values()) == 3


def reply_of(home: Path, party: int, message: bytes) -> tuple[Kind, Any]:
    """The kind of a party's reply, and all that it says."""
    agreement = plan_file.Plan.read(home / "plan.toml").agreement()
    reply = verified(disk.desk_of(home, party).answer(message), agreement, party, COORDINATOR)
    return reply.kind, values.decode_values(reply.body)


def cheated(home: Path, identity: Identity, message: bytes) -> bytes:
    """The message with the first run's answer in place of both."""
    agreement = plan_file.Plan.read(home / "plan.toml").agreement()
    signed_message = verified(message, agreement, COORDINATOR, 1)
    content = values.decode_values(signed_message.body)
    answer = content["shared"]["answer"]
    address = (sealed_counts.Kind.ANSWER, answer[6:22], sealed_counts.EVERYBODY)
    first, _ = sealed_counts.read(answer, *address)
    content["shared"]["answer"] = sealed_counts.write(*address, [first, first])
    body = values.encode_values(content)
    return replace(signed_message, body=body).signed(agreement, identity)


def test_a_forged_answer_ends_the_session_and_the_honest_one_is_not_opened(tmp_path: Path) -> None:
    """One refusal, which says nothing but that it is one; the state file holds no session more."""
    identity, messages = first_messages(tmp_path)
    forged = cheated(tmp_path, identity, messages[1])
    assert reply_of(tmp_path, 1, forged) == (Kind.DECLINE, {"reason": answers.REFUSED})
    with pytest.raises(StaleMessageError):
        disk.desk_of(tmp_path, 1).answer(messages[1])
    kept = {key[:2] for key in notes_on_disk(tmp_path, "b")}
    assert kept == {("encrypted-auc", "confirmed"), ("encrypted-auc", "refused")}
    another = disk.coordinated(tmp_path, identity).open()
    assert reply_of(tmp_path, 1, another[1]) == (Kind.DECLINE, {"reason": REFUSED_BEFORE})
    disk.desk_of(tmp_path, 0).answer(another[0])


def test_nothing_opens_after_a_refusal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each would be another attempt: also for a party that lost its note of the first one."""
    identity, first = first_messages(tmp_path)
    for desk in disk.desks_of(tmp_path):
        (desk.party_file.state / service.CLIENT_STATE_FILE).unlink()
    second = until_answers(tmp_path, disk.coordinated(tmp_path, identity))
    disk.desk_of(tmp_path, 1).answer(cheated(tmp_path, identity, first[1]))
    assert "go on with a plan that has another most_records" in capsys.readouterr().err
    assert reply_of(tmp_path, 1, second[1]) == (Kind.DECLINE, {"reason": REFUSED_BEFORE})
    assert reply_of(tmp_path, 0, second[0])[0] is Kind.REPLY


@pytest.mark.parametrize("settings", [FHE, MASKED])
def test_no_stored_state_has_the_identity_key(tmp_path: Path, settings: str) -> None:
    """It is in the party's key file alone; copies of a state are not guarded as that one is."""
    pytest.importorskip("tenseal")
    identity = disk.federation(tmp_path, settings, limit=disk.UNLIMITED)
    coordinator = disk.coordinated(tmp_path, identity)
    messages, stored = coordinator.open(), 0
    while messages:
        for index, message in messages.items():
            desk = disk.desk_of(tmp_path, index)
            coordinator.receive(index, desk.answer(message))
            for file in desk.party_file.state.iterdir():
                assert desk.identity.to_bytes() not in file.read_bytes(), file.name
                stored += file.suffix == ".run"
        messages = coordinator.close()
    assert stored >= 3


def test_a_killed_party_loses_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the answer that killed it was a free attempt."""

    def killed(*_: Any) -> float:
        assert [key[1] for key in notes_on_disk(tmp_path, "b")] == ["confirmed"]
        raise KeyboardInterrupt

    identity, messages = first_messages(tmp_path)
    assert [key[1] for key in notes_on_disk(tmp_path, "b")] == ["session", "confirmed"]
    with monkeypatch.context() as patched:
        patched.setattr(ExactParty, "decrypted", killed)
        with pytest.raises(KeyboardInterrupt):
            disk.desk_of(tmp_path, 1).answer(messages[1])
    assert reply_of(tmp_path, 1, messages[1])[0] is Kind.DECLINE
    another = disk.coordinated(tmp_path, identity).open()
    assert reply_of(tmp_path, 1, another[1]) == (Kind.DECLINE, {"reason": NOT_OPENED})


def notes_on_disk(home: Path, name: str) -> list[Any]:
    """The names of the notes in a party's state file."""
    (state,) = service.PartyDesk.open(home / name / "party.toml").party_file.state.glob("*.run")
    return list(values.decode_values(state.read_bytes(), opaque=True)["notes"])


def test_a_party_answers_under_each_plan_that_it_agreed_to(tmp_path: Path) -> None:
    identity = disk.federation(tmp_path, disk.FEDAUC)
    first = plan_file.Plan.read(tmp_path / "plan.toml")
    shutil.copy(tmp_path / "plan.toml", tmp_path / "later.toml")
    disk.edited(tmp_path / "later.toml", ("epsilon = 1.0", "epsilon = 2.0"))
    later = plan_file.Plan.read(tmp_path / "later.toml").agreement()
    path = tmp_path / "a" / "party.toml"
    message = Coordinator(later, identity).open()[0]
    with pytest.raises(PlanError, match="agreed to no such plan"):
        service.PartyDesk.open(path, message[MARK_POSITION])
    disk.edited(path, ('"../plan.toml"', '["../plan.toml", "../later.toml"]'))
    assert service.PartyDesk.open(path).plan == first
    desk = service.PartyDesk.open(path, message[MARK_POSITION])
    desk.set_limit()
    assert desk.plan.protocol == tacit.PublishedFedAUC(2.0, "staircase")
    assert desk.answer(message)


def test_a_state_that_was_damaged_is_not_gone_on_from(tmp_path: Path) -> None:
    coordinator = disk.coordinated(tmp_path, disk.federation(tmp_path, disk.FEDAUC))
    messages = coordinator.open()
    desk = disk.desk_of(tmp_path, 0)
    desk.answer(messages[0])
    (state,) = desk.party_file.state.glob("*.run")
    state.write_bytes(state.read_bytes()[:-40])
    with pytest.raises(SignedMessageError, match="is damaged"):
        desk.answer(messages[0])


def answered_or_killed(desk: service.PartyDesk, message: bytes, after: int) -> bytes | None:
    """The reply of a child process, or None where it was killed after so many calls; 0: never."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        left = [after]

        def count(*_: Any) -> None:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.setprofile(count if after else None)
            reply = desk.answer(message)
            sys.setprofile(None)
            os.write(writer, reply)
            os._exit(0)
        finally:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        reply = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return None
    assert os.WEXITSTATUS(status) == 0
    return reply


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # JAX's threads, where it is loaded
@pytest.mark.parametrize("most", [16, pytest.param(300, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("protocol", [disk.FEDAUC, disk.ONE_SUM], ids=["fedauc", "histogram"])
def test_a_killed_party_replies_after_its_debit(tmp_path: Path, protocol: str, most: int) -> None:
    """So many kills, anywhere from an answer's first calls to its last. One that is killed
    between the debit and the state of an answer that leaves once declines."""
    identity = disk.federation(tmp_path, protocol, parties=2, limit="epsilon = inf")
    rng, kills, replies, finished = np.random.default_rng(5), 0, 0, 0
    desks = disk.desks_of(tmp_path)
    while kills < most or not finished:
        coordinator = disk.coordinated(tmp_path, identity)
        messages, has_declined = coordinator.open(), False
        while messages and not has_declined:
            coordinator.receive(1, desks[1].answer(messages[1]))
            reply = None
            while reply is None:
                after = int(np.exp(rng.uniform(*np.log([50, 60_000])))) if kills < most else 0
                reply = answered_or_killed(desks[0], messages[0], after)
                kills += reply is None
                with tacit.Ledger(desks[0].party_file.ledger) as ledger:
                    ledger.verify()
                    paid = [line.step or "" for line in ledger.lines() if line.kind == DEBIT]
            coordinator.receive(0, reply)
            has_declined = bool(coordinator.declined)
            replies += not has_declined
            if has_declined:
                assert protocol == disk.ONE_SUM
                assert coordinator.declined == {0: RepeatedError.public}
            else:
                messages = coordinator.close()
        finished += not has_declined
        assert has_declined or coordinator.server_result
    assert len(paid) >= replies
    of_ranks = {"0 share_scores", "1 noisy_rank_sums"}
    assert (of_ranks if protocol == disk.FEDAUC else {"2 summed_trees"}) <= set(paid)
